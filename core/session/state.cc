// SPDX-License-Identifier: Apache-2.0
#include "core/session/state.h"

#include <algorithm>
#include <utility>

#include "core/base/os/atomic_file.h"
#include "core/base/os/file.h"
#include "core/format/pfm.h"
#include "core/model/ports.h"

namespace pfrt {
namespace {

// Spare memory for the next value, beyond its own size: |kSteps| steps along its axis, but at most
// |kShort| bytes or the value's own size, whichever is more, and at least an eighth of that size.
constexpr uint64_t kSteps = 64, kShort = uint64_t{1} << 20;

uint64_t with_room(uint64_t bytes, uint64_t step) {
  return bytes + std::max({step, bytes / 8, std::min(step * kSteps, std::max(bytes, kShort))});
}

size_t find_port(const std::vector<PortInfo>& ports, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(ports, name, &PortInfo::name) - ports.begin());
}

std::string names_of(const std::vector<PortInfo>& ports) {
  std::string out;
  for (const PortInfo& port : ports) out += message(out.empty() ? "'" : ", '", port.name, "'");
  return out.empty() ? "none" : out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == text.npos ? std::string() : text.replace(at, from.size(), to);
}

// Names that exporters give the output that belongs to |input|.
std::vector<std::string> output_names(const std::string& input) {
  std::vector<std::string> out{replaced(input, "past_key_values", "present"),
                               replaced(input, "past", "present"), input + "_out", input + "N"};
  if (input.starts_with("in_")) out.push_back("out_" + input.substr(3));
  if (input.ends_with("_in")) out.push_back(input.substr(0, input.size() - 3) + "_out");
  return out;
}

bool may_be_the_same(const PortInfo& input, const PortInfo& output) {
  const auto alike = [](auto a, auto b, auto unset) { return a == b || a == unset || b == unset; };
  return alike(input.type.kind, output.type.kind, pfrt_value_kind{PFRT_VALUE_UNSET}) &&
         alike(input.type.dtype, output.type.dtype, pfrt_dtype{PFRT_DTYPE_UNSET}) &&
         (!input.type.has_shape || !output.type.has_shape ||
          input.dims.size() == output.dims.size());
}

// Axes whose dimension has a name in the input, and another or none in the output.
std::vector<size_t> growing_axes(const PortInfo& input, const PortInfo& output) {
  std::vector<size_t> out;
  for (size_t i = 0; i < input.dims.size() && i < output.dims.size(); ++i)
    if (input.dims[i] < 0 && output.dims[i] < 0 && !input.dim_names[i].empty() &&
        input.dim_names[i] != output.dim_names[i])
      out.push_back(i);
  return out;
}

// Whether an operator that writes rows into a cache makes |output| from |input|.
bool writes_into(const Graph& graph, std::string_view input, std::string_view output) {
  const ValueId from = graph.find(input), to = graph.find(output);
  if (from == kNoId || to == kNoId || graph.at(to).producer == kNoId) return false;
  const Node& node = *graph.node(graph.at(to).producer);
  if (node.op != "TensorScatter" && node.op != "GroupQueryAttention") return false;
  const bool same_dims = graph.at(from).type.has_shape && graph.at(to).type.has_shape &&
                         graph.at(from).type.shape == graph.at(to).type.shape;
  return same_dims && std::ranges::find(node.inputs, from) != node.inputs.end();
}

// The size of |value| along |axis|: 0 where it is no tensor, or its rank is too small.
int64_t along(const ValuePtr& value, std::optional<size_t> axis) {
  if (!value || !axis || *axis >= value->tensor.dims.size()) return 0;
  return value->tensor.dims[*axis];
}

// The layout of a tensor around one axis: |outer| times |along| times |inner| bytes.
struct Strips {
  uint64_t outer, inner;

