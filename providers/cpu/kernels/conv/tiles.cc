// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one or two dimensions on bfloat16 tiles (matmul/split_matmul.h): weights are
// split once, a band of the image once a run; tiles of the image are loaded from where a tap sees
// them. Sums that tiles get wrong are computed again by the reference.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/source_behind.h"
#include "providers/cpu/jit/tile_microkernel.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/split_image.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = TileMicrokernel::kSide, kBlock = TileMicrokernel::kBlock,
                  kChunk = TileMicrokernel::kChunk;
constexpr int64_t kPassChunks =
    16;  // k of a sum before it is added to others, which keeps errors small
constexpr int64_t kBandBytes = 768 << 10;  // of terms: they stay in the cache
constexpr int64_t kLeastBand = 256;        // positions of a band: weights are read once a band
constexpr int64_t kMostPositions = 512;    // of a task
constexpr int64_t kWantedTasks = 8;
constexpr int64_t kReferencePositions = 64;

// Output channels, 16 or 32, of the block that begins at |first|.
int64_t side_of(int64_t outputs, int64_t first) { return outputs - first > kSide ? kBlock : kSide; }
// Packed weights begin with whether they could be split. Then the terms of each group follow, one
// block of output channels after another.
constexpr int64_t kHead = 64;  // bytes
int64_t group_bytes(int terms, const KOrder& order, int64_t outputs) {
  return term_bytes(terms, ceil_div(outputs, kSide) * kSide, order.depth);
}
int64_t packed_bytes(int terms, const KOrder& order, int64_t groups, int64_t outputs) {
  return kHead + groups * group_bytes(terms, order, outputs);
}

struct Plan {
  ConvGeometry geometry;
  KOrder order;
  int terms;
  const TileMicrokernel* microkernel;
  Nchw16cSides nchw16c;
  int64_t band;  // rows of positions; the image under them is split at a time
  SplitImage image;
  bool has_bias;
  int64_t chunks;                     // of k in all
  int64_t channel_blocks, task_rows;  // of output channels; rows of positions of a task
  int64_t sums_stride;                // of scratch

  Plan(const ConvGeometry& g, bool bias, int term_count, Nchw16cSides sides)
      : geometry(g),
        order(
            KOrder::of(g.group_in, g.window.taps(), g.group_out,
                       std::ranges::any_of(g.window.dilations, [](int64_t d) { return d != 1; }))),
        terms(term_count),
        microkernel(TileMicrokernel::of_terms(term_count)),
        nchw16c(sides),
        band(band_rows()),
        image(g.window, g.group_in, order, band, terms, nchw16c.input),
        has_bias(bias),
        chunks(static_cast<int64_t>(image.offsets().size())),
        channel_blocks(ceil_div(g.group_out, kBlock)) {
    int64_t tasks = ceil_div(band * image.row_positions(), kMostPositions);
    tasks = std::max(tasks, std::min(ceil_div(kWantedTasks, channel_blocks), band / 2));
    task_rows = ceil_div(band, std::max<int64_t>(tasks, 1));
    sums_stride = ceil_div(task_rows * image.row_positions(), kBlock) * kBlock;
  }

  uint64_t scratch_bytes() const {
    const int64_t own = kBlock * (kBlock + sums_stride) + kSide * kSide;
    return static_cast<uint64_t>(std::max(own, image.line_elements())) * sizeof(float);
  }

 private:
  int64_t band_rows() const {
    const Window& w = geometry.window;
    const int64_t height = w.positions[0], width = std::max<int64_t>(w.positions[1], 1);
    const int64_t row_bytes = SplitImage::bytes_of_row(w, order, geometry.group_in, terms);
    const int64_t rows = std::max(kBandBytes / row_bytes, ceil_div(kLeastBand, width));
    return ceil_div(height,
                    std::max<int64_t>(ceil_div(height, rows), 1));  // bands of about the same size
  }
};

// A worker's scratch.
struct Scratch {
  float *block, *panel, *sums;  // sums: two times sums_stride lines of 16 channels

  explicit Scratch(float* memory)
      : block(memory), panel(block + kBlock * kBlock), sums(panel + kSide * kSide) {}
};

// Output channels [first, first + count) at rows [y0, y1) of positions of the band from row |top|
// on, and their weights, both split into terms and as float32.
struct Task {
  int64_t first, count, y0, y1, top;
  const uint8_t* terms;
  const float* weights;
};

