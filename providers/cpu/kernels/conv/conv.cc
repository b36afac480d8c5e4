// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/conv.h"

#include <memory>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_source.h"
#include "providers/cpu/kernels/conv/integer_dots.h"
#include "providers/cpu/kernels/conv/integer_winograd.h"
#include "providers/cpu/kernels/conv/one_position.h"
#include "providers/cpu/kernels/conv/volume.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

template <typename T>
struct Plan {
  ConvGeometry geometry;
  WindowRows rows;
  Gemm<T> gemm;
  pfrt_dtype dtype;
  bool identity;  // a pointwise convolution: the image is the matrix
  explicit Plan(const ConvGeometry& g, pfrt_dtype type)
      : geometry(g),
        rows(g.window),
        gemm(g.group_out, g.window.position_count(), g.depth(), g.batch * g.groups),
        dtype(type),
        identity(g.window.is_identity()) {}
};

template <typename T>
Result<Kernel> make_typed(const SnapshotNode& node, StoreFn<T> store) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  const auto plan = std::make_shared<const Plan<T>>(g, node.input_dtype(0));
  const bool has_bias = node.has_input(2);
  Kernel kernel;
  kernel.flops = g.flops();
  kernel.scratch_bytes = gemm_scratch(plan->gemm, store != nullptr);
  kernel.run = [plan, store, has_bias](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t tiles = plan->gemm.tiles(), depth = geo.depth();
    const int64_t pixels = geo.window.image_size(), positions = geo.window.position_count();
    const LoadFn<T> load = load_fn<T>(plan->dtype);
    run.parallel(geo.batch * geo.groups * tiles, [&](int64_t i, uint32_t worker) {
      const int64_t image = i / tiles, group = image % geo.groups;
      const StridedSource<T> weights(run.input(1), plan->dtype, group * geo.group_out * depth,
                                     depth, 1);
      const int64_t start = image * geo.group_in * pixels;
      const GemmOut<T> out{run.output(0), store, image * geo.group_out * positions, positions};
      const auto finish = [&](T* row, int64_t r, int64_t, int64_t n) {
        if (!has_bias) return;
        T bias;
        load(&bias, run.input(2), group * geo.group_out + r, 1, 1);
        for (int64_t j = 0; j < n; ++j) row[j] += bias;
      };
      const GemmTile tile = plan->gemm.tile(i % tiles);
      T* const scratch = run.scratch<T>(worker);
      if (plan->identity) {
        const StridedSource<T> pixels_as_matrix(run.input(0), plan->dtype, start, 1, pixels);
        compute_gemm_tile(run, plan->gemm, tile, weights, pixels_as_matrix, out, scratch, finish);
      } else {
        const ImageSource<T> columns(plan->rows, pixels, run.input(0), plan->dtype, start, T{0});
        compute_gemm_tile(run, plan->gemm, tile, weights, columns, out, scratch, finish);
      }
    });
    return run.stop();
  };
  return kernel;
}

constexpr Types kBf16Dot{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_BFLOAT16};
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

std::string refuse_depthwise(const KernelRequest& request) {
  return refuse_layouts<refuse_conv_depthwise, refuse_conv_depthwise_nchw16c>(request);
}

Result<Kernel> make_depthwise(const KernelRequest& request) {
  if (request.shuffle_groups > 0)
    return make_conv_depthwise_shuffled(request, request.shuffle_groups);
  return make_layouts<make_conv_depthwise, make_conv_depthwise_nchw16c>(request);
}

template <auto refuse>
std::string refuse_direct(const KernelRequest& request) {
  std::string why = refuse_layouts<refuse, refuse_conv_direct_nchw16c>(request);
  return why.empty() && request.pool != nullptr ? refuse_conv_direct_pool(request, *request.pool)
                                                : why;
}

template <auto plain, auto nchw16c, bool kBf16>
Result<Kernel> make_direct(const KernelRequest& request) {
  if (request.pool != nullptr)
    return make_conv_direct_pool(request, *request.pool, request.sides, kBf16);
  return make_layouts<plain, nchw16c>(request);
}

