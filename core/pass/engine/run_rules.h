// SPDX-License-Identifier: Apache-2.0
//
// Rewrite rules and the worklist that applies them. A rule looks at one node and either leaves
// everything as it is or makes one rewrite around it; the nodes it touched are looked at again.
// Rules are constants in tables, one for each file, joined by pass in rule_tables.h; the page that
// lists them is printed from there.
#pragma once

#include <span>
#include <string_view>

#include "core/pass/engine/editor.h"
#include "core/pass/engine/pass.h"

namespace pfrt {

struct RuleContext {
  PassContext& pass;
  std::string_view target;  // provider asked for support; "" = the session's first
  bool check_support = true;
};

struct Rule {
  std::string_view name;  // in statistics
  std::string_view op;    // of nodes it looks at, in domain |domain|; "" = any
  std::string_view what;  // a line for people: "Conv, BatchNormalization -> Conv"
  OptLevel level;         // the lowest at which it is applied
  bool fuses;             // counts as a fusion
  // True when the graph was changed. A failure leaves it unchanged, except for unused nodes.
  Result<bool> (*apply)(Editor& editor, Node& node, const RuleContext& context);
  std::string_view domain = "";
};

// Applies |rules| to the graph and its bodies until none applies any more. Time grows with the
// number of nodes and of rewrites.
Status run_rules(Graph& graph, std::span<const Rule* const> rules, const RuleContext& context,
                 PassResult& result);

// Calls |fn(editor)| for every body in the graph, innermost first, then for the graph itself, with
// the knowledge around each; the editors are those of |context|, if it has any.
Status for_each_graph(Graph& graph, const PassContext& context,
                      const std::function<Status(Editor&)>& fn);

}  // namespace pfrt
