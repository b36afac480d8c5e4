// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/machine/process.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/save.h"
#include "cxxapi/cli/tensors/show_value.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::InferenceSession;
using pyflame_rt::NodeArg;
using pyflame_rt::Value;

struct Times {
  double first = 0, median = 0, fastest = 0, slowest = 0;
};

Times summary(std::vector<double> seconds) {
  Times times;
  times.first = seconds[0];
  std::sort(seconds.begin(), seconds.end());
  times.median = seconds[seconds.size() / 2];
  times.fastest = seconds.front();
  times.slowest = seconds.back();
  return times;
}

void print_json(const InferenceSession& session, const std::vector<Value>& results,
                const Feeder& feeder, const Dims& assumed, const std::vector<std::string>& saved,
                const Times& times, size_t runs) {
  Json json;
  json.object().key("inputs").object();
  for (const auto& [name, origin] : feeder.origins()) json.field(name, origin);
  write_assumed(assumed, &json.end().key("assumed_dims"));
  json.key("outputs").object();
  for (size_t i = 0; i < results.size(); ++i) {
    write_value_json(results[i], &json.key(session.get_outputs()[i].name));
  }
  json.end().key("files").list();
  for (const std::string& file : saved) json.value(file);
  json.end().key("seconds").object();
  json.field("first", times.first).field("median", times.median);
  json.field("min", times.fastest).field("max", times.slowest).end();
  json.field("runs", runs).field("peak_bytes", peak_memory()).end().print();
}

std::vector<std::string> files_read(const RunArgs& args) {
  std::vector<std::string> out = {args.model};
  for (const std::string& text : args.inputs)
    out.push_back(split_assignment(text, "--input").second);
  return out;
}

// Checks the output's path before the run, which may take long.
void check_output(const RunArgs& args, const InferenceSession& session) {
  if (!is_npy_file(args.output)) {
    for (const NodeArg& output : session.get_outputs())
      for (const std::string& input : files_read(args))
        keep_input(input, npy_path(args.output, output.name), "give another folder");
    return;
  }
  if (session.get_outputs().size() == 1) {
    for (const std::string& input : files_read(args)) keep_input(input, args.output);
    return;
  }
  std::string names;
  for (const NodeArg& output : session.get_outputs())
    names += (names.empty() ? "" : ", ") + output.name;
  throw UsageError("--output '" + args.output + "' is one file, and the model has " +
                   std::to_string(session.get_outputs().size()) + " outputs (" + names +
                   "): give a folder");
}

}  // namespace

int run_command(const RunArgs& args) {
  if (args.repeat < 1) throw UsageError("--repeat must be at least 1");
  const InferenceSession session(args.model, session_options(args.session));
  const Feeder feeder(session.get_inputs(), args.inputs, parse_dims(args.dims));
  if (!args.output.empty()) check_output(args, session);

  std::vector<Value> results;
  std::vector<double> seconds;
  const auto run = [&](const Feed& feed, const pyflame_rt::RunOptions* options) {
    const auto start = std::chrono::steady_clock::now();
    results =
        options == nullptr ? session.run_values({}, feed) : session.run_values({}, feed, *options);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  const Dims assumed = fit_sizes(feeder, run);
  if (args.repeat > 1) {
    const Feed feed = feeder.feed(assumed);
    for (int i = 1; i < args.repeat; ++i) run(feed, nullptr);
  }

  std::vector<std::string> saved;
  if (!args.output.empty()) {
    for (size_t i = 0; i < results.size(); ++i)
      save_value(args.output, session.get_outputs()[i].name, results[i], files_read(args), &saved);
  }

  const Times times = summary(seconds);
  if (args.json) {
    print_json(session, results, feeder, assumed, saved, times, seconds.size());
    return 0;
  }
  for (const NodeArg& input : session.get_inputs()) {
    const auto origin = feeder.origins().find(input.name);
    if (origin == feeder.origins().end()) continue;
    std::printf("input  %s: %s, %s\n", input.name.c_str(), describe(input).c_str(),
                origin->second.c_str());
  }
  if (!assumed.empty()) std::printf("sizes  %s\n", assumed_text(assumed).c_str());
  for (size_t i = 0; i < results.size(); ++i) {
    std::printf("output %s:\n", session.get_outputs()[i].name.c_str());
    print_value("  ", results[i]);
  }
  for (const std::string& file : saved) std::printf("wrote  %s\n", file.c_str());
  std::printf("time   first %s", time_text(times.first).c_str());
  if (seconds.size() > 1) {
    std::printf(", median %s, min %s, max %s of %zu runs", time_text(times.median).c_str(),
                time_text(times.fastest).c_str(), time_text(times.slowest).c_str(), seconds.size());
  }
  std::printf("\nmemory %s at the peak\n", bytes_text(peak_memory()).c_str());
  return 0;
}

}  // namespace cli
