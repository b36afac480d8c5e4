// SPDX-License-Identifier: Apache-2.0
//
// Random trees, support vectors and encoders, compared with plain walks and sums. Thresholds, data
// and weights are multiples of powers of two, so sums are exact in any order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::string> kModes = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
constexpr int64_t kMember = 6;

struct Tree {
  int64_t mode = -1;  // -1: a leaf
  int64_t feature = 0;
  double value = 0;
  std::vector<double> members;
  bool missing = false;
  std::unique_ptr<Tree> yes, no;
  std::vector<std::pair<int64_t, double>> votes;
  int64_t id = 0;  // in versions 1 and 3
};

double halves(Random& random, int64_t most) {
  return static_cast<double>(random.from_to(-most, most)) / 2;
}

struct TreeShape {
  int64_t features, targets, modes;
  bool missing, votes_for_all;
  bool positive = false;
};

std::unique_ptr<Tree> grow(Random& random, const TreeShape& shape, int64_t depth, int64_t target) {
  auto tree = std::make_unique<Tree>();
  if (depth == 0) {
    for (int64_t t = 0; t < shape.targets; ++t)
      if (shape.votes_for_all || t == target)
        tree->votes.emplace_back(
            t, static_cast<double>(random.from_to(shape.positive ? 0 : -64, 64)) / 64);
    return tree;
  }
  tree->mode = random.below(shape.modes);
  tree->feature = random.below(shape.features);
  tree->value = halves(random, 6);
  tree->missing = shape.missing && random.once_in(2);
  for (int64_t i = random.below(4); tree->mode == kMember && i >= 0; --i)
    tree->members.push_back(halves(random, 6));
  for (auto* child : {&tree->yes, &tree->no})
    *child = grow(random, shape, random.once_in(5) ? 0 : depth - 1, target);
  return tree;
}

bool holds(const Tree& tree, double x) {
  const double v = tree.value;
  const auto& m = tree.members;
  const bool answers[] = {x <= v, x<v, x >= v, x> v, x == v, x != v,
                          std::find(m.begin(), m.end(), x) != m.end()};
  return answers[tree.mode] || (tree.missing && std::isnan(x));
}

const Tree& leaf_of(const Tree& tree, const double* x) {
  if (tree.mode < 0) return tree;
  return leaf_of(holds(tree, x[tree.feature]) ? *tree.yes : *tree.no, x);
}

using Trees = std::vector<std::unique_ptr<Tree>>;

Trees grow_all(Random& random, const TreeShape& shape, int64_t size) {
  Trees trees;
  const int64_t count = size >= kLarge ? 150 : random.from_to(1, random.once_in(6) ? 140 : 9);
  for (int64_t i = 0; i < count; ++i)
    trees.push_back(grow(random, shape, random.from_to(1, 4), i % shape.targets));
  return trees;
}

Values scores_of(const Trees& trees, const Data& x, int64_t columns, int64_t targets, int64_t how) {
  Values out;
  for (size_t at = 0; at < x.values.size(); at += static_cast<size_t>(columns)) {
    for (int64_t t = 0; t < targets; ++t) {
      Values found;
      for (const auto& tree : trees)
        for (const auto& [target, weight] : leaf_of(*tree, &x.values[at]).votes)
          if (target == t) found.push_back(weight);
      double score = 0;
      for (double w : found) score += w;
      if (how == 0) score /= static_cast<double>(trees.size());
      if (how == 2 && !found.empty()) score = *std::min_element(found.begin(), found.end());
      if (how == 3 && !found.empty()) score = *std::max_element(found.begin(), found.end());
      out.push_back(score);
    }
  }
  return out;
}

// ------------------------------------------------------------------ attributes
void collect(const Tree& tree, std::vector<const Tree*>& out) {
  out.push_back(&tree);
  if (tree.mode < 0) return;
  collect(*tree.yes, out);
  collect(*tree.no, out);
}

