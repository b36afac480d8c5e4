// SPDX-License-Identifier: Apache-2.0
//
// Operators that are not built in: registered by the program that embeds the runtime, or brought by
// a plug-in. Sets are immutable and shared by graphs (Graph::operators); adding to one makes
// another, so that a model keeps what it was made with. Thread-safe.
//
// Operators of one name differ in the opsets that know them, or in the element types that they are
// for; the model's opset and the types of a node choose among them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {

// Element types of an operator by position. The last one is that of all further inputs or outputs;
// UNSET, and an empty list, are any type.
struct OperatorTypes {
  std::vector<pfrt_dtype> inputs, outputs;

  pfrt_dtype input(size_t i) const;
  pfrt_dtype output(size_t i) const;
  // Drops what the last one says anyway, so that equal types are equal lists.
  void shorten();
  bool operator==(const OperatorTypes&) const = default;
};

// Element types of a node: nullopt = absent, UNSET = not known. The last of each is not absent.
struct NodeTypes {
  std::vector<std::optional<pfrt_dtype>> inputs, outputs;
};

class CustomOperator {
 public:
  // Sets |row|'s names, canonicalise and infer. |origin| names who brought it, such as "the
  // client".
  CustomOperator(const std::string& domain, std::string name, std::string origin, OperatorDef row,
                 OperatorTypes types);
  virtual ~CustomOperator() = default;
  CustomOperator(const CustomOperator&) = delete;
  CustomOperator& operator=(const CustomOperator&) = delete;

  const OperatorDef& row() const { return row_; }
  const std::string& origin() const { return origin_; }
  const OperatorTypes& types() const { return types_; }
  // "float32, any -> bool".
  const std::string& types_text() const { return types_text_; }
  bool known_at(int64_t opset) const {
    return row_.since <= opset && (row_.until == 0 || opset <= row_.until);
  }
  // May be called from many threads at once.
  virtual Status infer(Inference& inference) const = 0;

 private:
  const std::string domain_, name_, origin_;
  OperatorTypes types_;
  OperatorDef row_;
  std::string types_text_;
};

// The operator for a node.
struct OperatorChoice {
  const CustomOperator* op = nullptr;  // null: none fits
  bool sure = true;                    // false: a type that is not known decides
};

class OperatorSet {
 public:
  using Ptr = std::shared_ptr<const OperatorSet>;
  using Operator = std::shared_ptr<const CustomOperator>;

  // |set| (may be null) with |added|. INVALID_ARGUMENT, naming both, when it is there already.
  static Result<Ptr> with(const Ptr& set, Operator added);
  // |set| without the operators of that name, or null when it has none.
  static Ptr without(const Ptr& set, std::string_view domain, std::string_view name);

  bool knows(std::string_view domain, std::string_view name) const;
  // The newest opset that an operator of that name begins with; 0 when there is none.
  int64_t newest(std::string_view domain, std::string_view name) const;
  // Operators of that name known at |opset| (0 = the newest), in the order of registration.
  std::vector<const CustomOperator*> versions(std::string_view domain, std::string_view name,
                                              int64_t opset) const;
  OperatorChoice choose(std::string_view domain, std::string_view name, int64_t opset,
                        const NodeTypes& types) const;
  // A sentence on a node that has no operator: its types, and those that there are.
  std::string no_choice(std::string_view domain, std::string_view name, int64_t opset,
                        const NodeTypes& types) const;
  const std::vector<Operator>& all() const { return operators_; }

 private:
  std::vector<Operator> operators_;
};

// The types that |graph| has for |node|.
NodeTypes types_of(const Graph& graph, const Node& node);
// The opset by which |node|, whose operator is not built in, has its meaning; 0 = the newest.
int64_t custom_opset(const Graph& graph, const Node& node);
// The built-in row of |node| at |opset|, or that of |graph|'s own operators, which may be one that
// does not take the node's types; nullptr when there is none.
const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset);
// The row with the newest meaning, for canonical nodes.
const OperatorDef* find_canonical(const Graph& graph, const Node& node);
// Whether |test| holds for some node of |graph| and its bodies; it gets the graph that has it.
bool any_node(const Graph& graph, const std::function<bool(const Graph&, const Node&)>& test);
// Gives |graph| and its bodies |set| if some node is not built in, else none.
void use_operators(Graph& graph, const OperatorSet::Ptr& set);

}  // namespace pfrt
