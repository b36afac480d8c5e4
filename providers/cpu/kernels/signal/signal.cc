// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/signal/signal.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    checks_inputs({"", "DFT", kFloats, "dft_mixed_radix", "generic", nullptr, make_dft}),
    checks_inputs({"", "STFT", kFloats, "stft_mixed_radix", "generic", nullptr, make_stft}),
    {"", "HannWindow", kIndices, "hann_ref", "generic", nullptr, make_hann},
    {"", "HammingWindow", kIndices, "hamming_ref", "generic", nullptr, make_hamming},
    {"", "BlackmanWindow", kIndices, "blackman_ref", "generic", nullptr, make_blackman},
    checks_inputs({"", "MelWeightMatrix", kIndices, "mel_ref", "generic", nullptr, make_mel}),
};

}  // namespace

std::span<const KernelRow> signal_kernels() { return kRows; }

}  // namespace pfrt::cpu
