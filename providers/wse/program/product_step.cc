// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/product_step.h"

#include <algorithm>

namespace pfrt::wse {
namespace {

using Floats = std::vector<float>;

Floats rounded(Arithmetic type, const Tensor& tensor) {
  Floats out(static_cast<size_t>(tensor.count()));
  round_all(type, tensor.as(), out.data(), tensor.count());
  return out;
}

// Transposes |rows| x |columns|.
Floats turned(const Floats& from, int64_t rows, int64_t columns) {
  Floats out(from.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * columns + j)];
  return out;
}

GemmValues product_of(const Call& call, const Mapping& mapping) {
  GemmValues out{};
  out.algorithm = mapping.algorithm;
  out.arithmetic = call.arithmetic;
  out.grid = mapping.grid;
  out.group = mapping.group;
  return out;
}

// Offset in |tensor| of matrix |at| of a broadcast batch of |dims|.
int64_t matrix_of(const Tensor& tensor, std::span<const int64_t> dims, int64_t at) {
  int64_t index = 0, stride = 1;
  auto d = static_cast<int64_t>(dims.size());
  for (int64_t k = tensor.rank() - 2; k > 0; --k, --d) {
    const int64_t place = at % dims[static_cast<size_t>(d - 1)];
    at /= dims[static_cast<size_t>(d - 1)];
    const int64_t size = tensor.dims[static_cast<size_t>(k - 1)];
    if (size != 1) index += place * stride;
    stride *= size;
  }
  return index;
}

bool run_matmul(const Call& call, const Mapping& mapping, const Parallel& parallel) {
  const Tensor &a = call.in[0], &b = call.in[1], &c = call.out[0];
  std::fill_n(c.as(), c.count(), 0.0F);
  if (c.count() == 0) return true;
  const Floats left = rounded(call.arithmetic, a), right = rounded(call.arithmetic, b);
  GemmValues p = product_of(call, mapping);
  p.k = a.dims.back();
  p.n = b.dims.back();
  p.m = a.dims[a.dims.size() - 2];
  const std::span<const int64_t> batch(c.dims.data(), c.dims.size() - 2);
  const bool one = element_count(b.dims.data(), b.dims.size() - 2) == 1;
  if (one) p.m = c.count() / p.n;  // all rows by one matrix
  const int64_t count = one ? 1 : element_count(batch.data(), batch.size());
  p.a_stride = p.k;
  p.b_stride = p.c_stride = p.n;
  for (int64_t i = 0; i < count; ++i) {
    p.a = left.data() + (one ? 0 : matrix_of(a, batch, i)) * p.m * p.k;
    p.b = right.data() + (one ? 0 : matrix_of(b, batch, i)) * p.k * p.n;
    p.c = c.as() + i * p.m * p.n;
    if (!gemm_values(p, parallel)) return false;
  }
  return true;
}

// c = alpha c + beta addend, each operation rounded.
void scale_and_add(const Call& call, float alpha, float beta, const Tensor& addend) {
  const Arithmetic type = call.arithmetic;
  const Tensor& c = call.out[0];
  const int64_t columns = c.dims[1];
  const int64_t step_row =
      addend.data && addend.rank() == 2 && addend.dims[0] != 1 ? addend.dims[1] : 0;
  const bool wide = addend.data && addend.rank() > 0 && addend.dims.back() != 1;
  const float scale = round_to(type, alpha), weight = round_to(type, beta);
  for (int64_t i = 0; i < c.count(); ++i) {
    float& to = c.as()[i];
    if (scale != 1) to = round_to(type, scale * to);
    if (addend.data == nullptr) continue;
    const int64_t at = i / columns * step_row + (wide ? i % columns : 0);
    float term = round_to(type, addend.as()[at]);
    if (weight != 1) term = round_to(type, weight * term);
    to = round_to(type, to + term);
  }
}

bool run_gemm(const Call& call, const Mapping& mapping, const Parallel& parallel) {
  const Tensor &a = call.in[0], &b = call.in[1], &c = call.out[0];
  std::fill_n(c.as(), c.count(), 0.0F);
  Floats left = rounded(call.arithmetic, a), right = rounded(call.arithmetic, b);
  if (call.node.attr_int("transA", 0) != 0) left = turned(left, a.dims[0], a.dims[1]);
  if (call.node.attr_int("transB", 0) != 0) right = turned(right, b.dims[0], b.dims[1]);
  GemmValues p = product_of(call, mapping);
  p.m = c.dims[0];
  p.n = c.dims[1];
  p.k = call.node.attr_int("transA", 0) != 0 ? a.dims[0] : a.dims[1];
  p.a = left.data();
  p.b = right.data();
  p.c = c.as();
  p.a_stride = p.k;
  p.b_stride = p.c_stride = p.n;
  if (!gemm_values(p, parallel)) return false;
  scale_and_add(call, call.node.attr_float("alpha", 1), call.node.attr_float("beta", 1),
                call.in.size() > 2 ? call.in[2] : Tensor{});
  return true;
}

// A convolution's sizes; one-dimensional ones have a height of 1.
struct Window {
  int64_t images, channels, height, width;  // of the input
  int64_t kernel_height, kernel_width;
  int64_t out_height, out_width;
  int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;

