// SPDX-License-Identifier: Apache-2.0
//
// `pfrt profile`: the steps of one run as trace events, which Perfetto and Chrome's tracing page
// draw, a track for each of those who ran steps at once.
#include <algorithm>
#include <fstream>
#include <map>
#include <pyflame_rt/pyflame_rt.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/print/counters.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::ExplainStep;
using pyflame_rt::InferenceSession;

constexpr int kWarmUps = 3;

// Events of the trace format, complete ("X") and metadata ("M"); times in microseconds.
std::string trace_of(const std::string& model, const std::vector<ExplainStep>& steps) {
  Json json;
  const auto event = [&](const char* phase, const std::string& name, uint32_t lane) -> Json& {
    return json.object().field("ph", phase).field("pid", 1).field("tid", lane).field("name", name);
  };
  const auto named = [&](const char* what, uint32_t lane, const std::string& name) {
    event("M", what, lane).key("args").object().field("name", name).end().end();
  };
  uint32_t lanes = 1;
  for (const ExplainStep& step : steps) lanes = std::max(lanes, step.lane + 1);
  json.object().field("displayTimeUnit", "ms").key("traceEvents").list();
  named("process_name", 0, model);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    named("thread_name", lane, lanes == 1 ? "steps" : "lane " + std::to_string(lane));
  for (const ExplainStep& step : steps) {
    if (step.measured_ns <= 0) continue;
    event("X", step.kernel, step.lane).field("cat", step.provider);
    json.field("ts", step.started_ns / 1e3).field("dur", step.measured_ns / 1e3);
    json.key("args").object().field("nodes", step.nodes).field("ops", step.ops);
    json.field("bytes", step.bytes).field("flops", step.flops);
    json.field("GB/s", static_cast<double>(step.bytes) / step.measured_ns);
    json.field("GFLOP/s", static_cast<double>(step.flops) / step.measured_ns).end().end();
  }
  json.end().end();
  return json.text();
}

struct KernelTime {
  std::string kernel;
  size_t steps = 0;
  double ns = 0, flops = 0;
};

std::vector<KernelTime> by_kernel(const std::vector<ExplainStep>& steps) {
  std::map<std::string, KernelTime> sums;
  for (const ExplainStep& step : steps) {
    KernelTime& sum = sums[step.kernel];
    sum.kernel = step.kernel;
    ++sum.steps;
    sum.ns += step.measured_ns;
    sum.flops += static_cast<double>(step.flops);
  }
  std::vector<KernelTime> out;
  out.reserve(sums.size());
  for (auto& [kernel, sum] : sums) out.push_back(sum);
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.ns > b.ns; });
  return out;
}

// From the first step's start to the last one's end.
double span_ns(const std::vector<ExplainStep>& steps) {
  double end = 0;
  for (const ExplainStep& step : steps) end = std::max(end, step.started_ns + step.measured_ns);
  return end;
}

}  // namespace

int profile_command(const ProfileArgs& args) {
  keep_input(args.model, args.output);
  pyflame_rt::SessionOptions options = session_options(args.session);
  options.enable_profiling = true;
  const InferenceSession session(args.model, options);
  const Feeder feeder(session.get_inputs(), args.inputs, parse_dims(args.dims));
  const Dims assumed = fit_sizes(feeder, run_once(session));
  const Feed feed = feeder.feed(assumed);
  for (int i = 0; i < kWarmUps; ++i) (void)session.run_values({}, feed);
  const pyflame_rt::Explanation explanation = session.explain();
  const std::vector<ExplainStep>& steps = explanation.steps;

  std::ofstream file(args.output, std::ios::binary);
  file << trace_of(args.model, steps) << '\n';
  file.close();
  if (!file) throw UsageError("cannot write the trace to '" + args.output + "'");

  double busy = 0;
  for (const ExplainStep& step : steps) busy += step.measured_ns;
  const double span = span_ns(steps);
  const std::vector<KernelTime> kernels = by_kernel(steps);
  if (args.json) {
    Json json;
    json.object().field("trace", args.output).field("steps", steps.size());
    write_assumed(assumed, &json.key("assumed_dims"));
    json.field("span_ns", span).field("busy_ns", busy).key("kernels").list();
    for (const KernelTime& k : kernels)
      json.object()
          .field("kernel", k.kernel)
          .field("steps", k.steps)
          .field("ns", k.ns)
          .field("flops", k.flops)
          .end();
    json.end();
    write_counters_json(explanation.counters, &json);
    json.end().print();
    return 0;
  }
  Table table({"kernel", "steps", "time", "share", "GFLOP/s"});
  for (const KernelTime& k : kernels)
    table.add({k.kernel, std::to_string(k.steps), time_text(k.ns / 1e9),
               number_text(busy > 0 ? 100 * k.ns / busy : 0) + " %",
               k.ns > 0 ? number_text(k.flops / k.ns) : "-"});
  table.print(60);
  print_counters(explanation.counters);
  if (!assumed.empty()) std::printf("%s\n", assumed_text(assumed).c_str());
  std::printf("wrote %s: %zu steps in %s, %s at once on average; open it in Perfetto\n",
              args.output.c_str(), steps.size(), time_text(span / 1e9).c_str(),
              number_text(span > 0 ? busy / span : 0).c_str());
  return 0;
}

}  // namespace cli
