// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/sources.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

template <typename T>
constexpr pfrt_dtype own_type() {
  return sizeof(T) == sizeof(float) ? PFRT_DTYPE_FLOAT32 : PFRT_DTYPE_FLOAT64;
}

}  // namespace
namespace {

// Column |j| of a panel: out[k * width + j] = element |at| + k of |data|, zero where |at| < 0.
template <typename T>
void pack_column(T* out, int64_t width, int64_t j, LoadFn<T> load, const void* data, int64_t at,
                 int64_t kn) {
  constexpr int64_t kLine = 256;
  T line[kLine];
  if (at < 0) std::fill_n(line, std::min(kLine, kn), T{0});
  for (int64_t k = 0; k < kn; k += kLine) {
    const int64_t n = std::min(kLine, kn - k);
    if (at >= 0) load(line, data, at + k, 1, n);
    T* to = out + k * width + j;
    for (int64_t i = 0; i < n; ++i) to[i * width] = line[i];
  }
}

}  // namespace

template <typename T>
void GateRows<T>::pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                       int64_t kn) const {
  const int64_t gate = first / stride_, unit = first % stride_;
  if (unit + count > stride_) {  // columns of several gates
    const LoadFn<T> load = load_fn<T>(dtype_);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t g = (first + j) / stride_, u = (first + j) % stride_;
      const bool inside = j < count && u < hidden_;
      pack_column(out, width, j, load, data_,
                  inside ? offset_ + (g * hidden_ + u) * depth_ + k0 : -1, kn);
    }
    return;
  }
  const StridedSource<T> rows(data_, dtype_, offset_ + gate * hidden_ * depth_, depth_, 1);
  const int64_t inside = std::clamp<int64_t>(hidden_ - unit, 0, count);
  rows.pack(out, width, unit, inside, k0, kn);
}

template <typename T>
void SequenceRows<T>::pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                           int64_t kn) const {
  for (int64_t j = 0; j < width; ++j) {
    const int64_t s = step_ + (first + j) / rows_, b = row_ + (first + j) % rows_;
    int64_t at = -1;
    if (j < count && s < lengths_[b])
      at = layer_.x_row(reversed_ ? lengths_[b] - 1 - s : s, b) + k0;
    pack_column(out, width, j, load_, x_, at, kn);
  }
}

template <typename T>
const T* GateRows<T>::lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const {
  if (dtype_ != own_type<T>() || stride_ != hidden_) return nullptr;
  *outer_stride = depth_;
  return static_cast<const T*>(data_) + offset_ + first * depth_ + k0;
}

template <typename T>
const T* SequenceRows<T>::lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const {
  if (layer_.dtype != own_type<T>() || rows_ != 1 || reversed_ || lengths_[row_] < layer_.time)
    return nullptr;
  *outer_stride = layer_.x_row(1, row_) - layer_.x_row(0, row_);
  return static_cast<const T*>(x_) + layer_.x_row(step_ + first, row_) + k0;
}

template class GateRows<float>;
template class GateRows<double>;
template class SequenceRows<float>;
template class SequenceRows<double>;

}  // namespace pfrt::cpu
