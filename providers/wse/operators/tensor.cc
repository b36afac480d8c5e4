// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/operators/tensor.h"

#include <algorithm>

#include "providers/wse/operators/rounding.h"

namespace pfrt::wse {
namespace tensors {
namespace {

bool takes(Types types, pfrt_dtype dtype) { return dtype < 32 && (types & types_of(dtype)) != 0; }

std::string names_of(Types types) {
  std::string names;
  for (pfrt_dtype dtype = 1; dtype < 32; ++dtype) {
    if (!takes(types, dtype)) continue;
    if (!names.empty()) names += " or ";
    names += dtype_name(dtype);
  }
  return names;
}

std::string refuse_type(const SnapshotNode& node, std::string_view what, uint32_t i,
                        pfrt_dtype dtype, Types types) {
  if (takes(types, dtype)) return {};
  return message(what, " ", i, " of ", node.op(), " is ", dtype_name(dtype), ": ", names_of(types),
                 " is taken here");
}

// Whether a tensor that is there has dimensions and memory.
bool is_whole(const Tensor& tensor) {
  return tensor.count() >= 0 && (tensor.count() == 0 || tensor.data != nullptr);
}

}  // namespace
}  // namespace tensors

std::string refuse_input(const SnapshotNode& node, uint32_t input, Types types) {
  if (!node.has_input(input)) return {};
  return tensors::refuse_type(node, "input", input, node.input_dtype(input), types);
}

std::string refuse_output(const SnapshotNode& node, uint32_t output, Types types) {
  if (!node.has_output(output)) return {};
  return tensors::refuse_type(node, "output", output, node.output_dtype(output), types);
}

std::string refuse_unlike_output(const SnapshotNode& node, uint32_t input, Types types) {
  std::string why = refuse_input(node, input, types);
  if (!why.empty() || !node.has_input(input) || node.input_dtype(input) == node.output_dtype(0))
    return why;
  return message("input ", input, " of ", node.op(), " is ", dtype_name(node.input_dtype(input)),
                 " and its output ", dtype_name(node.output_dtype(0)), ": one type is taken here");
}

std::string refuse_types(const SnapshotNode& node, Types types) {
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if (std::string why = refuse_input(node, i, types); !why.empty()) return why;
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (std::string why = refuse_output(node, i, types); !why.empty()) return why;
  return {};
}

std::string refuse_outputs(const SnapshotNode& node, uint32_t made, std::string_view what) {
  for (uint32_t i = made; i < node.output_count(); ++i)
    if (node.has_output(i))
      return message(node.op(), " with ", what, " output: only ",
                     made == 1 ? "the first output is" : "the first outputs are", " made here");
  return {};
}

std::string refuse_run_time(const SnapshotNode& node, uint32_t input, std::string_view what) {
  if (!node.has_input(input) || node.is_constant(input)) return {};
  return message(node.op(), " whose ", what, " only a run knows: constant ", what,
                 " are taken here");
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

std::string text_of(const Dims& dims) {
  std::string text = "[";
  for (const int64_t d : dims) text += message(text.size() > 1 ? ", " : "", d);
  return text + "]";
}

bool has_input(const Call& call, uint32_t i) {
  return i < call.in.size() && call.node.has_input(i);
}

bool wants(const Call& call, uint32_t i) {
  return i < call.out.size() && call.out[i].data != nullptr;
}

bool sound(const Call& call, uint32_t needed, std::string* why) {
  for (uint32_t i = 0; i < std::max<size_t>(needed, call.in.size()); ++i) {
    if (i < needed && !has_input(call, i)) return fault(call, why, "input ", i, " is absent");
    const bool from_node = i >= needed && tensors::takes(kIndex, call.in[i].dtype);
    if (has_input(call, i) && !from_node && !tensors::is_whole(call.in[i]))
      return fault(call, why, "input ", i, " of dimensions ", text_of(call.in[i].dims),
                   " has no elements to read");
  }
  if (call.out.empty() || !tensors::is_whole(call.out[0]))
    return fault(call, why, "output 0 is absent");
  for (uint32_t i = 1; i < call.out.size(); ++i)
    if (wants(call, i) && !tensors::is_whole(call.out[i]))
      return fault(call, why, "output ", i, " has dimensions ", text_of(call.out[i].dims));
  return true;
}

bool has_dims(const Call& call, uint32_t i, const Dims& dims, std::string* why) {
  if (!has_input(call, i) || call.in[i].dims == dims) return true;
  return fault(call, why, "input ", i, " has dimensions ", text_of(call.in[i].dims), ", not ",
               text_of(dims));
}

bool output_has_dims(const Call& call, uint32_t i, const Dims& dims, std::string* why) {
  if (call.out[i].dims == dims) return true;
  return fault(call, why, "output ", i, " has dimensions ", text_of(call.out[i].dims), ", not ",
               text_of(dims));
}

std::vector<int64_t> integers(const Call& call, uint32_t input) {
  if (!has_input(call, input)) return {};
  const Tensor& tensor = call.in[input];
  const int64_t count = tensor.count();
  if (tensor.data == nullptr || count <= 0) return call.node.constant_int64s(input);
  if (tensor.dtype == PFRT_DTYPE_INT64) return {tensor.as<int64_t>(), tensor.as<int64_t>() + count};
  if (tensor.dtype == PFRT_DTYPE_INT32) return {tensor.as<int32_t>(), tensor.as<int32_t>() + count};
  return {};
}

float scalar_input(const Call& call, uint32_t input, float fallback) {
  if (!has_input(call, input) || call.in[input].count() < 1) return fallback;
  return round_to(call.arithmetic, *call.in[input].as());
}

float rounded_attr(const Call& call, std::string_view name, float fallback) {
  return round_to(call.arithmetic, call.node.attr_float(name, fallback));
}

void round_output(const Call& call, const Tensor& tensor) {
  if (tensor.dtype != PFRT_DTYPE_FLOAT32 || !is_16_bit(call.arithmetic)) return;
  round_all(call.arithmetic, tensor.as(), tensor.as(), tensor.count());
}

AxisJoin::AxisJoin(Arithmetic type, Spread spread)
    : type_(type),
      group_(std::max<int64_t>(spread.group, 1)),
      parts_(static_cast<size_t>(std::max<int64_t>(spread.parts, 1))) {}

float AxisJoin::operator()(std::span<const float> axis, Join join) {
  if (parts_.size() == 1) return register_join(type_, axis, join);
  const size_t piece = (axis.size() + parts_.size() - 1) / parts_.size();
  for (size_t p = 0; p < parts_.size(); ++p) {
    const size_t begin = std::min(p * piece, axis.size());
    parts_[p] =
        register_join(type_, axis.subspan(begin, std::min(piece, axis.size() - begin)), join);
  }
  return tree_join(type_, parts_, group_, join);
}

float AxisJoin::tree(std::span<const float> pieces, Join join) const {
  return pieces.size() == 1 ? pieces[0] : tree_join(type_, pieces, group_, join);
}

}  // namespace pfrt::wse
