// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/dot_plan.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/conv/tile_order.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kStep = DotMicrokernel::kStepBytes;
constexpr int64_t kLine = 16;
constexpr int64_t kPixels = 128;           // copied at a time
constexpr int64_t kLeastRowBlocks = 4;     // fewer have no time to fetch the next part
constexpr int64_t kBandBytes = 256 << 10;  // stays in the second-level cache
constexpr int64_t kTaskPositions = 256;    // their sums stay in the first
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kLeastWork = 1 << 18;  // multiply-adds of a task
constexpr int64_t kFillBytes = 32 << 10;
constexpr int64_t kLeastTileWidth = 4;  // positions
constexpr int64_t kSlack = 64;  // bytes: the last step of a short chunk may end outside its line

bool no_padding(const Window& w) {
  return std::ranges::all_of(w.pads, [](int64_t p) { return p == 0; }) &&
         std::ranges::all_of(w.end_pads, [](int64_t p) { return p <= 0; });
}
bool is_sparse(const Window& w) { return w.taps() == 1 && (w.strides[0] > 1 || w.strides[1] > 1); }
}  // namespace

DotConvPlan::DotConvPlan(const ConvGeometry& g, const DotWeights& w, pfrt_dtype x,
                         Nchw16cSides sides, int64_t wanted)
    : geometry(g), weights(w), x_signed(x == PFRT_DTYPE_INT8), nchw16c(sides) {
  const Window& window = geometry.window;
  const ChunkOrder order = weights.order();
  // A chunk that steps fill up would end outside the image.
  in_place = sides.input && weights.microkernel->bytes() && no_padding(window) &&
             !is_sparse(window) && order.line == kLine &&
             weights.chunk_steps() == weights.microkernel->steps(order.depth());
  sparse = is_sparse(window);
  depth = weights.chunk_steps();
  panel_bytes = weights.panel_bytes();
  line = std::min(order.channels, order.line);
  blocks = ceil_div(order.channels, order.line);
  const int64_t height = window.positions[0];
  const int64_t pixels_across = sparse ? window.positions[1]
                                       : (window.positions[1] - 1) * window.strides[1] +
                                             (window.kernel[1] - 1) * window.dilations[1] + 1;
  if (in_place) {
    band = height;
    rows = window.image[0];
    width = window.image[1];
  } else {
    const int64_t row_step = sparse ? 1 : std::min(window.strides[0], window.image[0] + 1);
    const int64_t bytes_of_row =
        element() * line * blocks * std::max<int64_t>(pixels_across, 1) * row_step;
    const int64_t most = std::max<int64_t>(kBandBytes / std::max<int64_t>(bytes_of_row, 1), 2);
    band = wanted > 0 ? wanted : ceil_div(height, ceil_div(height, most));
    rows = sparse
               ? band
               : (band - 1) * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] + 1;
    width = pixels_across;
  }
  const int64_t pixel = line * element();
  row_bytes = (sparse ? 1 : window.strides[0]) * width * pixel;
  step_bytes = (sparse ? 1 : window.strides[1]) * pixel;
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t y = 0; y < window.kernel[0]; ++y)
      for (int64_t tap = 0; tap < (order.by_row ? 1 : window.kernel[1]); ++tap)
        offsets.push_back(
            pixel * ((b * rows + y * window.dilations[0]) * width + tap * window.dilations[1]));
  tiles = weights.for_tiles && across() >= kLeastTileWidth ? DotTileMicrokernel::get() : nullptr;
  const int64_t work = positions() * order.chunks() * order.depth() * kPanel * 2;
  const int64_t tasks = std::max(ceil_div(positions(), kTaskPositions),
                                 std::min({ceil_div(kWantedTasks, columns()),
                                           ceil_div(positions(), 24), ceil_div(work, kLeastWork)}));
  const int64_t across = window.positions[1], each = ceil_div(positions(), tasks);
  const int64_t whole = (each + across / 2) / across;
  task_positions = whole > 0 ? whole * across : each;
}

int64_t DotConvPlan::out_panels() const { return ceil_div(geometry.group_out, kPanel); }
int64_t DotConvPlan::columns() const { return ceil_div(out_panels(), int64_t{2}); }

uint64_t DotConvPlan::band_bytes() const {
  return in_place ? 0 : static_cast<uint64_t>(blocks * block_bytes() + kSlack);
}

uint64_t DotConvPlan::scratch_bytes() const {
  return static_cast<uint64_t>(2 * task_positions * kPanel) * sizeof(int32_t);
}

