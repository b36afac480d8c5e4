// SPDX-License-Identifier: Apache-2.0
//
// Runs parts of a batch one after another when memory does not suffice for the whole: half of its
// rows each, or a quarter and so on, where the graph is known to compute each row by itself
// (core/plan/batch_rows.h). Outputs are allocated whole, and each part writes its rows of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/dtype.h"
#include "core/op/engine/infer.h"
#include "core/plan/batch_rows.h"
#include "core/session/session.h"

namespace pfrt {
namespace {

using Port = BatchRows::Port;

// An input or output whose rows belong to rows of the batch.
struct Rows {
  size_t at = 0;  // among the session's inputs or outputs
  Port port = Port::kSame;
  Tensor whole;
  uint64_t row_bytes = 0;
  int64_t per_row = 0;  // rows of this value for each row of the batch
};

// False where rows of |t| do not begin at bytes of their own.
bool measure(Rows& rows, int64_t batch) {
  const Tensor& t = rows.whole;
  if (t.dtype == PFRT_DTYPE_STRING || t.device()) return false;
  if (rows.port != Port::kRows) return true;
  if (t.dims.empty() || t.dims[0] % batch != 0) return false;
  const auto bits = static_cast<uint64_t>(t.count() / batch) * dtype_bits(t.dtype);
  rows.per_row = t.dims[0] / batch;
  rows.row_bytes = bits / 8;
  return bits % 8 == 0;
}

Tensor part_of(const Rows& rows, int64_t first, int64_t count) {
  Tensor part = rows.whole;
  if (rows.port != Port::kRows) return part;
  part.dims[0] = count * rows.per_row;
  part.offset += static_cast<uint64_t>(first) * rows.row_bytes;
  return part;
}

// Cuts the inputs and outputs of a run into parts.
class Parts {
 public:
  // |where| gives the place among |inputs| of each input of the graph. The error says what is in
  // the way.
  static Result<Parts> of(const Graph& graph, const std::vector<size_t>& where,
                          const std::vector<ValuePtr>& inputs,
                          const std::vector<OutputRequest>& requests) {
    Parts out;
    PFRT_ASSIGN(const BatchRows known, batch_rows(graph));
    PFRT_TRY(out.take_inputs(known, where, inputs));
    PFRT_TRY(out.take_outputs(graph, known, requests));
    return out;
  }

  int64_t batch() const { return batch_; }

  Status allocate() {
    for (Rows& output : outputs_) {
      Tensor& t = output.whole;
      if (t.buffer) continue;
      PFRT_ASSIGN(t, Tensor::allocate(t.dtype, t.dims, false));
    }
    return {};
  }

  std::vector<ValuePtr> inputs(size_t ports, int64_t first, int64_t count) const {
    std::vector<ValuePtr> out(ports);
    for (const Rows& input : inputs_) out[input.at] = Value::of(part_of(input, first, count));
    return out;
  }
  std::vector<OutputRequest> requests(size_t ports, int64_t first, int64_t count) const {
    std::vector<OutputRequest> out(ports);
    for (OutputRequest& request : out) request.wanted = false;
    for (const Rows& output : outputs_) {
      if (output.port == Port::kSame && first != 0) continue;
      const Tensor part = part_of(output, first, count);
      out[output.at].wanted = true;
      out[output.at].data = part.data();
      out[output.at].bytes = part.bytes();
    }
    return out;
  }
  // Copies the outputs of a part to where they were asked for, if they lie elsewhere.
  Status take(const std::vector<ValuePtr>& made, int64_t first, int64_t count) const {
    for (const Rows& output : outputs_) {
      if (output.port == Port::kSame && first != 0) continue;
      const Tensor part = part_of(output, first, count);
      const Tensor& t = made[output.at]->tensor;
      if (t.dtype != part.dtype || t.dims != part.dims)
        return error(Code::kINTERNAL, "running in parts: output ", output.at,
                     " of a part has other dimensions than its rows of the whole");
      if (t.data() != part.data() && part.bytes()) std::memcpy(part.data(), t.data(), part.bytes());
    }
    return {};
  }
  std::vector<ValuePtr> outputs(size_t ports) const {
    std::vector<ValuePtr> out(ports);
    for (const Rows& output : outputs_) out[output.at] = Value::of(output.whole);
    return out;
  }

 private:
  template <typename... Text>
  static Status not_cut(const Text&... text) {
    return error(Code::kUNSUPPORTED, text...);
  }

  Status take_inputs(const BatchRows& known, const std::vector<size_t>& where,
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
      if (!measure(input, batch_))
        return not_cut("input ", input.at, " is on a device, of strings, or packed across rows");
    return {};
  }

  Status take_outputs(const Graph& graph, const BatchRows& known,
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
      if (!measure(output, batch_) || request.on_device || request.device() || request.at_most ||
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

  int64_t batch_ = 0;
  std::vector<Rows> inputs_, outputs_;
};

}  // namespace

Status Session::run_in_parts(const std::vector<ValuePtr>& inputs,
                             const std::vector<OutputRequest>& requests, const RunControl& control,
                             std::vector<ValuePtr>& outputs, Status failure) try {
  const std::shared_ptr<Plans> plans = current();
  auto cut = Parts::of(plans->main.graph->graph(), plans->main.order, inputs, requests);
  if (cut.status().code() == Code::kNOT_FOUND) return failure;  // nobody expects it to be halved
  if (!cut.ok())
    return error(failure.code(), failure.message(),
                 "; its batch cannot be halved: ", cut.status().message());
  Parts parts = cut.take();
  const ProfileSpan span(control.profile, "run in parts");
  enter(PFRT_PHASE_MEMORY_RECOVERY);
  trim();
  PFRT_TRY(parts.allocate());
  int64_t most = (parts.batch() + 1) / 2;
  for (int64_t first = 0; first < parts.batch();) {
    const int64_t count = std::min(most, parts.batch() - first);
    std::vector<ValuePtr> made;
    Status status = run_cured(parts.inputs(inputs.size(), first, count), false,
                              parts.requests(outputs_.size(), first, count), control, made);
    if (status.ok()) {
      PFRT_TRY(parts.take(made, first, count));
      first += count;
    } else if (status.code() != Code::kOUT_OF_MEMORY) {
      return status;
    } else if (count == 1) {
      return error(status.code(), status.message(), "; that was of row ", first, " of ",
                   parts.batch(), " by itself");
    } else {
      most = (count + 1) / 2;
    }
  }
  outputs = parts.outputs(outputs_.size());
  ++statistics_->in_parts;
  logger_->log(PFRT_LOG_INFO, "a run of ", parts.batch(), " rows was done in parts of at most ",
               most, ": ", failure.message());
  return {};
} catch (const std::bad_alloc&) {
  return failure;
}

}  // namespace pfrt
