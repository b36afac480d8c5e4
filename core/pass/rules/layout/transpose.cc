// SPDX-License-Identifier: Apache-2.0
//
// Moves transposes until they meet: they merge, cancel, become views, go into products that read
// either order, and move through nodes that can work on either.
#include <algorithm>

#include "core/pass/rules/layout/transpose_region.h"
#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

Result<bool> transpose_of_transpose(Editor& editor, Node& node, const RuleContext&) {
  const Node* first = editor.maker(node.inputs[0], "Transpose");
  const Perm *a = first ? permutation(*first) : nullptr, *b = permutation(node);
  if (!a || !b || a->size() != b->size()) return false;
  const ValueId source = first->inputs[0];
  const Perm both = composed(*a, *b);
  if (is_identity(both) && editor.can_replace(node.outputs[0], source)) {
    editor.replace(node.outputs[0], source);
    return true;
  }
  node.set_attr(Attribute::of_ints("perm", both));
  editor.set_input(node, 0, source);
  PFRT_TRY(editor.changed(node));
  return true;
}

// Dimensions of one element can be moved by a Reshape.
Result<bool> transpose_of_ones(Editor& editor, Node& node, const RuleContext&) {
  const Perm* perm = permutation(node);
  const ValueId in = node.inputs[0], out = node.outputs[0];
  if (!perm || is_identity(*perm) || editor.rank(in) != perm->size()) return false;
  if (!moves_only_ones(editor.type(in).shape, *perm)) return false;
  PFRT_ASSIGN(const ValueId made, reshape_like(editor, in, out, node.name));
  if (made == kNoId) return false;
  editor.replace(out, made);
  return true;
}

Result<bool> permute_around(Editor& editor, const Node& node, const RuleContext& context,
                            bool may_insert) {
  const Perm* perm = permutation(node);
  if (!perm || is_identity(*perm)) return false;
  const Perm forward = *perm;
  const ValueId in = node.inputs[0], out = node.outputs[0];
  PFRT_ASSIGN(const bool below, permute_region(editor, out, forward, may_insert, context));
  if (below) return true;
  return permute_region(editor, in, inverse(forward), may_insert, context);
}

Result<bool> move_transposes(Editor& editor, Node& node, const RuleContext& context) {
  return permute_around(editor, node, context, true);
}

Result<bool> cancel_transposes(Editor& editor, Node& node, const RuleContext& context) {
  return permute_around(editor, node, context, false);
}

bool swaps_matrix(const Node& node) {
  const Perm* perm = permutation(node);
  return perm && *perm == Perm{1, 0};
}

Result<bool> gemm_of_transpose(Editor& editor, Node& node, const RuleContext&) {
  for (const size_t side : {0u, 1u}) {
    const Node* swap = editor.maker(node.inputs[side], "Transpose");
    if (!swap || !swaps_matrix(*swap)) continue;
    const char* name = side == 0 ? "transA" : "transB";
    node.set_attr(Attribute::of_int(name, node.attr_int(name, 0) == 0));
    editor.set_input(node, side, swap->inputs[0]);
    PFRT_TRY(editor.changed(node));
    return true;
  }
  return false;
}

Result<bool> matmul_of_transpose(Editor& editor, Node& node, const RuleContext&) {
  const pfrt_dtype dtype = editor.type(node.outputs[0]).dtype;
  if (dtype != PFRT_DTYPE_FLOAT32 && dtype != PFRT_DTYPE_FLOAT64 && dtype != PFRT_DTYPE_FLOAT16 &&
      dtype != PFRT_DTYPE_BFLOAT16)
    return false;
  std::vector<ValueId> inputs = node.inputs;
  int64_t swapped[2] = {0, 0};
  for (const size_t side : {0u, 1u}) {
    if (editor.rank(inputs[side]) != 2u) return false;
    const Node* swap = editor.maker(inputs[side], "Transpose");
    if (!swap || !swaps_matrix(*swap)) continue;
    inputs[side] = swap->inputs[0];
    swapped[side] = 1;
  }
  if (!swapped[0] && !swapped[1]) return false;
  const ValueId out = node.outputs[0];
  PFRT_ASSIGN(const ValueId made,
              editor.add("Gemm", node.name, std::move(inputs),
                         {Attribute::of_float("alpha", 1), Attribute::of_float("beta", 1),
                          Attribute::of_int("transA", swapped[0]),
                          Attribute::of_int("transB", swapped[1])}));
  editor.replace(out, made);
  return true;
}

constexpr Rule kTransposeChainRules[] = {
    {"MergeTransposes", "Transpose", "Transpose, Transpose -> Transpose, or nothing", kExtended,
     false, transpose_of_transpose},
};

constexpr Rule kTransposeRules[] = {
    {"MergeTransposes", "Transpose", "Transposes that moved and meet -> Transpose, or nothing",
     kAll, false, transpose_of_transpose},
    {"TransposeOfOnes", "Transpose", "Transpose that moves dimensions of 1 -> Reshape", kAll, false,
     transpose_of_ones},
    {"GemmOfTranspose", "Gemm", "Transpose, Gemm -> Gemm that reads columns", kAll, false,
     gemm_of_transpose},
    {"GemmOfTranspose", "MatMul", "Transpose, MatMul of matrices -> Gemm that reads columns", kAll,
     false, matmul_of_transpose},
    {"MoveTransposes", "Transpose",
     "Transposes move through what works in any order of dimensions, where fewer remain", kAll,
     false, move_transposes},
    {"CancelTransposes", "Transpose",
     "Transposes around what works in any order of dimensions -> none (insert_transposes off)",
     kAll, false, cancel_transposes},
};

}  // namespace

std::span<const Rule> transpose_chain_rules() { return kTransposeChainRules; }
std::span<const Rule> transpose_rules() { return kTransposeRules; }

}  // namespace pfrt
