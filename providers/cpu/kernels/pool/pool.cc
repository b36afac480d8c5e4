// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/pool/pool.h"

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/pool/make.h"

namespace pfrt::cpu {
namespace {

constexpr Types kPoolBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr Types kMaxTypes = kFloats | kPoolBytes;

constexpr KernelRow kRows[] = {
    with(optional_outputs({"", "MaxPool", kMaxTypes, "max_pool_rows", "generic",
                           refuse_layouts<refuse_pool, refuse_pool_nchw16c>,
                           make_layouts<make_max_pool, make_max_pool_nchw16c>}),
         kEpilogue | kNchw16c),
    with({"", "AveragePool", kFloats, "average_pool_rows", "generic",
          refuse_layouts<refuse_pool, refuse_pool_nchw16c>,
          make_layouts<make_average_pool, make_average_pool_nchw16c>},
         kEpilogue | kNchw16c),
    with_epilogue({"", "LpPool", kFloats, "lp_pool_rows", "generic", refuse_pool, make_lp_pool}),
    with_epilogue({"", "GlobalMaxPool", kFloats, "global_max_pool_planes", "generic", refuse_pool,
                   make_global_max_pool}),
    with({"", "GlobalAveragePool", kFloats, "global_average_pool_planes", "generic",
          refuse_layouts<refuse_pool, refuse_pool_nchw16c>,
          make_layouts<make_global_average_pool, make_global_average_pool_nchw16c>},
         kEpilogue | kNchw16c),
    with_epilogue({"", "GlobalLpPool", kFloats, "global_lp_pool_planes", "generic", refuse_pool,
                   make_global_lp_pool}),
    with({"com.microsoft", "QLinearAveragePool", kPoolBytes, "qlinear_average_pool", "generic",
          refuse_layouts<refuse_average_bytes, refuse_pool_nchw16c>,
          make_layouts<make_average_bytes, make_average_bytes_nchw16c>},
         kNchw16c),
    with({"com.microsoft", "QLinearGlobalAveragePool", kPoolBytes, "qlinear_global_average_pool",
          "generic", refuse_layouts<refuse_average_bytes, refuse_pool_nchw16c>,
          make_layouts<make_global_average_bytes, make_global_average_bytes_nchw16c>},
         kNchw16c),
    checks_inputs(
        {"", "MaxUnpool", kNumbers, "max_unpool_ref", "generic", refuse_pool, make_max_unpool}),
};

// A window larger than this is a mistake, and its tables would not fit memory.
constexpr int64_t kMaxTaps = 1 << 24;

}  // namespace

std::string refuse_pool(const KernelRequest& node) {
  const int32_t rank = node.input_rank(0);
  return rank >= 0 && rank < 3 ? message("X has rank ", rank, "; pooling needs spatial dimensions")
                               : "";
}

Result<PoolGeometry> pool_geometry(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  if (in.size() < 3 || out.size() != in.size() || out[0] != in[0] || out[1] != in[1])
    return kernel_error("X and Y must share batch and channels and have spatial dimensions");
  PoolGeometry g;
  g.planes = in[0] * in[1];
  int64_t taps = 1;
  for (int64_t k : node.attr_ints("kernel_shape")) {
    if (k < 1 || k > kMaxTaps / taps)
      return kernel_error("kernel_shape holds ", k, " in a window of at most ", kMaxTaps, " taps");
    taps *= k;
  }
  PFRT_ASSIGN(g.window,
              Window::make(node, in.subspan(2), out.subspan(2), node.attr_ints("kernel_shape")));
  return g;
}

std::span<const KernelRow> pool_kernels() { return kRows; }

}  // namespace pfrt::cpu
