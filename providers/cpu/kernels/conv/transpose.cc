// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose: for a block of output channels, one matmul gives what every input position sends
// through every tap, and each row of the result is added to the output where its tap falls. If each
// output pixel gets exactly one tap of one position, rows are written instead of added: positions
// can then be computed in parallel, and pixels are final at once.
#include <algorithm>
#include <memory>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = 16;  // output channels a task, at most

// Whether two taps and the next position's two are four contiguous pixels.
bool has_pairs(const WindowRows& rows) {
  if (rows.stride() != 2 || rows.row_taps() != 2) return false;
  const WindowRows::Span &a = rows.span(0), &b = rows.span(1);
  return b.first == a.first + 1 && a.begin == b.begin && a.end == b.end;
}

// Whether each output pixel gets exactly one tap of one position.
bool is_apart(const Window& w) {
  for (size_t d = 0; d < w.rank(); ++d)
    if (w.kernel[d] != w.strides[d] || (w.dilations[d] != 1 && w.kernel[d] > 1) || w.pads[d] != 0 ||
        w.image[d] != w.positions[d] * w.strides[d])
      return false;
  return true;
}

template <typename T>
struct Plan {
  ConvGeometry geometry;
  WindowRows rows;
  bool pairs;        // two taps are added to the output at once
  int64_t channels;  // a task
  Gemm<T> gemm;
  pfrt_dtype dtype;
  bool apart;  // is_apart: tiles of the matmul, which have all taps of their channels, are tasks
  Plan(const ConvGeometry& g, pfrt_dtype type, bool in_place)
      : geometry(g),
        rows(g.window),
        pairs(has_pairs(rows)),
        channels(std::clamp<int64_t>(g.group_out, 1, kChannels)),
        gemm(channels * g.window.taps(), g.window.position_count(), g.group_in, 16),
        dtype(type),
        apart(in_place && is_apart(g.window) &&
              (gemm.tile_rows() >= channels * g.window.taps() ||
               gemm.tile_rows() % g.window.taps() == 0)) {}
};

// Adds |n| sums of one tap to the image, for positions from |first| on, and |beside|, unless null,
// those of the next tap, whose pixels are the next ones.
template <typename T>
void scatter(const WindowRows& rows, int64_t tap, const T* sums, const T* beside, int64_t first,
             int64_t n, T* image) {
  const WindowRows::Span& span = rows.span(tap % rows.row_taps());
  const int64_t length = rows.row_length(), stride = rows.stride();
  for (int64_t j = 0; j < n;) {
    const int64_t row = (first + j) / length, from = (first + j) % length;
    const int64_t count = std::min(length - from, n - j);
    const int64_t begin = std::clamp(span.begin, from, from + count),
                  end = std::clamp(span.end, begin, from + count);
    const int64_t start = rows.row_offset(row, tap / rows.row_taps());
    if (start >= 0 && begin < end) {
      T* const to = image + start + span.first + begin * stride;
      const T* const a = sums + j + begin - from;
      if (beside != nullptr) {
        const T* const b = beside + j + begin - from;
        for (int64_t p = 0; p < end - begin; ++p) {
          to[2 * p] += a[p];
          to[2 * p + 1] += b[p];
        }
      } else {
        for (int64_t p = 0; p < end - begin; ++p) to[p * stride] += a[p];
      }
    }
    j += count;
  }
}

// Writes a tile's sums and bias to the output, from channel |channel| on.
template <typename T>
void put_apart(const Run& run, const Plan<T>& plan, const GemmTile& tile, const T* sums,
               const T* bias, int64_t start) {
  const WindowRows& rows = plan.rows;
  const int64_t taps = plan.geometry.window.taps(), pixels = plan.geometry.window.image_size();
  const int64_t length = rows.row_length(), stride = rows.stride();
  for (int64_t j = 0, count; j < tile.cols; j += count) {
    const int64_t row = (tile.col + j) / length, from = (tile.col + j) % length;
    count = std::min(length - from, tile.cols - j);
    for (int64_t r = 0; r < tile.rows; r += stride) {
      const int64_t channel = (tile.row + r) / taps, tap = (tile.row + r) % taps;
      const int64_t at =
          start + channel * pixels + rows.row_offset(row, tap / stride) + from * stride;
      T* const to = run.output<T>(0) + at;
      const T* const from_sums = sums + r * tile.cols + j;
      const T add = bias[channel];
      if (stride == 2) {
        const T* const beside = from_sums + tile.cols;
        for (int64_t p = 0; p < count; ++p) {
          to[2 * p] = add + from_sums[p];
          to[2 * p + 1] = add + beside[p];
        }
      } else {
        for (int64_t x = 0; x < stride; ++x)
          for (int64_t p = 0; p < count; ++p)
            to[p * stride + x] = add + from_sums[x * tile.cols + p];
      }
      run.apply_epilogue(at, at + count * stride);
    }
  }
}

