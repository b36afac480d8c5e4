// SPDX-License-Identifier: Apache-2.0
//
// Direct convolutions of one tap on planes: a matmul of the weights by pixels. Pixels are packed to
// panels, a block of positions and a pass of channels at a time, and sums go to planes as they are,
// so that neither image is turned to lines of channels. The bits are those of conv_direct.
#include "providers/cpu/kernels/conv/direct_pointwise.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/direct_plan.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kBlock = 16 * kPanel;  // positions of a task, whose pass stays in the cache
constexpr int64_t kWantedTasks = 16;

// Neighbouring positions of one row of the output.
struct Span {
  int64_t pixel, at, count;  // first pixel in the plane, first place in the block
};

struct Plan {
  ConvGeometry geometry;
  const PanelMicrokernel* microkernel;
  bool has_bias;
  // The k of a chain, and of a call of the microkernel: those of conv_direct.
  int64_t chain, pass;
  std::array<int64_t, 8> offsets;  // of chains in the weights
  // Distance of two panels of pixels: an odd number of cache lines, so that their lines are in
  // different sets of the cache.
  int64_t apart;
  int64_t positions, width, stride;  // of all, of a row; from pixel to pixel
  int64_t panels;                    // of output channels of a group
  int64_t blocks, task_panels, column_tasks;

  Plan(const ConvGeometry& g, bool bias)
      : geometry(g),
        microkernel(PanelMicrokernel::get()),
        has_bias(bias),
        chain(DirectChains::of(g.group_in / kPanel, kPanel).chain * kPanel),
        pass(DirectChains::of(g.group_in / kPanel, kPanel).pass * kPanel),
        apart((pass + 1) * kPanel),
        positions(g.window.position_count()),
        width(g.window.positions.back()),
        stride(g.window.strides.back()),
        panels(ceil_div(g.group_out, kPanel)),
        blocks(ceil_div(positions, kBlock)) {
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] = static_cast<int64_t>(i) * chain * kPanel;
    // Each task packs its pixels, which pays for a few panels of weights or more.
    constexpr int64_t kLeastPanels = 8;
    const int64_t others = std::max<int64_t>(1, g.batch * g.groups * blocks);
    column_tasks = std::clamp<int64_t>(ceil_div(kWantedTasks, others), 1,
                                       std::max<int64_t>(1, panels / kLeastPanels));
    task_panels = ceil_div(panels, column_tasks);
    column_tasks = ceil_div(panels, task_panels);
  }
  int64_t block_positions(int64_t block) const {
    return std::min(kBlock, positions - block * kBlock);
  }
  int64_t tasks() const { return geometry.batch * geometry.groups * blocks * column_tasks; }
  // Pixels of a pass, then the sums of a last panel that is not whole.
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(kBlock / kPanel * apart + task_panels * kPanel * kPanel) *
           sizeof(float);
  }
};

struct Task {
  int64_t image, group, panel, panels, block;  // panels of outputs, a block of positions
};

// The pixels of a block, row by row of positions.
class Spans {
 public:
  Spans(const Plan& plan, int64_t block) {
    const Window& w = plan.geometry.window;
    const int64_t first = block * kBlock, count = plan.block_positions(block);
    if (plan.stride == 1 && w.strides[0] == 1) {
      spans_[count_++] = {first, 0, count};
      return;
    }
    for (int64_t at = 0, n; at < count; at += n) {
      const int64_t y = (first + at) / plan.width, x = (first + at) % plan.width;
      n = std::min(plan.width - x, count - at);
      spans_[count_++] = {y * w.strides[0] * w.image.back() + x * plan.stride, at, n};
    }
  }
  size_t size() const { return count_; }
  const Span* begin() const { return spans_; }
  const Span* end() const { return spans_ + count_; }

 private:
  Span spans_[kBlock];
  size_t count_ = 0;
};

// Every other of 2 * |n| - 1 numbers.
PFRT_AVX2 void copy_every_other(const float* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 8 < n; i += 8) {  // reads one number more than it takes
    const __m256 pairs =
        _mm256_shuffle_ps(_mm256_loadu_ps(from + 2 * i), _mm256_loadu_ps(from + 2 * i + 8), 0x88);
    _mm256_storeu_pd(reinterpret_cast<double*>(to + i),
                     _mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
  }
  for (; i < n; ++i) to[i] = from[2 * i];
}

