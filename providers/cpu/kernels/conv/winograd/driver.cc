// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/winograd/driver.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradPlan::kPanel;
constexpr int64_t kMostSide = 6;
constexpr int64_t kLeastTiles = 56;  // of a band: weights are read once a band
constexpr int64_t kTaskTiles = 64;   // put to the output by a task, where rows are short

// An image of lines of 16 channels, [chunk][height][width][16]: one in nChw16c, or the padded lines
// of a band.
struct Lines {
  const float* pixels;
  int64_t height, width;
  int64_t row, column;  // position of the band's first tile; outside are zeros
};

// A band at work, of rows of tiles.
struct Band {
  int64_t image, rows;
  Lines in;
  float *pixels, *sums;  // transformed
};

// Copies the pixels of a tile from (row, column) on; those outside are left alone.
void copy_inside(const Lines& in, const float* block, int64_t row, int64_t column, int64_t side,
                 float* pixels) {
  const int64_t begin = std::max<int64_t>(column, 0), end = std::min(column + side, in.width);
  if (begin >= end) return;
  for (int64_t y = std::max<int64_t>(row, 0); y < std::min(row + side, in.height); ++y)
    std::copy_n(block + (y * in.width + begin) * kPanel, (end - begin) * kPanel,
                pixels + ((y - row) * side + begin - column) * kPanel);
}

// Transforms 16 channels of row |y| of the band's tiles.
void transform_row(const WinogradPlan& plan, const Band& b, int64_t y, int64_t chunk) {
  const Lines& in = b.in;
  const int64_t side = plan.side, out_side = plan.form.out, pitch = in.width * kPanel,
                stride = plan.pixels_stride();
  const int64_t row = in.row + y * out_side;
  const float* const block = in.pixels + chunk * in.height * pitch;
  float* out = b.pixels + (chunk * plan.band_tiles() + y * plan.tiles_x) * plan.form.line;
  for (int64_t x = 0; x < plan.tiles_x; ++x, out += plan.form.line) {
    const int64_t column = in.column + x * out_side;
    if (row >= 0 && row + side <= in.height && column >= 0 && column + side <= in.width) {
      plan.form.transform_pixels(block + row * pitch + column * kPanel, pitch, out, stride);
      continue;
    }
    alignas(64) float pixels[kMostSide * kMostSide * kPanel] = {};
    copy_inside(in, block, row, column, side, pixels);
    plan.form.transform_pixels(pixels, side * kPanel, out, stride);
  }
}

// A product of one element of all tiles, for |count| panels of weights from |panel| on.
struct Product {
  const float *pixels, *weights;
  float* sums;
  int64_t panel, count;
  const float* next;  // weights that are multiplied next, where there are as many panels; or null
};

void multiply(const WinogradPlan& plan, const Band& b, const Product& product) {
  static constexpr float kNothing[PanelMicrokernel::kMostPanels * kPanel] = {};
  const PanelMicrokernel& microkernel = *plan.form.microkernel;
  const bool half = product.count == 1 && plan.outputs(product.panel) < kPanel;
  const PanelMicrokernel::RowBlocks tiles = PanelMicrokernel::row_blocks(
      b.rows * plan.tiles_x, half ? microkernel.half_rows() : microkernel.rows());
  PanelMicrokernel::Blocks p{};
  p.a_row = plan.form.line;
  p.c_row = kPanel;
  p.depth = std::min(plan.form.chain, plan.form.line);
  p.b_panel = plan.weights.elements * plan.weights.stride();
  p.c_panel = plan.band_tiles() * kPanel;
  const auto chunks = static_cast<int64_t>(plan.offsets.size());
  const int64_t most = plan.form.pass / p.depth;
  for (int64_t chunk = 0; chunk < chunks; chunk += most) {
    p.chunks = std::min(most, chunks - chunk);
    p.chain = std::min(plan.form.chain / p.depth, p.chunks);
    p.offsets = plan.offsets.data() + chunk;
    p.a = product.pixels;
    p.b = product.weights + chunk * p.depth * kPanel;
    p.c = product.sums;
    p.start = chunk == 0 ? kNothing : nullptr;
    if (half) {
      microkernel.run_half(tiles, p);
      continue;
    }
    // Shares of the tiles fetch the panels that are read next, one each.
    const bool last = chunk + most >= chunks;
    const float* const next = last ? product.next : p.b + most * p.depth * kPanel;
    for (int64_t i = 0; i < product.count; ++i) {
      p.ahead = next == nullptr ? nullptr : next + i * p.b_panel;
      p.ahead_end = next == nullptr ? nullptr : p.ahead + p.chunks * p.depth * kPanel;
      microkernel.run(tiles.share(i, product.count), product.count, p);
    }
  }
}

