// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/inspect_page.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/print/counters.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/summary.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::ExplainStep;
using pyflame_rt::Explanation;
using pyflame_rt::Graph;
using pyflame_rt::InferenceSession;
using pyflame_rt::MemoryReport;
using pyflame_rt::Model;
using pyflame_rt::NodeArg;
using pyflame_rt::TensorInfo;

void write_values(const char* name, const std::vector<TensorInfo>& values, Json* json) {
  json->key(name).list();
  for (const TensorInfo& value : values) {
    json->object().field("name", value.name).field("type", NodeArg(value).type());
    json->field("shape", shape_text(value)).field("has_initializer", value.has_initializer).end();
  }
  json->end();
}

// Reports the memory of a session of |model| that has run once, where random inputs suit it.
MemoryReport memory_of(const Model& model) {
  const InferenceSession session(model);
  try {
    const Feeder feeder(session.get_inputs(), {}, {});
    (void)fit_sizes(feeder, run_once(session));
  } catch (const std::exception&) {
    // The report is then about a session that has not run.
  }
  return session.memory_report();
}

void memory_json(const MemoryReport& memory, Json* json) {
  json->key("memory").object().field("weights", memory.weights).field("packed", memory.packed);
  json->field("in_use", memory.in_use).field("idle", memory.idle).field("peak", memory.peak);
  json->field("states", memory.states).field("device_in_use", memory.device_in_use);
  json->field("device_idle", memory.device_idle).field("device_states", memory.device_states);
  json->key("blocks").list();
  for (const auto& [signature, bytes] : memory.blocks)
    json->object().field("signature", signature).field("bytes", bytes).end();
  json->end().end();
}

void memory_text(const MemoryReport& memory) {
  std::printf("memory      weights %s, packed %s, blocks %s idle, %s at most\n",
              bytes_text(memory.weights).c_str(), bytes_text(memory.packed).c_str(),
              bytes_text(memory.idle).c_str(), bytes_text(memory.peak).c_str());
  if (memory.device_idle)
    std::printf("  on devices: blocks %s idle\n", bytes_text(memory.device_idle).c_str());
  for (const auto& [signature, bytes] : memory.blocks)
    std::printf("  %s %s\n", bytes_text(bytes).c_str(), signature.c_str());
}

void inspect_json(const Model& model, const Graph& graph, const OperatorCounts& counts,
                  bool with_memory) {
  const auto meta = model.metadata();
  const auto stats = model.stats();
  Json json;
  json.object().field("format", model.format()).field("graph", meta.graph_name);
  json.field("producer", meta.producer_name).field("producer_version", meta.producer_version);
  json.key("opsets").object();
  for (const auto& [domain, version] : graph.opsets()) {
    json.field(domain.empty() ? "ai.onnx" : domain, version);
  }
  json.end();
  write_values("inputs", graph.inputs(), &json);
  write_values("outputs", graph.outputs(), &json);
  json.key("operators").object();
  for (const auto& [name, count] : ranked(counts)) json.field(name, count);
  json.end().field("nodes", stats.node_count);
  json.field("nodes_in_bodies", stats.node_count - graph.nodes().size());
  json.field("initializers", stats.initializer_count);
  json.field("parameters", stats.parameter_count).field("parameter_bytes", stats.parameter_bytes);
  json.field("import_ms", stats.import_time_ms).key("metadata").object();
  for (const auto& [key, value] : meta.custom_metadata) json.field(key, value);
  json.end().key("warnings").list();
  for (const std::string& warning : stats.warnings) json.value(warning);
  json.end();
  if (with_memory) memory_json(memory_of(model), &json);
  json.end().print();
}

void inspect_text(const Model& model, const Graph& graph, const OperatorCounts& counts) {
  for (const auto& [name, text] : summarise(model, graph)) {
    std::printf("%-11s %s\n", name.c_str(), text.c_str());
    if (name != "nodes") continue;
    for (const auto& [op, count] : ranked(counts)) std::printf("  %6zu %s\n", count, op.c_str());
  }
}

