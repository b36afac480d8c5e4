// SPDX-License-Identifier: Apache-2.0
#include "core/flow/open_requests.h"

#include <algorithm>
#include <new>

namespace pfrt {

void OpenRequests::add(OpenRequest& request) {
  open_.emplace(next_id_, Entry{&request, request.stream});
  request.id = next_id_++;
  ++counts.submitted;
}

void OpenRequests::take_back(uint64_t id) {
  open_.erase(id);
  --counts.submitted;
}

bool OpenRequests::any_before(uint64_t id, uint32_t stream) const {
  return std::ranges::any_of(open_, [&](const auto& open) {
    return open.first < id && (stream == kAnyStream || open.second.stream == stream);
  });
}

Status OpenRequests::cancel(uint64_t id) {
  if (id == 0) {
    for (const auto& [each, entry] : open_)
      if (entry.request) entry.request->cancel();
    return {};
  }
  const auto at = open_.find(id);
  if (at == open_.end() || !at->second.request)
    return error(Code::kNOT_FOUND, "cancelling request ", id, ": it ",
                 id < next_id_ ? "is answered already" : "was never submitted");
  at->second.request->cancel();
  return {};
}

void OpenRequests::settle(OpenRequest& request, Response& answer, uint64_t now) {
  open_[request.id].request = nullptr;
  answer.id = request.id;
  answer.latency_ns = now - std::min(now, request.submitted_ns);
  if (answer.status.ok()) {
    try {
      answer.status = request.ended(now, false);
    } catch (const std::bad_alloc&) {
      answer.status = std::move(request.no_memory);
    }
    if (!answer.status.ok()) answer.outputs.clear();
  }
  switch (answer.status.ok() ? Code::kOK : answer.status.code()) {
    case Code::kOK:
      ++counts.completed;
      counts.latency_ns += static_cast<double>(answer.latency_ns);
      counts.queued_ns += static_cast<double>(answer.queued_ns);
      counts.ran_ns += static_cast<double>(answer.ran_ns);
      break;
    case Code::kCANCELLED:
      ++counts.cancelled;
      break;
    case Code::kDEADLINE:
      ++counts.late;
      break;
    default:
      ++counts.failed;
  }
}

Response stopped_answer(OpenRequest& request, std::string_view what) {
  Response out;
  try {
    out.status = error(Code::kCANCELLED, "a request: the ", what, " stopped while it waited");
  } catch (const std::bad_alloc&) {
    out.status = std::move(request.no_memory);
  }
  return out;
}

int64_t order_key(const OpenRequest& request, bool by_priority) {
  constexpr int64_t kStepNs = 10'000'000, kMostSteps = 1'000'000;
  const int64_t steps = std::clamp(request.request.priority, -kMostSteps, kMostSteps);
  return static_cast<int64_t>(request.submitted_ns) - (by_priority ? steps * kStepNs : 0);
}

}  // namespace pfrt
