// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the rules that raise operators from decompositions: the nodes of a pattern and
// whether anything else needs them, arithmetic with constants recognised in any association, and
// the exchange of a pattern for one node that the provider agreed to. The functions change only the
// editor's graph.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/pass/engine/run_rules.h"
#include "core/pass/rules/numbers.h"

namespace pfrt {

// The nodes of a pattern while it is matched. Copies serve for attempts.
class Match {
 public:
  explicit Match(Editor& editor) : editor_(&editor) {}
  Editor& editor() const { return *editor_; }
  // The default-domain node of operator |op| that makes |value| as its output 0, which becomes a
  // part; nullptr when there is none.
  Node* take(ValueId value, std::string_view op);
  void take(const Node& node);
  // Whether nothing outside uses outputs of the parts, except |out|.
  bool closed(ValueId out) const;

 private:
  Editor* editor_;
  std::vector<NodeId> parts_;
};

// The value of a one-element constant; nullopt otherwise.
std::optional<double> scalar(const Editor& editor, ValueId value);
// The constant, of one element, and the other input of a node with two inputs.
struct WithScalar {
  ValueId other;
  double number;
  size_t side;  // of the constant
};
std::optional<WithScalar> with_scalar(const Editor& editor, const Node& node);

// Floating-point types whose decompositions are raised: float32, float16, bfloat16, float64.
bool raisable(pfrt_dtype dtype);
// Whether normalisations of the type are raised. Those of float64 are not, since the operators
// compute in float32 by definition, nor those of float16, whose sums of squares overflow where the
// operators' do not.
bool normalisable(pfrt_dtype dtype);
// Whether |a| equals |b| up to the precision of constants in |dtype|.
bool near(double a, double b, pfrt_dtype dtype);

// The coefficients of c[0] + c[1] x + c[2] x^2 + c[3] x^3.
using Polynomial = std::array<double, 4>;
// |value| as a polynomial of |leaf| with constant coefficients; the nodes that compute it become
// parts.
std::optional<Polynomial> polynomial(Match& match, ValueId value, ValueId leaf);

// scale * factors[0] * factors[1] * ..., from nested Mul, and Div by constants, that have no other
// users.
struct Product {
  double scale = 1;
  std::vector<ValueId> factors;
};
Product product(Match& match, const Node& root);

// Axes of a reduction of an input of known rank, ascending; |keeps| says whether the dimensions
// stay. nullopt where they are unknown.
std::optional<std::vector<int64_t>> reduced_axes(const Editor& editor, const Node& node,
                                                 bool keeps = true);
// Whether |axes| are the last ones of |rank|.
bool are_trailing(const std::vector<int64_t>& axes, size_t rank);

// Known dimensions of |value| from |axis| on.
std::optional<Dims> dims_from(const Editor& editor, ValueId value, size_t axis);
size_t count_of(const Dims& dims);
// Elements of constant |value| broadcast to |dims|; it must not be larger, leading ones aside.
std::optional<std::vector<double>> spread(const Editor& editor, ValueId value, const Dims& dims);

// A value of that type that nothing makes, for questions about nodes that do not exist yet.
ValueId placeholder(Editor& editor, Type type);
// Whether the provider runs |made| with outputs |outs|, which exist; true without a provider.
bool agreed(const Editor& editor, const RuleContext& context, Node made, std::vector<ValueId> outs);
// Puts |made| (operator, inputs, attributes) in the place of the node that makes |out|; false when
// the provider refuses it, or its type would differ.
Result<bool> replace_with(Editor& editor, const RuleContext& context, ValueId out, Node made);

Node node_of(std::string_view op, std::vector<ValueId> inputs, std::vector<Attribute> attrs = {});

}  // namespace pfrt
