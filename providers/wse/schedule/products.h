// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on a rectangle: their phases, the memory that a PE needs for them, and their
// values. Tiles are those of a PE; ragged edges are padded, as the published programs do. Pure
// functions of their arguments.
#pragma once

#include "providers/wse/schedule/schedule.h"

namespace pfrt::wse {

enum class ProductAlgorithm : uint8_t { kMeshGemm, kCannon, kSumma, kMeshGemv };
std::string_view name_of(ProductAlgorithm algorithm);

// A PE's tiles of C[m, n] += A[m, k] B[k, n].
struct Tile {
  int64_t m, k, n;
};

struct GemmOptions {
  ProductAlgorithm algorithm = ProductAlgorithm::kMeshGemm;
  bool aligned = false;  // A lies in its first place already
  int64_t repeats = 1;   // of each step's product, as a published sweep has it
};

// Adds the phases of a product of two matrices that are both spread over a square grid.
void gemm(Schedule& schedule, const Tile& tile, const GemmOptions& options);
// C = A B^T, of which A stays and B shifts along y; parts of C are joined along x in each step.
void gemm_transposed(Schedule& schedule, const Tile& tile);
// y = x W: the product of a vector that lies along |axis| with a matrix, joined along |axis|.
void gemv_local(Schedule& schedule, const Tile& tile);
void gemv(Schedule& schedule, const Tile& tile, Axis axis, int64_t group = 0);

// Bytes of a PE: tiles twice where they shift, and the result.
int64_t gemm_bytes(const Tile& tile, Arithmetic arithmetic, ProductAlgorithm algorithm);

// Row-major C[m, n] = A[m, k] B[k, n] + C, as |algorithm| on a grid of |grid| x |grid| PEs computes
// it; all are values of |arithmetic|. |parallel| runs its argument for 0 ... n-1, in any order and
// on any threads, and returns false once it is to stop.
struct GemmValues {
  ProductAlgorithm algorithm;
  Arithmetic arithmetic;
  int64_t m, k, n, grid, group;
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
};
using Parallel = std::function<bool(int64_t, const std::function<void(int64_t)>&)>;
bool gemm_values(const GemmValues& product, const Parallel& parallel);

}  // namespace pfrt::wse
