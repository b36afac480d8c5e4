// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv whose groups have one input channel. A task computes rows of
// positions in 16 output channels; the pixels that they see become lines of 16 channels
// (depthwise_bytes.h), int8 as uint8 of 128 more, with the zero point around the image. Zero points
// of weights are subtracted from them first.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/kernels/conv/depthwise_bytes.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/integer_inputs.h"
#include "providers/cpu/kernels/conv/requantized_conv.h"
#include "providers/cpu/kernels/window/reorder.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"
#include "providers/cpu/row/ceil_div.h"
#include "providers/cpu/row/requantize.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = DepthwiseByteTaps::kChannels;
constexpr int64_t kBandBytes = 24 << 10;  // stays in the first-level cache
constexpr int64_t kMostTaps = 1 << 12;
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr IntegerInputs kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};

int64_t padded(int64_t bytes) { return ceil_div(bytes, int64_t{64}) * 64; }

// Constant weights in blocks of 16 output channels, each with the sums of its channels behind it.
struct PackedTaps {
  int64_t channels, taps_y, taps_x;
  bool quads;

  int64_t weight_bytes() const { return taps_y * DepthwiseByteTaps::row_bytes(taps_x, quads); }
  int64_t block_bytes() const { return weight_bytes() + kChannels * int64_t{sizeof(int32_t)}; }
  int64_t blocks() const { return ceil_div(channels, kChannels); }
  uint64_t bytes() const { return static_cast<uint64_t>(blocks() * block_bytes()); }
  std::string recipe() const {
    return message("conv_depthwise_bytes/", quads ? "quads/" : "pairs/", channels, "x", taps_y, "x",
                   taps_x);
  }
};

struct Plan {
  ConvGeometry geometry;  // two-dimensional
  IntegerInputs in;
  bool x_signed, w_signed, has_bias;
  Nchw16cSides nchw16c;
  Parameter x_zero, w_zeros;
  int64_t rows;              // of positions, of a task
  int64_t band_rows, width;  // pixels that these see
  PackedTaps packed;         // where run.packed() is there
  bool in_output;            // sums are made in the output, in nChw16c

  int64_t channels() const { return geometry.groups * geometry.group_out; }
  int64_t blocks() const { return ceil_div(channels(), kChannels); }
  int64_t taps_y() const { return geometry.window.kernel[0]; }
  int64_t taps_x() const { return geometry.window.kernel[1]; }
  // Scratch: lines, packed weights, sums of a row of positions, bytes of it, weights and rows.
  int64_t line_bytes() const {
    return padded((band_rows * width + DepthwiseByteTaps::kSlack) * kChannels);
  }
  int64_t weight_bytes() const { return taps_y() * DepthwiseByteTaps::row_bytes(taps_x(), false); }
  int64_t sum_bytes() const { return geometry.window.positions[1] * kChannels * 4; }
  int64_t row_bytes() const { return padded(geometry.window.positions[1] * kChannels); }
  int64_t tap_bytes() const { return padded(taps_y() * taps_x() * kChannels * 2); }
  int64_t start_bytes() const { return padded(taps_y() * 8); }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(line_bytes() + weight_bytes() + sum_bytes() + row_bytes() +
                                 tap_bytes() + start_bytes());
  }
};

// What a run knows: zero points, and what to do with the sums of a row.
struct Inputs {
  int32_t zero;  // of x, as pixels count
  std::vector<uint32_t> zeros;
  const uint32_t* bias;
};

// Sums of |n| positions from |from| on, 16 channels from |channel| on, counted over all images, of
// which |count| are there.
struct Row {
  int64_t channel, count, from, n;
  const int32_t* sums;
  uint8_t* scratch;  // n lines of 16 bytes
};

// Memory of a task.
struct Memory {
  uint8_t* lines;
  void* weights;
  int32_t* sums;
  uint8_t* row;
  int16_t* taps;
  const uint8_t** starts;