void DotConvPlan::fill(const Run& run, const uint8_t* image, int64_t top, uint8_t pad,
                       uint8_t* out) const {
  if (in_place) return;
  const int64_t row_size = element() * line * width;
  std::memset(out + blocks * rows * row_size, 0, kSlack);
  const int64_t task_rows =
      std::clamp<int64_t>(kFillBytes / std::max<int64_t>(row_size, 1), 1, rows);
  const int64_t tasks = ceil_div(rows, task_rows);
  const bool one_row = contiguous();
  run.parallel(blocks * tasks, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t block = i / tasks, first = i % tasks * task_rows;
    const int64_t last = std::min(first + task_rows, rows);
    if (one_row) {
      const Window& w = geometry.window;
      const int64_t y = top * w.strides[0];
      fill_pixels(block, image,
                  {(y + first) * width, 1, (std::min(last, w.image[0] - y) - first) * width},
                  out + (block * rows + first) * row_size);
      return;
    }
    for (int64_t row = first; row < last; ++row)
      fill_row(block, row, image, top, pad, out + (block * rows + row) * row_size);
  });
}

bool DotConvPlan::contiguous() const {
  const Window& w = geometry.window;
  return no_padding(w) && !sparse && width == w.image[1];
}

void DotConvPlan::fill_pixels(int64_t block, const uint8_t* image, const Pixels& pixels,
                              uint8_t* out) const {
  for (int64_t i = 0; i < pixels.n; i += kPixels) {
    const Pixels some{pixels.at + i * pixels.step, pixels.step, std::min(kPixels, pixels.n - i)};
    uint8_t* const to = out + i * line * element();
    if (element() == 2)
      fill_wide(image, block, some, reinterpret_cast<int16_t*>(to));
    else
      fill_lines(image, block, some, to);
  }
}

void DotConvPlan::fill_row(int64_t block, int64_t row, const uint8_t* image, int64_t top,
                           uint8_t pad, uint8_t* out) const {
  const Window& w = geometry.window;
  const int64_t height = w.image[0], across = w.image[1];
  const int64_t y = (sparse ? (top + row) * w.strides[0] : top * w.strides[0] + row) - w.pads[0];
  const int64_t step = sparse ? w.strides[1] : 1;
  // Columns [begin, end) of the band are pixels.
  const int64_t begin =
      std::clamp<int64_t>(ceil_div(std::max<int64_t>(w.pads[1], 0), step), 0, width);
  const int64_t last = across + w.pads[1];  // exclusive, in pixels
  const int64_t end =
      y < 0 || y >= height
          ? begin
          : std::clamp<int64_t>(last <= 0 ? 0 : (last - 1) / step + 1, begin, width);
  const auto fill_pad = [&](int64_t from, int64_t to) {
    if (element() == 1) {
      std::memset(out + from * line, pad, static_cast<size_t>((to - from) * line));
      return;
    }
    const int16_t wide = x_signed ? int16_t{static_cast<int8_t>(pad)} : int16_t{pad};
    std::fill(reinterpret_cast<int16_t*>(out) + from * line,
              reinterpret_cast<int16_t*>(out) + to * line, wide);
  };
  fill_pad(0, begin);
  fill_pad(end, width);
  fill_pixels(block, image, {y * across + begin * step - w.pads[1], step, end - begin},
              out + begin * line * element());
}

void DotConvPlan::copy_lines(const uint8_t* image, int64_t channel, int64_t count,
                             const Pixels& pixels, int64_t width_of_line, int64_t pitch,
                             uint8_t* planes, uint8_t* out) const {
  const int64_t size = geometry.window.image_size(), n = pixels.n, step = pixels.step;
  if (nchw16c.input) {
    const uint8_t* const from = image + channel * size + pixels.at * kLine;
    if (step == 1 && pitch == kLine)
      std::memcpy(out, from, static_cast<size_t>(n * kLine));
    else
      for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * pitch, from + i * step * kLine, kLine);
    return;
  }
  const uint8_t* from = image + channel * size + pixels.at;
  if (step == 1) return bytes_to_lines(out, width_of_line, pitch, from, size, count, n);
  for (int64_t c = 0; c < count; ++c, from += size)
    for (int64_t i = 0; i < n; ++i) planes[c * kPixels + i] = from[i * step];
  bytes_to_lines(out, width_of_line, pitch, planes, kPixels, count, n);
}

void DotConvPlan::fill_lines(const uint8_t* image, int64_t block, const Pixels& pixels,
                             uint8_t* out) const {
  alignas(16) uint8_t planes[kLine * kPixels];
  for (int64_t c = 0; c < line; c += kLine) {
    const int64_t channel = block * line + c;
    const int64_t count = std::min({line - c, kLine, geometry.group_in - channel});
    if (count > 0)
      copy_lines(image, channel, count, pixels, std::min(line, kLine), line, planes, out + c);
    else
      for (int64_t i = 0; i < pixels.n; ++i) std::memset(out + c + i * line, 0, kLine);
  }
}

