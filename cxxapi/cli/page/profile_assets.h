// SPDX-License-Identifier: Apache-2.0
//
// The style sheet and the script of a profile's page. Neither refers to anything outside of the
// page.
#pragma once

namespace cli {

// The families' colours differ for readers with normal sight, protanopia, deuteranopia and
// tritanopia, and from the paper by a contrast of 3 or more (test/cli/profile_page.js).
inline constexpr char kProfileStyle[] = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #57606a; --rule: #d0d7de;
  --panel: #f6f8fa; --mark: #d9480f;
  --attention: #0f9ae1; --depthwise: #c9860f; --conv: #cd4003; --matmul: #144899; --norm: #278051;
  --reduce: #95579d; --elementwise: #5e4300; --move: #3f265d; --other: #878891; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #9aa4ae;
  --rule: #30363d; --panel: #161b22; --mark: #ff922b;
  --attention: #85cefe; --depthwise: #eab758; --conv: #f76d1f; --matmul: #017fe2; --norm: #2f7432;
  --reduce: #e47fc5; --elementwise: #f1e854; --move: #9857ab; --other: #968e85; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 90rem; padding: 0 1rem 2rem; color: var(--ink);
  background: var(--paper); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0; color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; min-width: 34rem; width: 100%; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; overflow-wrap: anywhere; }
td { font-family: ui-monospace, monospace; } td.n, th.n { text-align: right; white-space: nowrap; }
th button { all: unset; cursor: pointer; font-weight: 600; }
button:focus-visible, .timeline:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
.bar { display: inline-block; height: .7em; min-width: 1px; border-radius: 2px; }
.tools, .legend { display: flex; flex-wrap: wrap; gap: .3rem; align-items: center; margin: .3rem 0; }
.tools span { margin-left: .6rem; color: var(--faint); font-size: 12px; }
.legend button { font: inherit; font-size: 12px; color: inherit; cursor: pointer; background: none;
  border: 1px solid transparent; border-radius: 4px; padding: .05rem .4rem; }
.legend button:hover { border-color: var(--rule); }
.legend button[aria-pressed=true] { border-color: var(--ink); background: var(--panel); }
.legend i { display: inline-block; width: .9em; height: .9em; border-radius: 2px; margin-right: .35em;
  vertical-align: -.1em; }
.legend i.stage { border: 1.5px solid var(--faint); } .legend i.share { height: .45em; vertical-align: .1em;
  background: var(--faint); }
.legend span { font-size: 12px; padding: .05rem .4rem; }
.timeline { border: 1px solid var(--rule); border-radius: 6px; max-height: 70vh; overflow: hidden auto; }
.lane { display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); border-top: 1px solid var(--rule); }
.lane.axis { position: sticky; top: 0; z-index: 1; border-top: 0; background: var(--paper); }
.lane > span { padding: .15rem .5rem; font-size: 12px; line-height: 1.2; overflow-wrap: anywhere;
  border-right: 1px solid var(--rule); }
