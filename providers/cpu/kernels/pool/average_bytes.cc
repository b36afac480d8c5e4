// SPDX-License-Identifier: Apache-2.0
//
// Averages of bytes, of planes and of images in nChw16c. A row of a plane is summed across the
// window first and then along it, so that h x w taps take h + w additions; planes with short rows
// become nChw16c first, in a worker's memory.
#include <algorithm>
#include <limits>
#include <memory>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/pool/byte_averages.h"
#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/pool/sum_bytes.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = kBlockChannels;
constexpr int64_t kTask = 1 << 15;                     // bytes
constexpr int64_t kMostTaps = 1 << 23;                 // a sum of so many has 31 bits
constexpr int64_t kTogether = 512;                     // sums that become bytes at once, about
constexpr int64_t kShortRow = 32, kSmallPlane = 4096;  // positions; and pixels
constexpr int64_t kSlack = 16;  // sums that add_every may read beyond the last

struct BytePlan {
  PoolGeometry geometry;
  WindowRows rows;
  ByteAverages averages;
  // Numbers of taps by dimension and position: those on the image, and those that count.
  std::vector<std::vector<int64_t>> seen, counted;
  std::vector<int32_t> seen_along;  // the last of |seen|

  BytePlan(const SnapshotNode& node, PoolGeometry g, const ByteAverages& a)
      : geometry(std::move(g)), rows(geometry.window), averages(a) {
    const bool with_pads = node.attr_int("count_include_pad", 0) != 0;
    for (size_t d = 0; d < geometry.window.rank(); ++d) {
      seen.push_back(pool_tap_counts(geometry.window, d, false));
      counted.push_back(pool_tap_counts(geometry.window, d, with_pads));
    }
    seen_along.assign(seen.back().begin(), seen.back().end());
  }
  int64_t width() const { return geometry.window.image.back(); }
  // Rows of the image that a row of positions sees.
  int64_t most_rows() const {
    return std::min(rows.tap_rows(), geometry.window.image_size() / std::max<int64_t>(width(), 1));
  }
};

// Taps at row |row| of positions, of the dimensions but the row's own.
int64_t outer_taps(const std::vector<std::vector<int64_t>>& counts, int64_t row) {
  int64_t taps = 1;
  for (size_t d = counts.size() - 1; d-- > 0;) {
    const auto size = static_cast<int64_t>(counts[d].size());
    taps *= counts[d][static_cast<size_t>(row % size)];
    row /= size;
  }
  return taps;
}

// Sums of row |row| of a plane; |across| has room for a row of the image and kSlack more, |starts|
// for plan.most_rows().
void sum_row_of_plane(const BytePlan& plan, const ByteAverages::Values& values, const RowSums& by,
                      int64_t row, const uint8_t* plane, const uint8_t** starts, int32_t* across,
                      int32_t* sums) {
  const WindowRows& rows = plan.rows;
  const int64_t width = plan.width(), length = rows.row_length();
  int64_t count = 0;
  for (int64_t t = 0; t < rows.tap_rows(); ++t)
    if (const int64_t start = rows.row_offset(row, t); start >= 0) starts[count++] = plane + start;
  by.add_rows(starts, count, width, values.flip, across);
  std::fill_n(across + width, kSlack, 0);
  const int64_t zeros = -values.x_zero * outer_taps(plan.seen, row);
  for (int64_t p = 0; p < length; ++p)
    sums[p] = static_cast<int32_t>(zeros) * plan.seen_along[static_cast<size_t>(p)];
  for (int64_t x = 0; x < rows.row_taps(); ++x) {
    const WindowRows::Span& span = rows.span(x);
    if (span.begin < span.end)
      by.add_every(across + span.first + span.begin * rows.stride(), rows.stride(),
                   span.end - span.begin, sums + span.begin);
  }
}

