// SPDX-License-Identifier: Apache-2.0
//
// Tests of a provider's reports about itself and about what it compiled: its fingerprint, answers
// to questions, and counters.
#include <algorithm>
#include <cstring>

#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/provider_host.h"
#include "cxxapi/cli/check_plugin/unknown_verb.h"

namespace cli::check {
namespace {

constexpr size_t kLongestFingerprint = 65536;

// The length of the UTF-8 sequence at |s|, or 0.
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(1);
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return too_long || no_character ? 0 : length;
}

bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    const size_t length = sequence_length(s);
    if (length == 0) return false;
    s.remove_prefix(length);
  }
  return true;
}

std::string fingerprint_of(Trial& trial, const Device& device) {
  HostSink sink(device.age());
  pfrt_string given{};
  const pfrt_code code = call(trial, "fingerprint", "its fingerprint was asked for", [&] {
    return device.table().fingerprint(device.handle(), sink.get(), &given);
  });
  trial.expect(code == PFRT_CODE_OK, "fingerprint", "it gave no fingerprint: " + sink.reason(code));
  const bool sized = given.data && given.size > 0 && given.size <= kLongestFingerprint;
  if (code != PFRT_CODE_OK ||
      !trial.expect(sized, "fingerprint",
                    "it is of " + std::to_string(given.size) + " bytes; 1 to " +
                        std::to_string(kLongestFingerprint) + " are needed"))
    throw Broken("fingerprint");
  std::string text = text_of(given);
  trial.expect(is_utf8(text), "fingerprint", "it is not UTF-8");
  return text;
}

void check_fingerprint(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  Device device(trial, file, Age::kNow);
  if (!device.ok()) return;
  const std::string text = fingerprint_of(trial, device);
  for (Age age : {Age::kNow, Age::kNewer}) {
    Device again(trial, file, age);
    if (!again.ok()) return;
    const std::string other = fingerprint_of(trial, again);
    std::string found = "it was '";
    found.append(text).append("', and opened again ").append(age_text(age));
    found.append(" it is '").append(other).append("'");
    trial.expect(other == text, "fingerprint", found);
    again.close();
  }
  device.close();
}

void check_unknown_verb(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  for (Age age : {Age::kNow, Age::kNewer}) {
    Device device(trial, file, age);
    if (!device.ok()) return;
    expect_unknown_verb(
        trial, age,
        [&](const pfrt_question* question, const pfrt_answer* answer, const pfrt_sink* sink) {
          return device.table().ask(device.handle(), question, answer, sink);
        });
    device.close();
  }
}

