// SPDX-License-Identifier: Apache-2.0
//
// Graphs made canonical, typed and checked: each node in the newest opset, with inferred types.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {

// A graph built by hand has the newest opset of each domain unless it says otherwise.
void default_opsets(Graph& graph);

// Gives symbols to dimensions of inputs without a name, so that dimensions that follow from one are
// known to be equal.
void number_dims(Graph& graph);

// |graph| in canonical form, with |operators| beside the built-in ones.
Result<std::shared_ptr<const Graph>> make_canonical(std::shared_ptr<Graph> graph,
                                                    const OperatorSet::Ptr& operators,
                                                    const Progress* progress = nullptr,
                                                    Contradicted* contradicted = nullptr);

// Types of inner values, found on a canonical copy and written back by name.
Status infer_types(Graph& graph);

// Finds everything that is wrong with the graph: its structure, operators the library does not
// know, arity, attribute types, contradicting types and shapes. VALIDATION with a child for each
// fault.
Status validate_all(Graph& graph);

// Copies the types that inference found in |from| to the values of the same names in |to|. What is
// declared stays where inference knows nothing.
void copy_types(const Graph& from, Graph& to);

// The canonical form of one graph, made when it is first asked for and kept where it is not large.
// Thread-safe.
class CanonicalGraph {
 public:
  // Canonical form of |graph| with |operators| (null: the built-in ones alone), or why there is
  // none. Made again for other |operators|. A large one is given away unless |keep|.
  Result<std::shared_ptr<const Graph>> get(const Graph& graph, const OperatorSet::Ptr& operators,
                                           bool keep, const Progress& progress);
  // A warning about declared types that the graph contradicts; empty: all fit.
  const std::string& contradicted() const { return contradicted_; }

 private:
  std::timed_mutex mutex_;  // held while the graph is made
  bool tried_ = false;
  OperatorSet::Ptr operators_;
  std::shared_ptr<const Graph> graph_;
  Status status_;  // of making it
  std::string contradicted_;
};

}  // namespace pfrt