  Memory(const Plan& plan, char* scratch) {
    const auto next = [&](int64_t bytes) { return std::exchange(scratch, scratch + bytes); };
    lines = reinterpret_cast<uint8_t*>(next(plan.line_bytes()));
    weights = next(plan.weight_bytes());
    sums = reinterpret_cast<int32_t*>(next(plan.sum_bytes()));
    row = reinterpret_cast<uint8_t*>(next(plan.row_bytes()));
    taps = reinterpret_cast<int16_t*>(next(plan.tap_bytes()));
    starts = reinterpret_cast<const uint8_t**>(next(plan.start_bytes()));
  }
};

// Pixels of the rows that positions from row |top| on see, of 16 output channels from |first| on.
void fill_lines(const Plan& plan, const uint8_t* image, int64_t first, int64_t count, int64_t top,
                uint8_t pad, uint8_t* lines) {
  constexpr int64_t kPixels = 128;
  const ConvGeometry& g = plan.geometry;
  const Window& w = g.window;
  const int64_t height = w.image[0], across = w.image[1], size = height * across;
  const int64_t begin = std::clamp<int64_t>(w.pads[1], 0, plan.width);
  const int64_t end = std::clamp<int64_t>(across + w.pads[1], begin, plan.width);
  alignas(16) uint8_t planes[kChannels * kPixels];
  for (int64_t row = 0; row < plan.band_rows; ++row, lines += plan.width * kChannels) {
    const int64_t y = top * w.strides[0] - w.pads[0] + row;
    const bool inside = y >= 0 && y < height;
    const int64_t last = inside ? end : begin;
    std::memset(lines, pad, static_cast<size_t>(begin * kChannels));
    std::memset(lines + last * kChannels, pad,
                static_cast<size_t>((plan.width - last) * kChannels));
    if (!inside) continue;
    const int64_t at = y * across + begin - w.pads[1];
    uint8_t* const to = lines + begin * kChannels;
    if (plan.nchw16c.input) {
      std::memcpy(to, image + first * size + at * kChannels,
                  static_cast<size_t>((last - begin) * kChannels));
    } else if (g.group_out == 1) {
      bytes_to_lines(to, kChannels, kChannels, image + first * size + at, size, count,
                     last - begin);
    } else {
      for (int64_t x = 0; x < last - begin; x += kPixels) {
        const int64_t n = std::min(kPixels, last - begin - x);
        for (int64_t c = 0; c < count; ++c)
          std::memcpy(planes + c * kPixels, image + (first + c) / g.group_out * size + at + x,
                      static_cast<size_t>(n));
        bytes_to_lines(to + x * kChannels, kChannels, kChannels, planes, kPixels, count, n);
      }
    }
    if (plan.x_signed)
      for (int64_t i = 0; i < (last - begin) * kChannels; ++i) to[i] ^= 0x80;
  }
}

// Widens the weights of 16 output channels from |first| on, of which |count| are there, less their
// zero points, and sums them by channel. Whether all are int8.
template <typename Zero>
bool widen_taps(const uint8_t* weights, bool is_signed, int64_t taps, int64_t first, int64_t count,
                Zero&& zero_of, int16_t* out, int32_t* sums) {
  bool small = true;
  std::fill_n(out, taps * kChannels, int16_t{0});
  std::fill_n(sums, kChannels, 0);
  for (int64_t c = 0; c < count; ++c) {
    const uint8_t* const from = weights + (first + c) * taps;
    const int32_t zero = zero_of(first + c);
    for (int64_t t = 0; t < taps; ++t) {
      const int32_t weight =
          (is_signed ? int32_t{static_cast<int8_t>(from[t])} : int32_t{from[t]}) - zero;
      small &= weight >= -128 && weight <= 127;
      sums[c] += weight;
      out[t * kChannels + c] = static_cast<int16_t>(weight);
    }
  }
  return small;
}

