// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/layout/transpose_region.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/pass/rules/layout/min_cut.h"
#include "core/pass/rules/moves.h"

namespace pfrt {
namespace {

constexpr size_t kLargestRegion = 4096;  // nodes
// Cost of a step besides its bytes, in bytes; and the guess for an unknown dimension.
constexpr int64_t kStep = 16 * 1024, kDim = 16, kLargestCost = int64_t{1} << 40;

class Region {
 public:
  Region(Editor& editor, bool may_insert, const RuleContext& context)
      : editor_(editor), may_insert_(may_insert), context_(context) {}

  Result<bool> run(ValueId seed, const Perm& perm) {
    gather(seed, perm);
    if (nodes_.empty() || !choose()) return false;
    return rebuild();
  }

 private:
  // Gathers values with their permutations, and nodes that can permute with all of theirs.
  void gather(ValueId seed, const Perm& perm) {
    assign(seed, perm);
    for (size_t i = 0; i < queue_.size() && nodes_.size() < kLargestRegion; ++i) {
      const ValueId value = queue_[i];
      for (NodeId user : editor_.users(value)) consider(user, value);
      consider(editor_.graph().at(value).producer, value);
    }
  }

  void assign(ValueId value, const Perm& perm) {
    if (perms_.emplace(value, perm).second) queue_.push_back(value);
  }

  void consider(NodeId id, ValueId through) {
    const Node* node = id == kNoId ? nullptr : editor_.node(id);
    if (!node || nodes_.contains(id) || has_bodies(*node)) return;
    std::optional<Permutations> permutations;
    for (size_t i = 0; i < node->inputs.size() && !permutations; ++i)
      if (node->inputs[i] == through)
        permutations = permutations_of(editor_, *node, false, i, perms_.at(through));
    for (size_t i = 0; i < node->outputs.size() && !permutations; ++i)
      if (node->outputs[i] == through)
        permutations = permutations_of(editor_, *node, true, i, perms_.at(through));
    if (!permutations) return;
    const size_t known = queue_.size();
    if (!place(node->inputs, permutations->inputs) ||
        !place(node->outputs, permutations->outputs)) {
      for (; queue_.size() > known; queue_.pop_back()) perms_.erase(queue_.back());
      return;
    }
    nodes_.emplace(id, std::move(*permutations));
    order_.push_back(id);
  }

  // A transpose from one value of the region to another would be counted twice if it makes the
  // permuted form of the first, or the second from its own. False for such a value, which then
  // stays outside.
  bool stands_apart(ValueId value, const Perm& perm) {
    const auto between = [&](const Node* transpose, const Perm& in, const Perm& out) {
      const Perm* order = permutation(*transpose);
      return order && (*order == inverse(in) || *order == out);
    };
    if (const Node* made = editor_.maker(value, "Transpose"))
      if (const auto in = perms_.find(made->inputs[0]); in != perms_.end())
        if (between(made, in->second, perm)) return false;
    return std::ranges::none_of(editor_.users(value), [&](NodeId id) {
      const Node* user = editor_.node(id);
      if (!permutation(*user)) return false;
      const auto out = perms_.find(user->outputs[0]);
      return out != perms_.end() && between(user, perm, out->second);
    });
  }

  // Whether the node's values can all be permuted as |perms| says.
  bool place(const std::vector<ValueId>& values, const std::vector<std::optional<Perm>>& perms) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto known = perms_.find(values[i]);
      if (known != perms_.end()) {
        if (!perms[i] || *perms[i] != known->second) return false;
      } else if (perms[i]) {
        if (!stands_apart(values[i], *perms[i])) return false;
        assign(values[i], *perms[i]);
      }
    }
    return true;
  }

  // Cost of a transpose of |value|.
  int64_t cost(ValueId value) const {
    const Perm& perm = perms_.at(value);
    if (is_identity(perm)) return 0;
    const Type& type = editor_.type(value);
    if (type.has_shape && moves_only_ones(type.shape, inverse(perm))) return 1;
    const int64_t bits = dtype_known(type.dtype) ? static_cast<int64_t>(dtype_bits(type.dtype)) : 8;
    int64_t bytes = std::max<int64_t>(bits / 8, 1);
    for (const Dim& d : type.shape)
      bytes = std::min(bytes * std::clamp<int64_t>(d.known() ? d.value() : kDim, 1, kLargestCost),
                       kLargestCost / 64);
    return kStep + bytes;
  }
  bool counts(ValueId value) const { return cost(value) > 1; }

  // The transpose that makes |value| from its permuted form.
  const Node* unpermutes(ValueId value) {
    Node* made = editor_.maker(value, "Transpose");
    const std::vector<int64_t>* perm = made ? permutation(*made) : nullptr;
    return perm && *perm == perms_.at(value) ? made : nullptr;
  }
  // Whether |user| makes the permuted form of |value|.
  bool permutes(const Node& user, ValueId value) const {
    const std::vector<int64_t>* perm = permutation(user);
    return perm && *perm == inverse(perms_.at(value));
  }

