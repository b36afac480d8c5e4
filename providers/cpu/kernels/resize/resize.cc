// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/resize/resize.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "providers/cpu/elements/complex.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

enum class Loop : uint8_t { kNearest, kWeighted, kVectors };

void run_loop(Loop loop, const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  if (loop == Loop::kNearest) return resize_nearest(run, form, plan);
  if (loop == Loop::kVectors) return resize_vectors(run, form, plan);
  resize_weighted(run, form, plan);
}

Result<ResizePlan> plan_of(Loop loop, const ResizeForm& form, const float* scales,
                           const int64_t* sizes, const void* roi) {
  PFRT_ASSIGN(ResizePlan plan, form.plan(scales, sizes, roi));
  if (loop == Loop::kVectors && !plan.axes.empty() && plan.inner < kWide / 2)
    plan.across = Across::make(plan.axes.back().taps, plan.inner);
  return plan;
}

void copy(const Run& run, int64_t elements, int64_t size) {
  run.blocks(elements, int64_t{1} << 15, [&](int64_t begin, int64_t end) {
    std::memcpy(run.output<char>(0) + begin * size, run.input<char>(0) + begin * size,
                static_cast<size_t>((end - begin) * size));
    run.apply_epilogue(begin, end);
  });
}

Result<Kernel> make_resize(const SnapshotNode& node, Loop loop) {
  PFRT_ASSIGN(ResizeForm made, ResizeForm::make(node));
  Kernel kernel;
  if (made.out_elements() == 0) {
    kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
    return kernel;
  }
  const auto form = std::make_shared<const ResizeForm>(std::move(made));
  const double taps = form->sampling().mode == Resample::kCubic ? 4
                      : loop != Loop::kNearest                  ? 2
                                                                : 0.5;
  kernel.flops = 4 * taps * static_cast<double>(form->out_elements());
  if (loop == Loop::kWeighted) kernel.scratch_bytes = weighted_scratch(*form);
  if (loop == Loop::kVectors) kernel.scratch_bytes = vectors_scratch(*form);
  std::shared_ptr<const ResizePlan> known;
  if (form->constant(node)) {
    PFRT_ASSIGN(
        ResizePlan plan,
        plan_of(loop, *form, static_cast<const float*>(node.input_constant(2)),
                static_cast<const int64_t*>(node.input_constant(3)), node.input_constant(1)));
    known = std::make_shared<const ResizePlan>(std::move(plan));
  }
  kernel.run = [=](const Run& run) -> pfrt_code {
    ResizePlan own;
    if (!known) {
      Result<ResizePlan> plan =
          plan_of(loop, *form, form->needs_scales() ? run.input<float>(2) : nullptr,
                  form->needs_sizes() ? run.input<int64_t>(3) : nullptr,
                  form->needs_roi() ? run.input(1) : nullptr);
      if (!plan.ok()) return run.fail(plan.status().code(), plan.status().message());
      own = plan.take();
    }
    const ResizePlan& plan = known ? *known : own;
    if (plan.axes.empty())
      copy(run, form->out_elements(), static_cast<int64_t>(dtype_size(form->dtype())));
    else
      run_loop(loop, run, *form, plan);
    return run.stop();
  };
  return kernel;
}

std::string refuse_nearest(const KernelRequest& node) {
  const std::string_view mode = node.attr_string("mode", "nearest");
  return mode == "nearest" ? std::string() : message("mode is '", mode, "'");
}
std::string refuse_weighted(const KernelRequest& node) {
  const std::string_view mode = node.attr_string("mode", "nearest");
  return mode == "linear" || mode == "cubic" ? std::string() : message("mode is '", mode, "'");
}

std::string refuse_vectors(const KernelRequest& node) {
  const pfrt_dtype dtype = node.input_dtype(0);
  if (sums_in_double(dtype)) return message("sums of ", dtype_name(dtype), " are not float32");
  return refuse_weighted(node);
}

Result<Kernel> make_nearest(const KernelRequest& node) { return make_resize(node, Loop::kNearest); }
Result<Kernel> make_weighted(const KernelRequest& node) {
  return make_resize(node, Loop::kWeighted);
}
Result<Kernel> make_vectors(const KernelRequest& node) { return make_resize(node, Loop::kVectors); }

constexpr KernelRow kRows[] = {
    with_epilogue(checks_inputs(
        {"", "Resize", kMovable, "resize_nearest_ref", "generic", refuse_nearest, make_nearest})),
    with_epilogue(checks_inputs(
        {"", "Resize", kNumbers, "resize_vectors", "avx2", refuse_vectors, make_vectors})),
    with_epilogue(checks_inputs({"", "Resize", kNumbers, "resize_weighted_ref", "generic",
                                 refuse_weighted, make_weighted})),
    with_epilogue({"", "GridSample", kFloat32, "grid_sample_vectors", "avx2", refuse_grid_sample,
                   make_grid_vectors}),
    with_epilogue({"", "GridSample", kNumbers | kBool | kComplex, "grid_sample_ref", "generic",
                   refuse_grid_sample, make_grid_sample}),
    {"", "AffineGrid", kFloats, "affine_grid_ref", "generic", nullptr, make_affine_grid},
};

}  // namespace

std::span<const KernelRow> resize_kernels() { return kRows; }

}  // namespace pfrt::cpu
