// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/base/half.h"
#include "providers/cpu/kernels/ml/trees.h"

namespace pfrt::cpu {
namespace {

constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                       "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr int64_t kMostFeatures = int64_t{1} << 28;
constexpr size_t kMostNodes = size_t{1} << 30;

template <typename T>
void widen(const void* data, size_t count, std::vector<double>& out) {
  out.resize(count);
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(element);
  }
}

// A list of numbers from attribute |name|, a list of floats or a tensor.
struct Numbers {
  std::vector<double> values;
  bool wide = false;
};

Result<Numbers> read_numbers(const SnapshotNode& node, std::string_view name) {
  Numbers out;
  const pfrt_snapshot_attr* attr = node.attr(name);
  if (attr == nullptr) return out;
  if (attr->type == PFRT_ATTR_FLOATS) {
    out.values.assign(attr->floats, attr->floats + attr->count);
    return out;
  }
  if (attr->type != PFRT_ATTR_TENSOR) return attribute_error(name, "is no list of numbers");
  const int64_t count = element_count(attr->tensor.dims, attr->tensor.rank);
  if (count < 0 || tensor_bytes(attr->tensor.dtype, count) > attr->tensor.bytes)
    return attribute_error(name, "has less data than its dimensions tell");
  const auto n = static_cast<size_t>(count);
  switch (attr->tensor.dtype) {
    case PFRT_DTYPE_FLOAT32:
      widen<float>(attr->tensor.data, n, out.values);
      break;
    case PFRT_DTYPE_FLOAT64:
      widen<double>(attr->tensor.data, n, out.values);
      out.wide = true;
      break;
    case PFRT_DTYPE_UINT8:
      widen<uint8_t>(attr->tensor.data, n, out.values);
      break;
    case PFRT_DTYPE_FLOAT16: {
      std::vector<double> bits;
      widen<uint16_t>(attr->tensor.data, n, bits);
      for (double b : bits)
        out.values.push_back(static_cast<double>(float16_to_float(static_cast<uint16_t>(b))));
      break;
    }
    default:
      return attribute_error(name, "holds ", dtype_name(attr->tensor.dtype),
                             ", expected float, double or float16");
  }
  return out;
}

// |name| as floats or |name|_as_tensor.
Result<Numbers> read_either(const SnapshotNode& node, const std::string& name) {
  const std::string tensor = name + "_as_tensor";
  PFRT_ASSIGN(Numbers floats, read_numbers(node, name));
  PFRT_ASSIGN(Numbers doubles, read_numbers(node, tensor));
  if (!floats.values.empty() && !doubles.values.empty())
    return attribute_error(tensor, "is given beside '", name, "'; one of them is allowed");
  return floats.values.empty() ? doubles : floats;
}

Result<std::span<const int64_t>> read_ints(const SnapshotNode& node, std::string_view name,
                                           size_t count) {
  const pfrt_snapshot_attr* attr = node.attr(name);
  if (attr != nullptr && attr->type != PFRT_ATTR_INTS)
    return attribute_error(name, "is no list of integers");
  const std::span<const int64_t> list = node.attr_ints(name);
  if (list.size() != count)
    return attribute_error(name, "has ", list.size(), " elements, expected ", count);
  return list;
}

Status need_count(std::string_view name, size_t found, size_t expected) {
  if (found == expected) return {};
  return attribute_error(name, "has ", found, " elements, expected ", expected);
}

// INVALID_MODEL where a path leads back to a node. Branches may be shared.
Status check_acyclic(const Forest& forest, std::string_view name) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(forest.nodes.size(), kNew);
  std::vector<uint32_t> path;
  for (uint32_t root : forest.roots) {
    path.push_back(root);
    while (!path.empty()) {
      const uint32_t at = path.back();
      const ForestNode& node = forest.nodes[at];
      if (state[at] != kNew || node.mode == TreeMode::kLeaf) {
        state[at] = kDone;
        path.pop_back();
        continue;
      }
      state[at] = kOpen;
      for (uint32_t child : {node.no, node.yes}) {
        if (state[child] == kOpen)
          return attribute_error(name, "makes a cycle: the branch of node ", at,
                                 " leads back to node ", child, " (positions in the lists)");
        if (state[child] == kNew) path.push_back(child);
      }
    }
  }
  return {};
}

Result<uint32_t> feature_of(std::string_view name, int64_t feature) {
  if (feature < 0 || feature >= kMostFeatures)
    return attribute_error(name, "has feature ", feature, ", expected 0 to ", kMostFeatures - 1);
  return static_cast<uint32_t>(feature);
}

