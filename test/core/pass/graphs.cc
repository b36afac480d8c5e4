// SPDX-License-Identifier: Apache-2.0
#include "test/core/pass/graphs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/exec/compiled_graph.h"
#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/pass/rules/numbers.h"
#include "core/session/optimise.h"
#include "providers/cpu/provider.h"

namespace pfrt::test {
namespace {

std::vector<Candidate> candidates() {
  ProviderSource source;
  source.name = "CPUExecutionProvider";
  source.device = "cpu";
  source.table = &cpu::provider_table();
  source.features = cpu::kFeatures;
  static Logger logger;
  auto opened = Provider::open(source, &logger);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return {{source.name, opened.ok() ? *opened : nullptr, ""}};
}

Tensor filled(pfrt_dtype dtype, const Dims& dims, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  auto made = Tensor::allocate(dtype, dims);
  if (dtype_is_float(dtype)) {
    std::vector<double> values(static_cast<size_t>(element_count(dims.data(), dims.size())));
    for (double& v : values) v = draw(random);
    made = from_doubles(dtype, dims, values);
  } else {
    for (int64_t i = 0; i < made->count(); ++i) {
      const auto value = static_cast<int64_t>(draw(random));
      if (dtype == PFRT_DTYPE_INT64) made->as<int64_t>()[i] = value;
      if (dtype == PFRT_DTYPE_INT32) made->as<int32_t>()[i] = static_cast<int32_t>(value);
      if (dtype == PFRT_DTYPE_BOOL) made->as<uint8_t>()[i] = random() % 2 != 0;
    }
  }
  EXPECT_TRUE(made.ok());
  return *made;
}

// Computes the outputs for inputs that depend on their names alone.
Result<std::vector<ValuePtr>> outputs_of(const std::shared_ptr<Graph>& graph,
                                         const std::vector<Candidate>& providers,
                                         const std::map<std::string, int64_t>& symbols) {
  PackedStore packed;
  Logger logger;
  PFRT_ASSIGN(const auto compiled,
              CompiledGraph::create(graph, {providers, &packed, &logger, Progress()}));
  std::vector<ValuePtr> inputs;
  for (ValueId id : compiled->inputs()) {
    const GraphValue& value = graph->at(id);
    Dims dims;
    for (const Dim& d : value.type.shape)
      dims.push_back(d.known() ? d.value() : symbols.at(graph->symbols->text(d)));
    inputs.push_back(
        Value::of(filled(value.type.dtype, dims, -2, 3, std::hash<std::string>()(value.name))));
  }
  RunControl control;
  std::vector<ValuePtr> outputs;
  PFRT_TRY(compiled->run(std::move(inputs), std::vector<OutputRequest>(graph->outputs.size()),
                         control, outputs));
  return outputs;
}

std::string difference(const std::vector<ValuePtr>& a, const std::vector<ValuePtr>& b,
                       double tolerance) {
  if (a.size() != b.size()) return "another number of outputs";
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor &x = a[i]->tensor, &y = b[i]->tensor;
    if (x.dtype != y.dtype || x.dims != y.dims) return message("output ", i, " has another type");
    auto p = to_doubles(&x), q = to_doubles(&y);
    if (!p) {
      const std::vector<int64_t> n = to_int64s(x), m = to_int64s(y);
      p.emplace(n.begin(), n.end()), q.emplace(m.begin(), m.end());
    }
    for (size_t k = 0; k < p->size(); ++k) {
      const double u = (*p)[k], v = (*q)[k];
      const bool same = u == v || (std::isnan(u) && std::isnan(v)) ||
                        std::fabs(u - v) <= tolerance * (1 + std::fabs(u));
      if (!same) return message("output ", i, " differs at ", k, ": ", u, " before, ", v, " after");
    }
  }
  return {};
}

}  // namespace

PassGraph::PassGraph(int64_t opset) : graph_(std::make_shared<Graph>("g")) {
  graph_->opsets[""] = opset;
}

std::string PassGraph::fresh(const std::string& stem) {
  return stem + "_" + std::to_string(next_++);
}

