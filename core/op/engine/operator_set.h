// SPDX-License-Identifier: Apache-2.0
//
// Operators that are not built in: registered by the program that embeds the runtime, or brought by
// a plug-in. Sets are immutable and shared by graphs (Graph::operators); adding to one makes
// another, so that a model keeps what it was made with. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {

class CustomOperator {
 public:
  // Sets |row|'s names, canonicalise and infer. |origin| names who brought it, such as "the
  // client".
  CustomOperator(const std::string& domain, std::string name, std::string origin, OperatorDef row);
  virtual ~CustomOperator() = default;
  CustomOperator(const CustomOperator&) = delete;
  CustomOperator& operator=(const CustomOperator&) = delete;

  const OperatorDef& row() const { return row_; }
  const std::string& origin() const { return origin_; }
  // May be called from many threads at once.
  virtual Status infer(Inference& inference) const = 0;

 private:
  const std::string domain_, name_, origin_;
  OperatorDef row_;
};

class OperatorSet {
 public:
  using Ptr = std::shared_ptr<const OperatorSet>;
  using Operator = std::shared_ptr<const CustomOperator>;

  // |set| (may be null) with |added|. INVALID_ARGUMENT, naming both, when the name is taken.
  static Result<Ptr> with(const Ptr& set, Operator added);
  // |set| without one of its operators.
  static Ptr without(const Ptr& set, const CustomOperator& removed);

  const CustomOperator* find(std::string_view domain, std::string_view name) const;
  const std::vector<Operator>& all() const { return operators_; }

 private:
  std::vector<Operator> operators_;
};

// The built-in row of |node| at |opset|, or that of |graph|'s own operators, which any opset from
// their first on may use; nullptr when there is none.
const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset);
// The row with the newest meaning, for canonical nodes.
const OperatorDef* find_canonical(const Graph& graph, const Node& node);
// Whether |test| holds for some node of |graph| and its bodies.
bool any_node(const Graph& graph, const std::function<bool(const Node&)>& test);
// Gives |graph| and its bodies |set| if some node is not built in, else none.
void use_operators(Graph& graph, const OperatorSet::Ptr& set);

}  // namespace pfrt
