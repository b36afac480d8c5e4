// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/image_source.h"

#include <algorithm>
#include <type_traits>

namespace pfrt::cpu {

template <typename T>
ImageSource<T>::ImageSource(const WindowRows& rows, int64_t channel_size, const void* data,
                            pfrt_dtype dtype, int64_t offset, T zero)
    : rows_(rows),
      channel_size_(channel_size),
      data_(data),
      load_(std::is_same_v<T, float> && dtype == PFRT_DTYPE_FLOAT32 ? nullptr : load_fn<T>(dtype)),
      offset_(offset),
      zero_(zero) {}

template <typename T>
void ImageSource<T>::copy(T* out, int64_t row_start, const WindowRows::Span& span, int64_t from,
                          int64_t n) const {
  const int64_t begin = std::clamp(span.begin - from, int64_t{0}, n);
  const int64_t end = std::clamp(span.end - from, begin, n);
  for (int64_t i = 0; i < begin; ++i) out[i] = T{0};
  for (int64_t i = end; i < n; ++i) out[i] = T{0};
  if (begin == end) return;
  const int64_t stride = rows_.stride();
  const int64_t at = row_start + span.first + (from + begin) * stride;
  if (load_ == nullptr) {
    const T* in = static_cast<const T*>(data_) + at;
    T* const to = out + begin;
    const int64_t run = end - begin;
    if (stride == 1) {
      for (int64_t i = 0; i < run; ++i) to[i] = in[i];
    } else {
      for (int64_t i = 0; i < run; ++i) to[i] = in[i * stride];
    }
    return;
  }
  load_(out + begin, data_, at, stride, end - begin);
  if (zero_ != T{0})
    for (int64_t i = begin; i < end; ++i) out[i] -= zero_;
}

template <typename T>
void ImageSource<T>::pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                          int64_t kn) const {
  const int64_t length = rows_.row_length(), taps = rows_.row_taps(), tap_rows = rows_.tap_rows();
  for (int64_t j = 0; j < count;) {
    const int64_t row = (first + j) / length, from = (first + j) % length;
    const int64_t n = std::min(length - from, count - j);
    int64_t channel = k0 / (taps * tap_rows), tap_row = k0 / taps % tap_rows, tap = k0 % taps;
    int64_t start = rows_.row_offset(row, tap_row);
    for (int64_t k = 0; k < kn; ++k) {
      T* const to = out + k * width + j;
      if (start < 0) {
        std::fill(to, to + n, T{0});
      } else {
        copy(to, offset_ + channel * channel_size_ + start, rows_.span(tap), from, n);
      }
      if (++tap < taps) continue;
      tap = 0;
      if (++tap_row == tap_rows) {
        tap_row = 0;
        ++channel;
      }
      start = rows_.row_offset(row, tap_row);
    }
    j += n;
  }
  if (count < width)
    for (int64_t k = 0; k < kn; ++k)
      std::fill(out + k * width + count, out + (k + 1) * width, T{0});
}

template class ImageSource<float>;
template class ImageSource<double>;
template class ImageSource<uint32_t>;

}  // namespace pfrt::cpu