// Owns an executable and a program of it, which is released first.
class Compiled {
 public:
  Compiled(Trial& trial, Device& device, pfrt_executable* handle)
      : trial_(trial), device_(device), handle_(handle) {}
  ~Compiled() {
    const pfrt_provider_table& table = device_.table();
    trial_.at("double-release", "an executable and its program were released");
    if (program_) table.release_program(handle_, program_->get());
    table.release_executable(handle_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  pfrt_executable* handle() const { return handle_; }
  const pfrt_program* program() const { return program_->get(); }
  // Returns false when the provider refuses, which needs a reason.
  bool specialise(const Case& c) {
    HostShapes shapes(c, device_.age());
    HostSink sink(device_.age());
    auto program = std::make_unique<Sized<pfrt_program>>(device_.age(), pfrt_program{}, "program");
    const pfrt_code code = call(trial_, "program", c.name + " was specialised", [&] {
      return device_.table().specialise(handle_, shapes.get(), sink.get(), program->get());
    });
    if (code == PFRT_CODE_OK) program_ = std::move(program);
    trial_.expect(code == PFRT_CODE_OK || !sink.text().empty(), "refusal",
                  "specialise refused " + c.name + ", without a reason");
    return code == PFRT_CODE_OK;
  }

 private:
  Trial& trial_;
  Device& device_;
  pfrt_executable* handle_;
  std::unique_ptr<Sized<pfrt_program>> program_;
};

struct Counted {
  uint32_t step_count;
  bool ran;           // the program has run
  std::string fault;  // the first fault
};

void take_counter(const pfrt_counters* table, pfrt_string name, double, pfrt_string unit,
                  uint32_t step) {
  auto& to = *static_cast<Counted*>(table->host);
  if (!to.fault.empty()) return;
  const std::string text = text_of(name);
  if (!to.ran) {
    to.fault = "it reports '" + text + "' of a program that has not run";
  } else if (text.empty()) {
    to.fault = "a figure has no name";
  } else if (!is_utf8(text) || !is_utf8(text_of(unit))) {
    to.fault = "the name or the unit of a figure is not UTF-8";
  } else if (step != PFRT_NO_INDEX && step >= to.step_count) {
    to.fault = "'" + text + "' is of step " + std::to_string(step) + " of " +
               std::to_string(to.step_count);
  }
}

void check_report(Trial& trial, const Device& device, const Compiled& compiled, const Case& c,
                  bool ran) {
  if (!device.has(PFRT_PROVIDER_REPORT)) return;
  Counted counted{compiled.program()->step_count, ran, {}};
  pfrt_counters counters{};
  counters.host = &counted;
  counters.add = take_counter;
  Sized<pfrt_counters> table(device.age(), counters, "the table of counters");
  table.make_read_only();
  HostSink sink(device.age());
  const pfrt_code code = call(trial, "report", "it reported of " + c.name, [&] {
    return device.table().report(compiled.handle(), compiled.program(), table.get(), sink.get());
  });
  trial.expect(code == PFRT_CODE_OK || !sink.text().empty(), "refusal",
               "report failed on " + c.name + ", without a reason");
  trial.expect(counted.fault.empty(), "report", counted.fault + " (" + c.name + ")");
}

// Checks what is reported before |compiled| runs and afterwards. It does not run where it is
// refused or has memory of its own.
void check_reports(Trial& trial, Device& device, Compiled& compiled, const HostSnapshot& snapshot,
                   const Case& c) {
  const auto constants = pack_constants(trial, device, compiled.handle(), snapshot, c);
  if (!compiled.specialise(c)) return;
  check_report(trial, device, compiled, c, false);
  const ProgramView view = read_program(trial, *compiled.program(), c, snapshot, constants.size());
  if (!view.host_memory) return;
  ProgramRun run(view, c, snapshot, constants, {device.age(), Placed::kAtEnd, 1, false});
  if (run.run(trial)) check_report(trial, device, compiled, c, true);
}

std::unique_ptr<Compiled> compile_case(Trial& trial, Device& device, const HostSnapshot& snapshot,
                                       const Case& c) {
  const std::vector<Claim> claims = claim(trial, device, snapshot, c);
  const auto accepted = [](const Claim& a) { return a.accepted; };
  if (!c.known_operators || !std::all_of(claims.begin(), claims.end(), accepted)) return nullptr;
  HostSink sink(device.age());
  pfrt_executable* handle = nullptr;
  size_t at = 0;
  const pfrt_code code = call(trial, "wrong-claim", c.name + " was compiled", [&] {
    return device.table().compile(device.handle(), snapshot.region(),
                                  size_at<pfrt_region>(device.age()), 1, sink.get(), &handle, &at);
  });
  if (code != PFRT_CODE_OK || !handle) return nullptr;  // another trial judges this
  return std::make_unique<Compiled>(trial, device, handle);
}

void check_compiled(Trial& trial, const std::string& path, const CaseMaker& maker, Age age) {
  const PluginFile file(trial, path);
  Device device(trial, file, age);
  if (!device.ok()) return;
  const Case c = maker.make(3);
  {
    HostSnapshot snapshot(c, nullptr, age);
    const auto compiled = compile_case(trial, device, snapshot, c);
    if (!compiled) return;
    snapshot.end_call();
    check_reports(trial, device, *compiled, snapshot, c);
  }
  device.close();
}

}  // namespace

std::vector<NamedTrial> provider_verb_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  const auto has = [&](uint64_t features) { return (facts.features & features) != 0; };
  std::vector<NamedTrial> out;
  if (has(PFRT_PROVIDER_FINGERPRINT))
    out.push_back({"fingerprint", [path](Trial& t) { check_fingerprint(t, path); }});
  if (has(PFRT_PROVIDER_ASK))
    out.push_back({"questions", [path](Trial& t) { check_unknown_verb(t, path); }});
  if (!has(PFRT_PROVIDER_REPORT)) return out;
  for (const CaseMaker& maker : case_makers())
    for (Age age : {Age::kNow, Age::kNewer})
      out.push_back(
          {"reports", [path, maker, age](Trial& t) { check_compiled(t, path, maker, age); }});
  return out;
}

}  // namespace cli::check
