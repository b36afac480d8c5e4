// SPDX-License-Identifier: Apache-2.0
//
// Shared by the operators of the matmul family: a tile computed and written in the output's type,
// batch dimensions broadcast to offsets, and the make functions of the family's table. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"

namespace pfrt::cpu {

// The place of the results: a row-major matrix inside a tensor. |store| null: the tensor's elements
// are T.
template <typename T>
struct GemmOut {
  void* data;
  StoreFn<T> store;
  int64_t offset, ldc;
};

// Computes a tile and hands each row to finish(row, i, j, n), with C's row i and first column j,
// before it is stored. The tensor is the run's output 0. |scratch| holds gemm_scratch bytes.
template <typename T, typename Finish>
void compute_gemm_tile(const Run& run, const Gemm<T>& gemm, const GemmTile& tile,
                       const PanelSource<T>& a, const PanelSource<T>& b, const GemmOut<T>& out,
                       T* scratch, Finish&& finish) {
  const int64_t start = out.offset + tile.row * out.ldc + tile.col;
  T* const spare = scratch + gemm.scratch_bytes() / sizeof(T);
  T* const c = out.store ? spare : static_cast<T*>(out.data) + start;
  const int64_t ldc = out.store ? tile.cols : out.ldc;
  gemm.compute(run, tile, a, b, c, ldc, scratch);
  for (int64_t i = 0; i < tile.rows; ++i) {
    finish(c + i * ldc, tile.row + i, tile.col, tile.cols);
    if (out.store) out.store(out.data, start + i * out.ldc, c + i * ldc, tile.cols);
    if (tile.cols < out.ldc)
      run.apply_epilogue(start + i * out.ldc, start + i * out.ldc + tile.cols);
  }
  if (tile.cols == out.ldc) run.apply_epilogue(start, start + tile.rows * tile.cols);
}

template <typename T>
uint64_t gemm_scratch(const Gemm<T>& gemm, bool stored) {
  return gemm.scratch_bytes() +
         (stored ? static_cast<uint64_t>(gemm.max_tile_elements()) * sizeof(T) : 0);
}

// The dimensions of a (batched) matmul by NumPy's rules; offsets count elements.
struct MatMulShape {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  // Offsets at which the matrices of batch index |at| begin in A and in B.
  int64_t a_offset(int64_t at) const { return offset(at, &Axis::a); }
  int64_t b_offset(int64_t at) const { return offset(at, &Axis::b); }
  // Dimensions of the batch, the last one fastest. Neighbours whose strides fit together are one.
  struct Axis {
    int64_t size, a, b;
  };
  std::vector<Axis> axes;

  // The planned output has as many elements.
  Status check(const SnapshotNode& node) const;

 private:
  int64_t offset(int64_t at, int64_t Axis::*step) const;
};
Result<MatMulShape> matmul_shape(std::span<const int64_t> a, std::span<const int64_t> b);

Result<Kernel> make_matmul(const KernelRequest& node);
std::optional<PackedInput> pack_matmul(const SnapshotNode& node);
std::optional<PackedInput> pack_gemm(const SnapshotNode& node);
Result<Kernel> make_gemm(const KernelRequest& node);
Result<Kernel> make_packed_matmul(const KernelRequest& node, const PackedInput& packed);
Result<Kernel> make_packed_gemm(const KernelRequest& node, const PackedInput& packed);
Result<Kernel> make_matmul_integer(const KernelRequest& node);
Result<Kernel> make_qlinear_matmul(const KernelRequest& node);
Result<Kernel> make_einsum(const KernelRequest& node);
std::optional<PackedInput> pack_matmul_nbits(const SnapshotNode& node);
Result<Kernel> make_matmul_nbits(const KernelRequest& node);
Result<Kernel> make_packed_matmul_nbits(const KernelRequest& node, const PackedInput& packed);
std::string refuse_matmul_integer(const KernelRequest& node);
std::string refuse_qlinear_matmul(const KernelRequest& node);
std::string refuse_einsum(const KernelRequest& node);

}  // namespace pfrt::cpu
