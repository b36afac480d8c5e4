// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/direct_plan.h"

#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/matmul/transpose.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
// The k summed in a row, which keeps errors small: about so many, and at most.
constexpr int64_t kChain = 64, kMostChain = 80;
// Pairs of integers, whose sums are exact, or of bfloat16, whose errors are larger than those of
// sums.
constexpr int64_t kDotChain = 256;
constexpr int64_t kPass =
    128;  // k of a call, about: so much of a panel stays in the first-level cache
constexpr int64_t kShort =
    25;  // k in all that are one chain; the 27 of a first layer are already too many for its errors
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kLeastWork = 1 << 16;  // multiply-adds of a task

// Whether positions are pixels, so that rows need not be told apart.
bool is_whole(const Window& w) {
  return w.taps() == 1 && ImageBand::in_place(w, {}, true) && w.strides[0] == 1 &&
         w.strides[1] == 1;
}

ConvGeometry flat(ConvGeometry g) {
  for (auto* list : {&g.window.image, &g.window.positions}) *list = {1, (*list)[0] * (*list)[1]};
  return g;
}

DirectChains chains_of(const ChunkOrder& order, DirectElements elements) {
  const int64_t depth = order.depth();
  if (elements != DirectElements::kFloat)
    return DirectChains::of(order.chunks(), depth, std::max<int64_t>(1, kDotChain / depth));
  // First layers have short sums; one chain as long as the sum would show in their errors.
  if (order.by_row && order.chunks() * depth > kShort)
    return DirectChains::of(order.chunks(), depth, 1);
  return DirectChains::of(order.chunks(), depth);
}

ChunkOrder order_of(const ConvGeometry& g, DirectElements elements) {
  const Window& w = g.window;
  const auto of = elements == DirectElements::kBf16Dot ? ChunkOrder::of_pairs : ChunkOrder::of;
  const ChunkOrder order = of(g.group_in, w.kernel[0], w.kernel[1], w.dilations[1]);
  return w.dilations[0] > 1 || w.dilations[1] > 1 ? order.dilated() : order;
}

// Positions [begin, end) of dimension |d| at which a tap sees the image, and the pixel that it sees
// at position 0, which may be outside.
struct Live {
  int64_t begin, end, pixel;

  Live(const Window& w, size_t d, int64_t tap) : pixel(tap * w.dilations[d] - w.pads[d]) {
    const int64_t stride = w.strides[d];
    begin = std::min(w.positions[d], pixel < 0 ? ceil_div(-pixel, stride) : 0);
    end = std::clamp(ceil_div(w.image[d] - pixel, stride), begin, w.positions[d]);
  }
  int64_t count() const { return end - begin; }
};

// Whether so many products are with padding that it is worth leaving them out.
bool often_dead(const Window& w) {
  constexpr double kOften = 0.8;
  double live = 1;
  for (size_t d = 0; d < 2; ++d) {
    int64_t sum = 0;
    for (int64_t tap = 0; tap < w.kernel[d]; ++tap) sum += Live(w, d, tap).count();
    live *= static_cast<double>(sum) / static_cast<double>(w.kernel[d] * w.positions[d]);
  }
  return live < kOften;
}

// The image as a window that sees each pixel once.
Window pixels_of(Window w) {
  w.positions = w.image;
  for (auto* list : {&w.kernel, &w.strides, &w.dilations}) *list = {1, 1};
  for (auto* list : {&w.pads, &w.end_pads}) *list = {0, 0};
  return w;
}

void multiply(const DirectPlan& plan, const DirectTask& task, const float* lines,
              const float* weights, const float* start, float* out, int64_t out_panel) {
  // Rows without a gap between them are treated as one.
  const bool joined =
      plan.image.row_step() == plan.geometry.window.positions[1] * plan.image.step();
  const int64_t width = joined ? plan.positions() : plan.geometry.window.positions[1];
  const int64_t chunks = plan.order.chunks(), depth = plan.order.depth();
  const bool half = plan.microkernel->half_rows() > 0 && task.columns <= kPanel / 2;
  const int64_t most = half ? plan.microkernel->half_rows() : plan.microkernel->rows();
  PanelMicrokernel::Blocks p{};
  p.a_row = plan.image.step();
  p.depth = depth;
  p.b_panel = plan.panel_elements();
  p.c_row = kPanel;
  p.c_panel = out_panel;
  PanelMicrokernel::RowBlocks row_blocks;
  for (int64_t chunk = 0; chunk < chunks; chunk += p.chunks) {
    const int64_t most_chunks = std::min(plan.pass_chunks, chunks - chunk);
    p.chain = std::min(plan.chain_chunks, most_chunks);
    p.chunks = most_chunks - most_chunks % p.chain;
    p.offsets = plan.image.offsets().data() + chunk;
    p.b = weights + chunk * depth * kPanel;
    p.start = chunk == 0 ? start : nullptr;
    int64_t y = task.begin / width, x = task.begin % width;
    p.c = out;
    // Weights of the next pass, or of the next panels, follow.
    p.ahead = p.b + p.chunks * depth * kPanel;
    p.ahead_end = p.ahead + p.chunks * depth * kPanel;
    for (int64_t left = task.end - task.begin, n; left > 0; left -= n, ++y, x = 0) {
      n = std::min(width - x, left);
      if (n != row_blocks.whole) row_blocks = PanelMicrokernel::row_blocks(n, most);
      p.a = lines + y * plan.image.row_step() + x * plan.image.step();
      if (half)
        plan.microkernel->run_half(row_blocks, p);
      else
        plan.microkernel->run(row_blocks, task.panels, p);
    }
  }
}

