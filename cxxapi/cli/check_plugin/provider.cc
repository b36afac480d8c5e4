// SPDX-License-Identifier: Apache-2.0
//
// Tests of providers by a minimal host, which opens a device, asks for claims, compiles,
// specialises and runs.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <thread>

#include "cxxapi/cli/check_plugin/device_run.h"
#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/provider_host.h"

namespace cli::check {
namespace {

// Compares the results with those of the fp64 loops.
template <typename Run>
void compare(Trial& trial, const Run& run, const Case& c, const char* rule = "wrong-claim") {
  for (uint32_t o = 0; o < c.outputs.size(); ++o) {
    const CaseValue& want = c.values[c.outputs[o]];
    const std::vector<char> got = run.output(o);
    const std::string what = c.name + " on " + type_text(want);
    if (!trial.expect(got.size() == want.data.size() * element_bytes(want.dtype), rule,
                      "it accepted " + what + " and gave " + std::to_string(got.size()) + " bytes"))
      continue;
    const double single = trial.half_precision() ? 1e-2 : 1e-4;
    const double tolerance = want.dtype == PFRT_DTYPE_FLOAT32   ? single
                             : want.dtype == PFRT_DTYPE_FLOAT64 ? 1e-9
                                                                : 0;
    double largest = 0;  // half-precision sums err by a share of this
    if (trial.half_precision())
      for (const double value : want.data) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < want.data.size(); ++i) {
      const double value = element(want.dtype, got.data(), i);
      const double scale = 1 + std::max(largest, std::abs(want.data[i]));
      if (std::abs(value - want.data[i]) <= tolerance * scale) continue;
      trial.fail(rule, "it accepted " + what + " and gave " + std::to_string(value) +
                           " for element " + std::to_string(i) + ", which is " +
                           std::to_string(want.data[i]));
      break;
    }
    trial.keep(rule);
  }
}

// Makes two runs at once, then one that is stopped, and another while nothing of that may be left.
void run_on_device(Trial& trial, Device& device, const ProgramView& program, const Case& c,
                   const HostSnapshot& snapshot,
                   const std::vector<std::unique_ptr<Guarded>>& constants) {
  {
    DeviceRun first(trial, device, program, c, snapshot, constants);
    DeviceRun second(trial, device, program, c, snapshot, constants);
    if (!first.queue() || !second.queue()) return;
    second.finish();
    first.finish();
    compare(trial, second, c);
    for (uint32_t o = 0; o < c.outputs.size(); ++o)
      trial.expect(first.output(o) == second.output(o), "device-runs",
                   "of two runs of " + c.name + " at once the first gave other bits");
    trial.keep("device-runs");
    trial.keep("device-memory");
  }
  if (!device.has(PFRT_PROVIDER_FENCES)) return;
  DeviceRun stopped(trial, device, program, c, snapshot, constants);
  if (!stopped.queue()) return;
  const pfrt_code code = stopped.finish(true);
  trial.expect(code == PFRT_CODE_CANCELLED || code == PFRT_CODE_OK, "device-stop",
               "a wait that was told to stop gave " + code_text(code));
  stopped.lock_outputs();
  DeviceRun after(trial, device, program, c, snapshot, constants);
  if (!after.queue()) return;
  after.finish();
  compare(trial, after, c);
}

void run_program(Trial& trial, const ProgramView& program, const Case& c,
                 const HostSnapshot& snapshot,
                 const std::vector<std::unique_ptr<Guarded>>& constants, Age age) {
  std::vector<std::vector<char>> first;
  const RunOptions all[] = {{age, Placed::kAtEnd, 1, false},
                            {age, Placed::kAtStart, 1, false},
                            {age, Placed::kAtEnd, 3, false}};
  for (const RunOptions& options : all) {
    ProgramRun run(program, c, snapshot, constants, options);
    if (!run.run(trial)) return;
    std::vector<std::vector<char>> results;
    for (uint32_t o = 0; o < c.outputs.size(); ++o) results.push_back(run.output(o));
    if (first.empty()) {
      compare(trial, run, c);
      first = std::move(results);
      continue;
    }
    trial.expect(results == first, "thread-count",
                 c.name + " gave other bits with " + std::to_string(options.workers) +
                     " threads or at other addresses");
  }
  ProgramRun cancelled(program, c, snapshot, constants, {age, Placed::kAtEnd, 2, true});
  cancelled.run(trial);
}

// Makes a program for all sizes from the least to the most of |sizes|, and runs it at each.
void check_range(Trial& trial, Device& device, pfrt_executable* compiled,
                 const std::vector<Case>& sizes, const HostSnapshot& snapshot,
                 const std::vector<std::unique_ptr<Guarded>>& constants) {
  if (!device.has(PFRT_PROVIDER_RANGES) || sizes.size() < 4) return;
  const Case &least = sizes[1], &most = sizes[3];  // of 1 and of 7
  HostShapes shapes(most, device.age(), &least);
  HostSink sink(device.age());
  Sized<pfrt_program> program(device.age(), pfrt_program{}, "the program");
  const pfrt_code code = call(trial, "range", "a range of " + most.name + " was specialised", [&] {
    return device.table().specialise(compiled, shapes.get(), sink.get(), program.get());
  });
  if (code != PFRT_CODE_OK) {
    trial.expect(code == PFRT_CODE_UNSUPPORTED && !sink.text().empty(), "range",
                 "a range of " + most.name + " was refused with " + sink.reason(code));
    return;
  }
  const ProgramView view = read_program(trial, *program.get(), most, snapshot, constants.size());
  for (const size_t at : {size_t{3}, size_t{0}, size_t{1}}) {
    const Case& size = sizes[at];
    const auto dims = varying_dims(size, at == 3 ? least : most);
    if (view.host_memory) {
      ProgramRun run(view, size, snapshot, constants,
                     {device.age(), Placed::kAtEnd, 2, false, dims.data()});
      if (run.run(trial)) compare(trial, run, size, "range");
      continue;
    }
    DeviceRun run(trial, device, view, size, snapshot, constants, dims.data());
    if (!run.queue()) continue;
    run.finish();
    compare(trial, run, size, "range");
  }
  call(trial, "double-release", "a program for a range was released",
       [&] { device.table().release_program(compiled, program.get()); });
}

// Compiles the case, runs it for each of |sizes| and releases everything.
void compile_and_run(Trial& trial, Device& device, HostSnapshot& snapshot,
                     const std::vector<Case>& sizes, bool run) {
  const Case& c = sizes.front();
  const pfrt_provider_table& table = device.table();
  pfrt_executable* compiled = nullptr;
  {
    HostSink sink(device.age());
    const pfrt_code code = call(trial, "wrong-claim", c.name + " was compiled", [&] {
      size_t at = 0;
      return table.compile(device.handle(), snapshot.region(), size_at<pfrt_region>(device.age()),
                           1, sink.get(), &compiled, &at);
    });
    if (code != PFRT_CODE_OK) {  // it may refuse, with a reason
      trial.expect(!compiled && !sink.text().empty(), "refusal",
                   "compile refused " + c.name + " with " + sink.reason(code) +
                       (compiled ? ", and gave an executable" : ", without a reason"));
      return;
    }
    if (!trial.expect(compiled != nullptr, "refusal", "compile returned ok and no executable"))
      return;
  }
  snapshot.end_call();
  const auto constants = pack_constants(trial, device, compiled, snapshot, c);
  for (const Case& size : sizes) {
    HostShapes shapes(size, device.age());
    HostSink sink(device.age());
    pfrt_program empty{};
    Sized<pfrt_program> program(device.age(), empty, "the program");
    const pfrt_code code = call(trial, "program", size.name + " was specialised", [&] {
      return table.specialise(compiled, shapes.get(), sink.get(), program.get());
    });
    if (code != PFRT_CODE_OK) {
      trial.expect(
          !sink.text().empty(), "refusal",
          "specialise refused " + size.name + " with " + sink.reason(code) + ", without a reason");
      continue;
    }
    trial.expect(
        program.get()->struct_size == size_at<pfrt_program>(device.age()) && program.tail_intact(),
        "struct-size-host", "specialise wrote beyond the members of the program it knows");
    const ProgramView view = read_program(trial, *program.get(), size, snapshot, constants.size());
    if (run && view.host_memory) {
      run_program(trial, view, size, snapshot, constants, device.age());
    } else if (run) {
      run_on_device(trial, device, view, size, snapshot, constants);
    }
    call(trial, "double-release", "a program of " + size.name + " was released",
         [&] { table.release_program(compiled, program.get()); });
  }
  if (run) check_range(trial, device, compiled, sizes, snapshot, constants);
  call(trial, "double-release", "the executable of " + c.name + " was released",
       [&] { table.release_executable(compiled); });
  trial.keep("double-release");
}

std::vector<Case> sizes_of(const CaseMaker& maker) {
  std::vector<Case> out;
  out.push_back(maker.make(3));
  if (maker.dynamic)
    for (int64_t n : {1, 0, 7}) out.push_back(maker.make(n));
  return out;
}

// Returns true when every node was accepted.
bool check_claims(Trial& trial, Device& device, const HostSnapshot& snapshot, const Case& c) {
  const std::vector<Claim> answers = claim(trial, device, snapshot, c);
  trial.expect(answers == claim(trial, device, snapshot, c), "claim-pure",
               "two claims of " + c.name + " differ");
  const bool all =
      std::all_of(answers.begin(), answers.end(), [](const Claim& a) { return a.accepted; });
  if (c.known_operators) return all;
  trial.expect(!all, "wrong-claim",
               "it accepted '" + c.nodes[0].op + "' of domain '" + c.nodes[0].domain +
                   "', which is no operator");
  return false;
}

// Checks that a snapshot gets the same answers in the structs of every host.
void check_claims_of_ages(Trial& trial, const PluginFile& file, Device& device,
                          const HostSnapshot& snapshot, const Case& c, const Case* other) {
  Device now(trial, file, Age::kNow);
  if (!now.ok()) return;
  const HostSnapshot today(c, other, Age::kNow);
  const auto answers = [](const std::vector<Claim>& claims) {
    std::vector<std::string> out;  // another trial compares estimates
    out.reserve(claims.size());
    for (const Claim& a : claims) out.push_back(a.accepted ? "accepted" : a.reason);
    return out;
  };
  trial.expect(
      answers(claim(trial, device, snapshot, c)) == answers(claim(trial, now, today, c)),
      "struct-size-host",
      std::string("claim answers otherwise ") + age_text(device.age()) + " (" + c.name + ")");
  now.close();
}

void check_case(Trial& trial, const std::string& path, const CaseMaker& maker, Age age) {
  const PluginFile file(trial, path);
  Device device(trial, file, age);
  if (!device.ok()) return;
  trial.allow_half_precision(device.has(PFRT_PROVIDER_NO_FOLD));
  const std::vector<Case> sizes = sizes_of(maker);
  const Case* other = maker.dynamic ? &sizes[1] : nullptr;
  HostSnapshot snapshot(sizes[0], other, age);
  if (age != Age::kNow) check_claims_of_ages(trial, file, device, snapshot, sizes[0], other);
  if (check_claims(trial, device, snapshot, sizes[0]))
    compile_and_run(trial, device, snapshot, sizes, true);
  trial.keep("throws");
  trial.keep("read-only-arguments");
  trial.keep("struct-size-host");
  device.close();
}

void check_words(Trial& trial, const Device& device) {
  std::istringstream words(text_of(device.table().devices));
  for (std::string word; std::getline(words, word, ',');) {
    HostSink sink(Age::kNow);
    pfrt_provider* handle = nullptr;
    const pfrt_code code = call(trial, "device-word", "device '" + word + "' was opened", [&] {
      return device.table().open(c_text(word), nullptr, 0, sink.get(), &handle);
    });
    if (code != PFRT_CODE_OK && !handle && !sink.text().empty()) {
      trial.skip("device '" + word + "' does not open (" + sink.reason(code) + ")");
      continue;
    }
    trial.expect(code == PFRT_CODE_OK && handle, "device-word",
                 "opening device '" + word + "' gave " + sink.reason(code) +
                     (handle ? " and a handle" : " and no handle, or no message"));
    if (handle)
      call(trial, "double-release", "device '" + word + "' was closed",
           [&] { device.table().close(handle); });
  }
}

void check_open(Trial& trial, const std::string& path) {
  const ProcessState before;
  const size_t threads = thread_count();
  const PluginFile file(trial, path);
  Device device(trial, file, Age::kNow);
  const pfrt_provider_table& table = device.table();
  const auto refused = [&](const std::string& what, const std::string& name,
                           const std::vector<pfrt_key_value>& options) {
    HostSink sink(Age::kNow);
    pfrt_provider* handle = nullptr;
    const pfrt_code code = call(trial, "refusal", what + " was opened", [&] {
      return table.open(c_text(name), options.data(), options.size(), sink.get(), &handle);
    });
    trial.expect(code != PFRT_CODE_OK && !handle && !sink.text().empty(), "refusal",
                 "open with " + what + " gave " + (code == PFRT_CODE_OK ? "a device" : "") +
                     sink.reason(code) + (handle ? " and a handle" : ""));
    if (code == PFRT_CODE_OK && handle) table.close(handle);
  };
  refused("an unknown device", "no such device", {});
  const pfrt_string key = {"no_such_option", 14}, value = {"1", 1};
  refused("an unknown option", device.name(), {{key, value}});
  if (device.ok()) {
    Device second(trial, file, Age::kNow);
    second.close();
  }
  check_words(trial, device);
  trial.expect(device.has(PFRT_PROVIDER_OWN_THREADS) || threads_are(threads), "starts-threads",
               std::to_string(thread_count() - threads) + " threads run after it was opened");
  device.close();
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " is not what it was");
}

