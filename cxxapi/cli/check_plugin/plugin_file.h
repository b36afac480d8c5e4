// SPDX-License-Identifier: Apache-2.0
//
// A plug-in file as a host opens it, and the frame of each call into it: exceptions are caught, and
// state that the call must leave alone is compared afterwards. For one thread.
#pragma once

#include <string>
#include <utility>

#include "cxxapi/cli/check_plugin/trial.h"
#include "pyflame_rt/plugin.h"

namespace cli::check {

inline std::string text_of(pfrt_string s) {
  return s.data ? std::string(s.data, s.size) : std::string();
}
inline pfrt_string c_text(const std::string& s) { return {s.data(), s.size()}; }
std::string code_text(pfrt_code code);

// State of the process that a call must leave as it was.
class ProcessState {
 public:
  ProcessState();
  // Names the state that has changed since the construction; empty when none has.
  std::string changed() const;

 private:
  unsigned floats_;
  int rounding_;
  std::string locale_, folder_;
  std::string handlers_;
};
unsigned float_control();
size_t thread_count();
// Whether |count| threads run, now or soon: a joined thread may be listed a moment longer.
bool threads_are(size_t count);

// Calls |fn|, noting that a crash breaks |rule|.
template <typename Fn>
auto call(Trial& trial, std::string_view rule, const std::string& doing, Fn&& fn) {
  trial.at(rule, doing);
  const unsigned floats = float_control();
  const auto threw = [&](const std::string& what) {
    trial.fail("throws", "an exception left it while " + doing + what);
    throw Broken("threw");
  };
  const auto after = [&] {
    if (float_control() != floats)
      trial.fail("process-state", "the floating-point control word changed while " + doing);
  };
  try {
    if constexpr (std::is_void_v<decltype(fn())>) {
      fn();
      after();
      return;
    } else {
      auto result = fn();
      after();
      return result;
    }
  } catch (const Broken&) {
    throw;
  } catch (const std::exception& fault) {
    threw(std::string(": ") + fault.what());
  } catch (...) {
    threw("");
  }
  throw Broken("threw");
}

// A plug-in that is open for the length of a trial.
class PluginFile {
 public:
  // Throws Broken, with the finding, when the file cannot be opened.
  PluginFile(Trial& trial, const std::string& path);
  PluginFile(const PluginFile&) = delete;
  PluginFile& operator=(const PluginFile&) = delete;
  ~PluginFile();

  // Returns the description as a host of today gets it; throws Broken where there is none.
  pfrt_plugin_desc describe(Trial& trial) const;
  pfrt_plugin_query_fn query() const { return query_; }
  void close(Trial& trial);  // dlclose

 private:
  void* handle_ = nullptr;
  pfrt_plugin_query_fn query_ = nullptr;
};

pfrt_host_info host_info();
pfrt_sanitizer own_sanitizer();

}  // namespace cli::check
