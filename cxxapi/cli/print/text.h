// SPDX-License-Identifier: Apache-2.0
//
// Numbers, shapes and lines as a person reads them. Pure functions.
#pragma once

#include <cstdint>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <vector>

namespace cli {

// Writes "[1,3,224,224]"; for a description also "[batch,3,?]", and "[...]" when the rank is
// unknown.
std::string shape_text(const std::vector<int64_t>& shape);
std::string shape_text(const pyflame_rt::TensorInfo& info);
// Writes "tensor(float32) [1,3]".
std::string describe(const pyflame_rt::NodeArg& arg);
std::string bytes_text(uint64_t bytes);  // "1.5 MiB"
std::string time_text(double seconds);   // "3.21 ms"
std::string count_text(double count);    // "12.5 M"; for FLOPs
std::string number_text(double value);   // "%.4g"
// Makes a single line: line breaks become "; ".
std::string one_line(const std::string& text);

}  // namespace cli
