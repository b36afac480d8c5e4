// SPDX-License-Identifier: Apache-2.0
//
// The kernel of tree ensembles. Rows are taken in blocks. If all comparisons are <=, eight rows of
// a block go through a tree at once, and each row that is left over goes through eight trees at
// once. Otherwise a single row goes through a single tree at a time.
//
// Votes are added up in groups of trees, and then the groups in their order. This is so whether
// threads divide the blocks of rows or the groups of trees: a row's result depends on that row
// alone.
#include <algorithm>
#include <cstring>
#include <memory>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/ml/trees.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kGroup = 64;   // trees
constexpr int64_t kAbreast = 8;  // rows, or trees, at once
// Limits of a block of rows.
constexpr int64_t kMostRows = 64;
constexpr int64_t kMostScores = 1 << 14;
// With fewer blocks of rows than this, threads divide the groups of trees, if the scores of all
// groups are at most so many.
constexpr int64_t kFewBlocks = 8;
constexpr int64_t kMostPartials = 1 << 20;

// A model ready to run. Either |narrow| or |wide| is filled, by the type it computes in.
struct Trees {
  Forest forest;  // its nodes and votes are dropped when they are packed
  PackedForest<float> narrow;
  PackedForest<double> wide;
  int64_t tree_count = 0;
  bool classifier = false;
  // The only class that leaves vote for, in a classifier with two labels; else -1.
  int64_t only_class = -1;
  bool all_positive = true;  // no vote is negative

  template <typename T>
  const PackedForest<T>& packed() const {
    if constexpr (std::is_same_v<T, float>)
      return narrow;
    else
      return wide;
  }
};

// ------------------------------------------------------------------ steps
template <typename T>
bool takes_first(const PackedForest<T>& f, const PackedNode<T>& node, T x) {
  bool first = false;
  if (node.kind == kOrdered) {
    first = x <= node.threshold;
  } else if (node.kind == kEqual) {
    first = x == node.threshold;
  } else {
    uint32_t set;
    std::memcpy(&set, &node.threshold, sizeof set);
    const T* values = f.set_values.data();
    first =
        std::binary_search(values + f.set_begin[set], values + f.set_begin[set + 1], x) && x == x;
  }
  return first || (node.missing_first && x != x);
}

template <typename T>
uint32_t walk(const PackedForest<T>& f, uint32_t at, const T* x) {
  for (;;) {
    const PackedNode<T>& node = f.nodes[at];
    if (node.kind == kLeafNode) return at;
    at = node.child + !takes_first(f, node, x[node.feature]);
  }
}

// Moves |at| from roots to leaves, for kAbreast rows that are |stride| elements apart, or for one
// row in kAbreast trees (|stride| 0). All comparisons have to be <=, and missing values have to go
// to the second child. A step from a leaf leads to the same leaf, so the loop ends when none moves.
template <typename T>
void walk_abreast(const PackedForest<T>& f, const T* x, int64_t stride, uint32_t* at) {
  const PackedNode<T>* nodes = f.nodes.data();
  uint32_t moved;
  do {
    moved = 0;
    for (int64_t r = 0; r < kAbreast; ++r) {
      const PackedNode<T>& node = nodes[at[r]];
      const uint32_t next = node.child + !(x[r * stride + node.feature] <= node.threshold);
      moved |= next ^ at[r];
      at[r] = next;
    }
  } while (moved != 0);
}

// ------------------------------------------------------------------ sums
// Scores of some rows, and which of them have a vote.
template <typename T>
struct Scores {
  T* value;
  uint8_t* voted;
};

template <Aggregate kHow, typename T>
void add(T* value, uint8_t* voted, T with) {
  if constexpr (kHow == Aggregate::kSum)
    *value += with;
  else if (!*voted || (kHow == Aggregate::kMin ? with < *value : with > *value))
    *value = with;
  *voted = 1;
}

template <Aggregate kHow, typename T>
void add_leaf(const PackedForest<T>& f, uint32_t at, T* value, uint8_t* voted) {
  const uint32_t leaf = f.leaf[at];
  for (uint32_t v = f.vote_begin[leaf]; v < f.vote_begin[leaf + 1]; ++v) {
    const uint32_t target = f.vote_target[v];
    add<kHow>(value + target, voted + target, f.vote_weight[v]);
  }
}