  static Result<Strips> of(const Tensor& t, size_t axis) {
    const uint64_t bits = dtype_bits(t.dtype);
    uint64_t outer = 1, inner = bits;
    for (size_t i = 0; i < t.dims.size(); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : static_cast<uint64_t>(t.dims[i]);
    if (t.dtype == PFRT_DTYPE_STRING || inner % 8 != 0)
      return error(Code::kUNSUPPORTED, "a tensor of ", dtype_name(t.dtype),
                   " whose elements do not begin at a byte cannot be cut");
    return Strips{outer, inner / 8};
  }
};

Result<Tensor> like(const Tensor& t, Dims dims) {
  return t.device() ? Tensor::allocate_on(t.buffer->device(), t.dtype, std::move(dims))
                    : Tensor::allocate(t.dtype, std::move(dims), false);
}

Result<Tensor> first_of(const Tensor& t, size_t axis, int64_t length, Transfers& transfers) {
  PFRT_ASSIGN(const Strips strips, Strips::of(t, axis));
  Dims dims = t.dims;
  dims[axis] = length;
  PFRT_ASSIGN(Tensor out, like(t, std::move(dims)));
  const uint64_t from = strips.inner * static_cast<uint64_t>(t.dims[axis]);
  const uint64_t to = strips.inner * static_cast<uint64_t>(length);
  for (uint64_t i = 0; i < strips.outer && to > 0; ++i)
    transfers.add(static_cast<char*>(out.data()) + i * to, out.device(),
                  static_cast<const char*>(t.data()) + i * from, t.device(), to);
  return out;
}

}  // namespace

// ---- pairs ----

Result<std::shared_ptr<State>> State::create(std::shared_ptr<Session> session,
                                             const std::vector<StatePair>& pairs) {
  std::shared_ptr<State> state(new State(std::move(session)));
  for (const StatePair& pair : pairs) PFRT_TRY(state->add(pair));
  if (pairs.empty()) PFRT_TRY(state->find_pairs());
  return state;
}

Status State::add(const StatePair& pair) {
  constexpr std::string_view kDoing = "making a state";
  const auto &inputs = session_->inputs(), &outputs = session_->outputs();
  Entry e;
  e.input = find_port(inputs, pair.input);
  e.output = find_port(outputs, pair.output);
  if (e.input == inputs.size())
    return error(Code::kNOT_FOUND, kDoing, ": the session has no input '", pair.input, "'; it has ",
                 names_of(inputs));
  if (e.output == outputs.size())
    return error(Code::kNOT_FOUND, kDoing, ": the session has no output '", pair.output,
                 "'; it has ", names_of(outputs));
  for (const Entry& other : entries_)
    if (other.input == e.input || other.output == e.output)
      return error(Code::kINVALID_ARGUMENT, kDoing, ": ",
                   other.input == e.input ? "input '" : "output '",
                   other.input == e.input ? pair.input : pair.output, "' is in two pairs");
  const PortInfo &input = inputs[e.input], &output = outputs[e.output];
  const std::string both = message("output '", pair.output, "' as input '", pair.input, "'");
  if (!may_be_the_same(input, output))
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                 ": their types or ranks are not the same");
  if (pair.growth == StatePair::Growth::kAlong) {
    if (input.type.has_shape && pair.axis >= input.dims.size())
      return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both, ": axis ", pair.axis, " of rank ",
                   input.dims.size());
    e.axis = pair.axis;
  }
  if (pair.growth == StatePair::Growth::kByNames) {
    const std::vector<size_t> axes = growing_axes(input, output);
    if (axes.size() > 1)
      return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                   ": more than one dimension has another name in the output; say along which "
                   "axis it grows");
    if (!axes.empty()) e.axis = axes.front();
    e.in_place = axes.empty() && writes_into(*session_->planned_graph(), pair.input, pair.output);
  }
  if (pair.growth == StatePair::Growth::kInPlace) e.in_place = true;
  if (e.in_place && (input.type.kind != PFRT_VALUE_TENSOR || input.type.dtype == PFRT_DTYPE_STRING))
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                 ": a value in place is a tensor of numbers");
  entries_.push_back(std::move(e));
  return {};
}

Status State::find_pairs() {
  const auto &inputs = session_->inputs(), &outputs = session_->outputs();
  for (const PortInfo& input : inputs)
    for (const std::string& name : output_names(input.name)) {
      const size_t at = name.empty() ? outputs.size() : find_port(outputs, name);
      if (at == outputs.size() || !may_be_the_same(input, outputs[at])) continue;
      PFRT_TRY(add({input.name, name}));
      break;
    }
  if (!entries_.empty()) return {};
  return error(Code::kINVALID_ARGUMENT, "making a state: no names of inputs (", names_of(inputs),
               ") and outputs (", names_of(outputs),
               ") tell what a run leaves for the next, as past and present do; give the pairs");
}

