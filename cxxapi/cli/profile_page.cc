// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/profile_page.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <pyflame_rt/measure.hpp>

#include "cxxapi/cli/page/kernel_families.h"
#include "cxxapi/cli/page/markup.h"
#include "cxxapi/cli/page/profile_assets.h"
#include "cxxapi/cli/page/trace.h"
#include "cxxapi/cli/print/json.h"

namespace cli {
namespace {

constexpr size_t kName = 200;  // characters of a name that a page shows

// Texts that many steps share, each written once.
class Texts {
 public:
  size_t number(const std::string& text) {
    const auto [at, added] = numbers_.emplace(text, all_.size());
    if (added) all_.push_back(clean(text, kName));
    return at->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> all_;
};

void write_timeline(const char* key, const Timeline& line, Json* json) {
  json->key(key).object().field("ns", line.ns).field("left_out", line.left_out);
  json->key("threads").list();
  for (const TraceThread& thread : line.threads) {
    json->object().field("name", clean(thread.name, kName)).field("busy_ns", thread.busy_ns);
    json->key("rows").list();
    for (const std::vector<TraceSpan>& row : thread.rows) {
      json->list();
      for (const TraceSpan& span : row)
        json->value(span.what).value(span.start_ns).value(span.ns).value(int{span.kind});
      json->end();
    }
    json->end().end();
  }
  json->end().end();
}

void write_steps(const std::vector<TraceStep>& steps, Json* json) {
  Texts texts;
  json->key("steps").list();
  for (const TraceStep& step : steps) {
    json->list().value(clean(step.nodes, kName));
    for (const std::string* text : {&step.ops, &step.kernel, &step.provider})
      json->value(texts.number(*text));
    json->value(kernel_family(step.kernel, step.ops)).value(step.bytes).value(step.flops);
    json->value(step.times).value(step.ns).end();
  }
  json->end().key("texts").list();
  for (const std::string& text : texts.all()) json->value(text);
  json->end();
}

void write_about(const Trace& trace, Json* json) {
  const std::vector<int64_t>& times = trace.run_ns;
  json->key("about").object().field("runs", trace.runs).field("counted", times.size());
  if (!times.empty()) {
    json->field("median_ns", times[times.size() / 2]);
    json->field("least_ns", times.front()).field("most_ns", times.back());
  }
  json->field("wall_us", trace.wall_us).field("processor_us", trace.processor_us);
  json->field("parameter_bytes", trace.parameter_bytes);
  json->field("peak_resident_bytes", trace.peak_resident_bytes);
  json->field("dropped_events", trace.dropped_events).key("busy_us").list();
  for (const double us : trace.busy_us) json->value(us);
  json->end().end();
}

Json profile_data(const Trace& trace) {
  Json json;
  json.object();
  write_about(trace, &json);
  json.key("families").list();
  for (const KernelFamily& family : kernel_families())
    json.object().field("name", family.name).field("text", family.text).end();
  json.end();
  write_steps(trace.steps, &json);
  json.key("stages").list();
  for (const std::string& stage : trace.stages) json.value(clean(stage, kName));
  json.end();
  write_timeline("line", trace.last_run, &json);
  write_timeline("before", trace.before, &json);
  json.key("memory").list();
  for (const MemoryPoint& point : trace.memory)
    json.list().value(point.at_ns).value(point.working_bytes).value(point.result_bytes).end();
  json.end().end();
  return json;
}

}  // namespace

Roofline measure_roofline(uint32_t threads, double seconds) {
  Roofline out;
  const auto take = [&](const char* only, const auto& with) {
    pyflame_rt::MeasureOptions options;
    options.threads = threads;
    options.seconds = seconds / 2;
    options.only = only;
    try {
      for (const pyflame_rt::Measurement& m : pyflame_rt::measure(options))
        if (m.threads > 0) with(m);
    } catch (const pyflame_rt::PyFlameRTError&) {  // the page says that there is none
    }
  };
  // Rows are for one thread, then for as many as were asked for.
  take("fp32 fma", [&](const auto& m) { out.gflops = std::max(out.gflops, m.best); });
  take("read ", [&](const auto& m) {
    if (!out.levels.empty() && out.levels.back().name == m.name)
      out.levels.back().gbytes = m.best;
    else
      out.levels.push_back({m.name, UINT64_MAX, m.best});
  });
  const auto cache = [](int which) {
    const long bytes = ::sysconf(which);
    return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  };
  for (Roofline::Level& level : out.levels)
    if (level.name != "read memory")
      level.bytes = cache(level.name == "read L1"   ? _SC_LEVEL1_DCACHE_SIZE
                          : level.name == "read L2" ? _SC_LEVEL2_CACHE_SIZE
                                                    : _SC_LEVEL3_CACHE_SIZE);
  return out;
}

std::string profile_page(const std::string& model, const std::string& trace,
                         const Roofline& roofline) {
  Json roof;
  roof.object().field("gflops", roofline.gflops).key("levels").list();
  for (const Roofline::Level& level : roofline.levels) {
    roof.object().field("name", level.name).field("bytes", static_cast<double>(level.bytes));
    roof.field("gbytes", level.gbytes).end();
  }
  roof.end().end();
  Markup out;
  begin_page(out, model, ": profile", kProfileStyle);
  out.raw(
      R"(<noscript><p>The script of this page draws it, and this browser runs none.</p></noscript>
<div id="about"></div>
<h2>The last run</h2><div class="legend" id="legend"></div><div id="line"></div>
<p>The wheel zooms, dragging moves, and so do the keys + - 0 and the arrows; a click on a colour's name shows its steps
alone. A fused step has the colour of its first kernel.</p>
<h2>Memory</h2><div id="memory"><svg id="curve" viewBox="0 0 1000 102" preserveAspectRatio="none"></svg></div>
<h2>Before and between runs</h2><div id="before"></div><div class="wide"><table id="stages"></table></div>
<h2>Steps by time</h2><div id="roofs"></div><div class="wide"><table id="steps"></table></div>
<button id="more" hidden></button>
<script type="application/json" id="roof">)");
  out.data(roof).raw("</script>\n<script type=\"application/json\" id=\"profile\">");
  out.data(profile_data(read_trace(trace))).raw("</script>\n<script>").raw(kProfileScript);
  out.raw("</script></body></html>\n");
  return out.str();
}

}  // namespace cli
