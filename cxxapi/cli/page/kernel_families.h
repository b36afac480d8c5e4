// SPDX-License-Identifier: Apache-2.0
//
// The families of kernels by which a profile's page colours its steps. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace cli {

struct KernelFamily {
  std::string_view name, text;  // for the style sheet and for people
};
// The last one is of all that no other has.
std::vector<KernelFamily> kernel_families();
// Index of a step's family. Of a fused step, "conv_direct+relu", the first kernel decides. A kernel
// of an unknown name has the family of the first of |ops|, which are joined by commas.
size_t kernel_family(std::string_view kernel, std::string_view ops);

}  // namespace cli
