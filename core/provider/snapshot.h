// SPDX-License-Identifier: Apache-2.0
//
// A canonical graph as flat arrays for providers. Owns the arrays and keeps the graph; immutable.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// Sets |to| to a view of |from| for callbacks and providers, with lists of texts in |strings|;
// false for graphs, types and the like, which stay with the host.
bool view_attribute(const Attribute& from, std::deque<std::vector<pfrt_string>>& strings,
                    pfrt_snapshot_attr* to);

// The opset that callbacks and providers are told for a node whose operator is not built in.
uint32_t snapshot_opset(const Graph& graph, const Node& node);

class Snapshot {
 public:
  // Nodes are in |order|. Value indices are the graph's value ids. |deferred|: constants whose
  // bytes are deferred stay so, for providers with PFRT_PROVIDER_DEFERRED.
  Snapshot(std::shared_ptr<const Graph> graph, const std::vector<NodeId>& order, bool deferred);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  const pfrt_snapshot& get() const { return snapshot_; }
  NodeId node_id(uint32_t index) const { return order_[index]; }

 private:
  // |index_of| gives a node's place in the order by its id; PFRT_NO_INDEX = none.
  void add_values(const std::vector<uint32_t>& index_of, bool deferred);
  void add_nodes(const std::vector<uint32_t>& index_of);

  std::shared_ptr<const Graph> graph_;
  std::vector<NodeId> order_;
  std::vector<pfrt_snapshot_node> nodes_;
  std::vector<pfrt_snapshot_value> values_;
  std::vector<pfrt_snapshot_attr> attrs_;
  std::vector<int64_t> dims_;
  std::deque<std::vector<pfrt_string>> strings_;
  pfrt_snapshot snapshot_{};
};

}  // namespace pfrt
