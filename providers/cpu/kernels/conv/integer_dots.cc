// SPDX-License-Identifier: Apache-2.0
//
// A sum of (x - zx) (w - zw), where zx and zw are zero points, has four parts. The microkernel
// computes the sum of x w. The part of zx w is known from the weights, and the sums begin with it.
// The part of x zw takes the sum of the pixels that a position sees, which weights of 1 give, where
// zw is not 0 as weights count; with one zw for all the sums of a position begin with it.
#include "providers/cpu/kernels/conv/integer_dots.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/conv/dot_plan.h"
#include "providers/cpu/kernels/conv/integer_inputs.h"
#include "providers/cpu/kernels/conv/put_lines.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DotConvPlan::kPanel;
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr IntegerInputs kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};
constexpr int64_t kMostDepth = 1 << 23;  // so that sums of weights stay within int32
// With no more, or with the short chunks of few channels, the own products of pixels cost more than
// crosswise multiplications save.
constexpr int64_t kFewOuts = 32, kFewTerms = 32;

// The weights of a node that refuse let pass.
DotWeights weights_of(const SnapshotNode& node, const IntegerInputs& in) {
  const auto dims = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  DotWeights w{};
  w.groups = groups;
  w.outs = dims[0] / groups;
  w.channels = dims.size() == 5 ? dims[1] * dims[2] : dims[1];
  w.taps_y = dims.size() > 3 ? dims[dims.size() - 2] : 1;
  w.taps_x = dims.back();
  const bool dilated =
      std::ranges::any_of(node.attr_ints("dilations"), [](int64_t d) { return d != 1; });
  w.dilation_x = dilated ? 2 : 1;
  w.is_signed = node.input_dtype(in.w) == PFRT_DTYPE_INT8;
  const bool few = w.outs <= kFewOuts || w.channels * w.taps_y * w.taps_x <= kFewTerms ||
                   w.channels < kPanel / 2;
  w.microkernel = few ? DotMicrokernel::plain() : DotMicrokernel::get();
  w.for_tiles = w.microkernel->bytes() && DotTileMicrokernel::get() != nullptr;
  const auto zeros = weight_zeros(node, in);
  const bool one = zeros && zeros->size() == 1;
  if (w.microkernel->bytes())
    w.shift = w.is_signed ? 0 : -128;
  else
    w.shift = one ? -zeros->front() : 0;
  w.ones = !one || zeros->front() + w.shift != 0;
  return w;
}

// The first of three spatial dimensions. A slice of positions is a convolution of two, whose
// channels are those of all slices of the image that it sees, the slices of a channel together.
struct Slices {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0, image = 1, positions = 1;

  // Takes the first dimension away from |g|, which has two from now on.
  static Slices take(ConvGeometry& g) {
    Window& w = g.window;
    if (w.rank() != 3) return {};
    const Slices slices{w.kernel[0], w.strides[0], w.dilations[0],
                        w.pads[0],   w.image[0],   w.positions[0]};
    for (auto* list :
         {&w.image, &w.positions, &w.kernel, &w.strides, &w.dilations, &w.pads, &w.end_pads})
      list->erase(list->begin());
    g.group_in *= slices.kernel;
    return slices;
  }
};

struct Conv {
  DotConvPlan plan;
  IntegerInputs in;
  Parameter x_zero, w_zeros;
  bool has_bias;      // input 8
  bool in_output;     // sums are made in the output, in nChw16c
  bool packs_itself;  // weights that only a run knows
  bool in_slices;
  Slices slices;