void copy_span(const float* from, int64_t stride, int64_t n, float* to) {
  if (stride == 1)
    std::copy_n(from, n, to);
  else if (stride == 2)
    copy_every_other(from, n, to);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

// Packs |depth| channels of a block's pixels: panels of 16 positions, |plan.apart| apart.
void pack(const Plan& plan, const Spans& spans, const float* planes, int64_t count, int64_t depth,
          float* to) {
  const int64_t size = plan.geometry.window.image_size(), whole = count / kPanel * kPanel;
  const bool in_order = spans.size() == 1 && plan.stride == 1;
  float line[kBlock] = {};
  for (int64_t k = 0; k < depth; ++k, planes += size, to += kPanel) {
    const float* from = planes + spans.begin()->pixel;
    if (!in_order) {
      for (const Span& span : spans)
        copy_span(planes + span.pixel, plan.stride, span.count, line + span.at);
      from = line;
    }
    float* panel = to;
    for (int64_t at = 0; at < whole; at += kPanel, panel += plan.apart)
      std::copy_n(from + at, kPanel, panel);
    if (whole < count) {
      std::copy_n(from + whole, count - whole, panel);
      std::fill(panel + count - whole, panel + kPanel, 0.0f);
    }
  }
}

void run_task(const Run& run, const Plan& plan, const Task& task, float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const PanelMicrokernel& microkernel = *plan.microkernel;
  const int64_t depth = g.group_in, wide = microkernel.packed_panels();
  const int64_t channel = task.group * g.group_out + task.panel * kPanel;
  const int64_t channels = std::min(task.panels * kPanel, g.group_out - task.panel * kPanel);
  const float* const planes =
      run.input<float>(0) + (task.image * g.groups + task.group) * depth * g.window.image_size();
  const float* const weights =
      run.packed<float>() + (task.group * plan.panels + task.panel) * depth * kPanel;
  const int64_t start = (task.image * g.groups * g.group_out + channel) * plan.positions;
  const int64_t first = task.block * kBlock, count = plan.block_positions(task.block);
  float* const out = run.output<float>(0) + start + first;
  float* const rest =
      scratch + kBlock / kPanel * plan.apart;  // sums of the last panel, where it is not whole
  const int64_t whole = count / kPanel, left = count % kPanel;
  const Spans spans(plan, task.block);
  float bias[kPanel * PanelMicrokernel::kMostPanels * kPanel] = {};
  PanelMicrokernel::Blocks p{};
  p.offsets = plan.offsets.data();
  p.a_row = p.chain = 1;
  p.b_panel = plan.apart;
  p.start_row = wide * kPanel;
  for (int64_t k = 0, n; k < depth; k += n) {
    n = std::min(plan.pass, depth - k);
    if (n >= plan.chain) n -= n % plan.chain;
    p.depth = std::min(plan.chain, n);
    p.chunks = n / p.depth;
    pack(plan, spans, planes + k * g.window.image_size(), count, n, scratch);
    for (int64_t c = 0; c < channels && !run.stopped(); c += kPanel) {
      const int64_t rows = std::min(kPanel, channels - c);
      if (k == 0 && plan.has_bias)
        for (int64_t r = 0; r < rows; ++r)
          std::fill_n(bias + r * p.start_row, p.start_row, run.input<float>(2)[channel + c + r]);
      const float* const lines = weights + (c * depth + k * kPanel);
      // Weights of the next panel follow.
      p.ahead = lines + depth * kPanel;
      p.ahead_end = p.ahead + (c + kPanel < channels ? n * kPanel : 0);
      for (int64_t at = 0, panels; at < whole + (left > 0); at += panels) {
        const bool fits = at < whole;
        panels = fits ? std::min(wide, whole - at) : 1;
        p.a = lines;
        p.b = scratch + at * plan.apart;
        p.c = fits ? out + c * plan.positions + at * kPanel : rest + c * kPanel;
        p.c_row = fits ? plan.positions : kPanel;
        p.c_panel = kPanel;
        p.start = k == 0 ? bias : nullptr;
        microkernel.run_packed(rows, panels, p);
      }
    }
  }
  for (int64_t c = 0; c < channels && left > 0; ++c)
    std::copy_n(rest + c * kPanel, left, out + c * plan.positions + whole * kPanel);
  if (count == plan.positions) return run.apply_epilogue(start, start + channels * plan.positions);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t at = start + c * plan.positions + first;
    run.apply_epilogue(at, at + count);
  }
}

}  // namespace

bool direct_pointwise_takes(const ConvGeometry& g) {
  const Window& w = g.window;
  const auto none = [](int64_t pad) { return pad == 0; };
  if (w.taps() != 1 || !std::ranges::all_of(w.pads, none) || g.group_in % kPanel != 0) return false;
  for (size_t i = 0; i < w.rank(); ++i)  // an end pad, or windows beyond the image
    if ((w.positions[i] - 1) * w.strides[i] >= w.image[i]) return false;
  // Small images are turned to lines of channels sooner than packed for every few outputs,
  // where a panel of pixels is not whole and outputs are many.
  constexpr int64_t kLeastPositions = 512, kLeastOfFew = 128, kFewOutputs = 96;
  const int64_t positions = w.position_count();
  const bool gains =
      positions % kPanel == 0 || (positions >= kLeastOfFew && g.group_out <= kFewOutputs);
  return PanelMicrokernel::get() != nullptr && g.group_out >= kPanel &&
         pays(positions >= kLeastPositions || gains);
}

Kernel direct_pointwise_kernel(const ConvGeometry& geometry, bool has_bias) {
  const auto plan = std::make_shared<const Plan>(geometry, has_bias);
  Kernel kernel;
  kernel.flops = geometry.flops();
  kernel.packed_alone = true;
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.run = [plan](const Run& run) -> pfrt_code {
    if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_direct");
    run.parallel(plan->tasks(), [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t column = i % plan->column_tasks, block = i / plan->column_tasks % plan->blocks;
      const int64_t image = i / plan->column_tasks / plan->blocks;
      const int64_t groups = plan->geometry.groups, panel = column * plan->task_panels;
      run_task(run, *plan,
               {image / groups, image % groups, panel,
                std::min(plan->task_panels, plan->panels - panel), block},
               run.scratch<float>(worker));
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
