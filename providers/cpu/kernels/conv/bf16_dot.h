// SPDX-License-Identifier: Apache-2.0
//
// Direct convolutions (direct_plan.h) by dot products of pairs of bfloat16: two neighbouring
// channels, each rounded, are one. Weights become pairs once, by the host, the image as it is
// copied to a band; sums are float32. Products below the normal range count as 0. Sums that are not
// finite are computed again from the image as it is, and so are those of images and weights whose
// numbers are all below 2^-100. For AVX512-BF16. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/conv/direct_plan.h"

namespace pfrt::cpu {

// Packs weights as pairs, and behind them the reach of each panel (matmul/bf16_pairs.h).
PackedInput pack_bf16_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                              int64_t taps_x);

// Computes what direct_sums does, for a plan of any elements. Sums of pairs that are not to be
// trusted are computed again.
void bf16_direct_sums(const Run& run, const DirectPlan& plan, const DirectTask& task, int64_t image,
                      float* out, int64_t out_panel);

}  // namespace pfrt::cpu
