// SPDX-License-Identifier: Apache-2.0
//
// Loop, Scan and SequenceMap. Values that a body hands on to itself are never copied: where nobody
// else holds the bytes of the value before the last, the next one is made there. A sequence that
// only the loop holds grows in place.
#include <algorithm>

#include "core/exec/body_call.h"
#include "core/exec/device_copy.h"
#include "core/exec/host/slices.h"

namespace pfrt {
namespace {

// Values that go from one iteration to the next.
class Carried {
 public:
  explicit Carried(std::vector<ValuePtr> initial)
      : values_(std::move(initial)), spare_(values_.size()) {}

  const std::vector<ValuePtr>& values() const { return values_; }
  // Values for the body. A sequence is moved out, so that it can grow in place.
  std::vector<ValuePtr> give() {
    std::vector<ValuePtr> out;
    out.reserve(values_.size());
    for (ValuePtr& value : values_)
      out.push_back(value->kind == PFRT_VALUE_TENSOR ? value : std::move(value));
    return out;
  }

  // The best memory for the next value |i|.
  OutputRequest target(size_t i) const {
    OutputRequest request;
    if (!spare_[i] || !values_[i]) return request;
    request.data = spare_[i]->data();
    request.bytes = values_[i]->tensor.bytes();
    if (request.bytes > spare_[i]->bytes()) return {};
    request.buffer = spare_[i];
    return request;
  }

  // |next| takes the place of value |i|, whose memory is kept when nobody else has it.
  void advance(size_t i, ValuePtr next) {
    ValuePtr old = std::exchange(values_[i], std::move(next));
    if (!old) return;
    std::shared_ptr<Buffer> buffer = old->tensor.buffer;
    const bool whole = old->kind == PFRT_VALUE_TENSOR && old->tensor.offset == 0;
    const bool ours = old.use_count() == 1;
    const bool numbers = old->tensor.dtype != PFRT_DTYPE_STRING;
    old.reset();
    if (buffer == nullptr || buffer == spare_[i]) return;
    const bool free =
        ours && whole && numbers && buffer.use_count() == 1 && buffer->owned() && !buffer->device();
    spare_[i] = free ? std::move(buffer) : nullptr;
  }

 private:
  std::vector<ValuePtr> values_;
  std::vector<std::shared_ptr<Buffer>> spare_;
};

template <typename T>
Result<ValuePtr> scalar(pfrt_dtype dtype, T value) {
  PFRT_ASSIGN(Tensor tensor, Tensor::copy_of(dtype, {}, &value));
  return Value::of(std::move(tensor));
}

Result<bool> truth(const Value& value, const char* what) {
  if (value.kind != PFRT_VALUE_TENSOR || value.tensor.dtype != PFRT_DTYPE_BOOL ||
      value.tensor.count() != 1)
    return error(Code::kSHAPE_MISMATCH, what, " must be one bool");
  return *value.tensor.as<const uint8_t>() != 0;
}

Status in_iteration(Status status, const Graph& body, int64_t iteration) {
  if (status.ok() || status.code() == Code::kCANCELLED || status.code() == Code::kDEADLINE)
    return status;
  return status.prepend(message("iteration ", iteration, " of body '", body.name, "'"));
}

// Runs the body once and takes its outputs from |first| on: those carried, then slices.
class Iteration {
 public:
  Iteration(BodyCall& body, Carried& carried, std::vector<Stack>& stacks, size_t first)
      : body_(body), carried_(carried), stacks_(stacks), first_(first) {}

