// SPDX-License-Identifier: Apache-2.0
//
// Attributes of cases, in the form that snapshots have. Borrows the case's data; not movable.
#pragma once

#include <deque>
#include <vector>

#include "test/providers/cpu/one_node.h"

namespace pfrt::test {

class Attrs {
 public:
  explicit Attrs(const std::vector<Attr>& attrs) {
    for (const Attr& attr : attrs) add(attr);
  }
  Attrs(const Attrs&) = delete;
  Attrs& operator=(const Attrs&) = delete;
  const pfrt_snapshot_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

 private:
  void add(const Attr& attr);
  std::vector<pfrt_snapshot_attr> attrs_;
  std::deque<std::vector<pfrt_string>> texts_;
  std::deque<std::vector<char>> tensors_;
};

}  // namespace pfrt::test
