// SPDX-License-Identifier: Apache-2.0
//
// Runs as the ABI has them: reads what a client gives, and hands out the results. Everything else
// about a run is core/session/run.h's.
#include "capi/run.h"

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/handle/guard.h"
#include "capi/handle/session.h"
#include "capi/handle/state.h"
#include "capi/handle/status.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"
#include "core/base/foreign.h"
#include "core/session/run.h"

namespace pfrt::capi {
namespace {

// Returns element |i|, or a copy in |room| where it lacks members, which then are zero. Elements
// are as far apart as the struct_size of the first says.
const pfrt_io& io_at(const pfrt_io* list, size_t i, pfrt_io& room) {
  const pfrt_io& io = abi::element(list, i);
  if (io.struct_size >= sizeof(pfrt_io)) return io;
  room = abi::known(&io);
  return room;
}
// Returns element |i| itself, to be written.
pfrt_io* slot_at(pfrt_io* list, size_t i) {
  return static_cast<pfrt_io*>(const_cast<void*>(pfrt_at(list, list->struct_size, i)));
}

Status check_io(const pfrt_io* inputs, size_t n_inputs, const pfrt_io* outputs, size_t n_outputs) {
  if ((n_inputs && !inputs) || (n_outputs && !outputs)) return null_argument("inputs or outputs");
  PFRT_TRY(abi::check_array(inputs, n_inputs));
  return abi::check_array(outputs, n_outputs);
}

// ---- what is asked for ----

Observer observer_of(pfrt_observe_fn fn, void* user) {
  return [fn, user](std::string_view name, const ValuePtr& seen) -> Status {
    auto* const value = new pfrt_value(seen);  // the observer may retain it
    pfrt_code code = PFRT_CODE_OK;
    const bool threw = !call_foreign([&] { code = fn(user, to_c(name), value); });
    release(value);
    if (!threw && code == PFRT_CODE_OK) return {};
    return error(threw ? Code::kINTERNAL : static_cast<Code>(code), "running: the observer of '",
                 name, "' ", threw ? "threw" : "ended the run");
  };
}

size_t element_bytes(pfrt_dtype dtype) {
  return std::max<size_t>(1, std::min<size_t>(8, dtype_size(dtype)));
}

// |out| gets the value that is fed; null where none is.
Status read_input(const pfrt_io& io, std::string_view name, ValuePtr& out) {
  if (io.value) {
    out = io.value->value;
    return {};
  }
  if (io.tensor.dtype == PFRT_DTYPE_UNSET) return {};
  const auto at = reinterpret_cast<uintptr_t>(io.tensor.data) + io.tensor.offset;
  const bool aligned = at % element_bytes(io.tensor.dtype) == 0;
  auto tensor = tensor_from(io.tensor, aligned, {});
  if (!tensor.ok())
    return std::move(tensor.take_status().prepend(message("running: input '", name, "'")));
  out = Value::of(tensor.take());
  return {};
}

Status read_output(const pfrt_io& io, std::string_view name, OutputRequest& out) {
  out.wanted = !(io.flags & PFRT_IO_SKIP);
  out.on_device = (io.flags & PFRT_IO_ON_DEVICE) != 0;
  out.in_place = (io.flags & PFRT_IO_IN_PLACE) != 0;
  if (!out.wanted) return {};
  if (io.value) {
    const Value& value = *io.value->value;
    // Nothing can be written into it: the caller gets another value in its place.
    if (value.kind != PFRT_VALUE_TENSOR || value.tensor.dtype == PFRT_DTYPE_STRING) return {};
    out.given = true;
    out.data = value.tensor.data();
    out.dtype = value.tensor.dtype;
    out.bytes = value.tensor.bytes();
    if (value.tensor.device()) out.buffer = value.tensor.buffer;
  } else if (io.tensor.data) {
    if (io.tensor.strides)
      return error(Code::kUNSUPPORTED, "running: memory for output '", name,
                   "' has strides; only row-major memory can be written");
    pfrt_tensor view = io.tensor;
    PFRT_TRY(settle_view(view));
    out.given = true;
    out.data = view.data;
    out.dtype = view.dtype;
    out.bytes = view.bytes;
    const size_t element = element_bytes(io.tensor.dtype);
    if (reinterpret_cast<uintptr_t>(out.data) % element != 0)
      return error(Code::kINVALID_ARGUMENT, "running: memory for output '", name,
                   "' is not aligned for its elements of ", element, " bytes");
  }
  return {};
}

// ---- results ----

// Handles for the results that the caller gave no memory for, made before the run, so that nothing
// fails after it.
class ResultHandles {
 public:
  void make(const std::vector<OutputRequest>& requests) {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!requests[i].wanted || requests[i].given) continue;
      made_.resize(requests.size());
      made_[i] = std::make_unique<pfrt_value>(nullptr);
    }
  }
  // |owned|: references in |outputs| are given up for those to the results.
  void hand_out(std::vector<ValuePtr>& results, pfrt_io* outputs, bool owned) {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i]) continue;
      made_[i]->value = std::move(results[i]);
      pfrt_value*& slot = slot_at(outputs, i)->value;
      if (owned) release(slot);
      slot = made_[i].release();
    }
  }

 private:
  std::vector<std::unique_ptr<pfrt_value>> made_;  // empty where none is needed
};

