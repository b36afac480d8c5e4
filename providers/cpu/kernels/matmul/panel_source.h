// SPDX-License-Identifier: Apache-2.0
//
// A factor of a blocked matmul, and the tile of its result that one worker computes.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// A matrix as the matmul reads it: by an outer index (row of A, column of B) and k.
template <typename T>
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  // out[k * width + j] = element (first + j, k0 + k) for j < count, 0 for count <= j < width; k <
  // kn.
  virtual void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                    int64_t kn) const = 0;
  // The address of element (first, k0) if elements (first + j, k0) are contiguous there, |k_stride|
  // apart in k.
  virtual const T* in_place(int64_t first, int64_t k0, int64_t* k_stride) const {
    static_cast<void>(first), static_cast<void>(k0), static_cast<void>(k_stride);
    return nullptr;
  }
  // The address of element (first, k0) if elements (first, k0 + k) are contiguous there,
  // |outer_stride| apart in the outer index.
  virtual const T* lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const {
    static_cast<void>(first), static_cast<void>(k0), static_cast<void>(outer_stride);
    return nullptr;
  }
};

struct GemmTile {
  int64_t row, rows, col, cols;
};

}  // namespace pfrt::cpu
