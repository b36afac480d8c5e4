// SPDX-License-Identifier: Apache-2.0
//
// The blocked matmul that MatMul, Gemm, Einsum and the convolutions share. C is divided into tiles;
// a tile is computed by one worker, which packs panels of A and B into its scratch as it goes:
// nothing is kept between runs. K is divided into passes that are added in order, so an element of
// C depends on its row, its column, K and the size of C alone. Where it is faster, float32 is
// multiplied on tiles of bfloat16 (split_matmul.h). Objects are immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <type_traits>

#include "providers/cpu/elements/float_16bit.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/matmul/micro.h"
#include "providers/cpu/kernels/matmul/panel_source.h"

namespace pfrt::cpu {

class PanelMicrokernel;
// The microkernel that multiplies rows where they lie; null where there is none.
const PanelMicrokernel* rows_microkernel();

// A tensor with strides; 16-bit floats and small integers are widened on the way, zero points
// subtracted.
template <typename T>
class StridedSource : public PanelSource<T> {
 public:
  StridedSource(const void* data, pfrt_dtype dtype, int64_t offset, int64_t outer_stride,
                int64_t k_stride);
  // Subtracts zero[j * zero_stride] from outer position j.
  void set_zero(const T* zero, int64_t zero_stride) { zero_ = zero, zero_stride_ = zero_stride; }
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override;
  const T* in_place(int64_t first, int64_t k0, int64_t* k_stride) const override;
  const T* lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const override;

 private:
  const void* data_;
  LoadFn<T> load_;
  WidenLinesFn widen_lines_;  // of 16-bit floats to float
  int64_t offset_, outer_stride_, k_stride_;
  bool same_type_;
  const T* zero_ = nullptr;
  int64_t zero_stride_ = 0;
};

template <typename T>
class Gemm {
 public:
  static constexpr int64_t kDepth = 256;  // k of a pass, whose products are added up apart

  // An empty matmul.
  Gemm() : micro_(&micro_kernels<T>()), dots_(&dot_kernels()), lines_(&line_kernels()) {
    if constexpr (std::is_same_v<T, float>) panels_ = rows_microkernel();
  }
  // |batch| such matmuls run in parallel; only the tile size depends on that.
  Gemm(int64_t m, int64_t n, int64_t k, int64_t batch = 1) : Gemm(Gemm(), m, n, k, batch) {}
  // Takes the microkernels of |like|: choosing them takes longer than a small matmul, where only
  // the run knows the size.
  Gemm(const Gemm& like, int64_t m, int64_t n, int64_t k, int64_t batch = 1);

  // Tiles of one matmul; 0 when C is empty.
  int64_t tiles() const { return row_tiles_ * col_tiles_; }
  GemmTile tile(int64_t index) const;
  int64_t max_tile_elements() const { return tile_rows_ * tile_cols_; }
  // The largest tile that compute takes.
  int64_t tile_rows() const { return tile_rows_; }
  int64_t tile_cols() const { return tile_cols_; }
  // Scratch that compute needs, a multiple of 64 bytes.
  uint64_t scratch_bytes() const { return static_cast<uint64_t>(scratch_) * sizeof(T); }
  // The most scratch that any matmul up to |n| columns and |k| needs.
  static uint64_t most_scratch_bytes(int64_t n, int64_t k);
  // c[i * ldc + j] = sum over k of a(tile.row + i, k) * b(tile.col + j, k). |c| is the tile's first
  // element. Leaves early when |run| is stopped.
  void compute(const Run& run, const GemmTile& tile, const PanelSource<T>& a,
               const PanelSource<T>& b, T* c, int64_t ldc, T* scratch) const;
  // Computes in arithmetic of T, whatever the run says; otherwise as compute.
  void compute_reference(const Run& run, const GemmTile& tile, const PanelSource<T>& a,
                         const PanelSource<T>& b, T* c, int64_t ldc, T* scratch) const;

  // Whether factors are split to terms of bfloat16.
  bool splits(Precision precision) const { return split_ && !is_plain(precision); }

 private:
  void multiply(const Run& run, const GemmTile& tile, int64_t k0, int64_t kn,
                const PanelSource<T>& a, const PanelSource<T>& b, T* c, int64_t ldc,
                T* scratch) const;
  // Computes a few rows where k is contiguous in both factors; returns false where it is not.
  bool multiply_lines(const Run& run, const GemmTile& tile, const PanelSource<float>& a,
                      const PanelSource<float>& b, float* c, int64_t ldc) const;
  // Computes a few rows where columns are contiguous; returns false where they are not.
  bool multiply_columns(const Run& run, const GemmTile& tile, const PanelSource<float>& a,
                        const PanelSource<float>& b, float* c, int64_t ldc, float* scratch) const;
  // Multiplies rows that are read where they lie, to the bits of multiply; returns false where that
  // does not pay.
  bool multiply_rows(const Run& run, const GemmTile& tile, int64_t k0, int64_t kn,
                     const PanelSource<float>& a, const PanelSource<float>& b, float* c,
                     int64_t ldc, float* scratch) const;
  const MicroKernels<T>* micro_;
  const DotKernels* dots_;
  const LineKernels* lines_;
  const PanelMicrokernel* panels_ = nullptr;  // of multiply_rows, or null
  int64_t m_ = 0, n_ = 0, k_ = 0;
  int64_t tile_rows_ = 0, tile_cols_ = 0, row_tiles_ = 0, col_tiles_ = 0;
  int64_t scratch_ = 0;  // elements
  bool split_ = false;   // split_matmul.h
};

// |make| with a StoreFn of the type that products of |dtype| are computed in. Signed integers are
// computed as unsigned ones, which wrap the same; what is not computed in its own type is stored by
// the function, null otherwise.
template <typename Make>
auto in_compute_type(pfrt_dtype dtype, const Make& make) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return make(StoreFn<float>(nullptr));
    case PFRT_DTYPE_FLOAT64:
      return make(StoreFn<double>(nullptr));
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_UINT32:
      return make(StoreFn<uint32_t>(nullptr));
    case PFRT_DTYPE_INT64:
    case PFRT_DTYPE_UINT64:
      return make(StoreFn<uint64_t>(nullptr));
    default:
      return make(store_fn<float>(dtype));
  }
}

}  // namespace pfrt::cpu
