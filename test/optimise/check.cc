// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "test/optimise/noise.h"

namespace pfrt_optimise {
namespace {

using pyflame_rt::InferenceSession;
using pyflame_rt::OptLevel;
using pyflame_rt::SessionOptions;

constexpr int kNoisyRuns = 16;
constexpr double kSlackFactor = 4;

SessionOptions options_for(const Config& config) {
  SessionOptions options;
  options.optimization_level = config.level;
  options.num_threads = 1;
  if (!config.skip_passes.empty()) options.extra["skip_passes"] = config.skip_passes;
  return options;
}

bool has_op(const GraphSpec& graph, const std::string& op) {
  for (const NodeSpec& node : graph.nodes) {
    if (node.op == op) return true;
    for (const BodySpec& body : node.bodies)
      if (has_op(body.graph, op)) return true;
  }
  return false;
}

}  // namespace

const std::vector<Config>& configs() {
  static const std::vector<Config> all = [] {
    // Configuration "none" runs all feeds in one session; the reference has a session for each
    // feed.
    std::vector<Config> out = {{"none", OptLevel::None, ""},
                               {"basic", OptLevel::Basic, ""},
                               {"extended", OptLevel::Extended, ""},
                               {"all", OptLevel::All, ""}};
    const std::vector<std::string> passes = {"ConstantFoldingPass", "DeadCodeEliminationPass",
                                             "CSEPass", "OperatorFusionPass",
                                             "LayoutOptimizationPass"};
    for (const std::string& pass : passes) {
      std::string others;
      for (const std::string& other : passes)
        if (other != pass) others += (others.empty() ? "" : ",") + other;
      out.push_back({"only:" + pass, OptLevel::All, others});
      out.push_back({"without:" + pass, OptLevel::All, pass});
    }
    return out;
  }();
  return all;
}

const Config& config_named(const std::string& name) {
  std::string known;
  for (const Config& config : configs()) {
    if (config.name == name) return config;
    known += " " + config.name;
  }
  throw pyflame_rt::InputError("no configuration '" + name + "'; there are" + known);
}

std::optional<std::string> difference(const Tensor& wanted, const Tensor& got,
                                      const Tolerance& tolerance) {
  std::ostringstream out;
  if (wanted.dtype() != got.dtype() || wanted.shape() != got.shape()) {
    out << "it is " << pyflame_rt::dtype_name(got.dtype())
        << pyflame_rt::detail::shape_text(got.shape()) << ", expected "
        << pyflame_rt::dtype_name(wanted.dtype()) << pyflame_rt::detail::shape_text(wanted.shape());
    return out.str();
  }
  double largest = 0;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double value = std::abs(element(wanted, i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double a = element(wanted, i), b = element(got, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double allowed = tolerance.absolute + tolerance.relative * largest;
    if (tolerance.slack != nullptr) allowed += (*tolerance.slack)[static_cast<size_t>(i)];
    if (std::abs(a - b) <= allowed || std::isinf(allowed)) continue;
    out.precision(9);
    out << "element " << i << " of " << wanted.num_elements() << " is " << b << ", expected " << a
        << " within " << allowed;
    return out.str();
  }
  return std::nullopt;
}

Reference::Reference(const ModelSpec& model) : spec_(model) {
  size_t feed = 0;
  FailureKind kind = FailureKind::Refused;
  try {
    model_ = pyflame_rt::Model::from_graph(build(model));
    refused_ = true;
    const SessionOptions none = options_for({"none", OptLevel::None, ""});
    const InferenceSession session(*model_, none);
    kind = FailureKind::RunFailed;
    refused_ = false;
    for (; feed < model.feeds.size(); ++feed) {
      results_.emplace_back();
      try {
        results_.back() = InferenceSession(*model_, none).run({}, model.feeds[feed]);
      } catch (const std::exception&) {
        if (feed == 0) throw;
      }
    }
  } catch (const std::exception& error) {
    failure_ = {FailureKind::Reference, feed, 0,
                std::string(kind == FailureKind::Refused ? "refused at level none: "
                                                         : "run at level none: ") +
                    error.what()};
  }
  slack_.resize(model.feeds.size());
}

Tolerance Reference::tolerance(const Tensor& value) const {
  const double depth = 1 + static_cast<double>(node_count(spec_.graph)) / 10;
  if (value.dtype() == DType::Float32) return {1e-6, 1e-5 * depth};
  if (value.dtype() == DType::Float16) return {1e-4, 2e-3 * depth};
  const bool quantised = value.dtype() == DType::Int8 || value.dtype() == DType::UInt8;
  return {quantised && has_op(spec_.graph, "QuantizeLinear") ? 1.0 : 0.0, 0};
}

const std::vector<double>& Reference::slack(size_t feed, size_t output) const {
  std::vector<std::vector<double>>& slack = slack_[feed];
  if (!slack.empty()) return slack[output];
  const std::vector<Tensor>& wanted = *results_[feed];
  for (const Tensor& value : wanted)
    slack.emplace_back(static_cast<size_t>(value.num_elements()), 0.0);
  for (int run = 0; run < kNoisyRuns; ++run) {
    std::vector<Tensor> noisy;
    try {
      const InferenceSession session(build(with_noise(spec_, static_cast<uint64_t>(run))),
                                     options_for({"none", OptLevel::None, ""}));
      noisy = session.run({}, spec_.feeds[feed]);
    } catch (const std::exception&) {
      continue;  // noise disturbs what has to be exact there
    }
    for (size_t o = 0; o < wanted.size(); ++o) {
      if (noisy[o].shape() != wanted[o].shape()) continue;
      for (int64_t i = 0; i < wanted[o].num_elements(); ++i) {
        const double a = element(wanted[o], i), b = element(noisy[o], i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (run % 2 == 1 && !std::isfinite(b)) continue;  // an infinity on the way made it so
        const double moved = kSlackFactor * std::abs(a - b);
        double& most = slack[o][static_cast<size_t>(i)];
        most = std::max(most, std::isnan(moved) ? std::numeric_limits<double>::infinity() : moved);
      }
    }
  }
  return slack[output];
}

std::optional<Failure> Reference::check(const Config& config) const {
  if (failure_ && (!spec_.faulty || !model_)) return spec_.faulty ? std::nullopt : failure_;
  Failure failure{FailureKind::Refused, 0, 0, {}};
  try {
    const InferenceSession session(*model_, options_for(config));
    if (refused_) return Failure{FailureKind::Accepted, 0, 0, "accepted, but " + failure_->message};
    failure.kind = FailureKind::RunFailed;
    for (size_t feed = 0; feed < results_.size(); ++feed) {
      if (!results_[feed]) continue;
      failure.feed = feed;
      const std::vector<Tensor> got = session.run({}, spec_.feeds[feed]);
      for (size_t output = 0; output < got.size(); ++output) {
        const Tensor& wanted = (*results_[feed])[output];
        Tolerance allowed = tolerance(wanted);
        if (!difference(wanted, got[output], allowed)) continue;
        if (wanted.shape() == got[output].shape()) allowed.slack = &slack(feed, output);
        if (const auto text = difference(wanted, got[output], allowed)) {
          return Failure{FailureKind::Differs, feed, output,
                         "output " + spec_.graph.outputs[output] + " of feed " +
                             std::to_string(feed) + ": " + *text};
        }
      }
    }
  } catch (const std::exception& error) {
    // Level none finds a fault in its first run; other levels may find it when the session is made.
    if (refused_ || (spec_.faulty && failure_)) return std::nullopt;
    failure.message =
        std::string(failure.kind == FailureKind::Refused ? "refused: " : "run: ") + error.what();
    return failure;
  }
  return std::nullopt;
}

std::optional<Failure> failure_of(const ModelSpec& model, const Config& config) {
  return Reference(model).check(config);
}

}  // namespace pfrt_optimise
