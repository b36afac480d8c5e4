// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/host_ops.h"

#include <algorithm>
#include <cstring>

#include "core/exec/host/call.h"

namespace pfrt {
namespace host {

Result<const Value*> need(const Call& call, size_t i, pfrt_value_kind kind, const char* what) {
  const Value* v = call.input(i);
  if (!v || v->kind != kind) return error(Code::kINVALID_MODEL, "input ", i, " must be ", what);
  return v;
}

Result<int> compare(const Call& call, std::string_view a, std::string_view b) {
  PFRT_TRY(call.walked(0));
  for (size_t at = 0; at < a.size() && at < b.size(); at += BytePace::kBytes) {
    const size_t size = std::min({BytePace::kBytes, a.size() - at, b.size() - at});
    if (const int order = std::memcmp(a.data() + at, b.data() + at, size)) return order;
    PFRT_TRY(call.walked(size));
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

Result<const Tensor*> need_tensor(const Call& call, size_t i, pfrt_dtype dtype) {
  PFRT_ASSIGN(const Value* v, need(call, i, PFRT_VALUE_TENSOR, "a tensor"));
  if (v->tensor.dtype != dtype)
    return error(Code::kDTYPE_MISMATCH, "input ", i, " must hold ", dtype_name(dtype), ", not ",
                 dtype_name(v->tensor.dtype));
  return &v->tensor;
}

}  // namespace host

const host::HostOp* find_host_op(const Node& node) {
  const std::string_view domain = node.domain == "ai.onnx" ? "" : std::string_view(node.domain);
  for (const auto family :
       {host::sequence_ops(), host::text_ops(), host::hash_ops(), host::string_ops(),
        host::cast_ops(), host::tf_idf_ops(), host::ml_ops()})
    for (const host::HostOp& op : family)
      if (op.name == node.op && op.domain == domain) return &op;
  return nullptr;
}

Status run_host_op(const host::HostOp* op, const Graph& graph, const Node& node,
                   const std::vector<ValuePtr>& inputs, std::vector<ValuePtr>& outputs,
                   const RunControl& control, host::Prepared& prepared) {
  if (outputs.empty()) return {};
  if (op == nullptr)
    return error(Code::kUNSUPPORTED_OPERATOR, "the host has no operator of this name");
  return op->run({graph, node, inputs, outputs, control, prepared});
}

}  // namespace pfrt
