// SPDX-License-Identifier: Apache-2.0
//
// A direct convolution and the MaxPool of its output in one step, where windows of the pooling do
// not overlap: a task's sums stay in the cache, and maxima alone are written.
#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "providers/cpu/elements/greater.h"
#include "providers/cpu/kernels/conv/bf16_dot.h"
#include "providers/cpu/kernels/conv/direct_plan.h"
#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DirectPlan::kPanel, kLanes = 8;

struct Plan {
  DirectPlan conv;
  Window pool;

  int64_t task_rows() const {
    return conv.task_positions / (conv.geometry.window.positions[1] * pool.strides[0]);
  }
  // A line of maxima for each pooled position, after the sums.
  uint64_t line_bytes() const {
    return static_cast<uint64_t>(pool.positions[1] * kPanel) * sizeof(float);
  }
};

// A row of maxima of 8 of 16 channels. A window covers |rows| rows of lines; its maximum is NaN if
// it holds one.
__attribute__((target("avx2"))) void pool_row(const Window& pool, const float* lines, int64_t rows,
                                              float* out) {
  const int64_t width = pool.image[1];
  for (int64_t x = 0; x < pool.positions[1]; ++x, out += kPanel) {
    const int64_t first = x * pool.strides[1];
    const int64_t taps = std::min(pool.kernel[1], width - first);
    __m256 most = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (int64_t y = 0; y < rows; ++y) {
      const float* at = lines + (y * width + first) * kPanel;
      for (int64_t t = 0; t < taps; ++t, at += kPanel)
        most = greater_or_nan(_mm256_loadu_ps(at), most);
    }
    _mm256_storeu_ps(out, most);
  }
}

// Pooled rows [first, last), all of one band.
void run_task(const Run& run, const Plan& plan, const DirectTask& task, int64_t image,
              int64_t first, int64_t last, float* scratch) {
  const ConvGeometry& g = plan.conv.geometry;
  const int64_t width = g.window.positions[1], height = g.window.positions[0];
  const int64_t pooled_width = plan.pool.positions[1], stride_y = plan.pool.strides[0];
  const int64_t positions = plan.pool.position_count(), stride = plan.conv.task_positions * kPanel;
  bf16_direct_sums(run, plan.conv, task, image, scratch, stride);
  float* const line = scratch + plan.conv.scratch_bytes() / sizeof(float);
  const bool nchw16c = plan.conv.nchw16c.output;
  const int64_t channel = image * g.group_out + task.panel * kPanel;
  for (int64_t p = 0; p < task.panels; ++p) {
    const int64_t channels = std::min(kPanel, task.columns - p * kPanel);
    float* const out = run.output<float>(0) + (channel + p * kPanel) * positions;
    for (int64_t r = first; r < last; ++r) {
      const float* const sums = scratch + p * stride + (r - first) * stride_y * width * kPanel;
      const int64_t rows = std::min(plan.pool.kernel[0], height - r * stride_y);
      float* const to = nchw16c ? out + r * pooled_width * kPanel : line;
      for (int64_t c = 0; c < channels; c += kLanes) pool_row(plan.pool, sums + c, rows, to + c);
      if (!nchw16c)
        reorder_to_planes(out + r * pooled_width, positions, line, channels, pooled_width);
    }
  }
  const int64_t step = nchw16c ? kPanel : 1;
  for (int64_t c = channel; c < channel + task.columns; c += step)
    run.apply_epilogue(c * positions + first * pooled_width * step,
                       c * positions + last * pooled_width * step);
}

pfrt_code run_plan(const Run& run, const Plan& plan) {
  const DirectPlan& conv = plan.conv;
  const ConvGeometry& g = conv.geometry;
  if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_direct");
  const int64_t height = plan.pool.positions[0], width = g.window.positions[1];
  const int64_t stride = plan.pool.strides[0], task_rows = plan.task_rows();
  const int64_t band = conv.image.in_place() ? height : conv.band / stride;
  const int64_t columns = conv.columns();
  for (int64_t image = 0; image < g.batch * g.groups; ++image)
    for (int64_t top = 0; top < height && !run.stopped(); top += band) {
      fill_direct_band(run, conv, image, top * stride);
      const int64_t rows = std::min(band, height - top);
      const int64_t tasks = (rows + task_rows - 1) / task_rows;
      run.parallel(tasks * columns, [&](int64_t i, uint32_t worker) {
        if (run.stopped()) return;
        const int64_t from = i / columns * task_rows, to = std::min(from + task_rows, rows);
        const int64_t end = std::min(to * stride, g.window.positions[0] - top * stride);
        const DirectTask task =
            direct_task(conv, i % columns, from * stride * width, end * width, top * stride);
        run_task(run, plan, task, image, top + from, top + to, run.scratch<float>(worker));
      });
    }
  return run.stop();
}

bool is(const SnapshotNode& node, std::string_view name, int64_t value) {
  return std::ranges::all_of(node.attr_ints(name), [&](int64_t v) { return v == value; });
}

}  // namespace

std::string refuse_conv_direct_pool(const SnapshotNode& conv, const SnapshotNode& pool) {
  if (std::string why = refuse_conv_max_pool(conv, pool); !why.empty()) return why;
  const auto kernel = pool.attr_ints("kernel_shape"), strides = pool.attr_ints("strides");
  const std::string_view pad = pool.attr_string("auto_pad", "NOTSET");
  if (kernel.size() != 2 || strides.size() != 2 || kernel[0] > strides[0] ||
      kernel[1] > strides[1] || !is(pool, "pads", 0) || !is(pool, "dilations", 1) ||
      (pad != "NOTSET" && pad != "VALID"))
    return "conv_direct runs poolings without padding whose windows do not overlap";
  return {};
}

Result<Kernel> make_conv_direct_pool(const SnapshotNode& node, const SnapshotNode& pool,
                                     Nchw16cSides sides, bool bf16) {
  const auto elements = bf16 ? DirectElements::kBf16Dot : DirectElements::kFloat;
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(node));
  PFRT_ASSIGN(PoolGeometry p, pool_geometry(pool));
  Kernel kernel;
  if (p.planes == 0 || p.window.position_count() == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (DirectPlan::microkernel_of(elements) == nullptr)
    return error(Code::kUNSUPPORTED, "PFRT_ISA was lowered after the model was compiled");
  DirectBlocking blocking;
  blocking.row_step = p.window.strides[0];
  kernel.flops = g.flops() + static_cast<double>(p.planes) *
                                 static_cast<double>(p.window.position_count() * p.window.taps());
  const auto plan = std::make_shared<const Plan>(
      Plan{DirectPlan(g, node.has_input(2), sides, blocking, elements), std::move(p.window)});
  kernel.packed_alone = true;
  kernel.scratch_bytes = plan->conv.scratch_bytes() + plan->line_bytes();
  kernel.shared_bytes = plan->conv.shared_bytes();
  kernel.run = [plan](const Run& run) { return run_plan(run, *plan); };
  return kernel;
}

}  // namespace pfrt::cpu