// Adds the products of each tap at the positions where it sees the image. Products of padding with
// weights that are not finite are NaN, and are added too where |finite| is false.
void multiply_live(const DirectPlan& plan, const DirectTask& task, const float* lines,
                   const float* weights, const float* start, bool finite, float* out,
                   int64_t out_panel) {
  const Window& w = plan.geometry.window;
  const int64_t width = w.positions[1], depth = plan.order.depth();
  const int64_t blocks = static_cast<int64_t>(plan.image.offsets().size());
  const bool half = plan.microkernel->half_rows() > 0 && task.columns <= kPanel / 2;
  const int64_t most = half ? plan.microkernel->half_rows() : plan.microkernel->rows();
  for (int64_t p = 0; p < task.panels; ++p)
    for (int64_t i = 0; i < task.end - task.begin; ++i)
      std::copy_n(start + p * kPanel, kPanel, out + p * out_panel + i * kPanel);
  PanelMicrokernel::Blocks p{};
  p.depth = depth;
  p.b_panel = plan.panel_elements();
  p.c_row = kPanel;
  p.c_panel = out_panel;
  PanelMicrokernel::RowBlocks row_blocks;
  // Multiplies positions [begin, end), counted through all rows.
  const auto run = [&](const float* a, int64_t a_row, int64_t begin, int64_t end) {
    begin = std::max(begin, task.begin), end = std::min(end, task.end);
    if (begin >= end) return;
    if (end - begin != row_blocks.whole)
      row_blocks = PanelMicrokernel::row_blocks(end - begin, most);
    p.a = a;
    p.a_row = a_row;
    p.c = out + (begin - task.begin) * kPanel;
    if (half)
      plan.microkernel->run_half(row_blocks, p);
    else
      plan.microkernel->run(row_blocks, task.panels, p);
  };
  constexpr float kZeros[kPanel] = {};
  constexpr int64_t kMostChunks = 64, kNone[kMostChunks] = {};  // offsets of zeros
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const Live y(w, 0, tap / w.kernel[1]), x(w, 1, tap % w.kernel[1]);
    const int64_t step = w.strides[1] * plan.image.step();
    const int64_t row_step = w.strides[0] * plan.image.row_step();
    const bool joined = x.count() == width && row_step == width * step;
    for (int64_t block = 0; block < blocks; block += p.chunks) {
      const int64_t most_chunks = std::min({plan.pass_chunks, blocks - block, kMostChunks});
      p.chain = std::min(plan.chain_chunks, most_chunks);
      p.chunks = most_chunks - most_chunks % p.chain;
      p.b = weights + (tap * blocks + block) * depth * kPanel;
      const float* const ahead = p.b + p.chunks * depth * kPanel;
      p.ahead = ahead;
      p.ahead_end = ahead + p.chunks * depth * kPanel;
      p.offsets = plan.image.offsets().data() + block;
      const auto pixel = [&](int64_t at_y, int64_t at_x) {
        return lines + at_y * row_step + y.pixel * plan.image.row_step() + at_x * step +
               x.pixel * plan.image.step();
      };
      if (joined) {
        const int64_t begin = std::max(y.begin * width, task.begin);
        run(pixel(0, begin), step, begin, y.end * width);
      } else {
        for (int64_t r = std::max(y.begin, task.begin / width); r < y.end && r * width < task.end;
             ++r) {
          const int64_t begin = std::max(r * width + x.begin, task.begin);
          run(pixel(r, begin - r * width), step, begin, r * width + x.end);
        }
      }
      if (finite) continue;
      p.offsets = kNone;
      for (int64_t r = task.begin / width; r * width < task.end; ++r) {
        const bool live = r >= y.begin && r < y.end;
        run(kZeros, 0, r * width, r * width + (live ? x.begin : width));
        if (live) run(kZeros, 0, r * width + x.end, (r + 1) * width);
      }
    }
  }
}