// Writes the attributes of versions 1 and 3: ids are in any order, the root comes first.
void add_old(Random& random, Trees& trees, const std::string& stem, std::vector<Attr>& attrs) {
  Dims tree_ids, ids, features, yes, no, missing, vote_trees, vote_nodes, vote_targets;
  std::vector<std::string> modes;
  std::vector<float> values, weights;
  for (size_t t = 0; t < trees.size(); ++t) {
    std::vector<const Tree*> nodes;
    collect(*trees[t], nodes);
    const int64_t tree_id = static_cast<int64_t>(t) * 3 - 7, first = random.from_to(-5, 1000000000);
    for (size_t i = 0; i < nodes.size(); ++i)
      const_cast<Tree*>(nodes[i])->id = first + static_cast<int64_t>((i * 7) % (7 * nodes.size()));
    for (size_t i = nodes.size() - 1; i > 1; --i)
      std::swap(nodes[i], nodes[static_cast<size_t>(random.from_to(1, static_cast<int64_t>(i)))]);
    for (const Tree* node : nodes) {
      const bool leaf = node->mode < 0;
      tree_ids.push_back(tree_id);
      ids.push_back(node->id);
      features.push_back(node->feature);
      modes.push_back(leaf ? "LEAF" : kModes[static_cast<size_t>(node->mode)]);
      values.push_back(static_cast<float>(node->value));
      yes.push_back(leaf ? 0 : node->yes->id);
      no.push_back(leaf ? -1 : node->no->id);
      missing.push_back(node->missing);
      for (const auto& [target, weight] : node->votes) {
        vote_trees.push_back(tree_id);
        vote_nodes.push_back(node->id);
        vote_targets.push_back(target);
        weights.push_back(static_cast<float>(weight));
      }
    }
  }
  attrs.insert(attrs.end(), {{"nodes_treeids", tree_ids},
                             {"nodes_nodeids", ids},
                             {"nodes_featureids", features},
                             {"nodes_modes", modes},
                             {"nodes_values", values},
                             {"nodes_truenodeids", yes},
                             {"nodes_falsenodeids", no},
                             {"nodes_missing_value_tracks_true", missing},
                             {stem + "_treeids", vote_trees},
                             {stem + "_nodeids", vote_nodes},
                             {stem + "_ids", vote_targets},
                             {stem + "_weights", weights}});
}

Data list(pfrt_dtype dtype, Values values) {
  const auto n = static_cast<int64_t>(values.size());
  return {dtype, {n}, std::move(values)};
}

// Writes the attributes of version 5, which lists branches and leaves separately.
void add_new(const Trees& trees, pfrt_dtype dtype, std::vector<Attr>& attrs) {
  std::vector<const Tree*> all, branches, leaves;
  Dims roots, features, yes, no, yes_leaf, no_leaf, missing, targets;
  Values modes, values, weights, members;
  for (const auto& tree : trees) collect(*tree, all);
  for (const Tree* node : all) (node->mode < 0 ? leaves : branches).push_back(node);
  const auto index = [](const std::vector<const Tree*>& nodes, const Tree* node) {
    return std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
  };
  for (const auto& tree : trees) roots.push_back(index(branches, tree.get()));
  for (const Tree* node : branches) {
    features.push_back(node->feature);
    modes.push_back(static_cast<double>(node->mode));
    values.push_back(node->value);
    missing.push_back(node->missing);
    yes_leaf.push_back(node->yes->mode < 0);
    no_leaf.push_back(node->no->mode < 0);
    yes.push_back(index(yes_leaf.back() ? leaves : branches, node->yes.get()));
    no.push_back(index(no_leaf.back() ? leaves : branches, node->no.get()));
    members.insert(members.end(), node->members.begin(), node->members.end());
    if (node->mode == kMember) members.push_back(kNan);
  }
  for (const Tree* leaf : leaves) {
    targets.push_back(leaf->votes[0].first);
    weights.push_back(leaf->votes[0].second);
  }
  attrs.insert(attrs.end(), {{"tree_roots", roots},
                             {"nodes_featureids", features},
                             {"nodes_modes", list(PFRT_DTYPE_UINT8, modes)},
                             {"nodes_splits", list(dtype, values)},
                             {"nodes_truenodeids", yes},
                             {"nodes_falsenodeids", no},
                             {"nodes_trueleafs", yes_leaf},
                             {"nodes_falseleafs", no_leaf},
                             {"nodes_missing_value_tracks_true", missing},
                             {"leaf_targetids", targets},
                             {"leaf_weights", list(dtype, weights)},
                             {"membership_values", list(dtype, members)}});
}

