// SPDX-License-Identifier: Apache-2.0
//
// Compares the results of a session at some optimisation level with those at level none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/optimise/model.h"

namespace pfrt_optimise {

struct Config {
  std::string name;  // "all", "only:CSEPass", "without:CSEPass"
  pyflame_rt::OptLevel level;
  std::string skip_passes;  // comma-separated
};
const std::vector<Config>& configs();
// Throws InputError when no configuration has that name.
const Config& config_named(const std::string& name);

enum class FailureKind {
  Reference,  // level none itself refuses the model, or fails to run it
  Refused,    // the session is not made, unlike that of level none
  Accepted,   // the session is made, unlike that of level none
  RunFailed,
  Differs,
};

struct Failure {
  FailureKind kind = FailureKind::Differs;
  size_t feed = 0;
  size_t output = 0;
  std::string message;
};

// Limit of a difference: |a-b| <= absolute + relative * max|b|, plus the element's |slack| where
// there is one.
struct Tolerance {
  double absolute = 0, relative = 0;
  const std::vector<double>* slack = nullptr;
};
// Returns the difference, or nullopt when there is none. NaN equals NaN alone.
std::optional<std::string> difference(const Tensor& wanted, const Tensor& got,
                                      const Tolerance& tolerance);

// A model and its results at level none. When other results differ by more than rounding usually
// explains, the model is run with noise after each node: elements that such noise moves may be off
// by a few times as much.
class Reference {
 public:
  explicit Reference(const ModelSpec& model);
  std::optional<Failure> check(const Config& config) const;
  // Results by feed; none for a later feed that level none refuses.
  const std::vector<std::optional<std::vector<Tensor>>>& results() const { return results_; }

 private:
  Tolerance tolerance(const Tensor& value) const;
  const std::vector<double>& slack(size_t feed, size_t output) const;

  const ModelSpec& spec_;
  std::optional<pyflame_rt::Model> model_;
  std::optional<Failure> failure_;  // failure of level none
  bool refused_ = false;            // whether level none refused the model, which could be loaded
  std::vector<std::optional<std::vector<Tensor>>> results_;
  mutable std::vector<std::vector<std::vector<double>>> slack_;  // by feed and output
};

// Returns the failure of |config|, or nothing.
std::optional<Failure> failure_of(const ModelSpec& model, const Config& config);

}  // namespace pfrt_optimise
