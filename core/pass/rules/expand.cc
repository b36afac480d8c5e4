// SPDX-License-Identifier: Apache-2.0
//
// Removes copies that broadcasting makes anyway: Expand and ConstantOfShape before elementwise
// operators, Expand before MatMul.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Whether |node| keeps its dimensions when input |i| has shape |instead|: each dimension is
// certainly one of another operand's. The last |skip| dimensions are not considered.
bool still_covered(const Editor& editor, const Node& node, size_t i, const Shape& instead,
                   size_t skip = 0) {
  const Type& out = editor.type(node.outputs[0]);
  if (!out.has_shape) return false;
  std::vector<const Shape*> operands{&instead};
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (k == i) continue;
    const Type& type = editor.type(node.inputs[k]);
    if (!type.is_tensor() || !type.has_shape) return false;
    operands.push_back(&type.shape);
  }
  for (size_t back = skip; back < out.shape.size(); ++back) {
    const Dim& wanted = out.shape[out.shape.size() - 1 - back];
    const bool covered = std::ranges::any_of(operands, [&](const Shape* shape) {
      return back < shape->size() && (*shape)[shape->size() - 1 - back] == wanted;
    });
    if (!covered) return false;
  }
  return true;
}

// The value of a ConstantOfShape as a scalar.
Result<ValueId> filled_with(Editor& editor, const Node& node) {
  const Attribute* value = node.attr("value");
  if (!value || !value->tensor || value->tensor->tensor.count() != 1) return kNoId;
  Tensor scalar = value->tensor->tensor;
  scalar.dims.clear();
  return editor.add_constant(message(node.name, "/value"), std::move(scalar));
}

Result<bool> broadcast_instead(Editor& editor, Node& node, const RuleContext&) {
  if (!broadcasts(node)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (const Node* copy = editor.maker(node.inputs[i], "Expand")) {
      const ValueId source = copy->inputs[0];
      const Type& type = editor.type(source);
      if (!type.has_shape || !still_covered(editor, node, i, type.shape)) continue;
      editor.set_input(node, i, source);
      PFRT_TRY(editor.changed(node));
      return true;
    }
    if (const Node* fill = editor.maker(node.inputs[i], "ConstantOfShape")) {
      if (node.inputs.size() < 2 || !still_covered(editor, node, i, {})) continue;
      PFRT_ASSIGN(const ValueId scalar, filled_with(editor, *fill));
      if (scalar == kNoId) continue;
      editor.set_input(node, i, scalar);
      PFRT_TRY(editor.changed(node));
      return true;
    }
  }
  return false;
}

// Removes an Expand of the dimensions before the matrix.
Result<bool> expand_into_product(Editor& editor, Node& node, const RuleContext&) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* copy = editor.maker(node.inputs[i], "Expand");
    if (!copy) continue;
    const ValueId source = copy->inputs[0];
    const Shape &small = editor.type(source).shape, &large = editor.type(node.inputs[i]).shape;
    const size_t rank = small.size();
    if (editor.rank(source).value_or(0) < 2 || editor.rank(node.inputs[i]).value_or(0) < 2 ||
        editor.rank(node.inputs[1 - i]).value_or(0) < 2)
      continue;
    if (!(small[rank - 1] == large.back()) || !(small[rank - 2] == large[large.size() - 2]))
      continue;
    if (!still_covered(editor, node, i, small, 2)) continue;
    editor.set_input(node, i, source);
    PFRT_TRY(editor.changed(node));
    return true;
  }
  return false;
}

constexpr Rule kExpandRules[] = {
    {"BroadcastInstead", "", "Expand or ConstantOfShape, elementwise -> elementwise", kExtended,
     true, broadcast_instead},
    {"ExpandIntoMatMul", "MatMul", "Expand of a batch, MatMul -> MatMul", kExtended, true,
     expand_into_product},
};

}  // namespace

std::span<const Rule> expand_rules() { return kExpandRules; }

}  // namespace pfrt
