// SPDX-License-Identifier: Apache-2.0
//
// Gives a state's values to runs, and takes theirs. Two buffers a value take turns, so that a step
// allocates nothing.
#include <algorithm>
#include <utility>

#include "core/session/state.h"

namespace pfrt {
namespace {

// Spare memory for the next value, beyond its own size: |kSteps| steps along its axis, but at most
// |kShort| bytes or the value's own size, whichever is more, and at least an eighth of that size.
constexpr uint64_t kSteps = 64, kShort = uint64_t{1} << 20;

uint64_t room_for(uint64_t bytes, uint64_t step) {
  if (step == 0) return bytes;
  return bytes + std::max({step, bytes / 8, std::min(step * kSteps, std::max(bytes, kShort))});
}

// Whether the values will hardly need |memory| bytes any more, as after most rows have left.
bool too_large(uint64_t memory, uint64_t bytes, uint64_t full) {
  return memory / 4 > std::max({bytes, kShort, full});
}

bool has_buffer(const Value& value, const Buffer* buffer) {
  const auto in = [&](const ValuePtr& part) { return part && has_buffer(*part, buffer); };
  return value.tensor.buffer.get() == buffer || value.indices.buffer.get() == buffer ||
         std::ranges::any_of(value.elements, in) || in(value.keys) || in(value.values);
}

// Whether a part of |value| lies in memory of |other|.
bool shares(const Value& value, const Value& other) {
  const auto with = [&](const ValuePtr& part) { return part && shares(value, *part); };
  const auto has = [&](const Tensor& t) { return t.buffer && has_buffer(value, t.buffer.get()); };
  return has(other.tensor) || has(other.indices) || std::ranges::any_of(other.elements, with) ||
         with(other.keys) || with(other.values);
}

}  // namespace

// A value of zeros. It is empty along the growing axis; a dimension that other inputs of the run
// have by name is as large as theirs, and any other one is 1.
Result<ValuePtr> State::first_value(const Entry& e, const std::vector<ValuePtr>& inputs) const {
  const PortInfo& port = input_of(e);
  if (port.type.kind != PFRT_VALUE_TENSOR || !port.type.has_shape ||
      port.type.dtype == PFRT_DTYPE_UNSET || port.type.dtype == PFRT_DTYPE_STRING)
    return error(Code::kINPUT, "running with a state: '", port.name,
                 "' has no value yet, and its type does not tell how one of zeros looks; set it");
  Dims dims = port.dims;
  if (e.capacity && e.in_place) dims[e.capacity_axis] = static_cast<int64_t>(e.capacity);
  if (e.in_place && !e.capacity && std::ranges::any_of(dims, [](int64_t d) { return d < 0; }))
    return error(Code::kINPUT, "running with a state: '", port.name,
                 "' is written in place and has no value yet, and not all of its dimensions are "
                 "numbers; make the state with the pair's capacity, or set a value that has room "
                 "for the longest sequence");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (e.axis == i) dims[i] = 0;
    if (dims[i] >= 0) continue;
    dims[i] = 1;
    for (size_t other = 0; other < inputs.size() && !port.dim_names[i].empty(); ++other) {
      const PortInfo& with = session_->inputs()[other];
      if (!inputs[other] || inputs[other]->tensor.dims.size() != with.dims.size()) continue;
      for (size_t d = 0; d < with.dims.size(); ++d)
        if (with.dims[d] < 0 && with.dim_names[d] == port.dim_names[i])
          dims[i] = inputs[other]->tensor.dims[d];
    }
  }
  PFRT_ASSIGN(Tensor zeros, Tensor::allocate(port.type.dtype, std::move(dims)));
  return Value::of(std::move(zeros));
}

// Keeps the spare memory, or allocates some, where it has room for at least one more step.
void State::make_room(Entry& e) {
  if (e.in_place || !e.value || e.value->kind != PFRT_VALUE_TENSOR) return;
  const Tensor& t = e.value->tensor;
  if (!t.buffer || t.dtype == PFRT_DTYPE_STRING) return;
  const uint64_t bytes = t.bytes();
  if (bytes == 0) return;  // the size of the next value is unknown
  const auto length = static_cast<uint64_t>(length_of(e));
  const uint64_t step = length == 0 ? 0 : bytes / length;
  if (e.spare && e.spare->device() == t.buffer->device() && e.spare->bytes() >= bytes + step)
    return;
  e.spare = nullptr;
  const uint64_t room = std::max(room_for(bytes, step), full_bytes(e, t));
  auto made =
      t.device() ? Buffer::on_device(t.buffer->device(), room) : Buffer::allocate_pages(room);
  if (made.ok()) e.spare = made.take();  // without it, the run allocates or fails
}

uint64_t State::full_bytes(const Entry& e, const Tensor& value) {
  if (!e.capacity || e.in_place || value.dims.size() <= e.capacity_axis) return 0;
  const auto length = static_cast<uint64_t>(value.dims[e.capacity_axis]);
  const uint64_t step = length == 0 ? 0 : value.bytes() / length;
  uint64_t bytes = 0;
  return __builtin_mul_overflow(step, e.capacity, &bytes) || bytes >> 62 ? 0 : bytes;
}

