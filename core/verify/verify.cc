// SPDX-License-Identifier: Apache-2.0
#include "core/verify/verify.h"

#include <algorithm>
#include <chrono>

#include "core/base/os/cpu.h"
#include "core/verify/expectation.h"
#include "core/verify/trial_inputs.h"
#include "core/verify/trial_run.h"

namespace pfrt {
namespace {

constexpr uint64_t kSamples = 3;  // perturbed runs that show the effect of rounding

// Numbers of trial runs that |before| accepts, of one shape and of several, and of attempts at
// them.
constexpr size_t kVerifyTrials = 4, kDynamicTrials = 8;
constexpr uint32_t kVerifyAttempts = 12, kDynamicAttempts = 48;
// Number of further values of the same shapes that are tried when a difference was seen: one run
// may be on the edge where rounding decides, two are not.
constexpr uint32_t kConfirmations = 4;
// A run may take this many times longer than before.
constexpr double kSlower = 20;

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (ValueId id : values) out.push_back(graph.at(id).name);
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

}  // namespace

struct Verifier::Trial {
  std::vector<ValuePtr> inputs;  // in the order of the reference's inputs
  Expectation expectation;
  double seconds;
  bool given = false;
  uint32_t variant = 0, draw = 0;
  bool has_others = false;
  std::vector<std::unique_ptr<Trial>> others;  // same variant, drawn again; made when needed
};

struct Verifier::Reference {
  std::shared_ptr<const Graph> graph;
  std::unique_ptr<CompiledGraph> compiled;
  // The perturbed graphs; several, since one may happen to round as the graph itself does. Fewer
  // where one cannot be compiled.
  std::vector<std::unique_ptr<CompiledGraph>> moved;
  std::vector<OutputTraits> traits;
  std::vector<std::string> inputs, outputs;
  std::unique_ptr<TrialInputs> maker;
  std::vector<std::unique_ptr<Trial>> trials;
};

Verifier::Verifier(Context context) : context_(std::move(context)) {}
Verifier::~Verifier() = default;

void Verifier::warn(const std::string& text) {
  if (warnings_.insert(text).second && context_.logger)
    context_.logger->log(PFRT_LOG_WARNING, "verification: ", text);
}

Result<std::unique_ptr<CompiledGraph>> Verifier::compile(std::shared_ptr<const Graph> graph) const {
  return CompiledGraph::create(std::move(graph), context_);
}

Result<std::unique_ptr<Verifier::Trial>> Verifier::attempt(std::vector<ValuePtr> inputs) {
  std::vector<ValuePtr> outputs;
  const auto start = std::chrono::steady_clock::now();
  Status status =
      run_trial(*reference_->compiled, inputs, context_.seconds, context_.progress, outputs);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PFRT_TRY(context_.progress.stop());
  if (!status.ok()) return std::unique_ptr<Trial>();
  auto trial = std::make_unique<Trial>(Trial{std::move(inputs),
                                             Expectation(std::move(outputs), reference_->traits),
                                             seconds,
                                             false,
                                             0,
                                             0,
                                             false,
                                             {}});
  for (uint64_t sample = 0; sample < reference_->moved.size(); ++sample) {
    std::vector<ValuePtr> moved;
    for (const ValuePtr& input : trial->inputs) {
      PFRT_ASSIGN(ValuePtr one, perturbed(input, ~(moved.size() * kSamples + sample)));
      moved.push_back(std::move(one));
    }
    status =
        run_trial(*reference_->moved[sample], moved, context_.seconds, context_.progress, outputs);
    PFRT_TRY(context_.progress.stop());
    if (status.ok()) trial->expectation.allow(outputs);
  }
  return trial;
}

Result<std::unique_ptr<Verifier::Trial>> Verifier::attempt(uint32_t variant, uint32_t draw) {
  auto inputs = reference_->maker->make(variant, draw);
  if (!inputs.ok()) return std::unique_ptr<Trial>();
  PFRT_ASSIGN(std::unique_ptr<Trial> trial, attempt(inputs.take()));
  if (trial) {
    trial->variant = variant;
    trial->draw = draw;
  }
  return trial;
}

Result<std::unique_ptr<Verifier::Trial>> Verifier::attempt_given(const NamedValues& sample) {
  std::vector<ValuePtr> inputs;
  for (const std::string& name : reference_->inputs) {
    const auto found = std::ranges::find(sample, name, &std::pair<std::string, ValuePtr>::first);
    if (found != sample.end()) inputs.push_back(found->second);
  }
  if (inputs.size() != reference_->inputs.size()) {
    warn("given inputs that are not all the inputs were left out");
    return std::unique_ptr<Trial>();
  }
  PFRT_ASSIGN(std::unique_ptr<Trial> trial, attempt(std::move(inputs)));
  if (trial)
    trial->given = true;
  else
    warn("the graph refuses given inputs, which were left out");
  return trial;
}

Status Verifier::add_samples() {
  for (const NamedValues& sample : context_.samples) {
    PFRT_ASSIGN(std::unique_ptr<Trial> trial, attempt_given(sample));
    if (trial) reference_->trials.push_back(std::move(trial));
  }
  return {};
}

Status Verifier::add_trials() {
  Reference& r = *reference_;
  const bool dynamic = r.maker->dynamic();
  const size_t wanted = r.inputs.empty() ? 1 : dynamic ? kDynamicTrials : kVerifyTrials;
  const uint32_t attempts = r.inputs.empty() ? 1 : dynamic ? kDynamicAttempts : kVerifyAttempts;
  if (auto first = r.maker->make(0, 0); !first.ok() && ends_all(first.status().code()))
    return first.take_status();
  size_t made = 0;
  for (uint32_t variant = 0; variant < attempts && made < wanted; ++variant) {
    PFRT_ASSIGN(std::unique_ptr<Trial> trial, attempt(variant, 0));
    if (!trial) continue;
    r.trials.push_back(std::move(trial));
    ++made;
  }
  return {};
}

Status Verifier::refer_to(const std::shared_ptr<const Graph>& before) {
  if (reference_ && reference_->graph == before) return {};
  reference_ = std::make_unique<Reference>();
  Reference& r = *reference_;
  r.graph = before;
  r.traits = output_traits(*before);
  r.outputs = names_of(*before, before->outputs);
  std::vector<std::string> random;
  for (size_t i = 0; i < r.outputs.size(); ++i)
    if (r.traits[i].random) random.push_back(r.outputs[i]);
  if (!random.empty())
    warn(message("what is random cannot be compared: ", joined(random), " left unverified"));
  if (random.size() == r.outputs.size()) return {};
  auto compiled = compile(before);
  PFRT_TRY(context_.progress.stop());
  if (!compiled.ok()) {
    if (ends_all(compiled.status().code())) return compiled.take_status();
    warn(message("the graph cannot be run, so that nothing was verified: ",
                 compiled.status().message()));
    return {};
  }
  r.compiled = compiled.take();
  r.inputs = names_of(*before, r.compiled->inputs());
  r.maker = std::make_unique<TrialInputs>(*before, r.compiled->inputs());
  // If no perturbed graph can be compiled, only the tolerance is allowed.
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    PFRT_ASSIGN(std::shared_ptr<Graph> moved, perturbed(*before, sample));
    auto made = compile(std::move(moved));
    PFRT_TRY(context_.progress.stop());
    if (made.ok())
      r.moved.push_back(made.take());
    else if (ends_all(made.status().code()))
      return made.take_status();
  }
  PFRT_TRY(add_samples());
  PFRT_TRY(add_trials());
  if (r.trials.empty() && !context_.source)
    warn("no inputs that could be made up were accepted by the graph: nothing was verified");
  return {};
}