void multiply_short_chains(const WinogradPlan& plan, const Band& b, const Product& product) {
  const ShortChainMicrokernel& microkernel = *plan.form.short_chains;
  const bool half = product.count == 1 && plan.outputs(product.panel) < kPanel;
  const PanelMicrokernel::RowBlocks tiles = PanelMicrokernel::row_blocks(
      b.rows * plan.tiles_x, half ? microkernel.half_rows() : microkernel.rows());
  ShortChainMicrokernel::Blocks p{};
  p.a_chunk = plan.band_tiles() * kPanel;
  p.b_panel = plan.weights.elements * plan.weights.stride();
  p.c_panel = plan.band_tiles() * kPanel;
  const int64_t most = plan.form.pass / kPanel;
  const bool more = product.panel + 2 * product.count <= plan.weights.panels;
  for (int64_t chunk = 0; chunk < plan.chunks; chunk += most) {
    const bool last = chunk + most >= plan.chunks;
    p.chunks = std::min(most, plan.chunks - chunk);
    p.a = product.pixels + chunk * p.a_chunk;
    p.b = product.weights + chunk * kPanel * kPanel;
    p.c = product.sums;
    p.adds = chunk > 0;
    // Weights of the next pass, or of the next panels.
    p.ahead = last ? product.weights + product.count * p.b_panel : p.b + most * kPanel * kPanel;
    p.ahead_end = p.ahead + (last && !more ? 0 : most * kPanel * kPanel);
    if (half)
      microkernel.run_half(tiles, p);
    else
      microkernel.run(tiles, product.count, p);
  }
}

// The pixels of a band: the image itself, or lines that are filled with a part of it.
Lines lines_of(const Run& run, const WinogradPlan& plan, int64_t top, const float* image) {
  const Window& w = plan.geometry.window;
  const int64_t out = plan.form.out;
  if (plan.form.nchw16c) return {image, w.image[0], w.image[1], top * out - w.pads[0], -w.pads[1]};
  float* const lines = run.shared<float>();
  run.parallel(plan.lines.tasks(),
               [&](int64_t i, uint32_t) { plan.lines.fill(i, top * out, image, lines); });
  return {lines, out * plan.band + plan.side - out, plan.lines.row_step() / kPanel, 0, 0};
}

// The band of |image| whose first row of tiles is |top|.
void run_band(const Run& run, const WinogradPlan& plan, int64_t image, int64_t top,
              const float* pixels, const PutWinogradTiles& put) {
  const int64_t rows = std::min(plan.band, plan.tiles_y - top);
  const Band b{image, rows, lines_of(run, plan, top, pixels),
               run.shared<float>() + plan.pixels_at(), run.shared<float>() + plan.sums_at()};
  run.parallel(plan.chunks * rows,
               [&](int64_t i, uint32_t) { transform_row(plan, b, i % rows, i / rows); });
  const int64_t panels = plan.form.microkernel->panels();
  const int64_t columns = ceil_div(plan.weights.panels, panels);
  run.parallel(plan.weights.elements * columns, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t element = i / columns, panel = i % columns * panels;
    const int64_t count = std::min(panels, plan.weights.panels - panel);
    const float* const weights = run.packed<float>() +
                                 plan.weights.line(image % plan.geometry.groups, panel, 0) +
                                 element * plan.weights.stride();
    const float* next = nullptr;
    if (panel + 2 * count <= plan.weights.panels)
      next = weights + count * plan.weights.elements * plan.weights.stride();
    else if (element + 1 < plan.weights.elements)
      next = weights + (1 - panel * plan.weights.elements) * plan.weights.stride();
    const Product product = {
        b.pixels + element * plan.pixels_stride(),
        weights,
        b.sums + element * plan.sums_stride() + panel * plan.band_tiles() * kPanel,
        panel,
        count,
        next};
    if (plan.form.short_chains != nullptr)
      multiply_short_chains(plan, b, product);
    else
      multiply(plan, b, product);
  });
  const int64_t together = std::clamp<int64_t>(kTaskTiles / plan.tiles_x, 1, rows);
  const int64_t tasks = ceil_div(rows, together), outs = plan.geometry.group_out;
  run.parallel(plan.panels * tasks, [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    const int64_t panel = i / tasks, y = i % tasks * together;
    put({image, panel, image * outs + panel * kPanel, std::min(kPanel, outs - panel * kPanel),
         top + y, top + std::min(y + together, rows),
         b.sums + (panel * plan.band_tiles() + y * plan.tiles_x) * kPanel},
        worker);
  });
}

}  // namespace