void multiply(const Plan& plan, const Task& task, const uint8_t* image, const Scratch& scratch) {
  const TileMicrokernel& microkernel = *plan.microkernel;
  const int64_t width = plan.image.row_positions();
  const int64_t positions = (task.y1 - task.y0) * width;
  const int64_t side = side_of(task.count, 0);
  TileMicrokernel::Blocks blocks{};
  blocks.a_row_bytes = plan.image.row_bytes();
  blocks.a_term_bytes = plan.image.layout().term_bytes;
  blocks.c_row_bytes = 4 * kSide;
  blocks.b = task.terms;
  const TileMicrokernel::Scope scope(microkernel);
  for (int64_t chunk = 0; chunk < plan.chunks; chunk += kPassChunks) {
    const bool first = chunk == 0;
    blocks.chunks = std::min(kPassChunks, plan.chunks - chunk);
    blocks.a_chunks = plan.image.offsets().data() + chunk;
    blocks.c_tile_bytes = 4 * kSide * (first ? plan.sums_stride : kBlock);
    // Terms follow each other, also from block to block of output channels.
    const int64_t bytes = term_bytes(plan.terms, side, kChunk * blocks.chunks);
    const uint8_t* const next = static_cast<const uint8_t*>(blocks.b) + bytes;
    int64_t fetched = 0;
    for (int64_t at = 0; at < positions; at += kBlock) {
      blocks.a = image + blocks.a_row_bytes * ((task.y0 - task.top) * width + at);
      const int64_t height = positions - at > kSide ? kBlock : kSide;
      float* const sums = scratch.sums + kSide * at;
      blocks.c = first ? sums : scratch.block;
      blocks.ahead = next + fetched;
      blocks.ahead_step = fetched < bytes ? 64 : 0;
      fetched +=
          TileMicrokernel::bytes_ahead(plan.terms, height / kSide, side / kSide, blocks.chunks);
      microkernel.run(height / kSide, side / kSide, blocks);
      for (int64_t t = 0; !first && t < side / kSide; ++t)
        add_lines(sums + kSide * t * plan.sums_stride, scratch.block + kSide * t * kBlock,
                  kSide * height);
    }
    blocks.b = next;
  }
}

// Computes the sums of multiply again, each tap added by itself. |image| is that of the group.
void multiply_reference(const Plan& plan, const Task& task, const float* image,
                        const Scratch& scratch) {
  const Window& w = plan.geometry.window;
  const int64_t size = w.image_size(), channels = plan.geometry.group_in, taps = w.taps();
  const int64_t pixel = plan.nchw16c.input ? kSide : 1, channel = plan.nchw16c.input ? 1 : size;
  for (int64_t t = 0; t < ceil_div(task.count, kSide); ++t)
    for (int64_t y = task.y0; y < task.y1; ++y) {
      float* const line = scratch.sums + kSide * (t * plan.sums_stride +
                                                  (y - task.y0) * plan.image.row_positions());
      std::fill_n(line, kSide * w.positions[1], 0.0f);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t row = y * w.strides[0] - w.pads[0] + tap / w.kernel[1] * w.dilations[0];
        const int64_t left = tap % w.kernel[1] * w.dilations[1] - w.pads[1];
        if (row < 0 || row >= w.image[0]) continue;
        for (int64_t x0 = 0; x0 < w.positions[1]; x0 += kReferencePositions) {
          int64_t begin = x0, end = std::min(x0 + kReferencePositions, w.positions[1]);
          while (begin < end && begin * w.strides[1] + left < 0) ++begin;
          while (end > begin && (end - 1) * w.strides[1] + left >= w.image[1]) --end;
          std::fill_n(scratch.block, kSide * (end - begin), 0.0f);
          for (int64_t c = 0; c < channels; c += kSide) {
            const int64_t depth = std::min(kSide, channels - c);
            const int64_t outputs = std::min(kSide, task.count - kSide * t);
            std::fill_n(scratch.panel, kSide * kSide, 0.0f);
            for (int64_t k = 0; k < depth; ++k)
              for (int64_t o = 0; o < outputs; ++o)
                scratch.panel[kSide * k + o] =
                    task.weights[((kSide * t + o) * channels + c + k) * taps + tap];
            add_reference_products(
                scratch.block,
                image + c * size + (row * w.image[1] + begin * w.strides[1] + left) * pixel,
                w.strides[1] * pixel, channel, depth, scratch.panel, kSide, end - begin);
          }
          if (begin < end) add_lines(line + kSide * begin, scratch.block, kSide * (end - begin));
        }
      }
    }
}

