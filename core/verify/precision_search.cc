// SPDX-License-Identifier: Apache-2.0
#include "core/verify/precision_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "core/base/os/cpu.h"
#include "core/verify/elements.h"
#include "core/verify/trial_inputs.h"
#include "core/verify/trial_run.h"

namespace pfrt {
namespace {

constexpr size_t kTrials = 4;          // inputs that are generated
constexpr size_t kTrialsOfOne = 2;     // the first inputs, on which each node is tried alone
constexpr size_t kAll = SIZE_MAX;      // inputs, on which the nodes taken are measured together
constexpr uint32_t kAttempts = 24;     // to generate inputs that the graph accepts
constexpr uint64_t kMostSeconds = 20;  // for a run, since loops may be endless
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::string_view kProducts[] = {
    "MatMul", "Gemm", "Conv", "ConvTranspose", "Attention", "LSTM", "GRU", "RNN", "Einsum",
};

// The largest error of an element, relative to the tensor's largest magnitude; 0 = the same bits
// except for signs of zeros. Elements that are not finite, or no floating-point numbers, must be
// equal.
double error_of(const Tensor& want, const Tensor& got) {
  if (want.dtype != got.dtype || want.dims != got.dims) return kInfinity;
  const std::vector<double> a = elements(want), b = elements(got);
  double largest = 0, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      if (std::isfinite(a[i])) largest = std::max(largest, std::fabs(a[i]));
      continue;
    }
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]) || !dtype_is_float(want.dtype))
      return kInfinity;
    largest = std::max(largest, std::fabs(a[i]));
    error = std::max(error, std::fabs(a[i] - b[i]));
  }
  return error == 0 ? 0 : largest == 0 ? kInfinity : error / largest;
}

double error_of(const ValuePtr& want, const ValuePtr& got) {
  if (!want || !got) return want == got ? 0 : kInfinity;
  if (want->kind != got->kind || want->elements.size() != got->elements.size()) return kInfinity;
  double error = want->tensor.valid() ? error_of(want->tensor, got->tensor) : 0;
  for (size_t i = 0; i < want->elements.size(); ++i)
    error = std::max(error, error_of(want->elements[i], got->elements[i]));
  if (want->values) error = std::max(error, error_of(want->values, got->values));
  return error;
}

// Multiplications of one run, roughly: unknown dimensions count as 1.
double work_of(const Graph& graph, const Node& node) {
  const auto size = [&](ValueId id) {
    double n = 1;
    const Type& type = graph.at(id).type;
    for (size_t i = 0; type.has_shape && i < type.shape.size(); ++i)
      if (type.shape[i].known())
        n *= static_cast<double>(std::max<int64_t>(1, type.shape[i].value()));
    return n;
  };
  double work = size(node.inputs[0]);
  if (node.has_input(1)) work *= size(node.inputs[1]);
  return node.outputs.empty() || node.outputs[0] == kNoId ? work : work * size(node.outputs[0]);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

}  // namespace

struct PrecisionSearch::Trial {
  std::vector<ValuePtr> inputs, outputs;
};

struct PrecisionSearch::Product {
  NodeId node;
  double work;
  double effect = 0;  // at the level tried last
};

struct PrecisionSearch::Level {
  pfrt_compile_hints hint;
  std::string_view name;
  double begin;  // of the search's progress
};

PrecisionSearch::PrecisionSearch(Context context) : context_(std::move(context)) {}
PrecisionSearch::~PrecisionSearch() = default;

Result<std::unique_ptr<CompiledGraph>> PrecisionSearch::compile(const Hints* hints) const {
  return CompiledGraph::create(graph_, context_, {.node_precision = hints});
}

Status PrecisionSearch::run(CompiledGraph& graph, const std::vector<ValuePtr>& inputs,
                            std::vector<ValuePtr>& outputs) const {
  PFRT_TRY(context_.progress.stop());
  return run_trial(graph, inputs, kMostSeconds, context_.progress, outputs);
}