  int64_t positions() const { return slices.positions * plan.geometry.window.position_count(); }
  // Bytes of the slices that a slice of positions sees, of a group, with three spatial dimensions.
  int64_t slices_bytes() const {
    return in_slices ? plan.geometry.group_in * plan.geometry.window.image_size() : 0;
  }
  uint64_t weight_bytes() const { return packs_itself ? plan.weights.bytes() : 0; }
  int64_t channels() const { return plan.geometry.groups * plan.geometry.group_out; }
  uint64_t band_bytes() const { return (plan.band_bytes() + 63) / 64 * 64; }
  bool starts_positions() const {
    return plan.weights.ones || plan.weights.microkernel->crosswise();
  }
  // The step's memory holds weights and the band; then, for each position of the band, the number
  // that its sums begin with, and a line where its pixels are summed; then slices.
  uint64_t starts_bytes() const {
    const int64_t each = starts_positions() + (plan.weights.ones ? kPanel : 0);
    return static_cast<uint64_t>(plan.positions() * each) * sizeof(int32_t);
  }
  uint64_t band_at() const { return (weight_bytes() + 63) / 64 * 64; }
  uint64_t starts_at() const { return band_at() + band_bytes(); }
  uint64_t slices_at() const { return starts_at() + starts_bytes(); }
  uint64_t shared_bytes() const { return slices_at() + static_cast<uint64_t>(slices_bytes()); }
  uint64_t scratch_bytes() const {
    return plan.scratch_bytes() + static_cast<uint64_t>(2 * plan.task_positions * kPanel);
  }
};

// The rounding that the microkernel does, where it can.
struct ToBytes {
  const RequantizedConv::Scales* scales;
  DotMicrokernel::Bytes form;
};

// The weights and zero points once a run has begun.
struct Start {
  const void* packed;
  int32_t zero;                // of x, as pixels count
  std::vector<int32_t> zeros;  // of weights, as they count, by channel
  bool one_zero;
  std::vector<int32_t> sums;  // numbers that sums begin with: 16 a panel, panels by group
  const ToBytes* to_bytes;

  const int32_t* channels(const DotWeights& w, int64_t group, int64_t panel) const {
    return sums.data() + (group * w.panels() + panel) * kPanel;
  }
};

Start start_of(const Run& run, const Conv& conv, const ToBytes* to_bytes) {
  const DotWeights& w = conv.plan.weights;
  const ConvGeometry& g = conv.plan.geometry;
  Start start;
  start.to_bytes = to_bytes;
  start.packed = run.packed<void>();
  if (conv.packs_itself) {
    start.packed = run.shared<void>();
    const std::vector<int64_t> places = w.places();
    run.parallel(w.groups * w.panels(), [&](int64_t p, uint32_t) {
      if (!run.stopped())
        w.pack_panel(run.input<uint8_t>(conv.in.w), places, p, run.shared<void>());
    });
  }
  start.zero = static_cast<int32_t>(conv.x_zero.read<uint32_t>(run, 1, 0)[0]) + conv.plan.x_shift();
  const std::vector<uint32_t> zeros = conv.w_zeros.read<uint32_t>(run, conv.channels(), 0);
  start.zeros.resize(zeros.size());
  std::ranges::transform(zeros, start.zeros.begin(),
                         [&](uint32_t zero) { return static_cast<int32_t>(zero) + w.shift; });
  start.one_zero =
      std::ranges::adjacent_find(start.zeros, std::not_equal_to<>()) == start.zeros.end();
  const auto* const bias = conv.has_bias ? run.input<uint32_t>(8) : nullptr;
  const auto depth = static_cast<uint32_t>(g.depth()), zero = static_cast<uint32_t>(start.zero);
  const int64_t line = w.panels() * kPanel;
  start.sums.resize(static_cast<size_t>(g.groups * line));
  for (int64_t group = 0; group < g.groups; ++group) {
    int32_t* const sums = start.sums.data() + group * line;
    const int32_t* const weights = w.sums(start.packed, group);
    for (int64_t o = 0; o < g.group_out; ++o) {
      const int64_t channel = group * g.group_out + o;
      uint32_t sum = bias != nullptr ? bias[channel] : 0;
      sum -= zero * static_cast<uint32_t>(weights[o]);
      sum += depth * zero * static_cast<uint32_t>(start.zeros[static_cast<size_t>(channel)]);
      sums[o] = static_cast<int32_t>(sum);
    }
    if (!w.microkernel->crosswise()) continue;
    const uint32_t* const own = w.own_products(start.packed, group);
    for (int64_t o = 0; o < line; ++o)
      sums[o] = static_cast<int32_t>(static_cast<uint32_t>(sums[o]) - own[o]);
  }
  return start;
}

// lines[i][j] -= sum of line i * zeros[j]
PFRT_AVX2 void correct(uint32_t* lines, const uint32_t* sums, const uint32_t* zeros, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < kPanel; ++j) lines[i * kPanel + j] -= sums[i * kPanel] * zeros[j];
}