std::string refuse_gemm(const KernelRequest& request) {
  std::string why = refuse_conv(request);
  return why.empty() && request.pool != nullptr ? refuse_conv_max_pool(request, *request.pool)
                                                : why;
}

Result<Kernel> make_gemm(const KernelRequest& request) {
  return request.pool != nullptr ? make_conv_max_pool(request, *request.pool) : make_conv(request);
}

constexpr KernelRow kRows[] = {
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_one_position", "generic",
                         refuse_conv_one_position, make_conv_one_position}),
              pack_conv_one_position, kEpilogue | kPackOptional),
    with_pack(long_step({"", "Conv", kFloat32, "conv_tiles", "amx",
                         refuse_layouts<refuse_conv_tiles, refuse_conv_tiles_nchw16c>,
                         make_layouts<make_conv_tiles, make_conv_tiles_nchw16c>}),
              pack_conv_tiles, kEpilogue | kNchw16c),
    with(long_step({"", "Conv", kFloatsTo32, "conv_depthwise_rows", "generic", refuse_depthwise,
                    make_depthwise}),
         kEpilogue | kNchw16c | kShuffled),
    with_epilogue(long_step({"", "Conv", kFloat32, "conv_grouped_rows", "avx2", refuse_conv_grouped,
                             make_conv_grouped})),
    with_epilogue(long_step({"", "Conv", kFloat32, "conv_pointwise", "avx2", refuse_conv_pointwise,
                             make_conv_pointwise})),
    with_pack(long_step({"", "Conv", kBf16Dot, "conv_winograd_bf16", "avx512_bf16",
                         refuse_layouts<refuse_conv_winograd_bf16, refuse_conv_direct_nchw16c>,
                         make_layouts<make_conv_winograd_bf16, make_conv_winograd_bf16_nchw16c>}),
              pack_conv_winograd_bf16, kEpilogue | kNchw16c),
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_winograd_4x4", "avx2",
                         refuse_layouts<refuse_conv_winograd_4x4, refuse_conv_direct_nchw16c>,
                         make_layouts<make_conv_winograd_4x4, make_conv_winograd_4x4_nchw16c>}),
              pack_conv_winograd_4x4, kEpilogue | kNchw16c),
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_winograd_5x5", "avx2",
                         refuse_layouts<refuse_conv_winograd_5x5, refuse_conv_direct_nchw16c>,
                         make_layouts<make_conv_winograd_5x5, make_conv_winograd_5x5_nchw16c>}),
              pack_conv_winograd_5x5, kEpilogue | kNchw16c),
    with_pack(long_step({"", "Conv", kBf16Dot, "conv_direct_bf16", "avx512_bf16",
                         refuse_direct<refuse_conv_direct_bf16>,
                         make_direct<make_conv_direct_bf16, make_conv_direct_bf16_nchw16c, true>}),
              pack_conv_direct_bf16, kEpilogue | kNchw16c | kPooled),
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_winograd", "avx2",
                         refuse_layouts<refuse_conv_winograd, refuse_conv_direct_nchw16c>,
                         make_layouts<make_conv_winograd, make_conv_winograd_nchw16c>}),
              pack_conv_winograd, kEpilogue | kNchw16c),
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_direct", "avx2",
                         refuse_direct<refuse_conv_direct>,
                         make_direct<make_conv_direct, make_conv_direct_nchw16c, false>}),
              pack_conv_direct, kEpilogue | kNchw16c | kPooled),
    with_pack(long_step({"", "Conv", kFloatsTo32, "conv_volume_winograd_4x4", "avx2",
                         refuse_conv_volume<refuse_conv_winograd_4x4>,
                         make_conv_volume<make_conv_winograd_4x4>}),
              pack_conv_volume<pack_conv_winograd_4x4>, kEpilogue),
    with_pack(
        long_step({"", "Conv", kFloatsTo32, "conv_volume_winograd", "avx2",
                   refuse_conv_volume<refuse_conv_winograd>, make_conv_volume<make_conv_winograd>}),
        pack_conv_volume<pack_conv_winograd>, kEpilogue),
    with_pack(
        long_step({"", "Conv", kFloatsTo32, "conv_volume_direct", "avx2",
                   refuse_conv_volume<refuse_conv_direct>, make_conv_volume<make_conv_direct>}),
        pack_conv_volume<pack_conv_direct>, kEpilogue),
    with(long_step({"", "Conv", kFloats, "conv_implicit_gemm", "generic", refuse_gemm, make_gemm}),
         kEpilogue | kPooled),
    with_pack(long_step({"", "ConvTranspose", kFloatsTo32, "conv_transpose_winograd", "avx2",
                         refuse_conv_transpose_winograd, make_conv_transpose_winograd}),
              pack_conv_transpose_winograd, kEpilogue),
    with_pack(long_step({"", "ConvTranspose", kFloatsTo32, "conv_transpose_direct", "avx2",
                         refuse_conv_transpose_direct, make_conv_transpose_direct}),
              pack_conv_transpose_direct, kEpilogue),
    with_epilogue(long_step({"", "ConvTranspose", kFloats, "conv_transpose_scatter", "generic",
                             refuse_conv, make_conv_transpose})),
    with_pack(long_step({"", "ConvInteger", kBytes, "conv_integer_depthwise", "generic",
                         refuse_conv_integer_depthwise, make_conv_integer_depthwise}),
              pack_conv_integer_depthwise, kEpilogue | kNchw16c | kPackOptional),
    with_pack(long_step({"", "ConvInteger", kBytes, "conv_integer_winograd", "avx2",
                         refuse_conv_integer_winograd, make_conv_integer_winograd}),
              pack_conv_integer_winograd, kEpilogue | kNchw16c),
    with_pack(long_step({"", "ConvInteger", kBytes, "conv_integer_dots", "avx2",
                         refuse_conv_integer_dots, make_conv_integer_dots}),
              pack_conv_integer_dots, kEpilogue | kNchw16c | kPackOptional),
    with_epilogue(long_step({"", "ConvInteger", kBytes, "conv_integer_implicit_gemm", "generic",
                             refuse_conv_integer, make_conv_integer})),
    with_pack(long_step({"", "QLinearConv", kBytes, "qlinear_conv_depthwise", "generic",
                         refuse_qlinear_conv_depthwise, make_qlinear_conv_depthwise}),
              pack_qlinear_conv_depthwise, kEpilogue | kNchw16c | kPackOptional),
    with_pack(long_step({"", "QLinearConv", kBytes, "qlinear_conv_winograd", "avx2",
                         refuse_qlinear_conv_winograd, make_qlinear_conv_winograd}),
              pack_qlinear_conv_winograd, kEpilogue | kNchw16c),
    with_pack(long_step({"", "QLinearConv", kBytes, "qlinear_conv_dots", "avx2",
                         refuse_qlinear_conv_dots, make_qlinear_conv_dots}),
              pack_qlinear_conv_dots, kEpilogue | kNchw16c | kPackOptional),
    with_epilogue(long_step({"", "QLinearConv", kBytes, "qlinear_conv_implicit_gemm", "generic",
                             refuse_qlinear_conv, make_qlinear_conv})),
};

}  // namespace

std::string refuse_conv(const KernelRequest& node) {
  const int32_t rank = node.input_rank(0);
  return rank >= 0 && rank < 3
             ? message("X has rank ", rank, "; a convolution needs spatial dimensions")
             : "";
}

Result<Kernel> make_conv(const KernelRequest& node) {
  switch (node.input_dtype(0)) {
    case PFRT_DTYPE_FLOAT32:
      return make_typed<float>(node, nullptr);
    case PFRT_DTYPE_FLOAT64:
      return make_typed<double>(node, nullptr);
    default:
      return make_typed<float>(node, store_fn<float>(node.input_dtype(0)));
  }
}

std::span<const KernelRow> conv_kernels() { return kRows; }

}  // namespace pfrt::cpu
