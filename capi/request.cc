// SPDX-License-Identifier: Apache-2.0
#include "capi/request.h"

#include <memory>
#include <utility>
#include <vector>

#include "capi/handle/guard.h"
#include "capi/handle/status.h"
#include "capi/handle/value.h"
#include "capi/run.h"
#include "core/base/foreign.h"
#include "core/session/session.h"

namespace pfrt::capi {
namespace {

constexpr std::string_view kDoing = "submitting a request";

Status check_number(std::string_view name, int64_t number) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (number >= 0 && number <= kMost) return {};
  return error(Code::kINVALID_ARGUMENT, kDoing, ": ", name, " is ", number,
               "; it must be 0 (not set) to ", kMost);
}

pfrt_response in_c(const Response& answer) {
  pfrt_response out{};
  out.struct_size = sizeof out;
  out.stream = answer.stream;
  out.id = answer.id;
  out.rows = answer.rows;
  out.queued_ns = answer.queued_ns;
  out.ran_ns = answer.ran_ns;
  out.latency_ns = answer.latency_ns;
  return out;
}

// Keeps what a client's function is called with, so that nothing fails once the request is taken.
class Callee {
 public:
  Callee(const Session& session, const std::vector<bool>& wanted, pfrt_response_fn done, void* user)
      : session_(session), done_(done), user_(user), values_(session.outputs().size()) {
    for (size_t i = 0; i < values_.size(); ++i)
      if (wanted.empty() || wanted[i]) made_.push_back(std::make_unique<pfrt_value>(nullptr));
  }

  void call(Response answer) {
    const Inside library;  // the callee may release the last handle
    pfrt_response given = in_c(answer);
    size_t next = 0;
    for (size_t i = 0; i < answer.outputs.size(); ++i) {
      if (!answer.outputs[i] || next == made_.size()) continue;
      made_[next]->value = std::move(answer.outputs[i]);
      values_[i] = made_[next++].release();
    }
    given.outputs = values_.data();
    given.output_count = values_.size();
    given.status = to_status(std::move(answer.status));
    if (call_foreign([&] { done_(user_, &given); })) return;
    call_foreign([&] {
      session_.logger().write(PFRT_LOG_ERROR,
                              message("a request: what was to be called with answer ", given.id,
                                      " threw; a callback must not"));
    });
  }

 private:
  const Session& session_;
  pfrt_response_fn done_;
  void* user_;
  std::vector<pfrt_value*> values_;
  std::vector<std::unique_ptr<pfrt_value>> made_;
};

}  // namespace

Status read_request(const Session& session, const pfrt_io* inputs, size_t count,
                    const pfrt_request_desc* given, Request& out, uint32_t& stream) {
  if (count && !inputs) return null_argument("inputs");
  PFRT_TRY(abi::check_array(inputs, count));
  if (count != session.inputs().size())
    return error(Code::kINPUT, kDoing, ": ", count, " inputs were given, the session has ",
                 session.inputs().size());
  PFRT_TRY(read_inputs(session, inputs, count, out.inputs).prepend("submitting a request"));
  stream = 0;
  if (!given) return {};
  PFRT_TRY(abi::check(*given));
  const pfrt_request_desc desc = abi::known(given);
  PFRT_TRY(check_number("timeout_ms", desc.timeout_ms));
  PFRT_TRY(check_number("priority", desc.priority));
  stream = desc.stream;
  out.priority = desc.priority;
  out.cancel = desc.cancel;
  if (desc.timeout_ms)
    out.deadline_ns = os::monotonic_ns() + static_cast<uint64_t>(desc.timeout_ms) * 1'000'000u;
  if (!desc.outputs) return {};
  const size_t outputs = session.outputs().size();
  out.wanted.assign(outputs, false);
  for (size_t i = 0; i < desc.output_count; ++i) {
    if (desc.outputs[i] >= outputs)
      return error(Code::kINVALID_ARGUMENT, kDoing, ": output ", desc.outputs[i],
                   " is wanted, the session has ", outputs);
    out.wanted[desc.outputs[i]] = true;
  }
  return {};
}

void set_done(Request& request, const Session& session, pfrt_response_fn done, void* user) {
  const auto callee = std::make_shared<Callee>(session, request.wanted, done, user);
  request.done = [callee](Response answer) { callee->call(std::move(answer)); };
}

Status hand_out(Response&& answer, pfrt_value** outputs, size_t count, pfrt_response* out) {
  if (out) PFRT_TRY(write(out, in_c(answer)));
  PFRT_TRY(std::move(answer.status));
  std::vector<std::unique_ptr<pfrt_value>> made(count);
  for (size_t i = 0; i < count; ++i)
    if (answer.outputs[i]) made[i] = std::make_unique<pfrt_value>(std::move(answer.outputs[i]));
  for (size_t i = 0; i < count; ++i) outputs[i] = made[i].release();
  return {};
}

}  // namespace pfrt::capi
