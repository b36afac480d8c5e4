// SPDX-License-Identifier: Apache-2.0
//
// Integer inputs that a run reads: positions, axes, pads. Views of the caller's memory;
// thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
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
  bool wide() const { return wide_; }
  // 0 when every element lies in [-bound, bound); otherwise what run.fail returned.
  pfrt_code check(const Run& run, std::string_view op, int64_t bound) const {
    return check_tuples(run, op, {&bound, 1});
  }
  // Does the same for tuples: element d of each lies in [-bounds[d], bounds[d]).
  pfrt_code check_tuples(const Run& run, std::string_view op,
                         std::span<const int64_t> bounds) const {
    const int64_t depth = static_cast<int64_t>(bounds.size());
    if (depth == 0) return 0;
    const void* const from = data(run);
    const int64_t step = (kBetweenLooks + depth - 1) / depth * depth;
    for (int64_t begin = 0; begin < count_; begin += step) {
      if (begin > 0)
        if (const pfrt_code code = run.stop()) return code;
      const int64_t end = std::min(count_, begin + step);
      const bool outside = wide_ ? any_outside<int64_t>(from, begin, end, bounds)
                                 : any_outside<int32_t>(from, begin, end, bounds);
      for (int64_t i = begin; outside && i < end; ++i) {
        const int64_t v = at(from, i), bound = bounds[static_cast<size_t>(i % depth)];
        if (v < -bound || v >= bound)
          return run.fail(Code::kINVALID_ARGUMENT, op, ": index ", v, " (element ", i,
                          ") is outside [", -bound, ", ", bound, ")");
      }
    }
    return 0;
  }

  // Whether one of elements [begin, end) is outside.
  template <typename I>
  static bool any_outside(const void* indices, int64_t begin, int64_t end,
                          std::span<const int64_t> bounds) {
    const I* const v = static_cast<const I*>(indices);
    bool any = false;  // without branches
    if (bounds.size() == 1) {
      for (int64_t i = begin; i < end; ++i) {
        any |= v[i] < -bounds[0];
        any |= v[i] >= bounds[0];
      }
      return any;
    }
    for (int64_t i = begin; i < end;)
      for (const int64_t bound : bounds) {
        any |= v[i] < -bound;
        any |= v[i] >= bound;
        ++i;
      }
    return any;
  }

 private:
  static constexpr int64_t kBetweenLooks = 1 << 18;
  bool wide_, present_;
  uint32_t input_;
  int64_t count_;
};

}  // namespace pfrt::cpu
