// SPDX-License-Identifier: Apache-2.0
//
// Two-dimensional convolutions of many channels on bfloat16 tiles (matmul/split_product.h): the
// image is split once a run, weights a block of output channels at a time; tiles of the image are
// loaded from where a tap sees them. Sums that tiles get wrong are computed again plainly.
#include <algorithm>
#include <memory>

#include "providers/cpu/jit/tile_product.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_source.h"
#include "providers/cpu/kernels/conv/plane_image.h"
#include "providers/cpu/kernels/matmul/planes.h"
#include "providers/cpu/kernels/matmul/product.h"
#include "providers/cpu/kernels/matmul/split_product.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = TileProduct::kSide, kBlock = TileProduct::kBlock,
                  kChunk = TileProduct::kChunk;
constexpr int64_t kPassChunks = 16;        // summed apart, which keeps errors small
constexpr int64_t kBandBytes = 768 << 10;  // of planes: they stay in the cache
constexpr int64_t kLeastBand = 256;        // positions: weights are split once a band
constexpr int64_t kMostPositions = 512;    // of a task
constexpr int64_t kWantedTasks = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of positions whose part of the image is split at a time.
int64_t band_rows(const ConvGeometry& g) {
  const Window& w = g.window;
  const int64_t height = w.positions[0], width = std::max<int64_t>(w.positions[1], 1);
  const int64_t phases = w.taps() == 1 ? 1 : w.strides[0] * w.strides[1];
  const int64_t row_bytes = 6 * ceil_div(g.group_in, kChunk) * kChunk * width * phases;
  const int64_t rows = std::max(kBandBytes / row_bytes, ceil_div(kLeastBand, width));
  return ceil_div(height, std::max<int64_t>(ceil_div(height, rows), 1));  // bands alike
}

struct Plan {
  ConvGeometry geometry;
  int64_t band;  // rows of positions
  PlaneImage image;
  WindowRows rows;
  Gemm<float> gemm;  // for what tiles get wrong
  bool has_bias;
  int64_t taps, chunks;               // chunks of k in all
  int64_t channel_blocks, task_rows;  // of output channels; rows of positions of a task
  int64_t planes_bytes, sums_stride;  // scratch: planes of weights, a block, sums

  Plan(const ConvGeometry& g, bool bias)
      : geometry(g),
        band(band_rows(g)),
        image(g.window, g.group_in, band),
        rows(g.window),
        gemm(g.group_out, g.window.position_count(), g.depth()),
        has_bias(bias),
        taps(g.window.taps()),
        chunks(static_cast<int64_t>(image.offsets().size()) - 1),
        channel_blocks(ceil_div(g.group_out, kBlock)) {
    int64_t parts = ceil_div(band * image.row_positions(), kMostPositions);
    parts = std::max(parts, std::min(ceil_div(kWantedTasks, channel_blocks), band / 2));
    task_rows = ceil_div(band, std::max<int64_t>(parts, 1));
    sums_stride = ceil_div(task_rows * image.row_positions(), kBlock) * kBlock;
    planes_bytes = plane_bytes(kBlock, kChunk * std::min(chunks, kPassChunks));
  }

  uint64_t scratch_bytes() const {
    const uint64_t own = static_cast<uint64_t>(planes_bytes) +
                         static_cast<uint64_t>(kBlock * (kBlock + sums_stride)) * sizeof(float);
    return std::max(
        {own, gemm.scratch_bytes(), static_cast<uint64_t>(image.line_elements()) * sizeof(float)});
  }
};

// Output channels [first, first + count) at rows [y0, y1) of positions, of a band from |top| on.
struct Task {
  int64_t first, count, y0, y1, top;
};

// Weights as [output channel][tap][channel], channels filled up to whole chunks with zeros.
int64_t packed_channels(int64_t channels) { return ceil_div(channels, kChunk) * kChunk; }

