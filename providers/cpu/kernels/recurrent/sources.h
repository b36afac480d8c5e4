// SPDX-License-Identifier: Apache-2.0
//
// The matrices of a recurrent layer as the matmul reads them. Objects borrow what they describe;
// immutable, thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/recurrent/layer.h"

namespace pfrt::cpu {

// W or R of one direction: outer index |gate| * |stride| + unit, zero from unit |hidden| on.
template <typename T>
class GateRows final : public PanelSource<T> {
 public:
  // |offset| is the direction's first element, |depth| the length of a row.
  GateRows(const void* data, pfrt_dtype dtype, int64_t offset, int64_t depth, int64_t hidden,
           int64_t stride)
      : data_(data),
        dtype_(dtype),
        offset_(offset),
        depth_(depth),
        hidden_(hidden),
        stride_(stride) {}
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override;
  const T* lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const override;

 private:
  const void* data_;
  pfrt_dtype dtype_;
  int64_t offset_, depth_, hidden_, stride_;
};

// Rows of X in the order in which one direction reads them: outer index s * |rows| + b is step
// |step| + s of sequence |row| + b. Steps past a sequence's end are zero.
template <typename T>
class SequenceRows final : public PanelSource<T> {
 public:
  SequenceRows(const Layer& layer, const void* x, const int64_t* lengths, bool reversed,
               int64_t step, int64_t row, int64_t rows)
      : layer_(layer),
        x_(x),
        load_(load_fn<T>(layer.dtype)),
        lengths_(lengths),
        reversed_(reversed),
        step_(step),
        row_(row),
        rows_(rows) {}
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override;
  const T* lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const override;

 private:
  const Layer& layer_;
  const void* x_;
  LoadFn<T> load_;
  const int64_t* lengths_;
  bool reversed_;
  int64_t step_, row_, rows_;
};

extern template class GateRows<float>;
extern template class GateRows<double>;
extern template class SequenceRows<float>;
extern template class SequenceRows<double>;

}  // namespace pfrt::cpu
