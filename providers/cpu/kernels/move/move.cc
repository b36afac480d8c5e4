// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/move/move.h"

#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    {"", "Reshape", kMovable, "reshape_copy", "generic", nullptr, make_reshape},
    {"", "Flatten", kMovable, "flatten_copy", "generic", nullptr, make_reshape},
    {"", "Squeeze", kMovable, "squeeze_copy", "generic", nullptr, make_reshape},
    {"", "Unsqueeze", kMovable, "unsqueeze_copy", "generic", nullptr, make_reshape},
    {"", "Transpose", kMovable, "transpose_tiles", "generic", nullptr, make_transpose},
    {"", "Expand", kMovable, "expand_copy", "generic", nullptr, make_expand},
    {"", "Tile", kMovable, "tile_copy", "generic", nullptr, make_tile},
    {"", "DepthToSpace", kMovable, "depth_to_space_copy", "generic", nullptr, make_depth_to_space},
    {"", "SpaceToDepth", kMovable, "space_to_depth_copy", "generic", nullptr, make_space_to_depth},
    {"", "Concat", kMovable, "concat_copy", "generic", nullptr, make_concat},
    {"", "Split", kMovable, "split_copy", "generic", nullptr, make_split},
    {"", "Slice", kMovable, "slice_copy", "generic", nullptr, make_slice},
    {"", "Pad", kMovable, "pad_map", "generic", nullptr, make_pad},
    {"", "ReverseSequence", kMovable, "reverse_sequence_copy", "generic", nullptr,
     make_reverse_sequence},
    {"", "Gather", kMovable, "gather_rows", "generic", nullptr, make_gather},
    {"", "GatherElements", kMovable, "gather_elements_ref", "generic", nullptr,
     make_gather_elements},
    {"", "GatherND", kMovable, "gather_nd_rows", "generic", nullptr, make_gather_nd},
    {"", "ScatterElements", kMovable, "scatter_elements_ref", "generic", refuse_scatter,
     make_scatter_elements},
    {"", "ScatterND", kMovable, "scatter_nd_rows", "generic", refuse_scatter, make_scatter_nd},
};

}  // namespace

std::span<const KernelRow> move_kernels() { return kRows; }

}  // namespace pfrt::cpu