.lane small { color: var(--faint); display: block; }
.lane canvas { display: block; width: 100%; cursor: grab; touch-action: pan-y; }
.tip { position: fixed; z-index: 3; max-width: min(34rem, 90vw); max-height: 60vh; overflow: hidden;
  padding: .4rem .6rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  box-shadow: 0 4px 16px #0005; font-size: 12px; overflow-wrap: anywhere; pointer-events: none; }
.tip p { margin: 0; color: var(--ink); }
svg { display: block; width: 100%; height: 9rem; border-bottom: 1px solid var(--rule); }
svg path { fill: none; stroke: var(--norm); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
svg path.results { stroke: var(--conv); stroke-dasharray: 4 2; }
)css";

// Names from the model are set as text, never as markup.
inline constexpr char kProfileScript[] = R"js(
'use strict';
const $ = id => document.getElementById(id);
const data = JSON.parse($('profile').textContent), roof = JSON.parse($('roof').textContent);
const put = (parent, tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.appendChild(made);
  return made;
};
const us = t => t >= 1e6 ? (t / 1e6).toFixed(2) + ' s' : t >= 1e3 ? (t / 1e3).toFixed(2) + ' ms' : t.toFixed(2) + ' us';
const size = b => b >= 1 << 20 ? (b / (1 << 20)).toFixed(1) + ' MiB' : b >= 1024 ? (b / 1024).toFixed(1) + ' KiB' : b + ' B';
const percent = (part, all) => (100 * part / (all || 1)).toFixed(1) + ' %';
const steps = data.steps.map(([name, ops, kernel, provider, family, bytes, flops, times, ns]) => ({
  name, ops: data.texts[ops], kernel: data.texts[kernel], provider: data.texts[provider],
  family: data.families[family], bytes, flops, times, us: ns / 1e3}));

// Time lines. A thread's row is a list of numbers, kNumbers a box: which step or stage it is, start
// and length in nanoseconds, and its kind.
const kNumbers = 4, kStep = 0, kShare = 1, kStage = 2, kRow = 24, kInset = 5;
const stage = {name: 'stage', text: 'planning, loading'};
const family_of = (row, i) => row[kNumbers * i + 3] === kStage ? stage : steps[row[kNumbers * i]].family;
const of = (row, i) => {
  const [what, start, ns, kind] = row.slice(kNumbers * i, kNumbers * (i + 1));
  const step = kind === kStage ? null : steps[what];
  return {start, ns, kind, step, name: step ? step.name : data.stages[what], family: family_of(row, i)};
};
// The first box of a row that does not end before a time.
const first_after = (row, t) => {
  let low = 0, high = row.length / kNumbers;
  while (low < high) {
    const middle = (low + high) >> 1, at = kNumbers * middle;
    if (row[at + 1] + row[at + 2] < t) low = middle + 1;
    else high = middle;
  }
  return low;
};
// Colours come from the style sheet, which knows the mode. Letters on a colour are black or white.
let colours = {};
const colour = name => {
  if (colours[name]) return colours[name];
  const fill = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const [r, g, b] = [1, 3, 5].map(i => (parseInt(fill.slice(i, i + 2), 16) / 255) ** 2.2);
  return colours[name] = {fill, ink: .2126 * r + .7152 * g + .0722 * b > .18 ? '#000' : '#fff'};
};
let lit = null;  // the family that the legend is asked for
const redraws = [];
const redraw_all = () => redraws.forEach(redraw => redraw());
const tip = put(document.body, 'div', undefined, 'tip');
tip.hidden = true;

const draw_row = (context, row, y, width, from, span) => {
  const scale = width / span, letter = 6.7, high = kRow - 2;
  let column = -1, sums = new Map(), shares = true;
  const fill = (family, x, w, inset) => {
    context.globalAlpha = lit && family !== stage && lit !== family.name ? .15 : 1;
    if (family === stage) {
      context.strokeStyle = colour('faint').fill;
      context.strokeRect(x + .5, y + 1.5, Math.max(w - 1, .1), high - 1);
    } else {
      context.fillStyle = colour(family.name).fill;
      context.fillRect(x, y + 1 + inset, w, high - 2 * inset);
    }
  };
  // Boxes within one column of pixels are one, of the family that has the most time there.
  const flush = () => {
    let most = null;
    for (const [family, ns] of sums) if (!most || ns > sums.get(most)) most = family;
    if (most) fill(most, column, 1, shares ? kInset : 0);
    [sums, shares] = [new Map(), true];
  };
  for (let i = first_after(row, from); i < row.length / kNumbers; ++i) {
    const [start, ns] = [row[kNumbers * i + 1], row[kNumbers * i + 2]];
    if (start > from + span) break;
    const x = (start - from) * scale, w = ns * scale;
    if (w < 1) {
      const family = family_of(row, i);
      const at = Math.max(0, Math.floor(x));
      if (at !== column) flush();
      column = at;
      shares = shares && row[kNumbers * i + 3] === kShare;
      sums.set(family, (sums.get(family) || 0) + ns + 1);
      continue;
    }
    flush();
    const box = of(row, i);
    const left = Math.max(x, 0), wide = Math.min(x + w, width) - left;
    if (wide <= 0) continue;
    fill(box.family, left, wide > 3 ? wide - 1 : wide, box.kind === kShare ? kInset : 0);
    const letters = Math.floor((wide - 8) / letter);
    if (letters < 3 || box.kind === kShare) continue;
    const text = box.step ? box.step.ops : box.name;
    context.fillStyle = box.family === stage ? colour('ink').fill : colour(box.family.name).ink;
    context.fillText(text.length > letters ? text.slice(0, letters - 1) + '\u2026' : text, left + 4, y + 16);
  }
  flush();
  context.globalAlpha = 1;
};

const draw_axis = (context, width, from, span, whole) => {
  const [unit, name] = whole >= 1e9 ? [1e9, 's'] : whole >= 1e6 ? [1e6, 'ms'] : [1e3, 'us'];
  const rough = 110 * span / width, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(n => n * power >= rough);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  for (let i = Math.ceil(from / step); i * step <= from + span; ++i) {
    const x = (i * step - from) * width / span;
    context.fillStyle = colour('rule').fill;
    context.fillRect(x, 0, 1, 20);
    context.fillStyle = colour('faint').fill;
    context.fillText((i * step / unit).toFixed(digits) + ' ' + name, x + 4, 14);
  }
};

const describe = (box, line) => {
  tip.textContent = '';
  const step = box.step;
  put(tip, 'p', box.name);
  if (step) put(tip, 'p', step.ops + ', ' + step.kernel + ', ' + step.provider);
  put(tip, 'p', us(box.ns / 1e3) + ', ' + percent(box.ns, line.ns) + ' of the line, from ' + us(box.start / 1e3) + ' on');
  put(tip, 'p', box.family.text + (box.kind === kShare ? "; this thread's part of the step's loop" : ''));
};

const timeline = (parent, line, label) => {
  if (!line.threads.length) return put(parent, 'p', 'nothing was recorded');
  const whole = Math.max(line.ns, 1), least = Math.min(whole, 100);
  let from = 0, span = whole, waits = false, drag = null;
  const tools = put(parent, 'div', undefined, 'tools');
  const button = (text, title, act) => {
    const made = put(tools, 'button', text);
    made.title = title;
    made.setAttribute('aria-label', title);
    made.onclick = act;
  };
  button('+', 'nearer', () => zoom(.5, .5));
  button('\u2212', 'farther', () => zoom(2, .5));
  button('\u2190', 'earlier', () => go(from - span / 4, span));
  button('\u2192', 'later', () => go(from + span / 4, span));
  button('reset', 'the whole line', () => go(0, whole));
  const shown = put(tools, 'span');
  const frame = put(parent, 'div', undefined, 'timeline');
  frame.tabIndex = 0;
  frame.setAttribute('role', 'group');
  frame.setAttribute('aria-label', label + ': a lane for each thread. Keys: + nearer, - farther, arrows to move, 0 to reset');
  const lane = (name, note, rows, kind) => {
    const made = put(frame, 'div', undefined, kind), title = put(made, 'span', name);
    if (note) put(title, 'small', note);
    const canvas = put(made, 'canvas');
    canvas.style.height = (rows ? Math.max(1, rows.length) * kRow + 2 : 20) + 'px';
    return {canvas, rows};
  };
  const axis = lane('', '', null, 'lane axis');
  const lanes = line.threads.map(t => lane(t.name, percent(t.busy_ns, line.ns) + ' at work', t.rows, 'lane'));
  const size_of = canvas => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '11px ui-monospace, monospace';
    return [context, width];
  };
  const draw = () => {
    waits = false;
    const [context, width] = size_of(axis.canvas);
    if (!(width > 0)) return;
    draw_axis(context, width, from, span, whole);
    for (const {canvas, rows} of lanes) {
      const [on, wide] = size_of(canvas);
      rows.forEach((row, i) => draw_row(on, row, 1 + kRow * i, wide, from, span));
    }
    shown.textContent = us(span / 1e3) + ' of ' + us(whole / 1e3) + ', from ' + (from / 1e3).toFixed(2) + ' us on';
  };
  const redraw = () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(draw);
  };
  redraws.push(redraw);
  // Shows a stretch of the line, as near to the one that is asked for as there is one. Returns
  // whether anything changed.
  const go = (start, length) => {
    const now = Math.min(whole, Math.max(least, length)), at = Math.min(whole - now, Math.max(0, start));
    const changed = now !== span || at !== from;
    [from, span] = [at, now];
    tip.hidden = true;
    redraw();
    return changed;
  };
  // |at| is the place that stays, from 0 on the left to 1 on the right.
  const zoom = (factor, at) => {
    const now = Math.min(whole, Math.max(least, factor * span));
    return go(from + at * (span - now), now);
  };
  const place = e => {
    const r = axis.canvas.getBoundingClientRect();
    return {at: (e.clientX - r.left) / (r.width || 1), width: r.width || 1};
  };
  const is_lane = e => lanes.some(l => l.canvas === e.target) || axis.canvas === e.target;
  // The wheel scrolls the page where there is nothing more to zoom.
  frame.addEventListener('wheel', e => {
    if (!is_lane(e)) return;
    const lines = e.deltaMode === 1 ? 16 : 1, {at, width} = place(e);
    const across = e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX;
    const changed = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)
      ? go(from + across * lines * span / width, span) : zoom(Math.exp(e.deltaY * lines / 300), at);
    if (changed || e.ctrlKey) e.preventDefault();
  }, {passive: false});
  frame.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const act = {'+': () => zoom(.5, .5), '=': () => zoom(.5, .5), '-': () => zoom(2, .5), '0': () => go(0, whole),
      Home: () => go(0, whole), ArrowLeft: () => go(from - span / 8, span), ArrowRight: () => go(from + span / 8, span)}[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
  frame.addEventListener('pointerdown', e => {
    if (e.button !== 0 || !is_lane(e)) return;
    drag = {x: e.clientX, from};
    frame.setPointerCapture(e.pointerId);
  });
  const box_at = e => {
    const {at, width} = place(e), t = from + at * span, slack = 2 * span / width;
    if (at < 0 || e.clientY < axis.canvas.getBoundingClientRect().bottom) return null;
    for (const {canvas, rows} of lanes) {
      const row = rows[Math.floor((e.clientY - canvas.getBoundingClientRect().top - 1) / kRow)];
      if (!row) continue;
      const i = first_after(row, t - slack);
      if (i < row.length / kNumbers && row[kNumbers * i + 1] <= t + slack) return of(row, i);
    }
    return null;
  };
  const point = e => {
    const box = box_at(e);
    tip.hidden = !box;
    if (!box) return;
    describe(box, line);
    tip.style.left = Math.max(0, Math.min(e.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = Math.max(0, Math.min(e.clientY + 16, window.innerHeight - tip.offsetHeight - 8)) + 'px';
  };
  frame.addEventListener('pointermove', e => {
    if (drag) go(drag.from - (e.clientX - drag.x) * span / place(e).width, span);
    else point(e);
  });
  frame.addEventListener('pointerup', e => {
    drag = null;
    point(e);
  });
  frame.addEventListener('pointercancel', () => { drag = null; });
  frame.addEventListener('pointerleave', () => { tip.hidden = true; });
  if (line.left_out) put(parent, 'p', 'The ' + line.left_out + ' shortest boxes are left out.');
  redraw();
};

const legend = parent => {
  const sums = new Map(data.families.map(f => [f, 0]));
  for (const s of steps) sums.set(s.family, sums.get(s.family) + s.us);
  const all = steps.reduce((sum, s) => sum + s.us, 0);
  const used = new Set(steps.map(s => s.family)), buttons = [];
  for (const [family, time] of [...sums].sort((a, b) => b[1] - a[1])) {
    if (!used.has(family)) continue;
    const button = put(parent, 'button');
    button.title = 'show these steps alone, or all again';
    put(button, 'i').style.background = 'var(--' + family.name + ')';
    put(button, 'span', family.text + ' ' + percent(time, all)).style.padding = 0;
    buttons.push([button, family.name]);
    button.setAttribute('aria-pressed', 'false');
    button.onclick = () => {
      lit = lit === family.name ? null : family.name;
      for (const [b, name] of buttons) b.setAttribute('aria-pressed', String(name === lit));
      redraw_all();
    };
  }
  const note = (kind, text) => {
    const made = put(parent, 'span');
    put(made, 'i', undefined, kind);
    put(made, 'span', text).style.padding = 0;
  };
  const kinds = new Set();
  for (const t of data.line.threads) for (const row of t.rows)
    for (let i = 3; i < row.length; i += kNumbers) kinds.add(row[i]);
  if (kinds.has(kShare)) note('share', "a thread's part of a step on another thread");
  if (kinds.has(kStage)) note('stage', stage.text);
};
legend($('legend'));
timeline($('line'), data.line, 'the last run');
timeline($('before'), data.before, 'before and between runs');
window.addEventListener('resize', redraw_all);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  colours = {};
  redraw_all();
});

