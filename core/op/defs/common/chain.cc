// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/chain.h"

namespace pfrt {

ValueId Chain::in(size_t i) const {
  return rewriter_.has_input(i) ? rewriter_.node().inputs[i] : kNoId;
}

ValueId Chain::op(std::string_view name, std::vector<ValueId> inputs,
                  std::vector<Attribute> attrs) {
  if (!ok()) return kNoId;
  return keep(rewriter_.before(name, std::move(inputs), std::move(attrs)), ValueId{kNoId});
}

std::vector<ValueId> Chain::ops(std::string_view name, size_t outputs, std::vector<ValueId> inputs,
                                std::vector<Attribute> attrs) {
  if (!ok()) return std::vector<ValueId>(outputs, kNoId);
  const ValueId first =
      keep(rewriter_.before(name, std::move(inputs), std::move(attrs), outputs), ValueId{kNoId});
  if (first == kNoId) return std::vector<ValueId>(outputs, kNoId);
  const Graph& graph = rewriter_.graph();
  return graph.node(graph.at(first).producer)->outputs;
}

ValueId Chain::int64s(const std::vector<int64_t>& values) {
  return ok() ? keep(rewriter_.int64s("numbers", values), ValueId{kNoId}) : kNoId;
}

ValueId Chain::scalar(pfrt_dtype dtype, double value) {
  return ok() ? keep(rewriter_.scalar("number", dtype, value), ValueId{kNoId}) : kNoId;
}

ValueId Chain::cast(ValueId a, pfrt_dtype to) {
  return op("Cast", {a}, {Attribute::of_int("to", to), Attribute::of_int("saturate", 1)});
}

ValueId Chain::reshape(ValueId a, const std::vector<int64_t>& dims) {
  return op("Reshape", {a, int64s(dims)}, {Attribute::of_int("allowzero", 0)});
}

ValueId Chain::transpose(ValueId a, const std::vector<int64_t>& perm) {
  return op("Transpose", {a}, {Attribute::of_ints("perm", perm)});
}

ValueId Chain::unsqueeze(ValueId a, const std::vector<int64_t>& axes) {
  return op("Unsqueeze", {a, int64s(axes)});
}

ValueId Chain::pick(ValueId a, int64_t index, int64_t axis) {
  return op("Gather", {a, scalar(PFRT_DTYPE_INT64, static_cast<double>(index))},
            {Attribute::of_int("axis", axis)});
}

ValueId Chain::concat(std::vector<ValueId> values, int64_t axis) {
  return op("Concat", std::move(values), {Attribute::of_int("axis", axis)});
}

ValueId Chain::size(ValueId a, int64_t axis) {
  return op("Shape", {a}, {Attribute::of_int("start", axis), Attribute::of_int("end", axis + 1)});
}

ValueId Chain::range(ValueId count) {
  const ValueId end = op("Squeeze", {count, int64s({0})});
  return op("Range", {scalar(PFRT_DTYPE_INT64, 0), end, scalar(PFRT_DTYPE_INT64, 1)});
}

void Chain::hand_over(size_t i, ValueId value) {
  if (!ok() || !rewriter_.node().has_output(i)) return;
  std::vector<ValueId> outputs = rewriter_.node().outputs;
  const ValueId out = outputs[i];
  outputs[i] = kNoId;
  rewriter_.graph().set_outputs(rewriter_.node().id, std::move(outputs));
  rewriter_.stand_in(out, value);
}

Status Chain::replace() {
  if (ok()) rewriter_.graph().remove_node(rewriter_.node().id);
  return status();
}

}  // namespace pfrt
