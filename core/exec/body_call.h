// SPDX-License-Identifier: Apache-2.0
//
// The body of a control-flow node with its captures bound, to be run any number of times within
// one run. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

class BodyCall {
 public:
  // |captured| is in the order of the body's captures.
  BodyCall(RunnableGraph& body, std::vector<ValuePtr> captured, const RunControl& control)
      : body_(body), captured_(std::move(captured)), control_(control) {}

  const Graph& graph() const { return body_.graph(); }
  const RunControl& control() const { return control_; }
  size_t input_count() const { return graph().inputs.size(); }
  size_t output_count() const { return graph().outputs.size(); }

  // |given| are the body's own inputs. Every value must have the type that the body was compiled
  // for. |requests| are as in RunnableGraph::run.
  Status run(std::vector<ValuePtr> given, const std::vector<OutputRequest>& requests,
             std::vector<ValuePtr>& outputs);

  // |value| in the form of input |i|: a single element becomes a scalar or a list of one.
  Result<ValuePtr> one_element(ValuePtr value, size_t i) const;
  // The types of the outputs for inputs such as |given|, without running anything; the declared
  // types where inference knows none.
  Result<std::vector<Type>> output_types(const std::vector<ValuePtr>& given) const;

 private:
  Result<std::vector<ValuePtr>> all_inputs(std::vector<ValuePtr> given) const;

  RunnableGraph& body_;
  std::vector<ValuePtr> captured_;
  const RunControl& control_;
};

// runs_bodies tells whether the node runs graphs of its own; for_each_body visits these.
bool runs_bodies(const Node& node);
template <typename Fn>
void for_each_body(const Node& node, Fn fn) {
  for (const Attribute& a : node.attrs) {
    if (a.graph) fn(a.graph);
    for (const auto& g : a.graphs) fn(g);
  }
}

// DTYPE_MISMATCH or SHAPE_MISMATCH when |value| does not fit the plan for |id| of |graph|.
Status check_planned(const Graph& graph, ValueId id, const Value& value);

// Run nodes that repeat a body. |in| has the node's inputs (null where absent), |out| one value for
// each output.
Status run_loop(BodyCall& body, const std::vector<ValuePtr>& in, std::vector<ValuePtr>& out);
Status run_scan(const Node& node, BodyCall& body, const std::vector<ValuePtr>& in,
                std::vector<ValuePtr>& out);
Status run_sequence_map(BodyCall& body, const std::vector<ValuePtr>& in,
                        std::vector<ValuePtr>& out);

}  // namespace pfrt
