// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/quantized.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/recurrent/cell.h"
#include "providers/cpu/kernels/recurrent/quantized_weights.h"

namespace pfrt::cpu {
namespace {

// The most depth at which sums of products stay within 32 bits.
constexpr int64_t kDeepest = int64_t{1} << 14;
constexpr uint32_t kScaleW = 8, kZeroW = 9, kScaleR = 10, kZeroR = 11;
struct Lstm {
  Layer layer;
  QuantizedWeights w, r;

  bool constant;  // the weights are packed
  QuantizedWeights::Product of_x{w, layer.time*layer.batch}, of_h{r, layer.batch};

  Lstm(Layer l, const QuantizedWeights& of_input, const QuantizedWeights& of_hidden,
       bool is_constant)
      : layer(std::move(l)), w(of_input), r(of_hidden), constant(is_constant) {}
  Lstm(const Lstm&) = delete;
  Lstm& operator=(const Lstm&) = delete;

  int64_t columns() const { return 4 * layer.hidden; }
  uint64_t packed_bytes() const { return w.packed_bytes() + r.packed_bytes(); }  // a direction
  void sweep(const Run& run, int64_t direction, const char* packed, const Levels& x,
             const std::vector<int64_t>& lengths) const;
  pfrt_code run(const Run& run) const;
};

// All steps of one direction.
void Lstm::sweep(const Run& run, int64_t direction, const char* packed, const Levels& x,
                 const std::vector<int64_t>& lengths) const {
  const int64_t hidden = layer.hidden, batch = layer.batch, wide = columns();
  const auto gates =
      std::make_unique_for_overwrite<float[]>(static_cast<size_t>(layer.time * batch * wide));
  const float* const bias =
      layer.has(kInputB) ? run.input<float>(kInputB) + direction * 2 * wide : nullptr;
  run.parallel(layer.time * batch, [&](int64_t row, uint32_t) {
    if (run.stopped()) return;
    float* const to = gates.get() + row * wide;
    for (int64_t j = 0; j < wide; ++j) to[j] = bias == nullptr ? 0 : bias[j] + bias[wide + j];
  });
  if (run.stopped()) return;
  auto columns = of_x.columns(run, direction, packed);
  of_x.add(run, columns, x, [&](int64_t row) { return gates.get() + row * wide; });

  const size_t states = static_cast<size_t>(batch * hidden);
  std::vector<float> state(states, 0.0f), next(states), cell(states, 0.0f);
  const int64_t first = direction * batch * hidden;
  if (layer.has(kInputHidden))
    std::copy_n(run.input<float>(kInputHidden) + first, states, state.begin());
  if (layer.has(kInputCell))
    std::copy_n(run.input<float>(kInputCell) + first, states, cell.begin());
  Levels levels;
  columns = of_h.columns(run, direction, packed == nullptr ? nullptr : packed + w.packed_bytes());
  for (int64_t s = 0; s < layer.time && !run.stopped(); ++s) {
    levels.fill(r.fns(), state.data(), batch * hidden);
    const auto time_of = [&](int64_t b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      return layer.reversed(direction) && s < length ? length - 1 - s : s;
    };
    of_h.add(run, columns, levels,
             [&](int64_t b) { return gates.get() + (time_of(b) * batch + b) * wide; });
    run.parallel(batch, [&](int64_t b, uint32_t) {
      const bool over = s >= lengths[static_cast<size_t>(b)];
      const int64_t t = time_of(b);
      float* const after = next.data() + b * hidden;
      if (over) {
        std::copy_n(state.data() + b * hidden, hidden, after);
      } else {
        Units<float> units{};
        units.n = hidden;
        for (int64_t g = 0; g < 4; ++g)
          units.gates[g] = gates.get() + (t * batch + b) * wide + g * hidden;
        units.before = state.data() + b * hidden;
        units.state = cell.data() + b * hidden;
        if (layer.has(kInputPeepholes))
          for (int64_t g = 0; g < 3; ++g)
            units.peepholes[g] = run.input<float>(kInputPeepholes) + (direction * 3 + g) * hidden;
        units.after = after;
        finish_lstm(layer, layer.activations(direction), units);
      }
      if (!layer.wanted[0]) return;
      float* const y = run.output<float>(0) + layer.y_row(t, direction, b);
      if (over)
        std::fill_n(y, hidden, 0.0f);
      else
        std::copy_n(after, hidden, y);
    });
    std::swap(state, next);
  }
  if (layer.wanted[1]) std::copy(state.begin(), state.end(), run.output<float>(1) + first);
  if (layer.wanted[2]) std::copy(cell.begin(), cell.end(), run.output<float>(2) + first);
}

pfrt_code Lstm::run(const Run& run) const {
  std::vector<int64_t> lengths(static_cast<size_t>(layer.batch), layer.time);
  if (layer.has(kInputLengths)) {
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int32_t length = run.input<int32_t>(kInputLengths)[b];
      if (length < 0 || length > layer.time)
        return run.fail(Code::kINVALID_ARGUMENT, "sequence_lens[", b, "] is ", length, ": X holds ",
                        layer.time, " steps");
      lengths[b] = length;
    }
  }
  Levels x;
  x.fill(w.fns(), run.input<float>(kInputX), layer.time * layer.batch * layer.features);
  const uint64_t bytes = packed_bytes();
  for (int64_t d = 0; d < layer.directions && !run.stopped(); ++d) {
    const char* packed = nullptr;
    if (constant) {
      packed = run.packed<char>() + static_cast<uint64_t>(d) * bytes;
    } else if (bytes > 0) {
      w.pack(run.input(kInputW), d, run.shared<char>());
      r.pack(run.input(kInputR), d, run.shared<char>() + w.packed_bytes());
      packed = run.shared<char>();
    }
    sweep(run, d, packed, x, lengths);
  }
  return run.stop();
}

std::string recipe_of(const QuantizedWeights& w, const QuantizedWeights& r) {
  return "lstm of " + w.recipe() + " and " + r.recipe();
}

}  // namespace

