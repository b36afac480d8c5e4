// SPDX-License-Identifier: Apache-2.0
//
// What the rules that raise operators from decompositions share: the nodes of a pattern and whether
// anything else needs them, arithmetic with constants recognised however it is associated, and the
// exchange of a pattern for one node that the provider agreed to. Pure but for the editor.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/pass/engine/run_rules.h"
#include "core/pass/rules/numbers.h"

namespace pfrt {

// The nodes of a pattern while it is matched. Attempts are copies.
class Match {
 public:
  explicit Match(Editor& editor) : editor_(&editor) {}
  Editor& editor() const { return *editor_; }
  // The default-domain node of operator |op| that makes |value| as its output 0, which becomes a
  // part; nullptr when there is none.
  Node* take(ValueId value, std::string_view op);
  void take(const Node& node);
  // Whether nothing outside uses what the parts make, |out| left aside.
  bool closed(ValueId out) const;

 private:
  Editor* editor_;
  std::vector<NodeId> parts_;
};

// The value of a one-element constant; nullopt otherwise.
std::optional<double> scalar(const Editor& editor, ValueId value);
// The other input and the constant of a node with two inputs, one of them a one-element constant.
struct WithScalar {
  ValueId other;
  double number;
  size_t side;  // of the constant
};
std::optional<WithScalar> with_scalar(const Editor& editor, const Node& node);

// Floating-point types whose decompositions are raised: float32, float16, bfloat16, float64.
bool raisable(pfrt_dtype dtype);
// Whether normalisations of the type are raised: those of float64 are computed in float32 by the
// operators' definition, and sums of squares in float16 overflow where the operators' do not.
bool normalisable(pfrt_dtype dtype);
// Whether |a| is |b| as far as the constants of a graph in |dtype| can say.
bool near(double a, double b, pfrt_dtype dtype);

// c[0] + c[1] x + c[2] x^2 + c[3] x^3
using Polynomial = std::array<double, 4>;
// |value| as a polynomial of |leaf| with constant coefficients; what computes it becomes part.
std::optional<Polynomial> polynomial(Match& match, ValueId value, ValueId leaf);

// scale * factors[0] * factors[1] * ... of nested Mul, and Div by constants, that nothing else
// uses.
struct Product {
  double scale = 1;
  std::vector<ValueId> factors;
};
Product product(Match& match, const Node& root);

// Axes of a reduction of an input of known rank, ascending; |keeps| says whether the dimensions
// stay. nullopt where they are not known.
std::optional<std::vector<int64_t>> reduced_axes(const Editor& editor, const Node& node,
                                                 bool keeps = true);
// Whether axes are the last ones of |rank|.
bool are_trailing(const std::vector<int64_t>& axes, size_t rank);

// Known dimensions of |value| from |axis| on.
std::optional<Dims> dims_from(const Editor& editor, ValueId value, size_t axis);
size_t count_of(const Dims& dims);
// Elements of constant |value| broadcast to |dims|; leading ones aside it must not be larger.
std::optional<std::vector<double>> spread(const Editor& editor, ValueId value, const Dims& dims);

// A value of that type which nothing makes, to ask about what is not there yet.
ValueId placeholder(Editor& editor, Type type);
// Whether the provider runs |made| with outputs |outs|, which exist; always, without one to ask.
bool agreed(const Editor& editor, const RuleContext& context, Node made, std::vector<ValueId> outs);
// |made| (operator, inputs, attributes) takes the place of what makes |out|: false when the
// provider refuses it, or it would have another type.
Result<bool> replace_with(Editor& editor, const RuleContext& context, ValueId out, Node made);

Node node_of(std::string_view op, std::vector<ValueId> inputs, std::vector<Attribute> attrs = {});

}  // namespace pfrt