Result<State::Entry*> State::entry_of(std::string_view input, std::string_view doing) {
  std::string names;
  for (Entry& e : entries_) {
    if (input_of(e).name == input) return &e;
    names += message(names.empty() ? "'" : ", '", input_of(e).name, "'");
  }
  return error(Code::kNOT_FOUND, doing, " '", input, "': the state has ", names);
}

// ---- the client's calls ----

Status State::idle(std::string_view doing) const {
  if (turns_.empty()) return {};
  return error(Code::kBUSY, doing,
               ": a run has the state or waits for it; wait until it is over, or use a clone");
}

Status State::readable(std::string_view doing) const {
  return std::ranges::any_of(entries_, &Entry::in_place) ? idle(doing) : Status();
}

std::vector<std::string_view> State::inputs() const {
  std::vector<std::string_view> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_) out.emplace_back(input_of(e).name);
  return out;
}

int64_t State::length() const {
  const std::lock_guard lock(mutex_);
  int64_t length = 0;
  for (const Entry& e : entries_) length = std::max(length, along(e.value, e.axis));
  return length;
}

Result<std::shared_ptr<State>> State::clone() const {
  std::shared_ptr<State> out(new State(session_));
  const std::lock_guard lock(mutex_);
  PFRT_TRY(readable("cloning a state"));
  for (const Entry& e : entries_)
    out->entries_.push_back({e.input, e.output, e.axis, e.in_place, e.settled, e.value, nullptr});
  return out;
}

Status State::truncate(int64_t length) {
  const std::lock_guard lock(mutex_);
  const std::string doing = message("truncating a state to ", length);
  PFRT_TRY(idle(doing));
  if (length < 0) return error(Code::kINVALID_ARGUMENT, doing, ": a length is not negative");
  std::vector<ValuePtr> values(entries_.size());
  Transfers transfers;
  for (size_t i = 0; i < entries_.size() && length > 0; ++i) {
    const Entry& e = entries_[i];
    const std::string& name = input_of(e).name;
    if (e.in_place) {
      values[i] = e.value;
      continue;
    }
    if (!e.axis)
      return error(Code::kUNSUPPORTED, doing, ": '", name,
                   "' is replaced by each run, so that nothing is left of an earlier one; clone "
                   "the state before a run that may be undone");
    const int64_t now = along(e.value, e.axis);
    if (now < length) return error(Code::kINVALID_ARGUMENT, doing, ": '", name, "' has ", now);
    if (now == length) {
      values[i] = e.value;
      continue;
    }
    auto cut = first_of(e.value->tensor, *e.axis, length, transfers);
    if (!cut.ok()) return cut.take_status().prepend(message(doing, ": '", name, "'"));
    values[i] = Value::of(cut.take());
  }
  PFRT_TRY(transfers.run_alone());
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].value = std::move(values[i]);
    entries_[i].settled = entries_[i].settled && entries_[i].value;
  }
  return {};
}

Result<ValuePtr> State::get(std::string_view input) const {
  const std::lock_guard lock(mutex_);
  PFRT_TRY(readable("reading a state"));
  PFRT_ASSIGN(const Entry* e, const_cast<State*>(this)->entry_of(input, "reading a state's"));
  return e->value;
}