// Adds the votes of trees [begin, end) for one row, with the sums in registers.
template <typename T>
void add_dense(const PackedForest<T>& f, int64_t begin, int64_t end, const T* x, int64_t targets,
               T* value) {
  constexpr int64_t kDense = PackedForest<T>::kDense;
  T sums[kDense] = {};
  std::copy_n(value, targets, sums);
  for (int64_t t = begin; t < end; t += kAbreast) {
    const int64_t trees = std::min(kAbreast, end - t);
    uint32_t leaves[kAbreast];
    // If fewer trees are left, the last one fills the other places. It is added once.
    for (int64_t i = 0; i < kAbreast; ++i)
      leaves[i] = f.roots[static_cast<size_t>(t + std::min(i, trees - 1))];
    walk_abreast(f, x, 0, leaves);
    for (int64_t i = 0; i < trees; ++i) {
      const T* const weights = f.dense.data() + leaves[i] * size_t{kDense};
      for (int64_t j = 0; j < kDense; ++j) sums[j] += weights[j];
    }
  }
  std::copy_n(sums, targets, value);
}

template <Aggregate kHow, typename T>
void add_trees(const PackedForest<T>& f, int64_t begin, int64_t end, const T* x, int64_t rows,
               int64_t stride, int64_t targets, Scores<T> to) {
  const bool abreast = f.only_ordered && f.only_missing_second;
  const int64_t together = abreast ? rows / kAbreast * kAbreast : 0;
  const auto add_to = [&](int64_t r, uint32_t leaf) {
    add_leaf<kHow>(f, leaf, to.value + r * targets, to.voted + r * targets);
  };
  uint32_t leaves[kAbreast];
  for (int64_t t = begin; together > 0 && t < end; ++t)
    for (int64_t r = 0; r < together; r += kAbreast) {
      std::fill_n(leaves, kAbreast, f.roots[static_cast<size_t>(t)]);
      walk_abreast(f, x + r * stride, stride, leaves);
      for (int64_t i = 0; i < kAbreast; ++i) add_to(r + i, leaves[i]);
    }
  for (int64_t r = together; r < rows; ++r) {
    const T* const row = x + r * stride;
    if (kHow == Aggregate::kSum && abreast && !f.dense.empty()) {
      add_dense(f, begin, end, row, targets, to.value + r * targets);
      std::fill_n(to.voted + r * targets, begin < end ? targets : 0, uint8_t{1});
      continue;
    }
    int64_t t = begin;
    for (; abreast && t + kAbreast <= end; t += kAbreast) {
      std::copy_n(f.roots.data() + t, kAbreast, leaves);
      walk_abreast(f, row, 0, leaves);
      for (const uint32_t leaf : leaves) add_to(r, leaf);
    }
    for (; t < end; ++t) add_to(r, walk(f, f.roots[static_cast<size_t>(t)], row));
  }
}

template <Aggregate kHow, typename T>
void merge(Scores<T> to, Scores<T> from, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (from.voted[i]) add<kHow>(to.value + i, to.voted + i, from.value[i]);
}

// ------------------------------------------------------------------ results

// The label of a row whose votes add up to |s|. Writes a score for each label to |z|. If all votes
// of a model with two labels are for one class, the scores follow ONNX Runtime's conventions, which
// exporters rely on.
template <typename T>
int64_t classify(const Trees& trees, T* s, uint8_t* voted, T* z) {
  const Forest& f = trees.forest;
  const auto n = static_cast<size_t>(f.targets);
  const auto base = [&](size_t i) { return i < f.base.size() ? static_cast<T>(f.base[i]) : T(0); };
  const T enough = trees.all_positive ? T(0.5) : T(0);
  if (n == 1) {
    *z = s[0] + base(0);
    const bool positive = *z > 0;
    if (f.post == PostTransform::kProbit) transform_scores(f.post, z, 1);
    return positive ? 1 : 0;
  }
  if (trees.only_class == 0 && f.base.size() <= 1) {
    const T score = s[0] + base(0);
    second_class(f.post, !trees.all_positive, score, z);
    return f.labels[score > enough];
  }
  const bool one_sided = trees.only_class >= 0;
  // A single base value belongs to the second class if all votes are for it.
  const bool shifted = one_sided && trees.only_class == 1 && f.base.size() == 1;
  for (size_t i = 0; i < n; ++i) {
    z[i] = s[i] + (shifted ? (i == 1 ? base(0) : T(0)) : base(i));
    voted[i] |= n > 2 && i < f.base.size();
  }
  size_t top = 0;
  if (one_sided) {
    top = z[trees.only_class] > enough;
  } else {
    // With more than two classes, one without a vote cannot win, unless none has a vote.
    bool found = false;
    for (size_t i = 0; i < n; ++i) {
      if (!voted[i] && n > 2) continue;
      if (!found || z[i] > z[top]) top = i;
      found = true;
    }
  }
  transform_scores(f.post, z, f.targets);
  return f.labels[top];
}

template <typename T>
void regress(const Trees& trees, T* s) {
  const Forest& f = trees.forest;
  for (int64_t i = 0; i < f.targets; ++i) {
    if (f.aggregate == Aggregate::kAverage) s[i] /= static_cast<T>(trees.tree_count);
    if (!f.base.empty()) s[i] += static_cast<T>(f.base[static_cast<size_t>(i)]);
  }
  transform_scores(f.post, s, f.targets);
}

