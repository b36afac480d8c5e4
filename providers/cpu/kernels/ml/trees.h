// SPDX-License-Identifier: Apache-2.0
//
// Tree ensembles in three forms. The attributes of TreeEnsemble, TreeEnsembleRegressor and
// TreeEnsembleClassifier are read into a Forest, checked, whatever their version. A Forest is
// packed for one compute type: all trees in one array of small nodes, the two children of a node
// contiguous, so that a step is one load, one comparison and one addition. Objects are immutable
// once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/ml/ml.h"
#include "providers/cpu/kernels/ml/scores.h"

namespace pfrt::cpu {

// The comparisons in the standard's numbering, then membership and leaves.
enum class TreeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

struct Vote {
  uint32_t target;
  double weight;
};

struct ForestNode {
  TreeMode mode;
  bool missing_is_true;
  uint32_t feature;
  uint32_t yes, no;  // positions in Forest::nodes; of a kMember node, no is as ever
  uint32_t set;      // of a kMember node
  double value;
};

struct Forest {
  std::vector<ForestNode> nodes;
  std::vector<uint32_t> roots;
  // The votes of a leaf at position i are votes[vote_begin[i]] up to vote_begin[i + 1].
  std::vector<uint32_t> vote_begin;
  std::vector<Vote> votes;
  std::vector<std::vector<double>> sets;  // sorted
  std::vector<double> base;
  int64_t targets = 0;
  Aggregate aggregate = Aggregate::kSum;
  PostTransform post = PostTransform::kNone;
  bool wide = false;  // some number is a double
  // Labels of a classifier.
  std::vector<int64_t> labels;
};

// INVALID_MODEL, with the name of the attribute, where the ensemble is not valid: lists of
// different lengths, ids that are given twice or are missing, cycles, targets out of range.
Result<Forest> read_forest(const SnapshotNode& node);

template <typename T>
struct PackedNode {
  // Unequal to everything in a leaf.
  T threshold;
  // The first of two neighbouring children, for which the comparison holds. In a leaf, the node
  // before the leaf: its comparison never holds, so a step from a leaf leads to the leaf.
  uint32_t child;
  uint32_t feature : 28;
  // Whether missing values go to the first child.
  uint32_t missing_first : 1;
  uint32_t kind : 3;
};

// x <= threshold; x == threshold; x is in the set with the index |threshold|; a leaf.
enum PackedKind : uint32_t { kOrdered, kEqual, kMember, kLeafNode };

template <typename T>
struct PackedForest {
  std::vector<PackedNode<T>> nodes;
  std::vector<uint32_t> roots;
  std::vector<uint32_t> leaf;  // by node: of a leaf its position in vote_begin
  std::vector<uint32_t> vote_begin;
  std::vector<uint32_t> vote_target;
  std::vector<T> vote_weight;
  // Weights by node if each leaf votes once for each target and there are few of these: kDense
  // weights a node, zeros behind the last target and where there is no leaf. Else empty.
  static constexpr int64_t kDense = 4;
  std::vector<T> dense;
  std::vector<uint32_t> set_begin;
  std::vector<T> set_values;
  uint32_t features = 0;  // one past the largest used
  bool only_ordered = true;
  bool only_missing_second = true;
};

// INVALID_MODEL where shared branches would have to be written out too often.
template <typename T>
Result<PackedForest<T>> pack_forest(const Forest& forest);

extern template Result<PackedForest<float>> pack_forest(const Forest&);
extern template Result<PackedForest<double>> pack_forest(const Forest&);

}  // namespace pfrt::cpu
