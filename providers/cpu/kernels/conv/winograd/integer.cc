// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/conv/integer_inputs.h"
#include "providers/cpu/kernels/conv/integer_winograd.h"
#include "providers/cpu/kernels/conv/put_lines.h"
#include "providers/cpu/kernels/conv/winograd/dots.h"
#include "providers/cpu/kernels/conv/winograd/driver.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradDotPlan::kPanel;
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr IntegerInputs kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};
constexpr int64_t kLeastChannels = 32, kMostChannels = 896, kLeastOutputs = 32;
static_assert(9 * 255 * 255 * kMostChannels < 1 << 29);

struct Conv {
  WinogradDotPlan plan;
  IntegerInputs in;
  Parameter x_zero;
  bool has_bias;  // input 8
  bool nchw16c;   // the output

  int64_t channels() const { return plan.geometry.groups * plan.geometry.group_out; }
  // A worker's: sums of a task, then lines of two rows of positions, then their bytes.
  int64_t sum_elements() const { return plan.task_panels() * plan.sums_of_panel(); }
  int64_t line_elements() const { return 4 * plan.tiles_x * kPanel; }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(sum_elements() + line_elements()) * sizeof(int32_t) +
           static_cast<uint64_t>(2 * plan.tiles_x * kPanel);
  }
};

std::string refuse(const KernelRequest& node, const IntegerInputs& in) {
  const DotMicrokernel* const dots = DotMicrokernel::get();
  if (dots == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  if (dots->bytes()) return "bytes are multiplied four at a time";
  const auto dims = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  if (dims.size() != 4 || SnapshotNode::elements(dims) <= 0 || !node.is_constant(in.w) ||
      groups < 1)
    return "the transform is for constant weights of two dimensions";
  if (!weight_zeros(node, in)) return "the transform is for constant zero points of weights";
  if (!has_plain_taps(node, in.w, 3) || dims[1] < kLeastChannels || dims[1] > kMostChannels ||
      dims[0] / groups < kLeastOutputs)
    return "the transform is for 3 x 3 taps of many channels";
  if ((node.sides.input && dims[1] % kPanel != 0) ||
      (node.sides.output && dims[0] / groups % kPanel != 0))
    return "nChw16c is for multiples of 16 channels";
  return "";
}

// The weights of a node that refuse let pass.
WinogradDotTaps taps_of(const SnapshotNode& node, const IntegerInputs& in) {
  const auto dims = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  return {groups,
          dims[0] / groups,
          dims[1],
          node.input_dtype(in.w) == PFRT_DTYPE_INT8,
          *weight_zeros(node, in),
          DotMicrokernel::get()};
}

// Numbers that the sums of each channel begin with: its bias, less x's zero point times the sum of
// its taps.
std::vector<int32_t> starts_of(const Run& run, const Conv& conv, uint32_t zero) {
  const WinogradDotTaps& taps = conv.plan.taps;
  const ConvGeometry& g = conv.plan.geometry;
  const auto* const bias = conv.has_bias ? run.input<uint32_t>(8) : nullptr;
  const int64_t line = taps.panels() * kPanel;
  std::vector<int32_t> starts(static_cast<size_t>(g.groups * line));
  for (int64_t group = 0; group < g.groups; ++group) {
    const int32_t* const sums = taps.sums(run.packed<void>(), group);
    for (int64_t o = 0; o < g.group_out; ++o) {
      const uint32_t begin = bias != nullptr ? bias[group * g.group_out + o] : 0;
      starts[static_cast<size_t>(group * line + o)] =
          static_cast<int32_t>(begin - zero * static_cast<uint32_t>(sums[o]));
    }
  }
  return starts;
}

// Rows [begin, end) of tiles of the band from row |top| on, some panels from |panel| on.
void put_tiles(const Run& run, const Conv& conv, const std::vector<int32_t>& starts, int64_t image,
               int64_t panel, int64_t panels, int64_t top, int64_t begin, int64_t end,
               int32_t* scratch, const PutLines& put) {
  const WinogradDotPlan& plan = conv.plan;
  const ConvGeometry& g = plan.geometry;
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  int32_t* const lines = scratch + conv.sum_elements();
  auto* const bytes = reinterpret_cast<uint8_t*>(lines + conv.line_elements());
  for (int64_t q = 0; q < panels; ++q) {
    const int64_t first = (panel + q) * kPanel, count = std::min(kPanel, g.group_out - first);
    const int32_t* const start =
        starts.data() + image % g.groups * plan.taps.panels() * kPanel + first;
    for (int64_t y = begin; y < end; ++y) {
      plan.transform_sums(scratch + q * plan.sums_of_panel(), y, start, lines);
      const int64_t row = 2 * (top + y);
      for (int64_t i = 0; i < std::min<int64_t>(2, height - row); ++i)
        put(run, {image * g.group_out + first, count, (row + i) * width, width,
                  lines + i * 2 * plan.tiles_x * kPanel, bytes});
    }
    const int64_t from = 2 * (top + begin) * width, to = std::min(2 * (top + end), height) * width;
    apply_epilogue(run, {conv.nchw16c, g.window.position_count()}, image * g.group_out + first,
                   count, from, to - from);
  }
}

pfrt_code run_conv(const Run& run, const Conv& conv, std::string_view name, const PutLines& put) {
  constexpr int64_t kTransformedTogether = 8;  // tiles
  const WinogradDotPlan& plan = conv.plan;
  const ConvGeometry& g = plan.geometry;
  if (run.packed<void>() == nullptr) return fail_unpacked(run, name);
  const uint32_t zero = conv.x_zero.read<uint32_t>(run, 1, 0)[0];
  const auto pad = static_cast<uint8_t>(zero);
  const std::vector<int32_t> starts = starts_of(run, conv, zero);
  auto* const pixels = run.shared<uint8_t>();
  auto* const elements = reinterpret_cast<char*>(pixels + plan.pixel_bytes());
  auto* const tile_starts = reinterpret_cast<int32_t*>(elements + plan.element_bytes());
  const int64_t panels = plan.taps.panels(), task_panels = plan.task_panels();
  const int64_t columns = ceil_div(panels, task_panels);
  for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
    const uint8_t* const from =
        run.input<uint8_t>(conv.in.x) + image * g.group_in * g.window.image_size();
    for (int64_t top = 0; top < plan.tiles_y && !run.stopped(); top += plan.band) {
      plan.image.fill(run, from, 2 * top, pad, pixels);
      const int64_t rows = std::min(plan.band, plan.tiles_y - top);
      run.blocks(rows * plan.tiles_x, kTransformedTogether, [&](int64_t begin, int64_t end) {
        if (!run.stopped()) plan.transform_pixels(pixels, begin, end, elements, tile_starts);
      });
      const int64_t parts = std::clamp<int64_t>(ceil_div(int64_t{run.workers()}, columns), 1, rows);
      const int64_t part = ceil_div(rows, parts);
      run.parallel(ceil_div(rows, part) * columns, [&](int64_t i, uint32_t worker) {
        if (run.stopped()) return;
        const int64_t panel = i % columns * task_panels,
                      count = std::min(task_panels, panels - panel);
        const int64_t begin = i / columns * part, end = std::min(begin + part, rows);
        auto* const scratch = run.scratch<int32_t>(worker);
        plan.multiply(elements, tile_starts, run.packed<void>(), image % g.groups, panel, count,
                      begin * plan.tiles_x, end * plan.tiles_x, scratch);
        put_tiles(run, conv, starts, image, panel, count, top, begin, end, scratch, put);
      });
    }
  }
  return run.stop();
}