// False where the sums are not to be trusted.
bool multiply(const Plan& plan, const Task& task, const float* weights, int64_t weights_stride,
              const uint8_t* planes, uint8_t* scratch) {
  const TileProduct& product = *TileProduct::of_three_planes();
  float* const block = reinterpret_cast<float*>(scratch + plan.planes_bytes);
  float* const sums = block + kBlock * kBlock;
  const int64_t width = plan.image.row_positions();
  const int64_t positions = (task.y1 - task.y0) * width;
  const int64_t height = task.count > kSide ? kBlock : kSide;
  TileProduct::Spread spread{};
  spread.a = scratch;
  spread.row_bytes = plan.image.row_bytes();
  spread.plane_bytes = plan.image.plane_bytes();
  const TileProduct::Scope scope(product);
  for (int64_t chunk = 0; chunk < plan.chunks; chunk += kPassChunks) {
    spread.chunks = std::min(kPassChunks, plan.chunks - chunk);
    spread.offsets = plan.image.offsets().data() + chunk;
    spread.ldc_bytes = 4 * (chunk == 0 ? plan.sums_stride : kBlock);
    const int64_t k0 = chunk * kChunk;
    if (!split_rows(scratch, height, weights + task.first * weights_stride + k0, weights_stride,
                    task.count, std::min(spread.chunks * kChunk, weights_stride - k0)))
      return false;
    for (int64_t at = 0; at < positions; at += kBlock) {
      spread.b = planes + 4 * ((task.y0 - task.top) * width + at);
      const int64_t side = positions - at > kSide ? kBlock : kSide;
      spread.c = chunk == 0 ? sums + at : block;
      product.run(height / kSide, side / kSide, spread);
      if (chunk > 0) add_block(sums + at, plan.sums_stride, block, kBlock, height, side, false);
    }
  }
  return true;
}

// From rows as wide as the image's to those of the output.
bool store(const Plan& plan, const Task& task, const float* sums, const float* bias, float* out) {
  const int64_t width = plan.image.row_positions(), length = plan.rows.row_length();
  const bool whole = width == length;
  const int64_t rows = whole ? 1 : task.y1 - task.y0;
  const int64_t n = whole ? (task.y1 - task.y0) * length : length;
  for (int64_t c = 0; c < task.count; ++c) {
    const float* from = sums + c * plan.sums_stride;
    float* to = out + (task.first + c) * plan.geometry.window.position_count() + task.y0 * length;
    for (int64_t y = 0; y < rows; ++y, from += width, to += length)
      if (!store_sums(to, from, bias != nullptr ? bias[task.first + c] : 0.0f, n)) return false;
  }
  return true;
}

// |weights| and |bias| are those of the group.
void compute_plainly(const Run& run, const Plan& plan, const Task& task, const float* image,
                     const float* kernels, const float* bias, float* out, float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const int64_t length = plan.rows.row_length(), positions = g.window.position_count();
  const StridedSource<float> weights(kernels, PFRT_DTYPE_FLOAT32, 0, g.depth(), 1);
  const ImageSource<float> columns(plan.rows, g.window.image_size(), image, PFRT_DTYPE_FLOAT32, 0,
                                   0.0f);
  const int64_t end = task.y1 * length, last = task.first + task.count;
  for (int64_t col = task.y0 * length; col < end; col += plan.gemm.tile_cols())
    for (int64_t row = task.first; row < last; row += plan.gemm.tile_rows()) {
      const GemmTile tile{row, std::min(plan.gemm.tile_rows(), last - row), col,
                          std::min(plan.gemm.tile_cols(), end - col)};
      plan.gemm.compute_plainly(run, tile, weights, columns, out + row * positions + col, positions,
                                scratch);
    }
  if (bias == nullptr) return;
  for (int64_t c = task.first; c < last; ++c)
    for (int64_t i = task.y0 * length; i < end; ++i) out[c * positions + i] += bias[c];
}

