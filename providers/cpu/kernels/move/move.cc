// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/move/move.h"

#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    sub_byte_as_is(with_in_place(
        same_bytes, {"", "Reshape", kElements, "reshape_copy", "generic", nullptr, make_reshape})),
    sub_byte_as_is(with_in_place(
        same_bytes, {"", "Flatten", kElements, "flatten_copy", "generic", nullptr, make_reshape})),
    sub_byte_as_is(with_in_place(
        same_bytes, {"", "Squeeze", kElements, "squeeze_copy", "generic", nullptr, make_reshape})),
    sub_byte_as_is(with_in_place(same_bytes, {"", "Unsqueeze", kElements, "unsqueeze_copy",
                                              "generic", nullptr, make_reshape})),
    with_epilogue(with_in_place(transpose_in_place, {"", "Transpose", kElements, "transpose_tiles",
                                                     "generic", nullptr, make_transpose})),
    with_epilogue({"", "Expand", kElements, "expand_copy", "generic", nullptr, make_expand}),
    with_epilogue({"", "Tile", kElements, "tile_copy", "generic", nullptr, make_tile}),
    with_epilogue({"", "DepthToSpace", kElements, "depth_to_space_copy", "generic", nullptr,
                   make_depth_to_space}),
    with_epilogue({"", "SpaceToDepth", kElements, "space_to_depth_copy", "generic", nullptr,
                   make_space_to_depth}),
    with(with_in_place(concat_in_place, {"", "Concat", kElements, "concat_copy", "generic",
                                         refuse_layouts<nullptr, refuse_concat_nchw16c>,
                                         make_layouts<make_concat, make_concat_nchw16c>}),
         kEpilogue | kNchw16c),
    with_in_place(split_in_place,
                  {"", "Split", kElements, "split_copy", "generic", nullptr, make_split}),
    with_epilogue(checks_inputs(with_in_place(
        slice_in_place, {"", "Slice", kElements, "slice_copy", "generic", nullptr, make_slice}))),
    with_epilogue(checks_inputs({"", "Pad", kElements, "pad_map", "generic", nullptr, make_pad})),
    checks_inputs({"", "ReverseSequence", kElements, "reverse_sequence_copy", "generic", nullptr,
                   make_reverse_sequence}),
    with_epilogue(checks_inputs(
        unaligned(with_in_place(gather_in_place, {"", "Gather", kElements, "gather_rows", "generic",
                                                  nullptr, make_gather})))),
    with_epilogue(checks_inputs({"", "GatherElements", kElements, "gather_elements_ref", "generic",
                                 nullptr, make_gather_elements})),
    with_epilogue(checks_inputs(
        {"", "GatherND", kElements, "gather_nd_rows", "generic", nullptr, make_gather_nd})),
    checks_inputs({"", "ScatterElements", kElements, "scatter_elements_ref", "generic",
                   refuse_scatter, make_scatter_elements}),
    checks_inputs({"", "ScatterND", kElements, "scatter_nd_rows", "generic", refuse_scatter,
                   make_scatter_nd}),
};

}  // namespace

std::span<const KernelRow> move_kernels() { return kRows; }

}  // namespace pfrt::cpu
