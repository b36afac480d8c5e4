// SPDX-License-Identifier: Apache-2.0
//
// Numbers that no model should have, in every integer attribute and input of nodes.tsv by turns: 0,
// negative ones, and such that sums and products of them overflow. A run ends with a status, never
// with a signal: nothing divides, shifts or counts by them unseen. PFRT_EMPTY_ALL=1 takes all
// cases, not one in eleven.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <limits>

#include "test/empty/isolated.h"
#include "test/empty/outcome.h"

#if defined(__SANITIZE_ADDRESS__)
// Requests that are too large fail here by this limit, elsewhere by that of the address space.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=2048";
}
#endif

namespace pfrt_empty {
namespace {

using pyflame_rt::OptLevel;

constexpr unsigned kOddSeconds = 30;

constexpr int64_t kOdd[] = {0, -1, 3, 64, -7,
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
                            // With a sanitizer, new ends the process instead of throwing.
                            int64_t{1} << 31, int64_t{1} << 32, (int64_t{1} << 33) + 1,
#endif
                            int64_t{1} << 62, std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max()};

struct Odd {
  NodeLine node;
  std::string text;
};

void add(std::vector<Odd>& out, const NodeLine& node, const std::string& where, int64_t value) {
  out.push_back({node, node.text + " with " + where + " = " + std::to_string(value)});
}

void add_attributes(std::vector<Odd>& out, const NodeLine& node) {
  for (const auto& [name, value] : node.attributes)
    for (const int64_t odd : kOdd) {
      NodeLine changed = node;
      if (std::holds_alternative<int64_t>(value)) {
        changed.attributes[name] = odd;
        add(out, changed, name, odd);
      }
      if (!std::holds_alternative<std::vector<int64_t>>(value)) continue;
      const auto& list = std::get<std::vector<int64_t>>(value);
      for (size_t i = 0; i < list.size(); ++i) {
        std::vector<int64_t> other = list;
        other[i] = odd;
        changed.attributes[name] = other;
        add(out, changed, name + "[" + std::to_string(i) + "]", odd);
      }
      changed.attributes[name] = std::vector<int64_t>(list.size(), odd);
      add(out, changed, name, odd);
    }
}

void add_inputs(std::vector<Odd>& out, const NodeLine& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Operand& input = node.inputs[i];
    const bool whole = input.dtype == DType::Int64 || input.dtype == DType::Int32;
    if (!whole || input.values.empty()) continue;
    for (const int64_t odd : kOdd) {
      const bool fits = input.dtype == DType::Int64 || odd == static_cast<int32_t>(odd);
      if (!fits) continue;
      NodeLine changed = node;
      changed.inputs[i].values.back() = std::to_string(odd);
      add(out, changed, "the last of input " + std::to_string(i), odd);
      if (input.values.size() > 4 && odd == 64) continue;  // seconds of honest work
      for (std::string& value : changed.inputs[i].values) value = std::to_string(odd);
      add(out, changed, "input " + std::to_string(i), odd);
    }
  }
}

std::vector<Odd> odd_nodes() {
  std::vector<Odd> all, some;
  for (const NodeLine& node : read_nodes(PFRT_EMPTY_NODES)) {
    add_attributes(all, node);
    add_inputs(all, node);
  }
  if (std::getenv("PFRT_EMPTY_ALL") != nullptr) return all;
  const size_t step = std::size(kOdd);
  for (size_t i = 0; i < all.size(); i += step)
    some.push_back(all[(i + i / step % step) % all.size()]);
  return some;
}

std::string check(const Odd& odd) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit most{rlim_t{4} << 30, rlim_t{4} << 30};  // bytes
  setrlimit(RLIMIT_AS, &most);
#endif
  const Outcome fed = outcome_of(odd.node, odd.node.inputs, Form::kFed, OptLevel::None);
  const Outcome folded = outcome_of(odd.node, odd.node.inputs, Form::kWeights, OptLevel::All);
  for (const Outcome* outcome : {&fed, &folded})
    if (outcome->refused.find("an exception left") != std::string::npos) return outcome->refused;
  return {};
}

TEST(OddNumbers, in_attributes_and_inputs_end_no_process) {
  const std::vector<Odd> all = odd_nodes();
  ASSERT_GT(all.size(), 500u);
  for (const Fault& fault :
       run_isolated(all.size(), kOddSeconds, [&](size_t i) { return check(all[i]); }))
    ADD_FAILURE() << all[fault.index].text << "\n  " << fault.text;
}

}  // namespace
}  // namespace pfrt_empty
