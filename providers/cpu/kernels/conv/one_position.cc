// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/one_position.h"

#include <algorithm>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/matmul/columns.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

Kernel unpacked_kernel(const SnapshotNode& node, int64_t m, const Columns& columns) {
  const bool has_bias = node.has_input(2);
  const Gemm<float> gemm(m, columns.n, columns.k);
  Kernel kernel;
  kernel.scratch_bytes = gemm_scratch(gemm, false);
  kernel.run = [gemm, columns, has_bias, dtype = node.input_dtype(1)](const Run& run) -> pfrt_code {
    const StridedSource<float> images(run.input(0), PFRT_DTYPE_FLOAT32, 0, columns.k, 1);
    const StridedSource<float> weights(run.input(1), dtype, 0, columns.outer_stride,
                                       columns.k_stride);
    const GemmOut<float> out{run.output(0), nullptr, 0, columns.n};
    const float* const bias = has_bias ? run.input<float>(2) : nullptr;
    run.parallel(gemm.tiles(), [&](int64_t i, uint32_t worker) {
      compute_gemm_tile(run, gemm, gemm.tile(i), images, weights, out, run.scratch<float>(worker),
                        [bias](float* row, int64_t, int64_t c, int64_t n) {
                          if (bias == nullptr) return;
                          for (int64_t j = 0; j < n; ++j) row[j] += bias[c + j];
                        });
    });
    return run.stop();
  };
  return in_float32(node, {0, 2}, std::move(kernel));
}

Columns columns_of(const SnapshotNode& node) {
  const auto weights = node.input_dims(1);
  const int64_t depth = SnapshotNode::elements(weights.subspan(1));
  return {weights[0], depth, depth, 1};
}

// Packs for a batch of |batch|; for one that only the run knows where that is negative. A single
// row reads panels faster than the weights as they are, so that these are packed for any batch,
// unless they are large.
std::optional<PackedInput> pack(const SnapshotNode& node, int64_t batch) {
  constexpr int64_t kLarge = 4 << 20;
  const Columns columns = columns_of(node);
  return pack_columns(node, std::max<int64_t>(batch, 1),
                      batch < 0 || pays(columns.n <= kLarge / columns.k), columns);
}

// Whether the weights were packed for this row: where the image's size was not known yet, they were
// packed for another.
bool is_own(const PackedInput& packed, const SnapshotNode& node, int64_t batch) {
  const auto is_packed_for = [&](int64_t rows) {
    const std::optional<PackedInput> own = pack(node, rows);
    return own && own->recipe == packed.recipe;
  };
  return is_packed_for(batch) || is_packed_for(-1);
}

}  // namespace

std::string refuse_conv_one_position(const KernelRequest& node) {
  const auto image = node.input_dims(0), weights = node.input_dims(1);
  if (image.size() < 3 || weights.size() != image.size() || SnapshotNode::elements(weights) <= 0)
    return "the dimensions of weights are not known";
  const auto none = [](int64_t v) { return v == 0; };
  const auto one = [](int64_t v) { return v == 1; };
  if (node.attr_int("group", 1) != 1 || !std::ranges::all_of(node.attr_ints("pads"), none) ||
      !std::ranges::all_of(node.attr_ints("dilations"), one) ||
      node.attr_string("auto_pad", "NOTSET") != "NOTSET")
    return "groups, pads or dilations";
  return std::ranges::equal(image.subspan(2), weights.subspan(2))
             ? ""
             : "the window is not the image, or the image's size is not known before the run";
}

std::optional<PackedInput> pack_conv_one_position(const SnapshotNode& node) {
  return pack(node, node.input_dims(0)[0]);
}

Result<Kernel> make_conv_one_position(const KernelRequest& node) {
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(node));
  if (g.window.position_count() != 1 || g.window.image_size() != g.window.taps())
    return kernel_error("Y was planned with ", g.window.position_count(),
                        " positions where the window is the image");
  const Columns columns = columns_of(node);
  const bool has_bias = node.has_input(2);
  if (node.packed != nullptr && is_own(*node.packed, node, g.batch) &&
      reads_packed(*node.packed, node, g.batch))
    return packed_matmul(
        *node.packed, node, g.batch, columns,
        {"conv_one_position_tiles", "conv_one_position_panels", "conv_one_position_bf16_rows",
         "conv_one_position_bf16_panels", "conv_one_position_bf16_dot",
         "conv_one_position_f16_rows", "conv_one_position_f16_panels"},
        [has_bias](const Run& run) -> Finish {
          if (!has_bias) return nullptr;
          return [bias = run.input<float>(2)](float* row, int64_t, int64_t j, int64_t n) {
            for (int64_t x = 0; x < n; ++x) row[x] += bias[j + x];
          };
        });
  Kernel kernel = unpacked_kernel(node, g.batch, columns);
  kernel.flops = g.flops();
  return kernel;
}

}  // namespace pfrt::cpu
