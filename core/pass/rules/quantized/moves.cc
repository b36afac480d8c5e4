// SPDX-License-Identifier: Apache-2.0
//
// Moves DequantizeLinear behind nodes that only move elements, where it may meet the QuantizeLinear
// that undoes it, and removes bounds before a QuantizeLinear that cuts off as much itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized/quantized.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// |n| steps of a scale come back as |n| steps: each of the two operations rounds by 2^-24 of them,
// and |n| has 17 bits at most.
Result<bool> cancel(Editor& editor, Node& node, const RuleContext&) {
  const auto to = quantization(editor, node);
  const auto from = to ? dequantized(editor, node.inputs[0]) : std::nullopt;
  if (!from || !same_quantization(editor, *from, *to) ||
      !editor.can_replace(node.outputs[0], from->quantized))
    return false;
  editor.replace(node.outputs[0], from->quantized);
  return true;
}

// Whether the provider runs |asked|, which is |node| on integers of |dtype|.
bool runs(Editor& editor, const Node& node, const Node& asked, pfrt_dtype dtype,
          const RuleContext& context) {
  if (!context.check_support || !context.pass.refuses) return true;
  // The question concerns results that do not exist yet.
  std::vector<pfrt_dtype> real;
  const auto exchange = [&] {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.has_output(i)) std::swap(editor.graph().at(node.outputs[i]).type.dtype, real[i]);
  };
  real.assign(node.outputs.size(), dtype);
  exchange();
  const std::string refused = context.pass.refuses(editor.graph(), asked, {}, context.target);
  exchange();
  return refused.empty();
}

// Puts |moved|, and the DequantizeLinear |back| behind it, in the place of |node|.
Result<bool> put(Editor& editor, const Node& node, Node moved, Node back) {
  const ValueId out = node.outputs[0];
  const std::string stem = node.name, name = back.name;
  PFRT_ASSIGN(const std::vector<ValueId> made, editor.add_node(std::move(moved), stem));
  back.inputs[0] = made[0];
  PFRT_ASSIGN(const std::vector<ValueId> numbers, editor.add_node(std::move(back), name));
  editor.replace(out, numbers[0]);
  return true;
}

// Number of moves that becomes_steps looks through.
constexpr int kMostMoves = 4;

// Whether a user would rather have |value| as steps, perhaps in other dimensions.
bool becomes_steps(Editor& editor, ValueId value, int moves) {
  constexpr std::array<std::string_view, 4> kTakers{"Conv", "Gemm", "MatMul", "QuantizeLinear"};
  constexpr std::array<std::string_view, 5> kMoves{"Flatten", "Reshape", "Squeeze", "Transpose",
                                                   "Unsqueeze"};
  return std::ranges::any_of(editor.users(value), [&](NodeId id) {
    const Node& user = *editor.node(id);
    if (!user.domain.empty() || user.outputs.size() != 1) return false;
    if (std::ranges::find(kTakers, user.op) != kTakers.end()) return true;
    return moves > 0 && std::ranges::find(kMoves, user.op) != kMoves.end() &&
           becomes_steps(editor, user.outputs[0], moves - 1);
  });
}

