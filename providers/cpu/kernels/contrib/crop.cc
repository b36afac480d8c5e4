// SPDX-License-Identifier: Apache-2.0
//
// CropAndResize: boxes of images, in coordinates from 0 to 1 between the centres of the corner
// pixels, resampled to one size. A crop of one line or column takes the middle of its box.
#include <algorithm>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/contrib/make.h"

namespace pfrt::cpu {
namespace {

struct Crop {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  int64_t images = 0, channels = 0, height = 0, width = 0, boxes = 0, rows = 0, columns = 0;
  bool nearest = false;
  double outside = 0;
};

// The position of sample |i| of |count| between |begin| and |end| on an axis of |size| pixels; NaN
// outside.
template <typename T>
T place(T begin, T end, int64_t i, int64_t count, int64_t size) {
  const T span = static_cast<T>(size - 1);
  T at = T(0.5) * (begin + end) * span;
  if (count > 1) {
    const T step = (end - begin) * span / static_cast<T>(count - 1);
    at = i == count - 1 ? end * span : begin * span + static_cast<T>(i) * step;
  }
  return at >= 0 && at <= span ? at : std::numeric_limits<T>::quiet_NaN();
}

// Computes a line of a crop for all channels, in T.
template <typename T>
void crop_line(const Run& run, const Crop& c, int64_t box, int64_t line, int64_t image) {
  T b[4];
  load_block(c.dtype, element(c.dtype, run.input(1), box * 4), 4, b);
  const T y = place(b[0], b[2], line, c.rows, c.height);
  const int64_t plane = c.height * c.width;
  std::vector<T> upper(static_cast<size_t>(c.width)), lower(upper),
      out(static_cast<size_t>(c.columns));
  std::vector<T> places(out.size());
  for (int64_t i = 0; i < c.columns; ++i)
    places[static_cast<size_t>(i)] = place(b[1], b[3], i, c.columns, c.width);
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    if (y == y) {
      const T from = c.nearest ? std::round(y) : std::floor(y);
      const T to = c.nearest ? from : std::ceil(y);
      const int64_t base = (image * c.channels + channel) * plane;
      load_block(c.dtype,
                 element(c.dtype, run.input(0), base + static_cast<int64_t>(from) * c.width),
                 c.width, upper.data());
      load_block(c.dtype, element(c.dtype, run.input(0), base + static_cast<int64_t>(to) * c.width),
                 c.width, lower.data());
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const T x = places[i];
      if (!(y == y) || !(x == x)) {
        out[i] = static_cast<T>(c.outside);
      } else if (c.nearest) {
        out[i] = upper[static_cast<size_t>(std::round(x))];
      } else {
        const size_t left = static_cast<size_t>(std::floor(x)),
                     right = static_cast<size_t>(std::ceil(x));
        const T dx = x - std::floor(x), dy = y - std::floor(y);
        const T top = upper[left] + (upper[right] - upper[left]) * dx;
        const T bottom = lower[left] + (lower[right] - lower[left]) * dx;
        out[i] = top + (bottom - top) * dy;
      }
    }
    const int64_t to = ((box * c.channels + channel) * c.rows + line) * c.columns;
    store_block(c.dtype, out.data(), c.columns, element(c.dtype, run.output(0), to));
  }
}

template <typename T>
pfrt_code crop_all(const Run& run, const Crop& c) {
  const int32_t *const of = run.input<int32_t>(2), *const size = run.input<int32_t>(3);
  if (size[0] != c.rows || size[1] != c.columns)
    return run.fail(Code::kSHAPE_MISMATCH, "the crops' size is ", size[0], " by ", size[1],
                    ", it was planned as ", c.rows, " by ", c.columns);
  for (int64_t i = 0; i < c.boxes; ++i)
    if (of[i] < 0 || of[i] >= c.images)
      return run.fail(Code::kINVALID_ARGUMENT, "box ", i, " is of image ", of[i], ": there are ",
                      c.images);
  if (c.channels == 0) return PFRT_CODE_OK;
  run.parallel(c.boxes * c.rows, [&](int64_t task, uint32_t) {
    if (run.stopped()) return;
    const int64_t box = task / c.rows;
    crop_line<T>(run, c, box, task % c.rows, of[box]);
  });
  return run.stop();
}

}  // namespace

Result<Kernel> make_crop(const KernelRequest& node) {
  PFRT_TRY(need(node, 4, 1));
  const auto x = node.input_dims(0), boxes = node.input_dims(1), out = node.output_dims(0);
  Crop c;
  c.dtype = node.input_dtype(0);
  if (x.size() != 4 || boxes.size() != 2 || boxes[1] != 4 || out.size() != 4)
    return kernel_error("X is ", dims_text(x), " and the boxes ", dims_text(boxes),
                        ": [images, channels, height, width] and [boxes, 4]");
  if (node.input_dtype(1) != c.dtype || node.output_dtype(0) != c.dtype)
    return error(Code::kDTYPE_MISMATCH, "boxes and output must be ", dtype_name(c.dtype));
  for (const uint32_t i : {2u, 3u})
    if (node.input_dtype(i) != PFRT_DTYPE_INT32)
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ": int32");
  if (node.input_elements(2) != boxes[0] || node.input_elements(3) != 2)
    return kernel_error("there are ", boxes[0], " boxes of ", node.input_elements(2),
                        " images, and a size of ", node.input_elements(3), " numbers: 2");
  c.images = x[0];
  c.channels = x[1];
  c.height = x[2];
  c.width = x[3];
  c.boxes = boxes[0];
  c.rows = out[2];
  c.columns = out[3];
  const int64_t dims[] = {c.boxes, c.channels, c.rows, c.columns};
  PFRT_TRY(need_output_dims(node, 0, dims));
  if (c.height < 1 || c.width < 1)
    return kernel_error("the images have ", c.height, " by ", c.width, " pixels");
  c.nearest = node.attr_string("mode", "bilinear") == "nearest";
  c.outside = static_cast<double>(node.attr_float("extrapolation_value", 0));
  Kernel kernel;
  kernel.flops = 8 * static_cast<double>(node.output_elements(0));
  kernel.run = [c](const Run& run) {
    return c.dtype == PFRT_DTYPE_FLOAT64 ? crop_all<double>(run, c) : crop_all<float>(run, c);
  };
  return kernel;
}

}  // namespace pfrt::cpu