// ------------------------------------------------------------------ the kernel
template <typename T>
class TreeKernel {
 public:
  TreeKernel(std::shared_ptr<const Trees> trees, const SnapshotNode& node, Rows rows)
      : trees_(std::move(trees)),
        rows_(rows),
        from_(node.input_dtype(0)),
        to_(node.output_dtype(trees_->classifier ? 1 : 0)),
        has_labels_(trees_->classifier && node.has_output(0)),
        has_scores_(trees_->classifier ? node.has_output(1) : node.has_output(0)) {
    const int64_t targets = trees_->forest.targets;
    block_ =
        std::clamp<int64_t>(kMostScores / targets, 1, std::clamp<int64_t>(rows.rows, 1, kMostRows));
    if (from_ != kDtypeOf<T>) copied_ = rows.columns;
    blocks_ = (rows.rows + block_ - 1) / block_;
    groups_ = (trees_->tree_count + kGroup - 1) / kGroup;
    groups_in_parallel_ =
        groups_ > 1 && blocks_ < kFewBlocks && rows.rows * targets <= kMostPartials / groups_;
  }

  uint64_t scratch_bytes() const {
    const auto scores = static_cast<uint64_t>(block_ * trees_->forest.targets);
    const auto data = static_cast<uint64_t>(block_) * static_cast<uint64_t>(copied_);
    return (data + 3 * scores) * sizeof(T) + 2 * scores;
  }

  pfrt_code run(const Run& run) const {
    if (groups_in_parallel_) {
      this->run_groups(run);
    } else {
      run.parallel(blocks_, [&](int64_t b, uint32_t worker) {
        const RowBlock block = this->row_block(run, b, worker);
        std::fill(block.total.value, block.total.value + block.scores, T(0));
        std::fill(block.total.voted, block.total.voted + block.scores, uint8_t{0});
        for (int64_t g = 0; g < groups_ && !run.stopped(); ++g) {
          this->add_group(g, block, block.partial);
          this->merge_into(block.total, block.partial, block.scores);
        }
        this->finish(run, b, block);
      });
    }
    return run.stop();
  }

 private:
  struct RowBlock {
    int64_t rows, scores;
    const T* x;
    Scores<T> total, partial;
    T* z;
  };

  RowBlock row_block(const Run& run, int64_t b, uint32_t worker) const {
    RowBlock block{};
    block.rows = std::min(block_, rows_.rows - b * block_);
    block.scores = block.rows * trees_->forest.targets;
    const int64_t scores = block_ * trees_->forest.targets;
    T* memory = run.scratch<T>(worker);
    block.x = read_block(from_, run.input(0), b * block_ * rows_.columns,
                         block.rows * rows_.columns, memory);
    memory += block_ * copied_;
    auto* flags = reinterpret_cast<uint8_t*>(memory + 3 * scores);
    block.total = {memory, flags};
    block.partial = {memory + scores, flags + scores};
    block.z = memory + 2 * scores;
    return block;
  }

  void add_group(int64_t g, const RowBlock& block, Scores<T> to) const {
    std::fill(to.value, to.value + block.scores, T(0));
    std::fill(to.voted, to.voted + block.scores, uint8_t{0});
    const auto& f = trees_->packed<T>();
    const int64_t begin = g * kGroup, end = std::min(trees_->tree_count, begin + kGroup);
    const auto with = [&](auto how) {
      add_trees<how.value>(f, begin, end, block.x, block.rows, rows_.columns,
                           trees_->forest.targets, to);
    };
    with_aggregate(with);
  }

  void merge_into(Scores<T> to, Scores<T> from, int64_t n) const {
    with_aggregate([&](auto how) { merge<how.value>(to, from, n); });
  }

  template <typename Fn>
  void with_aggregate(Fn&& fn) const {
    switch (trees_->forest.aggregate) {
      case Aggregate::kMin:
        return fn(std::integral_constant<Aggregate, Aggregate::kMin>());
      case Aggregate::kMax:
        return fn(std::integral_constant<Aggregate, Aggregate::kMax>());
      default:
        return fn(std::integral_constant<Aggregate, Aggregate::kSum>());
    }
  }

