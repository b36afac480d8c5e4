// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/machine/process.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/progress.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/compare.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/pb.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using pyflame_rt::InferenceSession;
using pyflame_rt::NodeArg;
using pyflame_rt::Value;

struct Case {
  std::string name;
  fs::path folder;
};

enum class Verdict { kPassed, kFailed, kSkipped };
const char* verdict_name(Verdict verdict) {
  return verdict == Verdict::kPassed   ? "passed"
         : verdict == Verdict::kFailed ? "failed"
                                       : "skipped";
}

struct Outcome {
  std::string name;
  Verdict verdict = Verdict::kFailed;
  std::string reason;
};

// Finds every folder below |root| with a model.onnx, by name.
std::vector<Case> find_cases(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) throw UsageError("'" + root + "' is not a folder");
  std::vector<Case> cases;
  const fs::path top = fs::canonical(root);
  const auto add = [&](const fs::path& folder) {
    const fs::path relative = folder.lexically_relative(top);
    cases.push_back({relative == "." ? top.filename().string() : relative.string(), folder});
  };
  if (fs::is_regular_file(top / "model.onnx")) add(top);
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::recursive_directory_iterator(top, options, error); it != fs::end(it);
       it.increment(error)) {
    if (it->is_directory() && fs::is_regular_file(it->path() / "model.onnx")) add(it->path());
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool named = entry.path().filename().string().rfind("test_data_set", 0) == 0;
    if (named && entry.is_directory()) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

// Finds input_0.pb, input_1.pb, ... of |set| in order.
std::vector<fs::path> numbered(const fs::path& set, const std::string& stem) {
  std::vector<fs::path> files;
  for (size_t i = 0;; ++i) {
    const fs::path file = set / (stem + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return files;
    files.push_back(file);
  }
}

const NodeArg* by_name(const std::vector<NodeArg>& args, const std::string& name) {
  const auto found =
      std::find_if(args.begin(), args.end(), [&name](const NodeArg& a) { return a.name == name; });
  return found == args.end() ? nullptr : &*found;
}

// Assigns files to inputs by the names inside the files where each names another input, else by
// position.
Feed read_feed(const std::vector<fs::path>& files, const std::vector<NodeArg>& inputs) {
  if (files.size() > inputs.size()) {
    throw UsageError("the case has " + std::to_string(files.size()) + " inputs, the model " +
                     std::to_string(inputs.size()));
  }
  std::vector<NamedValue> read;
  std::set<std::string> names;
  for (size_t i = 0; i < files.size(); ++i) {
    read.push_back(read_pb(files[i].string(), inputs[i]));
    if (by_name(inputs, read.back().name) != nullptr) names.insert(read.back().name);
  }
  Feed feed;
  const bool named = names.size() == files.size();
  for (size_t i = 0; i < files.size(); ++i) {
    if (!named) {
      feed[inputs[i].name] = read[i].value;
    } else if (read[i].name == inputs[i].name) {
      feed[read[i].name] = read[i].value;
    } else {  // read once more, as the kind of value is that of another input
      feed[read[i].name] = read_pb(files[i].string(), *by_name(inputs, read[i].name)).value;
    }
  }
  return feed;
}

// Returns an empty text when every output of the data set matches.
std::string run_set(const InferenceSession& session, const fs::path& set,
                    const Tolerance& tolerance) {
  const Feed feed = read_feed(numbered(set, "input"), session.get_inputs());
  const std::vector<NodeArg>& outputs = session.get_outputs();
  const std::vector<fs::path> files = numbered(set, "output");
  if (files.empty())
    return "no output_0.pb in '" + set.string() + "': there is nothing to compare results with";
  if (files.size() > outputs.size()) {
    return std::to_string(files.size()) + " outputs expected, the model has " +
           std::to_string(outputs.size());
  }
  const std::vector<Value> results = session.run_values({}, feed);
  for (size_t i = 0; i < files.size(); ++i) {
    const Value want = read_pb(files[i].string(), outputs[i]).value;
    const std::string found = difference(results[i], want, tolerance);
    if (!found.empty()) return "output '" + outputs[i].name + "': " + found;
  }
  return {};
}

// Lists wrong rewrites that --verify found and that the session has undone.
std::string undone(const InferenceSession& session) {
  std::string text;
  for (const std::string& note : session.explain().notes)
    if (note.rfind("verification: ", 0) == 0 && note.find("undone") != std::string::npos)
      text += (text.empty() ? "" : "; ") + note;
  return text;
}

Outcome run_case(const Case& test, const TestArgs& args) {
  Outcome outcome{test.name, Verdict::kFailed, {}};
  const std::vector<fs::path> sets = data_sets(test.folder);
  if (sets.empty()) {
    outcome.verdict = Verdict::kSkipped;
    outcome.reason = "no test_data_set folder";
    return outcome;
  }
  const auto work = [&]() -> std::string {
    pyflame_rt::SessionOptions options = session_options(args.session);
    options.log_level = "error";
    const InferenceSession session((test.folder / "model.onnx").string(), options);
    const Tolerance tolerance{args.rtol, args.atol};
    if (args.session.verify) {
      std::string found = undone(session);
      if (!found.empty()) return found;
    }
    for (const fs::path& set : sets) {
      const std::string found = run_set(session, set, tolerance);
      if (!found.empty()) return sets.size() == 1 ? found : set.filename().string() + ": " + found;
    }
    return {};
  };
  const ChildResult result = run_in_child(work, std::chrono::seconds(args.timeout_seconds));
  outcome.reason = one_line(result.ok ? result.output : result.reason);
  if (result.ok && outcome.reason.empty()) outcome.verdict = Verdict::kPassed;
  return outcome;
}

// Replaces tabs and line breaks, which would break the report's columns.
std::string cell(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return one_line(text);
}

void write_report(const std::string& path, const std::vector<Outcome>& outcomes) {
  std::ofstream out(path);
  out << "case\tverdict\treason\n";
  for (const Outcome& o : outcomes) {
    out << cell(o.name) << '\t' << verdict_name(o.verdict) << '\t' << cell(o.reason) << '\n';
  }
  out.flush();
  if (!out) throw UsageError("cannot write the report '" + path + "'");
}

}  // namespace

int test_command(const TestArgs& args) {
  if (args.timeout_seconds < 1) throw UsageError("--timeout must be at least 1");
  std::vector<Case> cases;
  for (const std::string& dir : args.dirs) {
    const std::vector<Case> found = find_cases(dir);
    if (found.empty()) throw UsageError("no model.onnx below '" + dir + "'");
    cases.insert(cases.end(), found.begin(), found.end());
  }
  // Made before the forks: children share what is loaded, and start at once.
  pyflame_rt::EnvironmentOptions environment;
  environment.log_level = "error";
  pyflame_rt::Environment::instance(environment);

  ProgressLine progress;
  std::vector<Outcome> outcomes;
  size_t counts[3] = {};
  for (const Case& test : cases) {
    progress.show("[" + std::to_string(outcomes.size() + 1) + "/" + std::to_string(cases.size()) +
                  "] " + test.name);
    outcomes.push_back(run_case(test, args));
    const Outcome& outcome = outcomes.back();
    ++counts[static_cast<size_t>(outcome.verdict)];
    if (args.json || outcome.verdict == Verdict::kPassed) continue;
    progress.clear();
    std::printf("%s %s: %s\n", verdict_name(outcome.verdict), outcome.name.c_str(),
                outcome.reason.c_str());
    std::fflush(stdout);
  }
  progress.clear();
  if (!args.report.empty()) write_report(args.report, outcomes);
  const auto count = [&counts](Verdict v) { return counts[static_cast<size_t>(v)]; };
  if (args.json) {
    Json json;
    json.object().field("passed", count(Verdict::kPassed)).field("failed", count(Verdict::kFailed));
    json.field("skipped", count(Verdict::kSkipped)).key("cases").list();
    for (const Outcome& o : outcomes) {
      json.object().field("case", o.name).field("verdict", verdict_name(o.verdict));
      json.field("reason", o.reason).end();
    }
    json.end().end().print();
  } else {
    std::printf("%zu passed, %zu failed, %zu skipped\n", count(Verdict::kPassed),
                count(Verdict::kFailed), count(Verdict::kSkipped));
  }
  return count(Verdict::kFailed) == 0 ? 0 : 1;
}

}  // namespace cli