std::string PassGraph::input(const std::string& name, const std::vector<std::string>& dims,
                             pfrt_dtype dtype) {
  const ValueId id = graph_->value(name);
  Shape shape;
  for (const std::string& dim : dims)
    shape.push_back(dim[0] >= '0' && dim[0] <= '9' ? Dim(std::stoll(dim))
                                                   : graph_->symbols->symbol(dim));
  graph_->at(id).type = Type::tensor(dtype, std::move(shape));
  graph_->inputs.push_back(id);
  return name;
}

std::string PassGraph::constant(const std::vector<double>& elements, const Dims& dims,
                                pfrt_dtype dtype) {
  auto made = from_doubles(dtype, dims, elements);
  EXPECT_TRUE(made.ok());
  return constant_of(*made);
}

std::string PassGraph::constant_of(Tensor tensor) {
  const std::string name = fresh("constant");
  graph_->set_constant(graph_->value(name), Value::of(std::move(tensor)));
  return name;
}

std::string PassGraph::weights(const Dims& dims, double low, double high, pfrt_dtype dtype) {
  const std::string name = fresh("weights");
  graph_->set_constant(graph_->value(name), Value::of(filled(dtype, dims, low, high, seed_++)));
  return name;
}

std::string PassGraph::ints(const std::vector<int64_t>& elements) {
  const std::string name = fresh("ints");
  graph_->set_constant(graph_->value(name), Value::of(*Tensor::of_int64(elements)));
  return name;
}

std::string PassGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                            std::vector<Attribute> attrs, size_t outputs,
                            const std::string& domain) {
  const std::string name = fresh(op);
  Node made;
  made.op = op;
  made.name = name;
  made.domain = domain;
  for (const std::string& in : inputs) made.inputs.push_back(graph_->value(in));
  for (size_t i = 0; i < outputs; ++i)
    made.outputs.push_back(graph_->value(i == 0 ? name : name + "_" + std::to_string(i)));
  made.attrs = std::move(attrs);
  EXPECT_TRUE(graph_->add_node(std::move(made)).ok());
  return name;
}

void PassGraph::output(const std::string& name) { graph_->outputs.push_back(graph_->value(name)); }

std::string PassGraph::optimised(const std::vector<std::map<std::string, int64_t>>& shapes,
                                 double tolerance, OptLevel level) {
  const std::shared_ptr<Graph> before = graph_->clone();
  if (Status status = canonicalise(*before); !status.ok()) return status.message();
  after_ = before->clone();
  const std::vector<Candidate> providers = candidates();
  PackedStore packed;
  Logger logger;
  PassServices services({providers, &packed, &logger, Progress()});
  PassContext context = services.context();
  context.in_session = in_session;
  PipelineConfig config;
  config.level = level;
  config.validate_after_pass = true;
  Pipeline pipeline = Pipeline::standard(config);
  result_ = {};
  if (Status status = pipeline.run_until_fixed_point(after_, context, result_); !status.ok())
    return status.message();
  for (const std::string& warning : result_.warnings) ADD_FAILURE() << warning;
  for (const auto& symbols : shapes) {
    auto was = outputs_of(before, providers, symbols);
    if (!was.ok()) return "before: " + std::string(was.status().message());
    auto is = outputs_of(after_, providers, symbols);
    if (!is.ok()) return "after: " + std::string(is.status().message());
    if (std::string how = difference(*was, *is, tolerance); !how.empty()) return how;
  }
  std::string ops;
  auto order = after_->topological_order();
  if (!order.ok()) return order.status().message();
  for (NodeId id : *order) ops += (ops.empty() ? "" : ", ") + after_->node(id)->op;
  return ops;
}

const Node* PassGraph::find(const std::string& op) const {
  for (NodeId id : after_->node_ids())
    if (after_->node(id)->op == op) return after_->node(id);
  return nullptr;
}

uint64_t PassGraph::applied(const std::string& rule) const {
  const auto found = result_.stats.rules.find(rule);
  return found == result_.stats.rules.end() ? 0 : found->second;
}

}  // namespace pfrt::test
