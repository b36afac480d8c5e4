// SPDX-License-Identifier: Apache-2.0
//
// Holds what a session gives at some optimisation level against what it gives at level none.
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
// InputError when there is none of that name.
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

// How much a value may differ: |a-b| <= absolute + relative * max|b|, and more by |slack| an
// element where there is one.
struct Tolerance {
  double absolute = 0, relative = 0;
  const std::vector<double>* slack = nullptr;
};
// Why |got| is not |wanted|; nullopt when it is. NaN is equal to NaN alone.
std::optional<std::string> difference(const Tensor& wanted, const Tensor& got,
                                      const Tolerance& tolerance);

// One model with its results at level none. Results that differ by more than rounding usually
// explains are held against runs of the same model with noise after each node: elements that such
// noise moves may be off by a few times as much.
class Reference {
 public:
  explicit Reference(const ModelSpec& model);
  std::optional<Failure> check(const Config& config) const;
  // By feed, nothing for feeds other than the first that level none refuses.
  const std::vector<std::optional<std::vector<Tensor>>>& results() const { return results_; }

 private:
  Tolerance tolerance(const Tensor& value) const;
  const std::vector<double>& slack(size_t feed, size_t output) const;

  const ModelSpec& spec_;
  std::optional<pyflame_rt::Model> model_;
  std::optional<Failure> failure_;  // of level none
  bool refused_ = false;            // by level none, whose model was loaded
  std::vector<std::optional<std::vector<Tensor>>> results_;
  mutable std::vector<std::vector<std::vector<double>>> slack_;  // by feed and output
};

// What failed as |kind| with |config|, or nothing.
std::optional<Failure> failure_of(const ModelSpec& model, const Config& config);

}  // namespace pfrt_optimise