template <typename T>
Result<Kernel> make_typed(const SnapshotNode& node, StoreFn<T> store) {
  PFRT_ASSIGN(ConvGeometry g, transposed_geometry(node));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  const bool has_bias = node.has_input(2);
  const auto plan = std::make_shared<const Plan<T>>(g, node.input_dtype(0), store == nullptr);
  const int64_t pixels = g.window.image_size();
  const uint64_t sums_bytes =
      static_cast<uint64_t>((plan->gemm.max_tile_elements() + 63) / 64 * 64) * sizeof(T);
  Kernel kernel;
  kernel.flops = g.flops();
  kernel.scratch_bytes = plan->gemm.scratch_bytes() + sums_bytes +
                         (store ? static_cast<uint64_t>(plan->channels * pixels) * sizeof(T) : 0);
  kernel.run = [plan, store, has_bias, pixels, sums_bytes](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t taps = geo.window.taps(), positions = geo.window.position_count();
    const int64_t blocks = (geo.group_out + plan->channels - 1) / plan->channels;
    const LoadFn<T> load = load_fn<T>(plan->dtype);
    const int64_t tasks = plan->apart ? plan->gemm.tiles() : 1;
    run.parallel(geo.batch * geo.groups * blocks * tasks, [&](int64_t task, uint32_t worker) {
      const int64_t i = task / tasks, image = i / blocks, group = image % geo.groups,
                    first = i % blocks * plan->channels;
      const int64_t channels = std::min(plan->channels, geo.group_out - first);
      const int64_t out_start = (image * geo.group_out + first) * pixels;
      T* const scratch = run.scratch<T>(worker);
      T* const sums = scratch + plan->gemm.scratch_bytes() / sizeof(T);
      T* const out = store ? sums + sums_bytes / sizeof(T) : run.output<T>(0) + out_start;
      T bias[kChannels] = {};
      if (has_bias) load(bias, run.input(2), group * geo.group_out + first, 1, channels);
      for (int64_t c = 0; c < channels && !plan->apart && !run.stopped(); ++c)
        std::fill(out + c * pixels, out + (c + 1) * pixels, bias[c]);
      const int64_t weight_row = geo.group_out * taps;
      const StridedSource<T> weights(run.input(1), plan->dtype,
                                     group * geo.group_in * weight_row + first * taps, 1,
                                     weight_row);
      const StridedSource<T> x(run.input(0), plan->dtype, image * geo.group_in * positions, 1,
                               positions);
      const int64_t begin = plan->apart ? task % tasks : 0;
      const int64_t end = plan->apart ? begin + 1 : plan->gemm.tiles();
      for (int64_t t = begin; t < end; ++t) {
        GemmTile tile = plan->gemm.tile(t);
        tile.rows = std::min(tile.rows, channels * taps - tile.row);
        if (tile.rows <= 0) continue;
        if (run.stopped()) return;
        plan->gemm.compute(run, tile, weights, x, sums, tile.cols, scratch);
        if (plan->apart) return put_apart(run, *plan, tile, sums, bias, out_start);
        for (int64_t r = 0, together; r < tile.rows; r += together) {
          const int64_t row = tile.row + r;
          together = plan->pairs && row % 2 == 0 && r + 1 < tile.rows ? 2 : 1;
          const T* const tap = sums + r * tile.cols;
          scatter(plan->rows, row % taps, tap, together == 2 ? tap + tile.cols : nullptr, tile.col,
                  tile.cols, out + row / taps * pixels);
        }
      }
      if (plan->apart) return;
      if (store) store(run.output(0), out_start, out, channels * pixels);
      run.apply_epilogue(out_start, out_start + channels * pixels);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_conv_transpose(const KernelRequest& node) {
  switch (node.input_dtype(0)) {
    case PFRT_DTYPE_FLOAT32:
      return make_typed<float>(node, nullptr);
    case PFRT_DTYPE_FLOAT64:
      return make_typed<double>(node, nullptr);
    default:
      return make_typed<float>(node, store_fn<float>(node.input_dtype(0)));
  }
}

}  // namespace pfrt::cpu