// ------------------------------------------------------------------ versions 1 and 3
struct NodeId {
  int64_t tree, node;
  bool operator==(const NodeId&) const = default;
};
struct NodeIdHash {
  size_t operator()(const NodeId& id) const {
    return static_cast<size_t>(static_cast<uint64_t>(id.tree) * 0x9e3779b97f4a7c15u ^
                               static_cast<uint64_t>(id.node) * 0xc2b2ae3d27d4eb4fu);
  }
};
using Positions = std::unordered_map<NodeId, uint32_t, NodeIdHash>;

Result<TreeMode> mode_of(pfrt_string word, size_t at) {
  const auto* found = std::find(std::begin(kModes), std::end(kModes), view(word));
  if (found == std::end(kModes) || *found == "BRANCH_MEMBER")
    return attribute_error("nodes_modes", "has '", word, "' at ", at,
                           ", expected LEAF or BRANCH_ and LEQ, LT, GTE, GT, EQ or NEQ");
  return static_cast<TreeMode>(found - std::begin(kModes));
}

Result<uint32_t> position_of(const Positions& positions, std::string_view name, NodeId id) {
  const auto found = positions.find(id);
  if (found == positions.end())
    return attribute_error(name, "names node ", id.node, " of tree ", id.tree,
                           ", which is not in 'nodes_nodeids'");
  return found->second;
}

Status read_nodes(const SnapshotNode& node, Forest& forest, Positions& positions) {
  const pfrt_snapshot_attr* modes = node.attr("nodes_modes");
  if (modes == nullptr || modes->type != PFRT_ATTR_STRINGS || modes->count == 0)
    return attribute_error("nodes_modes", "is absent or empty: there is no tree");
  const size_t n = modes->count;
  if (n > kMostNodes) return attribute_error("nodes_modes", "has ", n, " elements, too many");
  PFRT_ASSIGN(const auto trees, read_ints(node, "nodes_treeids", n));
  PFRT_ASSIGN(const auto ids, read_ints(node, "nodes_nodeids", n));
  PFRT_ASSIGN(const auto features, read_ints(node, "nodes_featureids", n));
  PFRT_ASSIGN(const auto yes, read_ints(node, "nodes_truenodeids", n));
  PFRT_ASSIGN(const auto no, read_ints(node, "nodes_falsenodeids", n));
  PFRT_ASSIGN(const Numbers values, read_either(node, "nodes_values"));
  PFRT_TRY(need_count("nodes_values", values.values.size(), n));
  std::span<const int64_t> missing;
  if (!node.attr_ints("nodes_missing_value_tracks_true").empty()) {
    PFRT_ASSIGN(missing, read_ints(node, "nodes_missing_value_tracks_true", n));
  }
  PFRT_ASSIGN(const Numbers hitrates, read_either(node, "nodes_hitrates"));
  if (!hitrates.values.empty()) PFRT_TRY(need_count("nodes_hitrates", hitrates.values.size(), n));
  forest.wide |= values.wide;
  positions.reserve(n);
  std::unordered_map<int64_t, bool> seen;
  for (uint32_t i = 0; i < n; ++i) {
    if (!positions.try_emplace({trees[i], ids[i]}, i).second)
      return attribute_error("nodes_nodeids", "has node ", ids[i], " of tree ", trees[i], " twice");
    if (seen.try_emplace(trees[i], true).second) forest.roots.push_back(i);
  }
  forest.nodes.resize(n);
  for (size_t i = 0; i < n; ++i) {
    ForestNode& to = forest.nodes[i];
    PFRT_ASSIGN(to.mode, mode_of(modes->strings[i], i));
    to.missing_is_true = !missing.empty() && missing[i] != 0;
    to.value = values.values[i];
    if (to.mode == TreeMode::kLeaf) continue;
    PFRT_ASSIGN(to.feature, feature_of("nodes_featureids", features[i]));
    PFRT_ASSIGN(to.yes, position_of(positions, "nodes_truenodeids", {trees[i], yes[i]}));
    PFRT_ASSIGN(to.no, position_of(positions, "nodes_falsenodeids", {trees[i], no[i]}));
  }
  return {};
}