// Copies from rows with the padding of the image to rows of the output.
bool store(const Plan& plan, const Task& task, const float* sums, const float* bias, float* out) {
  const Window& w = plan.geometry.window;
  const int64_t positions = w.position_count(), length = w.positions[1];
  const bool whole = plan.image.row_positions() == length;
  const int64_t rows = whole ? 1 : task.y1 - task.y0;
  const int64_t n = whole ? (task.y1 - task.y0) * length : length;
  bool right = true;
  for (int64_t t = 0; t < task.count; t += kSide) {
    const int64_t width = std::min(kSide, task.count - t);
    float biases[kSide] = {};
    if (bias != nullptr) std::copy_n(bias + task.first + t, width, biases);
    for (int64_t y = 0; y < rows; ++y) {
      const float* from = sums + t * plan.sums_stride + kSide * y * plan.image.row_positions();
      float* const to = out + (task.first + t) * positions;
      const int64_t at = task.y0 * length + y * length;
      right &= plan.nchw16c.output ? store_lines(to + kSide * at, from, biases, n)
                                   : store_across(to + at, positions, from, biases, width, n);
    }
  }
  return right;
}

// |image| numbers the groups of all images: group g of image i is i * groups + g.
void run_task(const Run& run, const Plan& plan, Task task, int64_t image, bool fit, float* memory) {
  const ConvGeometry& g = plan.geometry;
  const int64_t positions = g.window.position_count(), length = g.window.positions[1];
  const float* const pixels = run.input<float>(0) + image * g.group_in * g.window.image_size();
  float* const out = run.output<float>(0) + image * g.group_out * positions;
  const int64_t group = image % g.groups;
  const float* const bias = plan.has_bias ? run.input<float>(2) + group * g.group_out : nullptr;
  const Scratch scratch(memory);
  const uint8_t* const packed = run.packed<uint8_t>();
  task.terms = packed + kHead + group * group_bytes(plan.terms, plan.order, g.group_out) +
               term_bytes(plan.terms, task.first, plan.order.depth);
  const auto* const weights = reinterpret_cast<const float*>(
      packed + source_behind(packed_bytes(plan.terms, plan.order, g.groups, g.group_out)));
  task.weights = weights + (group * g.group_out + task.first) * g.depth();
  fit = fit && *packed != 0;
  if (fit) multiply(plan, task, run.shared<uint8_t>(), scratch);
  if (!fit || !store(plan, task, scratch.sums, bias, out)) {
    multiply_reference(plan, task, pixels, scratch);
    store(plan, task, scratch.sums, bias, out);
  }
  const int64_t step = plan.nchw16c.output ? kSide : 1;
  for (int64_t c = task.first; c < task.first + task.count; c += step) {
    const int64_t at = (image * g.group_out + c) * positions;
    run.apply_epilogue(at + task.y0 * length * step, at + task.y1 * length * step);
  }
}

bool is_dilated(const SnapshotNode& node) {
  return std::ranges::any_of(node.attr_ints("dilations"), [](int64_t d) { return d != 1; });
}

}  // namespace

std::string refuse_conv_tiles(const KernelRequest& node) {
  if (!split_matmul_usable()) return "the machine, or PFRT_ISA, has no tiles";
  if (is_plain(node.precision())) return "precision ieee takes no bfloat16 tiles";
  // The rank is that of the weights: the image's may not be known yet when the row is chosen and
  // weights are packed.
  const auto weights = node.input_dims(1);
  if (weights.size() != 3 && weights.size() != 4)
    return "tiles are for one or two spatial dimensions";
  if (SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "tiles are for constant weights";
  const int64_t channels = weights[1],
                taps = SnapshotNode::elements(weights) / weights[0] / channels;
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] / groups < 12 || channels * taps < 12)
    return message("tiles are for many channels, not ", channels, " to ", weights[0]);
  const KOrder order = KOrder::of(channels, taps, weights[0] / groups, is_dilated(node));
  if (10 * channels * taps < 3 * order.depth)
    return message("tiles are for chunks of 32 channels, not ", channels);
  return "";
}