// Weights as a task reads them, and what sums begin with; whether four are multiplied at once.
bool prepare(const Run& run, const Plan& plan, const Inputs& inputs, int64_t first, int64_t count,
             const Memory& memory, const void*& weights, int32_t* start) {
  bool quads = plan.packed.quads;
  int32_t own[kChannels];
  const int32_t* sums = own;
  if (const char* const packed = run.packed<char>()) {
    weights = packed + first / kChannels * plan.packed.block_bytes();
    sums = reinterpret_cast<const int32_t*>(static_cast<const char*>(weights) +
                                            plan.packed.weight_bytes());
  } else {
    const bool small = widen_taps(
        run.input<uint8_t>(plan.in.w), plan.w_signed, plan.geometry.window.taps(), first, count,
        [&](int64_t c) { return static_cast<int32_t>(inputs.zeros[static_cast<size_t>(c)]); },
        memory.taps, own);
    quads = small && DepthwiseByteTaps::has_quads();
    DepthwiseByteTaps::pack(memory.taps, plan.taps_y(), plan.taps_x(), quads, memory.weights);
    weights = memory.weights;
  }
  for (int64_t c = 0; c < count; ++c) {
    const uint32_t bias = inputs.bias == nullptr ? 0 : inputs.bias[first + c];
    start[c] = static_cast<int32_t>(bias - static_cast<uint32_t>(inputs.zero) *
                                               static_cast<uint32_t>(sums[c]));
  }
  return quads;
}

template <typename Put>
pfrt_code run_plan(const Run& run, const Plan& plan, Put&& put) {
  const ConvGeometry& g = plan.geometry;
  const Window& w = g.window;
  const int32_t shift = plan.x_signed ? 128 : 0;
  Inputs inputs{static_cast<int32_t>(plan.x_zero.read<uint32_t>(run, 1, 0)[0]) + shift,
                plan.w_zeros.read<uint32_t>(run, plan.channels(), 0),
                plan.has_bias ? run.input<uint32_t>(8) : nullptr};
  const int64_t height = w.positions[0], across = w.positions[1];
  if (g.batch == 0 || height * across == 0) return run.stop();
  const int64_t tasks = ceil_div(height, plan.rows), blocks = plan.blocks();
  const OutputLayout layout{plan.nchw16c.output, height * across};
  run.parallel(g.batch * blocks * tasks, [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    const int64_t image = i / tasks / blocks, first = i / tasks % blocks * kChannels;
    const int64_t top = i % tasks * plan.rows;
    const int64_t count = std::min(kChannels, plan.channels() - first);
    const Memory memory(plan, run.scratch<char>(worker));
    int32_t start[kChannels] = {};
    const void* weights = nullptr;
    const bool quads = prepare(run, plan, inputs, first, count, memory, weights, start);
    fill_lines(plan, run.input<uint8_t>(plan.in.x) + image * g.groups * w.image_size(), first,
               count, top, static_cast<uint8_t>(inputs.zero), memory.lines);
    const int64_t channel = image * plan.channels() + first;
    const int64_t rows = std::min(plan.rows, height - top);
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t t = 0; t < plan.taps_y(); ++t)
        memory.starts[t] =
            memory.lines + (y * w.strides[0] + t * w.dilations[0]) * plan.width * kChannels;
      const int64_t from = (top + y) * across;
      int32_t* const sums =
          plan.in_output ? run.output<int32_t>(0) + channel * height * across + from * kChannels
                         : memory.sums;
      depthwise_byte_sums(
          {memory.starts, plan.taps_y(), plan.taps_x(), w.strides[1], weights, start}, quads,
          across, sums);
      put(Row{channel, count, from, across, sums, memory.row});
      // Lines are still in the first-level cache.
      if (layout.nchw16c) apply_epilogue(run, layout, channel, count, from, across);
    }
    if (!layout.nchw16c) apply_epilogue(run, layout, channel, count, top * across, rows * across);
  });
  return run.stop();
}