void check_kernels(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  for (Age age : {Age::kNow, Age::kNewer}) {
    Device device(trial, file, age);
    if (!device.ok() || !device.has(PFRT_PROVIDER_KERNELS)) return;
    const pfrt_provider_table& table = device.table();
    const size_t count = call(trial, "feature-function", "its kernels were counted",
                              [&] { return table.kernel_count(device.handle()); });
    for (size_t i = 0; i < count && i < 10000; ++i) {
      Guarded memory(size_at<pfrt_kernel_info>(age), "a kernel's description", kHostStruct, 8);
      std::memset(memory.data(), 0, sizeof(pfrt_kernel_info));
      auto* info = reinterpret_cast<pfrt_kernel_info*>(memory.data());
      info->struct_size = static_cast<uint32_t>(memory.size());
      const pfrt_code code = call(trial, "struct-size-host", "a kernel was described",
                                  [&] { return table.kernel_at(device.handle(), i, info); });
      const bool good = code == PFRT_CODE_OK && !text_of(info->op).empty();
      if (!trial.expect(good, "feature-function",
                        "kernel " + std::to_string(i) + " of " + std::to_string(count) +
                            " has no description"))
        return;
      trial.expect(info->struct_size == memory.size(), "struct-size-host",
                   "kernel_at changed the host's struct_size");
    }
    pfrt_kernel_info info{};
    info.struct_size = sizeof info;
    trial.expect(
        call(trial, "refusal", "a kernel past the last was described",
             [&] { return table.kernel_at(device.handle(), count, &info); }) != PFRT_CODE_OK,
        "refusal", "kernel_at succeeds past the last kernel");
  }
}

