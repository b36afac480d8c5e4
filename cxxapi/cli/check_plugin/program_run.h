// SPDX-License-Identifier: Apache-2.0
//
// Runs a provider's program step by step as a host does, every buffer between guard pages and open
// only to the steps that declare it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/cases.h"
#include "cxxapi/cli/check_plugin/host_snapshot.h"
#include "cxxapi/cli/check_plugin/plugin_file.h"

namespace cli::check {

// Least bytes of an element of a program's arrays.
// Bytes that the first version of a struct has: a plug-in's has to have so many.
template <typename T>
constexpr size_t kLeast = 0;
template <>
inline constexpr size_t kLeast<pfrt_buffer> = offsetof(pfrt_buffer, offset) + sizeof(uint64_t);
template <>
inline constexpr size_t kLeast<pfrt_step> = offsetof(pfrt_step, tuning) + sizeof(pfrt_string);
template <>
inline constexpr size_t kLeast<pfrt_packed_constant> = offsetof(pfrt_packed_constant, user) +
                                                       sizeof(void*);
template <>
inline constexpr size_t kLeast<pfrt_ops_table> = offsetof(pfrt_ops_table, count) + sizeof(size_t);
template <>
inline constexpr size_t kLeast<pfrt_custom_op> = offsetof(pfrt_custom_op, release_state) +
                                                 sizeof(void*);

// Whether a plug-in's struct of |size| bytes says nothing that this build does not know.
template <typename T>
bool is_zero_behind(const T* from, size_t size) {
  for (size_t i = sizeof(T); i < size; ++i)
    if (reinterpret_cast<const char*>(from)[i] != 0) return false;
  return true;
}
inline constexpr const char* kSetMore =
    " has members of a newer minor that are not zero, for a host that does not know them";

// Copies an array into structs of this build.
template <typename T>
std::vector<T> copy_elements(const T* from, size_t stride, size_t count) {
  std::vector<T> out(count);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<void*>(&out[i]), pfrt_at(from, stride, i), std::min(stride, sizeof(T)));
  return out;
}

// A program in structs of this build, whose sizes and indices are right. read_program throws Broken
// otherwise.
struct ProgramView {
  std::vector<pfrt_buffer> buffers;
  std::vector<pfrt_step> steps;
  bool host_memory = true;  // all buffers are in host memory
};
ProgramView read_program(Trial& trial, const pfrt_program& program, const Case& c,
                         const HostSnapshot& snapshot, size_t constant_count);

struct RunOptions {
  Age age = Age::kNow;
  Placed placed = Placed::kAtEnd;
  uint32_t workers = 1;
  bool cancelled = false;
  // For a program of a range: dimensions of this run, by value, of those that vary. Null = the
  // program has fixed dimensions.
  const int64_t* const* dims = nullptr;
};

class ProgramRun {
 public:
  // |constants| are the packed constants by index.
  ProgramRun(const ProgramView& program, const Case& c, const HostSnapshot& snapshot,
             const std::vector<std::unique_ptr<Guarded>>& constants, const RunOptions& options);
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  // Runs every step; returns false when one did not succeed, which is then a finding (unless
  // cancelled).
  bool run(Trial& trial);
  // Bytes of an output of the region.
  std::vector<char> output(uint32_t index) const;
  const std::vector<int64_t>& output_dims(uint32_t index) const { return dims_[index]; }

 private:
  static ProgramRun& of(const pfrt_step_context* context) {
    return *static_cast<ProgramRun*>(context->host);
  }
  static void parallel(const pfrt_step_context* context, uint64_t n,
                       void (*fn)(void*, uint64_t, uint32_t), void* arg);
  pfrt_code allocate(uint32_t buffer, const int64_t* dims, uint32_t rank, void** out);
  void open_for(const pfrt_step& step);
  bool run_step(Trial& trial, const pfrt_step& step, const pfrt_step_context* context);

  const ProgramView& program_;
  const Case& case_;
  RunOptions options_;
  std::vector<std::unique_ptr<Guarded>> memory_;  // by buffer; null = not allocated by this run
  std::vector<const Guarded*> outputs_;           // by region output
  std::vector<std::vector<int64_t>> dims_;        // by region output
  std::vector<void*> pointers_;
  std::vector<std::unique_ptr<Guarded>> scratch_;  // by worker, of the current step
  std::atomic<uint64_t> asked_{0};                 // calls of stop and parallel in this step
  std::string text_;
};

}  // namespace cli::check