// Memory of a band: the numbers that the sums of each position begin with, and the sums of pixels,
// each the first of 16.
struct Positions {
  int32_t *starts, *sums;
};

void start_positions(const Conv& conv, const Start& start, const uint8_t* pixels, int64_t group,
                     int64_t begin, int64_t end, const Positions& out) {
  const DotConvPlan& plan = conv.plan;
  const DotWeights& w = plan.weights;
  plan.start_positions(pixels, begin, end, out.starts);
  if (!w.ones) return;
  plan.sums(pixels, start.packed, group, w.ones_panel(), 1, begin, end,
            {start.channels(w, group, w.ones_panel()), out.starts}, out.sums + begin * kPanel, 0);
  if (!start.one_zero) return;
  for (int64_t i = begin; i < end; ++i)
    out.starts[i] = static_cast<int32_t>(static_cast<uint32_t>(out.starts[i]) -
                                         static_cast<uint32_t>(out.sums[i * kPanel]) *
                                             static_cast<uint32_t>(start.zeros[0]));
}

// The place of a band: its image, counted in groups, its slice of positions and its first row.
struct BandPlace {
  int64_t image, slice, top;
};

// Sums of positions [begin, end) of a band, panels of a task.
void run_task(const Run& run, const Conv& conv, const Start& start, const uint8_t* pixels,
              const Positions& positions, const BandPlace& at, int64_t task_panel, int64_t begin,
              int64_t end, int32_t* scratch, const PutLines& put) {
  const DotConvPlan& plan = conv.plan;
  const ConvGeometry& g = plan.geometry;
  const int64_t image = at.image, group = image % g.groups, panel = task_panel * 2;
  const int64_t panels = std::min<int64_t>(2, plan.out_panels() - panel);
  const int64_t slice = at.slice * g.window.position_count(), plane = conv.positions();
  const int64_t n = end - begin, from = slice + at.top * g.window.positions[1] + begin;
  const int64_t stride = (conv.in_output ? plane : plan.task_positions) * kPanel;
  int32_t* const sums =
      conv.in_output
          ? run.output<int32_t>(0) + (image * g.group_out + panel * kPanel) * plane + from * kPanel
          : scratch;
  const bool corrects = plan.weights.ones && !start.one_zero;
  const bool requantized = start.to_bytes != nullptr && !corrects;
  const bool in_output = plan.nchw16c.output && !conv.in_output;  // bytes
  uint8_t* const bytes =
      in_output
          ? run.output<uint8_t>(0) + (image * g.group_out + panel * kPanel) * plane + from * kPanel
          : reinterpret_cast<uint8_t*>(scratch + 2 * plan.task_positions * kPanel);
  const int64_t byte_stride = (in_output ? plane : plan.task_positions) * kPanel;
  float scales[2 * kPanel] = {};
  DotConvPlan::Bytes target{};
  if (requantized) {
    const int64_t first = panel * kPanel;
    std::copy_n(start.to_bytes->scales->scales.data() + group * g.group_out + first,
                std::min(panels * kPanel, g.group_out - first), scales);
    target = {&start.to_bytes->form, scales, bytes, byte_stride};
  }
  plan.sums(pixels, start.packed, group, panel, panels, begin, end,
            {start.channels(plan.weights, group, panel),
             conv.starts_positions() ? positions.starts : nullptr},
            sums, stride, requantized ? &target : nullptr);
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t first = (panel + p) * kPanel, count = std::min(kPanel, g.group_out - first);
    int32_t* const lines = sums + p * stride;
    if (corrects) {
      uint32_t zeros[kPanel] = {};
      for (int64_t j = 0; j < count; ++j)
        zeros[j] = static_cast<uint32_t>(
            start.zeros[static_cast<size_t>(group * g.group_out + first + j)]);
      correct(reinterpret_cast<uint32_t*>(lines),
              reinterpret_cast<const uint32_t*>(positions.sums + begin * kPanel), zeros, n);
    }
    const int64_t channel = image * g.group_out + first;
    put(run, {channel, count, from, n, requantized ? nullptr : lines, bytes + p * byte_stride});
    apply_epilogue(run, {plan.nchw16c.output, plane}, channel, count, from, n);
  }
}