Status PrecisionSearch::add_trial(std::vector<ValuePtr> inputs, bool* added) {
  Trial trial{std::move(inputs), {}};
  Status status = run(*reference_, trial.inputs, trial.outputs);
  PFRT_TRY(context_.progress.stop());
  *added = status.ok();
  if (status.ok())
    trials_.push_back(std::move(trial));
  else if (!ends_all(status.code()))
    return {};
  return status;
}

Result<PrecisionSearch::Trial> PrecisionSearch::trial_of(const NamedValues& sample) {
  Trial trial;
  for (ValueId id : reference_->inputs()) {
    const std::string& name = graph_->at(id).name;
    const auto found = std::ranges::find(sample, name, &std::pair<std::string, ValuePtr>::first);
    if (found == sample.end())
      return error(Code::kINPUT, "choosing precisions: a sample gives no input '", name, "'");
    trial.inputs.push_back(found->second);
  }
  Status status = run(*reference_, trial.inputs, trial.outputs);
  if (!status.ok()) return std::move(status.prepend("choosing precisions: running a sample"));
  return trial;
}

Result<size_t> PrecisionSearch::try_source() {
  size_t count = 0;
  of_source_ = true;
  PFRT_TRY(each_trial(kAll, [&](const Trial&) -> Result<bool> {
    ++count;
    return true;
  }));
  return count;
}

Status PrecisionSearch::each_trial(size_t most,
                                   const std::function<Result<bool>(const Trial&)>& fn) {
  if (!of_source_) {
    for (size_t t = 0; t < std::min(most, trials_.size()); ++t) {
      PFRT_ASSIGN(const bool go_on, fn(trials_[t]));
      if (!go_on) return {};
    }
    return {};
  }
  PFRT_TRY(context_.source->rewind());
  for (size_t t = 0; t < most; ++t) {
    PFRT_ASSIGN(const std::optional<NamedValues> sample, context_.source->next());
    if (!sample) return {};
    PFRT_ASSIGN(const Trial trial, trial_of(*sample));
    PFRT_ASSIGN(const bool go_on, fn(trial));
    if (!go_on) return {};
  }
  return {};
}

Status PrecisionSearch::add_trials(PrecisionChoice& choice) {
  const std::vector<ValueId>& ids = reference_->inputs();
  bool added = false;
  size_t given = 0;
  if (context_.samples && !context_.samples->empty()) {
    for (const NamedValues& sample : *context_.samples) {
      PFRT_ASSIGN(Trial trial, trial_of(sample));
      trials_.push_back(std::move(trial));
    }
    given = trials_.size();
  } else if (context_.source) {
    PFRT_ASSIGN(given, try_source());
    of_source_ = given > 0;
  }
  if (given) {
    choice.notes.push_back(message("precision auto measured on ", given, " given inputs"));
    return {};
  }
  const TrialInputs maker(*graph_, ids);
  const uint32_t attempts = ids.empty() ? 1 : kAttempts;
  for (uint32_t i = 0; i < attempts && trials_.size() < kTrials; ++i) {
    auto inputs = maker.make(i, 0);
    if (inputs.ok())
      PFRT_TRY(add_trial(inputs.take(), &added));
    else if (ends_all(inputs.status().code()))
      return inputs.take_status();
  }
  if (!trials_.empty())
    choice.notes.push_back(message("precision auto measured on ", trials_.size(),
                                   " inputs made up; given ones would show what matters"));
  return {};
}

Result<double> PrecisionSearch::error_of(const Hints& hints, size_t trials) {
  PFRT_ASSIGN(const auto compiled, compile(&hints));
  double error = 0;
  std::vector<ValuePtr> outputs;
  const auto measure = [&](const Trial& trial) -> Result<bool> {
    Status status = run(*compiled, trial.inputs, outputs);
    PFRT_TRY(context_.progress.stop());
    if (ends_all(status.code())) return status;
    if (!status.ok()) {
      error = kInfinity;
      return false;
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!traits_[i].random) error = std::max(error, pfrt::error_of(trial.outputs[i], outputs[i]));
    return true;
  };
  PFRT_TRY(each_trial(trials, measure));
  return error;
}

