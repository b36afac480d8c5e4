// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/reduce/float_reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/float_16bit.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kChunk = 1 << 15;              // elements of one chunk of a long reduction
constexpr int64_t kTask = 1 << 15;               // elements that are worth a task
constexpr int64_t kWidened = 8 * kBlock;         // elements of 16 bits that are widened at a time
constexpr int64_t kManyTiles = 16;               // they keep all threads busy
constexpr int64_t kRoom = kReduceTile + kLanes;  // VectorReduction::Fn writes whole vectors

constexpr double kMost = std::numeric_limits<double>::max();
constexpr FloatReduction kMagnitudes{&kVectorSum, INT32_MAX, FloatReduction::Finish::kNone, nullptr,
                                     0};

int64_t ceil_of(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Outputs by tiles, reduced elements by chunks.
struct Pieces {
  int64_t tile, tiles, chunk, chunks, tiles_a_task;

  explicit Pieces(const ReducePlan& plan) {
    const int64_t outputs = plan.kept.count, elements = std::max<int64_t>(plan.reduced.count, 1);
    if (plan.columns) {
      const int64_t line = std::min(plan.kept.extents[0], kReduceTile);
      chunk = std::max(kChunk / line / kLanes * kLanes, kLanes);
      tile = std::clamp(kTask / std::min(elements, chunk), line, kReduceTile) / line * line;
    } else {
      const int64_t row = plan.reduced.extents.empty() ? 1 : plan.reduced.extents[0];
      chunk = row < kChunk ? kChunk / row * row : kChunk;
      tile = std::clamp<int64_t>(kTask / elements, 1, kReduceTile);
    }
    chunk = std::min(chunk, elements);
    chunks = ceil_of(elements, chunk);
    tiles = ceil_of(outputs, tile);
    tiles_a_task = std::max<int64_t>(kTask / (tile * chunk), 1);
  }
};

class Task {
 public:
  Task(const Run& run, const ReduceJob& job, const FloatReduction& form, const Pieces& pieces)
      : run_(run), job_(job), plan_(*job.plan), form_(form), pieces_(pieces) {}

  int64_t count(int64_t tile) const {
    return std::min(pieces_.tile, plan_.kept.count - tile * pieces_.tile);
  }

  // A chunk of the tile, to |acc| of kRoom.
  void reduce(int64_t tile, int64_t chunk, float* buffer, double* acc) const {
    const int64_t first = tile * pieces_.tile, n = count(tile);
    std::fill_n(acc, n + kLanes, form_.vectors->identity);
    const Axes &kept = plan_.kept, &reduced = plan_.reduced;
    const Axes& lines = plan_.columns ? reduced : kept;
    const int64_t stride = lines.strides.empty() ? 0 : lines.strides[0];
    const int64_t line = kept.extents.empty() ? 1 : kept.extents[0];
    const int64_t part = reduced.extents.empty() ? 1 : reduced.extents[0];
    const int64_t end = std::min(plan_.reduced.count, (chunk + 1) * pieces_.chunk);
    for (int64_t j = 0; j < n;) {
      const int64_t neighbours = std::min(n - j, line - (first + j) % line);
      const int64_t base = kept.offset(first + j);
      for (int64_t i = chunk * pieces_.chunk; i < end;) {
        const int64_t length = std::min(part - i % part, end - i);
        add(base + reduced.offset(i), stride, length, neighbours, buffer, acc + j);
        i += length;
      }
      j += neighbours;
    }
  }

  // All chunks of a tile, one after the other.
  void reduce_all(int64_t tile, float* buffer, double* acc) const {
    reduce(tile, 0, buffer, acc);
    double next[kRoom];
    for (int64_t c = 1; c < pieces_.chunks && !run_.stopped(); ++c) {
      reduce(tile, c, buffer, next);
      form_.vectors->join(acc, next, count(tile));
    }
  }

  // The complete sums of a tile become outputs.
  void finish(int64_t tile, float* buffer, double* acc) const {
    const int64_t first = tile * pieces_.tile, n = count(tile);
    if (form_.exact != nullptr && !all_between(acc, n, least(), kMost))
      make_exact(tile, buffer, acc);
    const auto elements = static_cast<double>(plan_.reduced.count);
    switch (form_.finish) {
      case FloatReduction::Finish::kNone:
        break;
      case FloatReduction::Finish::kNegative:
        for (int64_t j = 0; j < n; ++j) acc[j] = -acc[j];
        break;
      case FloatReduction::Finish::kMean:
        for (int64_t j = 0; j < n; ++j) acc[j] /= elements;
        break;
      case FloatReduction::Finish::kRoot:
        for (int64_t j = 0; j < n; ++j) acc[j] = std::sqrt(acc[j]);
        break;
      case FloatReduction::Finish::kLog:
        for (int64_t j = 0; j < n; ++j) acc[j] = std::log(acc[j]);
        break;
    }
    store_block(job_.dtype, acc, n, element(job_.dtype, run_.output(0), first));
    run_.apply_epilogue(first, first + n);
  }

 private:
  // Calls the vectors' function on elements from |at| on; those of 16 bits are widened before.
  void add(int64_t at, int64_t stride, int64_t n, int64_t count, float* buffer, double* acc) const {
    const auto fn = plan_.columns ? form_.vectors->columns : form_.vectors->rows;
    if (job_.dtype == PFRT_DTYPE_FLOAT32)
      return fn(static_cast<const float*>(job_.x) + at, stride, n, count, form_.mask, acc);
    const auto* const x = static_cast<const uint16_t*>(job_.x) + at;
    const WidenLinesFn widen = widen_lines_fn(job_.dtype);
    const int64_t length = plan_.columns ? count : n, lines = plan_.columns ? n : count;
    for (int64_t i = 0; i < length; i += kBlock) {
      const int64_t now = std::min(length - i, kBlock);
      const int64_t together = kWidened / now / kLanes * kLanes;
      for (int64_t l = 0; l < lines; l += together) {
        const int64_t some = std::min(lines - l, together);
        widen(x + l * stride + i, stride, buffer, now, some, now);
        if (plan_.columns)
          fn(buffer, now, some, now, form_.mask, acc + i);
        else
          fn(buffer, now, now, some, form_.mask, acc + l);
      }
    }
  }

  double least() const {
    return std::max(form_.least * static_cast<double>(plan_.reduced.count), -kMost);
  }
  bool lacks_range(double sum) const { return !(sum >= least() && sum <= kMost); }

  // In columns a whole tile takes as long as one output. Channels of nothing but zeros are common,
  // and their squares have nothing to lose.
  void make_exact(int64_t tile, float* buffer, double* acc) const {
    const int64_t first = tile * pieces_.tile, n = count(tile);
    double magnitudes[kRoom];
    if (form_.least > 0)
      Task(run_, job_, kMagnitudes, pieces_).reduce_all(tile, buffer, magnitudes);
    else
      std::fill_n(magnitudes, n, 1.0);
    double sums[kReduceTile];
    for (int64_t j = 0; j < n; ++j) {
      if (!lacks_range(acc[j]) || magnitudes[j] == 0) continue;
      const int64_t from = plan_.columns ? 0 : j, to = plan_.columns ? n : j + 1;
      double next[kReduceTile];
      std::fill_n(sums, to - from, 0.0);
      for (int64_t i = 0; i < plan_.reduced.count && !run_.stopped(); i += pieces_.chunk) {
        form_.exact(job_, first + from, to - from, i,
                    std::min(plan_.reduced.count, i + pieces_.chunk), nullptr, next);
        form_.vectors->join(sums, next, to - from);
      }
      for (int64_t k = from; k < to; ++k)
        if (lacks_range(acc[k])) acc[k] = sums[k - from];
      j = to - 1;
    }
  }

  const Run& run_;
  const ReduceJob& job_;
  const ReducePlan& plan_;
  const FloatReduction& form_;
  const Pieces& pieces_;
};

}  // namespace