  // |outputs()| holds what the body made; slices are in host memory.
  Status run(std::vector<ValuePtr> inputs) {
    const size_t count = carried_.values().size();
    if (const Code stop = body_.control().stop(); stop != Code::kOK) return stop_status(stop);
    std::vector<OutputRequest> requests(first_ + count + stacks_.size());
    for (size_t i = 0; i < count; ++i) requests[first_ + i] = carried_.target(i);
    for (size_t i = 0; i < stacks_.size(); ++i) requests[first_ + count + i] = stacks_[i].target();
    outputs_.clear();
    PFRT_TRY(body_.run(std::move(inputs), requests, outputs_));
    requests.clear();
    std::vector<ValuePtr*> read_here;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (i < first_ || i >= first_ + count) read_here.push_back(&outputs_[i]);
    PFRT_TRY(copy_to_host(read_here, body_.control()));
    for (size_t i = 0; i < stacks_.size(); ++i)
      PFRT_TRY(stacks_[i]
                   .add(*outputs_[first_ + count + i])
                   .prepend(message("output '", name(first_ + count + i), "'")));
    return {};
  }
  // To be called when nothing else holds the inputs.
  void advance() {
    for (size_t i = 0; i < carried_.values().size(); ++i)
      carried_.advance(i, std::move(outputs_[first_ + i]));
  }
  const std::vector<ValuePtr>& outputs() const { return outputs_; }

 private:
  const std::string& name(size_t output) const {
    return body_.graph().at(body_.graph().outputs[output]).name;
  }

  BodyCall& body_;
  Carried& carried_;
  std::vector<Stack>& stacks_;
  size_t first_;
  std::vector<ValuePtr> outputs_;
};

Status finish(const RunControl& control, const Carried& carried, std::vector<Stack>& stacks,
              const std::vector<Type>& types, std::vector<ValuePtr>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (i < carried.values().size()) {
      out[i] = carried.values()[i];
      continue;
    }
    const size_t stack = i - carried.values().size();
    if (stack >= stacks.size()) break;
    PFRT_ASSIGN(Tensor whole, stacks[stack].finish(control, types[i]));
    out[i] = Value::of(std::move(whole));
  }
  return {};
}

const Tensor* tensor_at(const std::vector<ValuePtr>& in, size_t i) {
  return i < in.size() && in[i] && in[i]->kind == PFRT_VALUE_TENSOR ? &in[i]->tensor : nullptr;
}

int64_t attr_at(const Node& node, const char* list, size_t i) {
  const std::vector<int64_t>* values = node.attr_ints(list);
  return values && i < values->size() ? (*values)[i] : 0;
}

}  // namespace

// The standard says: without a condition the body's is computed and not heeded; without a count the
// condition alone ends the loop.
Status run_loop(BodyCall& body, const std::vector<ValuePtr>& in, std::vector<ValuePtr>& out) {
  const Graph& graph = body.graph();
  if (body.input_count() < 2 || body.output_count() + 1 < body.input_count())
    return error(
        Code::kINVALID_MODEL, "body '", graph.name,
        "' of Loop must take the iteration number, the condition and the loop-carried values, "
        "and give the condition and these again");
  int64_t trips = INT64_MAX;
  if (const Tensor* count = tensor_at(in, 0)) {
    const std::vector<int64_t> numbers = to_int64s(*count);
    if (numbers.size() != 1)
      return error(Code::kSHAPE_MISMATCH, "the trip count must be one int64");
    trips = numbers[0];
  }
  const bool conditional = in.size() > 1 && in[1];
  ValuePtr condition;
  if (conditional) {
    condition = in[1];
  } else {
    PFRT_ASSIGN(condition, scalar<uint8_t>(PFRT_DTYPE_BOOL, 1));
  }
  PFRT_ASSIGN(bool goes_on, truth(*condition, "the condition"));
  const bool ran = goes_on && trips > 0;
  std::vector<ValuePtr> initial(in.begin() + std::min<std::ptrdiff_t>(2, std::ssize(in)), in.end());
  initial.resize(body.input_count() - 2);
  for (size_t i = 0; i < initial.size(); ++i)
    if (!initial[i])
      return error(Code::kINVALID_MODEL, "the initial value of loop-carried value ", i,
                   " is absent");
  Carried carried(std::move(initial));
  const size_t count = carried.values().size();
  std::vector<Stack> stacks(body.output_count() - 1 - count, Stack(-1, 0, false));
  Iteration iteration(body, carried, stacks, 1);
  for (int64_t i = 0; i < trips && goes_on; ++i) {
    {
      PFRT_ASSIGN(ValuePtr number, scalar(PFRT_DTYPE_INT64, i));
      std::vector<ValuePtr> inputs(2);
      PFRT_ASSIGN(inputs[0], body.one_element(std::move(number), 0));
      PFRT_ASSIGN(inputs[1], body.one_element(condition, 1));
      for (ValuePtr& value : carried.give()) inputs.push_back(std::move(value));
      PFRT_TRY(in_iteration(iteration.run(std::move(inputs)), graph, i));
    }
    condition = iteration.outputs()[0];
    iteration.advance();
    auto next = truth(*condition, "the condition that the body gives");
    if (!next.ok()) return in_iteration(next.take_status(), graph, i);
    if (conditional) goes_on = next.value();
  }
  std::vector<Type> types(body.output_count() - 1);
  if (!ran && !stacks.empty()) {
    PFRT_ASSIGN(ValuePtr number, scalar<int64_t>(PFRT_DTYPE_INT64, 0));
    std::vector<ValuePtr> inputs(2);
    PFRT_ASSIGN(inputs[0], body.one_element(std::move(number), 0));
    PFRT_ASSIGN(inputs[1], body.one_element(condition, 1));
    inputs.insert(inputs.end(), carried.values().begin(), carried.values().end());
    PFRT_ASSIGN(types, body.output_types(inputs));
    types.erase(types.begin());
  }
  return finish(body.control(), carried, stacks, types, out);
}