// |stem|: "class" or "target".
Status read_votes(const SnapshotNode& node, const std::string& stem, const Positions& positions,
                  Forest& forest) {
  const std::string ids = stem + "_ids", node_ids = stem + "_nodeids", weights = stem + "_weights";
  const auto targets = node.attr_ints(ids);
  const size_t n = targets.size();
  if (n > kMostNodes) return attribute_error(ids, "has ", n, " elements, too many");
  PFRT_ASSIGN(const auto nodes, read_ints(node, node_ids, n));
  PFRT_ASSIGN(const auto trees, read_ints(node, stem + "_treeids", n));
  PFRT_ASSIGN(const Numbers numbers, read_either(node, weights));
  PFRT_TRY(need_count(weights, numbers.values.size(), n));
  forest.wide |= numbers.wide;
  std::vector<uint32_t> owner(n);
  forest.vote_begin.assign(forest.nodes.size() + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    if (targets[i] < 0 || targets[i] >= forest.targets)
      return attribute_error(ids, "has ", targets[i], ", expected 0 to ", forest.targets - 1);
    PFRT_ASSIGN(owner[i], position_of(positions, node_ids, {trees[i], nodes[i]}));
    ++forest.vote_begin[owner[i] + 1];
  }
  std::partial_sum(forest.vote_begin.begin(), forest.vote_begin.end(), forest.vote_begin.begin());
  std::vector<uint32_t> next(forest.vote_begin.begin(), forest.vote_begin.end() - 1);
  forest.votes.resize(n);
  for (size_t i = 0; i < n; ++i)
    forest.votes[next[owner[i]]++] = {static_cast<uint32_t>(targets[i]), numbers.values[i]};
  return {};
}

Status read_base(const SnapshotNode& node, bool classifier, Forest& forest) {
  PFRT_ASSIGN(Numbers base, read_either(node, "base_values"));
  const size_t n = base.values.size(), targets = static_cast<size_t>(forest.targets);
  if (n != 0 && n != targets && !(classifier && targets <= 2 && n <= 2))
    return attribute_error("base_values", "has ", n, " elements, expected none or ", targets);
  forest.wide |= base.wide;
  forest.base = std::move(base.values);
  return {};
}

Result<Forest> read_old(const SnapshotNode& node, bool classifier) {
  Forest forest;
  if (classifier) {
    const auto labels = node.attr_ints("classlabels_int64s");
    forest.labels.assign(labels.begin(), labels.end());
    forest.targets = static_cast<int64_t>(labels.size());
  } else {
    forest.targets = node.attr_int("n_targets", 0);
    const std::string_view word = node.attr_string("aggregate_function", "SUM");
    const auto* found = std::find(std::begin(kAggregates), std::end(kAggregates), word);
    if (found == std::end(kAggregates))
      return attribute_error("aggregate_function", "is '", word, "'");
    forest.aggregate = static_cast<Aggregate>(found - std::begin(kAggregates));
  }
  if (forest.targets < 1 || forest.targets > INT32_MAX)
    return attribute_error(classifier ? "classlabels_int64s" : "n_targets", "gives ",
                           forest.targets, " targets");
  PFRT_ASSIGN(forest.post, post_transform_of(node));
  Positions positions;
  PFRT_TRY(read_nodes(node, forest, positions));
  PFRT_TRY(read_votes(node, classifier ? "class" : "target", positions, forest));
  PFRT_TRY(read_base(node, classifier, forest));
  PFRT_TRY(check_acyclic(forest, "nodes_truenodeids"));
  return forest;
}

// ------------------------------------------------------------------ version 5
// The sets of the BRANCH_MEMBER nodes in the order of the nodes, each ended by a NaN.
Status read_sets(const SnapshotNode& node, Forest& forest) {
  PFRT_ASSIGN(const Numbers members, read_numbers(node, "membership_values"));
  forest.wide |= members.wide;
  size_t at = 0;
  for (ForestNode& to : forest.nodes) {
    if (to.mode != TreeMode::kMember) continue;
    if (at >= members.values.size())
      return attribute_error("membership_values", "has ", forest.sets.size(),
                             " sets, which is less than there are BRANCH_MEMBER nodes");
    std::vector<double> set;
    for (; at < members.values.size() && !std::isnan(members.values[at]); ++at)
      set.push_back(members.values[at]);
    ++at;  // the NaN
    std::sort(set.begin(), set.end());
    to.set = static_cast<uint32_t>(forest.sets.size());
    forest.sets.push_back(std::move(set));
  }
  if (at < members.values.size())
    return attribute_error("membership_values", "has more sets than the ", forest.sets.size(),
                           " BRANCH_MEMBER nodes");
  return {};
}