Status State::check(const Entry& e, const Value& value, std::string_view doing) const {
  const PortInfo& port = input_of(e);
  const auto fault = [&](Code code, const auto&... parts) {
    return error(code, doing, " '", port.name, "': ", parts...);
  };
  if (value.kind != port.type.kind && port.type.kind != PFRT_VALUE_UNSET)
    return fault(Code::kINVALID_ARGUMENT, "the input takes another kind of value");
  const Tensor& t = value.tensor;
  if (e.axis && (value.kind != PFRT_VALUE_TENSOR || *e.axis >= t.dims.size()))
    return fault(Code::kSHAPE_MISMATCH, "it grows along axis ", *e.axis,
                 ", which the value does not have");
  if (value.kind != PFRT_VALUE_TENSOR) return {};
  if (t.dtype != port.type.dtype && port.type.dtype != PFRT_DTYPE_UNSET)
    return fault(Code::kDTYPE_MISMATCH, "the input is of ", dtype_name(port.type.dtype),
                 ", the value of ", dtype_name(t.dtype));
  if (!port.type.has_shape) return {};
  if (t.dims.size() != port.dims.size())
    return fault(Code::kSHAPE_MISMATCH, "the input has rank ", port.dims.size(), ", the value ",
                 t.dims.size());
  for (size_t i = 0; i < t.dims.size(); ++i)
    if (port.dims[i] >= 0 && port.dims[i] != t.dims[i])
      return fault(Code::kSHAPE_MISMATCH, "dimension ", i, " of the input is ", port.dims[i],
                   ", of the value ", t.dims[i]);
  return {};
}

Status State::set(std::string_view input, ValuePtr value) {
  constexpr std::string_view kDoing = "setting a state's";
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(kDoing));
  PFRT_ASSIGN(Entry * e, entry_of(input, kDoing));
  PFRT_TRY(check(*e, *value, kDoing));
  e->value = std::move(value);
  e->settled = false;
  return {};
}

Status State::save(const std::string& path) const {
  Graph graph("state");
  Transfers transfers;
  std::vector<ValuePtr> read;  // a run that ends meanwhile lets go of the state's values
  {
    const std::lock_guard lock(mutex_);
    PFRT_TRY(readable(message("saving a state to ", path)));
    for (const Entry& e : entries_) {
      if (!e.value) continue;
      if (e.value->kind != PFRT_VALUE_TENSOR)
        return error(Code::kUNSUPPORTED, "saving a state to ", path, ": '", input_of(e).name,
                     "' is not a tensor");
      Tensor here = e.value->tensor;
      if (here.device()) {
        PFRT_ASSIGN(here, Tensor::allocate(here.dtype, here.dims, false));
        const Tensor& there = e.value->tensor;
        read.push_back(e.value);
        transfers.add(here.data(), nullptr, there.data(), there.device(), there.bytes());
      }
      graph.set_constant(graph.value(input_of(e).name), Value::of(std::move(here)));
    }
  }
  PFRT_TRY(transfers.run_alone());
  for (const ValueId id : graph.initializers()) graph.outputs.push_back(id);
  PFRT_ASSIGN(auto file, os::AtomicFile::create(path));
  Progress progress;
  PFRT_TRY(save_pfm(
      graph, {}, [&](const void* data, uint64_t size) { return file->write(data, size); },
      progress));
  return file->commit();
}

Status State::load(const std::string& path) {
  const std::string doing = message("loading a state from ", path);
  PFRT_ASSIGN(auto file, os::MappedFile::open(path, false));
  if (!is_pfm(file->data(), file->size()))
    return error(Code::kUNSUPPORTED_FORMAT, doing, ": it is no .pfm file, as saving a state makes");
  Progress progress;
  auto read = load_pfm(file->data(), file->size(), file, progress);
  if (!read.ok()) return read.take_status().prepend(doing);
  const Graph& graph = *read->graph;
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(doing));
  std::vector<ValuePtr> values(entries_.size());
  for (const ValueId id : graph.initializers()) {
    PFRT_ASSIGN(Entry * e, entry_of(graph.at(id).name, doing + ", which has"));
    PFRT_TRY(check(*e, *graph.at(id).constant, doing + ":"));
    // The value gets its own bytes, not a view into the file's.
    PFRT_ASSIGN(values[static_cast<size_t>(e - entries_.data())], exclusive(graph.at(id).constant));
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].value = std::move(values[i]);
    entries_[i].settled = false;
  }
  return {};
}

// ---- runs ----

