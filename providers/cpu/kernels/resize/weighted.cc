// SPDX-License-Identifier: Apache-2.0
//
// Linear and cubic Resize. The weight of a position is the product of the weights of its axes, so
// axes are taken one after another. First the input rows that make a row of the output are summed,
// which reads memory in order; then positions along the last axis are summed within that row. If
// many elements lie inside the last axis, all axes are summed the first way.
#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernels/resize/row_sum.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 4 * kBlock;  // elements of a task

template <typename T>
void resize_rows(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const size_t outer = plan.axes.size();
  const int64_t tasks = (plan.inner + kBlock - 1) / kBlock;
  const int64_t rows = form.out_elements() / plan.inner;
  const int64_t items = std::max<int64_t>(kTask / std::min(plan.inner, kBlock), 1);
  run.blocks(rows * tasks, items, [&](int64_t begin, int64_t end) {
    int64_t at[kMostAxes];
    T block[kBlock];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / tasks, first = item % tasks * kBlock;
      const int64_t n = std::min(kBlock, plan.inner - first), to = row * plan.inner + first;
      plan.locate(row, outer, at);
      T* y = place_block(form.dtype(), run.output(0), to, block);
      if (plan.outside(at, outer))
        std::fill_n(y, n, static_cast<T>(form.extrapolation()));
      else
        RowSum(plan, outer, at).add_up(form.dtype(), run.input(0), first, n, y);
      write_sums(form.dtype(), run.output(0), to, n, y);
      run.apply_epilogue(to, to + n);
    }
  });
}

// y[j * inner + c] = sum over k of weight[j * count + k] * x[index[j * count + k] * inner + c].
template <typename T>
void sum_within(const Taps& taps, const T* weight, int64_t first, int64_t n, int64_t inner,
                const T* x, T* y) {
  const int64_t* index = &taps.index[static_cast<size_t>(first * taps.count)];
  weight += first * taps.count;
  if (inner == 1 && taps.count == 2) {
    for (int64_t j = 0; j < n; ++j)
      y[j] = weight[2 * j] * x[index[2 * j]] + weight[2 * j + 1] * x[index[2 * j + 1]];
  } else if (inner == 1) {
    for (int64_t j = 0; j < n; ++j, index += taps.count, weight += taps.count) {
      T sum = 0;
      for (int64_t k = 0; k < taps.count; ++k) sum += weight[k] * x[index[k]];
      y[j] = sum;
    }
  } else {
    for (int64_t j = 0; j < n; ++j, index += taps.count, weight += taps.count, y += inner) {
      std::fill_n(y, inner, T{0});
      for (int64_t k = 0; k < taps.count; ++k)
        for (int64_t c = 0; c < inner; ++c) y[c] += weight[k] * x[index[k] * inner + c];
    }
  }
}

// The elements of a line that positions [first, first + n) use.
struct Reach {
  int64_t low, high;

  Reach(const Taps& taps, int64_t first, int64_t n) {
    const auto begin = taps.index.begin() + first * taps.count;
    const auto [least, greatest] = std::minmax_element(begin, begin + n * taps.count);
    low = *least;
    high = *greatest + 1;
  }
};

template <typename T>
void resize_lines(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const size_t outer = plan.axes.size() - 1;
  const ResizePlan::Axis& line = plan.axes.back();
  const Taps& taps = line.taps;
  const int64_t inner = plan.inner;
  const int64_t rows = form.out_elements() / inner / line.out;
  const std::vector<T> weight(taps.weight.begin(), taps.weight.end());
  const int64_t positions = std::min(kTask / inner, line.out);
  const int64_t tasks = (line.out + positions - 1) / positions;
  std::vector<Reach> reaches;
  for (int64_t first = 0; first < line.out; first += positions)
    reaches.emplace_back(taps, first, std::min(positions, line.out - first));
  const int64_t items = std::max<int64_t>(kTask / (positions * inner), 1);
  const pfrt_dtype dtype = form.dtype();
  const T value = static_cast<T>(form.extrapolation());
  const int64_t total = rows * tasks;
  run.parallel((total + items - 1) / items, [&](int64_t task, uint32_t worker) {
    int64_t at[kMostAxes];
    T block[kBlock];
    for (int64_t item = task * items; item < std::min(total, (task + 1) * items); ++item) {
      const int64_t row = item / tasks, first = item % tasks * positions;
      const int64_t last = std::min(first + positions, line.out);
      plan.locate(row, outer, at);
      const bool outside = plan.outside(at, outer);
      const T* x = nullptr;
      if (!outside) {
        const RowSum sum(plan, outer, at);
        const Reach& reach = reaches[static_cast<size_t>(item % tasks)];
        if (sum.is_one_element() && dtype == kDtypeOf<T>) {
          x = run.input<T>(0) + sum.start();
        } else {
          T* const scratch = run.scratch<T>(worker);
          for (int64_t i = reach.low * inner; i < reach.high * inner; i += kBlock)
            sum.add_up(dtype, run.input(0), i, std::min(kBlock, reach.high * inner - i),
                       scratch + i);
          x = scratch;
        }
      }
      const int64_t step = kBlock / inner;
      for (int64_t j = first; j < last; j += step) {
        const int64_t n = std::min(step, last - j), to = (row * line.out + j) * inner;
        T* y = place_block(dtype, run.output(0), to, block);
        if (outside)
          std::fill_n(y, n * inner, value);
        else
          sum_within(taps, weight.data(), j, n, inner, x, y);
        for (int64_t i = 0; !taps.outside.empty() && i < n; ++i)
          if (taps.outside[static_cast<size_t>(j + i)] != 0)
            std::fill_n(y + i * inner, inner, value);
        write_sums(dtype, run.output(0), to, n * inner, y);
      }
      run.apply_epilogue((row * line.out + first) * inner, (row * line.out + last) * inner);
    }
  });
}

template <typename T>
void resize(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  if (plan.inner >= kWide)
    resize_rows<T>(run, form, plan);
  else
    resize_lines<T>(run, form, plan);
}

}  // namespace

// Small integers are exact in float.
bool sums_in_double(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT64 || (dtype_is_integer(dtype) && dtype_bits(dtype) > 16);
}

void resize_weighted(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  if (sums_in_double(form.dtype()))
    resize<double>(run, form, plan);
  else
    resize<float>(run, form, plan);
}

uint64_t weighted_scratch(const ResizeForm& form) {
  return static_cast<uint64_t>(form.longest_line(kWide)) *
         (sums_in_double(form.dtype()) ? sizeof(double) : sizeof(float));
}

}  // namespace pfrt::cpu
