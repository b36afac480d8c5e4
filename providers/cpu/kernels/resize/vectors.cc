// SPDX-License-Identifier: Apache-2.0
//
// Linear and cubic Resize by vectors. Where rows of the input are used by several rows of the
// output, each is interpolated along the last axis once, and the last few such lines are kept; else
// rows are summed first, and their sum is interpolated. Where many elements lie inside the last
// axis, those of each position are sums over all axes.
#include <algorithm>
#include <cstring>

#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/resize/row_sum.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kKept = 4;            // interpolated lines
constexpr int64_t kTask = 16 * kBlock;  // elements of a task
constexpr int64_t kMostPositions = 64;  // of the input that make one of the output
constexpr int64_t kLanes = 8;
constexpr int64_t kMostTogether = 1 << 14;  // elements of eight lines that are taken at once

// Collects lines with their weights, and adds them up.
class LineSum {
 public:
  LineSum(int64_t n, float* y) : n_(n), y_(y) {}
  void add(const float* line, double weight) {
    if (count_ == kMostLines) flush();
    lines_[count_] = line;
    weights_[count_++] = static_cast<float>(weight);
  }
  void finish() {
    if (count_ > 0)
      flush();
    else
      std::fill_n(y_, n_, 0.0f);
  }

 private:
  // The sum so far is the first of the next lines.
  void flush() {
    sum_lines(lines_, weights_, count_, n_, y_);
    lines_[0] = y_;
    weights_[0] = 1;
    count_ = 1;
  }

  const float* lines_[kMostLines];
  float weights_[kMostLines];
  int64_t count_ = 0, n_;
  float* y_;
};

// The lines of a task, in order.
class Lines {
 public:
  Lines(const Run& run, const ResizeForm& form, const ResizePlan& plan, float* scratch)
      : run_(run), form_(form), plan_(plan), outer_(plan.axes.size() - 1), source_(scratch) {
    output_ = source_ + plan.axes.back().in * plan.inner;
    for (float*& line : kept_) {
      line = output_;
      output_ += plan.across.written();
    }
    std::fill_n(rows_, kKept, -1);
    sources_ = output_ + plan.across.written();
  }

  // The axis whose lines are kept, if they are.
  static const ResizePlan::Axis* kept_axis(const ResizePlan& plan) {
    if (plan.axes.size() < 2) return nullptr;
    const ResizePlan::Axis& axis = plan.axes[plan.axes.size() - 2];
    const bool kept = axis.taps.count > 0 && axis.taps.count <= kKept && axis.in < axis.out;
    return kept ? &axis : nullptr;
  }

  // Whether make_eight may be called.
  static bool by_eight(const ResizeForm& form, const ResizePlan& plan) {
    return plan.across.by_eight() && form.dtype() == PFRT_DTYPE_FLOAT32 && !form.needs_roi() &&
           kept_axis(plan) == nullptr && takes_eight(form);
  }
  // Whether there is scratch for it.
  static bool takes_eight(const ResizeForm& form) {
    return (form.sampling().antialias || form.sampling().mode == Resample::kCubic) &&
           form.longest_line(kWide) <= kMostTogether;
  }
  // Lines [row, row + 8) go to |y|.
  void make_eight(int64_t row, float* y) {
    const ResizePlan::Axis& axis = plan_.axes.back();
    const int64_t n = axis.in * plan_.inner;
    const float* lines[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) {
      int64_t at[kMostAxes];
      plan_.locate(row + r, outer_, at);
      lines[r] = source(RowSum(plan_, outer_, at), sources_ + r * n);
    }
    plan_.across.run_eight(lines, sources_ + kLanes * n, y, axis.out * plan_.inner);
  }

