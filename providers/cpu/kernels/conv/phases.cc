// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/phases.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

PhaseAxis::PhaseAxis(const Window& w, size_t axis)
    : in(w.positions[axis]),
      out(w.image[axis]),
      kernel(w.kernel[axis]),
      stride(w.strides[axis]),
      pad(w.pads[axis]),
      first(floor_div(pad, stride)),
      sites(floor_div(pad + out - 1, stride) - first + 1),
      taps(ceil_div(kernel, stride)) {}

Phases::Phases(const Window& w, int64_t channels)
    : y(w, 0), x(w, 1), order(ChunkOrder::of(channels, y.taps, x.taps, 1)) {}

Window Phases::window() const {
  Window w;
  for (const PhaseAxis* axis : {&y, &x}) {
    w.image.push_back(axis->in);
    w.positions.push_back(axis->sites);
    w.kernel.push_back(axis->taps);
    w.strides.push_back(1);
    w.dilations.push_back(1);
    w.pads.push_back(axis->taps - 1 - axis->first);
    w.end_pads.push_back(axis->first + axis->sites - axis->in);
  }
  return w;
}

int64_t Phases::phase_depth(int64_t phase_y, int64_t phase_x) const {
  const int64_t channels =
      order.by_row ? order.channels : ceil_div(order.channels, order.line) * order.line;
  return y.phase_taps(phase_y) * x.phase_taps(phase_x) * channels;
}

int64_t Phases::depth() const {
  int64_t sum = 0;
  for (int64_t fy = 0; fy < y.stride; ++fy)
    for (int64_t fx = 0; fx < x.stride; ++fx) sum += phase_depth(fy, fx);
  return sum;
}

std::vector<Phase> Phases::list(const ImageBand& band) const {
  std::vector<Phase> out;
  const int64_t blocks = ceil_div(order.channels, order.line);
  int64_t at = 0;
  for (int64_t fy = 0; fy < y.stride; ++fy)
    for (int64_t fx = 0; fx < x.stride; ++fx) {
      Phase phase{fy, fx, at, 0, {}};
      const int64_t rows = y.phase_taps(fy), columns = x.phase_taps(fx);
      phase.depth = order.by_row ? columns * order.channels : order.depth();
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t v = y.taps - rows; v < y.taps; ++v) {
          if (order.by_row && columns > 0)
            phase.offsets.push_back(band.offsets()[static_cast<size_t>(b * y.taps + v)] +
                                    (x.taps - columns) * order.channels);
          for (int64_t u = x.taps - columns; u < x.taps && !order.by_row; ++u)
            phase.offsets.push_back(
                band.offsets()[static_cast<size_t>((b * y.taps + v) * x.taps + u)]);
        }
      at += phase_depth(fy, fx);
      out.push_back(std::move(phase));
    }
  return out;
}

void Phases::places(int64_t channel, std::vector<int64_t>& out) const {
  out.assign(static_cast<size_t>(y.kernel * x.kernel), 0);
  const int64_t block = channel / order.line, in_block = channel % order.line;
  int64_t at = 0;
  for (int64_t fy = 0; fy < y.stride; ++fy)
    for (int64_t fx = 0; fx < x.stride; ++fx) {
      const int64_t rows = y.phase_taps(fy), columns = x.phase_taps(fx);
      const int64_t line = order.by_row ? order.channels : order.line;
      // Taps are taken from the pixel farthest before the site on.
      for (int64_t v = 0; v < rows; ++v)
        for (int64_t u = 0; u < columns; ++u)
          out[static_cast<size_t>(y.tap(fy, rows - 1 - v) * x.kernel +
                                  x.tap(fx, columns - 1 - u))] =
              at + ((block * rows + v) * columns + u) * line + in_block;
      at += phase_depth(fy, fx);
    }
}

void put_sites(const Run& run, const Phases& phases, int64_t group_out, const SiteTile& t,
               const float* lines, int64_t row, int64_t panel) {
  constexpr int64_t kPanel = 16;
  const PhaseAxis &ay = phases.y, &ax = phases.x;
  const int64_t pixels = ay.out * ax.out;
  const int64_t left = ax.pixel(t.x, 0), upper = ay.pixel(t.y, 0);
  const int64_t x0 = std::max<int64_t>(left, 0), y0 = std::max<int64_t>(upper, 0);
  const int64_t n = std::min(left + t.columns * ax.stride, ax.out) - x0;
  const int64_t y1 = std::min(upper + t.rows * ay.stride, ay.out);
  if (n <= 0) return;
  const int64_t first = t.panel * kPanel;
  const int64_t count = std::min(t.panels * kPanel, group_out - first);
  const int64_t start = (t.image * group_out + first) * pixels;
  for (int64_t y = y0; y < y1; ++y)
    for (int64_t c = 0; c < count; c += kPanel)
      reorder_to_planes(run.output<float>(0) + start + c * pixels + y * ax.out + x0, pixels,
                        lines + c / kPanel * panel + (y - upper) * row + (x0 - left) * kPanel,
                        std::min(kPanel, count - c), n);
  for (int64_t c = 0; c < count; ++c) {
    const int64_t at = start + c * pixels + x0;
    if (n == ax.out && y0 < y1) run.apply_epilogue(at + y0 * n, at + y1 * n);
    for (int64_t y = y0; y < y1 && n < ax.out; ++y)
      run.apply_epilogue(at + y * ax.out, at + y * ax.out + n);
  }
}

}  // namespace pfrt::cpu