WinogradPlan::WinogradPlan(const ConvGeometry& g, const WinogradForm& f)
    : geometry(g),
      form(f),
      side(g.window.kernel[0] + f.out - 1),
      chunks(ceil_div(g.group_in, kPanel)),
      panels(ceil_div(g.group_out, kPanel)),
      weights{g.groups, panels * f.phases, side * side, ceil_div(g.group_in * f.line, kPanel)},
      tiles_y(ceil_div(g.window.positions[0], f.out)),
      tiles_x(ceil_div(g.window.positions[1], f.out)),
      band(band_rows()),
      lines(whole_tiles(), {g.group_in, side - 1, side - 1, false, kPanel}, f.out * band, false) {
  for (int64_t k = 0; k < chunks * f.line; k += std::min(f.chain, f.line))
    offsets.push_back(k / f.line * band_tiles() * f.line + k % f.line);
}

int64_t WinogradPlan::pixels_at() const {
  return form.nchw16c ? 0 : ceil_div(static_cast<int64_t>(lines.bytes()), 64) * kPanel;
}

// A transform writes all elements of a tile at once. An odd number of cache lines from one to the
// next puts them into different sets of the cache.
int64_t WinogradPlan::apart(int64_t lines) { return (lines | 1) * kPanel; }

int64_t WinogradPlan::band_rows() const {
  const int64_t tile_bytes =
      weights.elements * (chunks * form.line + weights.panels * kPanel) * int64_t{sizeof(float)};
  const int64_t tiles = std::max(form.band_bytes / tile_bytes, kLeastTiles);
  return ceil_div(tiles_y, ceil_div(tiles_y, std::max<int64_t>(1, tiles / tiles_x)));
}

Window WinogradPlan::whole_tiles() const {
  Window w = geometry.window;
  w.positions = {tiles_y * form.out, tiles_x * form.out};
  return w;
}

pfrt_code run_winograd(const Run& run, const WinogradPlan& plan, std::string_view kernel,
                       const PutWinogradTiles& put, const WinogradImage& pixels_of) {
  if (run.packed<float>() == nullptr) return fail_unpacked(run, kernel);
  const ConvGeometry& g = plan.geometry;
  const int64_t image_size = g.group_in * g.window.image_size();
  for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
    const float* const pixels =
        pixels_of ? pixels_of(image) : run.input<float>(0) + image * image_size;
    for (int64_t top = 0; top < plan.tiles_y && !run.stopped(); top += plan.band)
      run_band(run, plan, image, top, pixels, put);
  }
  return run.stop();
}

bool has_plain_taps(const SnapshotNode& node, uint32_t w, int64_t side) {
  const auto weights = node.input_dims(w);
  const auto ones = [&](std::string_view name) {
    return std::ranges::all_of(node.attr_ints(name), [](int64_t v) { return v == 1; });
  };
  return weights.size() == 4 && weights[2] == side && weights[3] == side && ones("strides") &&
         ones("dilations");
}

}  // namespace pfrt::cpu
