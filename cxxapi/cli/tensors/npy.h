// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files (format versions 1 to 3). No state.
#pragma once

#include <pyflame_rt/tensor.hpp>
#include <string>

namespace cli {

// Reads numbers of either byte order and memory order, bools and strings. Throws UsageError for any
// other file.
pyflame_rt::Tensor read_npy(const std::string& path);
// Writes a tensor. Types that NumPy lacks are widened without loss: bfloat16 and 8- and 4-bit
// floats to float32, packed integers to int8 and uint8.
void write_npy(const std::string& path, const pyflame_rt::Tensor& tensor);

// Reads the whole file; throws UsageError when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace cli