std::optional<PackedInput> pack_conv_tiles(const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1), out = dims[0] / groups, channels = dims[1];
  const int64_t taps = SnapshotNode::elements(dims) / dims[0] / channels;
  const KOrder order = KOrder::of(channels, taps, out, is_dilated(node));
  PackedInput packed;
  packed.input = 1;
  const int terms = terms_of(node.precision());
  packed.recipe = message("conv_tiles/", terms, "/", groups, "/", out, "x", channels, "x", taps);
  const int64_t own_bytes = packed_bytes(terms, order, groups, out);
  const int64_t source_bytes = dims[0] * channels * taps * int64_t{sizeof(float)};
  packed.bytes = bytes_with_source(own_bytes, source_bytes);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    std::memcpy(static_cast<uint8_t*>(memory) + source_behind(own_bytes), source,
                static_cast<size_t>(source_bytes));
    uint8_t* const head = static_cast<uint8_t*>(memory);
    uint8_t* to = head + kHead;
    std::vector<float> panel(static_cast<size_t>(order.depth * kBlock));
    bool fit = true;
    for (int64_t i = 0; i < groups; ++i)
      for (int64_t first = 0; first < out; first += kBlock) {
        const int64_t side = side_of(out, first), count = std::min(kBlock, out - first);
        std::ranges::fill(panel, 0.0f);
        for (int64_t o = 0; o < count; ++o, from += channels * taps)
          for (int64_t t = 0; t < taps; ++t)
            for (int64_t c = 0; c < channels; ++c)
              panel[static_cast<size_t>(order.row(t, c) * side + o)] = from[c * taps + t];
        fit &= split_columns(terms, to, side, panel.data(), side, side, order.depth);
        to += term_bytes(terms, side, order.depth);
      }
    std::fill_n(head, kHead, static_cast<uint8_t>(fit));
  };
  return packed;
}

std::string refuse_conv_tiles_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  const auto weights = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1);
  if ((sides.input && weights[1] % kSide != 0) ||
      (sides.output && weights[0] / groups % kSide != 0))
    return "nChw16c is for multiples of 16 channels";
  return "";
}

Result<Kernel> make_conv_tiles_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  PFRT_ASSIGN(ConvGeometry g, one_type_conv_geometry(node));
  g.window = two_dimensional(std::move(g.window));
  Kernel kernel;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  const auto plan =
      std::make_shared<const Plan>(g, node.has_input(2), terms_of(node.precision()), sides);
  if (plan->microkernel == nullptr)
    return error(Code::kUNSUPPORTED, "tiles are not usable any more");
  kernel.flops = g.flops();
  kernel.packed_alone = true;
  kernel.scratch_bytes = plan->scratch_bytes();
  const int64_t fit_bytes = ceil_div(plan->image.tasks(), 64) * 64;
  kernel.shared_bytes = plan->image.bytes() + static_cast<uint64_t>(fit_bytes);
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    if (run.packed<uint8_t>() == nullptr) return fail_unpacked(run, "conv_tiles");
    const int64_t height = geo.window.positions[0];
    uint8_t* const terms = run.shared<uint8_t>();
    uint8_t* const fit = terms + plan->image.bytes();
    for (int64_t image = 0; image < geo.batch * geo.groups; ++image) {
      const float* const pixels =
          run.input<float>(0) + image * geo.group_in * geo.window.image_size();
      for (int64_t top = 0; top < height && !run.stopped(); top += plan->band) {
        run.parallel(plan->image.tasks(), [&](int64_t task, uint32_t worker) {
          fit[task] = plan->image.fill(task, top, pixels, terms, run.scratch<float>(worker));
        });
        const bool all_fit =
            std::all_of(fit, fit + plan->image.tasks(), [](uint8_t f) { return f; });
        const int64_t end = std::min(top + plan->band, height);
        const int64_t tasks = ceil_div(end - top, plan->task_rows);
        run.parallel(tasks * plan->channel_blocks, [&](int64_t i, uint32_t worker) {
          const int64_t first = i % plan->channel_blocks * kBlock;
          const int64_t y0 = top + i / plan->channel_blocks * plan->task_rows;
          const Task task{first,  std::min(kBlock, geo.group_out - first),
                          y0,     std::min(y0 + plan->task_rows, end),
                          top,    nullptr,
                          nullptr};
          run_task(run, *plan, task, image, all_fit, run.scratch<float>(worker));
        });
      }
    }
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_conv_tiles(const KernelRequest& node) {
  return make_conv_tiles_nchw16c(node, {});
}

}  // namespace pfrt::cpu