namespace {

struct ScanInput {
  Tensor tensor;
  size_t axis;
  bool back;
};

// Scans one sequence, of whose slices the first |length| are taken.
Status scan(const Node& node, BodyCall& body, std::vector<ValuePtr> initial,
            const std::vector<ScanInput>& scanned, int64_t length, std::vector<ValuePtr>& out) {
  Carried carried(std::move(initial));
  const size_t count = carried.values().size();
  std::vector<Stack> stacks;
  for (size_t i = 0; i + count < body.output_count(); ++i)
    stacks.emplace_back(length, attr_at(node, "scan_output_axes", i),
                        attr_at(node, "scan_output_directions", i) != 0);
  Iteration iteration(body, carried, stacks, 0);
  const auto inputs_at = [&](int64_t t) -> Result<std::vector<ValuePtr>> {
    std::vector<ValuePtr> inputs = carried.give();
    for (const ScanInput& s : scanned) {
      const int64_t at = s.back ? length - 1 - t : t;
      PFRT_ASSIGN(Tensor slice, slice_at(body.control(), s.tensor, s.axis, at));
      inputs.push_back(Value::of(std::move(slice)));
    }
    return inputs;
  };
  for (int64_t t = 0; t < length; ++t) {
    {
      PFRT_ASSIGN(std::vector<ValuePtr> inputs, inputs_at(t));
      PFRT_TRY(in_iteration(iteration.run(std::move(inputs)), body.graph(), t));
    }
    iteration.advance();
  }
  std::vector<Type> types(body.output_count());
  if (length == 0) {
    // Only the type and dimensions of empty slices matter.
    std::vector<ValuePtr> inputs = carried.values();
    for (const ScanInput& s : scanned) {
      Dims dims = s.tensor.dims;
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(s.axis));
      Tensor like;
      like.dtype = s.tensor.dtype;
      like.dims = std::move(dims);
      inputs.push_back(Value::of(std::move(like)));
    }
    PFRT_ASSIGN(types, body.output_types(inputs));
  }
  out.assign(body.output_count(), nullptr);
  return finish(body.control(), carried, stacks, types, out);
}

