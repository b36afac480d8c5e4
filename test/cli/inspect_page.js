// SPDX-License-Identifier: Apache-2.0
// Runs the script of a model's page on elements that only record, and checks how its drawings fit. Argument: the page.
'use strict';
const assert = require('assert');
const page = require('fs').readFileSync(process.argv[2], 'utf8');
const script = page.slice(page.lastIndexOf('<script>') + '<script>'.length, page.lastIndexOf('</script>'));
const content = id => page.match(new RegExp(`<script type="application/json" id="${id}">(.*?)</script>`, 's'))[1];

class Element {
  constructor() {
    Object.assign(this, {style: {}, attributes: {}, dataset: {}, listeners: {}, scrollLeft: 0, scrollTop: 0, value: '', found: {}});
    this.classes = new Set();
    this.classList = {add: c => this.classes.add(c), remove: c => this.classes.delete(c),
      toggle: (c, on) => on ? this.classes.add(c) : this.classes.delete(c)};
  }
  addEventListener(kind, act) { (this.listeners[kind] = this.listeners[kind] || []).push(act); }
  send(kind, event) { (this.listeners[kind] || []).forEach(act => act({preventDefault() {}, ...event})); }
  getAttribute(name) { return this.attributes[name]; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  appendChild(child) { return child; }
  replaceChildren() {}
  scrollIntoView() {}
  querySelectorAll(what) { return this.found[what] || []; }
  querySelector(what) { return this.querySelectorAll(what)[0]; }
  closest(what) { return (this.parents || {})[what] || null; }
}

// Runs the script in a window of 1400 x 900 with a graph of |width| x |height| on either side, from 150 on.
const open = (width, height, inner = 900) => {
  const byId = {}, document = new Element(), window = new Element();
  Object.assign(window, {innerHeight: inner, scrollY: 0});
  const views = ['before', 'after'].map(() => {
    const view = new Element(), svg = new Element(), tools = new Element();
    Object.assign(svg.dataset, {w: String(width), h: String(height)});
    svg.attributes = {width: String(width), height: String(height)};
    const buttons = ['1.4', '0.71', 'fit', 'one'].map(zoom => Object.assign(new Element(), {dataset: {zoom}}));
    tools.found = {button: buttons};
    Object.assign(view, {found: {svg: [svg]}, previousElementSibling: tools, clientWidth: 680,
      getBoundingClientRect: () => ({top: 150, left: 0}), svg, buttons});
    Object.defineProperty(view, 'clientHeight', {get: () => parseFloat(view.style.height)});
    return view;
  });
  const box = Object.assign(new Element(), {id: 'before-0-0', parentNode: new Element(),
    parents: {'.view': views[0], section: {offsetParent: {}}}});
  document.found = {'.view': views, '.n': [box]};
  document.body = new Element();
  document.createElement = () => new Element();
  document.getElementById = id => byId[id] = byId[id] || new Element();
  for (const name of ['before', 'after']) document.getElementById('data-' + name).textContent = content('data-' + name);
  new Function('document', 'window', script)(document, window);
  return {views, window, document, box, size: i => ['width', 'height'].map(name => +views[i].svg.attributes[name])};
};
const fits = (view, [w, h]) => w <= view.clientWidth && h <= view.clientHeight && (w > .95 * view.clientWidth || h > .95 * view.clientHeight);

// The whole graph is in its frame, as large as it can be, and the frame in the window: of any shape.
for (const [w, h] of [[600, 900], [300, 4000], [9000, 500], [2000, 100000], [60000, 40]]) {
  const page_of = open(w, h);
  page_of.views.forEach((view, i) => {
    assert(fits(view, page_of.size(i)), `${w} x ${h}: ${page_of.size(i)} in ${view.clientWidth} x ${view.clientHeight}`);
    assert(150 + view.clientHeight <= 900, 'the frame ends in the window');
    assert.deepStrictEqual([view.scrollLeft, view.scrollTop], [0, 0]);
    assert(Math.abs(page_of.size(i)[0] / page_of.size(i)[1] - w / h) < 1e-6 * w / h, 'the drawing keeps its shape');
  });
}
assert.deepStrictEqual(open(80, 60).size(0), [160, 120], 'a small graph is twice as large at most');

// The Summary, which is above the graphs, is shut.
assert.match(page, /<details><summary>Summary/);

// A window of another size is filled again, unless the reader has zoomed.
const resized = open(300, 4000);
resized.window.innerHeight = 600;
resized.window.send('resize');
assert(fits(resized.views[0], resized.size(0)) && 150 + resized.views[0].clientHeight <= 600);
resized.views[0].buttons[0].onclick();
const zoomed = resized.size(0);
resized.window.innerHeight = 900;
resized.window.send('resize');
assert.deepStrictEqual(resized.size(0), zoomed);
assert(fits(resized.views[1], resized.size(1)));
resized.views[0].buttons[3].onclick();
assert.deepStrictEqual(resized.size(0).map(Math.round), [300, 4000]);
resized.views[0].buttons[2].onclick();
assert(fits(resized.views[0], resized.size(0)));
for (let i = 0; i < 40; ++i) resized.views[0].buttons[1].onclick();
assert(fits(resized.views[0], resized.size(0)), 'there is nothing beyond the whole graph');

// Where letters are too small to be read, boxes and lines are drawn so that they are seen.
assert(open(2000, 100000).views[0].classes.has('far') && !open(300, 600).views[0].classes.has('far'));
assert.match(page, /\.far \.n rect, \.far \.e \{ vector-effect: non-scaling-stroke; \}/);

// What a search finds is shown so that it can be read.
const searched = open(2000, 100000), search = searched.document.getElementById('search');
search.value = JSON.parse(content('data-before'))[0].boxes[0].op;
search.send('input', {});
search.send('keydown', {key: 'Enter'});
assert.deepStrictEqual(searched.size(0).map(Math.round), [2000, 100000]);
