// SPDX-License-Identifier: Apache-2.0
//
// Requests that wait for a run which they may share: in groups of those that fit together, each in
// the order in which they are to run. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/flow/open_request.h"

namespace pfrt {

class BatchQueue {
 public:
  struct Group {
    std::multimap<int64_t, OpenRequestPtr> waiting;  // by their keys, the first to run first
    int64_t rows = 0;
  };

  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }

  // |key| orders requests, the smallest first.
  void add(int64_t key, OpenRequestPtr request);
  // The group whose first request is first of all; null where nothing waits. Valid until the queue
  // changes.
  const std::string* first_group() const;
  const Group& group(const std::string& shape) const { return groups_.at(shape); }
  // Takes requests of a group from the front, as many as have |most| rows together, at least one.
  // Those of the group "" are taken one by one.
  std::vector<OpenRequestPtr> take(const std::string& shape, int64_t most, int64_t& rows);
  // Takes those that are cancelled or have waited too long, with what they are answered.
  std::vector<std::pair<OpenRequestPtr, Status>> take_ended(uint64_t now);
  OpenRequestPtr take_any();  // null where nothing waits

  // When a request that waits now has waited too long, or earlier; UINT64_MAX: never.
  uint64_t ends_ns() const { return ends_ns_; }
  // Whether requests wait whose callers may raise a flag.
  bool flagged() const { return flagged_ != 0; }

 private:
  using Groups = std::unordered_map<std::string, Group>;
  OpenRequestPtr take_out(Group& group, std::multimap<int64_t, OpenRequestPtr>::iterator at);

  Groups groups_;
  uint64_t size_ = 0, flagged_ = 0;
  uint64_t ends_ns_ = UINT64_MAX;
};

}  // namespace pfrt