void explain_json(const Explanation& explanation) {
  Json json;
  json.object().key("steps").list();
  for (const ExplainStep& step : explanation.steps) {
    json.object()
        .field("nodes", step.nodes)
        .field("ops", step.ops)
        .field("provider", step.provider);
    json.field("kernel", step.kernel).field("reason", step.reason).field("refused", step.refused);
    json.field("tuning", step.tuning);
    json.field("bytes", step.bytes).field("flops", step.flops);
    json.field("estimated_ns", step.estimated_ns).field("measured_ns", step.measured_ns).end();
  }
  json.end();
  write_counters_json(explanation.counters, &json);
  json.key("notes").list();
  for (const std::string& note : explanation.notes) json.value(note);
  json.end().end().print();
}

void explain_text(const Explanation& explanation) {
  const auto time = [](double ns) { return ns > 0 ? time_text(ns / 1e9) : std::string("-"); };
  Table table({"step", "nodes", "ops", "provider", "kernel", "bytes", "flops", "estimated",
               "measured", "why", "refused"});
  for (size_t i = 0; i < explanation.steps.size(); ++i) {
    const ExplainStep& step = explanation.steps[i];
    table.add({std::to_string(i), step.nodes, step.ops, step.provider, step.kernel,
               bytes_text(step.bytes), count_text(static_cast<double>(step.flops)),
               time(step.estimated_ns), time(step.measured_ns), step.reason, step.refused});
  }
  table.print(60);
  print_counters(explanation.counters);
  for (const std::string& note : explanation.notes) std::printf("note: %s\n", note.c_str());
}

}  // namespace

int inspect_command(const InspectArgs& args) {
  const Model model = Model::load(args.model);
  const Graph graph = model.graph();
  if (!args.html.empty()) {
    keep_input(args.model, args.html);
    return write_page(args, model, graph);
  }
  const OperatorCounts counts = count_operators(graph);
  if (args.json) {
    inspect_json(model, graph, counts, args.memory);
  } else {
    inspect_text(model, graph, counts);
    if (args.memory) memory_text(memory_of(model));
  }
  return 0;
}

int explain_command(const ExplainArgs& args) {
  pyflame_rt::SessionOptions options = session_options(args.session);
  options.enable_profiling = true;
  const InferenceSession session(args.model, options);
  // Steps and their times come from a run. A model that refuses random inputs is explained without
  // one.
  std::string unrun;
  Dims assumed;
  const Dims dims = parse_dims(args.dims);
  check_dims(session.get_inputs(), dims);
  try {
    const Feeder feeder(session.get_inputs(), args.inputs, dims);
    assumed = fit_sizes(feeder, run_once(session));
    const Feed feed = feeder.feed(assumed);
    for (int i = 0; i < 2; ++i) (void)session.run_values({}, feed);
  } catch (const std::exception& error) {
    if (!args.inputs.empty()) throw;
    unrun = std::string("not run on random inputs: ") + one_line(error.what());
  }
  Explanation explanation = session.explain();
  if (!unrun.empty()) explanation.notes.push_back(unrun);
  if (!assumed.empty()) explanation.notes.push_back("sizes " + assumed_text(assumed));
  if (args.json) {
    explain_json(explanation);
  } else {
    explain_text(explanation);
  }
  return 0;
}

int convert_command(const ConvertArgs& args) {
  if (!args.force) keep_input(args.in, args.out, "give another file, or --force");
  const Model model = Model::load(args.in);
  model.save(args.out);
  const auto stats = model.stats();
  std::error_code error;
  const auto size = std::filesystem::file_size(args.out, error);
  const uint64_t bytes = error ? 0 : size;
  if (args.json) {
    Json json;
    json.object().field("in", args.in).field("format", model.format()).field("out", args.out);
    json.field("bytes", bytes)
        .field("nodes", stats.node_count)
        .field("initializers", stats.initializer_count);
    json.end().print();
  } else {
    std::printf("wrote %s: %zu nodes, %zu initializers, %s (from %s)\n", args.out.c_str(),
                stats.node_count, stats.initializer_count, bytes_text(bytes).c_str(),
                model.format().c_str());
  }
  return 0;
}

}  // namespace cli