const least = s => {
  const level = roof.levels.find(l => s.bytes <= l.bytes) || roof.levels[roof.levels.length - 1];
  return Math.max(roof.gflops > 0 ? s.flops / roof.gflops / 1e3 : 0,
                  level && level.gbytes > 0 ? s.bytes / level.gbytes / 1e3 : 0);
};
const rows = steps.filter(s => s.times).map(s => {
  const mean = s.us / s.times, at_least = least(s);
  return {...s, mean, share: at_least > 0 && mean > 0 ? 100 * at_least / mean : null};
});
const total = rows.reduce((sum, r) => sum + r.us, 0), most = rows.reduce((top, r) => Math.max(top, r.us), 1e-9);
const rate = (count, mean) => mean > 0 ? count / mean / 1e3 : 0;
const columns = [
  ['step', r => r.name], ['operators', r => r.ops], ['kernel', r => r.kernel], ['provider', r => r.provider],
  ['mean', r => r.mean, us], ['of all', r => r.us, v => percent(v, total)],
  ['GFLOP/s', r => rate(r.flops, r.mean), v => v.toFixed(2)], ['GB/s', r => rate(r.bytes, r.mean), v => v.toFixed(2)],
  ['of roofline', r => r.share === null ? -1 : r.share, v => v < 0 ? '-' : v.toFixed(0) + ' %']];