// A value of zeros. It is empty along the growing axis; a dimension that other inputs of the run
// have by name is as large as theirs, and any other one is 1.
Result<ValuePtr> State::first_value(const Entry& e, const std::vector<ValuePtr>& inputs) const {
  const PortInfo& port = input_of(e);
  if (port.type.kind != PFRT_VALUE_TENSOR || !port.type.has_shape ||
      port.type.dtype == PFRT_DTYPE_UNSET || port.type.dtype == PFRT_DTYPE_STRING)
    return error(Code::kINPUT, "running with a state: '", port.name,
                 "' has no value yet, and its type does not tell how one of zeros looks; set it");
  Dims dims = port.dims;
  if (e.in_place && std::ranges::any_of(dims, [](int64_t d) { return d < 0; }))
    return error(Code::kINPUT, "running with a state: '", port.name,
                 "' is written in place and has no value yet, and not all of its dimensions are "
                 "numbers; set a value that has room for the longest sequence");
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
  const auto length = static_cast<uint64_t>(along(e.value, e.axis));
  const uint64_t step = length == 0 ? 0 : bytes / length;
  if (e.spare && e.spare->device() == t.buffer->device() && e.spare->bytes() >= bytes + step)
    return;
  e.spare = nullptr;
  const uint64_t room = step == 0 ? bytes : with_room(bytes, step);
  auto made =
      t.device() ? Buffer::on_device(t.buffer->device(), room) : Buffer::allocate_pages(room);
  if (made.ok()) e.spare = made.take();  // without it, the run allocates or fails
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
                        const std::vector<OutputRequest>& requests) const {
  constexpr std::string_view kDoing = "running with a state";
  if (&session != session_.get())
    return error(Code::kINVALID_ARGUMENT, kDoing, ": it was made from another session");
  for (const Entry& e : entries_) {
    if (inputs[e.input])
      return error(Code::kINPUT, kDoing, ": input '", input_of(e).name,
                   "' is the state's; leave it out, or set it in the state");
    if (requests[e.output].wanted && requests[e.output].buffer)
      return error(Code::kUNSUPPORTED, kDoing, ": output '", session_->outputs()[e.output].name,
                   "' is the state's and cannot be written to a tensor of the caller's on a "
                   "device; let the run allocate it");
  }
  return {};
}

Status State::begin(std::vector<ValuePtr>& inputs, std::vector<OutputRequest>& requests) {
  const std::lock_guard lock(mutex_);
  for (Entry& e : entries_)
    if (!e.value) {
      PFRT_ASSIGN(inputs[e.input], first_value(e, inputs));
    }
  for (Entry& e : entries_) {
    OutputRequest& request = requests[e.output];
    if (!request.wanted) request.wanted = request.on_device = true;
    request.data = nullptr;  // the caller gets a copy
    request.in_place = false;
    if (e.in_place && e.settled) {
      PFRT_TRY(make_own(e));
      const Tensor& t = e.value->tensor;
      request.data = t.data();
      request.bytes = t.bytes();
      request.in_place = true;
      if (t.device()) request.buffer = t.buffer;
      request.on_device = t.device() != nullptr;
    }
    if (e.value) inputs[e.input] = e.value;
    make_room(e);
    if (e.in_place || !e.spare || (e.spare->device() && !request.on_device)) continue;
    request.data = e.spare->data();
    request.bytes = e.spare->bytes();
    request.buffer = e.spare;
    request.at_most = true;
  }
  return {};
}

void State::end(const std::vector<ValuePtr>& outputs) {
  const std::lock_guard lock(mutex_);
  for (Entry& e : entries_) {
    const ValuePtr& next = outputs[e.output];
    if (e.in_place) {
      // The first run has made a value, and so has a provider that cannot write over one.
      if (!e.settled || next->tensor.data() != e.value->tensor.data()) e.value = next;
      e.settled = true;
      continue;
    }
    if (next->tensor.buffer == e.spare) e.spare = nullptr;
    ValuePtr last = std::exchange(e.value, next);
    if (e.spare || !last || last.use_count() > 1 || last->kind != PFRT_VALUE_TENSOR) continue;
    std::shared_ptr<Buffer> memory = last->tensor.buffer;
    last = nullptr;
    // Only this state has the memory, and it is no view of the client's or of a file.
    if (memory && memory.use_count() == 1 && (memory->owned() || memory->device()))
      e.spare = std::move(memory);
  }
}

}  // namespace pfrt