// Whether each element of a Resize equals one of its input.
bool copies_elements(const Node& node) {
  return node.attr_string("mode", "nearest") == "nearest" &&
         node.attr_string("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

// Sets the padding of a Pad of numbers in steps: the zero point for 0. False for other numbers, for
// which there may be no step.
Result<bool> pad_with_zero_point(Editor& editor, const Node& node, const Quantization& q,
                                 Node& padded) {
  if (node.attr_string("mode", "constant") != "constant") return true;
  if (node.has_input(2) && scalar_of(editor.constant(node.inputs[2])) != 0.0) return false;
  const auto zeros = zeros_of(editor, q);
  if (!zeros || dtype_size(q.dtype) != 1) return false;
  PFRT_ASSIGN(Tensor zero, Tensor::allocate(q.dtype, {}));
  *static_cast<uint8_t*>(zero.data()) = static_cast<uint8_t>(zeros->front());
  if (padded.inputs.size() < 3) padded.inputs.resize(3, kNoId);
  padded.inputs[2] = editor.add_constant("padding", std::move(zero));
  return true;
}

Result<bool> move(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const ValueId real = node.inputs[0];
  const auto q = dequantized(editor, real);
  if (!q || !q->single || std::ranges::count(node.inputs, real) != 1) return false;
  // Transposes have a pass of their own, which knows where they are cheapest.
  if (node.op == "Transpose" && !editor.constant(q->quantized) &&
      !becomes_steps(editor, node.outputs[0], kMostMoves))
    return false;
  // Numbers and steps have the same order where the scale is positive.
  const bool compares = node.op == "MaxPool" || node.op == "GlobalMaxPool";
  if (compares && !scales_of(editor, *q)) return false;
  if (node.op == "Resize" && !copies_elements(node)) return false;
  Node moved = node;
  moved.inputs[0] = q->quantized;
  if (node.op == "Pad") {
    PFRT_ASSIGN(const bool padded, pad_with_zero_point(editor, node, *q, moved));
    if (!padded) return false;
  }
  if (!runs(editor, node, moved, q->dtype, context)) return false;
  return put(editor, node, std::move(moved), *editor.producer(real));
}

Result<bool> join(Editor& editor, Node& node, const RuleContext& context) {
  std::vector<ValueId> parts;
  std::optional<Quantization> first;
  for (ValueId real : node.inputs) {
    const auto q = dequantized(editor, real);
    if (!q || !q->single) return false;
    if (!first) first = q;
    if (!same_quantization(editor, *first, *q)) return false;
    parts.push_back(q->quantized);
  }
  if (!first || node.outputs.size() != 1) return false;
  Node joined = node;
  joined.inputs = std::move(parts);
  if (!runs(editor, node, joined, first->dtype, context)) return false;
  return put(editor, node, std::move(joined), *editor.producer(node.inputs[0]));
}

// Moves behind all outputs of a Split.
Result<bool> divide(Editor& editor, Node& node, const RuleContext& context) {
  const ValueId real = node.inputs[0];
  const auto q = dequantized(editor, real);
  if (!q || !q->single) return false;
  if (std::ranges::any_of(node.outputs, [](ValueId v) { return v == kNoId; })) return false;
  Node parts = node;
  parts.inputs[0] = q->quantized;
  if (!runs(editor, node, parts, q->dtype, context)) return false;
  const std::vector<ValueId> outs = node.outputs;
  const std::string stem = node.name;
  const Node back = *editor.producer(real);
  PFRT_ASSIGN(const std::vector<ValueId> made,
              editor.add_node(std::move(parts), stem, outs.size()));
  std::vector<ValueId> numbers;
  for (const ValueId part : made) {
    Node each = back;
    each.inputs[0] = part;
    PFRT_ASSIGN(const std::vector<ValueId> number, editor.add_node(std::move(each), back.name));
    numbers.push_back(number[0]);
  }
  for (size_t i = 0; i < outs.size(); ++i) editor.replace(outs[i], numbers[i]);
  return true;
}

// Quantizes parts before they are joined, where some of them are integers already, so that bytes
// are moved in place of numbers.
Result<bool> quantize_parts(Editor& editor, Node& node, const RuleContext& context) {
  const auto to = quantization(editor, node);
  if (!to || !to->single) return false;
  Node* const join = editor.maker(node.inputs[0], "Concat");
  if (!join || !editor.only_used_by(node.inputs[0], node)) return false;
  if (std::ranges::none_of(join->inputs,
                           [&](ValueId v) { return dequantized(editor, v).has_value(); }))
    return false;
  Node joined = *join;
  for (ValueId& part : joined.inputs)
    if (const auto from = dequantized(editor, part)) part = from->quantized;
  if (!runs(editor, *join, joined, to->dtype, context)) return false;
  joined.inputs = join->inputs;
  const ValueId out = node.outputs[0];
  const std::string stem = join->name;
  const Node quantize = node;
  for (ValueId& part : joined.inputs) {
    Node each = quantize;
    each.inputs[0] = part;
    PFRT_ASSIGN(const std::vector<ValueId> steps, editor.add_node(std::move(each), quantize.name));
    part = steps[0];
  }
  PFRT_ASSIGN(const std::vector<ValueId> made, editor.add_node(std::move(joined), stem));
  editor.replace(out, made[0]);
  return true;
}

Result<bool> cut_once(Editor& editor, Node& node, const RuleContext&) {
  const auto to = quantization(editor, node);
  if (!to || !to->single) return false;
  const Node* cut = editor.producer(node.inputs[0]);
  if (!cut || !cut->domain.empty() || !editor.only_used_by(node.inputs[0], node)) return false;
  const auto scales = scales_of(editor, *to);
  const auto zeros = zeros_of(editor, *to);
  if (!scales || !zeros) return false;
  const IntegerRange range = range_of(to->dtype);
  const int64_t zero = zeros->front();
  if (cut->op == "Relu") {
    if (zero != range.low) return false;
  } else if (cut->op == "Clip") {
    for (const size_t i : {1u, 2u}) {
      if (!cut->has_input(i)) continue;
      const auto limit = scalar_of(editor.constant(cut->inputs[i]));
      if (!limit || std::isnan(*limit)) return false;
      const int64_t last = i == 1 ? range.low : range.high;
      const double step = std::nearbyint(*limit / scales->front()) + static_cast<double>(zero);
      if (i == 1 ? step > static_cast<double>(last) : step < static_cast<double>(last))
        return false;
    }
  } else {
    return false;
  }
  editor.set_input(node, 0, cut->inputs[0]);
  PFRT_TRY(editor.changed(node));
  return true;
}

constexpr Rule kQuantizedMovesRules[] = {
    {"CancelQuantize", "QuantizeLinear",
     "DequantizeLinear, QuantizeLinear of the same parameters -> nothing", kExtended, true, cancel},
    {"QuantizeCuts", "QuantizeLinear",
     "Relu or Clip, QuantizeLinear whose range ends there -> QuantizeLinear", kExtended, true,
     cut_once},
    {"QuantizeParts", "QuantizeLinear",
     "DequantizeLinear of some parts, Concat, QuantizeLinear -> QuantizeLinear of each part, "
     "Concat",
     kExtended, false, quantize_parts},
    {"MoveQuantized", "Split", "DequantizeLinear, Split -> Split, DequantizeLinear of each output",
     kExtended, false, divide},
    {"MoveQuantized", "Resize",
     "DequantizeLinear, Resize to the nearest -> Resize, DequantizeLinear", kExtended, false, move},
    {"MoveQuantized", "Pad", "DequantizeLinear, Pad -> Pad, DequantizeLinear", kExtended, false,
     move},
    {"MoveQuantized", "GlobalMaxPool",
     "DequantizeLinear, GlobalMaxPool -> GlobalMaxPool, DequantizeLinear", kExtended, false, move},
    {"MoveQuantized", "Expand", "DequantizeLinear, Expand -> Expand, DequantizeLinear", kExtended,
     false, move},
    {"MoveQuantized", "Tile", "DequantizeLinear, Tile -> Tile, DequantizeLinear", kExtended, false,
     move},
    {"JoinQuantized", "Concat",
     "DequantizeLinear of the same parameters, Concat -> Concat, DequantizeLinear", kExtended,
     false, join},
    {"MoveQuantized", "MaxPool", "DequantizeLinear, MaxPool -> MaxPool, DequantizeLinear",
     kExtended, false, move},
    {"MoveQuantized", "Reshape", "DequantizeLinear, Reshape -> Reshape, DequantizeLinear",
     kExtended, false, move},
    {"MoveQuantized", "Squeeze", "DequantizeLinear, Squeeze -> Squeeze, DequantizeLinear",
     kExtended, false, move},
    {"MoveQuantized", "Unsqueeze", "DequantizeLinear, Unsqueeze -> Unsqueeze, DequantizeLinear",
     kExtended, false, move},
    {"MoveQuantized", "Flatten", "DequantizeLinear, Flatten -> Flatten, DequantizeLinear",
     kExtended, false, move},
    {"MoveQuantized", "Slice", "DequantizeLinear, Slice -> Slice, DequantizeLinear", kExtended,
     false, move},
    {"MoveQuantized", "Gather", "DequantizeLinear, Gather -> Gather, DequantizeLinear", kExtended,
     false, move},
    {"MoveQuantized", "DepthToSpace",
     "DequantizeLinear, DepthToSpace -> DepthToSpace, DequantizeLinear", kExtended, false, move},
    {"MoveQuantized", "SpaceToDepth",
     "DequantizeLinear, SpaceToDepth -> SpaceToDepth, DequantizeLinear", kExtended, false, move},
    {"MoveQuantized", "Transpose", "DequantizeLinear, Transpose -> Transpose, DequantizeLinear",
     kExtended, false, move},
};

}  // namespace

std::span<const Rule> quantized_move_rules() { return kQuantizedMovesRules; }

}  // namespace pfrt