Status give(Run& run, const pfrt_io* inputs, size_t n_inputs, const pfrt_io* outputs,
            size_t n_outputs, ResultHandles& handles) {
  const Session& session = run.session();
  if (n_inputs != session.inputs().size() || n_outputs != session.outputs().size())
    return error(Code::kINPUT, "running: ", n_inputs, " inputs and ", n_outputs,
                 " outputs were given, the session has ", session.inputs().size(), " and ",
                 session.outputs().size());
  const MemoryScope scope(&run.memory());
  pfrt_io room;
  std::vector<ValuePtr> values;
  PFRT_TRY(read_inputs(session, inputs, n_inputs, values));
  std::vector<OutputRequest> requests(n_outputs);
  for (size_t i = 0; i < n_outputs; ++i)
    PFRT_TRY(read_output(io_at(outputs, i, room), session.outputs()[i].name, requests[i]));
  handles.make(requests);
  return run.take(std::move(values), std::move(requests));
}

Status run_now(pfrt_session& s, const pfrt_io* inputs, size_t n_inputs, pfrt_io* outputs,
               size_t n_outputs, const pfrt_run_desc* desc) {
  RunSettings settings;
  PFRT_TRY(read_settings("running", desc, settings));
  Run run(*s.session, std::move(settings));
  ResultHandles handles;
  PFRT_TRY(give(run, inputs, n_inputs, outputs, n_outputs, handles));
  std::vector<ValuePtr> results;
  PFRT_TRY(run.carry_out(results));
  handles.hand_out(results, outputs, false);
  return {};
}

// Puts |given|, which is named by |names|, in the order of the ports; |places| gets the index of
// each.
Status in_session_order(const std::vector<pfrt_value_info>& ports, const char* what,
                        const pfrt_string* names, const pfrt_io* given, size_t count,
                        std::pmr::vector<pfrt_io>& out, std::pmr::vector<size_t>& places) {
  std::pmr::vector<bool> named(ports.size(), out.get_allocator());
  for (size_t i = 0; i < count; ++i) {
    const size_t at = find_port(ports, view(names[i]));
    if (at == ports.size()) return no_port("running", what, view(names[i]), ports, Code::kINPUT);
    if (named[at])
      return error(Code::kINPUT, "running: ", what, " '", names[i], "' is given twice");
    named[at] = true;
    pfrt_io room;
    out[at] = io_at(given, i, room);
    out[at].struct_size = sizeof(pfrt_io);
    places.push_back(at);
  }
  return {};
}

// Keeps what the callback of an asynchronous run gets, and what its client may let go of meanwhile.
class AsyncOutputs {
 public:
  AsyncOutputs(pfrt_session* session, pfrt_run_done_fn done, void* user)
      : session_(session), done_(done), user_(user) {
    retain(session_);
  }
  ~AsyncOutputs() {
    for (size_t i = 0; i < count_; ++i) release(at(i)->value);
    release(session_);
  }
  AsyncOutputs(const AsyncOutputs&) = delete;
  AsyncOutputs& operator=(const AsyncOutputs&) = delete;

  // Copies the outputs, in elements of the caller's size.
  void copy(const pfrt_io* outputs, size_t count) {
    if (count == 0) return;
    const size_t words = outputs->struct_size / sizeof(uint64_t);
    outputs_.resize(count * words);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(outputs_.data() + i * words, pfrt_at(outputs, outputs->struct_size, i),
                  outputs->struct_size);
      at(i)->struct_size = outputs->struct_size;
      at(i)->tensor.dims = at(i)->tensor.strides = nullptr;  // the arrays may go
      retain(at(i)->value);
      count_ = i + 1;
    }
  }
  ResultHandles& handles() { return handles_; }

  void call_done(Status status, std::vector<ValuePtr> results) {
    const Inside library;  // the callee may release the last handle
    if (status.ok()) handles_.hand_out(results, at(0), true);
    pfrt_status* const error = to_status(std::move(status));
    // The callee owns the values from here on.
    const size_t count = std::exchange(count_, 0);
    call_foreign([&] { done_(user_, error, at(0), count); });
  }

 private:
  pfrt_io* at(size_t i) {
    auto* list = reinterpret_cast<pfrt_io*>(outputs_.data());
    return i == 0 ? list : slot_at(list, i);
  }

  pfrt_session* session_;
  pfrt_run_done_fn done_;
  void* user_;
  std::vector<uint64_t> outputs_;  // the bytes of pfrt_io, struct_size of the first apart
  size_t count_ = 0;
  ResultHandles handles_;
};

