// SPDX-License-Identifier: Apache-2.0
//
// The operators that run on the wafer, a row each: which nodes of its kind are refused and why,
// what a PE does for an element, and the values, computed in the order and with the rounding that
// the layout on the wafer has. Products (MatMul, Gemm, Conv) are in ../program/product_step.cc.
// Rows are constant; functions are pure and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "providers/kit/node.h"
#include "providers/wse/number/arithmetic.h"

namespace pfrt::wse {

using Dims = std::vector<int64_t>;

// Row-major in the host's types: float32 whatever the arithmetic at hand, and int64, int32 or bool
// for what operators only move or look up by.
struct Tensor {
  pfrt_dtype dtype = PFRT_DTYPE_FLOAT32;
  Dims dims;
  char* data = nullptr;  // null: absent

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const { return element_count(dims.data(), dims.size()); }
  template <typename T = float>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// The layout of an axis on a layer's rectangle. An axis that is summed over is in |parts| pieces of
// equal size but for the last, one a PE, each summed from its first element on and then joined by
// the tree of groups of |group| (see tree_join).
struct Spread {
  int64_t parts = 1, group = 1;
};

struct Call {
  const SnapshotNode& node;  // attributes; dimensions are those of the tensors
  // Tensors by position, as many as the node has. Constant lists of integers (axes, pads) may have
  // no data here: the node's are read then. No output shares memory with an input.
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  Arithmetic arithmetic;
  Spread spread;
};

// Operations of a PE for each element of the largest tensor, beside taking and putting it.
struct Work {
  double vector_operations = 1;  // an operation on whole vectors counts one for each element
  double scalars = 0, divides = 0, square_roots = 0, exponentials = 0;
  double sums = 0;         // sums or maxima over the row that it belongs to, ...
  double all_reduces = 0;  // ... and all-reduces for each row
};

enum class Family : uint8_t {
  kElementwise,  // an element of the output from those at its place
  kRows,         // sums over an axis: all-reduces along it
  kWindows,      // pools: neighbours' edges are exchanged
  kMove,         // nothing is computed
  kLookup,       // rows chosen by index
  kAttention
};

// "elementwise", "rows", "windows", "move", "lookup", "attention".
std::string_view name_of(Family family);

struct Operator {
  std::string_view domain, op;  // "" is ai.onnx
  Family family;
  Work work;
  // Why this node is not taken, as a person can act on; empty when it is. Dimensions may be
  // symbolic (negative), and a rank unknown (-1) where a branch or contents decide it.
  std::string (*refuse)(const SnapshotNode& node);
  // False when a value that only a run knows is out of range (an index); *|why| says which.
  bool (*run)(const Call& call, std::string* why);
};

// The row of |op| in |domain|; null where there is none.
const Operator* find_operator(std::string_view domain, std::string_view op);
// All rows, for lists.
std::span<const Operator> operators();

}  // namespace pfrt::wse