  // First adds up each group of each block on its own, in parallel; then, for each block, the
  // groups in their order.
  void run_groups(const Run& run) const {
    constexpr int64_t kNear = 128;  // so few scores are kept on the stack
    const int64_t targets = trees_->forest.targets, all = rows_.rows * targets;
    T near[kNear];
    uint8_t near_flags[kNear];
    std::unique_ptr<T[]> values;
    std::unique_ptr<uint8_t[]> voted;
    if (groups_ * all > kNear) {
      values = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(groups_ * all));
      voted = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(groups_ * all));
    }
    const auto scores = [&](int64_t g, int64_t b) {
      const int64_t at = g * all + b * block_ * targets;
      return values ? Scores<T>{values.get() + at, voted.get() + at}
                    : Scores<T>{near + at, near_flags + at};
    };
    run.parallel(groups_ * blocks_, [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t g = i / blocks_, b = i % blocks_;
      this->add_group(g, this->row_block(run, b, worker), scores(g, b));
    });
    run.parallel(blocks_, [&](int64_t b, uint32_t worker) {
      RowBlock block = this->row_block(run, b, worker);
      block.total = scores(0, b);
      for (int64_t g = 1; g < groups_; ++g)
        this->merge_into(block.total, scores(g, b), block.scores);
      this->finish(run, b, block);
    });
  }

  void finish(const Run& run, int64_t b, const RowBlock& block) const {
    const int64_t targets = trees_->forest.targets, first = b * block_;
    for (int64_t r = 0; r < block.rows; ++r) {
      T* s = block.total.value + r * targets;
      if (!trees_->classifier) {
        regress(*trees_, s);
        continue;
      }
      const int64_t label =
          classify(*trees_, s, block.total.voted + r * targets, block.z + r * targets);
      if (has_labels_) run.output<int64_t>(0)[first + r] = label;
    }
    if (!has_scores_) return;
    const T* out = trees_->classifier ? block.z : block.total.value;
    void* to = run.output(trees_->classifier ? 1 : 0);
    store_block(to_, out, block.scores, element(to_, to, first * targets));
  }

  std::shared_ptr<const Trees> trees_;
  Rows rows_;
  pfrt_dtype from_, to_;
  bool has_labels_, has_scores_;
  int64_t block_, blocks_, groups_;
  int64_t copied_ = 0;  // columns of a row that are converted to T first; 0 = they are T
  bool groups_in_parallel_;
};

template <typename T>
Result<Kernel> tree_kernel(std::shared_ptr<const Trees> trees, const SnapshotNode& node,
                           Rows rows) {
  const auto& f = trees->packed<T>();
  if (rows.columns < static_cast<int64_t>(f.features))
    return kernel_error("attribute 'nodes_featureids' names feature ", f.features - 1,
                        ", input 0 has ", rows.columns, " columns");
  Kernel kernel;
  kernel.flops = 10.0 * static_cast<double>(rows.rows) * static_cast<double>(trees->tree_count);
  auto made = std::make_shared<const TreeKernel<T>>(std::move(trees), node, rows);
  kernel.scratch_bytes = made->scratch_bytes();
  kernel.run = [made](const Run& run) { return made->run(run); };
  return kernel;
}

bool computes_in_double(const Trees& trees, const SnapshotNode& node) {
  return trees.forest.wide || node.input_dtype(0) == PFRT_DTYPE_FLOAT64;
}

}  // namespace

Result<Prepared> prepare_trees(const SnapshotNode& node) {
  auto trees = std::make_shared<Trees>();
  PFRT_ASSIGN(trees->forest, read_forest(node));
  Forest& f = trees->forest;
  if (computes_in_double(*trees, node)) {
    PFRT_ASSIGN(trees->wide, pack_forest<double>(f));
  } else {
    PFRT_ASSIGN(trees->narrow, pack_forest<float>(f));
  }
  trees->tree_count = static_cast<int64_t>(f.roots.size());
  trees->classifier = !f.labels.empty();
  bool one_class = !f.votes.empty() && f.targets == 2;
  for (const Vote& vote : f.votes) {
    one_class = one_class && vote.target == f.votes.front().target;
    trees->all_positive = trees->all_positive && vote.weight >= 0;
  }
  if (one_class) trees->only_class = f.votes.front().target;
  f.nodes = {};
  f.votes = {};
  f.vote_begin = {};
  f.sets = {};
  return Prepared(std::move(trees));
}

Result<Kernel> make_trees(const KernelRequest& node) {
  auto trees = std::static_pointer_cast<const Trees>(node.prepared);
  PFRT_ASSIGN(const Rows rows, rows_of(node));
  const int64_t targets = trees->forest.targets;
  if (rows.rows > 0 && targets > INT64_MAX / rows.rows)
    return kernel_error(targets, " targets of ", rows.rows, " rows are too many");
  if (trees->classifier) {
    if (node.has_output(0)) PFRT_TRY(need_output_dims(node, 0, std::vector{rows.rows}));
    if (node.has_output(1)) PFRT_TRY(need_output_dims(node, 1, std::vector{rows.rows, targets}));
  } else {
    PFRT_TRY(need_output_dims(node, 0, std::vector{rows.rows, targets}));
  }
  return computes_in_double(*trees, node) ? tree_kernel<double>(std::move(trees), node, rows)
                                          : tree_kernel<float>(std::move(trees), node, rows);
}

}  // namespace pfrt::cpu