  // Line |row| goes to |y|, behind which |room| elements may be written, those of the line
  // included.
  void make(int64_t row, float* y, int64_t room) {
    int64_t at[kMostAxes];
    const ResizePlan::Axis& axis = plan_.axes.back();
    const int64_t n = axis.out * plan_.inner;
    const float value = static_cast<float>(form_.extrapolation());
    plan_.locate(row, outer_, at);
    if (plan_.outside(at, outer_)) {
      std::fill_n(y, n, value);
      return;
    }
    if (const ResizePlan::Axis* const down = kept_axis(plan_)) {
      LineSum sum(n, y);
      const int64_t position = at[outer_ - 1], count = down->taps.count;
      for (int64_t k = position * count; k < (position + 1) * count; ++k) {
        const double weight = down->taps.weight[static_cast<size_t>(k)];
        if (weight != 0)
          sum.add(across(at, row / down->out, down->taps.index[static_cast<size_t>(k)], *down),
                  weight);
      }
      sum.finish();
    } else {
      const float* const x = source(RowSum(plan_, outer_, at), source_);
      float* const to = room < plan_.across.written() ? output_ : y;
      plan_.across.run(x, to);
      if (to != y) std::memcpy(y, to, static_cast<size_t>(n) * sizeof(float));
    }
    for (int64_t i = 0; !axis.taps.outside.empty() && i < axis.out; ++i)
      if (axis.taps.outside[static_cast<size_t>(i)] != 0)
        std::fill_n(y + i * plan_.inner, plan_.inner, value);
  }

  float* output() { return output_; }

 private:
  // Row |i| of the axis before the last, interpolated along the last.
  const float* across(const int64_t* at, int64_t plane, int64_t i, const ResizePlan::Axis& down) {
    const size_t slot = static_cast<size_t>(i % kKept);
    const int64_t row = plane * down.in + i;
    if (rows_[slot] != row) {
      plan_.across.run(source(RowSum(plan_, outer_ - 1, at, i * down.stride), source_),
                       kept_[slot]);
      rows_[slot] = row;
    }
    return kept_[slot];
  }

  // A line of the input, or a sum of several, which |room| is for: its elements that count.
  const float* source(const RowSum& sum, float* room) {
    const pfrt_dtype dtype = form_.dtype();
    const int64_t low = plan_.across.low(), high = plan_.across.high();
    if (dtype == PFRT_DTYPE_FLOAT32) {
      const float* const x = run_.input<float>(0);
      if (sum.is_one_element()) return x + sum.start();
      LineSum lines(high - low, room + low);
      sum.each([&](int64_t from, double weight) { lines.add(x + from + low, weight); });
      lines.finish();
    } else {
      for (int64_t i = low; i < high; i += kBlock)
        sum.add_up(dtype, run_.input(0), i, std::min(kBlock, high - i), room + i);
    }
    return room;
  }

  const Run& run_;
  const ResizeForm& form_;
  const ResizePlan& plan_;
  size_t outer_;
  float* source_;
  float* output_;
  float* sources_;
  float* kept_[kKept];
  int64_t rows_[kKept];
};

// Counts the positions of the input that make one of the output, up to |most|.
int64_t positions_of(const ResizePlan& plan, int64_t most) {
  int64_t positions = 1;
  for (const ResizePlan::Axis& axis : plan.axes)
    positions = std::min(positions * std::max<int64_t>(axis.taps.count, 1), most);
  return positions;
}

void resize_lines(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const int64_t n = plan.axes.back().out * plan.inner, rows = form.out_elements() / n;
  const ResizePlan::Axis* const down = Lines::kept_axis(plan);
  const int64_t group = down == nullptr ? rows : down->out;  // tasks begin anew in each
  const int64_t most = std::clamp<int64_t>(kTask / n, 1, group);
  const int64_t tasks = (group + most - 1) / most;
  const pfrt_dtype dtype = form.dtype();
  const bool direct = dtype == PFRT_DTYPE_FLOAT32, eight = Lines::by_eight(form, plan);
  const int64_t work = (eight ? kLanes : 1) * std::max(n, plan.axes.back().in * plan.inner) *
                       positions_of(plan, int64_t{1} << 20);
  run.parallel(rows / group * tasks, [&](int64_t task, uint32_t worker) {
    const int64_t first = task / tasks * group, begin = first + task % tasks * most;
    const int64_t end = std::min(begin + most, first + group);
    Lines lines(run, form, plan, run.scratch<float>(worker));
    StopPoll pace(run);
    for (int64_t row = begin; row < end; ++row) {
      if (pace.stopped(work)) return;
      if (eight && row + kLanes <= end) {
        lines.make_eight(row, run.output<float>(0) + row * n);
        row += kLanes - 1;
      } else if (direct) {
        lines.make(row, run.output<float>(0) + row * n, (end - row) * n);
      } else {
        lines.make(row, lines.output(), plan.across.written());
        for (int64_t i = 0; i < n; i += kBlock)
          write_sums(dtype, run.output(0), row * n + i, std::min(kBlock, n - i),
                     lines.output() + i);
      }
    }
    run.apply_epilogue(begin * n, end * n);
  });
}

