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

// Returns host memory that |there| is copied to.
Result<Tensor> to_host(const Tensor& there, Transfers& transfers) {
  PFRT_ASSIGN(Tensor here, Tensor::allocate(there.dtype, there.dims, false));
  transfers.add(here.data(), nullptr, there.data(), there.device(), there.bytes());
  return here;
}

}  // namespace

State::~State() { session_->states().forget(this); }

// ---- its parts ----

Result<size_t> State::index_of(std::string_view input, std::string_view doing) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (input_of(entries_[i]).name == input) return i;
  return error(Code::kNOT_FOUND, doing, " '", input, "': the state has ", names_of_inputs());
}

std::string State::names_of_inputs() const {
  std::string out;
  for (const Entry& e : entries_) out += message(out.empty() ? "'" : ", '", input_of(e).name, "'");
  return out;
}

std::vector<std::string_view> State::inputs() const {
  std::vector<std::string_view> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_) out.emplace_back(input_of(e).name);
  return out;
}

// It is 0 where the value is no tensor, or its rank is too small.
int64_t State::length_of(const Entry& e) {
  if (!e.value || !e.axis || *e.axis >= e.value->tensor.dims.size()) return 0;
  return e.value->tensor.dims[*e.axis];
}

Result<Tensor> State::like(const Tensor& t, Dims dims) {
  return t.device() ? Tensor::allocate_on(t.buffer->device(), t.dtype, std::move(dims))
                    : Tensor::allocate(t.dtype, std::move(dims), false);
}

Status State::check(const Entry& e, const Value& value, std::string_view doing) const {
  const PortInfo& port = input_of(e);
  const auto fault = [&](Code code, const auto&... parts) {
    return error(code, doing, doing.empty() ? "'" : " '", port.name, "': ", parts...);
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

// ---- the client's calls ----

Status State::idle(std::string_view doing) const {
  if (turns_.empty()) return {};
  return error(Code::kBUSY, doing,
               ": a run has the state or waits for it; wait until it is over, or use a clone");
}

Status State::readable(std::string_view doing) const {
  const bool written = std::ranges::any_of(entries_, &Entry::in_place) && turns_.wanted_alone();
  return written ? idle(doing) : Status();
}

int64_t State::length() const {
  const std::lock_guard lock(mutex_);
  int64_t length = 0;
  for (const Entry& e : entries_) length = std::max(length, length_of(e));
  return length;
}

Result<std::shared_ptr<State>> State::clone() const {
  std::shared_ptr<State> out(new State(session_));
  {
    const std::lock_guard lock(mutex_);
    PFRT_TRY(readable("cloning a state"));
    for (const Entry& e : entries_)
      out->entries_.push_back(
          {e.input, e.output, e.axis, e.in_place, e.capacity, e.capacity_axis, e.value, nullptr});
  }
  session_->states().add(out);
  return out;
}

Result<std::shared_ptr<State>> State::clone_for(std::shared_ptr<Session> session,
                                                const std::vector<StatePair>& pairs) const {
  constexpr std::string_view kDoing = "cloning a state for another session";
  PFRT_ASSIGN(auto out, create(std::move(session), pairs));
  std::vector<ValuePtr> values(out->entries_.size());
  {
    const std::lock_guard lock(mutex_);
    PFRT_TRY(readable(kDoing));
    const std::vector<std::string_view> names = out->inputs();
    std::string lacking, faults;
    Code code = Code::kOK;  // of the first fault
    for (const Entry& e : entries_) {
      const auto to = std::ranges::find(names, input_of(e).name);
      if (to == names.end()) {
        lacking += message(lacking.empty() ? " has no '" : ", '", input_of(e).name, "'");
        continue;
      }
      const auto at = static_cast<size_t>(to - names.begin());
      values[at] = e.value;
      const Status fault = out->check_clone(out->entries_[at], e);
      if (fault.ok()) continue;
      if (faults.empty()) code = fault.code();
      faults += message(faults.empty() ? "" : "; ", fault.message());
    }
    if (!lacking.empty())
      return error(Code::kNOT_FOUND, kDoing, ": the new state", lacking, "; it has ",
                   out->names_of_inputs(), faults.empty() ? "" : "; ", faults);
    if (!faults.empty()) return error(code, kDoing, ": ", faults);
  }
  Transfers transfers;
  std::vector<ValuePtr> read;
  for (ValuePtr& value : values) {
    if (!value || !value->tensor.device() || out->session_->uses(*value->tensor.device())) continue;
    PFRT_ASSIGN(Tensor here, to_host(value->tensor, transfers));
    read.push_back(std::exchange(value, Value::of(std::move(here))));
  }
  PFRT_TRY(transfers.run_alone().prepend(kDoing));
  const std::lock_guard lock(out->mutex_);
  out->put(values);
  return out;
}

// Checks that |e| of this state can have the value of |from|, another's.
Status State::check_clone(const Entry& e, const Entry& from) const {
  const auto way = [](const Entry& one) {
    return one.in_place ? std::string("is written in place")
           : one.axis   ? message("grows along axis ", *one.axis)
                        : std::string("is replaced");
  };
  const bool replaced = (!e.in_place && !e.axis) || (!from.in_place && !from.axis);
  if (!replaced && (e.in_place != from.in_place || e.axis != from.axis))
    return error(Code::kINVALID_ARGUMENT, "'", input_of(e).name, "': the value ", way(from),
                 ", and with this session it ", way(e));
  return from.value ? check(e, *from.value, "") : Status();
}

void State::put(std::vector<ValuePtr>& values) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!values[i]) continue;
    entries_[i].value.swap(values[i]);
  }
}

