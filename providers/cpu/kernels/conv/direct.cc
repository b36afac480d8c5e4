// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one or two dimensions in float32 vectors: panels of 16 output channels, packed
// once, by lines of a band of the image (image_band.h). The image is neither gathered nor copied
// but for its padding; in nChw16c a convolution without padding reads it in place.
#include <algorithm>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/bf16_dot.h"
#include "providers/cpu/kernels/conv/direct_plan.h"
#include "providers/cpu/kernels/conv/direct_pointwise.h"
#include "providers/cpu/kernels/matmul/bf16_dot.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DirectPlan::kPanel;
constexpr int64_t kWantedTasks = 16;

struct Plan : DirectPlan {
  NarrowFn narrow;  // to the output's type; null: float32

  Plan(const ConvGeometry& g, pfrt_dtype out, bool bias, Nchw16cSides sides, DirectElements type,
       const DirectBlocking& wanted = {})
      : DirectPlan(g, bias, sides, wanted, type), narrow(narrow_fn(out)) {}

  bool in_output() const { return nchw16c.output && narrow == nullptr; }
  // Sums of a task, and one panel of them as planes that are yet to be rounded.
  uint64_t scratch_bytes() const {
    if (in_output()) return 0;
    const bool turns = narrow != nullptr && !nchw16c.output;
    return DirectPlan::scratch_bytes() +
           (turns ? static_cast<uint64_t>(task_positions * kPanel) * sizeof(float) : 0);
  }
};

// Puts |n| lines of |count| channels to the output, from position |from| on: to planes, or to 16
// channels in nChw16c, which begin at element |start|. |planes| is memory for as many lines.
void put_out(const Run& run, const Plan& plan, const float* lines, int64_t count, int64_t start,
             int64_t from, int64_t n, float* planes) {
  const int64_t positions = plan.geometry.window.position_count();
  if (plan.narrow == nullptr) {
    reorder_to_planes(run.output<float>(0) + start + from, positions, lines, count, n);
  } else if (plan.nchw16c.output) {
    plan.narrow(lines, run.output<uint16_t>(0) + start + from * kPanel, n * kPanel);
  } else {
    reorder_to_planes(planes, n, lines, count, n);
    for (int64_t c = 0; c < count; ++c)
      plan.narrow(planes + c * n, run.output<uint16_t>(0) + start + c * positions + from, n);
  }
}

// |image| numbers the groups of all images: group g of image i is i * groups + g.
void run_task(const Run& run, const Plan& plan, const DirectTask& task, int64_t image,
              float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const Window& w = g.window;
  const int64_t positions = w.position_count(), first = task.panel * kPanel;
  const int64_t from = task.top * w.positions[1] + task.begin, n = task.end - task.begin;
  const int64_t start = (image * g.group_out + first) * positions;
  if (plan.in_output()) {
    bf16_direct_sums(run, plan, task, image, run.output<float>(0) + start + from * kPanel,
                     positions * kPanel);
  } else {
    const int64_t stride = plan.task_positions * kPanel;
    bf16_direct_sums(run, plan, task, image, scratch, stride);
    for (int64_t p = 0; p < task.panels; ++p)
      put_out(run, plan, scratch + p * stride, std::min(kPanel, task.columns - p * kPanel),
              start + p * kPanel * positions, from, n, scratch + task.panels * stride);
  }
  const int64_t step = plan.nchw16c.output ? kPanel : 1;
  for (int64_t c = first; c < first + task.columns; c += step) {
    const int64_t at = (image * g.group_out + c) * positions + from * step;
    run.apply_epilogue(at, at + n * step);
  }
}

Kernel kernel_of(std::shared_ptr<const Plan> made) {
  Kernel kernel;
  kernel.flops = made->geometry.flops();
  kernel.packed_alone = true;
  kernel.scratch_bytes = made->scratch_bytes();
  kernel.shared_bytes = made->shared_bytes();
  kernel.run = [plan = std::move(made)](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_direct");
    const int64_t height = geo.window.positions[0], width = geo.window.positions[1];
    const int64_t columns = plan->columns();
    for (int64_t image = 0; image < geo.batch * geo.groups; ++image) {
      for (int64_t top = 0; top < height && !run.stopped(); top += plan->band) {
        fill_direct_band(run, *plan, image, top);
        const int64_t positions = std::min(plan->band, height - top) * width;
        const int64_t tasks = ceil_div(positions, plan->task_positions);
        run.parallel(tasks * columns, [&](int64_t i, uint32_t worker) {
          if (run.stopped()) return;
          const int64_t column = plan->blocking.by_weights ? i / tasks : i % columns;
          const int64_t begin =
              (plan->blocking.by_weights ? i % tasks : i / columns) * plan->task_positions;
          const DirectTask task = direct_task(
              *plan, column, begin, std::min(begin + plan->task_positions, positions), top);
          run_task(run, *plan, task, image, run.scratch<float>(worker));
        });
      }
    }
    return run.stop();
  };
  return kernel;
}

Parameters parameters_of(const Plan& plan) {
  return {{"band", plan.band},
          {"positions", plan.task_positions},
          {"by_weights", plan.blocking.by_weights}};
}