const kPage = 200;  // rows of the table, and as many more each time
let sorted = 5, down = true, room = kPage;
const draw_table = () => {
  const table = $('steps');
  table.textContent = '';
  const head = put(put(table, 'thead'), 'tr');
  columns.forEach(([name, , text], i) => {
    const cell = put(head, 'th', undefined, text ? 'n' : '');
    if (i === sorted) cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    put(cell, 'button', name + (i === sorted ? (down ? ' \u2193' : ' \u2191') : '')).onclick = () => {
      down = i === sorted ? !down : !!text;
      sorted = i;
      draw_table();
    };
  });
  const value = columns[sorted][1], body = put(table, 'tbody');
  rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1));
  for (const r of rows.slice(0, room)) {
    const line = put(body, 'tr');
    columns.forEach(([, get, text], i) => {
      const cell = put(line, 'td', text ? text(get(r)) : get(r), text ? 'n' : '');
      if (i !== 0) return;
      put(cell, 'br');
      const bar = put(cell, 'span', undefined, 'bar');
      bar.style.width = 12 * r.us / most + 'rem';
      bar.style.background = 'var(--' + r.family.name + ')';
    });
  }
  const more = $('more');
  more.hidden = rows.length <= room;
  more.textContent = rows.length - room + ' more steps: show ' + Math.min(kPage, rows.length - room);
  more.onclick = () => {
    room += kPage;
    draw_table();
  };
};
draw_table();

