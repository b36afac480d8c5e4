// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/trace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <unordered_map>

#include "cxxapi/cli/page/json_reader.h"

namespace cli {
namespace {

constexpr size_t kMostRows = 32;  // of a thread
constexpr std::string_view kRunEvent = "model_run", kCountedTag = "profiled";

// An event of the trace as it is written. Members that it lacks stay empty.
struct Event {
  std::string phase, name, category, ops, provider, kernel, tag, thread_name;
  int64_t thread = 0, start_ns = 0, ns = 0;
  double run = 0, bytes = 0, flops = 0, working_bytes = 0, result_bytes = 0;
};

// Converts microseconds that are written to the nanosecond.
int64_t nanoseconds(double us) {
  constexpr double kMost = 9e15;
  return std::llround(std::clamp(std::isfinite(us) ? us : 0.0, -kMost / 1e3, kMost / 1e3) * 1e3);
}

void read_arguments(JsonReader* json, Event* event) {
  json->object([&](const std::string& key) {
    const auto number = [&](double Event::*member) { event->*member = json->number(); };
    if (key == "run") return number(&Event::run);
    if (key == "bytes") return number(&Event::bytes);
    if (key == "flops") return number(&Event::flops);
    if (key == "working_bytes") return number(&Event::working_bytes);
    if (key == "result_bytes") return number(&Event::result_bytes);
    const auto text = [&](std::string Event::*member) { event->*member = json->string(); };
    if (key == "op_name") return text(&Event::ops);
    if (key == "provider") return text(&Event::provider);
    if (key == "kernel") return text(&Event::kernel);
    if (key == "tag") return text(&Event::tag);
    if (key == "name") return text(&Event::thread_name);
    json->skip();
  });
}

Event read_event(JsonReader* json) {
  Event event;
  json->object([&](const std::string& key) {
    if (key == "ph")
      event.phase = json->string();
    else if (key == "name")
      event.name = json->string();
    else if (key == "cat")
      event.category = json->string();
    else if (key == "tid")
      event.thread = nanoseconds(json->number()) / 1000;
    else if (key == "ts")
      event.start_ns = nanoseconds(json->number());
    else if (key == "dur")
      event.ns = std::max<int64_t>(0, nanoseconds(json->number()));
    else if (key == "args")
      read_arguments(json, &event);
    else
      json->skip();
  });
  return event;
}

std::string without(std::string text, std::string_view ending) {
  if (text.size() >= ending.size() &&
      text.compare(text.size() - ending.size(), ending.size(), ending) == 0)
    text.resize(text.size() - ending.size());
  return text;
}

// A span with its thread and its run, before it is known which runs count.
struct Recorded {
  TraceSpan span;
  int64_t thread = 0;
  double run = 0;
};

struct RunOf {
  double number = 0;
  int64_t start_ns = 0, ns = 0;
  bool counted = false;
};

class TraceReader {
 public:
  TraceReader(std::string_view text, size_t most) : json_(text), most_(most) {}

  Trace run() {
    json_.object([&](const std::string& key) {
      if (key == "traceEvents")
        json_.list([&] { take(read_event(&json_)); });
      else if (key == "otherData")
        read_other();
      else
        json_.skip();
    });
    json_.end();
    count_runs();
    draw();
    keep_memory();
    return std::move(out_);
  }

 private:
  void take(const Event& event) {
    if (event.phase == "M" && event.name == "thread_name")
      names_[event.thread] = event.thread_name;
    else if (event.phase == "C" && event.name == "memory")
      memory_.push_back({event.start_ns, event.working_bytes, event.result_bytes});
    else if (event.phase == "X" && event.name == kRunEvent)
      runs_.push_back({event.run, event.start_ns, event.ns, event.tag == kCountedTag});
    else if (event.phase == "X")
      take_span(event);
  }

  void take_span(const Event& event) {
    Recorded out{{0, event.start_ns, event.ns, TraceSpan::kStage}, event.thread, event.run};
    if (event.category == "Node" || event.category == "Loop") {
      const bool share = event.category == "Loop";
      out.span.kind = share ? TraceSpan::kShare : TraceSpan::kStep;
      out.span.what = step_of(event, without(event.name, share ? "_loop" : "_kernel_time"));
      if (!share) {
        out_.steps[out.span.what].bytes = event.bytes;
        out_.steps[out.span.what].flops = event.flops;
      }
    } else {
      const auto [at, added] = stages_.emplace(event.name, out_.stages.size());
      if (added) out_.stages.push_back(event.name);
      out.span.what = at->second;
    }
    spans_.push_back(out);
  }

  size_t step_of(const Event& event, const std::string& nodes) {
    const auto [at, added] = steps_.emplace(nodes + '\n' + event.kernel, out_.steps.size());
    if (added) out_.steps.push_back({nodes, event.ops, event.kernel, event.provider});
    return at->second;
  }

  void read_other() {
    json_.object([&](const std::string& key) {
      if (key == "wall_us")
        out_.wall_us = json_.number();
      else if (key == "processor_us")
        out_.processor_us = json_.number();
      else if (key == "parameter_bytes")
        out_.parameter_bytes = json_.number();
      else if (key == "peak_resident_bytes")
        out_.peak_resident_bytes = json_.number();
      else if (key == "dropped_events")
        out_.dropped_events = json_.number();
      else if (key == "threads")
        json_.list([&] { read_busy(); });
      else
        json_.skip();
    });
  }
  void read_busy() {
    json_.object([&](const std::string& key) {
      if (key == "busy_us")
        out_.busy_us.push_back(json_.number());
      else
        json_.skip();
    });
  }

