// SPDX-License-Identifier: Apache-2.0
//
// The signal family: Fourier transforms, windows, mel weights. Rows are constants that live as long
// as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> signal_kernels();

// transform.cc
Result<Kernel> make_dft(const KernelRequest& node);
Result<Kernel> make_stft(const KernelRequest& node);
// shapes.cc
Result<Kernel> make_hann(const KernelRequest& node);
Result<Kernel> make_hamming(const KernelRequest& node);
Result<Kernel> make_blackman(const KernelRequest& node);
Result<Kernel> make_mel(const KernelRequest& node);

}  // namespace pfrt::cpu
