// SPDX-License-Identifier: Apache-2.0
//
// The image of a convolution as the right side of a matrix product: k runs over channels and taps,
// columns over positions. Panels are gathered straight from the image; no column buffer is made.
// Immutable; thread-safe.
#pragma once

#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

template <typename T>
class ImageSource final : public PanelSource<T> {
 public:
  // Channels of one group of one image start at element |offset| of |data|. |zero| is subtracted
  // from every pixel; pads are 0 after that.
  ImageSource(const WindowRows& rows, int64_t channel_size, const void* data, pfrt_dtype dtype,
              int64_t offset, T zero);
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override;

 private:
  // Copies what one tap sees at positions [from, from + n) of one row.
  void copy(T* out, int64_t row_start, const WindowRows::Span& span, int64_t from, int64_t n) const;
  const WindowRows& rows_;
  int64_t channel_size_;
  const void* data_;
  LoadFn<T> load_;
  int64_t offset_;
  T zero_;
};

}  // namespace pfrt::cpu
