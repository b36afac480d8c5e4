// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/run_verified.h"

#include <algorithm>
#include <optional>

#include "core/ir/verify.h"

namespace pfrt {
namespace {

// Number of wrong places of a rule after which it is blocked everywhere.
constexpr uint64_t kMostOfOneRule = 4;
// Number of findings in a pass after which it is undone completely.
constexpr size_t kMostOfOnePass = 64;

struct Attempt {
  std::shared_ptr<Graph> graph;
  PassResult result;
  std::vector<Application> done;
  std::string difference;  // to the graph before; empty = none
};

class Verification {
 public:
  Verification(Pass& pass, std::shared_ptr<const Graph> before, PassContext& context)
      : pass_(pass), before_(std::move(before)), context_(context), folding_(context.folding) {}

  // Runs the pass with at most |limit| rewrites. Causes that stop the caller are failures; any
  // other failure counts as a difference.
  Result<Attempt> attempt(uint64_t limit = UINT64_MAX) {
    Attempt out;
    out.graph = before_->clone();
    context_.folding = folding_;
    context_.gate.begin(pass_.name(), limit);
    Status status = pass_.run(out.graph, context_, out.result);
    out.done = context_.gate.done();
    if (status.ok() && !out.result.modified) {
      out.graph = nullptr;
      return out;
    }
    if (status.ok()) status = verify(*out.graph);
    if (status.code() == Code::kCANCELLED || status.code() == Code::kDEADLINE ||
        status.code() == Code::kOUT_OF_MEMORY)
      return status;
    if (!status.ok()) {
      out.difference = message("afterwards: ", status.message());
      return out;
    }
    PFRT_ASSIGN(out.difference, context_.difference(before_, out.graph));
    return out;
  }

  // The first rewrite after which results differ while they did not just before: whatever else is
  // wrong, that one is. Nothing when the fault is not in a rewrite that asked the gate, or when the
  // pass does not repeat itself. |how| gets the difference.
  Result<std::optional<Application>> culprit(const Attempt& whole, std::string& how) {
    PFRT_ASSIGN(const Attempt nothing, attempt(0));
    if (!nothing.difference.empty() || whole.done.empty()) return std::optional<Application>();
    // The first |right| rewrites keep results right, the first |wrong| do not.
    uint64_t right = 0, wrong = whole.done.size();
    how = whole.difference;
    while (wrong - right > 1) {
      const uint64_t middle = right + (wrong - right) / 2;
      PFRT_ASSIGN(const Attempt part, attempt(middle));
      if (part.done.size() != middle ||
          !std::equal(part.done.begin(), part.done.end(), whole.done.begin()))
        return std::optional<Application>();
      (part.difference.empty() ? right : wrong) = middle;
      if (!part.difference.empty()) how = part.difference;
    }
    return std::optional(whole.done[wrong - 1]);
  }

 private:
  Pass& pass_;
  const std::shared_ptr<const Graph> before_;
  PassContext& context_;
  const FoldingBudget folding_;  // each attempt has what was left before the pass
};

}  // namespace

Status run_verified(Pass& pass, std::shared_ptr<Graph>& graph, PassContext& context,
                    PassResult& result, std::vector<Application>& undone) {
  Verification verification(pass, graph, context);
  const auto undo = [&](Application what, const std::string& text) {
    context.gate.block(what);
    undone.push_back(std::move(what));
    result.warnings.push_back(message("verification: ", text));
  };
  std::string how;
  for (size_t found = 0;; ++found) {
    PFRT_ASSIGN(Attempt whole, verification.attempt());
    if (whole.difference.empty()) {
      if (whole.graph) graph = std::move(whole.graph);
      result.add(whole.result);
      return {};
    }
    how = whole.difference;
    std::optional<Application> culprit;
    if (found < kMostOfOnePass) {
      PFRT_ASSIGN(culprit, verification.culprit(whole, how));
    }
    if (!culprit) break;
    undo(*culprit, message(culprit->rule, " at '", culprit->at, "' in ", culprit->pass,
                           " changes results (", how, "); undone"));
    const auto of_rule = std::ranges::count_if(undone, [&](const Application& a) {
      return a.pass == culprit->pass && a.rule == culprit->rule;
    });
    if (static_cast<uint64_t>(of_rule) == kMostOfOneRule)
      undo({culprit->pass, culprit->rule, ""},
           message(culprit->rule, " in ", culprit->pass, " was wrong at ", kMostOfOneRule,
                   " places; it is not applied any more"));
  }
  undo({std::string(pass.name()), "", ""},
       message(pass.name(), " changes results (", how, ") and was undone as a whole"));
  return {};
}

}  // namespace pfrt