// A panel of |outs| outputs, whose weights follow each other by channel, then by tap.
void pack_taps(const ChunkOrder& order, const float* from, int64_t outs, float* to) {
  constexpr int64_t kBlock = 64;
  const int64_t taps = order.taps_y * order.taps_x, row = order.channels * taps;
  const int64_t step = (order.k(1, 0) - order.k(0, 0)) * kPanel;
  alignas(64) float lines[kBlock * kPanel] = {};
  float* column = to;
  for (int64_t i = 0, channel = 0, tap = 0; i < row;) {
    const int64_t n = std::min(kBlock, row - i);
    transpose(from + i, row, outs, n, lines, kPanel);
    i += n;
    for (const float* line = lines; line < lines + n * kPanel; line += kPanel) {
      std::copy_n(line, kPanel, column + tap * step);
      if (++tap < taps) continue;
      tap = 0;
      column = to + order.k(0, ++channel) * kPanel;
    }
  }
}

}  // namespace

DirectChains DirectChains::of(int64_t chunks, int64_t depth) {
  const int64_t about = std::max<int64_t>(1, kChain / depth);
  const auto divides = [&](int64_t n) { return chunks % n == 0; };
  for (int64_t off = 0; off <= about / 2; ++off) {
    if (divides(about - off)) return of(chunks, depth, about - off);
    if ((about + off) * depth <= kMostChain && divides(about + off))
      return of(chunks, depth, about + off);
  }
  return of(chunks, depth, about);
}

DirectChains DirectChains::of(int64_t chunks, int64_t depth, int64_t together) {
  const int64_t k = together * depth, most = std::max<int64_t>(1, (kPass + k / 2) / k);
  const int64_t chains = ceil_div(std::max<int64_t>(chunks, 1), together);
  return {together, together * ceil_div(chains, ceil_div(chains, most))};
}

DirectPlan::DirectPlan(const ConvGeometry& g, bool bias, Nchw16cSides sides,
                       const DirectBlocking& wanted, DirectElements type)
    : geometry(sides.input && wanted.row_step == 0 && type != DirectElements::kBf16Dot &&
                       is_whole(g.window)
                   ? flat(g)
                   : g),
      nchw16c(sides),
      blocking(wanted),
      elements(type),
      order(order_of(g, type)),
      microkernel(microkernel_of(type)),
      has_bias(bias),
      live_alone(order.by_tap && blocking.row_step == 0 && geometry.window.image_size() > 0 &&
                 often_dead(geometry.window)),
      band(live_alone ? geometry.window.positions[0] : band_rows()),
      image(live_alone
                ? ImageBand(pixels_of(geometry.window), ChunkOrder::of(geometry.group_in, 1, 1, 1),
                            geometry.window.image[0], nchw16c.input)
                : ImageBand(geometry.window, order, band, nchw16c.input)),
      chain_chunks(chains_of(order, elements).chain),
      pass_chunks(chains_of(order, elements).pass),
      panels(ceil_div(g.group_out, kPanel)) {
  const int64_t tasks = std::max(
      ceil_div(positions(), blocking.task_positions),
      std::min({ceil_div(kWantedTasks, columns()), ceil_div(positions(), 24),
                ceil_div(positions() * panel_elements() * microkernel->panels(), kLeastWork)}));
  task_positions = whole_rows(ceil_div(positions(), tasks));
}

const PanelMicrokernel* DirectPlan::microkernel_of(DirectElements elements) {
  return elements == DirectElements::kBf16Dot ? PanelMicrokernel::get_bf16_dot()
                                              : PanelMicrokernel::get();
}

int64_t DirectPlan::columns() const { return ceil_div(panels, microkernel->panels()); }

int64_t DirectPlan::tasks() const { return ceil_div(positions(), task_positions) * columns(); }

uint64_t DirectPlan::scratch_bytes() const {
  return static_cast<uint64_t>(microkernel->panels() * task_positions * kPanel) * sizeof(float);
}

uint64_t DirectPlan::shared_bytes() const {
  const int64_t tasks = elements == DirectElements::kBf16Dot ? image.tasks() : 0;
  return image.bytes() + static_cast<uint64_t>(ceil_div(tasks, int64_t{2})) * 2 * sizeof(uint16_t);
}

// A call takes positions of one row, so |n| positions are rounded to whole rows where that makes at
// least one.
int64_t DirectPlan::whole_rows(int64_t n) const {
  const int64_t width = geometry.window.positions[1], rows = (n + width / 2) / width;
  if (blocking.row_step > 0)
    return std::max<int64_t>(1, (rows + blocking.row_step / 2) / blocking.row_step) *
           blocking.row_step * width;
  return rows > 0 ? rows * width : n;
}

