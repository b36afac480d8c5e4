// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose groups have a few channels: the planes of a group are added one after another,
// each as a depthwise convolution would. Nothing is multiplied by zeros of other groups.
#include <algorithm>
#include <memory>
#include <utility>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/depthwise/depthwise.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kMostChannels = 8;
constexpr int64_t kMostChain = 80;  // products of a sum, which keeps errors small
constexpr int64_t kPanel = 16;

struct Plan {
  ConvGeometry geometry;
  std::shared_ptr<const DepthwiseLoop> loop;
  int64_t task, bands;  // planes of a task, bands at a time
  int64_t rows;         // of these bands, at most

  bool apart() const { return loop->pitch() > geometry.window.positions[1]; }
};

// Plane |p| of the output. |aside| holds sums whose rows are no whole vectors.
void plane(const Run& run, const Plan& plan, bool has_bias, int64_t p, float* aside) {
  const ConvGeometry& g = plan.geometry;
  const DepthwiseLoop& loop = *plan.loop;
  const int64_t channel = p % (g.groups * g.group_out), group = p / g.group_out;
  const int64_t length = g.window.positions[1], pitch = loop.pitch(), bands = loop.bands();
  const float* const in = run.input<float>(0) + group * g.group_in * g.window.image_size();
  const float* const weights = run.input<float>(1) + channel * g.depth();
  const float bias = has_bias ? run.input<float>(2)[channel] : 0.0f;
  const int64_t start = p * g.window.position_count();
  float* const out = run.output<float>(0) + start;
  for (int64_t b = 0, end; b < bands && !run.stopped(); b = end) {
    end = std::min(b + plan.bands, bands);
    const int64_t first = loop.first_row(b), last = loop.first_row(end);
    float* const sums = plan.apart() ? aside : out + first * length;
    std::fill_n(sums, (last - first) * pitch, bias);
    loop.run(in, weights, nullptr, sums, b, end, g.group_in);
    for (int64_t r = first; plan.apart() && r < last; ++r)
      std::copy_n(sums + (r - first) * pitch, length, out + r * length);
    run.apply_epilogue(start + first * length, start + last * length);
  }
}

}  // namespace

std::string refuse_conv_grouped(const KernelRequest& node) {
  const auto image = node.input_dims(0), weights = node.input_dims(1);
  const auto is_one = [](int64_t stride) { return stride == 1; };
  const auto known = [](std::span<const int64_t> dims) {
    return std::ranges::all_of(dims, [](int64_t d) { return d > 0; });
  };
  if (isa() < Isa::kAvx2) return "the machine, or PFRT_ISA, has no AVX2";
  if (image.size() != 4 || weights.size() != 4 || !known(image) || !known(weights))
    return "not an image with dimensions that are known";
  const int64_t groups = node.attr_int("group", 1), taps = weights[2] * weights[3];
  if (groups < 1 || weights[1] * taps > kMostChain)
    return message("an output must have ", kMostChain, " weights at most");
  const auto strides = node.attr_ints("strides");
  // With AVX-512 half a panel takes as long as all of it: longer than whole vectors of pixels.
  const bool whole = image[3] >= kVectorChannels && std::ranges::all_of(strides, is_one);
  const bool half = !fitted_to_avx2() && whole && node.is_constant(1);
  const int64_t few = half ? kPanel / 2 : kPanel / 2 - 1;
  const bool grouped = groups > 1 || weights[0] <= few;
  if (!pays(grouped && weights[1] > 1 && weights[1] <= kMostChannels && taps > 1))
    return message("groups must have 2 to ", kMostChannels, " input channels, not ", weights[1],
                   " in ", groups, " groups");
  if (strides.size() == 2 && strides[1] > 2) return "the stride along a row is more than 2";
  if (!pays(!node.is_constant(1) || weights[0] / groups <= few))
    return "panels are faster for so many outputs of a group";
  return "";
}

Result<Kernel> make_conv_grouped(const KernelRequest& node) {
  PFRT_ASSIGN(ConvGeometry g, one_type_conv_geometry(node));
  const int64_t positions = g.window.position_count();
  auto loop = positions > 0 ? depthwise_loop(g.window, false, true) : nullptr;
  if (loop == nullptr) return make_conv(node);
  constexpr int64_t kTask = 1 << 11;  // elements
  const int64_t band = ceil_div(positions, loop->bands());
  const int64_t bands = std::max<int64_t>(1, kNear / band);
  int64_t rows = 0;
  for (int64_t b = 0; b < loop->bands(); b += bands)
    rows = std::max(rows, loop->first_row(b + bands) - loop->first_row(b));
  const auto plan = std::make_shared<const Plan>(
      Plan{g, std::move(loop), std::max<int64_t>(1, kTask / positions), bands, rows});
  Kernel kernel;
  kernel.flops = g.flops();
  if (plan->apart())
    kernel.scratch_bytes = static_cast<uint64_t>(plan->rows * plan->loop->pitch()) * sizeof(float);
  kernel.run = [plan, has_bias = node.has_input(2)](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t planes = geo.batch * geo.groups * geo.group_out;
    run.parallel(ceil_div(planes, plan->task), [&](int64_t i, uint32_t worker) {
      float* const aside = plan->apart() ? run.scratch<float>(worker) : nullptr;
      const int64_t last = std::min((i + 1) * plan->task, planes);
      for (int64_t p = i * plan->task; p < last && !run.stopped(); ++p)
        plane(run, *plan, has_bias, p, aside);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