// |image| counts the groups of an image as images of their own.
void run_task(const Run& run, const Plan& plan, const Task& task, int64_t image, uint8_t* scratch) {
  const ConvGeometry& g = plan.geometry;
  const int64_t positions = g.window.position_count(), length = plan.rows.row_length();
  const float* const pixels = run.input<float>(0) + image * g.group_in * g.window.image_size();
  float* const out = run.output<float>(0) + image * g.group_out * positions;
  const int64_t group = image % g.groups * g.group_out;  // its first channel
  const float* const kernels = run.input<float>(1) + group * g.depth();
  const float* const bias = plan.has_bias ? run.input<float>(2) + group : nullptr;
  const float* const packed = run.packed<float>();
  const int64_t packed_depth = plan.taps * packed_channels(g.group_in);
  const bool done =
      !run.plain() &&
      multiply(plan, task, packed != nullptr ? packed + group * packed_depth : kernels,
               packed != nullptr ? packed_depth : g.depth(), run.shared<uint8_t>(), scratch) &&
      store(plan, task,
            reinterpret_cast<const float*>(scratch + plan.planes_bytes) + kBlock * kBlock, bias,
            out);
  if (!done)
    compute_plainly(run, plan, task, pixels, kernels, bias, out, reinterpret_cast<float*>(scratch));
  for (int64_t c = task.first; c < task.first + task.count; ++c) {
    const int64_t at = (image * g.group_out + c) * positions;
    run.finished(at + task.y0 * length, at + task.y1 * length);
  }
}

}  // namespace

std::string refuse_conv_tiles(const SnapshotNode& node) {
  if (!split_product_usable()) return "the machine, or PFRT_ISA, has no tiles";
  const int32_t rank = node.input_rank(0);
  if (rank != 4) return "tiles are for two spatial dimensions";
  const auto weights = node.input_dims(1);
  if (weights.size() != 4 || SnapshotNode::elements(weights) <= 0 ||
      node.input_constant(1) == nullptr)
    return "tiles are for constant weights";
  const int64_t channels = weights[1];
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] / groups < 12 || 10 * channels < 6 * packed_channels(channels))
    return message("tiles are for many channels, not ", channels, " to ", weights[0]);
  return "";
}

std::optional<PackedInput> pack_conv_tiles(const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  const int64_t out = dims[0], channels = dims[1], taps = dims[2] * dims[3];
  const int64_t width = packed_channels(channels);
  if (taps == 1) return std::nullopt;  // as they lie
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("conv_tiles/", out, "x", channels, "x", taps);
  packed.bytes = static_cast<uint64_t>(out * taps * width) * sizeof(float);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* to = static_cast<float*>(memory);
    for (int64_t o = 0; o < out; ++o, from += channels * taps)
      for (int64_t t = 0; t < taps; ++t, to += width) {
        for (int64_t c = 0; c < channels; ++c) to[c] = from[c * taps + t];
        std::fill(to + channels, to + width, 0.0f);
      }
  };
  return packed;
}

Result<Kernel> make_conv_tiles(const SnapshotNode& node) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{PFRT_DTYPE_FLOAT32}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  const auto plan = std::make_shared<const Plan>(g, node.has_input(2));
  Kernel kernel;
  kernel.flops = g.flops();
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.shared_bytes = plan->image.bytes();
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    if (geo.window.position_count() == 0) return run.stop();
    const int64_t height = geo.window.positions[0];
    for (int64_t image = 0; image < geo.batch * geo.groups; ++image) {
      const float* const pixels =
          run.input<float>(0) + image * geo.group_in * geo.window.image_size();
      for (int64_t top = 0; top < height && !run.stopped(); top += plan->band) {
        if (!run.plain())
          run.parallel(plan->image.parts(), [&](int64_t part, uint32_t worker) {
            plan->image.fill(part, top, pixels, run.shared<uint8_t>(), run.scratch<float>(worker));
          });
        const int64_t end = std::min(top + plan->band, height);
        const int64_t parts = ceil_div(end - top, plan->task_rows);
        run.parallel(parts * plan->channel_blocks, [&](int64_t i, uint32_t worker) {
          const int64_t first = i % plan->channel_blocks * kBlock;
          const int64_t y0 = top + i / plan->channel_blocks * plan->task_rows;
          const Task task{first, std::min(kBlock, geo.group_out - first), y0,
                          std::min(y0 + plan->task_rows, end), top};
          run_task(run, *plan, task, image, run.scratch<uint8_t>(worker));
        });
      }
    }
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