// The slices of group |image| that slice |slice| of positions sees; |pad| is the zero point.
void gather_slices(const Run& run, const Conv& conv, int64_t image, int64_t slice, uint8_t pad,
                   uint8_t* out) {
  const Slices& s = conv.slices;
  const int64_t size = conv.plan.geometry.window.image_size(),
                channels = conv.plan.geometry.group_in / s.kernel;
  const uint8_t* const from = run.input<uint8_t>(conv.in.x) + image * channels * s.image * size;
  run.parallel(conv.plan.geometry.group_in, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t at = slice * s.stride - s.pad + i % s.kernel * s.dilation;
    if (at < 0 || at >= s.image)
      std::memset(out + i * size, pad, static_cast<size_t>(size));
    else
      std::memcpy(out + i * size, from + (i / s.kernel * s.image + at) * size,
                  static_cast<size_t>(size));
  });
}

// All bands of an image, of group |at.image| and slice |at.slice|.
void run_image(const Run& run, const Conv& conv, const Start& start, const uint8_t* image,
               BandPlace at, uint8_t pad, const PutLines& put) {
  const DotConvPlan& plan = conv.plan;
  const ConvGeometry& g = plan.geometry;
  uint8_t* const band = run.shared<uint8_t>() + conv.band_at();
  auto* const starts = reinterpret_cast<int32_t*>(run.shared<uint8_t>() + conv.starts_at());
  const Positions of_band{starts, starts + plan.positions()};
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t columns = plan.columns();
  const uint8_t* const pixels = plan.in_place ? image : band;
  for (; at.top < height && !run.stopped(); at.top += plan.band) {
    plan.fill(run, image, at.top, pad, band);
    const int64_t positions = std::min(plan.band, height - at.top) * width;
    if (conv.starts_positions())
      run.blocks(positions, plan.task_positions, [&](int64_t begin, int64_t end) {
        if (!run.stopped())
          start_positions(conv, start, pixels, at.image % g.groups, begin, end, of_band);
      });
    run.parallel(ceil_div(positions, plan.task_positions) * columns, [&](int64_t i,
                                                                         uint32_t worker) {
      if (run.stopped()) return;
      const int64_t begin = i / columns * plan.task_positions;
      run_task(run, conv, start, pixels, of_band, at, i % columns, begin,
               std::min(begin + plan.task_positions, positions), run.scratch<int32_t>(worker), put);
    });
  }
}

pfrt_code run_conv(const Run& run, const Conv& conv, std::string_view name, const PutLines& put,
                   const ToBytes* to_bytes) {
  const ConvGeometry& g = conv.plan.geometry;
  if (run.packed<void>() == nullptr && !conv.packs_itself) return fail_unpacked(run, name);
  if (run.stopped()) return run.stop();
  const Start start = start_of(run, conv, to_bytes);
  const auto pad = static_cast<uint8_t>(start.zero - conv.plan.x_shift());
  uint8_t* const slices = run.shared<uint8_t>() + conv.slices_at();
  for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
    if (!conv.in_slices) {
      run_image(run, conv, start,
                run.input<uint8_t>(conv.in.x) + image * g.group_in * g.window.image_size(),
                {image, 0, 0}, pad, put);
      continue;
    }
    for (int64_t slice = 0; slice < conv.slices.positions && !run.stopped(); ++slice) {
      gather_slices(run, conv, image, slice, pad, slices);
      run_image(run, conv, start, slices, {image, slice, 0}, pad, put);
    }
  }
  return run.stop();
}

std::string refuse(const KernelRequest& node, const IntegerInputs& in) {
  if (DotMicrokernel::get() == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  const auto weights = node.input_dims(in.w);
  if (weights.size() < 3 || weights.size() > 5)
    return "panels are for one to three spatial dimensions";
  const int64_t elements = SnapshotNode::elements(weights);
  if (elements <= 0) return "there are no weights";
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] < groups) return message("there are ", groups, " groups");
  if (elements / weights[0] > kMostDepth) return "sums of so many terms are left to the reference";
  if (node.any_nchw16c() && (weights.size() != 4 || !node.is_constant(in.w)))
    return "nChw16c is for images and constant weights";
  if ((node.sides.input && weights[1] % kPanel != 0) ||
      (node.sides.output && weights[0] / groups % kPanel != 0))
    return "nChw16c is for multiples of 16 channels";
  return "";
}

