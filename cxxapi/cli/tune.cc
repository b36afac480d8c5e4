// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pyflame_rt/session.hpp>
#include <sstream>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/progress.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::ExplainStep;
using pyflame_rt::Explanation;
using pyflame_rt::InferenceSession;

// Returns the text that follows "tuned: " or "not tuned: " in a step's reason; empty where neither
// is there.
std::string outcome_of(const ExplainStep& step) {
  const size_t at = step.reason.find("tuned: ");
  if (at == std::string::npos) return {};
  const bool no = at >= 4 && step.reason.compare(at - 4, 4, "not ") == 0;
  return no ? step.reason.substr(at - 4) : step.reason.substr(at + 7);
}

// Returns "band=28 positions=512", without the figures that follow.
std::string parameters_of(const ExplainStep& step) {
  return step.tuning.substr(0, step.tuning.find(" gain="));
}

double number_in(const ExplainStep& step, const std::string& name) {
  const size_t at = step.tuning.find(" " + name + "=");
  if (at == std::string::npos) return 0;
  std::istringstream text(step.tuning.substr(at + name.size() + 2));
  double number = 0;
  text >> number;
  return number;
}

void print_json(const Explanation& explanation, const std::string& folder, double seconds,
                const std::string& unrun) {
  Json json;
  json.object().field("cache_dir", folder).field("seconds", seconds).field("not_run", unrun);
  json.key("steps").list();
  for (size_t i = 0; i < explanation.steps.size(); ++i) {
    const ExplainStep& step = explanation.steps[i];
    const std::string outcome = outcome_of(step);
    if (outcome.empty()) continue;
    json.object().field("step", i).field("nodes", step.nodes).field("kernel", step.kernel);
    json.field("parameters", parameters_of(step)).field("outcome", outcome);
    json.field("gain", number_in(step, "gain"));
    json.field("measured", static_cast<uint64_t>(number_in(step, "measured"))).end();
  }
  json.end().end().print();
}

void print_text(const Explanation& explanation, const std::string& folder, double seconds,
                const std::string& unrun) {
  Table table({"step", "nodes", "kernel", "divided by", "outcome"});
  uint64_t shown = 0, steps = 0, measured = 0;
  for (size_t i = 0; i < explanation.steps.size(); ++i) {
    const ExplainStep& step = explanation.steps[i];
    const std::string outcome = outcome_of(step);
    if (outcome.empty()) continue;
    ++shown;
    if (outcome != "no other blocking") ++steps;
    measured += static_cast<uint64_t>(number_in(step, "measured"));
    table.add({std::to_string(i), step.nodes, step.kernel, parameters_of(step), outcome});
  }
  if (shown > 0) table.print(60);
  if (!unrun.empty()) std::printf("not run on random inputs: %s\n", unrun.c_str());
  std::printf("%llu of %zu steps can be divided in several ways; %llu were measured, in %s\n",
              static_cast<unsigned long long>(steps), explanation.steps.size(),
              static_cast<unsigned long long>(measured), time_text(seconds).c_str());
  if (steps == 0) return;
  if (folder.empty())
    std::printf("nothing is kept: give a folder by --cache-dir or PFRT_CACHE_DIR\n");
  else
    std::printf("kept in %s; sessions with tune 'on' or 'cached' use it\n", folder.c_str());
}

}  // namespace

int tune_command(const TuneArgs& args) {
  using Clock = std::chrono::steady_clock;
  if (!args.budget.empty() && !(std::strtod(args.budget.c_str(), nullptr) > 0))
    throw UsageError("--budget " + args.budget + ": it must be a number of seconds above 0");
  pyflame_rt::SessionOptions options = session_options(args.session);
  options.tune = "on";
  if (!args.budget.empty()) options.extra["tune_budget_s"] = args.budget;
  if (!args.search.empty()) options.extra["tune_search"] = args.search;
  if (!args.iterations.empty()) options.extra["tune_iterations"] = args.iterations;
  const char* const variable = ::secure_getenv("PFRT_CACHE_DIR");
  std::string folder = !args.folder.empty() ? args.folder : variable ? variable : "";
  if (folder == "off") folder.clear();
  options.cache_dir = args.folder;
  const auto start = Clock::now();
  std::string unrun;
  Explanation explanation;
  {
    ProgressLine progress;
    progress.show("loading " + args.model);
    const InferenceSession session(args.model, options);
    const Dims dims = parse_dims(args.dims);
    check_dims(session.get_inputs(), dims);
    progress.show("measuring the steps of " + args.model);
    // Plans, and so measures, the shapes of the inputs.
    try {
      const Feeder feeder(session.get_inputs(), args.inputs, dims);
      (void)fit_sizes(feeder, run_once(session));
    } catch (const std::exception& error) {
      if (!args.inputs.empty()) throw;
      unrun = one_line(error.what());
    }
    explanation = session.explain();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  (args.json ? print_json : print_text)(explanation, folder, seconds, unrun);
  return 0;
}

}  // namespace cli
