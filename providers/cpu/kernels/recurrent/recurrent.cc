// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/recurrent.h"

#include <utility>

#include "providers/cpu/kernels/recurrent/quantized.h"
#include "providers/cpu/kernels/recurrent/sweep.h"

namespace pfrt::cpu {
namespace {

template <typename T>
Kernel sweep_kernel(Layer layer, typename Sweep<T>::Packed packed = Sweep<T>::Packed::kNone) {
  Kernel kernel;
  const double units = static_cast<double>(layer.directions * layer.gates() * layer.hidden);
  kernel.flops = 2.0 * static_cast<double>(layer.time) * static_cast<double>(layer.batch) * units *
                 static_cast<double>(layer.features + layer.hidden);
  const auto sweep = std::make_shared<const Sweep<T>>(std::move(layer), packed);
  kernel.scratch_bytes = sweep->scratch_bytes();
  kernel.run = [sweep](const Run& run) { return sweep->run(run); };
  return kernel;
}

Result<Kernel> make_recurrent(const KernelRequest& node) {
  PFRT_ASSIGN(Layer layer, Layer::make(node));
  return layer.dtype == PFRT_DTYPE_FLOAT64 ? sweep_kernel<double>(std::move(layer))
                                           : sweep_kernel<float>(std::move(layer));
}

std::optional<PackedInput> pack_recurrent(const SnapshotNode& node) {
  const auto r = node.input_dims(kInputR);
  if (node.input_dtype(kInputX) != PFRT_DTYPE_FLOAT32 || !node.is_constant(kInputR) ||
      r.size() != 3 || r[2] < 1 || r[1] % r[2] != 0)
    return std::nullopt;
  const auto w = node.input_dims(kInputW);
  const bool both = takes_packed_projection() && node.is_constant(kInputW) && w.size() == 3 &&
                    w[0] == r[0] && w[1] == r[1] && w[2] > 0;
  return pack_recurrent_weights(r[0], r[1] / r[2], r[2], both ? w[2] : 0);
}

Result<Kernel> make_packed_recurrent(const KernelRequest& node, const PackedInput& packed) {
  PFRT_ASSIGN(Layer layer, Layer::make(node));
  const bool both = packed.has(kInputW);
  if (packed.recipe != pack_recurrent_weights(layer.directions, layer.gates(), layer.hidden,
                                              both ? layer.features : 0)
                           .recipe)
    return make_recurrent(node);
  using Packed = Sweep<float>::Packed;
  Kernel kernel = sweep_kernel<float>(std::move(layer), both ? Packed::kBoth : Packed::kRecurrent);
  kernel.packed_alone = true;
  return kernel;
}

constexpr KernelRow recurrent_row(std::string_view op, std::string_view name) {
  return with_pack({"", op, kFloats, name, "generic", nullptr,
                    make_packed<make_recurrent, make_packed_recurrent>},
                   pack_recurrent, kPackOptional | kOptionalOutputs | kChecksInputs);
}

constexpr KernelRow kRows[] = {
    recurrent_row("RNN", "rnn_packed"),
    recurrent_row("GRU", "gru_packed"),
    recurrent_row("LSTM", "lstm_packed"),
    with_pack({"com.microsoft", "DynamicQuantizeLSTM", kFloat32, "dynamic_quantize_lstm", "generic",
               nullptr, make_quantized_lstm},
              pack_quantized_lstm, kPackOptional | kChecksInputs),
};

}  // namespace

std::span<const KernelRow> recurrent_kernels() { return kRows; }

}  // namespace pfrt::cpu