  // The vertex of a node or another use.
  uint32_t side(NodeId id) const {
    const auto found = vertices_.find(id);
    return found == vertices_.end() ? MinCut::kSource : found->second;
  }

  // Whether it transposes to yet another order, which can start from either form just as well.
  bool is_free(const Node& node, ValueId value) const {
    return permutation(node) && !permutes(node, value) && node.inputs[0] == value;
  }

  bool choose() {
    MinCut cut;
    for (NodeId id : order_) vertices_[id] = cut.vertex();
    for (ValueId value : queue_)
      if (const Node* made_by = editor_.producer(value);
          made_by && permutation(*made_by) && !unpermutes(value))
        vertices_[made_by->id] = cut.vertex();
    for (ValueId value : queue_) {
      const int64_t bytes = cost(value);
      const Node* made_by = editor_.producer(value);
      const uint32_t from = unpermutes(value) ? MinCut::kSink
                            : made_by         ? side(made_by->id)
                                              : MinCut::kSource;
      // Breaking a step that does both nodes' work costs another pass over the value.
      const uint32_t unpermuted = cut.vertex(), permuted = cut.vertex();
      cut.edge(from, unpermuted, bytes);
      cut.edge(permuted, from, bytes);
      const auto use = [&](uint32_t to) {
        cut.edge(unpermuted, to, MinCut::kInfinite);
        cut.edge(to, permuted, MinCut::kInfinite);
      };
      if (editor_.is_output(value)) use(MinCut::kSource);
      for (NodeId id : editor_.users(value)) {
        const Node& user = *editor_.node(id);
        if (is_free(user, value)) continue;
        const bool one_form = permutes(user, value);
        use(one_form ? MinCut::kSink : side(id));
        if (made_by && user.epilogue_of == made_by->id && !one_form && side(id) != from) {
          cut.edge(from, side(id), bytes + kStep);
          cut.edge(side(id), from, bytes + kStep);
        }
      }
    }
    cut.solve();
    for (NodeId id : order_)
      if (cut.sink_side()[vertices_.at(id)]) permuted_.insert(id);
    if (permuted_.empty()) return false;
    for (const auto& [id, vertex] : vertices_)
      if (!nodes_.contains(id) && cut.sink_side()[vertex]) free_permuted_.insert(id);
    const Total before = total(false), after = total(true);
    if (!may_insert_ && !std::ranges::includes(before.at, after.at)) return false;
    return after.count <= before.count && after.bytes < before.bytes;
  }

  struct Total {
    int64_t count = 0, bytes = 0;
    std::set<ValueId> at;
  };
  // The sum over all transposes that the choice, or the present graph, needs.
  Total total(bool chosen) {
    Total out;
    const auto is_permuted = [&](NodeId id) {
      return chosen && (permuted_.contains(id) || free_permuted_.contains(id));
    };
    for (ValueId value : queue_) {
      const Node* made_by = editor_.producer(value);
      const bool from = unpermutes(value) || (made_by && is_permuted(made_by->id));
      bool differs = editor_.is_output(value) && from;
      for (NodeId id : editor_.users(value)) {
        const Node& user = *editor_.node(id);
        if (!is_free(user, value)) differs |= from != (permutes(user, value) || is_permuted(id));
      }
      if (!differs) continue;
      out.bytes += cost(value);
      out.count += counts(value);
      out.at.insert(value);
    }
    return out;
  }

  // |value| in the form that the permuted nodes take.
  Result<ValueId> permuted_form(ValueId value) {
    if (const auto found = made_.find(value); found != made_.end()) return found->second;
    ValueId form = value;
    if (const Node* transpose = unpermutes(value)) {
      form = transpose->inputs[0];
    } else if (const Perm& perm = perms_.at(value); !is_identity(perm)) {
      // A transpose to this form may exist already.
      form = kNoId;
      for (NodeId id : editor_.users(value))
        if (permutes(*editor_.node(id), value)) form = editor_.node(id)->outputs[0];
      if (form == kNoId) {
        // The result of another transpose is made from that one's source by a single transpose.
        const Node* made = editor_.maker(value, "Transpose");
        const Perm* other = made ? permutation(*made) : nullptr;
        const ValueId source = other ? made->inputs[0] : value;
        const Perm order = other ? composed(*other, inverse(perm)) : inverse(perm);
        PFRT_ASSIGN(form, editor_.add("Transpose", editor_.graph().at(value).name, {source},
                                      {Attribute::of_ints("perm", order)}));
        added_.push_back(form);
      }
    }
    made_[value] = form;
    return form;
  }

