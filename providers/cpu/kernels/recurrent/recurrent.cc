// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/recurrent.h"

#include <utility>

#include "providers/cpu/kernels/recurrent/quantized.h"
#include "providers/cpu/kernels/recurrent/sweep.h"

namespace pfrt::cpu {
namespace {

template <typename T>
Kernel sweep_kernel(Layer layer) {
  Kernel kernel;
  const double units = static_cast<double>(layer.directions * layer.gates() * layer.hidden);
  kernel.flops = 2.0 * static_cast<double>(layer.time) * static_cast<double>(layer.batch) * units *
                 static_cast<double>(layer.features + layer.hidden);
  const auto sweep = std::make_shared<const Sweep<T>>(std::move(layer));
  kernel.scratch_bytes = sweep->scratch_bytes();
  kernel.run = [sweep](const Run& run) { return sweep->run(run); };
  return kernel;
}

Result<Kernel> make_recurrent(const SnapshotNode& node) {
  PFRT_ASSIGN(Layer layer, Layer::make(node));
  return layer.dtype == PFRT_DTYPE_FLOAT64 ? sweep_kernel<double>(std::move(layer))
                                           : sweep_kernel<float>(std::move(layer));
}

constexpr KernelRow kRows[] = {
    {"", "RNN", kFloats, "rnn_packed", "generic", nullptr, make_recurrent},
    {"", "GRU", kFloats, "gru_packed", "generic", nullptr, make_recurrent},
    {"", "LSTM", kFloats, "lstm_packed", "generic", nullptr, make_recurrent},
    {"com.microsoft", "DynamicQuantizeLSTM", kFloat32, "dynamic_quantize_lstm_ref", "generic",
     nullptr, make_quantized_lstm},
};

}  // namespace

std::span<const KernelRow> recurrent_kernels() { return kRows; }

}  // namespace pfrt::cpu
