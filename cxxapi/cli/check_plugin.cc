// SPDX-License-Identifier: Apache-2.0
//
// `pfrt check-plugin`: runs the trials of a file and prints the result of each rule.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/rules.h"
#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/print/json.h"

namespace cli {
namespace {

using namespace check;

// Limit of a trial, and of a short one: it only loads the plug-in and asks for its description, or
// follows a trial that took too long.
constexpr int kSeconds = 120, kFewSeconds = 10;

struct Outcome {
  bool tested = false;
  std::vector<std::string> found;  // without repetitions
};

class Account {
 public:
  TrialResult run(const NamedTrial& trial, int seconds) {
    TrialResult result = run_trial(trial.body, hung_ ? kFewSeconds : seconds);
    hung_ |= result.timed_out;
    for (const Finding& f : result.findings) {
      Outcome& outcome = outcomes_[f.rule];
      outcome.tested = true;
      if (!f.found.empty() &&
          std::find(outcome.found.begin(), outcome.found.end(), f.found) == outcome.found.end())
        outcome.found.push_back(f.found);
    }
    for (std::string& what : result.skipped)
      if (std::find(skipped_.begin(), skipped_.end(), what) == skipped_.end())
        skipped_.push_back(std::move(what));
    return result;
  }
  const Outcome& of(std::string_view rule) { return outcomes_[std::string(rule)]; }
  const std::vector<std::string>& skipped() const { return skipped_; }
  void skip(std::string what) { skipped_.push_back(std::move(what)); }

 private:
  std::map<std::string, Outcome> outcomes_;
  std::vector<std::string> skipped_;
  bool hung_ = false;
};

std::vector<NamedTrial> trials_of(const PluginFacts& facts) {
  if (facts.kind == "provider") return provider_trials(facts);
  if (facts.kind == "import") return import_trials(facts);
  if (facts.kind == "ops") return ops_trials(facts);
  if (facts.kind == "service") return service_trials(facts);
  if (facts.kind == "executor") return executor_trials(facts);
  return {};
}

void print_json(const std::string& file, const TrialResult& first, Account& account, bool passed) {
  Json json;
  json.object().field("file", file).field("passed", passed);
  for (const char* key : {"kind", "name", "version"}) {
    const auto found = first.facts.find(key);
    json.field(key, found == first.facts.end() ? "" : found->second);
  }
  json.key("rules").list();
  for (const Rule& rule : rules()) {
    const Outcome& outcome = account.of(rule.name);
    if (!outcome.tested) continue;
    json.object().field("rule", rule.name).field("passed", outcome.found.empty());
    json.key("found").list();
    for (const std::string& found : outcome.found) json.value(found);
    json.end();
    json.field("demand", rule.demand).field("fix", outcome.found.empty() ? "" : rule.fix).end();
  }
  json.end().key("not_tested").list();
  for (const std::string& what : account.skipped()) json.value(what);
  json.end().end().print();
}

void print_text(Account& account) {
  constexpr size_t kShown = 3;
  size_t passed = 0, failed = 0;
  for (const Rule& rule : rules()) {
    const Outcome& outcome = account.of(rule.name);
    if (!outcome.tested) continue;
    const bool good = outcome.found.empty();
    ++(good ? passed : failed);
    std::printf("%s %-20.*s %.*s\n", good ? "ok    " : "FAILED", static_cast<int>(rule.name.size()),
                rule.name.data(), static_cast<int>(rule.demand.size()), rule.demand.data());
    for (size_t i = 0; i < outcome.found.size() && i < kShown; ++i)
      std::printf("       found: %s\n", outcome.found[i].c_str());
    if (outcome.found.size() > kShown)
      std::printf("       and %zu more\n", outcome.found.size() - kShown);
    if (!good)
      std::printf("       fix:   %.*s\n", static_cast<int>(rule.fix.size()), rule.fix.data());
  }
  for (const std::string& what : account.skipped()) std::printf("note   %s\n", what.c_str());
  std::printf("%zu rules kept, %zu broken\n", passed, failed);
}

}  // namespace

int check_plugin_command(const CheckPluginArgs& args) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(args.file, error))
    throw UsageError("'" + args.file + "' is not a file");
  PluginFacts facts;
  facts.path = std::filesystem::absolute(args.file).string();
  Account account;
  const TrialResult first = account.run(
      {"description", [&](Trial& trial) { check_description(trial, facts.path); }}, kFewSeconds);
  if (first.facts.count("kind") != 0) {
    facts.kind = first.facts.at("kind");
    facts.features = std::strtoull(first.facts.at("features").c_str(), nullptr, 10);
    facts.min_minor =
        static_cast<uint32_t>(std::strtoul(first.facts.at("min_minor").c_str(), nullptr, 10));
    for (const NamedTrial& trial : description_trials(facts)) account.run(trial, kFewSeconds);
    const std::vector<NamedTrial> trials = trials_of(facts);
    if (trials.empty()) account.skip("what is special to plug-ins of kind '" + facts.kind + "'");
    for (const NamedTrial& trial : trials) account.run(trial, kSeconds);
  }
  bool passed = true;
  for (const Rule& rule : rules()) passed &= account.of(rule.name).found.empty();
  if (args.json) {
    print_json(args.file, first, account, passed);
  } else {
    print_text(account);
  }
  return passed ? 0 : 1;
}

}  // namespace cli
