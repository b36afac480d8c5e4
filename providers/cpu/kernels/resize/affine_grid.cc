// SPDX-License-Identifier: Apache-2.0
//
// AffineGrid: the places of an output's pixels, each an affine function of the pixel's own place.
#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kMostDims = 3;

struct Frame {
  pfrt_dtype dtype;
  bool align_corners;
  int64_t dims;              // spatial ones, 2 or 3
  int64_t points;            // of an image
  std::vector<int64_t> out;  // [batch, spatial..., dims]
};

// The place of pixel |i| of |n|, in [-1, 1].
double place(const Frame& frame, int64_t i, int64_t n) {
  const double at = static_cast<double>(i), length = static_cast<double>(n);
  if (!frame.align_corners) return (2 * at + 1) / length - 1;
  return n > 1 ? 2 * at / (length - 1) - 1 : 0;
}

// Places of points [first, first + n) of image |image|.
void fill(const Run& run, const Frame& frame, int64_t image, int64_t first, int64_t n) {
  double theta[kMostDims * (kMostDims + 1)];
  const int64_t dims = frame.dims, columns = dims + 1;
  load_block(frame.dtype, element(frame.dtype, run.input(0), image * dims * columns),
             dims * columns, theta);
  for (int64_t p = first; p < first + n; ++p) {
    double from[kMostDims], to[kMostDims];
    int64_t left = p;
    for (int64_t d = 0; d < dims; ++d) {  // the last dimension is the first coordinate
      const int64_t length = frame.out[static_cast<size_t>(dims - d)];
      from[d] = place(frame, left % length, length);
      left /= length;
    }
    for (int64_t r = 0; r < dims; ++r) {
      to[r] = theta[r * columns + dims];
      for (int64_t d = 0; d < dims; ++d) to[r] += theta[r * columns + d] * from[d];
    }
    store_block(frame.dtype, to, dims,
                element(frame.dtype, run.output(0), (image * frame.points + p) * dims));
  }
}

}  // namespace

Result<Kernel> make_affine_grid(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto theta = node.input_dims(0), out = node.output_dims(0);
  if (out.size() != 4 && out.size() != 5)
    return kernel_error("the grid has rank ", out.size(), ": 4 or 5");
  Frame frame{};
  frame.dtype = node.input_dtype(0);
  frame.align_corners = node.attr_int("align_corners", 0) != 0;
  frame.dims = static_cast<int64_t>(out.size()) - 2;
  frame.out.assign(out.begin(), out.end());
  frame.points = element_count(out.data() + 1, out.size() - 2);
  const int64_t wanted[] = {out[0], frame.dims, frame.dims + 1};
  if (!same_dims(theta, wanted) || out.back() != frame.dims)
    return kernel_error("theta of dimensions ", dims_text(theta), " does not make a grid of ",
                        dims_text(out));
  if (node.output_dtype(0) != frame.dtype)
    return error(Code::kDTYPE_MISMATCH, "theta is ", dtype_name(frame.dtype), ", the grid ",
                 dtype_name(node.output_dtype(0)));
  Kernel kernel;
  kernel.flops = 2 * static_cast<double>(frame.dims) * static_cast<double>(node.output_elements(0));
  kernel.run = [frame](const Run& run) {
    const int64_t tasks = (frame.points + kBlock - 1) / kBlock;
    run.parallel(frame.out[0] * tasks, [&](int64_t task, uint32_t) {
      const int64_t first = task % tasks * kBlock;
      fill(run, frame, task / tasks, first, std::min(kBlock, frame.points - first));
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