std::string refuse(const KernelRequest& node, const IntegerInputs& in) {
  const auto weights = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  if ((weights.size() != 3 && weights.size() != 4) || weights[1] != 1 || groups < 2 ||
      weights[0] < groups || weights[0] > 4 * groups)
    return "not depthwise: groups must have one input channel and at most four output channels";
  const int64_t taps = SnapshotNode::elements(weights.subspan(2));
  if (taps < 1 || taps > kMostTaps) return "lines are for 1 to 4096 taps";
  // Taps of a row are neighbours.
  const auto dilations = node.attr_ints("dilations");
  if (!dilations.empty() && dilations.back() != 1 && weights.back() != 1)
    return "lines are for windows without dilation along the row";
  if (node.any_nchw16c() && (weights[0] != groups || groups % kChannels != 0))
    return "nChw16c is for multiples of 16 channels, one output each";
  return "";
}

// The weights of a node that refuse let pass; |quads| as its constants allow.
PackedTaps packed_taps(const SnapshotNode& node, const IntegerInputs& in) {
  const auto dims = node.input_dims(in.w);
  PackedTaps taps{dims[0], dims.size() == 4 ? dims[2] : 1, dims.back(), false};
  const auto* const weights = static_cast<const uint8_t*>(node.input_constant(in.w));
  const auto zeros = weight_zeros(node, in);
  if (weights == nullptr || !zeros || !DepthwiseByteTaps::has_quads()) return taps;
  taps.quads = true;
  const bool is_signed = node.input_dtype(in.w) == PFRT_DTYPE_INT8;
  const int64_t each = taps.taps_y * taps.taps_x;
  for (int64_t i = 0; i < taps.channels * each && taps.quads; ++i) {
    const int32_t value =
        is_signed ? int32_t{static_cast<int8_t>(weights[i])} : int32_t{weights[i]};
    const int32_t weight = value - (*zeros)[static_cast<size_t>(i / each) % zeros->size()];
    taps.quads = weight >= -128 && weight <= 127;
  }
  return taps;
}

std::optional<PackedInput> pack(const SnapshotNode& node, const IntegerInputs& in) {
  const auto zeros = weight_zeros(node, in);
  if (!node.is_constant(in.w) || !zeros) return std::nullopt;
  const PackedTaps taps = packed_taps(node, in);
  const bool is_signed = node.input_dtype(in.w) == PFRT_DTYPE_INT8;
  PackedInput packed;
  packed.input = in.w;
  packed.recipe = message(taps.recipe(), "/", dtype_name(node.input_dtype(in.w)));
  for (const int32_t zero : *zeros) packed.recipe += message("/", zero);
  packed.bytes = taps.bytes();
  packed.pack = [=, all = *zeros](const void* source, void* out) {
    const int64_t each = taps.taps_y * taps.taps_x;
    std::vector<int16_t> wide(static_cast<size_t>(each * kChannels));
    auto* to = static_cast<char*>(out);
    for (int64_t first = 0; first < taps.channels; first += kChannels, to += taps.block_bytes()) {
      widen_taps(
          static_cast<const uint8_t*>(source), is_signed, each, first,
          std::min(kChannels, taps.channels - first),
          [&](int64_t c) { return all[static_cast<size_t>(c) % all.size()]; }, wide.data(),
          reinterpret_cast<int32_t*>(to + taps.weight_bytes()));
      DepthwiseByteTaps::pack(wide.data(), taps.taps_y, taps.taps_x, taps.quads, to);
    }
  };
  return packed;
}

