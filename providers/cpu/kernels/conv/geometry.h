// SPDX-License-Identifier: Apache-2.0
//
// Shared by the convolutions: batch, groups and channels around a window, and the make functions of
// the family's table. Values and pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

struct ConvGeometry {
  Window window;
  int64_t batch = 0, groups = 1;
  int64_t group_in = 0, group_out = 0;  // channels of one group

  int64_t depth() const { return group_in * window.taps(); }
  double flops() const;
};

// Makes the geometry from inputs |x| and |w| of a convolution, or of a transposed one, and output
// 0.
Result<ConvGeometry> conv_geometry(const SnapshotNode& node, uint32_t x, uint32_t w);
// Makes the geometry of a Conv whose tensors have one type, and checks its bias too.
Result<ConvGeometry> one_type_conv_geometry(const SnapshotNode& node);
// Fails a run that found no packed weights, which |kernel| needs.
pfrt_code fail_unpacked(const Run& run, std::string_view kernel);
Result<ConvGeometry> transposed_geometry(const SnapshotNode& node);
// A one-dimensional window as a two-dimensional one whose first dimension is 1.
Window two_dimensional(Window window);
// The window with two dimensions; these are exchanged where the last one is 1, so that the work is
// along rows.
Window along_rows(Window window);
// A bias of |channels| elements, or none.
Status check_bias(const SnapshotNode& node, uint32_t i, int64_t channels);

Result<Kernel> make_conv(const KernelRequest& node);
// pooled.cc
std::string refuse_conv_max_pool(const SnapshotNode& conv, const SnapshotNode& pool);
Result<Kernel> make_conv_max_pool(const SnapshotNode& conv, const SnapshotNode& pool);
// direct_pooled.cc
std::string refuse_conv_direct_pool(const SnapshotNode& conv, const SnapshotNode& pool);
Result<Kernel> make_conv_direct_pool(const SnapshotNode& conv, const SnapshotNode& pool,
                                     Nchw16cSides sides, bool bf16);
Result<Kernel> make_conv_depthwise(const KernelRequest& node);
Result<Kernel> make_conv_transpose(const KernelRequest& node);
Result<Kernel> make_conv_integer(const KernelRequest& node);
Result<Kernel> make_qlinear_conv(const KernelRequest& node);
// tiles.cc
std::string refuse_conv_tiles(const KernelRequest& node);
Result<Kernel> make_conv_tiles(const KernelRequest& node);
std::optional<PackedInput> pack_conv_tiles(const SnapshotNode& node);
std::string refuse_conv_tiles_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_conv_tiles_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// direct.cc
std::string refuse_conv_direct(const KernelRequest& node);
Result<Kernel> make_conv_direct(const KernelRequest& node);
std::optional<PackedInput> pack_conv_direct(const SnapshotNode& node);
std::string refuse_conv_direct_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_conv_direct_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// conv_direct with pairs of bfloat16 (bf16_dot.h).
std::string refuse_conv_direct_bf16(const KernelRequest& node);
Result<Kernel> make_conv_direct_bf16(const KernelRequest& node);
std::optional<PackedInput> pack_conv_direct_bf16(const SnapshotNode& node);
Result<Kernel> make_conv_direct_bf16_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// pointwise.cc
std::string refuse_conv_pointwise(const KernelRequest& node);
Result<Kernel> make_conv_pointwise(const KernelRequest& node);
// depthwise/integer.cc; QLinearConv in planes or in nChw16c, on either side
std::string refuse_conv_integer_depthwise(const KernelRequest& node);
std::optional<PackedInput> pack_conv_integer_depthwise(const SnapshotNode& node);
Result<Kernel> make_conv_integer_depthwise(const KernelRequest& node);
std::string refuse_qlinear_conv_depthwise(const KernelRequest& node);
std::optional<PackedInput> pack_qlinear_conv_depthwise(const SnapshotNode& node);
Result<Kernel> make_qlinear_conv_depthwise(const KernelRequest& node);
// transpose_direct.cc
std::string refuse_conv_transpose_direct(const KernelRequest& node);
Result<Kernel> make_conv_transpose_direct(const KernelRequest& node);
std::optional<PackedInput> pack_conv_transpose_direct(const SnapshotNode& node);
// winograd/transposed.cc
std::string refuse_conv_transpose_winograd(const KernelRequest& node);
Result<Kernel> make_conv_transpose_winograd(const KernelRequest& node);
std::optional<PackedInput> pack_conv_transpose_winograd(const SnapshotNode& node);
// winograd/f32.cc; what direct.cc says of nChw16c holds for it too
std::string refuse_conv_winograd(const KernelRequest& node);
Result<Kernel> make_conv_winograd(const KernelRequest& node);
std::optional<PackedInput> pack_conv_winograd(const SnapshotNode& node);
Result<Kernel> make_conv_winograd_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
std::string refuse_conv_winograd_4x4(const KernelRequest& node);
Result<Kernel> make_conv_winograd_4x4(const KernelRequest& node);
std::optional<PackedInput> pack_conv_winograd_4x4(const SnapshotNode& node);
Result<Kernel> make_conv_winograd_4x4_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
std::string refuse_conv_winograd_5x5(const KernelRequest& node);
Result<Kernel> make_conv_winograd_5x5(const KernelRequest& node);
std::optional<PackedInput> pack_conv_winograd_5x5(const SnapshotNode& node);
Result<Kernel> make_conv_winograd_5x5_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
std::string refuse_conv_winograd_bf16(const KernelRequest& node);
Result<Kernel> make_conv_winograd_bf16(const KernelRequest& node);
std::optional<PackedInput> pack_conv_winograd_bf16(const SnapshotNode& node);
Result<Kernel> make_conv_winograd_bf16_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
std::string refuse_conv(const KernelRequest& node);
std::string refuse_conv_depthwise(const KernelRequest& node);
std::string refuse_conv_depthwise_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_conv_depthwise_shuffled(const SnapshotNode& node, int64_t groups);
Result<Kernel> make_conv_depthwise_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// depthwise/grouped.cc
std::string refuse_conv_grouped(const KernelRequest& node);
Result<Kernel> make_conv_grouped(const KernelRequest& node);
std::string refuse_conv_integer(const KernelRequest& node);
std::string refuse_qlinear_conv(const KernelRequest& node);

}  // namespace pfrt::cpu
