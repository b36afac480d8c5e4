// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/exec/host/call.h"
#include "core/exec/host/slices.h"

namespace pfrt::host {
namespace {

// A position in a sequence of |count|, negative counting from the end; |limit| is one past the
// largest allowed.
Result<size_t> position(const Value& v, size_t count, size_t limit) {
  const std::vector<int64_t> numbers =
      v.kind == PFRT_VALUE_TENSOR ? to_int64s(v.tensor) : std::vector<int64_t>();
  if (numbers.size() != 1) return error(Code::kINVALID_MODEL, "the position must be one integer");
  const int64_t n = static_cast<int64_t>(count);
  const int64_t at = numbers[0] < 0 ? numbers[0] + n : numbers[0];
  if (at < 0 || at >= static_cast<int64_t>(limit))
    return error(Code::kINVALID_ARGUMENT, "position ", numbers[0], " is outside a sequence of ",
                 count);
  return static_cast<size_t>(at);
}

// The elements of input 0, a sequence, to be changed: taken from it where nobody else holds it.
Result<std::vector<ValuePtr>> own_elements(const Call& call) {
  PFRT_ASSIGN(const Value* seq, need(call, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  if (call.in[0].use_count() > 1) return seq->elements;
  return std::move(std::const_pointer_cast<Value>(call.in[0])->elements);
}

ValuePtr scalar_value(Result<Tensor>& tensor) { return Value::of(tensor.take()); }

Status sequence_empty(const Call& call) {
  call.out[0] =
      Value::sequence({}, static_cast<pfrt_dtype>(call.node.attr_int("dtype", PFRT_DTYPE_FLOAT32)));
  return {};
}

Status sequence_construct(const Call& call) {
  if (call.in.empty()) return error(Code::kINVALID_MODEL, "needs at least one input");
  call.out[0] = Value::sequence(call.in, type_of(*call.in[0]).dtype);
  return {};
}

Status sequence_insert(const Call& call) {
  if (!call.input(1)) return error(Code::kINVALID_MODEL, "has no tensor to insert");
  PFRT_ASSIGN(std::vector<ValuePtr> elements, own_elements(call));
  size_t at = elements.size();
  if (call.input(2)) {
    PFRT_ASSIGN(at, position(*call.input(2), elements.size(), elements.size() + 1));
  }
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), call.in[1]);
  call.out[0] = Value::sequence(std::move(elements), type_of(*call.in[1]).dtype);
  return {};
}

Status sequence_erase(const Call& call) {
  PFRT_ASSIGN(const Value* seq, need(call, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  const pfrt_dtype dtype = type_of(*seq).dtype;
  PFRT_ASSIGN(std::vector<ValuePtr> elements, own_elements(call));
  if (elements.empty()) return error(Code::kINVALID_ARGUMENT, "the sequence is empty");
  size_t at = elements.size() - 1;
  if (call.input(1)) {
    PFRT_ASSIGN(at, position(*call.input(1), elements.size(), elements.size()));
  }
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  call.out[0] = Value::sequence(std::move(elements), dtype);
  return {};
}

Status sequence_at(const Call& call) {
  PFRT_ASSIGN(const Value* seq, need(call, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  if (!call.input(1)) return error(Code::kINVALID_MODEL, "has no position");
  PFRT_ASSIGN(size_t at, position(*call.input(1), seq->elements.size(), seq->elements.size()));
  call.out[0] = seq->elements[at];
  return {};
}

Status sequence_length(const Call& call) {
  PFRT_ASSIGN(const Value* seq, need(call, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  auto tensor = Tensor::scalar_int64(static_cast<int64_t>(seq->elements.size()));
  if (!tensor.ok()) return tensor.take_status();
  call.out[0] = scalar_value(tensor);
  return {};
}

Result<size_t> axis_of(const Call& call, size_t rank, int64_t fallback) {
  const int64_t axis = call.node.attr_int("axis", fallback);
  const int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    return error(Code::kINVALID_MODEL, "axis ", axis, " is outside a tensor of rank ", rank);
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

Status split_to_sequence(const Call& call) {
  PFRT_ASSIGN(const Value* value, need(call, 0, PFRT_VALUE_TENSOR, "a tensor"));
  const Tensor& t = value->tensor;
  PFRT_ASSIGN(size_t axis, axis_of(call, t.dims.size(), 0));
  const int64_t size = t.dims[axis];
  std::vector<int64_t> lengths;
  bool keep = true;
  if (const Value* split = call.input(1)) {
    const std::vector<int64_t> numbers = to_int64s(split->tensor);
    if (split->tensor.dims.empty()) {
      if (numbers.size() != 1 || numbers[0] <= 0)
        return error(Code::kINVALID_ARGUMENT, "split must be positive");
      for (int64_t at = 0; at < size; at += numbers[0])
        lengths.push_back(std::min(numbers[0], size - at));
    } else {
      lengths = numbers;
    }
  } else {
    keep = call.node.attr_int("keepdims", 1) != 0;
    lengths.assign(static_cast<size_t>(size), 1);
  }
  int64_t sum = 0;
  for (int64_t n : lengths) {
    if (n < 0 || n > size - sum)
      return error(Code::kINVALID_ARGUMENT, "split has ", n, " where ", size - sum, " of ", size,
                   " elements are left");
    sum += n;
  }
  if (sum != size)
    return error(Code::kINVALID_ARGUMENT, "split adds up to ", sum, ", the dimension is ", size);
  std::vector<ValuePtr> parts;
  int64_t at = 0;
  for (int64_t n : lengths) {
    PFRT_TRY(call.look(parts.size()));
    PFRT_ASSIGN(Tensor part, slice(call.control, t, axis, at, n));
    if (!keep) part.dims.erase(part.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    parts.push_back(Value::of(std::move(part)));
    at += n;
  }
  call.out[0] = Value::sequence(std::move(parts), t.dtype);
  return {};
}

Status concat_from_sequence(const Call& call) {
  PFRT_ASSIGN(const Value* seq, need(call, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  if (seq->elements.empty()) return error(Code::kINVALID_ARGUMENT, "the sequence is empty");
  const bool stack = call.node.attr_int("new_axis", 0) != 0;
  std::vector<Tensor> parts;
  for (const ValuePtr& e : seq->elements) {
    PFRT_TRY(call.look(parts.size()));
    if (e->kind != PFRT_VALUE_TENSOR)
      return error(Code::kINVALID_MODEL, "the sequence must hold tensors");
    parts.push_back(e->tensor);
  }
  PFRT_ASSIGN(size_t axis, axis_of(call, parts[0].dims.size() + (stack ? 1 : 0), 0));
  if (stack)
    for (Tensor& p : parts)
      p.dims.insert(p.dims.begin() + static_cast<std::ptrdiff_t>(std::min(axis, p.dims.size())), 1);
  PFRT_ASSIGN(Tensor whole, concat(call.control, parts, axis));
  call.out[0] = Value::of(std::move(whole));
  return {};
}

Status make_optional(const Call& call) {
  call.out[0] = Value::optional(call.in.empty() ? nullptr : call.in[0]);
  return {};
}

Status optional_has_element(const Call& call) {
  const Value* v = call.input(0);
  const uint8_t has = v && (v->kind != PFRT_VALUE_OPTIONAL || !v->elements.empty());
  auto tensor = Tensor::copy_of(PFRT_DTYPE_BOOL, {}, &has);
  if (!tensor.ok()) return tensor.take_status();
  call.out[0] = scalar_value(tensor);
  return {};
}

Status optional_get_element(const Call& call) {
  const Value* v = call.input(0);
  if (!v) return error(Code::kINVALID_MODEL, "has no input");
  if (v->kind != PFRT_VALUE_OPTIONAL) {
    call.out[0] = call.in[0];
    return {};
  }
  if (v->elements.empty()) return error(Code::kINVALID_ARGUMENT, "the optional is empty");
  call.out[0] = v->elements[0];
  return {};
}

Status identity(const Call& call) {
  if (call.in.empty() || !call.in[0]) return error(Code::kINVALID_MODEL, "has no input");
  call.out[0] = call.in[0];
  return {};
}

constexpr HostOp kSequenceOps[] = {
    {"", "SequenceEmpty", sequence_empty},
    {"", "SequenceConstruct", sequence_construct},
    {"", "SequenceInsert", sequence_insert},
    {"", "SequenceErase", sequence_erase},
    {"", "SequenceAt", sequence_at},
    {"", "SequenceLength", sequence_length},
    {"", "SplitToSequence", split_to_sequence},
    {"", "ConcatFromSequence", concat_from_sequence},
    {"", "Optional", make_optional},
    {"", "OptionalHasElement", optional_has_element},
    {"", "OptionalGetElement", optional_get_element},
    {"", "Identity", identity},
};

}  // namespace

std::span<const HostOp> sequence_ops() { return kSequenceOps; }

}  // namespace pfrt::host
