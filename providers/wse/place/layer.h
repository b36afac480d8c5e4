// SPDX-License-Identifier: Apache-2.0
//
// A node as placement sees it: sizes, without values. And what it costs on a square of PEs: the
// algorithm, the bytes of a PE and the phases. Immutable once made.
#pragma once

#include <string>
#include <vector>

#include "providers/kit/node.h"
#include "providers/wse/operators/operators.h"
#include "providers/wse/schedule/products.h"

namespace pfrt::wse {

struct Layer {
  std::string name;  // the node's, or its operator and index
  std::string op;
  uint32_t node = 0;              // index in the snapshot
  const Operator* row = nullptr;  // null: a product
  // Products: |batch| of C[m, n] = A[m, k] B[k, n]. A convolution is one with the pixels as rows.
  int64_t batch = 1, m = 0, k = 0, n = 0;
  bool constant_b = false;
  int64_t window = 1;  // taps of a convolution's or pool's window
  // Elements.
  int64_t inputs = 0, outputs = 0, weights = 0;
  int64_t line = 1;             // of the axis that is summed over
  std::vector<uint32_t> reads;  // layers of the same placement whose results it takes
  int64_t fresh = 0;            // elements that join a cache: see "KV shift"; 0: none do

  bool is_product() const { return row == nullptr; }
  double macs() const;
};

// Why the wafer does not take |node|; empty when it does.
std::string refusal(const SnapshotNode& node);
// Dimensions that are not known count |typical|.
Layer layer_of(const SnapshotNode& node, int64_t typical);

// A layer on a square of PEs.
struct Mapping {
  int64_t side = 1;
  ProductAlgorithm algorithm = ProductAlgorithm::kMeshGemm;
  int64_t grid = 1;                            // side of the square that one product of a batch has
  int64_t group = 1;                           // of the tree
  int64_t weight_bytes = 0, buffer_bytes = 0;  // of a PE
  int colors = 0;                              // routes that its algorithm takes on each PE
  double cycles = 0;
  Spent spent;
  std::vector<Phase> phases;

  int64_t bytes() const { return weight_bytes + buffer_bytes; }
  Spread spread(const Layer& layer) const;
  // The share of the multiply-adds that the PEs could have made.
  double utilisation(const Layer& layer, const Machine& machine, Arithmetic arithmetic) const;
  // "compute", "fabric", "host" or "set-up", whichever has most of the cycles.
  std::string_view bound() const;
};

// The fastest way on |side| x |side| PEs.
Mapping map_layer(const Machine& machine, Arithmetic arithmetic, const Layer& layer, int64_t side);

}  // namespace pfrt::wse
