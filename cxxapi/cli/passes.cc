// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <pyflame_rt/opt/passes.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/table.h"

namespace cli {
namespace {

using pyflame_rt::OptLevel;
using pyflame_rt::opt::Pass;
using pyflame_rt::opt::RuleInfo;

// Returns the passes in the order in which they run, then those of no level.
std::vector<std::unique_ptr<Pass>> built_in_passes() {
  std::vector<std::unique_ptr<Pass>> out;
  out.push_back(std::make_unique<pyflame_rt::opt::ConstantFoldingPass>());
  out.push_back(std::make_unique<pyflame_rt::opt::DeadCodeEliminationPass>());
  out.push_back(std::make_unique<pyflame_rt::opt::CSEPass>());
  out.push_back(std::make_unique<pyflame_rt::opt::OperatorFusionPass>());
  out.push_back(std::make_unique<pyflame_rt::opt::LayoutOptimizationPass>());
  out.push_back(std::make_unique<pyflame_rt::opt::DataflowPass>());
  return out;
}

const char* lowest_level(const Pass& pass) {
  if (pass.should_run(OptLevel::Basic)) return "basic";
  if (pass.should_run(OptLevel::Extended)) return "extended";
  return pass.should_run(OptLevel::All) ? "all" : "by name";
}

std::string after(const Pass& pass) {
  std::string out;
  for (const std::string& name : pass.after()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

void print_json(const std::vector<RuleInfo>& rules) {
  Json json;
  json.object().key("passes").list();
  for (const auto& pass : built_in_passes()) {
    json.object().field("pass", pass->name()).field("level", lowest_level(*pass));
    json.field("after", after(*pass));
    json.field("text", pass->description()).end();
  }
  json.end().key("rewrites").list();
  for (const RuleInfo& rule : rules) {
    json.object().field("pass", rule.pass).field("rule", rule.rule).field("level", rule.level);
    json.field("text", rule.text).end();
  }
  json.end().end().print();
}

void print_text(const std::vector<RuleInfo>& rules) {
  Table passes({"pass", "level", "after", "what it does"});
  for (const auto& pass : built_in_passes()) {
    passes.add({pass->name(), lowest_level(*pass), after(*pass), pass->description()});
  }
  passes.print();
  std::printf("\n");
  Table table({"pass", "rewrite", "level", "what it does"});
  for (const RuleInfo& rule : rules) table.add({rule.pass, rule.rule, rule.level, rule.text});
  table.print();
  std::printf("%zu rewrites\n", rules.size());
}

// Writes the text of a cell in a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '*' || c == '_' || c == '`') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void print_markdown(const std::vector<RuleInfo>& rules) {
  std::printf("<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Passes and their rewrites\n\n");
  std::printf("Printed by `pfrt passes --markdown`, from the tables that the passes run on.\n\n");
  std::printf("| Pass | From level | After | What it does |\n|---|---|---|---|\n");
  for (const auto& pass : built_in_passes()) {
    std::printf("| %s | %s | %s | %s |\n", pass->name(), lowest_level(*pass), after(*pass).c_str(),
                cell(pass->description()).c_str());
  }
  for (const auto& pass : built_in_passes()) {
    bool any = false;
    for (const RuleInfo& rule : rules) {
      if (rule.pass != pass->name()) continue;
      if (!any) {
        std::printf("\n## %s\n\n| Rewrite | From level | What it does |\n|---|---|---|\n",
                    pass->name());
      }
      any = true;
      std::printf("| %s | %s | %s |\n", cell(rule.rule).c_str(), rule.level.c_str(),
                  cell(rule.text).c_str());
    }
  }
}

}  // namespace

int passes_command(const PassesArgs& args) {
  const std::vector<RuleInfo> rules = pyflame_rt::opt::known_rules();
  if (args.json) {
    print_json(rules);
  } else if (args.markdown) {
    print_markdown(rules);
  } else {
    print_text(rules);
  }
  return 0;
}

}  // namespace cli
