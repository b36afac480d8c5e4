// SPDX-License-Identifier: Apache-2.0
//
// Runs the command that the command line names, and turns failures into exit codes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <new>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <vector>

#include "cxxapi/cli/app.h"
#include "cxxapi/cli/line/environment_variables.h"
#include "cxxapi/cli/line/mistakes.h"
#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/text.h"

namespace cli {

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
// Whether --json was typed: a command line that cannot be parsed is to fail in JSON too.
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

// The words of the command line, in the order that CLI::App::parse wants, the last first. help and
// version are commands of many tools; here they are options.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.size() == 1 && words[0] == "version") {
    words[0] = "--version";
  }
  // Its help would be that of pfrt.
  if (!words.empty() && words[0].compare(0, 1, "-") != 0 && !has_command(app, words[0]))
    throw UsageError(explain_command(app, words[0]));
  return {words.rbegin(), words.rend()};
}

int main_guarded(int argc, char** argv) {
  CLI::App app("pfrt: run, test, measure and explain models", "pfrt");
  std::function<int()> action;
  define(&app, &action);
  try {
    app.parse(words_of(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == kDone) return app.exit(error);  // --help, --version
    throw UsageError(explain(error, app));
  }
  if (!action) throw UsageError("name a command; pfrt --help lists them");
  check_variables();
  return action();
}

// The exit code once all that was printed has reached its file; failures of the work come first.
int written(int exit_code) {
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!lost || exit_code != kDone) return exit_code;
  std::fprintf(stderr, "pfrt: writing the output: %s\n", std::strerror(errno));
  return kFailed;
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
  const bool json = cli::json_asked(argc, argv);
  try {
    return cli::written(cli::main_guarded(argc, argv));
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
