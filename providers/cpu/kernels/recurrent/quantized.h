// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft's DynamicQuantizeLSTM: weights are int8 or uint8; X and, at each step, the hidden
// state are quantized to uint8 by their own range before they are multiplied. Thread-safe.
#pragma once

#include <optional>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::optional<PackedInput> pack_quantized_lstm(const SnapshotNode& node);
Result<Kernel> make_quantized_lstm(const KernelRequest& node);

}  // namespace pfrt::cpu
