// SPDX-License-Identifier: Apache-2.0
//
// Requests to a session that are answered later: what batching/dynamic_batcher.hpp and
// streaming/async_session.hpp share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <pyflame_rt/session.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace detail {

// A response of the library's, taken over.
struct TakenResponse {
  std::unordered_map<std::string, Value> values;
  pfrt_code code = PFRT_CODE_OK;
  std::string message;
  pfrt_response facts{};

  // The values that are tensors.
  std::unordered_map<std::string, Tensor> tensors() const {
    std::unordered_map<std::string, Tensor> out;
    for (const auto& [name, value] : values)
      if (value.is_tensor()) out.emplace(name, value.tensor());
    return out;
  }
};

// Options of a kind, set by key.
class FlowOptions {
 public:
  explicit FlowOptions(pfrt_options_kind kind) { check(api().options->create(kind, c_.out())); }
  void set(const char* key, int64_t value) {
    check(api().options->set_int(c_.get(), text(key), value));
  }
  void set_flag(const char* key, bool value) {
    check(api().options->set_bool(c_.get(), text(key), value ? 1 : 0));
  }
  void set(const char* key, const std::vector<std::string>& values) {
    std::vector<pfrt_string> list;
    for (const std::string& value : values) list.push_back(text(value));
    check(api().options->set_strings(c_.get(), text(key), list.data(), list.size()));
  }
  const pfrt_options* get() const { return c_.get(); }

 private:
  Handle<pfrt_options> c_;
};

// The session's ports by name, and the translation of requests.
class RequestPorts {
 public:
  explicit RequestPorts(std::shared_ptr<InferenceSession> session) : session_(std::move(session)) {
    if (!session_) throw InvalidArgumentError("the session of a batcher or of streams is null");
    (void)session_->handle();
  }
  const InferenceSession& session() const { return *session_; }

  std::vector<pfrt_io> inputs(const std::unordered_map<std::string, Tensor>& given) const {
    const std::vector<NodeArg>& ports = session_->get_inputs();
    std::vector<pfrt_io> out(ports.size());
    size_t found = 0;
    for (size_t i = 0; i < ports.size(); ++i) {
      out[i].struct_size = sizeof(out[i]);
      out[i].tensor.struct_size = sizeof(out[i].tensor);
      const auto at = given.find(ports[i].name);
      if (at == given.end()) continue;
      if (!at->second.is_valid())
        throw InputError("input '" + ports[i].name + "' was given an empty object");
      out[i].value = at->second.handle();
      ++found;
    }
    if (found != given.size())
      for (const auto& [name, tensor] : given) (void)place(ports, name, "input");
    return out;
  }

  // Indices of the outputs that are wanted.
  std::vector<size_t> outputs(const std::vector<std::string>& names) const {
    std::vector<size_t> out;
    for (const std::string& name : names)
      out.push_back(place(session_->get_outputs(), name, "output"));
    return out;
  }

  // Takes over the status and the values of |response|.
  static TakenResponse take(const InferenceSession& session, pfrt_status* status,
                            pfrt_value** values, size_t count, const pfrt_response& facts) {
    TakenResponse out;
    std::vector<Handle<pfrt_value>> handles;
    handles.reserve(count);
    for (size_t i = 0; i < count; ++i) handles.push_back(Handle<pfrt_value>::adopt(values[i]));
    if (status != nullptr) {
      Failure failure(status);
      out.code = failure.code;
      out.message = std::move(failure.message);
    }
    const std::vector<NodeArg>& ports = session.get_outputs();
    for (size_t i = 0; i < count && i < ports.size(); ++i)
      if (handles[i]) out.values.emplace(ports[i].name, Value::from_handle(std::move(handles[i])));
    out.facts = facts;
    return out;
  }

 private:
  static size_t place(const std::vector<NodeArg>& ports, const std::string& name,
                      const char* what) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (ports[i].name == name) return i;
    std::string message = std::string("the model has no ") + what + " '" + name + "'; it has";
    if (ports.empty()) message += " none";
    for (const NodeArg& port : ports) message += " '" + port.name + "'";
    throw InputError(message);
  }

  std::shared_ptr<InferenceSession> session_;
};

// What the library calls for a request; it lives until then.
class PendingRequest {
 public:
  using Receiver = std::function<void(TakenResponse)>;
  PendingRequest(std::shared_ptr<const RequestPorts> ports, Receiver receiver)
      : ports_(std::move(ports)), receiver_(std::move(receiver)) {}

  static void finish(void* user, pfrt_response* response) {
    const std::unique_ptr<PendingRequest> self(static_cast<PendingRequest*>(user));
    self->receiver_(RequestPorts::take(self->ports_->session(), response->status, response->outputs,
                                       response->output_count, *response));
  }

 private:
  std::shared_ptr<const RequestPorts> ports_;
  Receiver receiver_;
};

}  // namespace detail
}  // namespace pyflame_rt
