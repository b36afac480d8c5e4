// SPDX-License-Identifier: Apache-2.0
//
// The command line: what each command takes, and how failures become exit codes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <pyflame_rt/pyflame_rt.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/json.h"
#include "cxxapi/cli/line/mistakes.h"
#include "cxxapi/cli/line/variables.h"
#include "cxxapi/cli/text.h"

namespace cli {

pyflame_rt::SessionOptions session_options(const SessionArgs& args) {
  pyflame_rt::SessionOptions options;
  options.num_threads = args.threads;
  options.providers = args.providers;
  if (!args.precision.empty()) options.precision = args.precision;
  if (!args.mode.empty()) options.execution_mode = args.mode;
  if (!args.max_error.empty()) options.extra["max_error"] = args.max_error;
  if (args.verify) options.extra["verify"] = "on";
  if (args.tune) options.tune = "on";
  std::string skip;
  for (const std::string& pass : args.skip) skip += (skip.empty() ? "" : ",") + pass;
  if (!skip.empty()) options.extra["skip_passes"] = skip;
  const std::vector<std::string> levels = {"none", "basic", "extended", "all"};
  for (size_t i = 0; i < levels.size(); ++i) {
    if (args.level == levels[i]) options.optimization_level = static_cast<pyflame_rt::OptLevel>(i);
  }
  return options;
}

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 the work failed (a run, a test case, a plug-in's check, or doctor found "
    "a\n"
    "problem); 2 the command line, the environment or an input file cannot be used;\n"
    "130 bench was interrupted, and printed what it had measured.\n"
    "With --json a failure is JSON as well: {\"error\":{\"message\",\"code\",\"exit_code\"}}.";

// Adds a command whose action is |run| on |args|.
template <class Args>
CLI::App* add_command(CLI::App* app, const char* name, const char* help, int (*run)(const Args&),
                      const std::shared_ptr<Args>& args, std::function<int()>* action) {
  CLI::App* command = app->add_subcommand(name, help);
  command->add_flag("--json", args->json, "print JSON");
  command->callback([run, args, action] { *action = [run, args] { return run(*args); }; });
  return command;
}

void add_providers(CLI::App* command, SessionArgs* args) {
  command
      ->add_option("--provider", args->providers,
                   "execution provider, by its name or short, as 'cpu'; repeat for a list")
      ->allow_extra_args(false);
}

void add_threads(CLI::App* command, SessionArgs* args) {
  command->add_option("--threads", args->threads, "threads of a run; 0 = as many as may run")
      ->check(CLI::Range(0, 4096));
}

CLI::Option* add_level(CLI::App* command, SessionArgs* args) {
  return command->add_option("--level", args->level, "optimisation level")
      ->check(CLI::IsMember({"none", "basic", "extended", "all"}));
}

void add_skip(CLI::App* command, std::vector<std::string>* skip) {
  command
      ->add_option("--skip", *skip,
                   "an optimisation pass to leave out, by name; repeat for several")
      ->allow_extra_args(false);
}

void add_verify(CLI::App* command, SessionArgs* args, const char* help) {
  command->add_flag("--verify", args->verify, help);
}

void add_precision(CLI::App* command, SessionArgs* args) {
  command->add_option("--precision", args->precision, "ieee, fp32, fast, bf16 or auto")
      ->check(CLI::IsMember({"ieee", "fp32", "fast", "bf16", "auto"}));
  command->add_option(
      "--max-error", args->max_error,
      "of precision auto: the largest error of an output's element, relative to the "
      "output's largest (default 0.001)");
}

void add_mode(CLI::App* command, SessionArgs* args) {
  command
      ->add_option("--mode", args->mode,
                   "sequential: one step at a time, each on all threads; parallel: independent "
                   "steps at once")
      ->check(CLI::IsMember({"sequential", "parallel"}));
}

void add_tune(CLI::App* command, SessionArgs* args) {
  command->add_flag("--tune", args->tune,
                    "refine by measurement how kernels divide their work, which takes seconds at "
                    "the first run");
}

void add_inputs(CLI::App* command, std::vector<std::string>* inputs) {
  command->add_option("--input", *inputs, "NAME=FILE.npy|FILE.pb|random|zeros (default random)")
      ->allow_extra_args(false);
}

void add_dims(CLI::App* command, std::vector<std::string>* dims) {
  command->add_option("--dim", *dims, "NAME=N: the size of a symbolic dimension (default 1)")
      ->allow_extra_args(false);
}

void add_commands(CLI::App* app, std::function<int()>* action) {
  const auto run = std::make_shared<RunArgs>();
  CLI::App* c =
      add_command(app, "run", "run a model and print its outputs", run_command, run, action);
  c->add_option("model", run->model, "model file")->required();
  add_inputs(c, &run->inputs);
  add_dims(c, &run->dims);
  c->add_option("--output", run->output, "folder that receives each output as NAME.npy");
  c->add_option("--repeat", run->repeat, "runs to time");
  add_providers(c, &run->session);
  add_threads(c, &run->session);
  add_mode(c, &run->session);
  add_level(c, &run->session);
  add_skip(c, &run->session.skip);
  add_verify(c, &run->session,
             "compare results before and after each optimisation pass, on inputs made up; undo and "
             "name what changes them");
  add_precision(c, &run->session);
  add_tune(c, &run->session);

  const auto test = std::make_shared<TestArgs>();
  c = add_command(app, "test", "run ONNX backend test folders", test_command, test, action);
  c->add_option("dirs", test->dirs, "folders that hold one test or many")->required();
  c->add_option("--rtol", test->rtol, "relative tolerance")->capture_default_str();
  c->add_option("--atol", test->atol, "absolute tolerance")->capture_default_str();
  c->add_option("--report", test->report,
                "file that receives case, verdict and reason, tab-separated");
  c->add_option("--timeout", test->timeout_seconds, "seconds a case may take")
      ->capture_default_str();
  add_providers(c, &test->session);
  add_threads(c, &test->session);
  add_level(c, &test->session);
  add_skip(c, &test->session.skip);
  add_verify(c, &test->session,
             "compare results before and after each optimisation pass, on inputs made up; what "
             "changes them fails the case");
  add_precision(c, &test->session);

  const auto bench = std::make_shared<BenchArgs>();
  c = add_command(app, "bench", "measure latency, alone or against ONNX Runtime", bench_command,
                  bench, action);
  c->add_option("model", bench->model, "model file")->required();
  c->add_option("--peer", bench->peer, "ONNX Runtime's shared library");
  c->add_option("--seconds", bench->seconds, "time to run each side")->capture_default_str();
  c->add_option("--input", bench->inputs, "NAME=FILE.npy|FILE.pb (default random)")
      ->allow_extra_args(false);
  add_dims(c, &bench->dims);
  add_threads(c, &bench->session);
  add_mode(c, &bench->session);
  add_precision(c, &bench->session);
  add_tune(c, &bench->session);

  const auto inspect = std::make_shared<InspectArgs>();
  c = add_command(app, "inspect", "print what a model contains", inspect_command, inspect, action);
  c->add_option("model", inspect->model, "model file")->required();
  CLI::Option* const html = c->add_option(
      "--html", inspect->html, "file that receives a page with the graph, before and after passes");
  inspect->session.level = "all";
  add_level(c, &inspect->session)->needs(html)->capture_default_str();

  const auto explain = std::make_shared<ExplainArgs>();
  c = add_command(app, "explain", "print what runs where and why", explain_command, explain,
                  action);
  c->add_option("model", explain->model, "model file")->required();
  add_inputs(c, &explain->inputs);
  add_dims(c, &explain->dims);
  add_providers(c, &explain->session);
  add_level(c, &explain->session);
  add_skip(c, &explain->session.skip);
  add_precision(c, &explain->session);
  add_tune(c, &explain->session);

  const auto profile = std::make_shared<ProfileArgs>();
  c = add_command(app, "profile", "write a trace of the steps of a run, for Perfetto",
                  profile_command, profile, action);
  c->add_option("model", profile->model, "model file")->required();
  c->add_option("-o,--output", profile->output, "file to write")->capture_default_str();
  add_inputs(c, &profile->inputs);
  add_dims(c, &profile->dims);
  add_providers(c, &profile->session);
  add_threads(c, &profile->session);
  add_mode(c, &profile->session);
  add_level(c, &profile->session);
  add_skip(c, &profile->session.skip);
  add_precision(c, &profile->session);
  add_tune(c, &profile->session);

  const auto convert = std::make_shared<ConvertArgs>();
  c = add_command(app, "convert", "write a model in the format of another extension",
                  convert_command, convert, action);
  c->add_option("in", convert->in, "model file")->required();
  c->add_option("out", convert->out, "file to write")->required();

  const auto optimize = std::make_shared<OptimizeArgs>();
  c = add_command(app, "optimize", "write a model as the optimisation passes leave it",
                  optimize_command, optimize, action);
  c->add_option("in", optimize->in, "model file")->required();
  c->add_option("out", optimize->out, "file to write")->required();
  c->add_option("--skip", optimize->skip, "a pass to leave out, by name; repeat for several")
      ->allow_extra_args(false);
  add_level(c, &optimize->session);
  c->add_flag("--verify", optimize->verify,
              "compare results before and after each pass, and undo what changes them");

  const auto providers = std::make_shared<ListArgs>();
  c = add_command(app, "providers", "list execution providers", providers_command, providers,
                  action);
  c->add_flag("--kernels", providers->kernels, "with the kernels of each");
  const auto ops = std::make_shared<ListArgs>();
  c = add_command(app, "ops", "list operators", ops_command, ops, action);
  c->add_flag("--notes", ops->notes,
              "only what was followed where the standard's text, its reference and ONNX Runtime "
              "differ");
  const auto passes = std::make_shared<PassesArgs>();
  c = add_command(app, "passes", "list optimisation passes and their rewrites", passes_command,
                  passes, action);
  CLI::Option* const markdown =
      c->add_flag("--markdown", passes->markdown, "print the page core/pass/rules/REWRITES.md");
  markdown->excludes("--json");
  add_command(app, "plugins", "list plug-ins", plugins_command, std::make_shared<ListArgs>(),
              action);
  const auto check = std::make_shared<CheckPluginArgs>();
  c = add_command(app, "check-plugin", "test a plug-in file against the rules of plugin.h",
                  check_plugin_command, check, action);
  c->add_option("file", check->file, "the shared object")->required();
  const auto doctor = std::make_shared<DoctorArgs>();
  c = add_command(app, "doctor", "print what this machine and installation have", doctor_command,
                  doctor, action);
  CLI::Option* const measure = c->add_flag(
      "--measure", doctor->measure,
      "measure what the machine can do at most: arithmetic, and reading each level of memory");
  c->add_option("--seconds", doctor->seconds, "how long that may take, about (default 10)")
      ->check(CLI::Range(0.001, 3600.0))
      ->needs(measure);
  c->add_option("--only", doctor->only, "measure what begins so: \"read\", \"bf16 tiles\"")
      ->needs(measure);
  c->add_option("--threads", doctor->threads,
                "measure on one thread and on so many; 0 = as many as runs have")
      ->check(CLI::Range(0, 4096))
      ->needs(measure);
}

// As it was typed: a command line that cannot be parsed is to fail in JSON too.
bool json_asked(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i)
    if (std::strcmp(argv[i], "--json") == 0) return true;
  return false;
}

int fail(int exit_code, const std::string& message, pfrt_code code, bool json) {
  if (!json) {
    std::fprintf(stderr, "pfrt: %s\n", one_line(message).c_str());
    return exit_code;
  }
  const pfrt_string text = pyflame_rt::api().status->code_text(code);
  Json out;
  out.object().key("error").object().field("message", message);
  out.field("code", std::string_view(text.data, text.size)).field("exit_code", exit_code);
  out.end().end().print();
  return exit_code;
}

// Failures of the work itself; everything else is the input's fault.
bool is_work_failure(pfrt_code code) {
  switch (code) {
    case PFRT_CODE_PROVIDER:
    case PFRT_CODE_CANCELLED:
    case PFRT_CODE_DEADLINE:
    case PFRT_CODE_OUT_OF_MEMORY:
    case PFRT_CODE_DEVICE_LOST:
    case PFRT_CODE_INTERNAL:
      return true;
    default:
      return false;
  }
}

int main_guarded(int argc, char** argv) {
  CLI::App app("pfrt: run, test, measure and explain models", "pfrt");
  app.footer(kExitCodes);  // of the commands added below too
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", [] { return pyflame_rt::version(); });
  std::function<int()> action;
  add_commands(&app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == kDone) return app.exit(error);  // --help, --version
    throw UsageError(explain(error, app));
  }
  if (!action) throw UsageError("name a command; pfrt --help lists them");
  check_variables();
  return action();
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
  const bool json = cli::json_asked(argc, argv);
  try {
    return cli::main_guarded(argc, argv);
  } catch (const cli::UsageError& error) {
    return cli::fail(cli::kUsage, error.what(), PFRT_CODE_INVALID_ARGUMENT, json);
  } catch (const pyflame_rt::PyFlameRTError& error) {
    return cli::fail(cli::is_work_failure(error.code()) ? cli::kFailed : cli::kUsage, error.what(),
                     error.code(), json);
  } catch (const std::bad_alloc& error) {
    return cli::fail(cli::kFailed, error.what(), PFRT_CODE_OUT_OF_MEMORY, json);
  } catch (const std::exception& error) {
    return cli::fail(cli::kFailed, error.what(), PFRT_CODE_INTERNAL, json);
  }
}
