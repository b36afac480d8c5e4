// SPDX-License-Identifier: Apache-2.0
//
// `pfrt wse`: what a model, a product or a language model takes on a simulated wafer, and how its
// model of the machine compares with published figures. The provider says all of it; this asks.
#include <cstdio>
#include <fstream>
#include <pyflame_rt/ask.hpp>
#include <pyflame_rt/pyflame_rt.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::InferenceSession;

std::map<std::string, std::string> device_options(const WseArgs& args) {
  std::map<std::string, std::string> out;
  for (const std::string& option : args.options) {
    const size_t equal = option.find('=');
    if (equal == std::string::npos)
      throw UsageError("--option " + option + ": give it as KEY=VALUE, as in execution=streaming");
    out[option.substr(0, equal)] = option.substr(equal + 1);
  }
  if (!args.chips.empty()) out["chips"] = args.chips;
  if (!args.arithmetic.empty()) out["arithmetic"] = args.arithmetic;
  if (!args.fabric.empty()) out["fabric"] = args.fabric;
  if (args.silicon) out["silicon"] = "true";
  return out;
}

// A machine is one of the provider's words or a file.
bool is_file(const std::string& machine) { return machine.find('.') != std::string::npos; }

pyflame_rt::Answer ask(const WseArgs& args, const std::string& verb, std::string request,
                       std::map<std::string, std::string> options) {
  pyflame_rt::Question question;
  question.provider = "wse";
  question.verb = verb;
  question.request = std::move(request);
  question.device = is_file(args.machine) ? "wse2" : args.machine;
  if (is_file(args.machine)) options["machine_file"] = args.machine;
  question.options = std::move(options);
  return pyflame_rt::Environment::instance().ask(question);
}

void print(const pyflame_rt::Answer& answer) {
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

void write_picture(const WseArgs& args, const std::string& svg) {
  keep_input(args.what, args.picture);
  std::ofstream out(args.picture, std::ios::binary);
  const bool page =
      args.picture.size() > 5 && args.picture.compare(args.picture.size() - 5, 5, ".html") == 0;
  if (page) out << "<!doctype html>\n<meta charset=\"utf-8\">\n<title>a simulated wafer</title>\n";
  out << svg;
  out.flush();
  if (!out) throw std::runtime_error(args.picture + " cannot be written");
  if (!args.json) std::printf("picture written to %s\n", args.picture.c_str());
}

// Dimensions become known with a run, which ends where values would be computed. What there is to
// say of them.
std::string plan_dimensions(const InferenceSession& session, const WseArgs& args) {
  const Dims dims = parse_dims(args.dims);
  check_dims(session.get_inputs(), dims);
  const Feeder feeder(session.get_inputs(), {}, dims);
  const Attempt attempt = [&](const Feed& feed, const pyflame_rt::RunOptions* options) {
    try {
      run_once(session)(feed, options);
    } catch (const pyflame_rt::PyFlameRTError& error) {
      if (std::string(error.what()).find("timing_only") == std::string::npos) throw;
    }
  };
  try {
    const Dims assumed = fit_sizes(feeder, attempt);
    return assumed.empty() ? "" : "sizes " + assumed_text(assumed);
  } catch (const std::exception& error) {
    return "planned without the sizes of a run: " + one_line(error.what());
  }
}

void print_others(const InferenceSession& session) {
  std::string others;
  for (const pyflame_rt::ExplainStep& step : session.explain().steps)
    if (step.provider != "WSEExecutionProvider")
      others += "  " + step.nodes + " (" + step.ops +
                "): " + (step.refused.empty() ? step.reason : step.refused) + "\n";
  if (others.empty()) return;
  std::printf("\non the CPU:\n%s", others.c_str());
}

int plan_model(const WseArgs& args) {
  auto options = device_options(args);
  options["timing_only"] = "true";
  if (is_file(args.machine)) options["machine_file"] = args.machine;
  pyflame_rt::SessionOptions session_options;
  session_options.device = is_file(args.machine) ? "wse2" : args.machine;
  for (const auto& [key, value] : options) session_options.extra["provider.wse." + key] = value;
  const InferenceSession session(args.what, session_options);
  const std::string note = plan_dimensions(session, args);
  print(ask(args, "plan", args.json ? "json" : "text", options));
  if (!args.json) {
    print_others(session);
    if (!note.empty()) std::printf("note: %s\n", note.c_str());
  }
  if (!args.picture.empty()) write_picture(args, ask(args, "plan", "svg", options).text);
  return 0;
}

}  // namespace

int wse_command(const WseArgs& args) {
  const std::string json = args.json ? "json" : "";
  const int asked = int{!args.what.empty()} + int{!args.gemm.empty()} + int{!args.gemv.empty()} +
                    int{args.language_model};
  if (asked != 1)
    throw UsageError(
        "give one thing to look at: a model's file, validate, machine, --gemm, --gemv or "
        "--language-model");
  if (!args.gemm.empty() || !args.gemv.empty()) {
    std::vector<std::string> words = {args.gemm.empty() ? "gemv=" + args.gemv
                                                        : "gemm=" + args.gemm};
    if (!args.grid.empty()) words.push_back("grid=" + args.grid);
    if (!args.algorithm.empty()) words.push_back("algorithm=" + args.algorithm);
    if (args.json) words.push_back(json);
    print(ask(args, "product", joined(words), device_options(args)));
    return 0;
  }
  if (args.language_model) {
    std::vector<std::string> words = args.sizes;
    if (args.json) words.push_back(json);
    print(ask(args, "language-model", joined(words), device_options(args)));
    return 0;
  }
  if (args.what == "validate") {
    std::vector<std::string> words = args.changes;
    if (args.json) words.push_back(json);
    const pyflame_rt::Answer answer = ask(args, "validate", joined(words), {});
    print(answer);
    return answer.text.find(" 0 not met") != std::string::npos || args.json ? 0 : 1;
  }
  if (args.what == "machine") {
    print(ask(args, "machine", json, device_options(args)));
    return 0;
  }
  return plan_model(args);
}

}  // namespace cli