const stages = new Map();
for (const t of data.before.threads) for (const row of t.rows) for (let i = 0; i < row.length / kNumbers; ++i) {
  const box = of(row, i), sum = stages.get(box.name) || {n: 0, ns: 0};
  stages.set(box.name, {n: sum.n + 1, ns: sum.ns + box.ns});
}
for (const [name, {n, ns}] of [...stages].sort((a, b) => b[1].ns - a[1].ns).slice(0, 12)) {
  const line = put($('stages'), 'tr');
  put(line, 'td', name + (n > 1 ? ' (' + n + ' times)' : ''));
  put(line, 'td', us(ns / 1e3), 'n');
}

const memory = data.memory, about = data.about;
if (memory.length) {
  const end = memory[memory.length - 1][0], top = memory.reduce((t, m) => Math.max(t, m[1], m[2]), 1);
  for (const [i, name] of [[1, 'working'], [2, 'results']]) {
    let d = '', y = 100;
    for (const m of memory) {
      const x = (1000 * m[0] / (end || 1)).toFixed(2);
      d += (d ? 'L' : 'M') + x + ' ' + y;
      y = (100 - 98 * m[i] / top).toFixed(2);
      d += 'L' + x + ' ' + y;
    }
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('d', d);
    path.setAttribute('class', name);
    $('curve').appendChild(path);
  }
  const highest = i => size(memory.reduce((t, m) => Math.max(t, m[i]), 0));
  put($('memory'), 'p', 'At most ' + highest(1) + ' that steps worked in (the whole line) and ' + highest(2) +
    ' of results while they were made (the dashed one), over ' + us(end / 1e3) + '; the model has ' +
    size(about.parameter_bytes) + ' of parameters, and the process took ' + size(about.peak_resident_bytes) +
    ' at most.');
} else {
  $('curve').setAttribute('hidden', '');
  put($('memory'), 'p', 'nothing was recorded');
}

put($('about'), 'p', about.runs + ' runs, ' + about.counted + ' of them counted here' + (about.counted ? '; median ' +
  us(about.median_ns / 1e3) + ', ' + us(about.least_ns / 1e3) + ' to ' + us(about.most_ns / 1e3) : '') +
  '. Threads at work: ' + (about.busy_us.map(us).join(', ') || 'none') + '; the process used ' + us(about.processor_us) +
  ' of processor time in ' + us(about.wall_us) + '.' +
  (about.dropped_events ? ' ' + about.dropped_events + ' events were dropped.' : ''));
put($('roofs'), 'p', roof.gflops > 0 || roof.levels.length ? 'Of roofline: the time that the machine takes at least, of ' +
  roof.gflops.toFixed(0) + ' GFLOP/s of float32 arithmetic and ' + roof.levels.map(l => l.gbytes.toFixed(0) + ' GB/s (' +
  l.name + ')').join(', ') + ' as measured here, to the time taken. Narrower types may pass 100 %.' :
  'The roofline was not measured: no provider can, or --no-measure was given.');
)js";

}  // namespace cli
