// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/profile_page.h"

#include <unistd.h>

#include <algorithm>
#include <pyflame_rt/measure.hpp>
#include <string_view>

#include "cxxapi/cli/page/markup.h"
#include "cxxapi/cli/print/json.h"

namespace cli {
namespace {

constexpr char kProfileStyle[] = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #57606a; --rule: #d0d7de;
  --a: #2f7ed8; --b: #e67700; --c: #2b8a3e; --d: #9c36b5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #9aa4ae;
  --rule: #30363d; --a: #4c9aff; --b: #ff922b; --c: #51cf66; --d: #da77f2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 0 1rem 2rem; color: var(--ink);
  background: var(--paper); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0; color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; min-width: 34rem; width: 100%; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; overflow-wrap: anywhere; }
td { font-family: ui-monospace, monospace; } td.n, th.n { text-align: right; white-space: nowrap; }
th button { all: unset; cursor: pointer; font-weight: 600; } th button:focus-visible { outline: 2px solid var(--a); }
.bar { display: inline-block; height: .7em; min-width: 1px; background: var(--a); border-radius: 2px; }
.lane { position: relative; height: 1.5rem; border-bottom: 1px solid var(--rule); min-width: 34rem; }
.lane i { position: absolute; top: .15rem; bottom: .15rem; min-width: 1px; background: var(--a);
  border: 1px solid var(--paper); border-radius: 2px; }
.lane i.Loop { background: var(--b); } .lane i.Session { background: var(--d); }
.lane span { position: relative; font-size: 11px; color: var(--faint); pointer-events: none; }
svg { display: block; width: 100%; height: 9rem; border-bottom: 1px solid var(--rule); }
svg path { fill: none; stroke: var(--c); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
svg path.results { stroke: var(--b); }
)css";

// Names from the model are set as text, never as markup.
constexpr char kProfileScript[] = R"js(
'use strict';
const read = id => JSON.parse(document.getElementById(id).textContent);
const trace = read('trace'), roof = read('roof'), events = trace.traceEvents;
const $ = id => document.getElementById(id);
const put = (parent, tag, text, style) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (style) Object.assign(made.style, style);
  parent.appendChild(made);
  return made;
};
const us = t => t >= 1e6 ? (t / 1e6).toFixed(2) + ' s' : t >= 1e3 ? (t / 1e3).toFixed(2) + ' ms' : t.toFixed(2) + ' us';
const size = b => b >= 1 << 20 ? (b / (1 << 20)).toFixed(1) + ' MiB' : b >= 1024 ? (b / 1024).toFixed(1) + ' KiB' : b + ' B';
const spans = events.filter(e => e.ph === 'X');
const runs = spans.filter(e => e.name === 'model_run');
const kept = runs.filter(e => e.args.tag === 'profiled');
const steps = new Map();
const warm = new Set(runs.filter(e => !kept.includes(e)).map(e => e.args.run));
for (const e of spans) {
  if (e.cat !== 'Node' || warm.has(e.args.run)) continue;
  const key = [e.name, e.args.kernel].join('\n');
  const s = steps.get(key) || {name: e.name.replace(/_kernel_time$/, ''), ...e.args, n: 0, dur: 0};
  s.n += 1; s.dur += e.dur;
  steps.set(key, s);
}
const least = s => {
  const level = roof.levels.find(l => s.bytes <= l.bytes) || roof.levels[roof.levels.length - 1];
  return Math.max(roof.gflops > 0 ? s.flops / roof.gflops / 1e3 : 0,
                  level && level.gbytes > 0 ? s.bytes / level.gbytes / 1e3 : 0);
};
const rows = [...steps.values()].map(s => {
  const mean = s.dur / s.n, at_least = least(s);
  return {...s, mean, share: at_least > 0 && mean > 0 ? 100 * at_least / mean : null};
});
const total = rows.reduce((sum, r) => sum + r.dur, 0) || 1;
const columns = [
  ['step', r => r.name], ['operators', r => r.op_name], ['kernel', r => r.kernel], ['provider', r => r.provider],
  ['mean', r => r.mean, us], ['of all', r => r.dur, v => (100 * v / total).toFixed(1) + ' %'],
  ['GFLOP/s', r => r.flops / r.mean / 1e3, v => v.toFixed(2)], ['GB/s', r => r.bytes / r.mean / 1e3, v => v.toFixed(2)],
  ['of roofline', r => r.share === null ? -1 : r.share, v => v < 0 ? '-' : v.toFixed(0) + ' %']];
let sorted = 5, down = true;
const draw = () => {
  const table = $('steps');
  table.textContent = '';
  const head = put(put(table, 'thead'), 'tr');
  columns.forEach(([name, , text], i) => {
    const cell = put(head, 'th');
    if (text) cell.className = 'n';
    if (i === sorted) cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    put(cell, 'button', name + (i === sorted ? (down ? ' ↓' : ' ↑') : '')).onclick = () => {
      down = i === sorted ? !down : !!text;
      sorted = i;
      draw();
    };
  });
  const value = columns[sorted][1], most = Math.max(...rows.map(r => r.dur), 1e-9), body = put(table, 'tbody');
  rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1));
  for (const r of rows) {
    const line = put(body, 'tr');
    columns.forEach(([, get, text], i) => {
      const cell = put(line, 'td', text ? text(get(r)) : get(r));
      if (text) cell.className = 'n';
      if (i === 0) {
        put(cell, 'br');
        put(cell, 'span', undefined, {width: 12 * r.dur / most + 'rem'}).className = 'bar';
      }
    });
  }
};
draw();

