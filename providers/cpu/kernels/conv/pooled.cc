// SPDX-License-Identifier: Apache-2.0
//
// A convolution and the MaxPool of its output in one step: strips of rows are convolved into the
// cache and pooled from there, so the convolution's output never reaches memory. Rows under windows
// of two strips are computed twice. The bias is added to the maximum: as rounding keeps order, that
// gives the same bits as the maximum of sums with the bias.
#include <algorithm>
#include <memory>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_source.h"
#include "providers/cpu/kernels/pool/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kStripBytes = 1 << 20;
constexpr int64_t kWantedStrips = 8;
constexpr int64_t kMostAgain = 8;  // at most one row in so many is computed twice

struct Plan {
  ConvGeometry conv;
  WindowRows rows;
  Window pool;
  WindowRows pool_rows;
  int64_t strip = 1;       // pooled rows of a strip
  int64_t strip_rows = 1;  // rows of the convolution under a strip
  Gemm<float> gemm;

  Plan(const ConvGeometry& c, const Window& p, int64_t wanted)
      : conv(c), rows(c.window), pool(p), pool_rows(p) {
    choose_strip(wanted);
    // Strips run in parallel, so the tiles of one need not be small for that.
    constexpr int64_t kMany = 1 << 20;
    gemm = Gemm<float>(conv.group_out, strip_rows * row_length(), conv.depth(), kMany);
  }
  int64_t row_length() const { return conv.window.positions[1]; }
  int64_t strips() const { return (pool.positions[0] + strip - 1) / strip; }
  // Rows [begin, end) under pooled rows [first, last).
  std::pair<int64_t, int64_t> under(int64_t first, int64_t last) const {
    const int64_t begin = first * pool.strides[0] - pool.pads[0];
    const int64_t end =
        (last - 1) * pool.strides[0] - pool.pads[0] + (pool.kernel[0] - 1) * pool.dilations[0] + 1;
    return {std::clamp<int64_t>(begin, 0, pool.image[0]),
            std::clamp<int64_t>(end, 0, pool.image[0])};
  }

 private:
  void choose_strip(int64_t wanted) {
    const int64_t span = (pool.kernel[0] - 1) * pool.dilations[0] + 1;
    const auto rows_of = [&](int64_t pooled) { return (pooled - 1) * pool.strides[0] + span; };
    const int64_t row_bytes = conv.group_out * row_length() * static_cast<int64_t>(sizeof(float));
    strip = pool.positions[0];
    while (strip > 1 && rows_of(strip) * row_bytes > kStripBytes) strip = (strip + 1) / 2;
    const int64_t again = std::max<int64_t>(0, span - pool.strides[0]);
    while (strip > 1 && strips() < wanted && again * kMostAgain <= rows_of(strip / 2)) strip /= 2;
    strip_rows = std::min(rows_of(strip), pool.image[0]);
  }
};

}  // namespace

std::string refuse_conv_max_pool(const SnapshotNode& conv, const SnapshotNode& pool) {
  if (conv.input_dtype(0) != PFRT_DTYPE_FLOAT32 || conv.input_rank(0) != 4)
    return "a convolution takes a pooling with it on float32 images of two dimensions";
  if (!pool.domain().empty() || pool.op() != "MaxPool" || pool.has_output(1))
    return "a convolution takes a MaxPool with one output with it";
  return {};
}

Result<Kernel> make_conv_max_pool(const SnapshotNode& node, const SnapshotNode& pool) {
  PFRT_ASSIGN(const ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  PFRT_ASSIGN(const PoolGeometry p, pool_geometry(pool));
  const int64_t images = std::max<int64_t>(1, g.batch * g.groups);
  const auto plan =
      std::make_shared<const Plan>(g, p.window, (kWantedStrips + images - 1) / images);
  const bool has_bias = node.has_input(2);
  const int64_t length = plan->row_length(), ld = plan->strip_rows * length;
  Kernel kernel;
  kernel.flops = g.flops() + static_cast<double>(p.planes) *
                                 static_cast<double>(p.window.position_count() * p.window.taps());
  kernel.scratch_bytes =
      plan->gemm.scratch_bytes() + static_cast<uint64_t>(g.group_out * ld) * sizeof(float);
  kernel.run = [plan, has_bias, length, ld](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->conv;
    const int64_t strips = plan->strips(), depth = geo.depth(), channels = geo.group_out;
    const int64_t pixels = geo.window.image_size(), pooled = plan->pool.position_count();
    if (pooled == 0) return 0;
    run.parallel(geo.batch * geo.groups * strips, [&](int64_t i, uint32_t worker) {
      const int64_t image = i / strips, group = image % geo.groups;
      const int64_t first = i % strips * plan->strip,
                    last = std::min(first + plan->strip, plan->pool.positions[0]);
      const auto [begin, end] = plan->under(first, last);
      const StridedSource<float> weights(run.input(1), PFRT_DTYPE_FLOAT32, group * channels * depth,
                                         depth, 1);
      const int64_t start = image * geo.group_in * pixels;
      const ImageSource<float> taps(plan->rows, pixels, run.input(0), PFRT_DTYPE_FLOAT32, start, 0);
      const StridedSource<float> as_it_lies(run.input(0), PFRT_DTYPE_FLOAT32, start, 1, pixels);
      const PanelSource<float>& columns =
          geo.window.is_identity() ? static_cast<const PanelSource<float>&>(as_it_lies) : taps;
      const Gemm<float>& gemm = plan->gemm;
      float* const scratch = run.scratch<float>(worker);
      float* const strip = scratch + gemm.scratch_bytes() / sizeof(float);
      const int64_t from = begin * length, count = (end - begin) * length;
      for (int64_t at = 0; at < count; at += gemm.tile_cols())
        for (int64_t row = 0; row < channels; row += gemm.tile_rows()) {
          const GemmTile tile{row, std::min(gemm.tile_rows(), channels - row), from + at,
                              std::min(gemm.tile_cols(), count - at)};
          gemm.compute(run, tile, weights, columns, strip + row * ld + at, ld, scratch);
        }
      if (run.stopped()) return;
      const float* const bias = has_bias ? run.input<float>(2) + group * channels : nullptr;
      const int64_t line_length = plan->pool_rows.row_length();
      StopPoll pace(run);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t plane = (image * channels + c) * pooled;
        for (int64_t r = first; r < last; ++r) {
          float* const line = run.output<float>(0) + plane + r * line_length;
          max_pool_row(pace, plan->pool_rows, r, strip + c * ld, from, line);
          if (bias != nullptr)
            for (int64_t x = 0; x < line_length; ++x) line[x] += bias[c];
        }
        run.apply_epilogue(plane + first * line_length, plane + last * line_length);
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