Result<ValuePtr> State::get(std::string_view input) const {
  const std::lock_guard lock(mutex_);
  PFRT_TRY(readable("reading a state"));
  PFRT_ASSIGN(const size_t at, index_of(input, "reading a state's"));
  return entries_[at].value;
}

Status State::set(std::string_view input, ValuePtr value) {
  constexpr std::string_view kDoing = "setting a state's";
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(kDoing));
  PFRT_ASSIGN(const size_t at, index_of(input, kDoing));
  PFRT_TRY(check(entries_[at], *value, kDoing));
  entries_[at].value.swap(value);
  return {};
}

Status State::set_outputs(const std::vector<std::pair<std::string_view, ValuePtr>>& outputs) {
  constexpr std::string_view kDoing = "setting a state's";
  std::vector<ValuePtr> values(entries_.size());
  std::string unknown, known;
  for (const Entry& e : entries_)
    known += message(known.empty() ? "'" : ", '", output_of(e).name, "'");
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(kDoing));
  for (const auto& [name, value] : outputs) {
    const auto found =
        std::ranges::find_if(entries_, [&](const Entry& e) { return output_of(e).name == name; });
    if (found == entries_.end()) {
      unknown += message(unknown.empty() ? "'" : ", '", name, "'");
      continue;
    }
    ValuePtr& to = values[static_cast<size_t>(found - entries_.begin())];
    if (to) return error(Code::kINVALID_ARGUMENT, kDoing, " '", name, "': it is given twice");
    PFRT_TRY(check(*found, *value, kDoing));
    to = value;
  }
  if (!unknown.empty())
    return error(Code::kNOT_FOUND, kDoing, " outputs ", unknown, ": it has ", known);
  put(values);
  return {};
}

namespace {

void add_buffer(const Buffer* buffer, std::unordered_set<const Buffer*>& counted,
                Session::MemoryReport& out) {
  if (!buffer || (!buffer->device() && !buffer->resident())) return;
  if (counted.insert(buffer).second)
    (buffer->device() ? out.device_states : out.states) += buffer->bytes();
}

void add_value(const Value* value, std::unordered_set<const Buffer*>& counted,
               Session::MemoryReport& out) {
  if (!value) return;
  const Tensor& t = value->tensor;
  const bool new_texts = t.dtype == PFRT_DTYPE_STRING && t.buffer && t.buffer->owned() &&
                         !counted.contains(t.buffer.get());
  if (new_texts)
    for (const pfrt_string& text : t.strings()) out.states += text.size;
  add_buffer(t.buffer.get(), counted, out);
  add_buffer(value->indices.buffer.get(), counted, out);
  for (const ValuePtr& element : value->elements) add_value(element.get(), counted, out);
  add_value(value->keys.get(), counted, out);
  add_value(value->values.get(), counted, out);
}

}  // namespace

void State::add_memory(std::unordered_set<const Buffer*>& counted,
                       Session::MemoryReport& out) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& e : entries_) {
    add_value(e.value.get(), counted, out);
    add_buffer(e.spare.get(), counted, out);
  }
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
        PFRT_ASSIGN(here, to_host(here, transfers));
        read.push_back(e.value);
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
  std::vector<ValuePtr> values(entries_.size());
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(doing));
  for (const ValueId id : graph.initializers()) {
    PFRT_ASSIGN(const size_t at, index_of(graph.at(id).name, doing + ", which has"));
    PFRT_TRY(check(entries_[at], *graph.at(id).constant, doing + ":"));
    // The value gets its own bytes, not a view into the file's.
    PFRT_ASSIGN(values[at], exclusive(graph.at(id).constant));
  }
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].value.swap(values[i]);
  return {};
}

}  // namespace pfrt