// Writes the factors of row |row|, which is row |j| of |factors|.
void factors_of_row(const BytePlan& plan, const ByteAverages::Values& values, int64_t row,
                    int64_t j, float* factors) {
  const int64_t length = plan.rows.row_length(), taps = outer_taps(plan.counted, row);
  float* const out = factors + j * length;
  if (j > 0 && outer_taps(plan.counted, row - 1) == taps) {
    std::copy_n(out - length, length, out);
    return;
  }
  float known = 0;
  int64_t count = -1;
  for (int64_t p = 0; p < length; ++p) {
    if (const int64_t c = plan.counted.back()[static_cast<size_t>(p)]; c != count) {
      count = c;
      known = values.factor(taps * c);
    }
    out[p] = known;
  }
}

double flops_of(const PoolGeometry& g) {
  return static_cast<double>(g.planes) * static_cast<double>(g.window.position_count()) *
         static_cast<double>(g.window.taps());
}

Kernel average_planes(std::shared_ptr<const BytePlan> plan) {
  const int64_t sums_of_row = plan->width() + kSlack, length = plan->rows.row_length();
  // Rows that become bytes together.
  const int64_t block =
      std::clamp<int64_t>(kTogether / std::max<int64_t>(length, 1), 1, plan->rows.rows());
  Kernel kernel;
  kernel.flops = flops_of(plan->geometry);
  kernel.scratch_bytes = static_cast<uint64_t>(plan->most_rows()) * sizeof(uint8_t*) +
                         (static_cast<uint64_t>(sums_of_row) +
                          2 * static_cast<uint64_t>(block) * static_cast<uint64_t>(length)) *
                             sizeof(int32_t);
  kernel.run = [plan, sums_of_row, length, block](const Run& run) -> pfrt_code {
    const int64_t pixels = plan->geometry.window.image_size(), all = plan->rows.rows();
    const int64_t positions = length * all;
    if (positions == 0) return run.stop();
    const ByteAverages::Values values = plan->averages.read(run);
    const RowSums by = RowSums::get(plan->width());
    const int64_t row_work = sums_of_row * plan->rows.tap_rows() + length * plan->rows.row_taps();
    const int64_t together = std::clamp<int64_t>(kTask / std::max<int64_t>(row_work, 1), 1, all);
    const int64_t tasks = (all + together - 1) / together;
    run.parallel(plan->geometry.planes * tasks, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      auto** const starts = run.scratch<const uint8_t*>(worker);
      auto* const across = reinterpret_cast<int32_t*>(starts + plan->most_rows());
      int32_t* const sums = across + sums_of_row;
      auto* const factors = reinterpret_cast<float*>(sums + block * length);
      const int64_t first = i % tasks * together, last = std::min(first + together, all);
      const uint8_t* const plane = run.input<uint8_t>(0) + i / tasks * pixels;
      uint8_t* const out = run.output<uint8_t>(0) + i / tasks * positions;
      for (int64_t r = first; r < last; r += block) {
        const int64_t rows = std::min(block, last - r);
        if (pace.stopped(rows * row_work)) return;
        for (int64_t j = 0; j < rows; ++j) {
          sum_row_of_plane(*plan, values, by, r + j, plane, starts, across, sums + j * length);
          factors_of_row(*plan, values, r + j, j, factors);
        }
        values.columns(sums, factors, rows * length, out + r * length);
      }
    });
    return run.stop();
  };
  return kernel;
}

// The averages of one row, as many neighbours with the same number of taps as there are at once.
void finish_lines(const BytePlan& plan, const ByteAverages::Values& values, int64_t row,
                  const int32_t* sums, uint8_t* out) {
  const std::vector<int64_t>& along = plan.counted.back();
  const int64_t taps = outer_taps(plan.counted, row), length = plan.rows.row_length();
  for (int64_t p = 0; p < length;) {
    int64_t end = p + 1;
    while (end < length && along[static_cast<size_t>(end)] == along[static_cast<size_t>(p)]) ++end;
    values.lines(sums + p * kLine, values.factor(taps * along[static_cast<size_t>(p)]), end - p,
                 out + p * kLine);
    p = end;
  }
}

