// SPDX-License-Identifier: Apache-2.0
//
// A provider's own copy of the part of a snapshot that a region needs: the original lives only
// while compile runs. The copy keeps the original's indices; nodes and values outside the region
// are empty. Names, dimensions and attributes are owned; data of constants stays the host's.
// Immutable after construction, then thread-safe.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "pyflame_rt/plugin.h"

namespace pfrt {

class SnapshotCopy {
 public:
  // |values| are copied even where no node of |nodes| touches them.
  SnapshotCopy(const pfrt_snapshot& snapshot, std::span<const uint32_t> nodes,
               std::span<const uint32_t> values = {});
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;

  const pfrt_snapshot& snapshot() const { return snapshot_; }
  const pfrt_snapshot_node& node(uint32_t i) const { return nodes_[i]; }
  const pfrt_snapshot_value& value(uint32_t i) const { return values_[i]; }
  // Makes an output absent: nobody wants it. Only before the copy is shared.
  void drop_output(uint32_t node, uint32_t output);

 private:
  template <typename T>
  T* array(const T* data, uint64_t count);
  pfrt_string text(pfrt_string s);
  void copy_node(const pfrt_snapshot& from, uint32_t index);
  void copy_value(const pfrt_snapshot& from, uint32_t index);
  void copy_attr(const pfrt_snapshot_attr& from, pfrt_snapshot_attr& to);

  std::pmr::monotonic_buffer_resource memory_;
  std::vector<pfrt_snapshot_node> nodes_;
  std::vector<pfrt_snapshot_value> values_;
  pfrt_snapshot snapshot_{};
};

}  // namespace pfrt
