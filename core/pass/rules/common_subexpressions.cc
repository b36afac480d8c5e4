// SPDX-License-Identifier: Apache-2.0
//
// Joins nodes that compute the same from the same inputs, and small constants with the same bytes.
// Producers come first, so that one sweep finds chains of equal nodes.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/pass/engine/passes.h"
#include "core/pass/engine/run_rules.h"

namespace pfrt {
namespace {

constexpr uint64_t kLargestConstant = 64 * 1024;  // bytes, to be compared

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3u; }

uint64_t mix(uint64_t hash, const void* data, size_t size) {
  const auto* at = static_cast<const unsigned char*>(data);
  // Each of four words at a time has a hash of its own, because a multiplication waits for the one
  // before.
  uint64_t lanes[4] = {hash, ~hash, hash << 1, hash >> 1};
  for (; size >= sizeof lanes; at += sizeof lanes, size -= sizeof lanes) {
    uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    for (size_t i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], words[i] ^ words[i] >> 32);
  }
  for (const uint64_t lane : lanes) hash = mix(hash, lane ^ lane >> 32);
  for (size_t i = 0; i < size; ++i) hash = mix(hash, at[i]);
  return hash;
}

bool equal(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.dims != b.dims) return false;
  if (a.data() == b.data()) return true;
  if (a.dtype == PFRT_DTYPE_STRING)
    return std::ranges::equal(a.strings(), b.strings(),
                              [](pfrt_string x, pfrt_string y) { return view(x) == view(y); });
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

bool equal(const ValuePtr& a, const ValuePtr& b) {
  if (a == b) return true;
  return a && b && a->kind == PFRT_VALUE_TENSOR && b->kind == PFRT_VALUE_TENSOR &&
         equal(a->tensor, b->tensor);
}

// Compares bit for bit, since attributes may be NaN.
bool equal(const Attribute& a, const Attribute& b) {
  const auto bits = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() &&
           (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
  };
  return a.name == b.name && a.type == b.type && a.i == b.i &&
         std::bit_cast<uint32_t>(a.f) == std::bit_cast<uint32_t>(b.f) && a.s == b.s &&
         a.ints == b.ints && bits(a.floats, b.floats) && a.strings == b.strings &&
         equal(a.tensor, b.tensor) && a.tensors.size() == b.tensors.size() &&
         std::ranges::equal(a.tensors, b.tensors,
                            [](const ValuePtr& x, const ValuePtr& y) { return equal(x, y); });
}

bool same_attributes(const Node& a, const Node& b) {
  return a.attrs.size() == b.attrs.size() &&
         std::ranges::all_of(a.attrs, [&](const Attribute& attr) {
           const Attribute* other = b.attr(attr.name);
           return other && equal(attr, *other);
         });
}

// Hashes the fields that are fast to compare; equal attributes have equal hashes.
uint64_t hash_of(const Attribute& a) {
  uint64_t hash = mix(mix(0xcbf29ce484222325u, a.name.data(), a.name.size()), a.type);
  hash = mix(hash, static_cast<uint64_t>(a.i));
  hash = mix(hash, &a.f, sizeof a.f);
  hash = mix(hash, a.s.data(), a.s.size());
  hash = mix(hash, a.ints.data(), a.ints.size() * sizeof(int64_t));
  return mix(hash, a.floats.data(), a.floats.size() * sizeof(float));
}

class Sweep {
 public:
  Sweep(Editor& editor, const CseConfig& config, PassContext& context, PassResult& result)
      : editor_(editor), config_(config), context_(context), result_(result) {}

  Status run() {
    PFRT_TRY(join_constants());
    PFRT_ASSIGN(const std::vector<NodeId> order, editor_.topological_order());
    for (NodeId id : order) {
      PFRT_TRY(context_.look());
      join_sizes(id);
      join(id);
    }
    return {};
  }

 private:
  Graph& graph() { return editor_.graph(); }

  bool take(ValueId from, std::string_view rule) {
    return context_.gate.may(rule, graph(), graph().at(from).name);
  }
  void took(const std::string& from, std::string_view rule) {
    context_.gate.did(rule, graph(), from);
    ++result_.stats.rules[std::string(rule)];
    result_.modified = true;
  }

  Status join_constants() {
    std::unordered_map<uint64_t, std::vector<ValueId>> seen;
    for (ValueId id : graph().initializers()) {
      const Tensor* tensor = graph().constant(id);
      PFRT_TRY(context_.look());
      if (!tensor || tensor->dtype == PFRT_DTYPE_STRING || tensor->bytes() > kLargestConstant ||
          editor_.is_input(id) || editor_.users(id).empty())
        continue;
      uint64_t hash = mix(0xcbf29ce484222325u, tensor->dtype);
      hash = mix(hash, tensor->data(), static_cast<size_t>(tensor->bytes()));
      std::vector<ValueId>& bucket = seen[hash];
      const auto same = std::ranges::find_if(
          bucket, [&](ValueId other) { return equal(*tensor, *graph().constant(other)); });
      if (same == bucket.end()) {
        bucket.push_back(id);
      } else if (!editor_.is_output(id) && take(id, "JoinConstants")) {
        const std::string name = graph().at(id).name;
        editor_.replace(id, *same);
        took(name, "JoinConstants");
      }
    }
    return {};
  }

