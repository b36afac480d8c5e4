// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "providers/cpu/elements/indices.h"
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/pool/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kFilledAtOnce = 1 << 16;  // elements

// The dimensions that the indices refer to: those of the pooling's input. An output shape may be
// larger.
Result<std::vector<int64_t>> pooled_from(const SnapshotNode& node) {
  const auto in = node.input_dims(0), out = node.output_dims(0);
  std::vector<int64_t> dims(out.begin(), out.end());
  const auto kernel = node.attr_ints("kernel_shape");
  if (in.size() < 3 || out.size() != in.size() || kernel.size() != in.size() - 2)
    return kernel_error("kernel_shape has ", kernel.size(), " values for rank ", in.size());
  PFRT_ASSIGN(const Window w, Window::make(node, out.subspan(2), in.subspan(2), kernel));
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t size =
        (w.positions[d] - 1) * w.strides[d] + w.kernel[d] - w.pads[d] - w.end_pads[d];
    dims[d + 2] = w.positions[d] == 0 ? 0 : size;
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] < 0 || dims[d] > out[d])
      return kernel_error("dimension ", d, " of the output is ", out[d], ", needs ", dims[d]);
  return dims;
}

}  // namespace

Result<Kernel> make_max_unpool(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  if (!same_dims(node.input_dims(0), node.input_dims(1)))
    return kernel_error("X and its indices must have the same dimensions");
  PFRT_ASSIGN(const std::vector<int64_t> dims, pooled_from(node));
  const std::vector<int64_t> strides = dense_strides(node.output_dims(0));
  const int64_t bound = SnapshotNode::elements(dims);
  const int64_t count = node.input_elements(0), size = node.output_elements(0);
  const size_t bytes = dtype_size(node.input_dtype(0));
  const IndexInput indices(node, 1);
  Kernel kernel;
  kernel.width = 1;
  kernel.run = [=](const Run& run) -> pfrt_code {
    run.blocks(size, kFilledAtOnce, [&](int64_t begin, int64_t end) {
      std::memset(run.output<char>(0) + static_cast<size_t>(begin) * bytes, 0,
                  static_cast<size_t>(end - begin) * bytes);
    });
    const void* const at = indices.data(run);
    for (int64_t i = 0; i < count; ++i) {
      if (i % 16384 == 0 && run.stopped()) break;
      const int64_t index = indices.at(at, i);
      if (index < 0 || index >= bound)
        return run.fail(Code::kINVALID_ARGUMENT, "MaxUnpool: index ", index, " (element ", i,
                        ") is outside [0, ", bound, ")");
      int64_t left = index, to = 0;
      for (size_t d = dims.size(); d-- > 0; left /= dims[d]) to += left % dims[d] * strides[d];
      std::memcpy(run.output<char>(0) + static_cast<size_t>(to) * bytes,
                  run.input<char>(0) + static_cast<size_t>(i) * bytes, bytes);
    }
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
