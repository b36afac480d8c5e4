// SPDX-License-Identifier: Apache-2.0
#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/elements/ranked.h"
#include "providers/cpu/elements/sorting.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/reduce/reduce.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kCandidates = 1024;

// Orders as |x| does; all NaN are equal, and greater than numbers.
template <typename T>
uint64_t ordered(T x) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if constexpr (std::is_floating_point_v<T>) {
    const double wide = static_cast<double>(x) + 0.0;  // -0 becomes 0
    if (wide != wide) return ~uint64_t{0};
    const uint64_t bits = std::bit_cast<uint64_t>(wide);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else {
    return static_cast<uint64_t>(x) ^ (std::is_signed_v<T> ? kSign : 0);
  }
}

// The first |k| of |order|, a permutation of the indices of |keys|: lesser keys first, equal ones
// by index. False when the run was stopped.
bool select(const Run& run, const uint64_t* keys, int64_t n, int64_t k, int64_t* order) {
  StopPoll pace(run);
  in_chunks(pace, n,
            [&](int64_t begin, int64_t end) { std::iota(order + begin, order + end, begin); });
  if (n > 0 && run.stopped()) return false;
  const auto first = [keys](int64_t i, int64_t j) {
    return keys[i] != keys[j] ? keys[i] < keys[j] : i < j;
  };
  return sort_unless_stopped(run, first, [&](const auto& before) {
    if (k < n) std::nth_element(order, order + k, order + n, before);
    std::sort(order, order + k, before);
  });
}

// The best of a line of float32, as ranked numbers that are found in one pass.
class Best {
 public:
  // |memory| has room for n numbers.
  Best(int64_t n, int64_t k, bool largest, uint64_t* memory)
      : k_(k), room_(std::min(n, std::max(4 * k, kCandidates))), largest_(largest), best_(memory) {}

  template <typename Compare>
  void look(const float* x, int64_t begin, int64_t end, const Compare& before) {
    int64_t i = begin;
    for (; i + kTogether <= end; i += kTogether) {
      if (!none_better(x + i))
        for (int64_t j = i; j < i + kTogether; ++j) offer(x[j], j, before);
    }
    for (; i < end; ++i) offer(x[i], i, before);
  }
  template <typename Compare>
  void finish(const Compare& before) {
    if (k_ <= kSorted) return;
    if (k_ < count_) std::nth_element(best_, best_ + k_, best_ + count_, before);
    std::sort(best_, best_ + k_, before);
  }

 private:
  static constexpr int64_t kTogether = 16, kSorted = 16;
  // Later numbers are worse than equal ones that came before. A comparison with NaN says nothing.
  bool none_better(const float* x) const {
    int worse = 0xf;
    const __m128 limit = _mm_set1_ps(limit_);
    for (int64_t j = 0; j < kTogether; j += 4) {
      const __m128 four = _mm_loadu_ps(x + j);
      worse &= _mm_movemask_ps(largest_ ? _mm_cmple_ps(four, limit) : _mm_cmpge_ps(four, limit));
    }
    return worse == 0xf;
  }
  template <typename Compare>
  void offer(float x, int64_t index, const Compare& before) {
    const uint64_t candidate = ranked(x, largest_, index);
    if (candidate >= worst_) return;
    if (k_ <= kSorted) {
      int64_t to = count_ < k_ ? count_++ : k_ - 1;
      for (; to > 0 && candidate < best_[to - 1]; --to) best_[to] = best_[to - 1];
      best_[to] = candidate;
      if (count_ == k_) bound(best_[k_ - 1]);
      return;
    }
    best_[count_++] = candidate;
    if (count_ < room_ || count_ == k_) return;
    std::nth_element(best_, best_ + k_ - 1, best_ + count_, before);
    count_ = k_;
    bound(best_[k_ - 1]);
  }
  void bound(uint64_t worst) {
    worst_ = worst;
    limit_ = number_of(worst, largest_);
  }

  int64_t k_, room_, count_ = 0;
  bool largest_;
  uint64_t* best_;
  uint64_t worst_ = ~uint64_t{0};  // what is not less is not among the first k
  float limit_ = std::numeric_limits<float>::quiet_NaN();
};

// Does the same for lines of float32.
bool select_ranked(const Run& run, StopPoll& pace, const float* x, int64_t n, int64_t k,
                   bool largest, int64_t* order) {
  if (k == 0) return true;
  uint64_t* const best = reinterpret_cast<uint64_t*>(order);
  Best chosen(n, k, largest, best);
  int64_t seen = 0;
  const bool found = sort_unless_stopped(run, std::less<uint64_t>(), [&](const auto& before) {
    in_chunks(pace, n, [&](int64_t begin, int64_t end) {
      chosen.look(x, begin, end, before);
      seen = end;
    });
    if (seen == n) chosen.finish(before);
  });
  if (!found || seen < n) return false;
  for (int64_t i = 0; i < k; ++i) order[i] = index_of(best[i]);
  return true;
}