  // Joins Shapes, and arithmetic on them, whose contents are the same according to inference.
  void join_sizes(NodeId id) {
    const Node* node = graph().node(id);
    if (!node || node->outputs.size() != 1 || node->outputs[0] == kNoId || !comparable(*node))
      return;
    const ValueId value = node->outputs[0];
    const std::optional<Shape>& contents = editor_.contents(value);
    const Type& type = editor_.type(value);
    if (!contents || contents->empty() || !type.is_tensor() || !type.fixed() ||
        type.dtype != PFRT_DTYPE_INT64 ||
        std::ranges::any_of(*contents, [](const Dim& d) { return d.unknown(); }))
      return;
    std::string key = message(type.shape.size());
    for (const Dim& d : type.shape) key += message(",", d.value());
    for (const Dim& d : *contents)
      key += d.known() ? message(" ", d.value()) : message(" #", d.symbol());
    const auto [at, fresh] = sizes_.try_emplace(std::move(key), value);
    // The node that made the earlier value may have lost its users, and so be gone.
    if (!fresh && !editor_.is_there(at->second)) at->second = value;
    if (!editor_.can_replace(value, at->second) || !take(value, "JoinSizes")) return;
    const std::string name = graph().at(value).name;
    editor_.replace(value, at->second);
    took(name, "JoinSizes");
  }

  bool comparable(const Node& node) const {
    if (has_bodies(node) || !is_built_in(node.domain, node.op)) return false;
    if (!config_.check_attributes && !node.attrs.empty()) return false;
    const OperatorDef* row = find_canonical(editor_.graph(), node);
    return row && (row->flags & (kOpRandom | kOpRefused)) == 0;
  }

  // Whether |kept| has every output of |gone| that is used.
  bool covers(const Node& kept, const Node& gone) const {
    for (size_t i = 0; i < gone.outputs.size(); ++i) {
      if (!gone.has_output(i)) continue;
      if (!kept.has_output(i) || !editor_.can_replace(gone.outputs[i], kept.outputs[i]))
        return false;
    }
    return true;
  }

  void join(NodeId id) {
    Node* node = graph().node(id);
    if (!node || !comparable(*node)) return;
    uint64_t hash = mix(0xcbf29ce484222325u, node->op.data(), node->op.size());
    for (ValueId in : node->inputs) hash = mix(hash, in);
    for (const Attribute& attr : node->attrs) hash += hash_of(attr);  // for any order
    std::vector<NodeId>& bucket = nodes_[hash];
    uint64_t left = config_.max_comparisons;
    for (NodeId other : bucket) {
      if (left-- == 0) break;
      const Node* kept = graph().node(other);
      if (!kept || kept->op != node->op || kept->domain != node->domain ||
          kept->inputs != node->inputs || !same_attributes(*kept, *node) || !covers(*kept, *node))
        continue;
      const std::vector<ValueId> from = node->outputs, to = kept->outputs;
      ValueId first = kNoId;
      for (ValueId v : from)
        if (first == kNoId) first = v;
      if (first == kNoId || !take(first, "JoinNodes")) return;
      const std::string name = graph().at(first).name;
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] != kNoId) editor_.replace(from[i], to[i]);
      took(name, "JoinNodes");
      return;
    }
    bucket.push_back(id);
  }

  Editor& editor_;
  const CseConfig& config_;
  PassContext& context_;
  PassResult& result_;
  std::unordered_map<uint64_t, std::vector<NodeId>> nodes_;
  std::unordered_map<std::string, ValueId> sizes_;
};

class CsePass final : public Pass {
 public:
  explicit CsePass(CseConfig config) : config_(config) {}
  std::string_view name() const override { return "CSEPass"; }
  std::string_view description() const override {
    return "computes once what several nodes compute alike";
  }
  OptLevel level() const override { return OptLevel::kExtended; }
  // Constant folding and the removal of dead nodes leave fewer constants and nodes to compare.
  std::span<const std::string_view> after() const override {
    static constexpr std::string_view kAfter[] = {"ConstantFoldingPass", "DeadCodeEliminationPass"};
    return kAfter;
  }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    return for_each_graph(*graph, context, [&](Editor& editor) -> Status {
      const uint64_t removed = editor.nodes_removed();
      Status status = Sweep(editor, config_, context, result).run();
      result.stats.nodes_removed += editor.nodes_removed() - removed;
      return status;
    });
  }

 private:
  const CseConfig config_;
};

}  // namespace

std::unique_ptr<Pass> cse_pass(CseConfig config) { return std::make_unique<CsePass>(config); }

}  // namespace pfrt
