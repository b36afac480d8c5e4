// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/op_description.h"

#include <algorithm>

#include "cxxapi/cli/check_plugin/plugin_file.h"

namespace cli::check {
namespace {

// The type that the operator names for a position; UNSET = any.
pfrt_dtype named(const pfrt_dtype* types, uint32_t count, size_t i) {
  return count ? types[std::min<size_t>(i, count - 1)] : pfrt_dtype{PFRT_DTYPE_UNSET};
}

}  // namespace

uint32_t input_count(const pfrt_custom_op& op) {
  return op.min_inputs ? op.min_inputs : op.max_inputs == PFRT_ANY_NUMBER ? 1 : op.max_inputs;
}
uint32_t output_count(const pfrt_custom_op& op) { return std::max<uint32_t>(op.min_outputs, 1); }

Types input_types(const pfrt_custom_op& op, pfrt_dtype otherwise) {
  Types types(input_count(op));
  for (size_t i = 0; i < types.size(); ++i) {
    const pfrt_dtype type = named(op.input_types, op.input_type_count, i);
    types[i] = type ? type : otherwise;
  }
  return types;
}
pfrt_dtype output_type(const pfrt_custom_op& op, const Types& inputs, size_t i) {
  const pfrt_dtype type = named(op.output_types, op.output_type_count, i);
  if (type) return type;
  return inputs.empty() ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : inputs[0];
}

std::string fault_of(const pfrt_custom_op& op) {
  if (!op.name.data || !op.name.size) return "has no name";
  if (!op.compute) return "has no compute";
  if (op.max_inputs != 0 && op.max_inputs < op.min_inputs)
    return "takes from " + std::to_string(op.min_inputs) + " to " + std::to_string(op.max_inputs) +
           " inputs";
  const uint32_t since = std::max(op.since_version, 1u);
  if (op.until_version != 0 && op.until_version < since)
    return "is known from version " + std::to_string(since) + " to " +
           std::to_string(op.until_version);
  if ((op.input_type_count && !op.input_types) || (op.output_type_count && !op.output_types))
    return "counts element types and lists none";
  if (op.release_state && !op.create_state) return "has release_state and no create_state";
  return {};
}

bool clash(const pfrt_custom_op& a, const pfrt_custom_op& b) {
  if (text_of(a.domain) != text_of(b.domain) || text_of(a.name) != text_of(b.name)) return false;
  const auto ends_before = [](const pfrt_custom_op& first, const pfrt_custom_op& second) {
    return first.until_version != 0 && first.until_version < std::max(second.since_version, 1u);
  };
  if (ends_before(a, b) || ends_before(b, a)) return false;
  for (size_t i = 0; i < std::max(a.input_type_count, b.input_type_count); ++i)
    if (named(a.input_types, a.input_type_count, i) != named(b.input_types, b.input_type_count, i))
      return false;
  for (size_t i = 0; i < std::max(a.output_type_count, b.output_type_count); ++i)
    if (named(a.output_types, a.output_type_count, i) !=
        named(b.output_types, b.output_type_count, i))
      return false;
  return true;
}

}  // namespace cli::check
