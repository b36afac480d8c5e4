// SPDX-License-Identifier: Apache-2.0
#include "core/batch/batch_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/dtype.h"
#include "core/op/engine/infer.h"

namespace pfrt {
namespace {

using Port = BatchRows::Port;

template <typename... Text>
Status not_cut(const Text&... text) {
  return error(Code::kUNSUPPORTED, text...);
}

}  // namespace

bool BatchParts::Rows::measure(int64_t batch) {
  if (whole.dtype == PFRT_DTYPE_STRING || whole.device()) return false;
  if (port != Port::kRows) return true;
  if (whole.dims.empty() || whole.dims[0] % batch != 0) return false;
  const auto bits = static_cast<uint64_t>(whole.count() / batch) * dtype_bits(whole.dtype);
  per_row = whole.dims[0] / batch;
  row_bytes = bits / 8;
  return bits % 8 == 0;
}

Tensor BatchParts::Rows::part(int64_t first, int64_t count) const {
  Tensor out = whole;
  if (port != Port::kRows) return out;
  out.dims[0] = count * per_row;
  out.offset += static_cast<uint64_t>(first) * row_bytes;
  return out;
}

Result<BatchParts> BatchParts::of(const Graph& graph, const std::vector<size_t>& where,
                                  const std::vector<ValuePtr>& inputs,
                                  const std::vector<OutputRequest>& requests) {
  BatchParts out;
  PFRT_ASSIGN(const BatchRows known, batch_rows(graph));
  PFRT_TRY(out.take_inputs(known, where, inputs));
  PFRT_TRY(out.take_outputs(graph, known, requests));
  return out;
}

Status BatchParts::take_inputs(const BatchRows& known, const std::vector<size_t>& where,
                               const std::vector<ValuePtr>& inputs) {
  size_t given = 0;
  for (const ValuePtr& input : inputs) given += input != nullptr;
  if (given != where.size()) return not_cut("an initializer is fed");
  for (size_t i = 0; i < where.size(); ++i) {
    const Value& value = *inputs[where[i]];
    if (value.kind != PFRT_VALUE_TENSOR) return not_cut("input ", where[i], " is no tensor");
    if (known.inputs[i] == Port::kMixed)
      return not_cut("input ", where[i], " has the batch elsewhere than in front alone");
    inputs_.push_back({where[i], known.inputs[i], value.tensor});
    if (known.inputs[i] == Port::kRows) batch_ = value.tensor.dims[0];
  }
  if (batch_ < 2) return not_cut("the batch is one row");
  for (Rows& input : inputs_)
    if (!input.measure(batch_))
      return not_cut("input ", input.at, " is on a device, of strings, or packed across rows");
  return {};
}

Status BatchParts::take_outputs(const Graph& graph, const BatchRows& known,
                                const std::vector<OutputRequest>& requests) {
  InferState state = initial_state(graph);
  size_t next = 0;
  for (const ValueId v : graph.inputs)
    if (!graph.at(v).constant) state.types[v] = type_of(*Value::of(inputs_[next++].whole));
  PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  PFRT_TRY(infer(graph, order, state));
  bool any = false;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (!requests.empty() && !requests[i].wanted) continue;
    const GraphValue& value = graph.at(graph.outputs[i]);
    const Type& type = state.type_of(graph, graph.outputs[i]);
    if (known.outputs[i] == Port::kMixed) return not_cut(known.mixed_by[i]);
    if (!type.is_tensor() || !type.fixed())
      return not_cut("the dimensions of output '", value.name, "' are not known before the run");
    any = any || known.outputs[i] == Port::kRows;
    Rows output{i, known.outputs[i], {}};
    output.whole.dtype = type.dtype;
    for (const Dim& d : type.shape) output.whole.dims.push_back(d.value());
    const OutputRequest request = requests.empty() ? OutputRequest() : requests[i];
    if (!output.measure(batch_) || request.on_device || request.device() || request.at_most ||
        request.in_place)
      return not_cut("output '", value.name,
                     "' is of strings, packed across rows, wanted on a device or in the memory "
                     "of an input");
    if (request.data) {
      if (request.bytes != output.whole.bytes())
        return not_cut("the memory for output '", value.name, "' is not of its size");
      PFRT_ASSIGN(output.whole.buffer, Buffer::wrap(request.data, request.bytes, {}));
    }
    outputs_.push_back(std::move(output));
  }
  return any ? Status() : not_cut("no output that is wanted has the batch");
}

Status BatchParts::allocate() {
  for (Rows& output : outputs_) {
    Tensor& t = output.whole;
    if (t.buffer) continue;
    PFRT_ASSIGN(t, Tensor::allocate(t.dtype, t.dims, false));
  }
  return {};
}

std::vector<ValuePtr> BatchParts::inputs(size_t ports, int64_t first, int64_t count) const {
  std::vector<ValuePtr> out(ports);
  for (const Rows& input : inputs_) out[input.at] = Value::of(input.part(first, count));
  return out;
}

std::vector<OutputRequest> BatchParts::requests(size_t ports, int64_t first, int64_t count) const {
  std::vector<OutputRequest> out(ports);
  for (OutputRequest& request : out) request.wanted = false;
  for (const Rows& output : outputs_) {
    if (output.port == Port::kSame && first != 0) continue;
    const Tensor part = output.part(first, count);
    out[output.at].wanted = true;
    out[output.at].data = part.data();
    out[output.at].bytes = part.bytes();
  }
  return out;
}

Status BatchParts::take(const std::vector<ValuePtr>& made, int64_t first, int64_t count) const {
  for (const Rows& output : outputs_) {
    if (output.port == Port::kSame && first != 0) continue;
    const Tensor part = output.part(first, count);
    const Tensor& t = made[output.at]->tensor;
    if (t.dtype != part.dtype || t.dims != part.dims)
      return error(Code::kINTERNAL, "running in parts: output ", output.at,
                   " of a part has other dimensions than its rows of the whole");
    if (t.data() != part.data() && part.bytes()) std::memcpy(part.data(), t.data(), part.bytes());
  }
  return {};
}

std::vector<ValuePtr> BatchParts::outputs(size_t ports) const {
  std::vector<ValuePtr> out(ports);
  for (const Rows& output : outputs_) out[output.at] = Value::of(output.whole);
  return out;
}

Status BatchParts::run(const RunPart& run_part, size_t inputs, size_t outputs,
                       int64_t& most) const {
  most = (batch_ + 1) / 2;
  for (int64_t first = 0; first < batch_;) {
    const int64_t count = std::min(most, batch_ - first);
    std::vector<ValuePtr> made;
    Status status =
        run_part(this->inputs(inputs, first, count), requests(outputs, first, count), made);
    if (status.ok()) {
      PFRT_TRY(take(made, first, count));
      first += count;
    } else if (status.code() != Code::kOUT_OF_MEMORY) {
      return status;
    } else if (count == 1) {
      return error(status.code(), status.message(), "; that was of row ", first, " of ", batch_,
                   " by itself");
    } else {
      most = (count + 1) / 2;
    }
  }
  return {};
}

}  // namespace pfrt
