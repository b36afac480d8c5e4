// SPDX-License-Identifier: Apache-2.0
//
// Joins products of one input with several constant matrices into one product with the matrices
// side by side, followed by a Split: those for queries, keys and values, which saves a step, and
// others where the provider says that it takes less time.
#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// A product x W + b, without other users of its parts.
struct Projection {
  ValueId out, x;
  const Tensor* weight;
  const Tensor* bias;  // nullptr: none
};

std::optional<Projection> projection(Editor& editor, ValueId value) {
  if (const Node* rotary = editor.maker(value, "RotaryEmbedding")) value = rotary->inputs[0];
  Projection out{value, kNoId, nullptr, nullptr};
  if (!editor.only_user(value)) return std::nullopt;
  if (const Node* sum = editor.maker(value, "Add"); sum && sum->inputs.size() == 2) {
    for (const size_t side : {0u, 1u})
      if (const Tensor* bias = editor.constant(sum->inputs[side])) {
        out.bias = bias;
        value = sum->inputs[1 - side];
      }
    if (!out.bias || !editor.only_user(value)) return std::nullopt;
  }
  const Node* product = editor.maker(value, "MatMul");
  out.weight = product ? editor.constant(product->inputs[1]) : nullptr;
  if (!out.weight || out.weight->dims.size() != 2 || editor.rank(product->inputs[0]) != 3u)
    return std::nullopt;
  out.x = product->inputs[0];
  const pfrt_dtype dtype = out.weight->dtype;
  if (!raisable(dtype) || editor.type(out.x).dtype != dtype) return std::nullopt;
  if (out.bias && (out.bias->dtype != dtype || out.bias->dims != Dims{out.weight->dims[1]}))
    return std::nullopt;
  return out;
}

// Puts rows of all parts side by side; an absent part of |widths| elements is zeros.
Result<Tensor> side_by_side(const std::vector<const Tensor*>& parts,
                            const std::vector<int64_t>& widths, pfrt_dtype dtype, Dims dims) {
  std::vector<Tensor> from;
  from.reserve(parts.size());
  for (const Tensor* part : parts) from.push_back(part ? *part : Tensor());
  const auto fill = [from, widths, rows = static_cast<size_t>(dims.size() == 2 ? dims[0] : 1),
                     size = dtype_size(dtype)](void* out) {
    const int64_t width = std::accumulate(widths.begin(), widths.end(), int64_t{0});
    auto* to = static_cast<char*>(out);
    for (size_t i = 0; i < from.size(); to += static_cast<size_t>(widths[i++]) * size) {
      const size_t line = static_cast<size_t>(widths[i]) * size;
      if (line == 0) continue;
      const auto put = [&](const void* data) {
        for (size_t row = 0; row < rows; ++row) {
          char* const at = to + row * static_cast<size_t>(width) * size;
          if (data)
            std::memcpy(at, static_cast<const char*>(data) + row * line, line);
          else
            std::memset(at, 0, line);
        }
      };
      if (!from[i].valid())
        put(nullptr);
      else if (!from[i].read(put).ok())
        throw std::bad_alloc();
    }
  };
  const void* origin = nullptr;
  for (const Tensor& part : from) origin = origin ? origin : part.origin();
  return Tensor::made_by(fill, dtype, std::move(dims), origin);
}

Result<bool> merge(Editor& editor, Node& node, const RuleContext&) {
  std::vector<Projection> parts;
  std::vector<const Tensor*> weights, biases;
  std::vector<int64_t> widths;
  int64_t width = 0;
  bool biased = false;
  for (size_t i = 0; i < 3; ++i) {
    const auto part = projection(editor, node.inputs[i]);
    if (!part) return false;
    parts.push_back(*part);
    if (part->x != parts[0].x || part->weight->dims[0] != parts[0].weight->dims[0] ||
        part->weight->dtype != parts[0].weight->dtype || part->weight->dims[1] > INT32_MAX)
      return false;
    weights.push_back(part->weight);
    biases.push_back(part->bias);
    widths.push_back(part->weight->dims[1]);
    width += widths.back();
    biased |= part->bias != nullptr;
  }
  if (parts[0].out == parts[1].out || parts[1].out == parts[2].out || parts[0].out == parts[2].out)
    return false;
  const std::string stem = node.name;
  const ValueId x = parts[0].x;
  const pfrt_dtype dtype = weights[0]->dtype;
  PFRT_ASSIGN(Tensor weight, side_by_side(weights, widths, dtype, {weights[0]->dims[0], width}));
  PFRT_ASSIGN(const ValueId sizes, editor.int64s(stem + "/sizes", widths));
  ValueId bias = kNoId;
  if (biased) {
    PFRT_ASSIGN(Tensor row, side_by_side(biases, widths, dtype, {width}));
    bias = editor.add_constant(stem + "/bias", std::move(row));
  }
  const ValueId matrix = editor.add_constant(stem + "/weight", std::move(weight));
  PFRT_ASSIGN(ValueId made, editor.add("MatMul", stem, {x, matrix}));
  if (biased) {
    PFRT_ASSIGN(made, editor.add("Add", stem, {made, bias}));
  }
  PFRT_ASSIGN(
      const std::vector<ValueId> cut,
      editor.add_node(node_of("Split", {made, sizes}, {Attribute::of_int("axis", 2)}), stem, 3));
  for (size_t i = 0; i < 3; ++i) editor.replace(parts[i].out, cut[i]);
  return true;
}