Result<std::shared_ptr<const Plan>> make_plan(const KernelRequest& node, const IntegerInputs& in,
                                              bool has_bias) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, in.x, in.w));
  PFRT_TRY(need_types(node, {in.x, in.w, in.x_zero, in.w_zero}, kBytes));
  g.window = two_dimensional(std::move(g.window));
  Plan plan{std::move(g),
            in,
            node.input_dtype(in.x) == PFRT_DTYPE_INT8,
            node.input_dtype(in.w) == PFRT_DTYPE_INT8,
            has_bias,
            node.sides,
            Parameter(node, in.x_zero),
            Parameter(node, in.w_zero),
            1,
            0,
            0,
            packed_taps(node, in),
            node.output_dtype(0) == PFRT_DTYPE_INT32 && node.sides.output};
  const Window& w = plan.geometry.window;
  plan.width = (std::max<int64_t>(w.positions[1], 1) - 1) * w.strides[1] +
               (w.kernel[1] - 1) * w.dilations[1] + 1;
  const int64_t window_rows = (w.kernel[0] - 1) * w.dilations[0] + 1;
  const int64_t fit = kBandBytes / (plan.width * kChannels) - window_rows;
  plan.rows = std::clamp<int64_t>(fit / w.strides[0] + 1, 1, std::max<int64_t>(w.positions[0], 1));
  plan.rows = ceil_div(std::max<int64_t>(w.positions[0], 1),
                       ceil_div(std::max<int64_t>(w.positions[0], 1), plan.rows));
  plan.band_rows = (plan.rows - 1) * w.strides[0] + window_rows;
  PFRT_TRY(plan.x_zero.check("X's zero point", 1));
  PFRT_TRY(plan.w_zeros.check("W's zero point", plan.channels()));
  if (node.packed != nullptr && !node.packed->recipe.starts_with(plan.packed.recipe()))
    return error(Code::kUNSUPPORTED, "the weights are packed for other instructions");
  return std::make_shared<const Plan>(std::move(plan));
}

Kernel kernel_of(const KernelRequest& node, const Plan& plan) {
  Kernel kernel;
  kernel.packed_alone = node.packed != nullptr;
  kernel.flops = plan.geometry.flops();
  kernel.scratch_bytes = plan.scratch_bytes();
  return kernel;
}

}  // namespace

std::string refuse_conv_integer_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  return refuse(node, kConvInteger);
}

std::optional<PackedInput> pack_conv_integer_depthwise(const SnapshotNode& node) {
  return pack(node, kConvInteger);
}

Result<Kernel> make_conv_integer_depthwise(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(node, kConvInteger, false));
  Kernel kernel = kernel_of(node, *plan);
  kernel.run = [plan](const Run& run) {
    const int64_t positions = plan->geometry.window.position_count();
    const bool vectors = DotMicrokernel::get() != nullptr;
    return run_plan(run, *plan, [&](const Row& row) {
      auto* const to = run.output<int32_t>(0) + row.channel * positions + row.from;
      if (plan->in_output) return;
      if (vectors)
        return reorder_to_planes(reinterpret_cast<float*>(to), positions,
                                 reinterpret_cast<const float*>(row.sums), row.count, row.n);
      for (int64_t c = 0; c < row.count; ++c)
        for (int64_t p = 0; p < row.n; ++p) to[c * positions + p] = row.sums[p * kChannels + c];
    });
  };
  return kernel;
}

std::string refuse_qlinear_conv_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_conv(node); !why.empty()) return why;
  return refuse(node, kQLinearConv);
}

std::optional<PackedInput> pack_qlinear_conv_depthwise(const SnapshotNode& node) {
  return pack(node, kQLinearConv);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_depthwise(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan,
              make_plan(node, kQLinearConv, node.has_input(8)));
  PFRT_ASSIGN(const RequantizedConv to_bytes, RequantizedConv::make(node));
  Kernel kernel = kernel_of(node, *plan);
  kernel.run = [plan, to_bytes](const Run& run) {
    const RequantizedConv::Scales scales = to_bytes.read(run);
    const int64_t positions = plan->geometry.window.position_count();
    return run_plan(run, *plan, [&](const Row& row) {
      auto* const out = run.output<uint8_t>(0) + row.channel * positions;
      uint8_t* const lines = plan->nchw16c.output ? out + row.from * kChannels : row.scratch;
      scales.lines(row.sums, row.channel % plan->channels(), row.count, row.n, lines);
      if (!plan->nchw16c.output)
        bytes_to_planes(out + row.from, positions, lines, row.count, row.n);
    });
  };
  return kernel;
}

}  // namespace pfrt::cpu
