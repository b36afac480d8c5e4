// SPDX-License-Identifier: Apache-2.0
//
// Integer inputs that a run reads: positions, axes, pads. Views of the caller's memory;
// thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

// An int32 or int64 input, by position.
class IndexInput {
 public:
  IndexInput(const SnapshotNode& node, uint32_t i)
      : wide_(node.input_dtype(i) == PFRT_DTYPE_INT64),
        present_(node.has_input(i)),
        input_(i),
        count_(present_ ? node.input_elements(i) : 0) {}

  bool present() const { return present_; }
  int64_t count() const { return count_; }
  const void* data(const Run& run) const { return present_ ? run.input(input_) : nullptr; }
  int64_t at(const void* data, int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
  std::vector<int64_t> read(const Run& run) const {
    std::vector<int64_t> values(static_cast<size_t>(count_ > 0 ? count_ : 0));
    const void* const from = data(run);
    for (size_t i = 0; i < values.size(); ++i) values[i] = at(from, static_cast<int64_t>(i));
    return values;
  }
  // 0 when every element lies in [-bound, bound); otherwise what run.fail returned.
  pfrt_code check(const Run& run, std::string_view op, int64_t bound) const {
    const void* const from = data(run);
    for (int64_t i = 0; i < count_; ++i) {
      if (i % kBetweenLooks == kBetweenLooks - 1)
        if (const pfrt_code code = run.stop()) return code;
      if (const int64_t v = at(from, i); v < -bound || v >= bound)
        return run.fail(Code::kINVALID_ARGUMENT, op, ": index ", v, " (element ", i,
                        ") is outside [", -bound, ", ", bound, ")");
    }
    return 0;
  }

 private:
  static constexpr int64_t kBetweenLooks = 1 << 18;
  bool wide_, present_;
  uint32_t input_;
  int64_t count_;
};

}  // namespace pfrt::cpu