  void count_runs() {
    const auto counted = [](const RunOf& run) { return run.counted; };
    if (std::none_of(runs_.begin(), runs_.end(), counted))
      for (RunOf& run : runs_) run.counted = true;
    std::sort(runs_.begin(), runs_.end(),
              [](const RunOf& a, const RunOf& b) { return a.start_ns < b.start_ns; });
    std::set<double> others;
    for (const RunOf& run : runs_) {
      if (run.counted) {
        out_.run_ns.push_back(run.ns);
        last_ = run.number;
        since_ns_ = std::min(since_ns_, run.start_ns);
      } else {
        others.insert(run.number);
      }
    }
    out_.runs = runs_.size();
    std::sort(out_.run_ns.begin(), out_.run_ns.end());
    for (const Recorded& r : spans_) {
      if (r.span.kind != TraceSpan::kStep || others.count(r.run) != 0) continue;
      ++out_.steps[r.span.what].times;
      out_.steps[r.span.what].ns += r.span.ns;
    }
  }

  void draw() {
    std::vector<Recorded> last, before;
    for (const Recorded& r : spans_) {
      if (!out_.run_ns.empty() && r.run == last_) last.push_back(r);
      if (r.span.kind == TraceSpan::kStage) before.push_back(r);
    }
    spans_ = {};
    out_.last_run = line_of(std::move(last));
    out_.before = line_of(std::move(before));
  }

  Timeline line_of(std::vector<Recorded> spans) const {
    Timeline out;
    if (spans.size() > most_) {
      std::nth_element(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(most_),
                       spans.end(),
                       [](const Recorded& a, const Recorded& b) { return a.span.ns > b.span.ns; });
      out.left_out = spans.size() - most_;
      spans.resize(most_);
    }
    std::stable_sort(spans.begin(), spans.end(), [](const Recorded& a, const Recorded& b) {
      return a.span.start_ns != b.span.start_ns ? a.span.start_ns < b.span.start_ns
                                                : a.span.ns > b.span.ns;
    });
    if (spans.empty()) return out;
    const int64_t first_ns = spans.front().span.start_ns;
    struct Thread {
      TraceThread drawn;
      int64_t busy_until_ns = 0;
    };
    std::map<int64_t, Thread> threads;
    for (Recorded& r : spans) {
      r.span.start_ns -= first_ns;
      out.ns = std::max(out.ns, r.span.end_ns());
      Thread& thread = threads[r.thread];
      const int64_t from = std::max(r.span.start_ns, thread.busy_until_ns);
      thread.busy_until_ns = std::max(thread.busy_until_ns, r.span.end_ns());
      thread.drawn.busy_ns += std::max<int64_t>(0, thread.busy_until_ns - from);
      if (!put(r.span, &thread.drawn.rows)) ++out.left_out;
    }
    for (auto& [id, thread] : threads) {
      const auto named = names_.find(id);
      thread.drawn.name = named != names_.end() ? named->second : "thread " + std::to_string(id);
      out.threads.push_back(std::move(thread.drawn));
    }
    return out;
  }

  // Puts a span, which does not start before those of the rows, into the first row with room.
  static bool put(const TraceSpan& span, std::vector<std::vector<TraceSpan>>* rows) {
    for (std::vector<TraceSpan>& row : *rows) {
      if (row.back().end_ns() > span.start_ns) continue;
      row.push_back(span);
      return true;
    }
    if (rows->size() == kMostRows) return false;
    rows->push_back({span});
    return true;
  }

  // Keeps the points since the first run that counts: what came before would press them together.
  // Where there are too many, the highest values of each stretch stand for it.
  void keep_memory() {
    const auto first = std::find_if(memory_.begin(), memory_.end(),
                                    [&](const MemoryPoint& p) { return p.at_ns >= since_ns_; });
    const size_t count = static_cast<size_t>(memory_.end() - first);
    const size_t each = (count + Trace::kMostPoints - 1) / Trace::kMostPoints;
    for (size_t i = 0; i < count; ++i) {
      const MemoryPoint& point = first[static_cast<std::ptrdiff_t>(i)];
      if (i % each == 0) {
        out_.memory.push_back(point);
        out_.memory.back().at_ns -= first->at_ns;
        continue;
      }
      MemoryPoint& kept = out_.memory.back();
      kept.working_bytes = std::max(kept.working_bytes, point.working_bytes);
      kept.result_bytes = std::max(kept.result_bytes, point.result_bytes);
    }
  }

  JsonReader json_;
  const size_t most_;
  Trace out_;
  std::vector<Recorded> spans_;
  std::vector<RunOf> runs_;
  std::vector<MemoryPoint> memory_;
  std::unordered_map<std::string, size_t> steps_, stages_;
  std::map<int64_t, std::string> names_;
  double last_ = 0;
  int64_t since_ns_ = INT64_MAX;
};

}  // namespace

Trace read_trace(std::string_view text, size_t most) { return TraceReader(text, most).run(); }

}  // namespace cli