void DotConvPlan::fill_wide(const uint8_t* image, int64_t block, const Pixels& pixels,
                            int16_t* out) const {
  alignas(16) uint8_t lines[kPixels * kLine], planes[kLine * kPixels];
  for (int64_t c = 0; c < line; c += kLine) {
    const int64_t piece = std::min(kLine, line - c), channel = block * line + c;
    const int64_t count = std::clamp<int64_t>(geometry.group_in - channel, 0, piece);
    if (nchw16c.input && count == kLine) {
      const uint8_t* const from =
          image + channel * geometry.window.image_size() + pixels.at * kLine;
      widen_lines(x_signed, from, pixels.step * kLine, pixels.n, out + c, line);
      continue;
    }
    const int64_t pitch = piece < kLine / 2 ? piece : kLine;
    if (count > 0)
      copy_lines(image, channel, count, pixels, pitch, pitch, planes, lines);
    else
      std::memset(lines, 0, sizeof lines);
    if (piece == kLine)
      widen_lines(x_signed, lines, kLine, pixels.n, out + c, line);
    else if (pitch == line)
      widen_bytes(x_signed, lines, pixels.n * line, out);
    else
      for (int64_t i = 0; i < pixels.n; ++i)
        widen_bytes(x_signed, lines + i * pitch, piece, out + i * line + c);
  }
}

int64_t DotConvPlan::across() const {
  const int64_t width_of_positions = geometry.window.positions[1];
  return row_bytes == width_of_positions * step_bytes ? positions() : width_of_positions;
}

void DotConvPlan::sums(const uint8_t* pixels, const void* packed, int64_t group, int64_t panel,
                       int64_t panels, int64_t begin, int64_t end, const Start& start, int32_t* out,
                       int64_t out_panel, const Bytes* bytes) const {
  if (tiles != nullptr)
    return sums_on_tiles(pixels, packed, group, panel, panels, begin, end, start, out, out_panel);
  const int64_t across = this->across();
  const DotMicrokernel& microkernel = *weights.microkernel;
  DotMicrokernel::Blocks p{};
  p.a_row = step_bytes;
  p.depth = depth;
  const auto chunks = static_cast<int64_t>(offsets.size());
  const int64_t pass =
      microkernel.bytes() ? chunks : std::max<int64_t>(DotWeights::kPassSteps / p.depth, 1);
  p.b_panel = panel_bytes;
  p.c_row = kPanel;
  p.c_panel = out_panel;
  p.start_panel = kPanel;
  p.out_row = kLine;
  if (bytes != nullptr) {
    p.out_panel = bytes->out_panel;
    p.bytes = bytes->form;
  }
  const char* const first =
      static_cast<const char*>(packed) + (group * weights.panels() + panel) * panel_bytes;
  int64_t y = begin / across, x = begin % across;
  for (int64_t left = end - begin, n; left > 0; left -= n, ++y, x = 0) {
    n = std::min(across - x, left);
    const DotMicrokernel::RowBlocks row_blocks = microkernel.row_blocks(n);
    const int64_t most = microkernel.panels(row_blocks.first());
    // Columns of int16 come from far; what follows them is read next.
    const bool fetches = !microkernel.bytes() && row_blocks.count >= kLeastRowBlocks;
    for (int64_t q = 0; q < panels; q += most)
      for (int64_t c = 0; c < chunks; c += pass) {
        p.a = pixels + y * row_bytes + x * step_bytes;
        p.offsets = offsets.data() + c;
        p.chunks = std::min(pass, chunks - c);
        p.b = first + q * panel_bytes + c * depth * kPanel * kStep;
        p.start = c == 0 ? start.channels + q * kPanel : nullptr;
        p.row_start = start.positions != nullptr ? start.positions + (end - left) : nullptr;
        p.c = out + q * out_panel;
        if (bytes != nullptr && c + p.chunks == chunks) {
          p.out = bytes->out + q * bytes->out_panel + (end - begin - left) * kLine;
          p.scales = bytes->scales + q * kPanel;
        } else {
          p.out = nullptr;
        }
        const int64_t lines = p.chunks * p.depth;
        p.next = static_cast<const char*>(p.b) + lines * kPanel * kStep;
        p.next_lines = fetches ? ceil_div(lines, row_blocks.count) : 0;
        microkernel.run(row_blocks, std::min(most, panels - q), flipped(), p);
      }
    out += n * kPanel;
  }
}

void DotConvPlan::start_positions(const uint8_t* pixels, int64_t begin, int64_t end,
                                  int32_t* starts) const {
  if (!weights.microkernel->crosswise()) {
    std::fill(starts + begin, starts + end, 0);
    return;
  }
  const int64_t across = geometry.window.positions[1], steps = depth;
  auto* const own = reinterpret_cast<uint32_t*>(starts);
  for (int64_t i = begin, n; i < end; i += n) {
    n = std::min(across - i % across, end - i);
    own_products(position(pixels, i), step_bytes, n, offsets, steps, own + i);
  }
  for (int64_t i = begin; i < end; ++i) own[i] = 0 - own[i];
}

}  // namespace pfrt::cpu