template <typename T>
Kernel top_k_kernel(const SnapshotNode& node, const Lines& lines, int64_t k) {
  static_assert(sizeof(T) <= 8);
  const Lines out = lines.with_length(k);
  const pfrt_dtype dtype = node.input_dtype(0);
  const bool largest = node.attr_int("largest", 1) != 0;
  const bool ranks = std::is_same_v<T, float> && lines.length <= kMostRanked;
  const bool want_values = node.has_output(0), want_indices = node.has_output(1);
  Kernel kernel;
  kernel.scratch_bytes =
      8 * (lines.group_elements() + static_cast<uint64_t>(lines.length) * (ranks ? 1 : 2) +
           2 * out.group_elements());
  kernel.run = [=](const Run& run) {
    void* values = want_values ? run.output(0) : nullptr;
    void* indices = want_indices ? run.output(1) : nullptr;
    run.parallel(lines.groups, [&](int64_t index, uint32_t worker) {
      const LineGroup group(lines, index);
      int64_t* order = run.scratch<int64_t>(worker);
      int64_t* index_buffer = order + lines.length;
      T* value_buffer = reinterpret_cast<T*>(index_buffer + out.group_elements());
      T* x_buffer = value_buffer + out.group_elements();
      uint64_t* keys = reinterpret_cast<uint64_t*>(x_buffer + lines.group_elements());
      StopPoll pace(run);
      const T* x = load_lines(pace, lines, group, dtype, run.input(0), x_buffer);
      T* y = values ? place_lines(out, group, dtype, values, value_buffer) : value_buffer;
      int64_t* at =
          indices ? place_lines(out, group, PFRT_DTYPE_INT64, indices, index_buffer) : index_buffer;
      for (int64_t j = 0; j < group.count; ++j) {
        const T* line = x + j * lines.length;
        bool found = false;
        if constexpr (std::is_same_v<T, float>) {
          if (ranks) found = select_ranked(run, pace, line, lines.length, k, largest, order);
        }
        if (!ranks) {
          for (int64_t i = 0; i < lines.length; ++i) {
            const uint64_t key = ordered(line[i]);
            keys[i] = largest ? ~key : key;
          }
          found = select(run, keys, lines.length, k, order);
        }
        if (!found) return;
        for (int64_t i = 0; i < k; ++i) {
          y[j * k + i] = line[order[i]];
          at[j * k + i] = order[i];
        }
      }
      if (values) store_lines(pace, out, group, dtype, values, y);
      if (indices) store_lines(pace, out, group, PFRT_DTYPE_INT64, indices, at);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_top_k(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  const auto dims = node.input_dims(0);
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("axis", -1), dims.size()));
  const uint32_t known = node.has_output(0) ? 0 : 1;
  if (!node.has_output(known) || node.output_rank(known) != node.input_rank(0))
    return kernel_error("the output's rank is not the input's");
  std::vector<int64_t> out(dims.begin(), dims.end());
  const int64_t k = node.output_dims(known)[static_cast<size_t>(axis)];
  out[static_cast<size_t>(axis)] = k;
  for (uint32_t i = 0; i < 2; ++i)
    if (node.has_output(i)) PFRT_TRY(need_output_dims(node, i, out));
  if (node.has_output(0) && node.output_dtype(0) != node.input_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "values are ", dtype_name(node.output_dtype(0)),
                 ", the input ", dtype_name(node.input_dtype(0)));
  if (node.has_output(1) && node.output_dtype(1) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "indices are ", dtype_name(node.output_dtype(1)),
                 ": int64");
  PFRT_ASSIGN(const Lines lines, Lines::make(dims, axis));
  if (k < 0 || k > lines.length) return kernel_error("k is ", k, " on an axis of ", lines.length);
  return with_compute_type(node.input_dtype(0), [&](auto zero) -> Result<Kernel> {
    Kernel kernel = top_k_kernel<decltype(zero)>(node, lines, k);
    kernel.flops =
        static_cast<double>(node.input_elements(0)) * std::log2(static_cast<double>(k) + 2);
    return kernel;
  });
}

constexpr KernelRow kRows[] = {
    {"", "TopK", kNumbers, "top_k_select", "generic", nullptr, make_top_k},
};

}  // namespace

std::span<const KernelRow> top_k_rows() { return kRows; }

}  // namespace pfrt::cpu
