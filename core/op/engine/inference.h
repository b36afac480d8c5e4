// SPDX-License-Identifier: Apache-2.0
//
// The view of an operator's shape inference: a node, and the knowledge of values so far.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

// Types and small integer contents of values during inference, by ValueId.
struct InferState {
  // The type of a value of |graph|. Values made since the state was brought up to date are
  // constants, whose types the graph has. An unset Type for kNoId.
  const Type& type_of(const Graph& graph, ValueId id) const;

  std::vector<Type> types;
  // Known contents of small integer (or bool) tensors in row-major order: shapes, axes, pads.
  // Elements may be symbolic.
  std::vector<std::optional<Shape>> data;
  // Values at hand although they are no constants of the graph: results of a run.
  std::unordered_map<ValueId, Tensor> contents;
  // During canonicalisation: for outputs of removed nodes, the values that their users get when
  // their turn comes.
  std::unordered_map<ValueId, ValueId>* instead = nullptr;
  const std::vector<bool>* used = nullptr;  // by value, then too: whether it had users at first
};

// A node's view of the state.
class Inference {
 public:
  Inference(const Graph& graph, const Node& node, InferState& state)
      : graph_(graph), node_(node), state_(state) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  SymbolTable& symbols() const { return *graph_.symbols; }
  InferState& state() const { return state_; }

  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return node_.has_input(i); }
  const Type& input(size_t i) const;  // an unset Type for an absent input
  bool has_shape(size_t i) const { return has_input(i) && input(i).has_shape; }
  const Shape& shape(size_t i) const { return input(i).shape; }
  size_t rank(size_t i) const { return input(i).shape.size(); }
  // Contents of a small integer input, from a constant or from propagation.
  std::optional<Shape> data(size_t i) const;
  // The contents as numbers; nullopt unless every element is known.
  std::optional<std::vector<int64_t>> numbers(size_t i) const;
  // A constant, or contents in the state; nullptr otherwise.
  const Tensor* constant(size_t i) const;

  size_t output_count() const { return node_.outputs.size(); }
  void set_output(size_t i, Type type);
  void set_output(size_t i, pfrt_dtype dtype, Shape shape) {
    set_output(i, Type::tensor(dtype, std::move(shape)));
  }
  void set_output_unknown_shape(size_t i, pfrt_dtype dtype) { set_output(i, Type::tensor(dtype)); }
  // Sets contents of an output, which are kept up to 1,024 elements.
  void set_data(size_t i, Shape elements);
  const Type& output(size_t i) const;

  // Maps |axis| from [-rank, rank) to [0, rank), or returns an error that names the node.
  Result<int64_t> axis(int64_t axis, size_t rank) const;
  // Broadcasts as NumPy does. Equal symbols match; a symbol against a number > 1 takes the number.
  Result<Shape> broadcast(const Shape& a, const Shape& b) const;
  // Reports a fault of the model, prefixed with the node: "Conv 'c1': ...".
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return error(Code::kSHAPE_MISMATCH, describe(graph_, node_), ": ", parts...);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  InferState& state_;
};

}  // namespace pfrt
