// SPDX-License-Identifier: Apache-2.0
//
// Shared code of the programs that embed the library: work that uses most of it and returns
// everything that it computed, and the state of a process, which such work must leave unchanged.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "pyflame_rt/pyflame_rt.h"

namespace host {

// Exit code that ctest reads as "skipped".
inline constexpr int kSkip = 77;

// Returns the bytes of all results of loading, running, saving and loading again three models with
// |threads| threads ("0" = as many as there are), and the messages of errors provoked on purpose.
// Ends the program with a message when something fails.
std::string work(const char* threads = "0", const char* log_level = "off");
// Does the work too, but returns the first failure's code in |code| instead of ending the program.
std::string try_work(pfrt_code* code, const char* threads = "0", const char* log_level = "off");

// Holds an environment and a session open.
class Opened {
 public:
  Opened();
  ~Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  std::string run() const;  // the bytes of its results

 private:
  pfrt_env* env_ = nullptr;
  pfrt_session* session_ = nullptr;
};

// Locale, floating-point environment, signal handlers and masks, alternate stack, umask, current
// folder, environment variables, open files and their flags, timers, limits and threads, by name.
using State = std::map<std::string, std::string>;
State state();

// Returns 0 when |found| equals |expected|; else prints the differences and returns 1.
int compare_states(const char* when, const State& expected, const State& found);

// Compares |results| with those that the plain host wrote to the file named by the first argument.
int compare_results(const char* when, int argc, char** argv, const std::string& results);

// Runs |work| and compares state and results. Most hosts call it once they have set themselves up.
int check(const char* when, int argc, char** argv);

// Runs |fn| in a forked child and returns its exit code, or 128 and more when it crashed or hung.
int in_child(const std::function<int()>& fn);

// Runs |fn| on a thread with |stack| bytes of stack (0 = as usual).
int on_thread(size_t stack, const std::function<int()>& fn);

}  // namespace host