bool State::suits(const Entry& e, const Tensor& value) {
  const uint64_t bytes = value.bytes();
  return e.spare && e.spare.use_count() == 1 && e.value->tensor.buffer &&
         e.spare->device() == e.value->tensor.buffer->device() && e.spare->bytes() >= bytes &&
         !too_large(e.spare->bytes(), bytes, full_bytes(e, value));
}

void State::keep_memory(Entry& e, const ValuePtr& last) {
  if (e.in_place || e.spare || !last || last.use_count() > 1 || !last->tensor.buffer) return;
  const std::shared_ptr<Buffer>& memory = last->tensor.buffer;
  if (last->kind != PFRT_VALUE_TENSOR || last->tensor.dtype == PFRT_DTYPE_STRING) return;
  // Only this state has the memory, and it is no view of the client's or of a file.
  if (memory.use_count() != 1 || (!memory->owned() && !memory->device())) return;
  const Tensor& now = e.value->tensor;
  if (too_large(memory->bytes(), now.bytes(), full_bytes(e, now))) return;
  e.spare = memory;
}

Status State::make_own(Entry& e) {
  const Tensor& t = e.value->tensor;
  const bool own = e.value.use_count() == 1 && t.buffer && t.buffer.use_count() == 1 &&
                   (t.buffer->owned() || t.device()) && !t.buffer->deferred();
  if (own) return {};
  PFRT_ASSIGN(Tensor copy, like(t, t.dims));
  Transfers transfers;
  transfers.add(copy.data(), copy.device(), t.data(), t.device(), t.bytes());
  PFRT_TRY(transfers.run_alone());
  e.value = Value::of(std::move(copy));
  return {};
}

Status State::check_run(const Session& session, const std::vector<ValuePtr>& inputs,
                        const std::vector<OutputRequest>& requests, bool keeps) const {
  constexpr std::string_view kDoing = "running with a state";
  if (&session != session_.get())
    return error(Code::kINVALID_ARGUMENT, kDoing, ": it was made from another session");
  for (const Entry& e : entries_) {
    if (inputs[e.input])
      return error(Code::kINPUT, kDoing, ": input '", input_of(e).name,
                   "' is the state's; leave it out, or set it in the state");
    if (!keeps && requests[e.output].wanted && requests[e.output].buffer)
      return error(Code::kUNSUPPORTED, kDoing, ": output '", output_of(e).name,
                   "' is the state's and cannot be written to a tensor of the caller's on a "
                   "device; let the run allocate it");
  }
  return {};
}

Status State::fill_in(std::vector<ValuePtr>& inputs) const {
  for (const Entry& e : entries_)
    if (e.value) inputs[e.input] = e.value;
  for (const Entry& e : entries_)
    if (!e.value) {
      PFRT_ASSIGN(inputs[e.input], first_value(e, inputs));
    }
  return {};
}

Status State::lend(std::vector<ValuePtr>& inputs) const {
  const std::lock_guard lock(mutex_);
  return fill_in(inputs);
}

Status State::begin(std::vector<ValuePtr>& inputs, std::vector<OutputRequest>& requests) {
  const std::lock_guard lock(mutex_);
  for (Entry& e : entries_) {
    if (!e.in_place) continue;
    if (!e.value) {
      PFRT_ASSIGN(e.value, first_value(e, inputs));
    }
    PFRT_TRY(make_own(e));
  }
  PFRT_TRY(fill_in(inputs));
  for (Entry& e : entries_) {
    OutputRequest& request = requests[e.output];
    if (!request.wanted) request.wanted = request.on_device = true;
    request.data = nullptr;  // the caller gets a copy
    request.in_place = e.in_place;
    request.at_most = true;
    if (e.in_place) {
      const Tensor& t = e.value->tensor;
      request.data = t.data();
      request.bytes = t.bytes();
      if (t.device()) request.buffer = t.buffer;
      continue;
    }
    make_room(e);
    if (!e.spare || (e.spare->device() && !request.on_device)) continue;
    request.data = e.spare->data();
    request.bytes = e.spare->bytes();
    request.buffer = e.spare;
  }
  return {};
}

Status State::own_outputs(const std::vector<ValuePtr>& inputs,
                          std::vector<ValuePtr>& outputs) const {
  for (const Entry& e : entries_) {
    ValuePtr& output = outputs[e.output];
    for (const ValuePtr& input : inputs)
      if (input && shares(*output, *input)) {
        PFRT_ASSIGN(output, exclusive(std::move(output)));
        break;
      }
  }
  return {};
}

void State::end(std::vector<ValuePtr>& outputs) {
  const std::lock_guard lock(mutex_);
  for (Entry& e : entries_) {
    ValuePtr& next = outputs[e.output];
    if (e.in_place) {
      // A provider that cannot write over the value, or has it in other memory, has made a new one.
      if (next->tensor.data() != e.value->tensor.data()) e.value.swap(next);
      continue;
    }
    if (next->tensor.buffer == e.spare) e.spare = nullptr;
    e.value.swap(next);
    keep_memory(e, next);
  }
}

}  // namespace pfrt
