// SPDX-License-Identifier: Apache-2.0
//
// Removes nodes whose output is their input: Identity, and Dropout in inference.
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

Result<bool> hand_on(Editor& editor, Node& node, const RuleContext&) {
  const ValueId in = node.inputs.empty() ? kNoId : node.inputs[0];
  const ValueId out = node.outputs.empty() ? kNoId : node.outputs[0];
  if (in == kNoId || out == kNoId || !editor.can_replace(out, in)) return false;
  editor.replace(out, in);
  return true;
}

// Canonical form has removed the other inputs of a Dropout in inference mode. The mask, output 1,
// must be unused.
Result<bool> dropout(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.size() > 1) return false;
  if (node.has_output(1) &&
      (editor.is_output(node.outputs[1]) || !editor.users(node.outputs[1]).empty()))
    return false;
  return hand_on(editor, node, context);
}

constexpr Rule kIdentityRules[] = {
    {"RemoveIdentity", "Identity", "Identity -> its input", OptLevel::kBasic, false, hand_on},
    {"RemoveDropout", "Dropout", "Dropout in inference -> its input", OptLevel::kBasic, false,
     dropout},
};

}  // namespace

std::span<const Rule> identity_rules() { return kIdentityRules; }

}  // namespace pfrt
