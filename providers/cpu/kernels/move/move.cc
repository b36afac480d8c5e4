// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/move/move.h"

#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    {"", "Reshape", kElements, "reshape_copy", "generic", nullptr, make_reshape, 0, nullptr, true},
    {"", "Flatten", kElements, "flatten_copy", "generic", nullptr, make_reshape, 0, nullptr, true},
    {"", "Squeeze", kElements, "squeeze_copy", "generic", nullptr, make_reshape, 0, nullptr, true},
    {"", "Unsqueeze", kElements, "unsqueeze_copy", "generic", nullptr, make_reshape, 0, nullptr,
     true},
    with_epilogue(
        {"", "Transpose", kElements, "transpose_tiles", "generic", nullptr, make_transpose}),
    with_epilogue({"", "Expand", kElements, "expand_copy", "generic", nullptr, make_expand}),
    with_epilogue({"", "Tile", kElements, "tile_copy", "generic", nullptr, make_tile}),
    with_epilogue({"", "DepthToSpace", kElements, "depth_to_space_copy", "generic", nullptr,
                   make_depth_to_space}),
    with_epilogue({"", "SpaceToDepth", kElements, "space_to_depth_copy", "generic", nullptr,
                   make_space_to_depth}),
    with({"", "Concat", kElements, "concat_copy", "generic",
          refuse_layouts<nullptr, refuse_concat_nchw16c>,
          make_layouts<make_concat, make_concat_nchw16c>},
         kEpilogue | kNchw16c),
    {"", "Split", kElements, "split_copy", "generic", nullptr, make_split},
    with_epilogue({"", "Slice", kElements, "slice_copy", "generic", nullptr, make_slice}),
    with_epilogue({"", "Pad", kElements, "pad_map", "generic", nullptr, make_pad}),
    {"", "ReverseSequence", kElements, "reverse_sequence_copy", "generic", nullptr,
     make_reverse_sequence},
    with_epilogue({"", "Gather", kElements, "gather_rows", "generic", nullptr, make_gather}),
    with_epilogue({"", "GatherElements", kElements, "gather_elements_ref", "generic", nullptr,
                   make_gather_elements}),
    with_epilogue(
        {"", "GatherND", kElements, "gather_nd_rows", "generic", nullptr, make_gather_nd}),
    {"", "ScatterElements", kElements, "scatter_elements_ref", "generic", refuse_scatter,
     make_scatter_elements},
    {"", "ScatterND", kElements, "scatter_nd_rows", "generic", refuse_scatter, make_scatter_nd},
};

}  // namespace

std::span<const KernelRow> move_kernels() { return kRows; }

}  // namespace pfrt::cpu