Result<std::shared_ptr<const Conv>> make_conv(const KernelRequest& node, const IntegerInputs& in,
                                              bool has_bias) {
  PFRT_TRY(need_types(node, {in.x, in.w, in.x_zero, in.w_zero}, kBytes));
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, in.x, in.w));
  if (DotMicrokernel::get() == nullptr)
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  const bool in_slices = g.window.rank() == 3;
  const Slices slices = Slices::take(g);
  g.window = two_dimensional(std::move(g.window));
  const DotWeights weights = weights_of(node, in);
  const bool constant = node.is_constant(in.w);
  if (constant && (node.packed == nullptr || node.packed->recipe != weights.packed(in.w).recipe))
    return error(Code::kUNSUPPORTED, "the weights are packed for other instructions");
  const DotConvPlan plan(g, weights, node.input_dtype(in.x), node.sides);
  auto conv = std::make_shared<const Conv>(Conv{
      plan, in, Parameter(node, in.x_zero), Parameter(node, in.w_zero), has_bias,
      node.output_dtype(0) == PFRT_DTYPE_INT32 && node.sides.output, !constant, in_slices, slices});
  PFRT_TRY(conv->x_zero.check("X's zero point", 1));
  PFRT_TRY(conv->w_zeros.check("W's zero point", conv->channels()));
  return conv;
}

Kernel kernel_of(const Conv& conv, std::string_view name) {
  Kernel kernel;
  kernel.name = name;
  kernel.packed_alone = !conv.packs_itself;
  kernel.flops = conv.plan.geometry.flops() * static_cast<double>(conv.slices.positions);
  kernel.scratch_bytes = conv.scratch_bytes();
  kernel.shared_bytes = conv.shared_bytes();
  return kernel;
}

}  // namespace

std::string refuse_conv_integer_dots(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  return refuse(node, kConvInteger);
}

std::optional<PackedInput> pack_conv_integer_dots(const SnapshotNode& node) {
  if (!node.is_constant(kConvInteger.w)) return std::nullopt;
  return weights_of(node, kConvInteger).packed(kConvInteger.w);
}

Result<Kernel> make_conv_integer_dots(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Conv> conv, make_conv(node, kConvInteger, false));
  Kernel kernel =
      kernel_of(*conv, conv->plan.tiles != nullptr ? "conv_integer_tiles" : "conv_integer_dots");
  const PutLines put = put_sums(conv->positions(), conv->plan.nchw16c.output);
  kernel.run = [conv, put](const Run& run) {
    return run_conv(run, *conv, "conv_integer_dots", put, nullptr);
  };
  return kernel;
}

std::string refuse_qlinear_conv_dots(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_conv(node); !why.empty()) return why;
  return refuse(node, kQLinearConv);
}

std::optional<PackedInput> pack_qlinear_conv_dots(const SnapshotNode& node) {
  if (!node.is_constant(kQLinearConv.w)) return std::nullopt;
  return weights_of(node, kQLinearConv).packed(kQLinearConv.w);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_dots(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Conv> conv,
              make_conv(node, kQLinearConv, node.has_input(8)));
  PFRT_ASSIGN(const RequantizedConv to_bytes, RequantizedConv::make(node));
  Kernel kernel =
      kernel_of(*conv, conv->plan.tiles != nullptr ? "qlinear_conv_tiles" : "qlinear_conv_dots");
  kernel.run = [conv, to_bytes](const Run& run) {
    const RequantizedConv::Scales scales = to_bytes.read(run);
    const PutLines put =
        put_bytes(scales, conv->channels(), conv->positions(), conv->plan.nchw16c.output);
    const ToBytes by_microkernel{&scales, {static_cast<int32_t>(scales.zero), scales.is_signed}};
    const bool can = conv->plan.weights.microkernel->requantizes() && scales.below_one;
    return run_conv(run, *conv, "qlinear_conv_dots", put, can ? &by_microkernel : nullptr);
  };
  return kernel;
}

}  // namespace pfrt::cpu