Result<Forest> read_new(const SnapshotNode& node) {
  Forest forest;
  forest.targets = node.attr_int("n_targets", 0);
  if (forest.targets < 1 || forest.targets > INT32_MAX)
    return attribute_error("n_targets", "is ", forest.targets);
  const int64_t aggregate = node.attr_int("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3)
    return attribute_error("aggregate_function", "is ", aggregate);
  forest.aggregate = static_cast<Aggregate>(aggregate);
  PFRT_ASSIGN(forest.post, post_transform_of(node));
  PFRT_ASSIGN(const Numbers modes, read_numbers(node, "nodes_modes"));
  const size_t n = modes.values.size();
  if (n == 0 || n > kMostNodes) return attribute_error("nodes_modes", "has ", n, " elements");
  PFRT_ASSIGN(const auto features, read_ints(node, "nodes_featureids", n));
  PFRT_ASSIGN(const auto yes, read_ints(node, "nodes_truenodeids", n));
  PFRT_ASSIGN(const auto no, read_ints(node, "nodes_falsenodeids", n));
  PFRT_ASSIGN(const auto yes_leaf, read_ints(node, "nodes_trueleafs", n));
  PFRT_ASSIGN(const auto no_leaf, read_ints(node, "nodes_falseleafs", n));
  PFRT_ASSIGN(const Numbers splits, read_numbers(node, "nodes_splits"));
  PFRT_TRY(need_count("nodes_splits", splits.values.size(), n));
  PFRT_ASSIGN(const Numbers hitrates, read_numbers(node, "nodes_hitrates"));
  if (!hitrates.values.empty()) PFRT_TRY(need_count("nodes_hitrates", hitrates.values.size(), n));
  std::span<const int64_t> missing;
  if (!node.attr_ints("nodes_missing_value_tracks_true").empty()) {
    PFRT_ASSIGN(missing, read_ints(node, "nodes_missing_value_tracks_true", n));
  }
  const auto targets = node.attr_ints("leaf_targetids");
  const size_t leaves = targets.size();
  if (leaves == 0 || leaves > kMostNodes)
    return attribute_error("leaf_targetids", "has ", leaves, " elements");
  PFRT_ASSIGN(const Numbers weights, read_numbers(node, "leaf_weights"));
  PFRT_TRY(need_count("leaf_weights", weights.values.size(), leaves));
  forest.wide = splits.wide || weights.wide;

  const auto branch = [&](std::string_view name, int64_t to, bool leaf) -> Result<uint32_t> {
    const size_t limit = leaf ? leaves : n;
    if (to < 0 || static_cast<uint64_t>(to) >= limit)
      return attribute_error(name, "names ", leaf ? "leaf " : "node ", to, ", of which there are ",
                             limit);
    return static_cast<uint32_t>(leaf ? n + static_cast<size_t>(to) : static_cast<size_t>(to));
  };
  forest.nodes.resize(n + leaves);
  for (size_t i = 0; i < n; ++i) {
    ForestNode& to = forest.nodes[i];
    const double mode = modes.values[i];
    if (!(mode >= 0 && mode < static_cast<double>(TreeMode::kLeaf)))
      return attribute_error("nodes_modes", "has ", mode, " at ", i, ", expected 0 to 6");
    to.mode = static_cast<TreeMode>(static_cast<uint8_t>(mode));
    to.missing_is_true = !missing.empty() && missing[i] != 0;
    to.value = splits.values[i];
    PFRT_ASSIGN(to.feature, feature_of("nodes_featureids", features[i]));
    PFRT_ASSIGN(to.yes, branch("nodes_truenodeids", yes[i], yes_leaf[i] != 0));
    PFRT_ASSIGN(to.no, branch("nodes_falsenodeids", no[i], no_leaf[i] != 0));
  }
  forest.vote_begin.assign(n, 0);
  for (size_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= forest.targets)
      return attribute_error("leaf_targetids", "has ", targets[i], ", expected 0 to ",
                             forest.targets - 1);
    forest.nodes[n + i].mode = TreeMode::kLeaf;
    forest.vote_begin.push_back(static_cast<uint32_t>(i));
    forest.votes.push_back({static_cast<uint32_t>(targets[i]), weights.values[i]});
  }
  forest.vote_begin.push_back(static_cast<uint32_t>(leaves));
  for (int64_t root : node.attr_ints("tree_roots")) {
    PFRT_ASSIGN(const uint32_t at, branch("tree_roots", root, false));
    forest.roots.push_back(at);
  }
  if (forest.roots.empty()) return attribute_error("tree_roots", "is absent or empty");
  PFRT_TRY(read_sets(node, forest));
  PFRT_TRY(check_acyclic(forest, "nodes_truenodeids"));
  return forest;
}

}  // namespace

Result<Forest> read_forest(const SnapshotNode& node) {
  if (node.op() == "TreeEnsemble") return read_new(node);
  return read_old(node, node.op() == "TreeEnsembleClassifier");
}

}  // namespace pfrt::cpu
