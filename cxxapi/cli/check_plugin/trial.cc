// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/trial.h"

#include <chrono>
#include <stdexcept>

#include "cxxapi/cli/check_plugin/crash_note.h"
#include "cxxapi/cli/check_plugin/faults.h"
#include "cxxapi/cli/machine/process.h"
#include "cxxapi/cli/print/text.h"

namespace cli::check {
namespace {

constexpr char kField = '\x1f', kLine = '\x1e';

std::string pack(const Trial& trial) {
  std::string out;
  for (const Finding& f : trial.findings())
    out.append(f.rule).append(1, kField).append(f.found).append(1, kLine);
  for (const std::string& what : trial.skipped())
    out.append(1, kField).append(what).append(1, kLine);
  for (const auto& [key, value] : trial.facts())
    out.append("=").append(key).append(1, kField).append(value).append(1, kLine);
  return out;
}

TrialResult unpack(const std::string& text) {
  TrialResult out;
  for (size_t at = 0; at < text.size();) {
    const size_t field = text.find(kField, at), end = text.find(kLine, at);
    if (field == std::string::npos || end == std::string::npos || field > end) break;
    const std::string rule = text.substr(at, field - at);
    const std::string found = text.substr(field + 1, end - field - 1);
    if (rule.empty()) {
      out.skipped.push_back(found);
    } else if (rule[0] == '=') {
      out.facts[rule.substr(1)] = found;
    } else {
      out.findings.push_back({rule, found});
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

void Trial::at(std::string_view rule, std::string_view doing) { note_doing(rule, doing); }

void Trial::keep(std::string_view rule) { findings_.push_back({std::string(rule), {}}); }

void Trial::fail(std::string_view rule, const std::string& found) {
  findings_.push_back({std::string(rule), one_line(found)});
}

bool Trial::expect(bool good, std::string_view rule, const std::string& found) {
  if (good) {
    keep(rule);
  } else {
    fail(rule, found);
  }
  return good;
}

TrialResult run_trial(const std::function<void(Trial&)>& body, int seconds) {
  crash_note() = {};
  const auto work = [&] {
    catch_faults();
    Trial trial;
    try {
      body(trial);
    } catch (const Broken&) {  // its findings say why
    }
    return pack(trial);
  };
  const ChildResult child = run_in_child(work, std::chrono::seconds(seconds));
  if (child.ok) return unpack(child.output);
  const CrashNote& note = crash_note();
  if (note.rule[0] == 0) throw std::runtime_error("a test did not start: " + child.reason);
  const std::string fault =
      note.fault[0] ? note.fault : "it ended the process (" + child.reason + ")";
  return {{{note.rule, one_line(fault + ", while " + note.doing)}}, {}, {}, child.timed_out};
}

}  // namespace cli::check
