// SPDX-License-Identifier: Apache-2.0
#include "core/flow/batch_queue.h"

#include <algorithm>
#include <new>

namespace pfrt {

void BatchQueue::add(int64_t key, OpenRequestPtr request) {
  const auto at = groups_.try_emplace(request->shape).first;
  Group& group = at->second;
  const int64_t rows = request->rows;
  const bool flagged = request->request.cancel != nullptr;
  const uint64_t until = request->waits_until_ns();
  try {
    group.waiting.emplace(key, std::move(request));
  } catch (const std::bad_alloc&) {
    if (group.waiting.empty()) groups_.erase(at);
    throw;
  }
  group.rows += rows;
  ++size_;
  flagged_ += flagged;
  if (until) ends_ns_ = std::min(ends_ns_, until);
}

const std::string* BatchQueue::first_group() const {
  const auto at = std::ranges::min_element(
      groups_, {}, [](const auto& group) { return group.second.waiting.begin()->first; });
  return at == groups_.end() ? nullptr : &at->first;
}

OpenRequestPtr BatchQueue::take_out(Group& group,
                                    std::multimap<int64_t, OpenRequestPtr>::iterator at) {
  OpenRequestPtr out = std::move(at->second);
  group.waiting.erase(at);
  group.rows -= out->rows;
  flagged_ -= out->request.cancel != nullptr;
  if (--size_ == 0) ends_ns_ = UINT64_MAX;
  return out;
}

std::vector<OpenRequestPtr> BatchQueue::take(const std::string& shape, int64_t most,
                                             int64_t& rows) {
  const auto at = groups_.find(shape);
  Group& group = at->second;
  size_t count = 0;
  rows = 0;
  for (const auto& [key, request] : group.waiting) {
    if (count != 0 && (shape.empty() || rows + request->rows > most)) break;
    rows += request->rows;
    ++count;
  }
  std::vector<OpenRequestPtr> out;
  out.reserve(count);
  while (out.size() < count) out.push_back(take_out(group, group.waiting.begin()));
  if (group.waiting.empty()) groups_.erase(at);
  return out;
}

std::vector<std::pair<OpenRequestPtr, Status>> BatchQueue::take_ended(uint64_t now) {
  std::vector<std::pair<OpenRequestPtr, Status>> out;
  ends_ns_ = UINT64_MAX;
  for (auto group = groups_.begin(); group != groups_.end();) {
    auto& waiting = group->second.waiting;
    for (auto at = waiting.begin(); at != waiting.end();) {
      const auto next = std::next(at);
      Status why = at->second->ended(now, true);
      if (why.ok()) {
        if (const uint64_t until = at->second->waits_until_ns())
          ends_ns_ = std::min(ends_ns_, until);
      } else {
        if (out.size() == out.capacity()) out.reserve(2 * out.size() + 8);
        out.emplace_back(take_out(group->second, at), std::move(why));
      }
      at = next;
    }
    group = waiting.empty() ? groups_.erase(group) : std::next(group);
  }
  return out;
}

OpenRequestPtr BatchQueue::take_any() {
  if (groups_.empty()) return nullptr;
  const auto at = groups_.begin();
  OpenRequestPtr out = take_out(at->second, at->second.waiting.begin());
  if (at->second.waiting.empty()) groups_.erase(at);
  return out;
}

}  // namespace pfrt
