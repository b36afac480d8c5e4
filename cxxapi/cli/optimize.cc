// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <pyflame_rt/pyflame_rt.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/summary.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::Graph;
using pyflame_rt::Model;
using pyflame_rt::opt::PassManager;
using pyflame_rt::opt::PassManagerConfig;
using pyflame_rt::opt::PassReport;
using pyflame_rt::opt::PassResult;

// Writes "FusedConvBN 20, Gemm 1".
std::string rules_text(const PassReport& report) {
  std::string out;
  for (const auto& [rule, count] : report.stats.rules)
    out += (out.empty() ? "" : ", ") + rule + " " + std::to_string(count);
  return out;
}

void print_json(const OptimizeArgs& args, const PassResult& result, size_t before, size_t after,
                uint64_t bytes) {
  Json json;
  json.object().field("in", args.in).field("out", args.out).field("bytes", bytes);
  json.field("nodes_before", before).field("nodes_after", after).key("passes").list();
  for (const PassReport& report : result.reports) {
    json.object().field("pass", report.pass).field("runs", report.runs);
    json.field("milliseconds", report.milliseconds).field("nodes_before", report.nodes_before);
    json.field("nodes_after", report.nodes_after).key("rewrites").object();
    for (const auto& [rule, count] : report.stats.rules) json.field(rule, count);
    json.end().end();
  }
  json.end().key("warnings").list();
  for (const std::string& warning : result.warnings) json.value(warning);
  json.end().end().print();
}

void print_text(const OptimizeArgs& args, const PassResult& result, size_t before, size_t after,
                uint64_t bytes) {
  Table table({"pass", "runs", "time", "nodes before", "after", "rewrites"});
  for (const PassReport& report : result.reports)
    table.add({report.pass, std::to_string(report.runs), time_text(report.milliseconds / 1e3),
               std::to_string(report.nodes_before), std::to_string(report.nodes_after),
               rules_text(report)});
  if (!result.reports.empty()) table.print();
  for (const std::string& warning : result.warnings)
    std::printf("warning: %s\n", one_line(warning).c_str());
  std::printf("wrote %s: %zu nodes of %zu, %s\n", args.out.c_str(), after, before,
              bytes_text(bytes).c_str());
}

}  // namespace

int optimize_command(const OptimizeArgs& args) {
  if (!args.force) keep_input(args.in, args.out, "give another file, or --force");
  PassManagerConfig config;
  config.opt_level = session_options(args.session).optimization_level;
  config.skip_passes = args.skip;
  config.verify = args.verify;
  PassManager passes = PassManager::create_default(config);
  const std::vector<std::string> names = passes.passes();
  for (const std::string& name : args.skip)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string known;
      for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
      throw UsageError("--skip " + name + ": the passes of this level are " +
                       (known.empty() ? "none" : known));
    }
  Graph graph = Model::load(args.in).graph();
  const size_t before = count_nodes(graph);
  const PassResult result = passes.run_until_fixed_point(graph);
  Model::from_graph(graph).save(args.out);
  std::error_code error;
  const auto size = std::filesystem::file_size(args.out, error);
  const uint64_t bytes = error ? 0 : size;
  const size_t after = count_nodes(graph);
  if (args.json) {
    print_json(args, result, before, after, bytes);
  } else {
    print_text(args, result, before, after, bytes);
  }
  return 0;
}

}  // namespace cli
