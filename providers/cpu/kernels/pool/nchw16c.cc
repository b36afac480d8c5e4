// SPDX-License-Identifier: Apache-2.0
//
// Pooling of images in nChw16c, with the bits of the row-major kernels, except for global averages,
// whose sums have another order.
#include <algorithm>
#include <limits>
#include <memory>

#include "providers/cpu/elements/greater.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/window/small_planes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlock = kBlockChannels;
constexpr int64_t kTask = 1 << 14;  // elements

struct MaxOf {
  using Sum = __m256;
  PFRT_AVX2_INLINE Sum start() const {
    return _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  }
  PFRT_AVX2_INLINE Sum add(Sum sum, __m256 x, int64_t) const { return greater_or_nan(x, sum); }
  PFRT_AVX2_INLINE __m256 finish(Sum sum, int64_t) const { return sum; }
};

struct AverageOf {
  struct Sum {
    __m256d low, high;
  };
  double outer;           // taps that count, of the dimensions but the row's own
  const int64_t* counts;  // taps that count along the row, by position
  PFRT_AVX2_INLINE Sum start() const { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  PFRT_AVX2_INLINE Sum add(Sum sum, __m256 x, int64_t) const {
    return {sum.low + _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
            sum.high + _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
  }
  PFRT_AVX2_INLINE __m256 finish(Sum sum, int64_t position) const {
    const double count = outer * static_cast<double>(counts[position]);
    const __m256d by = _mm256_set1_pd(count > 0 ? count : 1);
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_div_pd(sum.high, by)),
                           _mm256_cvtpd_ps(_mm256_div_pd(sum.low, by)));
  }
};

struct Plan {
  Window window;
  WindowRows rows;
  int64_t blocks;
  std::vector<std::vector<int64_t>> counts;  // averages: by dimension and position
};

// Taps that count at row |row| of positions, of the dimensions but the row's own.
double outer_count(const Plan& plan, int64_t row) {
  int64_t count = 1;
  for (size_t d = plan.counts.size() - 1; d-- > 0;) {
    const auto size = static_cast<int64_t>(plan.counts[d].size());
    count *= plan.counts[d][static_cast<size_t>(row % size)];
    row /= size;
  }
  return static_cast<double>(count);
}

void pool_row(const Plan& plan, int64_t row, const float* image, float* out) {
  for (int64_t c = 0; c < kBlock; c += kVectorChannels)
    if (plan.counts.empty())
      nchw16c_row(plan.rows, row, image + c, out + c, MaxOf{});
    else
      nchw16c_row(plan.rows, row, image + c, out + c,
                  AverageOf{outer_count(plan, row), plan.counts.back().data()});
}

// The maximum along rows first, then across rows: a window of h x w taps takes h + w.
struct MaxOfRows {
  WindowRows along, across;
  int64_t blocks;

  // The window along rows alone, for every row of the image; and the one across those results.
  static Window along_of(Window w) {
    w.positions[0] = w.image[0];
    w.kernel[0] = w.strides[0] = w.dilations[0] = 1;
    w.pads[0] = w.end_pads[0] = 0;
    return w;
  }
  static Window across_of(Window w) {
    w.image[1] = w.positions[1];
    w.kernel[1] = w.strides[1] = w.dilations[1] = 1;
    w.pads[1] = w.end_pads[1] = 0;
    return w;
  }
  MaxOfRows(const Window& w, int64_t count)
      : along(along_of(w)), across(across_of(w)), blocks(count) {}
  int64_t scratch_elements() const { return along.rows() * along.row_length() * kBlock; }
};

// Whether that takes fewer taps, and its rows stay in the second-level cache.
bool pays_by_rows(const Window& w) {
  constexpr int64_t kMostBytes = 128 << 10;
  if (w.rank() != 2) return false;
  const int64_t rows = w.image[0] * w.kernel[1] + w.positions[0] * w.kernel[0];
  return 4 * rows < 3 * w.positions[0] * w.taps() &&
         w.image[0] * w.positions[1] * kBlock * int64_t{sizeof(float)} <= kMostBytes;
}

Kernel max_of_rows(const Window& window, int64_t blocks) {
  Kernel kernel;
  const auto plan = std::make_shared<const MaxOfRows>(window, blocks);
  kernel.flops = static_cast<double>(blocks * kBlock * window.position_count()) *
                 static_cast<double>(window.taps());
  kernel.scratch_bytes = static_cast<uint64_t>(plan->scratch_elements()) * sizeof(float);
  kernel.run = [plan, pixels = window.image_size()](const Run& run) -> pfrt_code {
    const int64_t length = plan->across.row_length(), all = plan->across.rows() * length;
    if (all == 0) return run.stop();
    run.parallel(plan->blocks, [&](int64_t block, uint32_t worker) {
      if (run.stopped()) return;
      float* const lines = run.scratch<float>(worker);
      const auto rows = [&](const WindowRows& window_rows, const float* image, float* out) {
        for (int64_t r = 0; r < window_rows.rows(); ++r)
          for (int64_t c = 0; c < kBlock; c += kVectorChannels)
            nchw16c_row(window_rows, r, image + c, out + r * length * kBlock + c, MaxOf{});
      };
      rows(plan->along, run.input<float>(0) + block * pixels * kBlock, lines);
      rows(plan->across, lines, run.output<float>(0) + block * all * kBlock);
      run.apply_epilogue(block * all * kBlock, (block + 1) * all * kBlock);
    });
    return run.stop();
  };
  return kernel;
}