// A product x W, without other users of the constant W.
struct Branch {
  const Node* node;
  const Tensor* weight;
};

std::vector<Branch> branches_of(Editor& editor, ValueId x) {
  std::vector<Branch> out;
  for (const NodeId id : editor.users(x)) {
    const Node* const node = editor.node(id);
    if (node->op != "MatMul" || !node->domain.empty() || node->inputs[0] != x) continue;
    const Tensor* const weight = editor.constant(node->inputs[1]);
    if (!weight || weight->dims.size() != 2 || weight->dims[1] > INT32_MAX ||
        weight->dtype != editor.type(x).dtype || !editor.only_used_by(node->inputs[1], *node))
      continue;
    const bool has_epilogue = std::ranges::any_of(editor.users(node->outputs[0]), [&](NodeId user) {
      return editor.node(user)->epilogue_of == id;
    });
    if (!has_epilogue) out.push_back({node, weight});
  }
  return out;
}

Type type_of_width(Type type, int64_t width) {
  type.shape.back() = Dim(width);
  return type;
}

// Whether the provider takes less time for |product| and |split| than for |branches|.
Result<bool> is_cheaper(Editor& editor, const RuleContext& context,
                        const std::vector<Branch>& branches, Node product, Node split,
                        int64_t width) {
  std::vector<const Node*> apart;
  for (const Branch& branch : branches) {
    apart.push_back(branch.node);
    split.outputs.push_back(branch.node->outputs[0]);
  }
  product.outputs = {
      placeholder(editor, type_of_width(editor.type(branches[0].node->outputs[0]), width))};
  split.inputs[0] = product.outputs[0];
  product.canonical = split.canonical = true;
  const Node* const merged[] = {&product, &split};
  PFRT_ASSIGN(const std::optional<double> before,
              context.pass.cost(editor.graph(), apart, context.target));
  if (!before) return false;
  PFRT_ASSIGN(const std::optional<double> after,
              context.pass.cost(editor.graph(), merged, context.target));
  return after && *after < *before;
}

Result<bool> merge_products(Editor& editor, Node& node, const RuleContext& context) {
  const ValueId x = node.inputs[0];
  const std::optional<size_t> rank = editor.rank(x);
  if (!context.pass.cost || (rank != 2u && rank != 3u) || !raisable(editor.type(x).dtype))
    return false;
  const std::vector<Branch> branches = branches_of(editor, x);
  // The first branch acts for all.
  if (branches.size() < 2 || branches[0].node != &node) return false;
  std::vector<const Tensor*> weights;
  std::vector<ValueId> outs;
  std::vector<int64_t> widths;
  for (const Branch& branch : branches) {
    weights.push_back(branch.weight);
    outs.push_back(branch.node->outputs[0]);
    widths.push_back(branch.weight->dims[1]);
    if (branch.weight->dims[0] != weights[0]->dims[0] || !editor.type(outs.back()).has_shape)
      return false;
  }
  const int64_t width = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  const std::string stem = node.name;
  PFRT_ASSIGN(Tensor side,
              side_by_side(weights, widths, weights[0]->dtype, {weights[0]->dims[0], width}));
  PFRT_ASSIGN(const ValueId sizes, editor.int64s(stem + "/sizes", widths));
  const ValueId matrix = editor.add_constant(stem + "/weight", std::move(side));
  const std::vector<Attribute> last{Attribute::of_int("axis", static_cast<int64_t>(*rank) - 1)};
  Result<bool> cheaper = is_cheaper(editor, context, branches, node_of("MatMul", {x, matrix}),
                                    node_of("Split", {kNoId, sizes}, last), width);
  if (!cheaper.ok() || !*cheaper) {
    editor.drop_constant(matrix);
    editor.drop_constant(sizes);
    return cheaper;
  }
  PFRT_ASSIGN(const ValueId made, editor.add("MatMul", stem, {x, matrix}));
  PFRT_ASSIGN(const std::vector<ValueId> cut,
              editor.add_node(node_of("Split", {made, sizes}, last), stem, outs.size()));
  for (size_t i = 0; i < outs.size(); ++i) editor.replace(outs[i], cut[i]);
  return true;
}

constexpr Rule kMergeMatmulsRules[] = {
    {"MergedProjections", "Attention",
     "products of one input for queries, keys and values -> one product and Split",
     OptLevel::kExtended, true, merge},
};

constexpr Rule kMergedProductRules[] = {
    {"MergedProducts", "MatMul",
     "products of one input and constants -> one product and Split, where that takes less time",
     kBasic, true, merge_products},
};

}  // namespace

std::span<const Rule> merged_product_rules() { return kMergedProductRules; }
std::span<const Rule> merge_matmul_rules() { return kMergeMatmulsRules; }

}  // namespace pfrt