// ------------------------------------------------------------------ cases
// Returns a model's features; now and then a vector, or no rows.
Data features_of(Random& random, pfrt_dtype dtype, int64_t columns, int64_t size) {
  const int64_t rows = size >= kLarge      ? 300
                       : random.once_in(9) ? 0
                                           : random.from_to(1, std::max<int64_t>(2, size / 10));
  Data x{dtype, {rows, columns}, {}};
  if (random.once_in(8)) x.dims = {columns};
  for (int64_t i = 0; i < count(x.dims); ++i)
    x.values.push_back(is_float(dtype) ? random.once_in(7) ? kNan : halves(random, 6)
                                       : static_cast<double>(random.from_to(-3, 3)));
  return x;
}

int64_t rows_in(const Data& x) { return x.dims.size() == 1 ? 1 : x.dims[0]; }

void transform(const std::string& post, double* s, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (post == "LOGISTIC") s[i] = 1 / (1 + std::exp(-s[i]));
    if (post == "SOFTMAX") sum += s[i] = std::exp(s[i]);
  }
  for (int64_t i = 0; i < n && post == "SOFTMAX"; ++i) s[i] /= sum;
}

Case tree_regressor(Random& random, pfrt_dtype dtype, int64_t size, bool newest) {
  TreeShape shape{random.from_to(1, 5), random.from_to(1, 4),
                  random.once_in(2) ? 1
                  : newest          ? 7
                                    : 6,
                  random.once_in(2), !newest && random.once_in(2)};
  Trees trees = grow_all(random, shape, size);
  const int64_t how = random.below(4);
  const std::string words[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string posts[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  const int64_t post = random.below(3);
  Case c;
  Data x = features_of(random, dtype, shape.features, size);
  Values y = scores_of(trees, x, shape.features, shape.targets, how);
  c.attrs = {{"n_targets", shape.targets}};
  if (newest) {
    c.attrs.push_back({"aggregate_function", how});
    c.attrs.push_back({"post_transform", post});
    add_new(trees, dtype, c.attrs);
  } else {
    c.attrs.push_back({"aggregate_function", words[how]});
    c.attrs.push_back({"post_transform", posts[post]});
    add_old(random, trees, "target", c.attrs);
    if (random.once_in(2)) {
      std::vector<float> base;
      for (int64_t t = 0; t < shape.targets; ++t)
        base.push_back(static_cast<float>(halves(random, 6)));
      for (size_t i = 0; i < y.size(); ++i)
        y[i] += static_cast<double>(base[i % static_cast<size_t>(shape.targets)]);
      c.attrs.push_back({"base_values", base});
    }
  }
  for (size_t i = 0; i < y.size(); i += static_cast<size_t>(shape.targets))
    transform(posts[post], &y[i], shape.targets);
  c.relative = 8;
  c.absolute = 1e-6;
  c.outputs = {expected(newest ? dtype : pfrt_dtype{PFRT_DTYPE_FLOAT32},
                        {rows_in(x), shape.targets}, std::move(y))};
  c.inputs = {std::move(x)};
  return c;
}

Case tree_classifier(Random& random, pfrt_dtype dtype, int64_t size) {
  const bool binary = random.once_in(3);
  TreeShape shape{random.from_to(1, 5),
                  binary ? 1 : random.from_to(3, 5),
                  random.once_in(2) ? 1 : 6,
                  random.once_in(2),
                  true,
                  random.once_in(2)};
  Trees trees = grow_all(random, shape, size);
  const bool logistic = random.once_in(2);
  Data x = features_of(random, dtype, shape.features, size);
  Values votes = scores_of(trees, x, shape.features, shape.targets, 1), z, y;
  const int64_t n = binary ? 2 : shape.targets;
  Dims labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(10 - 3 * i);
  bool negative = false;
  for (const auto& tree : trees) {
    std::vector<const Tree*> nodes;
    collect(*tree, nodes);
    for (const Tree* node : nodes)
      for (const auto& vote : node->votes) negative = negative || vote.second < 0;
  }
  for (int64_t r = 0; r < rows_in(x); ++r) {
    Values row(votes.begin() + r * shape.targets, votes.begin() + (r + 1) * shape.targets);
    size_t top = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    if (binary) {
      const double s = row[0];
      top = s > (negative ? 0 : 0.5);
      row = {negative || logistic ? -s : 1 - s, s};
    }
    transform(logistic ? "LOGISTIC" : "NONE", row.data(), n);
    y.push_back(static_cast<double>(labels[top]));
    z.insert(z.end(), row.begin(), row.end());
  }
  Case c;
  c.attrs = {{"classlabels_int64s", labels},
             {"post_transform", std::string(logistic ? "LOGISTIC" : "NONE")}};
  add_old(random, trees, "class", c.attrs);
  c.relative = 8;
  c.absolute = 1e-6;
  c.outputs = {expected(PFRT_DTYPE_INT64, {rows_in(x)}, std::move(y)),
               expected(PFRT_DTYPE_FLOAT32, {rows_in(x), n}, std::move(z))};
  c.inputs = {std::move(x)};
  return c;
}

std::vector<float> eighths(Random& random, int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(random.from_to(-8, 8)) / 8);
  return out;
}

// Returns the kernel function of row |r| of |x| and vector |v|.
double svm_kernel(const std::string& kind, const Data& x, int64_t r,
                  const std::vector<float>& vectors, int64_t v, int64_t columns) {
  double dot = 0, distance = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double a = x.values[static_cast<size_t>(r * columns + i)];
    const double b = static_cast<double>(vectors[static_cast<size_t>(v * columns + i)]);
    dot += a * b;
    distance += (a - b) * (a - b);
  }
  if (kind == "POLY") return std::pow(0.5 * dot + 0.25, 2);
  if (kind == "RBF") return std::exp(-0.5 * distance);
  return kind == "SIGMOID" ? std::tanh(0.5 * dot + 0.25) : dot;
}