Status check_numbers(std::string_view doing, const pfrt_run_desc& desc) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const std::pair<const char*, int64_t> numbers[] = {{"timeout_ms", desc.timeout_ms},
                                                     {"num_threads", desc.num_threads},
                                                     {"priority", desc.priority},
                                                     {"memory_limit", desc.memory_limit}};
  for (const auto& [name, number] : numbers)
    if (number < 0 || number > kMost)
      return error(Code::kINVALID_ARGUMENT, doing, ": ", name, " is ", number,
                   "; it must be 0 (not set) to ", kMost);
  if (desc.log_level > PFRT_LOG_OFF)
    return error(Code::kUNSUPPORTED, doing, ": log_level is ", desc.log_level,
                 "; this version knows 0 (the session's) to ", uint32_t{PFRT_LOG_OFF}, " (off)");
  return {};
}

}  // namespace

Status read_inputs(const Session& session, const pfrt_io* inputs, size_t count,
                   std::vector<ValuePtr>& out) {
  pfrt_io room;
  out.resize(count);
  for (size_t i = 0; i < count; ++i)
    PFRT_TRY(read_input(io_at(inputs, i, room), session.inputs()[i].name, out[i]));
  return {};
}

Status read_settings(std::string_view doing, const pfrt_run_desc* given, RunSettings& out) {
  if (!given) return {};
  PFRT_TRY(abi::check(*given));
  const pfrt_run_desc desc = abi::known(given);
  PFRT_TRY(check_numbers(doing, desc));
  if (desc.tag.size && !desc.tag.data) return null_argument("desc.tag");
  out.log_level = desc.log_level;
  out.cancel = desc.cancel;
  if (desc.timeout_ms)
    out.deadline_ns = os::monotonic_ns() + static_cast<uint64_t>(desc.timeout_ms) * 1'000'000u;
  out.threads = desc.num_threads;
  out.priority = desc.priority;
  out.memory_limit = static_cast<uint64_t>(desc.memory_limit);
  out.tag = view(desc.tag);
  if (desc.state) out.state = desc.state->state;
  out.keeps_state = (desc.flags & PFRT_RUN_KEEPS_STATE) != 0;
  if (desc.observe) out.observer = observer_of(desc.observe, desc.observe_user);
  return {};
}

pfrt_status* run(pfrt_session* s, const pfrt_io* inputs, size_t n_inputs, pfrt_io* outputs,
                 size_t n_outputs, const pfrt_run_desc* desc) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    PFRT_TRY(check_io(inputs, n_inputs, outputs, n_outputs));
    return run_now(*s, inputs, n_inputs, outputs, n_outputs, desc);
  });
}

pfrt_status* run_named(pfrt_session* s, const pfrt_string* input_names, const pfrt_io* inputs,
                       size_t n_inputs, const pfrt_string* output_names, pfrt_io* outputs,
                       size_t n_outputs, const pfrt_run_desc* desc) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    if ((n_inputs && !input_names) || (n_outputs && !output_names))
      return null_argument("input_names or output_names");
    PFRT_TRY(check_io(inputs, n_inputs, outputs, n_outputs));
    std::array<std::byte, 2048> near;
    std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
    pfrt_io absent{};
    absent.struct_size = sizeof absent;
    std::pmr::vector<pfrt_io> all_inputs(s->inputs.size(), absent, &memory);
    absent.flags = PFRT_IO_SKIP;
    std::pmr::vector<pfrt_io> all_outputs(s->outputs.size(), absent, &memory);
    std::pmr::vector<size_t> places(&memory);
    PFRT_TRY(
        in_session_order(s->inputs, "input", input_names, inputs, n_inputs, all_inputs, places));
    places.clear();
    PFRT_TRY(in_session_order(s->outputs, "output", output_names, outputs, n_outputs, all_outputs,
                              places));
    PFRT_TRY(run_now(*s, all_inputs.data(), all_inputs.size(), all_outputs.data(),
                     all_outputs.size(), desc));
    for (size_t i = 0; i < n_outputs; ++i)
      slot_at(outputs, i)->value = all_outputs[places[i]].value;
    return {};
  });
}

pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t n_inputs,
                       const pfrt_io* outputs, size_t n_outputs, const pfrt_run_desc* desc,
                       pfrt_run_done_fn done, void* user) {
  return guard([&]() -> Status {
    if (!session || !done) return null_argument(session ? "done" : "session");
    PFRT_TRY(check_io(inputs, n_inputs, outputs, n_outputs));
    RunSettings settings;
    PFRT_TRY(read_settings("running", desc, settings));
    auto run = std::make_unique<Run>(*session->session, std::move(settings));
    const auto kept = std::make_shared<AsyncOutputs>(session, done, user);
    PFRT_TRY(give(*run, inputs, n_inputs, outputs, n_outputs, kept->handles()));
    kept->copy(outputs, n_outputs);
    return start(std::move(run), [kept](Status status, std::vector<ValuePtr> results) {
      kept->call_done(std::move(status), std::move(results));
    });
  });
}

}  // namespace pfrt::capi
