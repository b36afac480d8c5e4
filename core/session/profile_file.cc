// SPDX-License-Identifier: Apache-2.0
#include "core/session/profile_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "core/base/os/atomic_file.h"
#include "core/base/os/pages.h"

namespace pfrt {
namespace {

using Kind = Profile::Kind;

// Bytes of the UTF-8 sequence that |text| begins with; 0 where it is none.
size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0 || lead > 0xf4 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (size < 3) return size;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || beyond ? 0 : size;
}

class Trace {
 public:
  Trace(os::AtomicFile& file, uint64_t start_ns) : file_(file), start_ns_(start_ns) {
    out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }

  // An event that is left open for further fields, until end().
  void begin(char phase, std::string_view name, std::string_view category, int64_t thread,
             uint64_t at_ns) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += "{\"ph\":\"";
    out_ += phase;
    out_ += "\",\"pid\":";
    out_ += process_;
    number("tid", static_cast<uint64_t>(thread));
    micros("ts", at_ns > start_ns_ ? at_ns - start_ns_ : 0);
    text("cat", category);
    text("name", name);
  }
  void end() {
    out_ += '}';
    constexpr size_t kFlushed = size_t{1} << 16;
    if (out_.size() > kFlushed) flush();
  }
  void raw(std::string_view text) { out_ += text; }
  void key(std::string_view key) {
    if (out_.back() != '{' && out_.back() != '[') out_ += ',';
    quote(key);
    out_ += ':';
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    quote(value);
  }
  void number(std::string_view name, uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void micros(std::string_view name, uint64_t ns) {
    number(name, ns / 1000);
    const std::string past = std::to_string(1000 + ns % 1000);
    out_ += '.';
    out_.append(past, 1);
  }
  void args() {
    key("args");
    out_ += '{';
  }
  Status finish() {
    flush();
    PFRT_TRY(std::move(status_));
    return file_.commit();
  }

 private:
  void quote(std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const auto c = static_cast<unsigned char>(text[at]);
      const size_t size = sequence_bytes(text.substr(at));
      if (size == 0) {
        out_ += "\\ufffd";
      } else if (c < 0x20 || c == '"' || c == '\\') {
        out_ += "\\u00";
        out_ += {kHex[c >> 4], kHex[c & 15]};
      } else {
        out_.append(text, at, size);
      }
      at += std::max<size_t>(size, 1);
    }
    out_ += '"';
  }
  void flush() {
    if (status_.ok()) status_ = file_.write(out_.data(), out_.size());
    out_.clear();
  }

  os::AtomicFile& file_;
  const uint64_t start_ns_;
  const std::string process_ = std::to_string(::getpid());
  std::string out_;
  bool first_ = true;
  Status status_;
};

// Quantities of the trace's counters. The first two are in one event.
enum Count : uint8_t { kCountWorking, kCountResults, kCountThreads, kCountRuns, kCounts };

struct Change {
  uint64_t at_ns;
  int64_t by;
  Count count;

  int event() const { return count <= kCountResults ? 0 : count; }
};

class Writer {
 public:
  Writer(const Profile& profile, const ProfileAbout& about, os::AtomicFile& file)
      : profile_(profile), about_(about), reading_(profile), trace_(file, profile.start_ns()) {}

  Status write() {
    const uint64_t end_ns = os::monotonic_ns();
    named("process_name", 0, message("PyFlameRT: ", about_.graph));
    for (size_t t = 0; t < reading_.thread_count(); ++t) {
      const int64_t id = reading_.thread_id(t);
      named("thread_name", id, message("thread ", id));
      const std::vector<const Profile::Record*> records = reading_.records(t);
      for (const Profile::Record* record : records) event(*record, id);
      busy_ns_.push_back(count_busy(records));
    }
    counters();
    trace_.raw("],\"otherData\":{");
    trace_.text("graph", about_.graph);
    trace_.number("session", about_.session);
    trace_.number("runs", profile_.runs());
    trace_.number("dropped_events", reading_.dropped());
    trace_.number("start_ns", profile_.start_ns());
    trace_.number("parameter_bytes", about_.parameter_bytes);
    trace_.micros("wall_us", end_ns - profile_.start_ns());
    trace_.micros("processor_us", Profile::processor_ns() - profile_.processor_start_ns());
    trace_.number("peak_resident_bytes", os::peak_resident_bytes());
    trace_.key("threads");
    trace_.raw("[");
    for (size_t t = 0; t < busy_ns_.size(); ++t) {
      trace_.raw(t ? ",{" : "{");
      trace_.number("tid", static_cast<uint64_t>(reading_.thread_id(t)));
      trace_.micros("busy_us", busy_ns_[t]);
      trace_.raw("}");
    }
    trace_.raw("]}}\n");
    return trace_.finish();
  }

 private:
  void named(std::string_view what, int64_t thread, std::string_view name) {
    trace_.begin('M', what, "__metadata", thread, 0);
    trace_.args();
    trace_.text("name", name);
    trace_.raw("}");
    trace_.end();
  }