Alternatives alternatives(bool all, const ConvGeometry& geometry, pfrt_dtype out_type, bool bias,
                          Nchw16cSides sides, DirectElements elements) {
  constexpr int64_t kB = 1 << 10;
  constexpr DirectBlocking kUsual[] = {
      {128 * kB, 256}, {512 * kB, 256},       {1024 * kB, 256},      {256 * kB, 128},
      {256 * kB, 512}, {256 * kB, 256, true}, {256 * kB, 512, true}, {1024 * kB, 128, true},
  };
  std::vector<DirectBlocking> blockings(std::begin(kUsual), std::end(kUsual));
  for (const int64_t kilobytes : {64, 128, 256, 512, 1024, 2048})
    for (const int64_t positions : {48, 96, 128, 192, 256, 384, 512, 1024})
      for (const bool by_weights : {false, true})
        if (all) blockings.push_back({kilobytes * kB, positions, by_weights});
  const Plan plan(geometry, out_type, bias, sides, elements);
  Alternatives out{parameters_of(plan), {}};
  for (const DirectBlocking& blocking : blockings) {
    const auto other =
        std::make_shared<const Plan>(geometry, out_type, bias, sides, elements, blocking);
    if (blocking.by_weights && (other->columns() == 1 || other->tasks() == other->columns()))
      continue;  // the order is the same
    Parameters parameters = parameters_of(*other);
    if (out.lacks(parameters) && enough_tasks(other->tasks(), plan.tasks(), kWantedTasks))
      out.others.push_back({std::move(parameters), kernel_of(other)});
  }
  return out;
}

}  // namespace

std::string refuse_conv_direct(const KernelRequest& node) {
  if (PanelMicrokernel::get() == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  const auto weights = node.input_dims(1);
  if (weights.size() != 3 && weights.size() != 4)
    return "panels are for one or two spatial dimensions";
  if (SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "panels are for constant weights";
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] < groups) return "there are fewer outputs than groups";
  // A few columns of a panel are faster than gathering what each window sees.
  const bool windows = SnapshotNode::elements(weights.subspan(2)) > 1;
  if (!pays(windows || weights[0] / groups >= kPanel / 2))
    return message("panels are for many output channels, not ", weights[0], " in ", groups,
                   " groups");
  return "";
}

std::string refuse_conv_direct_bf16(const KernelRequest& node) {
  if (!takes_bf16_dot(node))
    return "precision is not bf16, or the machine, or PFRT_ISA, has no AVX512-BF16, or tiles";
  std::string why = refuse_conv_direct(node);
  return why.empty() && node.input_dims(1)[1] == 1 ? "one channel makes half a pair" : why;
}

namespace {

std::optional<PackedInput> pack_as(const SnapshotNode& node, DirectElements elements) {
  const auto dims = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1);
  const auto dilations = node.attr_ints("dilations");
  const auto pack = elements == DirectElements::kBf16Dot ? pack_bf16_weights
                    : std::ranges::any_of(dilations, [](int64_t d) { return d > 1; })
                        ? pack_dilated_weights
                        : static_cast<decltype(&pack_bf16_weights)>(pack_direct_weights);
  return packed_from_float32(
      node, pack(groups, dims[0] / groups, dims[1], dims.size() == 4 ? dims[2] : 1, dims.back()));
}

}  // namespace

std::optional<PackedInput> pack_conv_direct(const SnapshotNode& node) {
  return pack_as(node, DirectElements::kFloat);
}
std::optional<PackedInput> pack_conv_direct_bf16(const SnapshotNode& node) {
  return pack_as(node, DirectElements::kBf16Dot);
}

std::string refuse_conv_direct_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  const auto weights = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1);
  if ((sides.input && weights[1] % kPanel != 0) ||
      (sides.output && weights[0] / groups % kPanel != 0))
    return "nChw16c is for multiples of 16 channels";
  return "";
}

namespace {

Result<Kernel> make_as(const SnapshotNode& node, Nchw16cSides sides, DirectElements elements) {
  PFRT_ASSIGN(ConvGeometry g, one_type_conv_geometry(node));
  g.window = along_rows(std::move(g.window));
  Kernel kernel;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (DirectPlan::microkernel_of(elements) == nullptr)
    return error(Code::kUNSUPPORTED, "PFRT_ISA was lowered after the model was compiled");
  const bool bias = node.has_input(2);
  const pfrt_dtype out = node.output_dtype(0);
  const bool on_planes = elements == DirectElements::kFloat && !sides.input && !sides.output &&
                         narrow_fn(out) == nullptr;
  if (on_planes && direct_pointwise_takes(g))
    return in_float32(node, {0, 2}, direct_pointwise_kernel(g, bias), Rounding16Bit::kByKernel);
  kernel = kernel_of(std::make_shared<const Plan>(g, out, bias, sides, elements));
  kernel.alternatives = [g, out, bias, sides, elements](bool all) {
    return alternatives(all, g, out, bias, sides, elements);
  };
  return in_float32(node, {0, 2}, std::move(kernel), Rounding16Bit::kByKernel);
}

}  // namespace

Result<Kernel> make_conv_direct_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make_as(node, sides, DirectElements::kFloat);
}
Result<Kernel> make_conv_direct_bf16_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make_as(node, sides, DirectElements::kBf16Dot);
}

Result<Kernel> make_conv_direct(const KernelRequest& node) {
  return make_conv_direct_nchw16c(node, {});
}
Result<Kernel> make_conv_direct_bf16(const KernelRequest& node) {
  return make_conv_direct_bf16_nchw16c(node, {});
}

}  // namespace pfrt::cpu
