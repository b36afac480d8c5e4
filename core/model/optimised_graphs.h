// SPDX-License-Identifier: Apache-2.0
//
// The canonical graph after passes, shared by sessions that ask for the same. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt {

struct StoredModel;

struct OptimisedGraph {
  std::shared_ptr<const Graph> graph;
  std::vector<PassReport> reports;
  std::shared_ptr<const StoredModel> stored = nullptr;  // its cache entry; null: none
};

class OptimisedGraphs {
 public:
  // The graph of |key|, which names everything it depends on, made by |make| where no session uses
  // one. Callers with the same key wait for whoever makes it; others go on.
  Result<std::shared_ptr<const OptimisedGraph>> get(
      const std::string& key, const Progress& progress,
      const std::function<Result<OptimisedGraph>()>& make);

 private:
  struct Slot {
    std::timed_mutex making;  // held while passes run
    std::weak_ptr<const OptimisedGraph> value;
  };
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Slot>> slots_;
};

}  // namespace pfrt
