// SPDX-License-Identifier: Apache-2.0
//
// Providers: a host in small, which opens a device, asks for claims, compiles, specialises and
// runs.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/program_run.h"

namespace cli::check {
namespace {

constexpr Guards kPacked = {"writes-past-buffer", "reads-past-buffer", "writes-undeclared"};

struct Claim {
  int answers = 0;
  bool accepted = false;
  double ns = 0;
  uint64_t bytes = 0;
  std::string reason;
  bool operator==(const Claim& o) const {
    return accepted == o.accepted && ns == o.ns && bytes == o.bytes && reason == o.reason;
  }
};

// Holds an opened device; closes it.
class Device {
 public:
  Device(Trial& trial, const PluginFile& file, Age age)
      : trial_(trial), desc_(file.describe(trial)), age_(age) {
    table_ = static_cast<const pfrt_provider_table*>(desc_.table);
    const std::string devices = text_of(table_->devices);
    device_ = devices.substr(0, devices.find(','));
    HostSink sink(age_);
    pfrt_provider* handle = nullptr;
    const pfrt_code code = call(trial_, "refusal", "device '" + device_ + "' was opened", [&] {
      return table_->open(c_text(device_), nullptr, 0, sink.get(), &handle);
    });
    if (code != PFRT_CODE_OK) {
      trial_.expect(!handle && !sink.text().empty(), "refusal",
                    "opening device '" + device_ + "' failed with " + sink.reason(code) +
                        (handle ? ", and yet gave a handle" : ", without a message"));
      trial_.skip("device '" + device_ + "' does not open (" + sink.reason(code) + ")");
      return;
    }
    trial_.expect(handle != nullptr, "refusal", "open returned ok and no handle");
    handle_ = handle;
  }
  ~Device() {
    if (handle_) table_->close(handle_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool ok() const { return handle_ != nullptr; }
  const pfrt_provider_table& table() const { return *table_; }
  pfrt_provider* handle() const { return handle_; }
  bool has(uint64_t feature) const { return (desc_.features & feature) != 0; }
  Age age() const { return age_; }
  const std::string& name() const { return device_; }
  void close() {
    pfrt_provider* handle = std::exchange(handle_, nullptr);
    if (handle) call(trial_, "double-release", "it was closed", [&] { table_->close(handle); });
  }

 private:
  Trial& trial_;
  pfrt_plugin_desc desc_;
  Age age_;
  const pfrt_provider_table* table_;
  std::string device_;
  pfrt_provider* handle_ = nullptr;
};

std::vector<Claim> claim(Trial& trial, Device& device, const HostSnapshot& snapshot,
                         const Case& c) {
  std::vector<Claim> answers(c.nodes.size());
  struct Collector {
    std::vector<Claim>* answers;
    bool outside = false, odd_transfer = false;
  } collector{&answers};
  pfrt_claims claims{};
  claims.host = &collector;
  claims.accept = [](const pfrt_claims* t, uint32_t node, double ns, uint64_t bytes) {
    auto& to = *static_cast<Collector*>(t->host);
    if (node >= to.answers->size()) {
      to.outside = true;
      return;
    }
    Claim& a = (*to.answers)[node];
    a = {a.answers + 1, true, ns, bytes, {}};
  };
  claims.refuse = [](const pfrt_claims* t, uint32_t node, pfrt_string reason) {
    auto& to = *static_cast<Collector*>(t->host);
    if (node >= to.answers->size()) {
      to.outside = true;
      return;
    }
    Claim& a = (*to.answers)[node];
    a = {a.answers + 1, false, 0, 0, text_of(reason)};
  };
  claims.group = [](const pfrt_claims*, const uint32_t*, uint32_t, double) {};
  claims.transfer = [](const pfrt_claims* t, double ns, double ns_per_byte) {
    auto& to = *static_cast<Collector*>(t->host);
    to.odd_transfer |= !(ns >= 0 && ns_per_byte >= 0);
  };
  Sized<pfrt_claims> table(device.age(), claims, "the claims table");
  table.make_read_only();
  HostSink sink(device.age());
  const pfrt_code code = call(trial, "claim-complete", "claim was asked for " + c.name, [&] {
    return device.table().claim(device.handle(), snapshot.get(), table.get(), sink.get());
  });
  if (!trial.expect(code == PFRT_CODE_OK, "claim-complete",
                    "claim failed on " + c.name + ": " + sink.reason(code)))
    throw Broken("claim");
  trial.expect(!collector.outside, "claim-complete",
               "claim named a node that the snapshot of " + c.name + " does not have");
  trial.expect(!collector.odd_transfer, "claim-complete",
               "claim gave a cost of crossing that is no length of time");
  for (const Claim& a : answers) {
    trial.expect(a.answers == 1, "claim-complete",
                 "a node of " + c.name + " was answered " + std::to_string(a.answers) + " times");
    trial.expect(a.accepted || !a.reason.empty(), "refusal",
                 "claim refused a node of " + c.name + " without a reason");
    trial.expect(!std::isnan(a.ns) && a.ns >= 0, "claim-complete",
                 "claim estimated " + std::to_string(a.ns) + " ns for a node of " + c.name);
  }
  return answers;
}

// The results against the fp64 loops.
void compare(Trial& trial, const ProgramRun& run, const Case& c) {
  for (uint32_t o = 0; o < c.outputs.size(); ++o) {
    const CaseValue& want = c.values[c.outputs[o]];
    const std::vector<char> got = run.output(o);
    const std::string what = c.name + " on " + type_text(want);
    if (!trial.expect(got.size() == want.data.size() * element_bytes(want.dtype), "wrong-claim",
                      "it accepted " + what + " and gave " + std::to_string(got.size()) + " bytes"))
      continue;
    const double tolerance = want.dtype == PFRT_DTYPE_FLOAT32   ? 1e-4
                             : want.dtype == PFRT_DTYPE_FLOAT64 ? 1e-9
                                                                : 0;
    for (size_t i = 0; i < want.data.size(); ++i) {
      const double value = element(want.dtype, got.data(), i);
      if (std::abs(value - want.data[i]) <= tolerance * (1 + std::abs(want.data[i]))) continue;
      trial.fail("wrong-claim", "it accepted " + what + " and gave " + std::to_string(value) +
                                    " for element " + std::to_string(i) + ", which is " +
                                    std::to_string(want.data[i]));
      break;
    }
    trial.keep("wrong-claim");
  }
}

std::vector<std::unique_ptr<Guarded>> pack(Trial& trial, Device& device, pfrt_executable* compiled,
                                           const HostSnapshot& snapshot, const Case& c) {
  std::vector<std::unique_ptr<Guarded>> out;
  if (!device.has(PFRT_PROVIDER_CONSTANTS)) return out;
  const pfrt_packed_constant* given = nullptr;
  size_t size = 0, count = 0;
  const pfrt_code code = call(trial, "program", "constants of " + c.name + " were listed", [&] {
    return device.table().constants(compiled, &given, &size, &count);
  });
  if (!trial.expect(code == PFRT_CODE_OK && (given || count == 0), "program",
                    "constants failed on " + c.name))
    throw Broken("constants");
  if (!trial.expect(count == 0 || size >= sizeof *given, "struct-size-plugin",
                    "its packed constants are " + std::to_string(size) + " bytes apart"))
    throw Broken("constants");
  const auto list = copy_elements(given, size, count);
  HostSink sink(device.age());
  for (size_t i = 0; i < count; ++i) {
    std::vector<const void*> sources;
    for (uint32_t s = 0; s < list[i].source_count; ++s) {
      sources.push_back(snapshot.constant(list[i].sources[s]));
      if (!trial.expect(sources.back() != nullptr, "program",
                        "it packs value " + std::to_string(list[i].sources[s]) + " of " + c.name +
                            ", which is no constant"))
        throw Broken("constants");
    }
    out.push_back(std::make_unique<Guarded>(list[i].bytes, "a packed constant", kPacked,
                                            std::max<uint32_t>(list[i].alignment, 64)));
    const pfrt_code packed = call(
        trial, "writes-past-buffer", "constants of " + c.name + " were packed",
        [&] { return list[i].pack(list[i].user, sources.data(), out.back()->data(), sink.get()); });
    trial.expect(packed == PFRT_CODE_OK, "program",
                 "packing a constant of " + c.name + " failed: " + code_text(packed));
    out.back()->allow(Guarded::Access::kRead);
  }
  return out;
}

void run_program(Trial& trial, const ProgramView& program, const Case& c,
                 const HostSnapshot& snapshot,
                 const std::vector<std::unique_ptr<Guarded>>& constants, Age age) {
  if (!program.host_memory) {
    trial.skip("programs in device memory are compiled, not run");
    return;
  }
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

// Compiles the case, runs it for each of |sizes| and releases everything. False when refused.
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
    if (code != PFRT_CODE_OK) {  // it may, with a reason
      trial.expect(!compiled && !sink.text().empty(), "refusal",
                   "compile refused " + c.name + " with " + sink.reason(code) +
                       (compiled ? ", and gave an executable" : ", without a reason"));
      return;
    }
    if (!trial.expect(compiled != nullptr, "refusal", "compile returned ok and no executable"))
      return;
  }
  snapshot.end_call();
  const auto constants = pack(trial, device, compiled, snapshot, c);
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
    if (run) run_program(trial, view, size, snapshot, constants, device.age());
    call(trial, "double-release", "a program of " + size.name + " was released",
         [&] { table.release_program(compiled, program.get()); });
  }
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

// True when every node was accepted.
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

// A snapshot says the same in the structs of every host.
void check_claims_of_ages(Trial& trial, const PluginFile& file, Device& device,
                          const HostSnapshot& snapshot, const Case& c, const Case* other) {
  Device now(trial, file, Age::kNow);
  if (!now.ok()) return;
  const HostSnapshot today(c, other, Age::kNow);
  const auto answers = [](const std::vector<Claim>& claims) {
    std::vector<std::string> out;  // estimates are another trial's to compare
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

// The heap grows in every one of many rounds only when something is never freed.
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
  out.push_back({"leaks", [path](Trial& t) { check_leaks(t, path); }});
  out.push_back({"unload", [path](Trial& t) { check_unload(t, path); }});
  return out;
}

}  // namespace cli::check
