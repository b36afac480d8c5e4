// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rule_tables.h"

namespace pfrt {

std::span<const RuleFamily> rule_families() {
  static constexpr RuleFamily kFamilies[] = {
      {RulePass::kFolding, "control", control_rules},
      {RulePass::kDeadCode, "identity", identity_rules},
      {RulePass::kFusion, "conv", conv_rules},
  };
  return kFamilies;
}

std::vector<const Rule*> rules_of(RulePass pass, OptLevel level) {
  std::vector<const Rule*> out;
  for (const RuleFamily& family : rule_families())
    if (family.pass == pass)
      for (const Rule& rule : family.rules())
        if (rule.level <= level) out.push_back(&rule);
  return out;
}

}  // namespace pfrt
