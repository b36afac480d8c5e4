// SPDX-License-Identifier: Apache-2.0
//
// Members of a graph's handle: the graph, and what getters handed out.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capi/handle/counted.h"
#include "capi/handle/info.h"
#include "core/ir/graph.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_graph : pfrt::capi::Counted {
  using Flag = std::shared_ptr<std::atomic<bool>>;
  explicit pfrt_graph(std::shared_ptr<pfrt::Graph> g, Flag of_load = nullptr)
      : graph(std::move(g)), loaded(std::move(of_load)) {}
  ~pfrt_graph();
  // Increments the graph's revision and drops storage that getters handed out.
  void edited();
  // Drops the storage when the graph was edited through another handle.
  void refresh();
  // Releases the handle of a constant that leaves the graph.
  void drop_value(const pfrt::Value* value);
  // Takes the graph out, of which no handle can edit anything any more.
  std::shared_ptr<pfrt::Graph> end_load();
  // INVALID_ARGUMENT once the load is over for which the graph was built: it is a model's then.
  pfrt::Status open() const;

  std::shared_ptr<pfrt::Graph> graph;
  Flag loaded;  // shared by handles of a graph that a load builds and of its bodies; null elsewhere
  uint64_t revision = 0;  // revision of the graph that the storage below describes
  struct NodeStorage {
    std::vector<pfrt_string> inputs, outputs;
    std::vector<pfrt_attr> attrs;
    std::deque<std::vector<pfrt_string>> strings;
    std::deque<std::vector<pfrt_value*>> values;
    std::deque<std::vector<pfrt_graph*>> graphs;
  };
  std::unordered_map<uint32_t, std::unique_ptr<NodeStorage>> nodes;
  std::unordered_map<uint32_t, std::unique_ptr<pfrt::capi::InfoStorage>> infos;
  std::unordered_map<const pfrt::Value*, pfrt_value*> values;
  std::unordered_map<const pfrt::Graph*, pfrt_graph*> bodies;
  std::vector<uint32_t> order, users;
  std::vector<pfrt::NodeId> ids;  // of live nodes, made on first use
  std::vector<pfrt::ValueId> initializers;
  bool listed = false;
  std::unordered_map<std::string, size_t> metadata;  // index of each key in the graph's list
};
