// SPDX-License-Identifier: Apache-2.0
//
// Convolutions with one position whose window is the image: behind a global pooling, or in place of
// a fully connected layer. Images are the rows of a product, and the weights of an output channel
// are a column, both as they lie in memory. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::string refuse_conv_one_position(const KernelRequest& node);
std::optional<PackedInput> pack_conv_one_position(const SnapshotNode& node);
Result<Kernel> make_conv_one_position(const KernelRequest& node);

}  // namespace pfrt::cpu
