// SPDX-License-Identifier: Apache-2.0
//
// The editors of a graph and of its bodies. They stay open from one pass to the next, so that a
// pass pays for what the ones before it have edited, not for the whole graph. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "core/pass/engine/editor.h"

namespace pfrt {

class Editors {
 public:
  // Calls |fn| for every body in |graph|, innermost first, then for the graph itself, with the
  // knowledge around each. The graph must be alive, and edited by nobody else, until close or a
  // visit of another.
  Status visit(Graph& graph, const std::function<Status(Editor&)>& fn);
  void close();
  // Sets a progress that may stop later visits; null = nothing does.
  void watch(const Progress* progress) { progress_ = progress; }

 private:
  struct Open {
    std::unique_ptr<Editor> editor;
    uint64_t at = 0;  // edit at which a body and its surroundings were known
  };
  Result<Editor*> open(Graph& graph, const InferState* outer);
  Status visit(Graph& graph, const InferState* outer, const std::function<Status(Editor&)>& fn);

  const Graph* root_ = nullptr;
  const Progress* progress_ = nullptr;
  std::unordered_map<const Graph*, Open> open_;
  uint64_t edits_ = 0;  // of all graphs
};

}  // namespace pfrt