const lanes = (parent, list) => {
  if (!list.length) return put(parent, 'p', 'nothing was recorded');
  const from = Math.min(...list.map(e => e.ts)), to = Math.max(...list.map(e => e.ts + e.dur));
  const by = new Map();
  for (const e of list) {  // those that overlap go on a line of their own
    const of = by.get(e.tid) || [];
    let depth = 0;
    while (of[depth] && of[depth].some(o => o.ts < e.ts + e.dur && e.ts < o.ts + o.dur)) ++depth;
    (of[depth] = of[depth] || []).push(e);
    by.set(e.tid, of);
  }
  for (const [tid, depths] of by) depths.forEach((depth, d) => {
    const lane = put(parent, 'div');
    lane.className = 'lane';
    for (const e of depth) {
      const box = put(lane, 'i', undefined, {left: 100 * (e.ts - from) / (to - from || 1) + '%',
                                             width: 100 * e.dur / (to - from || 1) + '%'});
      box.className = e.cat;
      box.title = e.name + ': ' + us(e.dur) + (e.args.kernel ? ', ' + e.args.kernel : '');
    }
    if (!d) put(lane, 'span', 'thread ' + tid);
  });
  put(parent, 'p', us(to - from) + ' from left to right; the title of a box says what it is');
};
const last = kept[kept.length - 1] || runs[runs.length - 1];
lanes($('line'), last ? spans.filter(e => e.args.run === last.args.run && e.name !== 'model_run') : []);
const before = spans.filter(e => e.cat === 'Session' && e.name !== 'model_run').sort((a, b) => b.dur - a.dur);
lanes($('before'), before);
for (const e of before.slice(0, 12)) {
  const line = put($('stages'), 'tr');
  put(line, 'td', e.name);
  put(line, 'td', us(e.dur)).className = 'n';
}

const since = kept.length ? kept[0].ts : 0;  // what came before would press the rest together
const memory = events.filter(e => e.ph === 'C' && e.name === 'memory' && e.ts >= since);
if (memory.length) {
  const end = memory[memory.length - 1].ts, from = memory[0].ts;
  const top = Math.max(...memory.map(e => Math.max(e.args.working_bytes, e.args.result_bytes)), 1);
  for (const [key, name] of [['working_bytes', 'working'], ['result_bytes', 'results']]) {
    let d = '', y = 100;
    for (const e of memory) {
      const x = 1000 * (e.ts - from) / (end - from || 1);
      d += (d ? 'L' : 'M') + x + ' ' + y;
      y = 100 - 98 * e.args[key] / top;
      d += 'L' + x + ' ' + y;
    }
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('d', d);
    path.setAttribute('class', name);
    $('curve').appendChild(path);
  }
  put($('memory'), 'p', 'At most ' + size(Math.max(...memory.map(e => e.args.working_bytes))) +
    ' that steps worked in (green) and ' + size(Math.max(...memory.map(e => e.args.result_bytes))) +
    ' of results while they were made (orange), over ' + us(end - from) + '; the model has ' +
    size(trace.otherData.parameter_bytes) + ' of parameters, and the process took ' +
    size(trace.otherData.peak_resident_bytes || 0) + ' at most.');
}

const times = kept.map(e => e.dur).sort((a, b) => a - b), other = trace.otherData;
put($('about'), 'p', runs.length + ' runs, ' + kept.length + ' of them counted here' + (times.length ? '; median ' +
  us(times[Math.floor(times.length / 2)]) + ', ' + us(times[0]) + ' to ' + us(times[times.length - 1]) : '') +
  '. Threads at work: ' + other.threads.map(t => us(t.busy_us)).join(', ') + '; the process used ' +
  us(other.processor_us) + ' of processor time in ' + us(other.wall_us) + '.' +
  (other.dropped_events ? ' ' + other.dropped_events + ' events were dropped.' : ''));
put($('roofs'), 'p', roof.gflops > 0 || roof.levels.length ? 'Of roofline: the time that the machine takes at least, of ' +
  roof.gflops.toFixed(0) + ' GFLOP/s of float32 arithmetic and ' + roof.levels.map(l => l.gbytes.toFixed(0) + ' GB/s (' +
  l.name + ')').join(', ') + ' as measured here, to the time taken. Narrower types may pass 100 %.' :
  'The roofline was not measured: no provider can, or --no-measure was given.');
)js";

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
  out.raw(R"(<div id="about"></div>
<h2>Steps by time</h2><div id="roofs"></div><div class="wide"><table id="steps"></table></div>
<h2>The last run</h2><div class="wide" id="line"></div>
<h2>Memory</h2><div id="memory"><svg id="curve" viewBox="0 0 1000 102" preserveAspectRatio="none"></svg></div>
<h2>Before and between runs</h2><div class="wide" id="before"></div><div class="wide"><table id="stages"></table></div>
<script type="application/json" id="roof">)");
  out.data(roof).raw("</script>\n<script type=\"application/json\" id=\"trace\">");
  std::string text = out.str();
  for (const char c : trace) {  // a "<" only occurs in strings
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text + "</script>\n<script>" + kProfileScript + "</script></body></html>\n";
}

}  // namespace cli