Result<std::string> Verifier::compare(const Trial& trial, CompiledGraph& after) {
  std::vector<ValuePtr> inputs, outputs;
  for (ValueId id : after.inputs()) {
    const auto at = std::ranges::find(reference_->inputs, after.graph().at(id).name);
    if (at == reference_->inputs.end())
      return message("there is an input '", after.graph().at(id).name, "' more");
    inputs.push_back(trial.inputs[static_cast<size_t>(at - reference_->inputs.begin())]);
  }
  ++runs_;
  Status status = run_trial(after, inputs, context_.seconds + kSlower * trial.seconds,
                            context_.progress, outputs);
  PFRT_TRY(context_.progress.stop());
  if (ends_all(status.code())) return status;
  const std::string text = status.ok() ? trial.expectation.difference(*reference_->graph, outputs)
                                       : message("the run fails: ", status.message());
  if (text.empty()) return text;
  return message(text, "; inputs: ",
                 describe_inputs(*reference_->graph, reference_->compiled->inputs(), trial.inputs),
                 trial.given ? ", given" : message(", made up, ", trial.variant, "/", trial.draw));
}

Result<bool> Verifier::seen_again(Trial& trial, CompiledGraph& after) {
  if (trial.given || reference_->inputs.empty()) return true;
  if (!trial.has_others) {
    for (uint32_t draw = 1; draw <= kConfirmations; ++draw) {
      PFRT_ASSIGN(std::unique_ptr<Trial> other, attempt(trial.variant, draw));
      if (other) trial.others.push_back(std::move(other));
    }
    trial.has_others = true;
  }
  for (const auto& other : trial.others) {
    PFRT_ASSIGN(const std::string text, compare(*other, after));
    if (!text.empty()) return true;
  }
  return trial.others.empty();
}

