// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes as direct ones (direct_plan.h) of half as many channels, each a pair.
#include <algorithm>
#include <memory>

#include "providers/cpu/kernels/conv/direct_plan.h"
#include "providers/cpu/kernels/conv/int16_dot.h"
#include "providers/cpu/row/ceil_div.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DirectPlan::kPanel;

struct Plan {
  Int16DotConv conv;
  DirectPlan direct;  // of pairs

  uint64_t band_bytes() const { return (direct.image.bytes() + 63) / 64 * 64; }
  uint32_t* planes(const Run& run) const {
    return run.shared<uint32_t>() + band_bytes() / sizeof(uint32_t);
  }
};

pfrt_code run_plan(const Run& run, const Plan& plan, const PutSums::Fn& put) {
  const DirectPlan& direct = plan.direct;
  const ConvGeometry& g = plan.conv.geometry;
  if (run.packed<float>() == nullptr) return fail_unpacked(run, "integer convolution");
  const int32_t zero = plan.conv.read_x_zero(run);
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t columns = direct.columns(), stride = direct.task_positions * kPanel;
  for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
    plan.conv.widen(run, image, zero, plan.planes(run));
    for (int64_t top = 0; top < height && !run.stopped(); top += direct.band) {
      fill_direct_band(run, direct, reinterpret_cast<const float*>(plan.planes(run)), top);
      const int64_t positions = std::min(direct.band, height - top) * width;
      run.parallel(ceil_div(positions, direct.task_positions) * columns,
                   [&](int64_t i, uint32_t worker) {
                     if (run.stopped()) return;
                     const int64_t begin = i / columns * direct.task_positions;
                     const int64_t end = std::min(begin + direct.task_positions, positions);
                     const DirectTask task = direct_task(direct, i % columns, begin, end, top);
                     float* const lines = run.scratch<float>(worker);
                     direct_sums(run, direct, task, image, lines, stride);
                     for (int64_t p = 0; p < task.panels; ++p)
                       put(run, {image * g.group_out + (task.panel + p) * kPanel,
                                 std::min(kPanel, task.columns - p * kPanel), top * width + begin,
                                 end - begin, lines + p * stride, lines + task.panels * stride});
                   });
    }
  }
  return run.stop();
}

}  // namespace

Kernel int16_dot_direct_kernel(const Int16DotConv& conv, PutSums put) {
  const auto plan = std::make_shared<const Plan>(
      Plan{conv, DirectPlan(conv.as_int16_dot(), false, {}, {}, DirectElements::kInt16Dot)});
  Kernel kernel;
  kernel.scratch_bytes =
      plan->direct.scratch_bytes() + static_cast<uint64_t>(plan->direct.task_positions) * put.bytes;
  kernel.shared_bytes = plan->band_bytes() + conv.plane_bytes();
  kernel.run = [plan, put = std::move(put)](const Run& run) {
    return run_plan(run, *plan, put.of_run(run));
  };
  return kernel;
}

}  // namespace pfrt::cpu