void check_supports(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  Device device(trial, file, Age::kNow);
  if (!device.ok() || !device.has(PFRT_PROVIDER_SUPPORTS)) return;
  for (const CaseMaker& maker : case_makers()) {
    const Case c = maker.make(3);
    HostSnapshot snapshot(c, nullptr, Age::kNow);
    pfrt_op_query query{};
    query.snapshot = snapshot.get();
    const std::vector<Claim> claims = claim(trial, device, snapshot, c);
    for (uint32_t n = 0; n < c.nodes.size(); ++n) {
      query.node = n;
      Sized<pfrt_op_query> sized(Age::kNow, query, "the query");
      sized.make_read_only();
      HostSink sink(Age::kNow);
      const pfrt_code code =
          call(trial, "feature-function", "supports was asked of " + c.name,
               [&] { return device.table().supports(device.handle(), sized.get(), sink.get()); });
      trial.expect(code == PFRT_CODE_OK || !sink.text().empty(), "refusal",
                   "supports refused " + c.name + " without a reason");
      trial.expect((code == PFRT_CODE_OK) == claims[n].accepted, "claim-pure",
                   "supports and claim disagree about " + c.nodes[n].op + " of " + c.name);
    }
  }
}

size_t heap_in_use() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  return mallinfo2().uordblks;
#else
  return 0;