Plan plan_of(const SnapshotNode& node, PoolGeometry g, bool average) {
  const WindowRows rows(g.window);
  Plan made{std::move(g.window), rows, g.planes / kBlock, {}};
  for (size_t d = 0; average && d < made.window.rank(); ++d)
    made.counts.push_back(
        pool_tap_counts(made.window, d, node.attr_int("count_include_pad", 0) != 0));
  return made;
}

Result<Kernel> make(const SnapshotNode& node, bool average) {
  PFRT_ASSIGN(PoolGeometry g, pool_geometry(node));
  if (!average && pays_by_rows(g.window))
    return in_float32(node, {0}, max_of_rows(g.window, g.planes / kBlock));
  Plan made = plan_of(node, g, average);
  Kernel kernel;
  kernel.flops = static_cast<double>(g.planes) * static_cast<double>(made.window.position_count()) *
                 static_cast<double>(made.window.taps());
  const auto plan = std::make_shared<const Plan>(std::move(made));
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const int64_t pixels = plan->window.image_size(), length = plan->rows.row_length();
    const int64_t all = plan->rows.rows();
    if (length * all == 0) return run.stop();
    const int64_t together = std::clamp<int64_t>(kTask / (length * kBlock), 1, all);
    const int64_t tasks = (all + together - 1) / together;
    run.parallel(plan->blocks * tasks, [&](int64_t i, uint32_t) {
      if (run.stopped()) return;
      const int64_t block = i / tasks, first = i % tasks * together;
      const int64_t last = std::min(first + together, all);
      const float* const image = run.input<float>(0) + block * pixels * kBlock;
      const int64_t start = block * all * length * kBlock;
      for (int64_t r = first; r < last; ++r)
        pool_row(*plan, r, image, run.output<float>(0) + start + r * length * kBlock);
      run.apply_epilogue(start + first * length * kBlock, start + last * length * kBlock);
    });
    return run.stop();
  };
  return in_float32(node, {0}, std::move(kernel));
}

}  // namespace

std::string refuse_pool_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  if (isa() < Isa::kAvx2) return "the machine, or PFRT_ISA, has no AVX2";
  if (node.has_output(1)) return "indices are of planes";
  const auto out = node.output_dims(0);
  if (sides.input && out.size() > 2 && SnapshotNode::elements(out.subspan(2)) == 1) return "";
  return sides.input == sides.output ? "" : "pooling keeps the layout";
}

Kernel average_pool_small_planes(const SnapshotNode& node, PoolGeometry geometry) {
  const int64_t planes = geometry.planes;
  struct SmallPlan {
    Plan plan;
    SmallPlanes planes;
  };
  const SmallPlanes small(geometry.window);
  const auto made =
      std::make_shared<const SmallPlan>(SmallPlan{plan_of(node, std::move(geometry), true), small});
  const Window& window = made->plan.window;
  Kernel kernel;
  kernel.flops = static_cast<double>(planes) * static_cast<double>(window.position_count()) *
                 static_cast<double>(window.taps());
  kernel.scratch_bytes = made->planes.scratch_bytes();
  kernel.run = [made, planes](const Run& run) -> pfrt_code {
    const int64_t pixels = made->plan.window.image_size();
    made->planes.run(
        run, planes, [&](int64_t p) { return run.input<float>(0) + p * pixels; },
        [&](int64_t, int64_t count, const float* image, float* out) {
          for (int64_t r = 0; r < made->planes.rows(); ++r) {
            const AverageOf average{outer_count(made->plan, r), made->plan.counts.back().data()};
            for (int64_t c = 0; c < count; c += kVectorChannels)
              made->planes.row(r, image + c, out + c, average);
          }
        });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_max_pool_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  const bool floats = kFloatsTo32.has(node.input_dtype(0));
  return floats ? make(node, false) : make_max_pool_bytes_nchw16c(node);
}

Result<Kernel> make_average_pool_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  return make(node, true);
}

Result<Kernel> make_global_average_pool_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  const int64_t blocks = dims[0] * dims[1] / kBlock;
  const int64_t pixels = SnapshotNode::elements(dims.subspan(2));
  if (node.output_elements(0) != dims[0] * dims[1])
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        dims[0] * dims[1]);
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    run.blocks(blocks, std::max<int64_t>(1, kTask / (pixels * kBlock)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const float* const image = run.input<float>(0) + b * pixels * kBlock;
                   double sum[kBlock] = {};
                   for (int64_t p = 0; p < pixels; ++p)
                     for (int64_t c = 0; c < kBlock; ++c)
                       sum[c] += static_cast<double>(image[p * kBlock + c]);
                   float* const out = run.output<float>(0) + b * kBlock;
                   for (int64_t c = 0; c < kBlock; ++c)
                     out[c] = static_cast<float>(sum[c] / static_cast<double>(pixels));
                 }
                 run.apply_epilogue(begin * kBlock, end * kBlock);
               });
    return run.stop();
  };
  return in_float32(node, {0}, std::move(kernel));
}

}  // namespace pfrt::cpu