int64_t DirectPlan::band_rows() const {
  const Window& w = geometry.window;
  const int64_t height = w.positions[0];
  if (ImageBand::in_place(w, order, nchw16c.input)) return height;
  const int64_t most =
      std::max<int64_t>(blocking.band_bytes / ImageBand::bytes_of_row(w, order, nchw16c.input), 2);
  const int64_t rows = ceil_div(height, ceil_div(height, most));
  const int64_t step = std::max<int64_t>(blocking.row_step, 1);
  return ceil_div(rows, step) * step;
}

DirectTask direct_task(const DirectPlan& plan, int64_t column, int64_t begin, int64_t end,
                       int64_t top) {
  const int64_t panel = column * plan.microkernel->panels();
  const int64_t panels = std::min(plan.microkernel->panels(), plan.panels - panel);
  return {panel, panels, std::min(panels * kPanel, plan.geometry.group_out - panel * kPanel),
          begin, end,    top};
}

void direct_sums(const Run& run, const DirectPlan& plan, const DirectTask& task, int64_t image,
                 float* out, int64_t out_panel) {
  const ConvGeometry& g = plan.geometry;
  const int64_t group = image % g.groups;
  const float* const lines = plan.image.in_place()
                                 ? run.input<float>(0) + image * g.group_in * g.window.image_size()
                                 : run.shared<float>();
  const float* const weights =
      run.packed<float>() + (group * plan.panels + task.panel) * plan.panel_elements();
  float bias[PanelMicrokernel::kMostPanels * kPanel] = {};
  if (plan.has_bias)
    std::copy_n(run.input<float>(2) + group * g.group_out + task.panel * kPanel, task.columns,
                bias);
  if (!plan.live_alone) return multiply(plan, task, lines, weights, bias, out, out_panel);
  const float sum = run.packed<float>()[g.groups * plan.panels * plan.panel_elements()];
  multiply_live(plan, task, lines, weights, bias, sum == 0, out, out_panel);
}

void fill_direct_band(const Run& run, const DirectPlan& plan, int64_t image, int64_t top) {
  if (plan.image.in_place()) return;
  const ConvGeometry& g = plan.geometry;
  fill_direct_band(run, plan, run.input<float>(0) + image * g.group_in * g.window.image_size(),
                   top);
}

void fill_direct_band(const Run& run, const DirectPlan& plan, const float* pixels, int64_t top) {
  const bool keep = plan.elements == DirectElements::kBf16Dot;
  run.parallel(plan.image.tasks(), [&](int64_t task, uint32_t) {
    const uint16_t largest = plan.image.fill(task, top, pixels, run.shared<float>());
    if (keep) plan.largest(run)[task] = largest;
  });
}

PackedInput pack_direct_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                                int64_t taps_x) {
  return pack_direct_weights(groups, out, ChunkOrder::of(channels, taps_y, taps_x, 1));
}

PackedInput pack_dilated_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                                 int64_t taps_x) {
  const ChunkOrder order = ChunkOrder::of(channels, taps_y, taps_x, 1).dilated();
  PackedInput packed = pack_direct_weights(groups, out, order);
  packed.recipe = message("dilated/", packed.recipe);
  packed.bytes += sizeof(float);
  packed.pack = [inner = std::move(packed.pack), n = groups * out * channels * taps_y * taps_x,
                 last = packed.bytes / sizeof(float) - 1](const void* source, void* memory) {
    inner(source, memory);
    const auto* const weights = static_cast<const float*>(source);
    static_cast<float*>(memory)[last] =
        std::all_of(weights, weights + n, [](float w) { return std::isfinite(w); }) ? 0.0f : NAN;
  };
  return packed;
}

PackedInput pack_direct_weights(int64_t groups, int64_t out, const ChunkOrder& order) {
  const int64_t channels = order.channels, taps_y = order.taps_y, taps_x = order.taps_x;
  const int64_t panels = ceil_div(out, kPanel);
  const int64_t panel = order.chunks() * order.depth() * kPanel;
  PackedInput packed;
  packed.input = 1;
  packed.recipe =
      message("conv_panels/", groups, "/", out, "x", channels, "x", taps_y, "x", taps_x);
  packed.bytes = static_cast<uint64_t>(groups * panels * panel) * sizeof(float);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* to = static_cast<float*>(memory);
    const int64_t row = channels * taps_y * taps_x;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t p = 0; p < panels; ++p, to += panel) {
        const int64_t outs = std::min(kPanel, out - p * kPanel);
        if (outs < kPanel || channels % order.line != 0) std::fill_n(to, panel, 0.0f);
        if (taps_y * taps_x == 1)
          transpose(from, row, outs, row, to, kPanel);
        else
          pack_taps(order, from, outs, to);
        from += outs * row;
      }
  };
  return packed;
}

}  // namespace pfrt::cpu
