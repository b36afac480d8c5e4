// SPDX-License-Identifier: Apache-2.0
//
// `pfrt profile`: the profile of some runs as trace events, which Perfetto and Chrome's tracing
// page draw, and as a page.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <pyflame_rt/pyflame_rt.hpp>
#include <sstream>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/print/counters.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/profile_page.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::ExplainStep;
using pyflame_rt::InferenceSession;

constexpr int kWarmUps = 3;
constexpr double kMeasureSeconds = 2;

// A temporary folder for the library's profile, whose file has a name of its own. It is removed
// with the object, together with a profile that a session writes when a run fails.
class ProfileFolder {
 public:
  ProfileFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "pfrt_profile_XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      throw UsageError("cannot make a folder for the profile in '" +
                       std::filesystem::temp_directory_path().string() + "'; set TMPDIR");
    path_ = path;
  }
  ~ProfileFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ProfileFolder(const ProfileFolder&) = delete;
  ProfileFolder& operator=(const ProfileFolder&) = delete;
  std::string prefix() const { return path_ + "/p"; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageError("cannot read the profile '" + path + "'");
  return text.str();
}

void write_text(const char* what, const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UsageError(std::string("cannot write the ") + what + " to '" + path + "'");
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

// Time from the first step's start to the last one's end.
double span_ns(const std::vector<ExplainStep>& steps) {
  double end = 0;
  for (const ExplainStep& step : steps) end = std::max(end, step.started_ns + step.measured_ns);
  return end;
}

}  // namespace

int profile_command(const ProfileArgs& args) {
  keep_input(args.model, args.output);
  if (!args.html.empty()) keep_input(args.model, args.html);
  pyflame_rt::SessionOptions options = session_options(args.session);
  options.enable_profiling = true;
  const ProfileFolder folder;  // outlives the session
  options.profile_file_prefix = folder.prefix();
  const InferenceSession session(args.model, options);
  const Feeder feeder(session.get_inputs(), args.inputs, parse_dims(args.dims));
  const Dims assumed = fit_sizes(feeder, run_once(session));
  const Feed feed = feeder.feed(assumed);
  pyflame_rt::RunOptions run_options;
  run_options.tag = "warm-up";
  for (int i = 0; i < kWarmUps; ++i) (void)session.run_values({}, feed, run_options);
  run_options.tag = "profiled";
  for (int i = 0; i < args.runs; ++i) (void)session.run_values({}, feed, run_options);
  const pyflame_rt::Explanation explanation = session.explain();
  const std::vector<ExplainStep>& steps = explanation.steps;

  const std::string trace = read_text(session.end_profiling());
  write_text("trace", args.output, trace);
  if (!args.html.empty()) {
    Roofline roofline;
    if (args.measure)
      roofline = measure_roofline(static_cast<uint32_t>(options.num_threads), kMeasureSeconds);
    write_text("page", args.html, profile_page(args.model, trace, roofline));
  }

  double busy = 0;
  for (const ExplainStep& step : steps) busy += step.measured_ns;
  const double span = span_ns(steps);
  const std::vector<KernelTime> kernels = by_kernel(steps);
  if (args.json) {
    Json json;
    json.object().field("trace", args.output).field("steps", steps.size());
    json.field("runs", args.runs);
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
  if (!args.html.empty()) std::printf("wrote %s: a page for a browser\n", args.html.c_str());
  std::printf(
      "wrote %s: %d runs of %zu steps, the last in %s, %s at once on average; open it in "
      "Perfetto\n",
      args.output.c_str(), args.runs, steps.size(), time_text(span / 1e9).c_str(),
      number_text(span > 0 ? busy / span : 0).c_str());
  return 0;
}

}  // namespace cli