// Rows [first, last) of 16 planes in nChw16c; |sums| has room for a row of lines.
void average_lines(const BytePlan& plan, const ByteAverages::Values& values, Pace& pace,
                   int64_t first, int64_t last, const uint8_t* image, int32_t* sums, uint8_t* out) {
  const int64_t length = plan.rows.row_length(), work = length * plan.geometry.window.taps();
  for (int64_t r = first; r < last && !pace.stopped(work); ++r) {
    sum_window_nchw16c(plan.rows, r, image, values.flip, -values.x_zero, sums);
    finish_lines(plan, values, r, sums, out + r * length * kLine);
  }
}

Kernel average_nchw16c(std::shared_ptr<const BytePlan> plan) {
  Kernel kernel;
  kernel.flops = flops_of(plan->geometry);
  kernel.scratch_bytes = static_cast<uint64_t>(plan->rows.row_length()) * (kLine * sizeof(int32_t));
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const int64_t pixels = plan->geometry.window.image_size(), length = plan->rows.row_length();
    const int64_t all = plan->rows.rows();
    if (length * all == 0) return run.stop();
    const ByteAverages::Values values = plan->averages.read(run);
    const int64_t together = std::clamp<int64_t>(kTask / (length * kLine), 1, all);
    const int64_t tasks = (all + together - 1) / together;
    run.parallel(plan->geometry.planes / kLine * tasks, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      const int64_t first = i % tasks * together, last = std::min(first + together, all);
      average_lines(
          *plan, values, pace, first, last, run.input<uint8_t>(0) + i / tasks * pixels * kLine,
          run.scratch<int32_t>(worker), run.output<uint8_t>(0) + i / tasks * all * length * kLine);
    });
    return run.stop();
  };
  return kernel;
}

// Planes whose rows are too short for vectors, 16 of them together as lines.
bool are_small(const BytePlan& plan) {
  const Window& w = plan.geometry.window;
  return isa() >= Isa::kAvx2 && plan.geometry.planes >= kLine && w.positions.back() <= kShortRow &&
         w.image_size() <= kSmallPlane && w.position_count() <= kSmallPlane;
}

Kernel average_small_planes(std::shared_ptr<const BytePlan> plan) {
  const int64_t pixels = plan->geometry.window.image_size(), length = plan->rows.row_length();
  const int64_t positions = length * plan->rows.rows();
  Kernel kernel;
  kernel.flops = flops_of(plan->geometry);
  kernel.scratch_bytes =
      static_cast<uint64_t>(kLine) *
      (static_cast<uint64_t>(length) * sizeof(int32_t) + static_cast<uint64_t>(pixels + positions));
  kernel.run = [=](const Run& run) -> pfrt_code {
    if (positions == 0) return run.stop();
    const ByteAverages::Values values = plan->averages.read(run);
    const int64_t planes = plan->geometry.planes;
    run.parallel((planes + kLine - 1) / kLine, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      auto* const sums = run.scratch<int32_t>(worker);
      auto* const image = reinterpret_cast<uint8_t*>(sums + length * kLine);
      uint8_t* const averages = image + pixels * kLine;
      const int64_t first = i * kLine, count = std::min(kLine, planes - first);
      bytes_to_lines(image, kLine, kLine, run.input<uint8_t>(0) + first * pixels, pixels, count,
                     pixels);
      average_lines(*plan, values, pace, 0, plan->rows.rows(), image, sums, averages);
      bytes_to_planes(run.output<uint8_t>(0) + first * positions, positions, averages, count,
                      positions);
    });
    return run.stop();
  };
  return kernel;
}

Result<std::shared_ptr<const BytePlan>> plan_of_bytes(const SnapshotNode& node) {
  PFRT_ASSIGN(PoolGeometry geometry, pool_geometry(node));
  if (geometry.window.taps() > kMostTaps)
    return kernel_error("kernel_shape has ", geometry.window.taps(), " taps, at most ", kMostTaps,
                        " bytes can be summed");
  PFRT_ASSIGN(const ByteAverages averages, ByteAverages::make(node));
  return std::make_shared<const BytePlan>(node, std::move(geometry), averages);
}