Result<std::shared_ptr<const Conv>> make_winograd(const KernelRequest& node,
                                                  const IntegerInputs& in, bool has_bias) {
  PFRT_TRY(need_types(node, {in.x, in.w, in.x_zero, in.w_zero}, kBytes));
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, in.x, in.w));
  if (DotMicrokernel::get() == nullptr || DotMicrokernel::get()->bytes())
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  const WinogradDotTaps taps = taps_of(node, in);
  if (node.packed == nullptr || node.packed->recipe != taps.packed(in.w).recipe)
    return error(Code::kUNSUPPORTED, "the weights are packed for other instructions");
  const WinogradDotPlan plan(g, taps, node.input_dtype(in.x), node.sides.input);
  auto conv = std::make_shared<const Conv>(
      Conv{plan, in, Parameter(node, in.x_zero), has_bias, node.sides.output});
  PFRT_TRY(conv->x_zero.check("X's zero point", 1));
  PFRT_TRY(Parameter(node, in.w_zero).check("W's zero point", conv->channels()));
  return conv;
}

Kernel kernel_of(const Conv& conv, std::string_view name) {
  Kernel kernel;
  kernel.name = name;
  kernel.packed_alone = true;
  kernel.flops = conv.plan.geometry.flops();
  kernel.scratch_bytes = conv.scratch_bytes();
  kernel.shared_bytes = conv.plan.shared_bytes();
  return kernel;
}

}  // namespace

std::string refuse_conv_integer_winograd(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  return refuse(node, kConvInteger);
}

std::optional<PackedInput> pack_conv_integer_winograd(const SnapshotNode& node) {
  return taps_of(node, kConvInteger).packed(kConvInteger.w);
}

Result<Kernel> make_conv_integer_winograd(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Conv> conv, make_winograd(node, kConvInteger, false));
  Kernel kernel = kernel_of(*conv, "conv_integer_winograd");
  const PutLines put = put_sums(conv->plan.geometry.window.position_count(), conv->nchw16c);
  kernel.run = [conv, put](const Run& run) {
    return run_conv(run, *conv, "conv_integer_winograd", put);
  };
  return kernel;
}

std::string refuse_qlinear_conv_winograd(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_conv(node); !why.empty()) return why;
  return refuse(node, kQLinearConv);
}

std::optional<PackedInput> pack_qlinear_conv_winograd(const SnapshotNode& node) {
  return taps_of(node, kQLinearConv).packed(kQLinearConv.w);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_winograd(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Conv> conv,
              make_winograd(node, kQLinearConv, node.has_input(8)));
  PFRT_ASSIGN(const RequantizedConv to_bytes, RequantizedConv::make(node));
  Kernel kernel = kernel_of(*conv, "qlinear_conv_winograd");
  kernel.run = [conv, to_bytes](const Run& run) {
    const RequantizedConv::Scales scales = to_bytes.read(run);
    const PutLines put = put_bytes(scales, conv->channels(),
                                   conv->plan.geometry.window.position_count(), conv->nchw16c);
    return run_conv(run, *conv, "qlinear_conv_winograd", put);
  };
  return kernel;
}

}  // namespace pfrt::cpu