Case svm(Random& random, pfrt_dtype dtype, int64_t size, bool classifier) {
  const std::string kinds[] = {"LINEAR", "POLY", "RBF", "SIGMOID"}, kind = kinds[random.below(4)];
  const int64_t columns = random.from_to(1, 20), classes = classifier ? random.from_to(2, 5) : 1;
  Dims per_class, begin{0}, labels;
  for (int64_t i = 0; i < classes; ++i) {
    per_class.push_back(random.from_to(1, 4));
    begin.push_back(begin.back() + per_class.back());
    labels.push_back(100 - i);
  }
  const int64_t vectors = begin.back(), pairs = classes * (classes - 1) / 2;
  Data x = features_of(random, dtype, columns, size);
  for (double& v : x.values) v = std::isnan(v) ? 1 : v;
  const std::vector<float> support = eighths(random, vectors * columns);
  const std::vector<float> weights = eighths(random, std::max<int64_t>(1, classes - 1) * vectors);
  const std::vector<float> rho = eighths(random, std::max<int64_t>(1, pairs));
  Values y, z;
  for (int64_t r = 0; r < rows_in(x); ++r) {
    Values k;
    for (int64_t v = 0; v < vectors; ++v) k.push_back(svm_kernel(kind, x, r, support, v, columns));
    const auto sum = [&](int64_t row, int64_t of) {
      double s = 0;
      for (int64_t v = begin[static_cast<size_t>(of)]; v < begin[static_cast<size_t>(of + 1)]; ++v)
        s += static_cast<double>(weights[static_cast<size_t>(row * vectors + v)]) *
             k[static_cast<size_t>(v)];
      return s;
    };
    if (!classifier) {
      y.push_back(sum(0, 0) + static_cast<double>(rho[0]));
      continue;
    }
    std::vector<int> votes(static_cast<size_t>(classes));
    size_t pair = 0;
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j) {
        const double s = sum(j - 1, i) + sum(i, j) + static_cast<double>(rho[pair++]);
        ++votes[static_cast<size_t>(s > 0 ? i : j)];
        if (classes == 2) z.push_back(-s);
        z.push_back(s);
      }
    }
    const auto top = std::max_element(votes.begin(), votes.end()) - votes.begin();
    y.push_back(static_cast<double>(labels[static_cast<size_t>(top)]));
  }
  Case c;
  c.attrs = {{"kernel_type", kind},
             {"kernel_params", std::vector<float>{0.5f, 0.25f, 2.0f}},
             {"support_vectors", support},
             {"coefficients", weights},
             {"rho", rho},
             {"post_transform", std::string("NONE")}};
  c.relative = 64;
  c.absolute = 1e-3;
  if (classifier) {
    c.attrs.push_back({"classlabels_ints", labels});
    c.attrs.push_back({"vectors_per_class", per_class});
    c.outputs = {
        expected(PFRT_DTYPE_INT64, {rows_in(x)}, std::move(y)),
        expected(PFRT_DTYPE_FLOAT32, {rows_in(x), classes == 2 ? 2 : pairs}, std::move(z))};
  } else {
    c.attrs.push_back({"n_supports", vectors});
    c.outputs = {expected(PFRT_DTYPE_FLOAT32, {rows_in(x), 1}, std::move(y))};
  }
  c.inputs = {std::move(x)};
  return c;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Case label_encoder(Random& random, pfrt_dtype dtype, int64_t size) {
  const pfrt_dtype targets[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_INT64,
                                PFRT_DTYPE_INT32, PFRT_DTYPE_INT16};
  const pfrt_dtype to = targets[random.below(5)];
  const auto key = [&] {
    return is_float(dtype) && random.once_in(8) ? kNan : static_cast<double>(random.from_to(-9, 9));
  };
  Values keys, values;
  for (int64_t i = random.from_to(0, 12); i > 0; --i) {
    keys.push_back(key());
    values.push_back(static_cast<double>(random.from_to(-99, 99)));
  }
  Data x{dtype, random.dims(static_cast<size_t>(random.below(3)), size), {}};
  Values y;
  for (int64_t i = 0; i < count(x.dims); ++i) {
    x.values.push_back(key());
    y.push_back(-7);
    for (size_t k = 0; k < keys.size(); ++k)
      if (same(keys[k], x.values.back())) y.back() = values[k];
  }
  Case c;
  c.attrs = {{"keys_tensor", list(dtype, keys)},
             {"values_tensor", list(to, values)},
             {"default_tensor", list(to, {-7})}};
  c.outputs = {expected(to, x.dims, std::move(y))};
  c.inputs = {std::move(x)};
  return c;
}