Result<std::vector<ScanInput>> scan_inputs(const Node& node, const std::vector<ValuePtr>& in,
                                           size_t first, size_t batched, int64_t* length) {
  std::vector<ScanInput> scanned;
  for (size_t i = first; i < in.size(); ++i) {
    const Tensor* t = tensor_at(in, i);
    if (!t) return error(Code::kINVALID_MODEL, "scan input ", i - first, " is no tensor");
    const int64_t rank = static_cast<int64_t>(t->dims.size()) - static_cast<int64_t>(batched);
    int64_t axis = attr_at(node, "scan_input_axes", i - first);
    if (axis < -rank || axis >= rank)
      return error(Code::kINVALID_MODEL, "attribute 'scan_input_axes': axis ", axis,
                   " is not one of scan input ", i - first, ", which has rank ", rank);
    if (axis < 0) axis += rank;
    const size_t at = static_cast<size_t>(axis) + batched;
    const bool back = attr_at(node, "scan_input_directions", i - first) != 0;
    if (i > first && t->dims[at] != *length)
      return error(Code::kSHAPE_MISMATCH, "scan input ", i - first, " has ", t->dims[at],
                   " slices along its axis, the first has ", *length);
    *length = t->dims[at];
    scanned.push_back({*t, at, back});
  }
  return scanned;
}

// Element |b| of the batch.
Result<Tensor> of_batch(const RunControl& control, const ValuePtr& value, int64_t b,
                        int64_t batches) {
  if (!value || value->kind != PFRT_VALUE_TENSOR || value->tensor.dims.empty() ||
      value->tensor.dims[0] != batches)
    return error(Code::kSHAPE_MISMATCH, "all inputs must be tensors with a batch of ", batches);
  return slice_at(control, value->tensor, 0, b);
}

// Slices of shorter sequences are followed by zeros, or empty strings.
Result<Tensor> padded(const RunControl& control, Tensor tensor, size_t axis, int64_t length) {
  if (axis >= tensor.dims.size() || tensor.dims[axis] >= length) return tensor;
  Dims dims = tensor.dims;
  dims[axis] = length - tensor.dims[axis];
  PFRT_ASSIGN(Tensor zeros, Tensor::allocate(tensor.dtype, std::move(dims)));
  const Tensor parts[] = {std::move(tensor), std::move(zeros)};
  return concat(control, parts, axis);
}

// Opset 8 scans each element of the batch.
Status run_batched_scan(const Node& node, BodyCall& body, const std::vector<ValuePtr>& in,
                        size_t first, std::vector<ValuePtr>& out) {
  int64_t room = 0;
  PFRT_ASSIGN(const std::vector<ScanInput> scanned, scan_inputs(node, in, first, 1, &room));
  const int64_t batches = scanned[0].tensor.dims[0];
  std::vector<int64_t> lengths(static_cast<size_t>(batches), room);
  if (const Tensor* given = tensor_at(in, 0)) {
    lengths = to_int64s(*given);
    if (static_cast<int64_t>(lengths.size()) != batches)
      return error(Code::kSHAPE_MISMATCH, "there are ", lengths.size(), " sequence lengths for ",
                   batches, " sequences");
    for (const int64_t n : lengths)
      if (n < 0 || n > room)
        return error(Code::kINVALID_ARGUMENT, "sequence length ", n, " is not one of [0, ", room,
                     "]");
  }
  if (batches == 0) return error(Code::kINVALID_ARGUMENT, "the batch is empty");
  std::vector<Stack> stacks(out.size(), Stack(batches, 0, false));
  for (int64_t b = 0; b < batches; ++b) {
    std::vector<ValuePtr> initial;
    for (size_t i = 1; i < first; ++i) {
      PFRT_ASSIGN(Tensor state, of_batch(body.control(), in[i], b, batches));
      initial.push_back(Value::of(std::move(state)));
    }
    std::vector<ScanInput> own = scanned;
    const int64_t length = lengths[static_cast<size_t>(b)];
    for (size_t i = 0; i < own.size(); ++i) {
      PFRT_ASSIGN(own[i].tensor, of_batch(body.control(), in[first + i], b, batches));
      --own[i].axis;
    }
    std::vector<ValuePtr> outputs;
    PFRT_TRY(scan(node, body, std::move(initial), own, length, outputs)
                 .prepend(message("sequence ", b, " of the batch")));
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t carried = first - 1;
      if (i >= carried) {
        PFRT_ASSIGN(Tensor whole, padded(body.control(), outputs[i]->tensor, 0, room));
        outputs[i] = Value::of(std::move(whole));
      }
      PFRT_TRY(stacks[i].add(*outputs[i]));
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    PFRT_ASSIGN(Tensor whole, stacks[i].finish(body.control(), {}));
    out[i] = Value::of(std::move(whole));
  }
  return {};
}

}  // namespace

