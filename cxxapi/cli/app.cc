// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/app.h"

#include <cstdio>
#include <memory>
#include <pyflame_rt/pyflame_rt.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/completion.h"

namespace cli {
namespace {

constexpr char kExitCodes[] =
    "Exit codes:\n"
    "  0    done\n"
    "  1    the work failed: a run, a test case, a plug-in's check, or doctor found a problem\n"
    "  2    the command line, the environment or an input file cannot be used\n"
    "  130  interrupted; bench has printed what it had measured\n"
    "With --json a failure is JSON as well: {\"error\":{\"message\",\"code\",\"exit_code\"}}.";

constexpr char kExamples[] =
    "Examples:\n"
    "  pfrt inspect model.onnx                   what the model contains\n"
    "  pfrt run model.onnx --input x=x.npy       its outputs; inputs that are not named are "
    "random\n"
    "  pfrt bench model.onnx --dim batch=8       how fast it is\n"
    "  pfrt explain model.onnx                   what runs where, and why\n"
    "  pfrt doctor                               whether this installation works\n"
    "  source <(pfrt completion bash)            completion of commands and options\n"
    "pfrt COMMAND --help, or pfrt help COMMAND, has the options and examples of each.\n";

// Adds a command whose action is |run| on |args|.
template <class Args>
CLI::App* add_command(CLI::App* app, const char* name, const char* help, int (*run)(const Args&),
                      const std::shared_ptr<Args>& args, std::function<int()>* action) {
  CLI::App* command = app->add_subcommand(name, help);
  command->add_flag("--json", args->json, "print JSON");
  command->callback([run, args, action] { *action = [run, args] { return run(*args); }; });
  return command;
}

void add_examples(CLI::App* command, const std::vector<std::string>& lines) {
  std::string text = lines.size() == 1 ? "Example:\n" : "Examples:\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  command->footer(text + "\n" + kExitCodes);
}

void add_provider(CLI::App* command, SessionArgs* args) {
  command
      ->add_option("--provider", args->providers,
                   "execution provider, by its name or short, as 'cpu'; repeat for a list")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--device", args->device,
                   "device, by a word that 'pfrt providers' lists: its provider, then the CPU's")
      ->type_name("WORD");
  command
      ->add_option("--option", args->options,
                   "PROVIDER.KEY=VALUE: an option of a provider's own; repeat for several")
      ->type_name("OPTION")
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
      ->type_name("PASS")
      ->allow_extra_args(false);
}

void add_verify(CLI::App* command, SessionArgs* args, const char* help) {
  command->add_flag("--verify", args->verify, help);
}

void add_precision(CLI::App* command, SessionArgs* args) {
  command->add_option("--precision", args->precision, "ieee, fp32, fast, bf16 or auto")
      ->check(CLI::IsMember({"ieee", "fp32", "fast", "bf16", "auto"}));
  command
      ->add_option("--max-error", args->max_error,
                   "of precision auto: the largest error of an output's element, relative to the "
                   "output's largest (default 0.001)")
      ->type_name("NUMBER");
}

void add_cache_dir(CLI::App* command, std::string* folder, const char* help) {
  command->add_option("--cache-dir", *folder, help)->type_name("FOLDER");
}

void add_session_cache(CLI::App* command, SessionArgs* args) {
  add_cache_dir(command, &args->cache_dir,
                "folder of compiled models, to start from and to add to (default: that of "
                "PFRT_CACHE_DIR); off = none");
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
  command
      ->add_option("--input", *inputs,
                   "NAME=FILE.npy|FILE.pb|random|zeros, or numbers: NAME=3, NAME=[[1,2],[3,4]], "
                   "NAME=[\"word\"] (default random)")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
}

void add_dims(CLI::App* command, std::vector<std::string>* dims) {
  command
      ->add_option("--dim", *dims,
                   "NAME=N: the size of a symbolic dimension, called INPUT:AXIS where it has no "
                   "name (default 1, or what fits)")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
}

void define_run(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<RunArgs>();
  CLI::App* const command =
      add_command(app, "run", "run a model and print its outputs", run_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  add_inputs(command, &args->inputs);
  add_dims(command, &args->dims);
  command
      ->add_option("--output", args->output,
                   "folder that receives each output as NAME.npy, or FILE.npy for the only one")
      ->type_name("PATH");
  command->add_option("--repeat", args->repeat, "runs to time");
  add_provider(command, &args->session);
  add_threads(command, &args->session);
  add_mode(command, &args->session);
  add_level(command, &args->session);
  add_skip(command, &args->session.skip);
  add_verify(command, &args->session,
             "compare results before and after each optimisation pass, on inputs made up; undo and "
             "name what changes them");
  add_precision(command, &args->session);
  add_tune(command, &args->session);
  add_session_cache(command, &args->session);
  add_examples(command, {"pfrt run model.onnx",
                         "pfrt run model.onnx --input image=image.npy --output results",
                         "pfrt run model.onnx --dim batch=8 --repeat 100 --threads 4 --json"});
}

void define_test(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<TestArgs>();
  CLI::App* const command =
      add_command(app, "test", "run ONNX backend test folders", test_command, args, action);
  command->add_option("dirs", args->dirs, "folders that hold one test or many")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--rtol", args->rtol, "tolerance relative to the element that is expected")
      ->capture_default_str();
  command
      ->add_option(
          "--atol", args->atol,
          "tolerance relative to the largest element that is expected, or to 1 where that is less")
      ->capture_default_str();
  command
      ->add_option("--report", args->report,
                   "file that receives case, verdict and reason, tab-separated")
      ->type_name("FILE");
  command->add_option("--timeout", args->timeout_seconds, "seconds a case may take")
      ->capture_default_str();
  add_provider(command, &args->session);
  add_threads(command, &args->session);
  add_level(command, &args->session);
  add_skip(command, &args->session.skip);
  add_verify(command, &args->session,
             "compare results before and after each optimisation pass, on inputs made up; what "
             "changes them fails the case");
  add_precision(command, &args->session);
  add_examples(command, {"pfrt test onnx/backend/test/data/node --report verdicts.tsv",
                         "pfrt test my_case --rtol 1e-4 --atol 1e-6"});
}

void define_bench(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<BenchArgs>();
  CLI::App* const command = add_command(
      app, "bench", "measure latency, alone or against ONNX Runtime", bench_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  command->add_option("--peer", args->peer, "ONNX Runtime's shared library")->type_name("FILE");
  command->add_option("--seconds", args->seconds, "time to run each side")->capture_default_str();
  add_inputs(command, &args->inputs);
  add_dims(command, &args->dims);
  add_threads(command, &args->session);
  add_mode(command, &args->session);
  add_precision(command, &args->session);
  add_tune(command, &args->session);
  add_session_cache(command, &args->session);
  add_examples(command, {"pfrt bench model.onnx --dim batch=8 --threads 4",
                         "pfrt bench model.onnx --peer libonnxruntime.so --seconds 10 --json"});
}

void define_inspect(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<InspectArgs>();
  CLI::App* const command =
      add_command(app, "inspect", "print what a model contains", inspect_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  CLI::Option* const html =
      command
          ->add_option("--html", args->html,
                       "file that receives a page with the graph, before and after passes")
          ->type_name("FILE");
  args->session.level = "all";
  add_level(command, &args->session)->needs(html)->capture_default_str();
  command
      ->add_flag("--memory", args->memory,
                 "also what a session takes, after a run on random inputs where they suit")
      ->excludes(html);
  add_examples(command, {"pfrt inspect model.onnx",
                         "pfrt inspect model.onnx --html model.html --level extended"});
}

void define_explain(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ExplainArgs>();
  CLI::App* const command =
      add_command(app, "explain", "print what runs where and why", explain_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  add_inputs(command, &args->inputs);
  add_dims(command, &args->dims);
  add_provider(command, &args->session);
  add_level(command, &args->session);
  add_skip(command, &args->session.skip);
  add_precision(command, &args->session);
  add_tune(command, &args->session);
  add_session_cache(command, &args->session);
  add_examples(command,
               {"pfrt explain model.onnx", "pfrt explain model.onnx --level none --provider cpu"});
}

void define_profile(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ProfileArgs>();
  CLI::App* const command =
      add_command(app, "profile", "write a trace of some runs and their steps, for Perfetto",
                  profile_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  command->add_option("-o,--output", args->output, "file to write")
      ->capture_default_str()
      ->type_name("FILE");
  add_inputs(command, &args->inputs);
  add_dims(command, &args->dims);
  add_provider(command, &args->session);
  add_threads(command, &args->session);
  add_mode(command, &args->session);
  add_level(command, &args->session);
  add_skip(command, &args->session.skip);
  add_precision(command, &args->session);
  add_tune(command, &args->session);
  add_session_cache(command, &args->session);
  command->add_option("--runs", args->runs, "runs to record, after a few to warm up")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  command->add_option("--html", args->html, "page to write, which draws the trace")
      ->type_name("FILE");
  command->add_flag("!--no-measure", args->measure,
                    "leave out what the machine can do, which takes seconds to measure");
  add_examples(command, {"pfrt profile model.onnx -o trace.json --dim batch=8",
                         "pfrt profile model.onnx --html profile.html"});
}

void define_convert(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ConvertArgs>();
  CLI::App* const command =
      add_command(app, "convert", "write a model in the format of another extension",
                  convert_command, args, action);
  command->add_option("in", args->in, "model file")->required()->type_name("FILE");
  command->add_option("out", args->out, "file to write")->required()->type_name("FILE");
  command->add_flag("--force", args->force, "the file to write may be the model file");
  add_examples(command, {"pfrt convert model.onnx model.pfm"});
}

void define_optimize(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<OptimizeArgs>();
  CLI::App* const command =
      add_command(app, "optimize", "write a model as the optimisation passes leave it",
                  optimize_command, args, action);
  command->add_option("in", args->in, "model file")->required()->type_name("FILE");
  command->add_option("out", args->out, "file to write")->required()->type_name("FILE");
  command->add_flag("--force", args->force, "the file to write may be the model file");
  command->add_option("--skip", args->skip, "a pass to leave out, by name; repeat for several")
      ->type_name("PASS")
      ->allow_extra_args(false);
  add_level(command, &args->session);
  command->add_flag("--verify", args->verify,
                    "compare results before and after each pass, and undo what changes them");
  add_examples(command, {"pfrt optimize model.onnx smaller.onnx --verify",
                         "pfrt optimize model.onnx model.onnx --force --level basic"});
}

void define_cache(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<CacheArgs>();
  CLI::App* const command = add_command(app, "cache", "look after a cache of compiled models",
                                        cache_command, args, action);
  command->add_option("action", args->action, "list its entries, clear it, or warm it with models")
      ->required()
      ->check(CLI::IsMember({"list", "clear", "warm"}));
  command->add_option("models", args->models, "of warm: model files")->type_name("FILE");
  command
      ->add_option("--cache-dir,--dir", args->folder,
                   "its folder (default: that of PFRT_CACHE_DIR)")
      ->type_name("FOLDER");
  command->add_flag("--check", args->check, "of list: read all entries and say which are whole");
  add_provider(command, &args->session);
  add_level(command, &args->session);
  add_precision(command, &args->session);
  add_examples(command,
               {"pfrt cache warm a.onnx b.onnx --cache-dir /var/cache/models",
                "pfrt cache list --check", "PFRT_CACHE_DIR=/var/cache/models pfrt run a.onnx"});
}

void define_tune(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<TuneArgs>();
  CLI::App* const command = add_command(
      app, "tune", "measure how the kernels of a model divide their work best, and remember it",
      tune_command, args, action);
  command->add_option("model", args->model, "model file")->required()->type_name("FILE");
  add_cache_dir(command, &args->folder,
                "folder that keeps what is found (default: that of PFRT_CACHE_DIR)");
  command
      ->add_option("--budget", args->budget,
                   "seconds to measure for in all (default 3 for each plan)")
      ->type_name("SECONDS");
  command
      ->add_option("--search", args->search,
                   "race: the few forms that are usually worth it; random: some of many more; "
                   "model: those of which a model of their times expects most")
      ->check(CLI::IsMember({"race", "random", "model"}));
  command
      ->add_option("--iterations", args->iterations,
                   "of --search random and model: forms that are measured after the first ten, at "
                   "most (default 30)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N");
  add_inputs(command, &args->inputs);
  add_dims(command, &args->dims);
  add_provider(command, &args->session);
  add_level(command, &args->session);
  add_skip(command, &args->session.skip);
  add_precision(command, &args->session);
  add_examples(command, {"pfrt tune model.onnx --cache-dir /var/cache/models",
                         "pfrt tune model.onnx --search model --budget 60 --dim batch=8 --json"});
}

void define_providers(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ListArgs>();
  CLI::App* const command =
      add_command(app, "providers", "list execution providers", providers_command, args, action);
  command->add_flag("--kernels", args->kernels, "with the kernels of each");
  add_examples(command, {"pfrt providers --kernels"});
}

void define_ops(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ListArgs>();
  CLI::App* const command = add_command(app, "ops", "list operators", ops_command, args, action);
  command->add_flag(
      "--notes", args->notes,
      "only what was followed where the standard's text, its reference and ONNX Runtime "
      "differ");
  add_examples(command, {"pfrt ops --json", "pfrt ops --notes"});
}

void define_passes(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<PassesArgs>();
  CLI::App* const command = add_command(
      app, "passes", "list optimisation passes and their rewrites", passes_command, args, action);
  CLI::Option* const markdown =
      command->add_flag("--markdown", args->markdown, "print the page core/pass/rules/REWRITES.md");
  markdown->excludes("--json");
  add_examples(command, {"pfrt passes"});
}

void define_plugins(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<ListArgs>();
  CLI::App* const command =
      add_command(app, "plugins", "list plug-ins", plugins_command, args, action);
  add_examples(command, {"PFRT_PLUGIN_PATH=my_plugins pfrt plugins"});
}

void define_check_plugin(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<CheckPluginArgs>();
  CLI::App* const command =
      add_command(app, "check-plugin", "test a plug-in file against the rules of plugin.h",
                  check_plugin_command, args, action);
  command->add_option("file", args->file, "the shared object")->required()->type_name("FILE");
  add_examples(command, {"pfrt check-plugin ./libpyflamert_provider_mine.so"});
}

void define_ask(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<AskArgs>();
  CLI::App* const command = add_command(
      app, "ask", "ask a provider's device something, without a model", ask_command, args, action);
  command->add_option("provider", args->provider, "by its name or short, as 'cpu'")
      ->required()
      ->type_name("NAME");
  command->add_option("verb", args->verb, "what to do, in the provider's own word")
      ->required()
      ->type_name("WORD");
  command->add_option("request", args->request, "how, in the form that the verb wants")
      ->type_name("TEXT");
  command->add_option("--device", args->device, "which of its devices (default the first)")
      ->type_name("WORD");
  add_examples(command,
               {"pfrt ask mine selftest", "pfrt ask mine validate '{\"depth\": 2}' --json"});
}

void define_wse(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<WseArgs>();
  CLI::App* const command =
      add_command(app, "wse", "print what a model takes on a simulated wafer-scale engine",
                  wse_command, args, action);
  command
      ->add_option("what", args->what,
                   "model file; or validate: the simulator against published figures; or machine: "
                   "its numbers and where they come from")
      ->type_name("FILE|WORD");
  command
      ->add_option("--machine", args->machine, "wse, wse2, wse3 or a machine file (default wse2)")
      ->type_name("WORD|FILE");
  command->add_option("--chips", args->chips, "wafers, as columns x rows (default 1x1)")
      ->type_name("WxH");
  command->add_option("--fabric", args->fabric, "PEs that may be used, as 480x480 (default all)")
      ->type_name("WxH");
  command
      ->add_option("--arithmetic", args->arithmetic, "fp16, bf16, fp32 or f32_fast (default fp16)")
      ->check(CLI::IsMember({"fp16", "bf16", "fp32", "f32_fast"}));
  command->add_flag("--silicon", args->silicon,
                    "numbers measured on the machine over those of its vendor's simulator");
  command
      ->add_option("--option", args->options, "KEY=VALUE: another option of the provider's; repeat")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  add_dims(command, &args->dims);
  command
      ->add_option("--picture", args->picture,
                   "file.svg or file.html that receives the wafer, by how long its PEs are at work")
      ->type_name("FILE");
  command->add_option("--set", args->changes, "of validate: NUMBER=VALUE in a machine file; repeat")
      ->type_name("NUMBER=VALUE")
      ->allow_extra_args(false);
  command->add_option("--gemm", args->gemm, "a product of matrices, without a model")
      ->type_name("MxKxN");
  command->add_option("--gemv", args->gemv, "a product of a vector and a matrix")->type_name("KxN");
  command
      ->add_option("--grid", args->grid, "of a product: the side of its square of PEs (default 64)")
      ->type_name("N");
  command
      ->add_option(
          "--group", args->group,
          "of --gemv: PEs of a group of the tree that its sums go along (default about the "
          "root of --grid)")
      ->type_name("N");
  command->add_flag(
      "--values", args->values,
      "of --gemm: compute it too, on random numbers in the order of the wafer's sums");
  command->add_option("--algorithm", args->algorithm, "of --gemm (default meshgemm)")
      ->check(CLI::IsMember({"meshgemm", "cannon", "summa"}));
  command->add_flag(
      "--language-model", args->language_model,
      "tokens a second of a LLaMA-shaped model (LLaMA3-8B where --size gives nothing)");
  command
      ->add_option("--size", args->sizes,
                   "of a language model: layers, width, heads, kv_heads, inner, context, tokens, "
                   "new_tokens, prefill_grids, decode_grids, groups; as layers=40; repeat")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_examples(command, {"pfrt wse model.onnx --machine wse3 --picture wafer.svg",
                         "pfrt wse validate", "pfrt wse --gemm 4096x4096x4096 --grid 512 --json",
                         "pfrt wse --language-model --size layers=40 --size width=5120",
                         "pfrt wse --gemv 16384x16384 --grid 512 --group 32"});
}

void define_doctor(CLI::App* app, std::function<int()>* action) {
  const auto args = std::make_shared<DoctorArgs>();
  CLI::App* const command = add_command(
      app, "doctor", "print what this machine and installation have", doctor_command, args, action);
  CLI::Option* const measure = command->add_flag(
      "--measure", args->measure,
      "measure what the machine can do at most: arithmetic, and reading each level of memory");
  command->add_option("--seconds", args->seconds, "how long that may take, about (default 10)")
      ->check(CLI::Range(0.001, 3600.0))
      ->needs(measure);
  command->add_option("--only", args->only, "measure what begins so: \"read\", \"bf16 tiles\"")
      ->needs(measure)
      ->type_name("NAME");
  command
      ->add_option("--threads", args->threads,
                   "measure on one thread and on so many; 0 = as many as runs have")
      ->check(CLI::Range(0, 4096))
      ->needs(measure);
  command
      ->add_option("--executor", args->executor,
                   "look as a program does that has this environment option: whether loops of its "
                   "runs could use other threads than the library's own")
      ->type_name("NAME");
  add_examples(command, {"pfrt doctor", "pfrt doctor --measure --only read --seconds 5",
                         "pfrt doctor --executor tbb"});
}

void define_completion(CLI::App* app, std::function<int()>* action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const command =
      app->add_subcommand("completion", "print the script that teaches a shell these commands");
  command->add_option("shell", *shell, "of which")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([app, shell, action] {
    *action = [app, shell] {
      std::fputs(completion_script(*app, *shell).c_str(), stdout);
      return 0;
    };
  });
  add_examples(command, {"source <(pfrt completion bash)   # in ~/.bashrc",
                         "pfrt completion zsh > ~/.zfunc/_pfrt   # a folder of $fpath",
                         "pfrt completion fish > ~/.config/fish/completions/pfrt.fish"});
}

// Refuses empty words, which a script's unset variable leaves; no option gives them a meaning.
void refuse_empty_values(CLI::App* app) {
  for (CLI::App* command : app->get_subcommands({}))
    for (CLI::Option* option : command->get_options())
      if (option->get_items_expected_max() > 0)
        option->check([](const std::string& word) {
          return std::string(word.empty() ? "is given an empty word" : "");
        });
}

}  // namespace

void define(CLI::App* app, std::function<int()>* action) {
  app->require_subcommand(0, 1);
  app->set_version_flag("--version", [] { return pyflame_rt::version(); });
  app->footer(std::string(kExamples) + "\n" + kExitCodes);
  for (const auto define_one :
       {define_run, define_test, define_bench, define_inspect, define_explain, define_profile,
        define_convert, define_optimize, define_cache, define_tune, define_providers, define_ops,
        define_passes, define_plugins, define_check_plugin, define_ask, define_wse, define_doctor,
        define_completion})
    define_one(app, action);
  refuse_empty_values(app);
}

}  // namespace cli