  // A complete event, its arguments open.
  void complete(std::string_view name, std::string_view category, const Profile::Record& r,
                int64_t thread) {
    trace_.begin('X', name, category, thread, r.start_ns);
    trace_.micros("dur", r.took_ns());
    trace_.args();
    if (r.run) trace_.number("run", r.run);
  }

  void event(const Profile::Record& r, int64_t thread) {
    const uint64_t end_ns = r.start_ns + r.took_ns();
    switch (r.kind()) {
      case Kind::kStage:
        complete(reading_.name(r.name), "Session", r, thread);
        break;
      case Kind::kPlan:
        complete("plan", "Session", r, thread);
        break;
      case Kind::kRun:
        change(r.start_ns, end_ns, 1, kCountRuns);
        complete("model_run", "Session", r, thread);
        trace_.number("session", about_.session);
        trace_.text("tag", reading_.name(r.name));
        trace_.number("threads", r.value & UINT32_MAX);
        trace_.text("status", code_text(static_cast<Code>(r.value >> 32)));
        break;
      case Kind::kStep:
      case Kind::kShare: {
        const ProfileStep& step = reading_.step(r.name);
        const bool share = r.kind() == Kind::kShare;
        complete(step.nodes + (share ? "_loop" : "_kernel_time"), share ? "Loop" : "Node", r,
                 thread);
        trace_.text("op_name", step.ops);
        trace_.text("provider", step.provider);
        trace_.text("kernel", step.kernel);
        if (share) break;  // what the step counts is not counted again
        trace_.number("bytes", step.bytes);
        trace_.number("flops", step.flops);
        break;
      }
      case Kind::kWait:
        for (const bool begins : {true, false}) {
          trace_.begin(begins ? 'b' : 'e', "queue_wait", "Async", thread,
                       begins ? r.start_ns : end_ns);
          trace_.text("id", message(about_.session, ".", r.run));
          trace_.args();
          trace_.number("run", r.run);
          trace_.raw("}");
          trace_.end();
        }
        return;
      case Kind::kWorking:
        return change(r.start_ns, end_ns, static_cast<int64_t>(r.value), kCountWorking);
      case Kind::kResults:
        return change(r.start_ns, end_ns, static_cast<int64_t>(r.value), kCountResults);
    }
    trace_.raw("}");
    trace_.end();
  }

  void change(uint64_t start_ns, uint64_t end_ns, int64_t by, Count count) {
    changes_.push_back({start_ns, by, count});
    changes_.push_back({end_ns, -by, count});
  }

  // Counts the time of one thread, backwards, so that a span comes before those inside it.
  uint64_t count_busy(const std::vector<const Profile::Record*>& records) {
    uint64_t busy_ns = 0, before_ns = UINT64_MAX;
    for (size_t i = records.size(); i-- > 0;) {
      const Profile::Record& r = *records[i];
      if (r.kind() != Kind::kRun && r.kind() != Kind::kStep && r.kind() != Kind::kShare) continue;
      const uint64_t took_ns = r.took_ns();
      if (r.start_ns + took_ns > before_ns) continue;
      before_ns = r.start_ns;
      busy_ns += took_ns;
      change(r.start_ns, r.start_ns + took_ns, 1, kCountThreads);
    }
    return busy_ns;
  }

  void counters() {
    std::ranges::sort(changes_, [](const Change& a, const Change& b) {
      return std::pair(a.at_ns, a.event()) < std::pair(b.at_ns, b.event());
    });
    constexpr std::pair<const char*, const char*> kNames[] = {{"memory", "working_bytes"},
                                                              {"memory", "result_bytes"},
                                                              {"threads", "at_work"},
                                                              {"runs", "under_way"}};
    std::array<int64_t, kCounts> now{};
    for (size_t i = 0; i < changes_.size(); ++i) {
      const Change& c = changes_[i];
      now[c.count] += c.by;
      if (i + 1 < changes_.size() && changes_[i + 1].at_ns == c.at_ns &&
          changes_[i + 1].event() == c.event())
        continue;
      trace_.begin('C', kNames[c.count].first, "Counter", 0, c.at_ns);
      trace_.args();
      for (size_t k = 0; k < kCounts; ++k)
        if (Change{0, 0, static_cast<Count>(k)}.event() == c.event())
          trace_.number(kNames[k].second, static_cast<uint64_t>(std::max<int64_t>(now[k], 0)));
      trace_.raw("}");
      trace_.end();
    }
  }

  const Profile& profile_;
  const ProfileAbout& about_;
  const Profile::Reading reading_;
  Trace trace_;
  std::vector<Change> changes_;
  std::vector<uint64_t> busy_ns_;  // by thread
};

}  // namespace

std::string profile_path(std::string_view prefix, uint64_t session) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d_%H-%M-%S", &parts);
  return message(prefix, "_", std::string_view(date), "_", ::getpid(), "_", session, ".json");
}

Status write_profile(const Profile& profile, const ProfileAbout& about, const std::string& path) {
  PFRT_ASSIGN(const std::unique_ptr<os::AtomicFile> file, os::AtomicFile::create(path));
  return Writer(profile, about, *file).write();
}

}  // namespace pfrt
