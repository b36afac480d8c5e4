// SPDX-License-Identifier: Apache-2.0
//
// Helpers that the plug-ins of kind ops share: their rows of the table, and attributes. Pure.
#pragma once

#include <pyflame_rt/custom.h>

#include <string_view>

namespace pfrt::ops {

inline pfrt_string text(std::string_view words) { return {words.data(), words.size()}; }
inline std::string_view view(pfrt_string words) { return {words.data, words.size}; }

// An operator of ai.onnx with inputs and outputs by number.
inline pfrt_custom_op onnx_op(std::string_view name, uint32_t since, uint32_t inputs,
                              pfrt_custom_op_flags flags,
                              pfrt_code (*infer)(void*, const pfrt_op_infer*),
                              pfrt_code (*compute)(void*, const pfrt_op_compute*)) {
  pfrt_custom_op op{};
  op.struct_size = sizeof op;
  op.abi = PFRT_ABI_VERSION;
  op.name = text(name);
  op.since_version = since;
  op.min_inputs = inputs;
  op.flags = flags;
  op.infer = infer;
  op.compute = compute;
  return op;
}

// Says which element types all inputs and all outputs have; both live as long as the plug-in.
inline void set_types(pfrt_custom_op& op, const pfrt_dtype& inputs, const pfrt_dtype& outputs) {
  op.input_types = &inputs;
  op.output_types = &outputs;
  op.input_type_count = op.output_type_count = 1;
}

// The attribute of that name and type, or nullptr. |size| is the distance between attributes.
inline const pfrt_snapshot_attr* attribute(const pfrt_snapshot_node& node, uint32_t size,
                                           std::string_view name, pfrt_attr_type type) {
  for (uint64_t i = 0; i < node.attr_count; ++i) {
    const auto* attr = reinterpret_cast<const pfrt_snapshot_attr*>(
        reinterpret_cast<const char*>(node.attrs) + i * size);
    if (attr->type == type && view(attr->name) == name) return attr;
  }
  return nullptr;
}

}  // namespace pfrt::ops