Result<std::string> Verifier::compare_source(CompiledGraph& after) {
  PFRT_TRY(context_.source->rewind());
  for (;;) {
    PFRT_TRY(context_.progress.stop());
    PFRT_ASSIGN(const std::optional<NamedValues> sample, context_.source->next());
    if (!sample) return std::string();
    PFRT_ASSIGN(const std::unique_ptr<Trial> trial, attempt_given(*sample));
    if (!trial) continue;
    PFRT_ASSIGN(std::string text, compare(*trial, after));
    if (!text.empty()) return text;
  }
}

Result<std::string> Verifier::difference(const std::shared_ptr<const Graph>& before,
                                         const std::shared_ptr<const Graph>& after) {
  PFRT_TRY(context_.progress.stop());
  PFRT_TRY(refer_to(before));
  const Reference& r = *reference_;
  const std::vector<std::string> outputs = names_of(*after, after->outputs);
  if (outputs != r.outputs)
    return message("the outputs are ", joined(outputs), " instead of ", joined(r.outputs));
  if (const auto inputs = names_of(*after, after->inputs);
      inputs != names_of(*before, before->inputs))
    return message("the inputs are ", joined(inputs), " instead of ",
                   joined(names_of(*before, before->inputs)));
  if (!r.compiled || (r.trials.empty() && !context_.source)) return std::string();
  auto compiled = compile(after);
  PFRT_TRY(context_.progress.stop());
  if (!compiled.ok()) {
    if (ends_all(compiled.status().code())) return compiled.take_status();
    return message("the graph cannot be run any more: ", compiled.status().message());
  }
  ++comparisons_;
  for (const auto& trial : r.trials) {
    PFRT_ASSIGN(std::string text, compare(*trial, **compiled));
    if (text.empty()) continue;
    PFRT_ASSIGN(const bool again, seen_again(*trial, **compiled));
    if (again) return text;
  }
  return context_.source ? compare_source(**compiled) : std::string();
}

std::vector<std::string> Verifier::notes() const {
  std::vector<std::string> out;
  out.push_back(message("verification: ", comparisons_,
                        " graphs compared with what they were made of", ", in ", runs_, " runs"));
  for (const std::string& warning : warnings_) out.push_back("verification: " + warning);
  return out;
}

}  // namespace pfrt