Status run_scan(const Node& node, BodyCall& body, const std::vector<ValuePtr>& in,
                std::vector<ValuePtr>& out) {
  const size_t batched = node.attr_int("batched", 0) ? 1 : 0;
  const int64_t scans = node.attr_int("num_scan_inputs", 0);
  if (scans < 1 || static_cast<uint64_t>(scans) + batched > in.size() ||
      in.size() - batched != body.input_count())
    return error(Code::kINVALID_MODEL, "the node has ", in.size(), " inputs for a body of ",
                 body.input_count(), " and ", scans, " to scan");
  const size_t first = in.size() - static_cast<size_t>(scans);
  if (body.output_count() + batched < first || out.size() > body.output_count())
    return error(Code::kINVALID_MODEL, "body '", body.graph().name, "' has ", body.output_count(),
                 " outputs, fewer than the node has, or than there are state variables");
  if (batched) return run_batched_scan(node, body, in, first, out);
  int64_t length = 0;
  PFRT_ASSIGN(const std::vector<ScanInput> scanned, scan_inputs(node, in, first, 0, &length));
  std::vector<ValuePtr> initial(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(first));
  for (size_t i = 0; i < initial.size(); ++i)
    if (!initial[i])
      return error(Code::kINVALID_MODEL, "the initial value of state variable ", i, " is absent");
  std::vector<ValuePtr> outputs;
  PFRT_TRY(scan(node, body, std::move(initial), scanned, length, outputs));
  std::copy_n(outputs.begin(), out.size(), out.begin());
  return {};
}

Status run_sequence_map(BodyCall& body, const std::vector<ValuePtr>& in,
                        std::vector<ValuePtr>& out) {
  if (in.empty() || !in[0] || in[0]->kind != PFRT_VALUE_SEQUENCE)
    return error(Code::kINVALID_MODEL, "input 0 must be a sequence");
  const size_t length = in[0]->elements.size();
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) return error(Code::kINVALID_MODEL, "input ", i, " is absent");
    if (in[i]->kind == PFRT_VALUE_SEQUENCE && in[i]->elements.size() != length)
      return error(Code::kSHAPE_MISMATCH, "input ", i, " is a sequence of ", in[i]->elements.size(),
                   " elements, input 0 has ", length);
  }
  if (in.size() != body.input_count() || out.size() > body.output_count())
    return error(Code::kINVALID_MODEL, "body '", body.graph().name, "' takes ", body.input_count(),
                 " values and makes ", body.output_count(), ", the node has ", in.size(), " and ",
                 out.size());
  std::vector<std::vector<ValuePtr>> made(out.size());
  for (size_t i = 0; i < length; ++i) {
    if (const Code stop = body.control().stop(); stop != Code::kOK) return stop_status(stop);
    std::vector<ValuePtr> inputs, outputs;
    inputs.reserve(in.size());
    for (const ValuePtr& value : in)
      inputs.push_back(value->kind == PFRT_VALUE_SEQUENCE ? value->elements[i] : value);
    PFRT_TRY(in_iteration(body.run(std::move(inputs), {}, outputs), body.graph(),
                          static_cast<int64_t>(i)));
    for (size_t k = 0; k < out.size(); ++k) made[k].push_back(std::move(outputs[k]));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    std::vector<ValuePtr*> read_here;
    for (ValuePtr& value : made[k]) read_here.push_back(&value);
    PFRT_TRY(copy_to_host(read_here, body.control()));
    out[k] =
        Value::sequence(std::move(made[k]), body.graph().at(body.graph().outputs[k]).type.dtype);
  }
  return {};
}

}  // namespace pfrt
