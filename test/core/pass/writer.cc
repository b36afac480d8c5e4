// SPDX-License-Identifier: Apache-2.0
#include "test/core/pass/writer.h"

#include <gtest/gtest.h>

#include "core/model/model.h"
#include "core/pass/rules/numbers.h"
#include "providers/cpu/provider.h"

namespace pfrt::test {

Logger& silent_logger() {
  static Logger silent;
  silent.set_level(PFRT_LOG_OFF);
  return silent;
}

std::vector<Candidate> cpu_alone() {
  ProviderSource source;
  source.name = "CPUExecutionProvider";
  source.device = "cpu";
  source.table = &cpu::provider_table();
  source.features = cpu::kFeatures;
  auto opened = Provider::open(source, &silent_logger());
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return {{source.name, opened.ok() ? *opened : nullptr, ""}};
}

PackedStore* packed() {
  static PackedStore store;
  return &store;
}

Writer::Writer() : graph_(std::make_shared<Graph>("g")) { graph_->opsets[""] = 17; }

Writer::Writer(Graph& outer) : graph_(Graph::subgraph_of(outer, "body")) {}

Writer& Writer::input(const std::string& name, const std::vector<std::string>& dims,
                      pfrt_dtype dtype) {
  const ValueId id = graph_->value(name);
  Shape shape;
  for (const std::string& d : dims)
    shape.push_back(d == "?"                     ? Dim()
                    : d[0] >= '0' && d[0] <= '9' ? Dim(std::stoll(d))
                                                 : graph_->symbols->symbol(d));
  graph_->at(id).type = Type::tensor(dtype, std::move(shape));
  graph_->inputs.push_back(id);
  return *this;
}

Writer& Writer::weights(const std::string& name, const Dims& dims, double low, double high) {
  std::vector<double> values(static_cast<size_t>(element_count(dims.data(), dims.size())));
  uint64_t state = 1;
  for (const char c : name) state = state * 131 + static_cast<unsigned char>(c);
  for (double& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = low + (high - low) * static_cast<double>(state >> 33) / 2147483648.0;
  }
  return floats(name, dims, values);
}

Writer& Writer::floats(const std::string& name, const Dims& dims, const std::vector<double>& values,
                       pfrt_dtype dtype) {
  return constant(name, *from_doubles(dtype, dims, values));
}

Writer& Writer::ints(const std::string& name, const std::vector<int64_t>& values) {
  return constant(name, *Tensor::of_int64(values));
}

Writer& Writer::constant(const std::string& name, Tensor tensor) {
  graph_->set_constant(graph_->value(name), Value::of(std::move(tensor)));
  return *this;
}

Writer& Writer::node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, std::vector<Attribute> attrs,
                     const std::string& domain) {
  Node made;
  made.op = op;
  made.domain = domain;
  made.name = outputs[0] + "_node";
  for (const std::string& in : inputs) made.inputs.push_back(graph_->value(in));
  for (const std::string& out : outputs) made.outputs.push_back(graph_->value(out));
  made.attrs = std::move(attrs);
  if (!domain.empty()) graph_->opsets[domain] = 1;
  EXPECT_TRUE(graph_->add_node(std::move(made)).ok());
  return *this;
}

Writer& Writer::output(const std::string& name) {
  graph_->outputs.push_back(graph_->value(name));
  return *this;
}

Attribute Writer::as(const std::string& name) const {
  Attribute attr;
  attr.name = name;
  attr.type = PFRT_ATTR_GRAPH;
  attr.graph = graph_;
  return attr;
}

std::shared_ptr<Graph> Writer::canonical() {
  EXPECT_TRUE(graph_->bind_captures().ok());
  auto made = make_canonical(graph_, nullptr);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? (*made)->clone() : nullptr;
}

}  // namespace pfrt::test