  explicit Window(const Call& call) {
    const Dims &in = call.in[0].dims, &weights = call.in[1].dims, &out = call.out[0].dims;
    const bool flat = in.size() == 3;
    images = in[0];
    channels = in[1];
    height = flat ? 1 : in[2];
    width = in.back();
    kernel_height = flat ? 1 : weights[2];
    kernel_width = weights.back();
    out_height = flat ? 1 : out[2];
    out_width = out.back();
    const auto pair = [&](std::string_view name, int64_t& y, int64_t& x) {
      const auto values = call.node.attr_ints(name);
      if (values.empty()) return;
      if (!flat) y = values[0];
      x = values[flat ? 0 : 1];
    };
    pair("strides", stride_y, stride_x);
    pair("dilations", dilation_y, dilation_x);
    pair("pads", pad_y, pad_x);
    const std::string_view automatic = call.node.attr_string("auto_pad", "NOTSET");
    if (!automatic.starts_with("SAME")) return;
    // Rows or columns that the windows need before the image: half of all that they need beyond it.
    const auto before = [&](int64_t in_size, int64_t out_size, int64_t stride, int64_t dilation,
                            int64_t kernel) {
      const int64_t reach = (out_size - 1) * stride + (kernel - 1) * dilation + 1;
      const int64_t missing = std::max<int64_t>(0, reach - in_size);
      return automatic == "SAME_LOWER" ? (missing + 1) / 2 : missing / 2;
    };
    pad_y = flat ? 0 : before(height, out_height, stride_y, dilation_y, kernel_height);
    pad_x = before(width, out_width, stride_x, dilation_x, kernel_width);
  }
  int64_t pixels() const { return out_height * out_width; }
};

// The windows of channels [first, first + count) as rows of a matrix.
void gather(const Call& call, const Window& w, int64_t first, int64_t count, float* out) {
  const Arithmetic type = call.arithmetic;
  for (int64_t image = 0; image < w.images; ++image)
    for (int64_t pixel = 0; pixel < w.pixels(); ++pixel) {
      const int64_t top = pixel / w.out_width * w.stride_y - w.pad_y;
      const int64_t left = pixel % w.out_width * w.stride_x - w.pad_x;
      for (int64_t c = first; c < first + count; ++c) {
        const float* const plane = call.in[0].as() + (image * w.channels + c) * w.height * w.width;
        for (int64_t ky = 0; ky < w.kernel_height; ++ky)
          for (int64_t kx = 0; kx < w.kernel_width; ++kx) {
            const int64_t y = top + ky * w.dilation_y, x = left + kx * w.dilation_x;
            const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
            *out++ = inside ? round_to(type, plane[y * w.width + x]) : 0.0F;
          }
      }
    }
}

// Rows of pixels back to planes, with the bias.
void scatter(const Call& call, const Window& w, const Floats& from, int64_t first, int64_t count) {
  const Arithmetic type = call.arithmetic;
  const Tensor& out = call.out[0];
  const bool biased = call.in.size() > 2 && call.in[2].data != nullptr;
  for (int64_t image = 0; image < w.images; ++image)
    for (int64_t c = 0; c < count; ++c) {
      const float bias = biased ? round_to(type, call.in[2].as()[first + c]) : 0.0F;
      float* const plane = out.as() + (image * out.dims[1] + first + c) * w.pixels();
      for (int64_t pixel = 0; pixel < w.pixels(); ++pixel) {
        const float sum = from[static_cast<size_t>((image * w.pixels() + pixel) * count + c)];
        plane[pixel] = biased ? round_to(type, sum + bias) : sum;
      }
    }
}

bool run_conv(const Call& call, const Mapping& mapping, const Parallel& parallel) {
  const Window w(call);
  const int64_t groups = std::max<int64_t>(1, call.node.attr_int("group", 1));
  if (call.out[0].count() == 0) return true;
  const Floats weights = rounded(call.arithmetic, call.in[1]);
  GemmValues p = product_of(call, mapping);
  p.m = w.images * w.pixels();
  p.n = call.out[0].dims[1] / groups;
  p.k = call.in[1].dims[1] * w.kernel_height * w.kernel_width;
  p.a_stride = p.k;
  p.b_stride = p.c_stride = p.n;
  Floats rows(static_cast<size_t>(p.m * p.k)), sums;
  for (int64_t g = 0; g < groups; ++g) {
    gather(call, w, g * call.in[1].dims[1], call.in[1].dims[1], rows.data());
    const auto begin = weights.begin() + g * p.n * p.k;
    const Floats columns = turned(Floats(begin, begin + p.n * p.k), p.n, p.k);
    sums.assign(static_cast<size_t>(p.m * p.n), 0.0F);
    p.a = rows.data();
    p.b = columns.data();
    p.c = sums.data();
    if (!gemm_values(p, parallel)) return false;
    scatter(call, w, sums, g * p.n, p.n);
  }
  return true;
}

}  // namespace

bool run_product(const Call& call, const Mapping& mapping, const Parallel& parallel) {
  if (call.node.op() == "MatMul") return run_matmul(call, mapping, parallel);
  if (call.node.op() == "Gemm") return run_gemm(call, mapping, parallel);
  return run_conv(call, mapping, parallel);
}

}  // namespace pfrt::wse
