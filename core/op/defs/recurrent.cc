// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM over a whole sequence. X is [time, batch, input], or [batch, time, input] with
// layout 1; W is [directions, gates * hidden, input], R is [directions, gates * hidden, hidden].
#include <algorithm>
#include <iterator>
#include <string>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

int64_t gates_of(std::string_view op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

std::vector<std::string> default_activations(std::string_view op) {
  if (op == "LSTM") return {"Sigmoid", "Tanh", "Tanh"};
  if (op == "GRU") return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

// Letters may be in either case, since exporters disagree.
bool is_activation(std::string_view name) {
  constexpr std::string_view kNames[] = {"affine",   "elu",        "hardsigmoid",    "leakyrelu",
                                         "relu",     "scaledtanh", "sigmoid",        "softplus",
                                         "softsign", "tanh",       "thresholdedrelu"};
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::find(std::begin(kNames), std::end(kNames), lower) != std::end(kNames);
}

Status canonical_recurrent(Rewriter& rewriter) {
  Node& node = rewriter.node();
  node.drop_attr("output_sequence");
  PFRT_TRY(fill_int(rewriter, "layout", 0));
  PFRT_TRY(fill_string(rewriter, "direction", "forward"));
  if (node.op == "GRU") PFRT_TRY(fill_int(rewriter, "linear_before_reset", 0));
  if (node.op == "LSTM") PFRT_TRY(fill_int(rewriter, "input_forget", 0));
  const std::string direction(node.attr_string("direction", ""));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return rewriter.fail("direction is '", direction, "', needs forward, reverse or bidirectional");
  if (rewriter.has_shape(2) && rewriter.rank(2) == 3 && rewriter.input(2).shape[2].known())
    PFRT_TRY(fill_int(rewriter, "hidden_size", rewriter.input(2).shape[2].value()));

  const std::vector<std::string> one = default_activations(node.op);
  const size_t wanted = one.size() * (direction == "bidirectional" ? 2 : 1);
  const Attribute* given = node.attr("activations");
  if (!given) {
    Attribute all;
    all.name = "activations";
    all.type = PFRT_ATTR_STRINGS;
    while (all.strings.size() < wanted)
      all.strings.insert(all.strings.end(), one.begin(), one.end());
    node.set_attr(std::move(all));
  } else if (given->type != PFRT_ATTR_STRINGS || given->strings.size() != wanted) {
    return rewriter.fail("activations must be a list of ", wanted, " names");
  } else {
    for (const std::string& name : given->strings)
      if (!is_activation(name))
        return rewriter.fail("activation '", name,
                             "' is none of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, "
                             "Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu");
  }
  return {};
}

struct Extents {
  Dim time, batch, hidden;
  int64_t directions = 1;
};

// Dimensions that the inputs and attributes agree on.
Result<Extents> extents_of(const Inference& inference) {
  const Node& node = inference.node();
  for (size_t i : {0u, 1u, 2u}) PFRT_TRY(expect_rank(inference, i, 3));
  Extents e;
  e.directions = node.attr_string("direction", "forward") == "bidirectional" ? 2 : 1;
  const bool batch_first = node.attr_int("layout", 0) != 0;
  Dim features;
  if (inference.has_shape(0)) {
    e.time = inference.shape(0)[batch_first ? 1 : 0];
    e.batch = inference.shape(0)[batch_first ? 0 : 1];
    features = inference.shape(0)[2];
  }
  if (const Attribute* hidden = node.attr("hidden_size")) e.hidden = Dim(hidden->i);
  if (e.hidden.known() && e.hidden.value() < 0)
    return inference.fail("hidden_size is ", e.hidden.value());
  if (inference.has_shape(2)) {
    PFRT_ASSIGN(e.hidden, same_dim(inference, e.hidden, inference.shape(2)[2],
                                   "hidden_size and R's last dimension"));
  }
  const Dim rows = inference.symbols().mul(e.hidden, gates_of(node.op));
  PFRT_TRY(expect_shape(inference, 1, {e.directions, rows, features}));
  PFRT_TRY(expect_shape(inference, 2, {e.directions, rows, e.hidden}));
  PFRT_TRY(expect_shape(inference, 3, {e.directions, inference.symbols().mul(rows, 2)}));
  PFRT_TRY(expect_shape(inference, 4, {e.batch}));
  const Shape state =
      batch_first ? Shape{e.batch, e.directions, e.hidden} : Shape{e.directions, e.batch, e.hidden};
  PFRT_TRY(expect_shape(inference, 5, state));
  PFRT_TRY(expect_shape(inference, 6, state));
  if (node.op == "LSTM") {
    const Dim peepholes = inference.symbols().mul(e.hidden, 3);
    PFRT_TRY(expect_shape(inference, 7, {e.directions, peepholes}));
  }
  return e;
}

Status infer_recurrent(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 4));
  PFRT_ASSIGN(const Extents e, extents_of(inference));
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (inference.node().attr_int("layout", 0) != 0) {
    inference.set_output(0, dtype, {e.batch, e.time, e.directions, e.hidden});
    for (size_t i : {1u, 2u}) inference.set_output(i, dtype, {e.batch, e.directions, e.hidden});
  } else {
    inference.set_output(0, dtype, {e.time, e.directions, e.batch, e.hidden});
    for (size_t i : {1u, 2u}) inference.set_output(i, dtype, {e.directions, e.batch, e.hidden});
  }
  return {};
}

// Counts two for a multiply-add with W and R at every step of every sequence.
double recurrent_flops(const Inference& inference) {
  if (!inference.has_shape(0) || !inference.has_shape(1) || !inference.has_shape(2)) return 0;
  const double steps = elements(inference.shape(0), 0, 2);
  return 2 * steps * (elements(inference.shape(1)) + elements(inference.shape(2)));
}

constexpr OperatorDef kRecurrentOperators[] = {
    {"", "RNN", 1, 0, 3, 6, 0, 2, kOpPlain, 0, canonical_recurrent, infer_recurrent,
     recurrent_flops},
    {"", "GRU", 1, 0, 3, 6, 0, 2, kOpPlain, 0, canonical_recurrent, infer_recurrent,
     recurrent_flops},
    {"", "LSTM", 1, 0, 3, 8, 0, 3, kOpPlain, 0, canonical_recurrent, infer_recurrent,
     recurrent_flops},
};

}  // namespace

std::span<const OperatorDef> recurrent_operators() { return kRecurrentOperators; }

}  // namespace pfrt
