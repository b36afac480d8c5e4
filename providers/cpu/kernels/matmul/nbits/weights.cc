// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/nbits/weights.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kColumns = NBitsPanel::kColumns;

// Gives each element of |data|, which is g_idx, a place: blocks follow each other, each in as many
// whole blocks of places as its elements need. Returns false where too many places would stay
// empty, or an element's block does not exist.
bool order_groups(const int32_t* data, NBitsWeights& w) {
  const NBitsForm& f = w.form;
  std::vector<int64_t> counts(static_cast<size_t>(f.blocks));
  bool as_stored = true;
  for (int64_t k = 0; k < f.k; ++k) {
    if (data[k] < 0 || data[k] >= f.blocks) return false;
    as_stored &= data[k] == k / f.block;
    ++counts[static_cast<size_t>(data[k])];
  }
  if (as_stored) return true;
  std::vector<int64_t> next;  // place
  int64_t blocks = 0;
  for (int64_t g = 0; g < f.blocks; ++g) {
    next.push_back(blocks * f.block);
    const int64_t own = (counts[static_cast<size_t>(g)] + f.block - 1) / f.block;
    w.scale_blocks.insert(w.scale_blocks.end(), static_cast<size_t>(own), static_cast<int32_t>(g));
    blocks += own;
  }
  if (blocks > f.blocks + f.blocks / 8 + 1) return false;
  w.panel.blocks = blocks;
  w.order.assign(static_cast<size_t>(blocks * f.block), -1);
  for (int64_t k = 0; k < f.k; ++k)
    w.order[static_cast<size_t>(next[static_cast<size_t>(data[k])]++)] = static_cast<int32_t>(k);
  return true;
}

// Swaps the bits of |mask| with those |distance| higher.
uint32_t swap_bits(uint32_t x, uint32_t mask, int distance) {
  const uint32_t t = (x ^ (x >> distance)) & mask;
  return x ^ t ^ (t << distance);
}

// The fields of a line's 32 bits, from k's order to that of NBitsPanel.
uint32_t order_fields(uint32_t x, int64_t bits) {
  if (bits == 4) return swap_bits(swap_bits(x, 0x0000ff00, 8), 0x00f000f0, 4);
  if (bits == 2) return swap_bits(swap_bits(x, 0x00cc00cc, 6), 0x0000f0f0, 12);
  return x;
}

struct Packer {
  const NBitsWeights& w;
  const uint8_t* stored;
  const void *scales, *zeros;
  LoadFn<float> load_scale, load_zero;

  Packer(const NBitsWeights& weights, const void* const* sources)
      : w(weights),
        stored(static_cast<const uint8_t*>(sources[0])),
        scales(sources[1]),
        zeros(weights.panel.zeros == NBitsPanel::Zeros::kMiddle ? nullptr : sources[2]),
        load_scale(load_fn<float>(weights.form.scale_dtype)),
        load_zero(weights.panel.zeros == NBitsPanel::Zeros::kFloat
                      ? load_fn<float>(weights.form.zero_dtype)
                      : nullptr) {}

  int64_t row_bytes() const { return w.form.blocks * w.form.block_bytes(); }

  // 32 bits of a column from place |k| on.
  uint32_t bits_at(int64_t column, int64_t k) const {
    const uint8_t* const row = stored + column * row_bytes();
    uint32_t x = 0;
    if (w.order.empty()) {
      std::memcpy(&x, row + k * w.form.bits / 8, sizeof x);
      return x;
    }
    for (int64_t i = 0; i < w.panel.fields(); ++i) {
      const int32_t from = w.order[static_cast<size_t>(k + i)];
      if (from >= 0) x |= nbits_element(row, w.form.bits, from) << (i * w.form.bits);
    }
    return x;
  }