Case one_hot_encoder(Random& random, pfrt_dtype dtype, int64_t size) {
  Dims cats;
  for (int64_t i = random.from_to(1, 9); i > 0; --i) cats.push_back(random.from_to(-4, 4));
  Data x = random.data(dtype, random.dims(static_cast<size_t>(random.below(3)), size), -5, 5);
  Values y;
  for (double v : x.values) {
    size_t at = cats.size();
    for (size_t k = 0; k < cats.size(); ++k)
      if (static_cast<double>(cats[k]) == std::trunc(v)) at = k;
    for (size_t k = 0; k < cats.size(); ++k) y.push_back(k == at);
  }
  Case c;
  c.attrs = {{"cats_int64s", cats}};
  Dims dims = x.dims;
  dims.push_back(static_cast<int64_t>(cats.size()));
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, dims, std::move(y))};
  c.inputs = {std::move(x)};
  return c;
}

}  // namespace

const Generators& ml_cases() {
  static const Generators generators = {
      {"TreeEnsemble",
       [](Random& r, pfrt_dtype d, int64_t n) { return tree_regressor(r, d, n, true); }},
      {"TreeEnsembleRegressor",
       [](Random& r, pfrt_dtype d, int64_t n) { return tree_regressor(r, d, n, false); }},
      {"TreeEnsembleClassifier", tree_classifier},
      {"SVMClassifier", [](Random& r, pfrt_dtype d, int64_t n) { return svm(r, d, n, true); }},
      {"SVMRegressor", [](Random& r, pfrt_dtype d, int64_t n) { return svm(r, d, n, false); }},
      {"LabelEncoder", label_encoder},
      {"OneHotEncoder", one_hot_encoder},
  };
  return generators;
}

}  // namespace pfrt::test
