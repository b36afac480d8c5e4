// SPDX-License-Identifier: Apache-2.0
//
// The style sheet and the script of a page. Neither refers to anything outside of the page.
#pragma once

namespace cli {

inline constexpr char kStyle[] = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #6a737d; --edge: #8b949e;
  --rule: #d0d7de; --panel: #f6f8fa; --mark: #d9480f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #8d96a0;
  --edge: #6e7681; --rule: #30363d; --panel: #161b22; --mark: #ff922b; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 0 1rem 1rem; color: var(--ink); background: var(--paper);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: .6rem 0; }
code, svg text, dd, td { font-family: ui-monospace, monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .3rem 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; font-size: 12px; }
table { border-collapse: collapse; font-size: 12px; }
th, td { text-align: left; vertical-align: top; padding: .1rem .8rem .1rem 0;
  border-bottom: 1px solid var(--rule); }
.columns { display: flex; flex-wrap: wrap; gap: 1rem 3rem; } .columns > * { min-width: 0; }
.bar { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .3rem .8rem;
  align-items: center; padding: .5rem 0; background: var(--paper); border-bottom: 1px solid var(--rule); }
.bar input[type=search] { font: inherit; width: 16rem; max-width: 100%; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: 12px; padding: .4rem 0; }
.legend i { display: inline-block; width: .9em; height: .9em; border-radius: 3px; margin-right: .3em;
  border: 1.5px solid var(--c); background: color-mix(in srgb, var(--c) 25%, transparent); }
.legend i.only { border: 2px dashed var(--mark); background: none; }
main { display: grid; gap: 0 1rem; grid-template-columns: minmax(0, 1fr); }
section { min-width: 0; } #passes { overflow-x: auto; } section p { margin: .3rem 0; }
.view { overflow: auto; height: 78vh; min-height: 12rem; border: 1px solid var(--rule); border-radius: 6px; cursor: grab; }
details .view { height: 60vh; } section p small { color: var(--faint); margin-left: .6rem; } details { margin: .4rem 0; } summary { cursor: pointer; }
body:has(#tab-before:checked) section:not(#before),
body:has(#tab-passes:checked) section:not(#passes),
body:has(#tab-after:checked) section:not(#after) { display: none; }
@media (min-width: 60rem) { body:has(#tab-both:checked) main { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  #passes { grid-column: 1 / -1; grid-row: 2; } }
svg { display: block; margin: 0 auto; }
svg text { font-size: 12px; font-weight: 600; text-anchor: middle; fill: var(--ink); }
svg text.s { font-size: 10px; font-weight: 400; } svg text.w { fill: var(--faint); }
.e { fill: none; stroke: var(--edge); stroke-width: 1.3; } .e.cut { stroke-dasharray: 2 2; }
.e:hover, .e.lit { stroke: var(--mark); stroke-width: 2.6; } .t { fill: var(--edge); }
.n { cursor: pointer; } .n rect { fill: var(--c); fill-opacity: .2; stroke: var(--c); stroke-width: 1.3; }
.n.bodies rect { stroke-width: 3; }
.far text, .far .t { display: none; } .far .n rect { fill-opacity: .7; }
.far .n rect, .far .e { vector-effect: non-scaling-stroke; }
.n.only rect { stroke: var(--mark); stroke-dasharray: 5 3; stroke-width: 2; }
.n.open rect { fill-opacity: .55; } .searching .n:not(.hit) { opacity: .25; }
.n.at rect { stroke: var(--mark); stroke-width: 4; }
.k-conv { --c: #2f7ed8; } .k-product { --c: #7048e8; } .k-recurrent { --c: #9c36b5; }
.k-norm { --c: #0c8599; } .k-pool { --c: #2b8a3e; } .k-act { --c: #e03131; } .k-math { --c: #e67700; }
.k-reduce { --c: #a61e4d; } .k-move { --c: #868e96; } .k-flow { --c: #d6336c; } .k-quant { --c: #5c940d; }
.k-other { --c: #495057; } .k-port { --c: #1098ad; }
@media (prefers-color-scheme: dark) { .k-other { --c: #adb5bd; } }
#panel { position: fixed; right: 1rem; bottom: 1rem; width: 27rem; max-width: calc(100vw - 2rem);
  max-height: 60vh; overflow: auto; z-index: 3; padding: .5rem .8rem; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 6px; box-shadow: 0 4px 16px #0005; font-size: 12px; }
#panel h2 { overflow-wrap: anywhere; } #panel button { float: right; }
)css";

inline constexpr char kScript[] = R"js(
'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const all = (what, where) => Array.from((where || document).querySelectorAll(what));
  const data = {};
  for (const name of ['before', 'after']) {
    if ($('data-' + name)) data[name] = JSON.parse($('data-' + name).textContent);
  }
  const parts = g => { const p = g.id.split('-'); return [p[0], +p[1], +p[2]]; };
  const drawing = g => { const p = parts(g); return data[p[0]][p[1]]; };
  const box = g => drawing(g).boxes[parts(g)[2]];
  const put = (where, tag, text) => {
    const e = where.appendChild(document.createElement(tag));
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // The panel: what the box under the pointer says, or the one that was clicked.
  const panel = $('panel');
  let pinned = null;
  const reveal = g => {
    for (let d = g.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
    const view = g.closest('.view');
    if (size(view) < .6) scale(view, 1 / size(view), 0, 0);
    g.scrollIntoView({ block: 'center', inline: 'center' });
  };
  const show = g => {
    const b = box(g), values = drawing(g).values;
    panel.replaceChildren();
    const close = put(panel, 'button', '\u00d7');
    close.onclick = () => pin(null);
    put(panel, 'h2', b.op + (b.name ? ' \u2014 ' + b.name : ''));
    const list = put(panel, 'dl');
    const row = (name, text) => { put(list, 'dt', name); put(list, 'dd', text); };
    if (b.domain) row('domain', b.domain);
    for (const a of b.attrs || []) row(a[0], a[1]);
    const value = v => v < 0 ? '(absent)' : values[v].filter(Boolean).join(' : ');
    b.in.forEach((v, i) => row('input ' + i, value(v)));
    b.out.forEach((v, i) => row('output ' + i, value(v)));
    for (const body of b.bodies || []) {
      put(list, 'dt', body[0]);
      const go = put(put(list, 'dd'), 'button', 'show the body');
      go.style.float = 'none';
      go.onclick = () => {
        const d = $(parts(g)[0] + '-body-' + body[1]);
        for (let e = d; e; e = e.parentElement.closest('details')) e.open = true;
        d.scrollIntoView({ block: 'nearest' });
      };
    }
    panel.hidden = false;
    all('.e.lit').forEach(e => e.classList.remove('lit'));
    const near = b.in.concat(b.out);
    all('.e', g.parentNode).forEach(e => e.classList.toggle('lit', near.includes(+e.dataset.v)));
  };
  const pin = g => {
    if (pinned) pinned.classList.remove('open');
    pinned = g;
    if (!g) { panel.hidden = true; all('.e.lit').forEach(e => e.classList.remove('lit')); return; }
    g.classList.add('open');
    show(g);
  };

  // Zoom and pan: the drawing's size, and the scroll position of its frame.
  const width = svg => +svg.getAttribute('width');
  const size = view => width(view.querySelector('svg')) / view.querySelector('svg').dataset.w || 1;
  // The size at which all of the drawing is in its frame.
  const whole = view => {
    const { w, h } = view.querySelector('svg').dataset;
    return Math.min(2, (view.clientWidth - 2) / w, (view.clientHeight - 2) / h);
  };
  const scale = (view, factor, x, y) => {
    const svg = view.querySelector('svg'), all_of_it = whole(view), old = size(view);
    const now = Math.min(4, Math.max(Math.min(1, all_of_it), factor * old));
    const left = Math.max(0, (view.clientWidth - width(svg)) / 2);
    const px = (view.scrollLeft + x - left) / old, py = (view.scrollTop + y) / old;
    svg.setAttribute('width', svg.dataset.w * now);
    svg.setAttribute('height', svg.dataset.h * now);
    view.scrollLeft = px * now - x + Math.max(0, (view.clientWidth - svg.dataset.w * now) / 2);
    view.scrollTop = py * now - y;
    view.classList.toggle('far', now < .3);  // letters could not be read, and thin lines not be seen
    view.dataset.shows = now < 1.0001 * all_of_it ? 'all' : 'part';
  };
  const fit = view => {
    if (!view.clientWidth) return;
    scale(view, whole(view) / size(view), 0, 0);
    view.scrollLeft = view.scrollTop = 0;
  };
  // Frames of graphs, though not of bodies, end where the window does. A drawing that shows a part
  // was put there by the reader and stays.
  const fit_all = () => {
    const frames = all('.view').filter(v => !v.closest('details'));
    const first = frames.find(v => v.clientWidth);
    if (first) {
      const above = first.getBoundingClientRect().top + window.scrollY;
      const high = Math.max(window.innerHeight / 2, window.innerHeight - above - 12);
      frames.forEach(v => { v.style.height = Math.floor(high) + 'px'; });
    }
    all('.view').forEach(v => { if (v.dataset.shows !== 'part') fit(v); });
  };
  for (const view of all('.view')) {
    let from = null, moved = false;
    view.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      const r = view.getBoundingClientRect();
      scale(view, Math.exp(-e.deltaY / 300), e.clientX - r.left, e.clientY - r.top);
    }, { passive: false });
    view.addEventListener('pointerdown', e => {
      moved = false;
      if (e.pointerType === 'mouse' && e.button === 0) {
        from = [e.clientX + view.scrollLeft, e.clientY + view.scrollTop, e.clientX, e.clientY];
      }
    });
    view.addEventListener('pointermove', e => {
      if (!from) return;
      if (!(e.buttons & 1)) { from = null; return; }
      if (Math.abs(e.clientX - from[2]) + Math.abs(e.clientY - from[3]) > 4) moved = true;
      if (!moved) return;
      view.scrollLeft = from[0] - e.clientX;
      view.scrollTop = from[1] - e.clientY;
    });
    view.addEventListener('click', e => {
      from = null;
      const g = e.target.closest('.n');
      if (!moved) pin(g === pinned ? null : g);
    });
    view.addEventListener('mouseover', e => {
      const g = e.target.closest('.n');
      if (g && !pinned && !from) show(g);
    });
    view.addEventListener('mouseleave', () => { if (!pinned) pin(null); });
    const r = () => [view.clientWidth / 2, view.clientHeight / 2];
    for (const b of all('button', view.previousElementSibling)) {
      b.onclick = () => {
        if (b.dataset.zoom === 'fit') fit(view);
        else if (b.dataset.zoom === 'one') scale(view, 1 / size(view), ...r());
        else scale(view, +b.dataset.zoom, ...r());
      };
    }
  }
  all('section details').forEach(d => d.addEventListener('toggle', fit_all));
  all('input[name=tab]').forEach(t => t.addEventListener('change', fit_all));
  window.addEventListener('resize', fit_all);

  // Search: every word is in the operator or the name.
  const search = $('search');
  let hits = [], at = -1;
  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    document.body.classList.toggle('searching', words.length > 0);
    all('.n.at').forEach(g => g.classList.remove('at'));
    at = -1;
    hits = all('.n').filter(g => {
      const text = (box(g).op + ' ' + box(g).name).toLowerCase();
      const hit = words.length > 0 && words.every(w => text.includes(w));
      g.classList.toggle('hit', hit);
      return hit && g.closest('section').offsetParent !== null;
    });
    $('hits').textContent = words.length ? hits.length + ' found; Enter goes on' : '';
  };
  search.addEventListener('input', find);
  search.addEventListener('keydown', e => {
    if (e.key !== 'Enter' || !hits.length) return;
    if (at >= 0) hits[at].classList.remove('at');
    at = (at + (e.shiftKey ? hits.length - 1 : 1) + (at < 0 && e.shiftKey ? 1 : 0)) % hits.length;
    hits[at].classList.add('at');
    reveal(hits[at]);
    pin(hits[at]);
    $('hits').textContent = (at + 1) + ' of ' + hits.length;
  });
  all('input[name=tab]').forEach(t => t.addEventListener('change', find));
  document.addEventListener('keydown', e => { if (e.key === 'Escape') pin(null); });
  fit_all();
})();
)js";

}  // namespace cli
