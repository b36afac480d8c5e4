// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/reduce/log_sum_exp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/softmax/line.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kOutputs = 16;           // that are computed together
constexpr int64_t kPiece = 512;            // elements of each that are looked at together
constexpr int64_t kTask = 1 << 14;         // elements that are worth a task
constexpr int64_t kFewElements = 1 << 17;  // they take one thread less than 0.1 ms

// log(sum(exp(x))) of the pieces so far is greatest + log(sum).
struct Line {
  static constexpr float kLowest = -std::numeric_limits<float>::infinity();

  void take(const LineMath& math, const float* x, int64_t n) {
    const float most = math.greatest(x, n, kLowest);
    if (most != most) greatest = most;
    if (!(most > kLowest) || greatest != greatest) return;
    if (most > greatest) {
      sum *= std::exp(static_cast<double>(greatest) - static_cast<double>(most));
      greatest = most;
    }
    float unused[kPiece];
    if (std::isfinite(greatest)) sum += math.exp(x, unused, n, greatest);
  }
  double value() const {
    const double most = static_cast<double>(greatest);
    return std::isfinite(greatest) ? most + std::log(sum) : most;
  }

  float greatest = kLowest;
  double sum = 0;
};

// |count| outputs from |first| on, whose innermost elements are reduced.
void take_rows(const ReduceJob& job, const LineMath& math, StopPoll& pace, int64_t first,
               int64_t count, Line* lines) {
  const Axes& reduced = job.plan->reduced;
  const int64_t part = reduced.extents.empty() ? 1 : reduced.extents[0];
  float block[kPiece];
  for (int64_t j = 0; j < count; ++j) {
    const int64_t base = job.plan->kept.offset(first + j);
    for (int64_t i = 0; i < reduced.count;) {
      const int64_t n = std::min({kPiece, part - i % part, reduced.count - i});
      if (pace.stopped(n)) return;
      lines[j].take(math, read_block(job.dtype, job.x, base + reduced.offset(i), n, block), n);
      i += n;
    }
  }
}

// |count| outputs from |first| on, which are neighbours in the input.
void take_columns(const ReduceJob& job, const LineMath& math, StopPoll& pace, int64_t first,
                  int64_t count, Line* lines) {
  const Axes& reduced = job.plan->reduced;
  const int64_t base = job.plan->kept.offset(first), each = kPiece / 2;
  float columns[kOutputs][kPiece / 2], block[kOutputs];
  for (int64_t i = 0; i < reduced.count; i += each) {
    const int64_t n = std::min(each, reduced.count - i);
    if (pace.stopped(2 * n * count)) return;
    for (int64_t k = 0; k < n; ++k) {
      const float* const row =
          read_block(job.dtype, job.x, base + reduced.offset(i + k), count, block);
      for (int64_t j = 0; j < count; ++j) columns[j][k] = row[j];
    }
    for (int64_t j = 0; j < count; ++j) lines[j].take(math, columns[j], n);
  }
}

}  // namespace

bool log_sum_exp_by_lines(const ReducePlan& plan) { return plan.reduced.count <= kFewElements; }

void log_sum_exp_lines(const Run& run, const ReduceJob& job) {
  const ReducePlan& plan = *job.plan;
  const LineMath math = LineMath::here();
  const int64_t task = std::max<int64_t>(kTask / std::max<int64_t>(plan.reduced.count, 1), 1);
  // Outputs of a row of the input, or else of all rows.
  const int64_t row = plan.columns ? plan.kept.extents[0] : plan.kept.count;
  run.blocks(plan.kept.count, task, [&](int64_t begin, int64_t end) {
    StopPoll pace(run);
    for (int64_t first = begin; first < end;) {
      const int64_t count = std::min({kOutputs, row - first % row, end - first});
      Line lines[kOutputs];
      if (plan.columns)
        take_columns(job, math, pace, first, count, lines);
      else
        take_rows(job, math, pace, first, count, lines);
      double y[kOutputs];
      for (int64_t j = 0; j < count; ++j) y[j] = lines[j].value();
      store_block(job.dtype, y, count, element(job.dtype, run.output(0), first));
      run.apply_epilogue(first, first + count);
      first += count;
    }
  });
}

}  // namespace pfrt::cpu