uint64_t float_reduction_scratch(pfrt_dtype dtype) {
  return is_16bit_float(dtype) ? kWidened * sizeof(float) : 0;
}

void reduce_floats(const Run& run, const ReduceJob& job, const FloatReduction& form) {
  const Pieces pieces(*job.plan);
  const Task task(run, job, form, pieces);
  const bool widens = job.dtype != PFRT_DTYPE_FLOAT32;
  const auto buffer = [&](uint32_t worker) {
    return widens ? run.scratch<float>(worker) : nullptr;
  };
  if (pieces.chunks == 1 || pieces.tiles >= kManyTiles || run.workers() == 1) {
    const int64_t together = pieces.tiles_a_task;
    run.parallel(ceil_of(pieces.tiles, together), [&](int64_t t, uint32_t worker) {
      double acc[kRoom];
      for (int64_t i = t * together; i < std::min(pieces.tiles, (t + 1) * together); ++i) {
        task.reduce_all(i, buffer(worker), acc);
        task.finish(i, buffer(worker), acc);
      }
    });
    return;
  }
  const int64_t pitch = pieces.tile + kLanes;
  const auto partial =
      std::make_unique<double[]>(static_cast<size_t>(pieces.tiles * pieces.chunks * pitch));
  const auto part = [&](int64_t t, int64_t c) {
    return &partial[static_cast<size_t>((t * pieces.chunks + c) * pitch)];
  };
  run.parallel(pieces.tiles * pieces.chunks, [&](int64_t i, uint32_t worker) {
    const int64_t t = i / pieces.chunks, c = i % pieces.chunks;
    task.reduce(t, c, buffer(worker), part(t, c));
  });
  if (run.stopped()) return;
  run.parallel(pieces.tiles, [&](int64_t t, uint32_t worker) {
    for (int64_t c = 1; c < pieces.chunks; ++c)
      form.vectors->join(part(t, 0), part(t, c), task.count(t));
    task.finish(t, buffer(worker), part(t, 0));
  });
}

}  // namespace pfrt::cpu