// Sums with one factor that become neighbouring bytes.
class OneFactor {
 public:
  OneFactor(const ByteAverages::Values& values, float factor, uint8_t* out)
      : values_(values), out_(out) {
    std::fill_n(factors_, kSums, factor);
  }
  void add(int64_t sum) {
    if (sum != static_cast<int32_t>(sum)) {  // of a very large plane
      finish();
      values_.one(sum, factors_[0], out_++);
      return;
    }
    sums_[count_++] = static_cast<int32_t>(sum);
    if (count_ == kSums) finish();
  }
  void finish() {
    values_.columns(sums_, factors_, count_, out_);
    out_ += count_;
    count_ = 0;
  }

 private:
  static constexpr int64_t kSums = 128;
  const ByteAverages::Values& values_;
  uint8_t* out_;
  int64_t count_ = 0;
  int32_t sums_[kSums];
  float factors_[kSums];
};

Result<Kernel> global_average(const SnapshotNode& node, bool nchw16c) {
  PFRT_ASSIGN(const ByteAverages averages, ByteAverages::make(node));
  const auto dims = node.input_dims(0);
  if (dims.size() < 2)
    return kernel_error("X needs a batch and channels, found rank ", dims.size());
  const int64_t planes = dims[0] * dims[1], pixels = SnapshotNode::elements(dims.subspan(2));
  if (node.output_elements(0) != planes)
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        planes);
  const int64_t width = nchw16c ? kLine : 1;
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    const ByteAverages::Values values = averages.read(run);
    // The mean of nothing is no number.
    const float factor =
        pixels > 0 ? values.factor(pixels) : std::numeric_limits<float>::quiet_NaN();
    const int64_t zeros = values.x_zero * pixels;
    run.blocks(planes / width, std::max<int64_t>(1, kTask / std::max<int64_t>(pixels * width, 1)),
               [&](int64_t begin, int64_t end) {
                 Pace pace(run);
                 auto* const to = run.output<uint8_t>(0);
                 OneFactor sums(values, factor, to + begin * width);
                 for (int64_t i = begin; i < end && !pace.stopped(pixels * width); ++i) {
                   const uint8_t* const from = run.input<uint8_t>(0) + i * pixels * width;
                   if (!nchw16c) {
                     sums.add(sum_bytes(from, pixels, values.flip) - zeros);
                     continue;
                   }
                   int64_t sum[kLine] = {};
                   sum_lines(from, pixels, values.flip, sum);
                   for (int64_t c = 0; c < width; ++c) sums.add(sum[c] - zeros);
                 }
                 sums.finish();
               });
    return run.stop();
  };
  return kernel;
}

// Whether the only position sees the whole image.
bool is_global(const Window& w) {
  const auto is_zero = [](int64_t pad) { return pad == 0; };
  return w.position_count() == 1 && w.kernel == w.image && std::ranges::all_of(w.pads, is_zero) &&
         std::ranges::all_of(w.dilations, [](int64_t d) { return d == 1; });
}

Result<Kernel> average(const SnapshotNode& node, bool nchw16c) {
  PFRT_ASSIGN(auto plan, plan_of_bytes(node));
  if (is_global(plan->geometry.window)) return global_average(node, nchw16c);
  if (nchw16c) return average_nchw16c(std::move(plan));
  return are_small(*plan) ? average_small_planes(std::move(plan)) : average_planes(std::move(plan));
}

}  // namespace

std::string refuse_average_bytes(const KernelRequest& node) {
  if (std::string why = refuse_pool(node); !why.empty()) return why;
  int64_t taps = 1;
  for (const int64_t k : node.attr_ints("kernel_shape")) {
    if (k > kMostTaps / taps) return message("more than ", kMostTaps, " bytes cannot be summed");
    taps *= std::max<int64_t>(k, 1);
  }
  for (const uint32_t i : {1u, 3u})
    if (node.has_input(i) && node.input_dtype(i) != PFRT_DTYPE_FLOAT32)
      return message("input ", i, ", a scale, is not float32");
  return "";
}

Result<Kernel> make_average_bytes(const KernelRequest& node) { return average(node, false); }
Result<Kernel> make_average_bytes_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  return average(node, true);
}
Result<Kernel> make_global_average_bytes(const KernelRequest& node) {
  return global_average(node, false);
}
Result<Kernel> make_global_average_bytes_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  return global_average(node, true);
}

}  // namespace pfrt::cpu
