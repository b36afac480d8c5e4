// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of operators, whoever runs them: a row an operator and opset range, with
// arity, canonical form, shape inference and cost. The rows stand in core/op/defs, a file a family;
// what reads them is this folder.
//
// Two steps prepare a graph. canonicalise turns a node of any opset into canonical form 1: the
// meaning of opset 28, defaults filled in, attributes decoded, axes non-negative where the rank is
// known. infer works on canonical nodes alone, on symbolic shapes when a model is loaded and on
// numbers when a run's signature is known. All functions are pure but for the graph they are given;
// thread-safe on different graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/status.h"

namespace pfrt {

class Inference;
class Rewriter;

using OpFlags = uint32_t;
enum : OpFlags {
  kOpPlain = 0,
  // The host runs it: control flow, sequences, optionals, strings.
  kOpHost = 1,
  // Output shapes are known only after the run (NonZero, Unique, Compress, ...).
  kOpDataDependent = 2,
  // Not a function of its inputs (RandomNormal, training Dropout, ...).
  kOpRandom = 4,
  // The host runs it when it meets strings or what is not a tensor; otherwise providers do.
  kOpHostStrings = 8,
  // There to say why it is refused; not listed among the operators.
  kOpRefused = 16,
};

struct OperatorDef {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int since, until;  // opset range, inclusive; until 0 = still current
  int min_inputs, max_inputs, min_outputs, max_outputs;  // -1 = any number
  OpFlags flags;
  // Bit i set: inference wants the contents of input i (a shape, axes, starts, ...). Where those
  // cannot be known before the run, the host runs what precedes first.
  uint32_t shape_inputs;
  // Null: the node already has the newest meaning, only its name is checked.
  Status (*canonicalise)(Rewriter& rewriter);
  Status (*infer)(Inference& inference);
  // Floating-point (or integer) operations; null: one an output element.
  double (*flops)(const Inference& inference);
};

// All families of built-in operators, in family order; core/op/defs has them.
std::span<const std::span<const OperatorDef>> operators();

}  // namespace pfrt
