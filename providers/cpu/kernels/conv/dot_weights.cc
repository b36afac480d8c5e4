// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/dot_weights.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/dot_tile_microkernel.h"
#include "providers/cpu/kernels/conv/tile_order.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DotMicrokernel::kPanel, kStep = DotMicrokernel::kStepBytes;
constexpr int64_t kLine = 16;

}  // namespace

ChunkOrder DotWeights::order() const {
  if (for_tiles) return tile_order(channels, taps_y, taps_x, dilation_x);
  ChunkOrder order = ChunkOrder::of(channels, taps_y, taps_x, dilation_x);
  if (microkernel->bytes()) return order;
  // Takes as many blocks of about equal size as make a chunk's columns short enough.
  const int64_t most = kPassSteps / 3 * 2, wanted = ceil_div(channels, most);
  order.by_row = wanted == 1 && (dilation_x == 1 || taps_x == 1);
  order.line = std::max(order.line, ceil_div(ceil_div(channels, wanted), kLine) * kLine);
  if (wanted == 1) order.line = std::max(order.line, channels);
  return order;
}

int64_t DotWeights::chunk_steps() const {
  const int64_t steps = microkernel->steps(order().depth());
  return for_tiles ? TileParts::of(steps).steps() : steps;
}

int64_t DotWeights::panels() const { return ceil_div(outs, kPanel) + ones; }

int64_t DotWeights::panel_bytes() const {
  return order().chunks() * chunk_steps() * kPanel * kStep;
}

uint64_t DotWeights::bytes() const {
  return static_cast<uint64_t>(groups * panels()) *
         (static_cast<uint64_t>(panel_bytes()) +
          (microkernel->crosswise() ? 2 : 1) * kPanel * sizeof(int32_t));
}

const char* DotWeights::panel(const void* packed, int64_t group, int64_t p) const {
  return static_cast<const char*>(packed) + (group * panels() + p) * panel_bytes();
}

const int32_t* DotWeights::sums(const void* packed, int64_t group) const {
  return reinterpret_cast<const int32_t*>(panel(packed, groups, 0)) + group * panels() * kPanel;
}

const uint32_t* DotWeights::own_products(const void* packed, int64_t group) const {
  return reinterpret_cast<const uint32_t*>(sums(packed, groups)) + group * panels() * kPanel;
}

void DotWeights::add_own_products(const char* panel, uint32_t* own) const {
  for (int64_t s = 0; s < order().chunks() * chunk_steps(); s += 2)
    for (int64_t j = 0; j < kPanel; ++j) {
      const char* const at = panel + (s * kPanel + j) * kStep;
      int16_t first[2], second[2];
      std::memcpy(first, at, sizeof first);
      std::memcpy(second, at + kPanel * kStep, sizeof second);
      own[j] += static_cast<uint32_t>(first[0] * second[0] + first[1] * second[1]);
    }
}

std::vector<int64_t> DotWeights::places() const {
  const ChunkOrder chunk_order = order();
  const int64_t taps = taps_y * taps_x, depth = chunk_order.depth(), step = microkernel->step();
  const int64_t chunk_bytes = chunk_steps() * kPanel * kStep;
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(channels * taps));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t k = chunk_order.k(t, c), in_chunk = k % depth;
      places.push_back(k / depth * chunk_bytes +
                       microkernel->line(in_chunk / step) * kPanel * kStep +
                       in_chunk % step * (kStep / step));
    }
  return places;
}

void DotWeights::pack_panel(const uint8_t* source, const std::vector<int64_t>& places, int64_t p,
                            void* packed) const {
  const int64_t group = p / panels(), first = p % panels() * kPanel;
  auto* const out = const_cast<char*>(panel(packed, 0, p));
  auto* const all_sums = const_cast<int32_t*>(sums(packed, 0)) + p * kPanel;
  std::memset(out, 0, static_cast<size_t>(panel_bytes()));
  std::fill_n(all_sums, kPanel, 0);
  const auto terms = static_cast<int64_t>(places.size());
  for (int64_t j = 0; j < kPanel; ++j) {
    const int64_t o = first + j;
    const bool one = ones && o == ones_panel() * kPanel;
    if (!one && o >= outs) continue;
    char* const to = out + j * kStep;
    const uint8_t* const from = source + (group * outs + o) * terms;
    int32_t sum = 0;
    for (int64_t i = 0; i < terms; ++i) {
      const uint8_t byte = one ? 0 : from[i];
      const int32_t value =
          one ? 1 : (is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte}) + shift;
      sum += value;
      char* const at = to + places[static_cast<size_t>(i)];
      if (microkernel->bytes()) {
        *at = static_cast<char>(value);
      } else {
        const auto wide = static_cast<int16_t>(value);
        std::memcpy(at, &wide, sizeof wide);
      }
    }
    all_sums[j] = sum;
  }
  if (!microkernel->crosswise()) return;
  auto* const own = const_cast<uint32_t*>(own_products(packed, 0)) + p * kPanel;
  std::fill_n(own, kPanel, 0);
  add_own_products(out, own);
}

PackedInput DotWeights::packed(uint32_t input) const {
  PackedInput p;
  p.input = input;
  p.recipe = message("conv_dots/",
                     microkernel->bytes()       ? "bytes"
                     : microkernel->crosswise() ? "crosswise"
                                                : "pairs",
                     "/", is_signed ? "int8" : "uint8", shift, ones ? "/ones/" : "/", groups, "/",
                     outs, "x", channels, "x", taps_y, "x", taps_x, order().by_row ? "/rows" : "",
                     for_tiles ? message("/tiles", order().line) : "");
  p.bytes = bytes();
  p.pack = [weights = *this](const void* source, void* out) {
    const std::vector<int64_t> places = weights.places();
    for (int64_t i = 0; i < weights.groups * weights.panels(); ++i)
      weights.pack_panel(static_cast<const uint8_t*>(source), places, i, out);
  };
  return p;
}

}  // namespace pfrt::cpu