  Status build(NodeId id) {
    const Node before = *editor_.node(id);
    const Permutations& permutations = nodes_.at(id);
    PFRT_ASSIGN(Node node, permuted(editor_, before, permutations));
    for (size_t i = 0; i < before.inputs.size(); ++i)
      if (permutations.inputs[i]) {
        PFRT_ASSIGN(node.inputs[i], permuted_form(before.inputs[i]));
      }
    PFRT_ASSIGN(const std::vector<ValueId> outputs,
                editor_.add_node(std::move(node), before.name, before.outputs.size()));
    added_.insert(added_.end(), outputs.begin(), outputs.end());
    const Node& added = *editor_.producer(outputs[0]);
    if (context_.check_support && context_.pass.refuses) {
      const std::string reason = context_.pass.refuses(editor_.graph(), added, {}, context_.target);
      if (!reason.empty() &&
          context_.pass.refuses(editor_.graph(), *editor_.node(id), {}, context_.target).empty())
        return error(Code::kUNSUPPORTED_OPERATOR, reason);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (before.outputs[i] == kNoId) continue;
      made_[before.outputs[i]] = outputs[i];
      const Perm& perm = perms_.at(before.outputs[i]);
      ValueId plain = outputs[i];
      if (!is_identity(perm)) {
        PFRT_ASSIGN(plain, editor_.add("Transpose", before.name, {outputs[i]},
                                       {Attribute::of_ints("perm", perm)}));
        added_.push_back(plain);
      }
      plain_.emplace_back(before.outputs[i], plain);
    }
    return {};
  }

  // Makes |user|, which transposes a value permuted by |perm|, take the permuted |form|.
  Status merge(Node& user, ValueId form, const Perm& perm) {
    const Perm order = composed(perm, *permutation(user));
    if (is_identity(order) && editor_.can_replace(user.outputs[0], form)) {
      editor_.replace(user.outputs[0], form);
      return {};
    }
    user.set_attr(Attribute::of_ints("perm", order));
    editor_.set_input(user, 0, form);
    return editor_.changed(user);
  }

  void drop_added() {
    for (size_t i = added_.size(); i-- > 0;)
      if (const NodeId id = editor_.graph().at(added_[i]).producer; id != kNoId)
        editor_.remove_unused(id);
  }

  // The permuted nodes in topological order.
  std::vector<NodeId> permuted_in_order() {
    std::vector<NodeId> order, open;
    std::unordered_set<NodeId> seen, done;
    for (NodeId root : order_) {
      if (permuted_.contains(root)) open.push_back(root);
      while (!open.empty()) {
        const NodeId id = open.back();
        if (seen.insert(id).second) {
          for (ValueId in : editor_.node(id)->inputs) {
            const NodeId maker = in == kNoId ? kNoId : editor_.graph().at(in).producer;
            if (maker != kNoId && permuted_.contains(maker) && !seen.contains(maker))
              open.push_back(maker);
          }
          continue;
        }
        open.pop_back();
        if (done.insert(id).second) order.push_back(id);
      }
    }
    return order;
  }

  // Puts permuted nodes beside the ones they stand for, then in their places; nodes left unused are
  // removed.
  Result<bool> rebuild() {
    for (NodeId id : permuted_in_order()) {
      if (Status built = build(id); !built.ok()) {
        drop_added();
        // The provider may insist on the present form.
        return built.code() == Code::kUNSUPPORTED_OPERATOR ? Result<bool>(false)
                                                           : Result<bool>(std::move(built));
      }
    }
    for (const auto& [from, to] : plain_)
      if (!editor_.can_replace(from, to)) {
        drop_added();
        return false;
      }
    for (const auto& [from, to] : plain_) {
      const ValueId form = made_.at(from);
      for (NodeId id : std::vector<NodeId>(editor_.users(from)))
        if (Node* user = editor_.node(id); user && permutation(*user))
          PFRT_TRY(merge(*user, form, perms_.at(from)));
      editor_.replace(from, to);
    }
    drop_added();
    return true;
  }

  Editor& editor_;
  const bool may_insert_;
  const RuleContext& context_;
  std::vector<ValueId> queue_;
  std::unordered_map<ValueId, Perm> perms_;
  std::unordered_map<NodeId, Permutations> nodes_;
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, uint32_t> vertices_;
  std::unordered_set<NodeId> permuted_, free_permuted_;
  std::unordered_map<ValueId, ValueId> made_;       // permuted forms
  std::vector<std::pair<ValueId, ValueId>> plain_;  // output, and the value that replaces it
  std::vector<ValueId> added_;
};

}  // namespace

Result<bool> permute_region(Editor& editor, ValueId value, const Perm& perm, bool may_insert,
                            const RuleContext& context) {
  if (editor.rank(value) != perm.size() || is_identity(perm)) return false;
  return Region(editor, may_insert, context).run(value, perm);
}

}  // namespace pfrt