Result<std::vector<PrecisionSearch::Product>> PrecisionSearch::spend(const Level& level,
                                                                     std::vector<Product> products,
                                                                     Hints& hints) {
  size_t tried = 0;
  for (Product& product : products) {
    // Trying them alone takes most of the time of a level.
    (void)context_.progress
        .at(level.begin + 0.4 * static_cast<double>(tried++) / static_cast<double>(products.size()))
        .ok();
    Hints alone(hints.size());
    alone[product.node].hint = level.hint;
    PFRT_ASSIGN(product.effect, error_of(alone, kTrialsOfOne));
    if (context_.logger)
      context_.logger->log(PFRT_LOG_DEBUG,
                           "precision auto: ", describe(*graph_, *graph_->node(product.node)),
                           " in ", level.name, " moves outputs by ", number(product.effect));
  }
  // A product on which the level has no effect has no kernel for it.
  std::vector<Product> left;
  const auto same = std::ranges::stable_partition(
      products, [](const Product& p) { return p.effect > 0 && p.effect < kInfinity; });
  left.assign(same.begin(), same.end());
  products.erase(same.begin(), same.end());
  std::ranges::stable_sort(products, {},
                           [](const Product& p) { return p.effect * p.effect / p.work; });
  const auto with = [&](size_t count) {
    Hints out = hints;
    for (size_t i = 0; i < count; ++i)
      out[products[i].node] = {level.hint, message(level.name, ", alone it moves outputs by ",
                                                   number(products[i].effect))};
    return out;
  };
  // The largest number known to stay inside the bound, and the smallest known not to.
  size_t inside = 0, outside = products.size() + 1;
  while (outside - inside > 1) {
    const size_t count =
        outside > products.size() && inside == 0 ? products.size() : std::midpoint(inside, outside);
    PFRT_ASSIGN(const double error, error_of(with(count), kAll));
    (error <= context_.max_error ? inside : outside) = count;
  }
  hints = with(inside);
  left.insert(left.end(), products.begin() + static_cast<ptrdiff_t>(inside), products.end());
  return left;
}

Result<PrecisionChoice> PrecisionSearch::choose(std::shared_ptr<const Graph> graph) {
  PrecisionChoice choice;
  graph_ = std::move(graph);
  traits_ = output_traits(*graph_);
  trials_.clear();
  auto compiled = compile(nullptr);
  if (!compiled.ok()) return compiled.take_status();
  reference_ = compiled.take();
  PFRT_TRY(add_trials(choice));
  if (trials_.empty() && !of_source_) {
    choice.notes.push_back(
        "precision auto: the graph accepts none of the inputs made up, so that all is fp32; give "
        "samples");
    return choice;
  }
  std::vector<Product> products;
  Hints hints;
  for (NodeId id : graph_->node_ids()) {
    const Node& node = *graph_->node(id);
    hints.resize(std::max<size_t>(hints.size(), id + size_t{1}));
    if (std::ranges::find(kProducts, node.op) != std::end(kProducts) && !node.inputs.empty() &&
        node.has_input(0) && graph_->at(node.inputs[0]).type.dtype == PFRT_DTYPE_FLOAT32)
      products.push_back({id, work_of(*graph_, node)});
  }
  const size_t all = products.size();
  const Level levels[] = {{PFRT_COMPILE_BF16, "bf16", 0.1}, {PFRT_COMPILE_FAST, "fast", 0.55}};
  std::string counts;
  size_t left = all;
  for (const Level& level : levels) {
    Hints everywhere(hints.size());
    for (const Product& product : products) everywhere[product.node].hint = level.hint;
    PFRT_ASSIGN(const double error, error_of(everywhere, kAll));
    if (error > 0) {
      PFRT_ASSIGN(products, spend(level, std::move(products), hints));
    }
    counts += message(left - products.size(), " ", level.name, ", ");
    left = products.size();
  }
  PFRT_ASSIGN(const double error, error_of(hints, kAll));
  choice.notes.push_back(message("precision auto: of ", all, " products ", counts, left,
                                 " fp32; outputs move by ", number(error), " of ",
                                 number(context_.max_error), " allowed"));
  if (left == all && all > 0 && error == 0)
    choice.notes.back() += "; no kernel here takes another arithmetic for them, or none is inside";
  choice.nodes = std::move(hints);
  return choice;
}

}  // namespace pfrt