std::optional<PackedInput> pack_quantized_lstm(const SnapshotNode& node) {
  constexpr int64_t kMostElements = int64_t{1} << 31;
  for (const uint32_t i : {kInputW, kInputR}) {
    if (!node.has_input(i) || !node.is_constant(i) || node.input_dims(i).size() != 3)
      return std::nullopt;
    const int64_t count = node.input_elements(i);
    if (count < 1 || count > kMostElements || node.input_dims(i)[1] > kDeepest) return std::nullopt;
  }
  for (const uint32_t i : {kScaleW, kZeroW, kScaleR, kZeroR})
    if (!node.has_input(i) || node.input_rank(i) < 0) return std::nullopt;
  auto w = QuantizedWeights::make(node, kInputW, kScaleW, kZeroW);
  auto r = QuantizedWeights::make(node, kInputR, kScaleR, kZeroR);
  const int64_t directions = node.input_dims(kInputW)[0];
  if (!w.ok() || !r.ok() || node.input_dims(kInputR)[0] != directions) return std::nullopt;
  const QuantizedWeights of_input = w.take(), of_hidden = r.take();
  if (of_input.packed_bytes() == 0 || of_hidden.packed_bytes() == 0) return std::nullopt;
  PackedInput packed;
  packed.input = kInputW;
  packed.others = {kInputR};
  packed.recipe = recipe_of(of_input, of_hidden);
  const uint64_t bytes = of_input.packed_bytes() + of_hidden.packed_bytes();
  packed.bytes = static_cast<uint64_t>(directions) * bytes;
  packed.pack_all = [of_input, of_hidden, directions, bytes](const void* const* sources,
                                                             void* out) {
    for (int64_t d = 0; d < directions; ++d) {
      char* const to = static_cast<char*>(out) + static_cast<uint64_t>(d) * bytes;
      of_input.pack(sources[0], d, to);
      of_hidden.pack(sources[1], d, to + of_input.packed_bytes());
    }
  };
  return packed;
}

Result<Kernel> make_quantized_lstm(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 0));
  for (const uint32_t i : {kScaleW, kZeroW, kScaleR, kZeroR})
    if (!node.has_input(i) || node.input_rank(i) < 0)
      return kernel_error("input ", i, " is required and absent");
  PFRT_ASSIGN(Layer layer, Layer::make(node));
  if (layer.hidden > kDeepest || layer.features > kDeepest)
    return kernel_error("features and hidden size are ", layer.features, " and ", layer.hidden,
                        ": ", kDeepest, " or less");
  // The gates of a direction; X has no elements to bound them where it has no features.
  const int64_t gates[] = {layer.time, layer.batch, 4 * layer.hidden};
  const int64_t count = element_count(gates, 3);
  if (count < 0 || count > (int64_t{1} << 40))
    return kernel_error("gates of dimensions ", dims_text(gates), " are too large");
  PFRT_ASSIGN(const QuantizedWeights w, QuantizedWeights::make(node, kInputW, kScaleW, kZeroW));
  PFRT_ASSIGN(const QuantizedWeights r, QuantizedWeights::make(node, kInputR, kScaleR, kZeroR));
  const bool constant = node.packed != nullptr;
  if (constant && node.packed->recipe != recipe_of(w, r))
    return error(Code::kUNSUPPORTED, "the weights are packed for other instructions");
  Kernel kernel;
  const double units = static_cast<double>(layer.directions * 4 * layer.hidden);
  kernel.flops = 2.0 * static_cast<double>(layer.time) * static_cast<double>(layer.batch) * units *
                 static_cast<double>(layer.features + layer.hidden);
  const auto lstm = std::make_shared<const Lstm>(std::move(layer), w, r, constant);
  kernel.packed_alone = constant;
  kernel.scratch_bytes = std::max(lstm->of_x.scratch_bytes(), lstm->of_h.scratch_bytes());
  kernel.shared_bytes = constant ? 0 : lstm->packed_bytes();
  kernel.run = [lstm](const Run& run) { return lstm->run(run); };
  return kernel;
}

}  // namespace pfrt::cpu