// Takes positions with |inner| elements of float32 each.
void resize_positions(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const ResizePlan::Axis& line = plan.axes.back();
  const size_t outer = plan.axes.size() - 1;
  const int64_t inner = plan.inner, n = line.out * inner, rows = form.out_elements() / n;
  const float value = static_cast<float>(form.extrapolation());
  const float* const x = run.input<float>(0);
  run.blocks(rows, std::max<int64_t>(kTask / n, 1), [&](int64_t begin, int64_t end) {
    int64_t at[kMostAxes];
    StopPoll pace(run);
    for (int64_t row = begin; row < end; ++row) {
      plan.locate(row, outer, at);
      const bool outside = plan.outside(at, outer);
      const RowSum sum(plan, outer, at);
      const float* from[kMostPositions];
      double weights[kMostPositions];
      int64_t count = 0;
      sum.each([&](int64_t start, double weight) {
        from[count] = x + start;
        weights[count++] = weight;
      });
      float* y = run.output<float>(0) + row * n;
      for (int64_t j = 0; j < line.out; ++j, y += inner) {
        if (pace.stopped(inner * line.taps.count)) return;
        const bool none = !line.taps.outside.empty() && line.taps.outside[static_cast<size_t>(j)];
        if (outside || none) {
          std::fill_n(y, inner, value);
          continue;
        }
        LineSum position(inner, y);
        for (int64_t i = 0; i < count; ++i)
          for (int64_t k = j * line.taps.count; k < (j + 1) * line.taps.count; ++k) {
            const size_t tap = static_cast<size_t>(k);
            const double weight = weights[i] * line.taps.weight[tap];
            if (weight != 0) position.add(from[i] + line.taps.index[tap] * inner, weight);
          }
        position.finish();
      }
    }
    run.apply_epilogue(begin * n, end * n);
  });
}

// Takes positions with more elements than a block, a block at a time.
void resize_blocks(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const size_t axes = plan.axes.size();
  const int64_t blocks = (plan.inner + kBlock - 1) / kBlock,
                rows = form.out_elements() / plan.inner;
  const float* const x = run.input<float>(0);
  run.blocks(rows * blocks, 4, [&](int64_t begin, int64_t end) {
    int64_t at[kMostAxes];
    StopPoll pace(run);
    for (int64_t item = begin; item < end; ++item) {
      if (pace.stopped(kBlock * positions_of(plan, int64_t{1} << 20))) return;
      const int64_t row = item / blocks, first = item % blocks * kBlock;
      const int64_t n = std::min(kBlock, plan.inner - first), to = row * plan.inner + first;
      float* const y = run.output<float>(0) + to;
      plan.locate(row, axes, at);
      if (plan.outside(at, axes)) {
        std::fill_n(y, n, static_cast<float>(form.extrapolation()));
      } else {
        LineSum sum(n, y);
        RowSum(plan, axes, at).each([&](int64_t from, double weight) {
          sum.add(x + from + first, weight);
        });
        sum.finish();
      }
      run.apply_epilogue(to, to + n);
    }
  });
}

}  // namespace

void resize_vectors(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  if (!plan.across.empty())
    resize_lines(run, form, plan);
  else if (form.dtype() != PFRT_DTYPE_FLOAT32)
    resize_weighted(run, form, plan);
  else if (plan.inner >= kBlock)
    resize_blocks(run, form, plan);
  else if (plan.inner >= kLanes && positions_of(plan, kMostPositions + 1) <= kMostPositions)
    resize_positions(run, form, plan);
  else
    resize_weighted(run, form, plan);
}

uint64_t vectors_scratch(const ResizeForm& form) {
  const int64_t line = form.longest_output_line(kWide) + kLanes;
  const int64_t lines = Lines::takes_eight(form) ? 1 + 2 * kLanes : 1;
  const int64_t all = lines * form.longest_line(kWide) + (kKept + 1) * line;
  return std::max(weighted_scratch(form), static_cast<uint64_t>(all) * sizeof(float));
}

}  // namespace pfrt::cpu
