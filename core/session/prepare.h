// SPDX-License-Identifier: Apache-2.0
//
// The graph that a session plans, made of its model: the client's passes, canonical form, then the
// runtime's own passes. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/compiled_graph.h"
#include "core/model/model.h"
#include "core/model/ports.h"
#include "core/op/engine/operator_set.h"
#include "core/session/client_pass.h"
#include "core/verify/verify.h"

namespace pfrt {

// "none" 0, "basic" 1, "extended" 2, "all" 3.
int level_number(std::string_view level);

class Preparation {
 public:
  // The providers that a graph is made for, the progress that may stop it and hears of passes, and
  // inputs to verify with besides the samples of the config (null: none).
  struct Call {
    const std::vector<Candidate>& candidates;
    const Progress& progress;
    SampleSource* samples = nullptr;
  };
  // Makes the services with which passes compile and run a graph.
  using Services = std::function<Result<CompileServices>(
      std::vector<Candidate> candidates, const Graph& graph, const Progress& progress)>;
  struct Config {
    std::string level;
    bool verbose = false, verify = false;
    std::vector<std::string> skip_passes;
    std::vector<std::string> extra_outputs;                 // inner values that become outputs
    std::vector<std::shared_ptr<const ClientPass>> passes;  // the passes of the level, in order
    std::vector<NamedValues> samples;                       // inputs to verify with, too
    OperatorSet::Ptr operators;                             // beside the built-in ones; may be null
    // Further dependencies besides the model, the above and the providers.
    std::string key;
  };
  Preparation(std::shared_ptr<const Model> model, Config config, Services services, Logger* logger)
      : model_(std::move(model)),
        config_(std::move(config)),
        services_(std::move(services)),
        logger_(logger) {}

  const Config& config() const { return config_; }

  // Differences from the inputs that the model declares.
  struct Inputs {
    std::vector<std::string> fed;  // names of inputs that are fed in place of their constants
    bool untied = false;           // no two dimensions are equal because they have one name
  };
  // Sessions that ask for the same result share it. |notes| gets remarks of clients' passes and of
  // verification, for people.
  Result<std::shared_ptr<const OptimisedGraph>> prepare(const Call& call, const Inputs& inputs,
                                                        std::vector<std::string>& notes) const;

 private:
  Result<std::shared_ptr<Graph>> run_client_passes(const Call& call, const Model& model,
                                                   std::shared_ptr<Graph> graph, Verifier* verifier,
                                                   std::vector<std::string>& notes) const;
  Result<OptimisedGraph> optimise(const Call& call, const Graph& canonical,
                                  Verifier* verifier) const;
  std::string optimised_key(const std::vector<Candidate>& candidates) const;
  // Null when verification is off.
  Result<std::unique_ptr<Verifier>> make_verifier(const Call& call, const Model& model) const;
  // The change of results by a client's pass that made |after| of |before|; empty = none.
  Result<std::string> difference(Verifier& verifier, const Graph& before, const Graph& after) const;
  Status add_extra_outputs(Graph& graph) const;

  const std::shared_ptr<const Model> model_;
  const Config config_;
  const Services services_;
  Logger* const logger_;
};

}  // namespace pfrt