  void pack(int64_t first, uint8_t* to) const {
    const int64_t count = std::min(kColumns, w.form.n - first);
    std::memset(to, 0, static_cast<size_t>(w.panel.bytes()));
    for (int64_t b = 0; b < w.panel.blocks; ++b) {
      uint8_t* const block = to + b * w.panel.block_bytes();
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t i = 0; i < w.panel.lines(); ++i) {
          const int64_t k = b * w.panel.block + i * w.panel.fields();
          const uint32_t x = order_fields(bits_at(first + j, k), w.form.bits);
          std::memcpy(block + i * NBitsPanel::kLine + j * 4, &x, sizeof x);
        }
        const int64_t from = w.scale_blocks.empty() ? b : w.scale_blocks[static_cast<size_t>(b)];
        const int64_t scale_at = (first + j) * w.form.blocks + from;
        float scale;
        load_scale(&scale, scales, scale_at, 1, 1);
        std::memcpy(block + w.panel.lines() * NBitsPanel::kLine + j * 4, &scale, sizeof scale);
        uint8_t* const zero = to + w.panel.zeros_at() + b * w.panel.zero_bytes();
        if (w.panel.zeros == NBitsPanel::Zeros::kUint8) {
          const auto* const row =
              static_cast<const uint8_t*>(zeros) + (first + j) * w.form.zero_bytes();
          zero[j] = static_cast<uint8_t>(nbits_element(row, w.form.bits, from));
        } else if (w.panel.zeros == NBitsPanel::Zeros::kFloat) {
          float value;
          load_zero(&value, zeros, scale_at, 1, 1);
          std::memcpy(zero + j * 4, &value, sizeof value);
        }
      }
    }
  }
};

}  // namespace

std::optional<NBitsWeights> nbits_weights(const SnapshotNode& node) {
  using Zeros = NBitsPanel::Zeros;
  for (const uint32_t i : {NBitsForm::kB, NBitsForm::kScales})
    if (!node.has_input(i) || !node.is_constant(i)) return std::nullopt;
  for (const uint32_t i : {NBitsForm::kZeros, NBitsForm::kGroups})
    if (node.has_input(i) && !node.is_constant(i)) return std::nullopt;
  Result<NBitsForm> form = read_nbits_form(node);
  if (!form.ok() || !NBitsPanel::takes(form.value().bits, form.value().block)) return std::nullopt;
  NBitsWeights w;
  w.form = form.take();
  w.panel.bits = w.form.bits, w.panel.block = w.form.block, w.panel.blocks = w.form.blocks;
  w.panel.zeros = w.form.zero_dtype == PFRT_DTYPE_UNSET   ? Zeros::kMiddle
                  : w.form.zero_dtype == PFRT_DTYPE_UINT8 ? Zeros::kUint8
                                                          : Zeros::kFloat;
  if (w.form.has_groups) {
    // The host may show large ones to pack alone, which is too late.
    const auto* const groups = static_cast<const int32_t*>(node.input_constant(NBitsForm::kGroups));
    if (groups == nullptr || !order_groups(groups, w)) return std::nullopt;
  }
  if (w.microkernel() == nullptr) return std::nullopt;
  return w;
}

std::optional<PackedInput> pack_matmul_nbits(const SnapshotNode& node) {
  auto weights = nbits_weights(node);
  if (!weights) return std::nullopt;
  const auto w = std::make_shared<const NBitsWeights>(std::move(*weights));
  PackedInput packed;
  packed.input = NBitsForm::kB;
  packed.others = {NBitsForm::kScales};
  for (const uint32_t i : {NBitsForm::kZeros, NBitsForm::kGroups})
    if (node.has_input(i)) packed.others.push_back(i);
  packed.recipe =
      message("nbits_panels/", w->form.bits, "/", w->form.block, "/", w->panel.blocks, "/",
              w->form.n, "x", w->form.k, "/", dtype_name(w->form.scale_dtype), "/",
              w->form.zero_dtype == PFRT_DTYPE_UNSET ? "none" : dtype_name(w->form.zero_dtype),
              w->form.has_groups ? "/groups" : "");
  packed.bytes = w->bytes();
  packed.pack_all = [w](const void* const* sources, void* out) {
    const Packer packer(*w, sources);
    for (int64_t i = 0; i < w->panels(); ++i)
      packer.pack(i * kColumns, static_cast<uint8_t*>(out) + i * w->panel.bytes());
  };
  return packed;
}

}  // namespace pfrt::cpu
