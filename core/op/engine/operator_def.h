// SPDX-License-Identifier: Apache-2.0
//
// The runtime's knowledge of operators, whoever runs them: a row for each operator and opset range,
// with arity, canonical form, shape inference and cost. The rows are in core/op/defs, a file for
// each family; the code that reads them is in this folder.
//
// Two steps prepare a graph. canonicalise turns a node of any opset into canonical form 1: the
// meaning of opset 28, with defaults filled in, attributes decoded, and axes non-negative where the
// rank is known. infer works on canonical nodes alone, on symbolic shapes when a model is loaded
// and on numbers when a run's signature is known. All functions change only the graph they are
// given; thread-safe on different graphs.
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
  // The result is no function of the inputs (RandomNormal, training Dropout, ...).
  kOpRandom = 4,
  // The host runs it when a string or a value that is no tensor is involved; otherwise providers
  // do.
  kOpHostStrings = 8,
  // It has a row to say why it is refused, and is not listed among the operators.
  kOpRefused = 16,
};

struct OperatorDef {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int since, until;  // opset range, inclusive; until 0 = still current
  int min_inputs, max_inputs, min_outputs, max_outputs;  // -1 = any number
  OpFlags flags;
  // Bit i set: inference needs the contents of input i (a shape, axes, starts, ...). Where these
  // cannot be known before the run, the host first runs everything before the node.
  uint32_t shape_inputs;
  // Null: the node has the newest meaning already, and only its name is checked.
  Status (*canonicalise)(Rewriter& rewriter);
  Status (*infer)(Inference& inference);
  // Number of floating-point (or integer) operations; null: one for each output element.
  double (*flops)(const Inference& inference);
};

// All families of built-in operators, in family order, from core/op/defs.
std::span<const std::span<const OperatorDef>> operators();

}  // namespace pfrt