#endif
}

void one_round(Trial& trial, const PluginFile& file) {
  Device device(trial, file, Age::kNow);
  if (!device.ok()) return;
  for (const CaseMaker& maker : case_makers()) {
    const Case c = maker.make(3);
    HostSnapshot snapshot(c, nullptr, Age::kNow);
    const std::vector<Claim> claims = claim(trial, device, snapshot, c);
    if (!std::all_of(claims.begin(), claims.end(), [](const Claim& a) { return a.accepted; }) ||
        !c.known_operators)
      continue;
    std::vector<Case> sizes;
    sizes.push_back(c);
    compile_and_run(trial, device, snapshot, sizes, false);
  }
  device.close();
}

// Looks for leaks: the heap grows in every one of many rounds only when something is never freed.
void check_leaks(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  for (int i = 0; i < 3; ++i) {
    Trial round;
    one_round(round, file);
  }
  constexpr int kRounds = 8;
  int grew = 0;
  const size_t start = heap_in_use();
  for (int i = 0; i < kRounds; ++i) {
    const size_t before = heap_in_use();
    {
      Trial round;
      one_round(round, file);
    }
    grew += heap_in_use() > before;
  }
  const size_t end = heap_in_use();
  trial.expect(grew < kRounds, "leaks",
               std::to_string(end - start) + " bytes more are in use after " +
                   std::to_string(kRounds) + " rounds of everything");
}

