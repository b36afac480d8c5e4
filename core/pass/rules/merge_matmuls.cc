// SPDX-License-Identifier: Apache-2.0
//
// Products of one input with three constant matrices, for queries, keys and values, are one product
// with the matrices side by side, cut into three: one step fewer.
#include <cstring>
#include <new>
#include <numeric>

#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// x W + b, of which nothing else uses a part.
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

// Rows of all parts side by side; an absent part of |widths| elements is zeros.
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

constexpr Rule kMergeMatmulsRules[] = {
    {"MergedProjections", "Attention",
     "products of one input for queries, keys and values -> one product and Split",
     OptLevel::kExtended, true, merge},
};

}  // namespace

std::span<const Rule> merge_matmul_rules() { return kMergeMatmulsRules; }

}  // namespace pfrt