void check_unload(Trial& trial, const std::string& path) {
  const size_t threads = thread_count();
  PluginFile file(trial, path);
  one_round(trial, file);
  trial.expect(threads_are(threads), "starts-threads",
               "threads of its own run when everything is released");
  file.close(trial);
  trial.at("unload", "the process went on after it was unloaded");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // code that still runs would fault
  trial.keep("unload");
}

}  // namespace

std::vector<NamedTrial> provider_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  std::vector<NamedTrial> out;
  out.push_back({"open", [path](Trial& t) { check_open(t, path); }});
  for (const CaseMaker& maker : case_makers()) {
    out.push_back(
        {maker.make(1).name, [path, maker](Trial& t) { check_case(t, path, maker, Age::kNow); }});
    if (!maker.dynamic) continue;
    out.push_back(
        {"newer host", [path, maker](Trial& t) { check_case(t, path, maker, Age::kNewer); }});
  }
  out.push_back({"kernels", [path](Trial& t) { check_kernels(t, path); }});
  out.push_back({"supports", [path](Trial& t) { check_supports(t, path); }});
  for (NamedTrial& trial : provider_verb_trials(facts)) out.push_back(std::move(trial));
  out.push_back({"leaks", [path](Trial& t) { check_leaks(t, path); }});
  out.push_back({"unload", [path](Trial& t) { check_unload(t, path); }});
  return out;
}

}  // namespace cli::check
