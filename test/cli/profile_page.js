// SPDX-License-Identifier: Apache-2.0
// Runs the script of a profile's page on elements that only record, and checks the drawing. Argument: the page, of 7
// runs that count on 2 threads.
'use strict';
const assert = require('assert');
const page = require('fs').readFileSync(process.argv[2], 'utf8');
const kWidth = 1000, kLeft = 150;  // of a lane's canvas

class Element {
  constructor(tag) {
    Object.assign(this, {tag, children: [], style: {}, attributes: {}, own: '', listeners: {}, drawn: []});
    Object.assign(this, {offsetWidth: 100, offsetHeight: 50, className: '', title: ''});
  }
  appendChild(child) { this.children.push(child); return child; }
  setAttribute(name, value) { this.attributes[name] = value; }
  setPointerCapture() {}
  addEventListener(kind, act) { (this.listeners[kind] = this.listeners[kind] || []).push(act); }
  // Sends an event to the element, and returns whether the page's own answer to it was prevented.
  send(kind, event) {
    let prevented = false;
    const all = {target: this, button: 0, deltaX: 0, deltaY: 0, deltaMode: 0, ...event, preventDefault: () => { prevented = true; }};
    (this.listeners[kind] || []).forEach(act => act(all));
    return prevented;
  }
  get clientWidth() { return kWidth; }
  get clientHeight() { return parseFloat(this.style.height); }
  getBoundingClientRect() {
    return {left: kLeft, width: kWidth, top: this.top, bottom: this.top + this.clientHeight};
  }
  getContext() {
    this.drawn = [];
    const canvas = this;
    return {
      setTransform() {},
      fillRect(x, y, w, h) { canvas.drawn.push({x, y, w, h, fill: this.fillStyle, alpha: this.globalAlpha}); },
      strokeRect(x, y, w, h) { canvas.drawn.push({x, y, w, h, stroke: this.strokeStyle}); },
      fillText(text, x, y) { canvas.drawn.push({text, x, y}); },
    };
  }
  set textContent(text) { this.own = String(text); this.children = []; }
  get textContent() { return this.own + this.children.map(child => child.textContent).join('\n'); }
  set innerHTML(_) { throw new Error('the script writes markup'); }
  all(matches) { return (matches(this) ? [this] : []).concat(...this.children.map(child => child.all(matches))); }
}

const style = page.match(/<style>(.*?)<\/style>/s)[1];
const [light, dark] = [...style.matchAll(/:root \{(.*?)\}/gs)].map(
  part => Object.fromEntries([...part[1].matchAll(/(--[a-z]+): (#[0-9a-f]{6})/g)].map(m => [m[1], m[2]])));
const script = page.slice(page.lastIndexOf('<script>') + '<script>'.length, page.lastIndexOf('</script>'));
const content = id => page.match(new RegExp(`<script type="application/json" id="${id}">(.*?)</script>`, 's'))[1];

// Runs the script on |data|, and returns what it made.
const open = data => {
  const byId = {}, body = new Element('body'), on_mode = [], mode = {colours: light};
  const $ = id => byId[id] = byId[id] || new Element(id);
  $('profile').own = JSON.stringify(data);
  $('roof').own = content('roof');
  let top = 0;
  const make = tag => {
    const made = new Element(tag);
    if (tag === 'canvas') made.top = top += 100;
    return made;
  };
  const document = {getElementById: $, createElement: make, createElementNS: (_, tag) => make(tag), body, documentElement: {}};
  const window = {addEventListener() {}, devicePixelRatio: 2, innerWidth: 1200, innerHeight: 800};
  new Function('document', 'window', 'getComputedStyle', 'matchMedia', 'requestAnimationFrame', script)(
    document, window, () => ({getPropertyValue: name => ' ' + mode.colours[name]}),
    () => ({addEventListener: (_, act) => on_mode.push(act)}), draw => draw());
  const frame = $('line').children.find(e => e.className === 'timeline');
  const lanes = frame ? frame.children.filter(e => e.className === 'lane') : [];
  return {
    $, frame, lanes, body,
    buttons: $('line').children.filter(e => e.className === 'tools').flatMap(e => e.all(one => one.tag === 'button')),
    canvases: lanes.map(lane => lane.children[1]),
    boxes: () => lanes.flatMap(lane => lane.children[1].drawn.filter(one => one.w !== undefined)),
    tip: body.children.find(e => e.className === 'tip'),
    turn_dark: () => { mode.colours = dark; on_mode.forEach(act => act()); },
  };
};
const clone = data => JSON.parse(JSON.stringify(data));
const data = JSON.parse(content('profile'));

// The time line comes before every table, and is drawn from the trace: a box of its kernel's colour for each step.
assert(page.indexOf('id="line"') > 0 && page.indexOf('id="line"') < page.indexOf('<table'));
const shown = open(data);
assert(data.line.threads.length >= 1 && data.steps.length > 3);
assert.strictEqual(shown.lanes.length, data.line.threads.length);
const colour_of = step => light['--' + data.families[step[4]].name];
const in_line = data.line.threads.flatMap(t => t.rows.flatMap(row => row.filter((_, i) => i % 4 === 0 && row[i + 3] === 0)));
assert.deepStrictEqual(new Set(in_line), new Set(data.steps.map((_, i) => i)), 'each step is in the line');
for (const step of data.steps)
  assert(shown.boxes().some(box => box.fill === colour_of(step)), `a box has the colour of ${step[0]}`);
for (const box of shown.boxes()) assert(box.x >= 0 && box.w > 0 && box.x + box.w <= kWidth + 1);
const family = step => data.families[step[4]].name, named = name => data.steps.filter(s => data.texts[s[2]].startsWith(name));
assert(named('conv_').length > 0 && named('conv_').every(s => family(s) === 'conv'));
assert(named('max_pool').every(s => family(s) === 'reduce') && named('gemm').every(s => family(s) === 'matmul'));

// Each lane has the name of its thread.
data.line.threads.forEach((thread, i) => {
  assert.strictEqual(shown.lanes[i].children[0].own, thread.name);
  assert.match(shown.lanes[i].children[0].textContent, /[0-9.]+ % at work/);
});

// The legend has each family that is there, with its colour; a click shows its steps alone, and a second one all.
const legend = shown.$('legend').children.filter(e => e.tag === 'button');
const families = [...new Set(data.steps.map(family))];
assert.deepStrictEqual(legend.map(b => b.children[0].style.background).sort(), families.map(f => `var(--${f})`).sort());
legend[0].onclick();
const bright = () => new Set(shown.boxes().filter(box => box.fill && box.alpha === 1).map(box => box.fill));
assert.strictEqual(bright().size, 1);
assert.strictEqual(legend[0].attributes['aria-pressed'], 'true');
legend[0].onclick();
assert.strictEqual(bright().size, new Set(data.steps.map(colour_of)).size);

// Zoom: what is seen is the place of a box that lies in the middle.
const range = view => view.$('line').children.find(e => e.className === 'tools').children.slice(-1)[0].textContent;
const whole = range(shown), right = kLeft + kWidth;
const changes = (what, act) => {
  const before = range(shown);
  act();
  assert.notStrictEqual(range(shown), before, what);
};
const resets = act => { act(); assert.strictEqual(range(shown), whole); };
const lane = shown.canvases[0], key = name => shown.frame.send('keydown', {key: name});
const wheel = event => shown.frame.send('wheel', {target: lane, clientX: kLeft + 500, ...event});
assert.strictEqual(wheel({deltaY: 100}), false, 'the page scrolls where the line cannot be farther');
changes('the wheel zooms', () => assert(wheel({deltaY: -100})));
changes('the wheel pans', () => assert(wheel({deltaX: 40})));
resets(() => key('0'));
for (const press of ['+', '=']) {
  changes(press, () => assert(key(press)));
  changes('ArrowRight', () => key('ArrowRight'));
  changes('ArrowLeft', () => key('ArrowLeft'));
  changes('-', () => key('-'));
  resets(() => key('Home'));
}
assert.strictEqual(key('x'), false);
key('+');
changes('drag', () => {
  shown.frame.send('pointerdown', {target: lane, clientX: 700, pointerId: 1});
  shown.frame.send('pointermove', {clientX: 500});
  shown.frame.send('pointerup', {clientX: 500, clientY: 0});
});
const button = text => shown.buttons.find(b => b.own === text);
resets(() => button('reset').onclick());
changes('nearer', () => button('+').onclick());
changes('later', () => button('\u2192').onclick());
changes('earlier', () => button('\u2190').onclick());
changes('farther', () => button('\u2212').onclick());
for (const b of shown.buttons) assert(b.attributes['aria-label'], 'buttons have names');
assert.strictEqual(shown.frame.tabIndex, 0);
button('reset').onclick();
// A point stays where it is while the wheel zooms on it.
const longest = data.line.threads[0].rows[0].reduce(
  (best, _, i, row) => i % 4 === 0 && row[i + 2] > row[best + 2] ? i : best, 0);
const [what, start, took] = data.line.threads[0].rows[0].slice(longest, longest + 3);
const middle = kLeft + kWidth * (start + took / 2) / data.line.ns;
for (let i = 0; i < 4; ++i) shown.frame.send('wheel', {target: lane, clientX: middle, deltaY: -200});
shown.frame.send('pointermove', {clientX: middle, clientY: lane.top + 5});
assert.strictEqual(shown.tip.hidden, false);
const title = data.line.threads[0].rows[0][longest + 3] === 2 ? data.stages[what] : data.steps[what][0];
assert.strictEqual(shown.tip.children[0].own, title);
for (let i = 0; i < 200; ++i) key('+');
for (const box of shown.boxes()) assert(box.x >= 0 && box.x + box.w <= kWidth + 1, 'nearest');
resets(() => key('0'));
shown.turn_dark();
assert(shown.boxes().some(box => box.fill === dark['--' + family(data.steps[0])]), 'the dark mode has colours of its own');

// Tables and the rest.
const rows = view => view.$('steps').children[1].children;
assert.strictEqual(rows(shown).length, data.steps.length);
assert.match(shown.$('about').textContent, /, 7 of them counted here/);
assert.match(shown.$('roofs').textContent, /was not measured/);
assert.match(shown.$('stages').textContent, /model_loading/);
assert.deepStrictEqual(shown.$('curve').children.map(path => path.attributes.class), ['working', 'results']);
// A click on a heading sorts by that column, a second one the other way round.
const names = () => rows(shown).map(row => row.children[0].own);
const click = column => shown.$('steps').children[0].children[0].children[column].children[0].onclick();
click(0);
assert.deepStrictEqual(names(), [...names()].sort());
click(0);
assert.deepStrictEqual(names(), [...names()].sort().reverse());

// No steps, one, and many.
const of_steps = (count, name = i => 'step ' + i) => {
  const made = clone(data), each = 1000;
  made.steps = Array.from({length: count}, (_, i) => [name(i), 0, i % 3, 0, i % made.families.length, 10, 10, 7, 7 * each]);
  const row = Array.from({length: count}, (_, i) => [i, i * each, each - 10, 0]).flat();
  made.line = {ns: count * each, left_out: 0, threads: count ? [{name: 'thread 1', busy_ns: count * each, rows: [row]}] : []};
  return made;
};
const none = open({...of_steps(0), memory: [], before: {ns: 0, left_out: 0, threads: []}});
assert.match(none.$('line').textContent, /nothing was recorded/);
assert.strictEqual(rows(none).length, 0);
const one = open(of_steps(1));
assert.strictEqual(one.boxes().length, 1);
assert(one.boxes()[0].w > 0.98 * kWidth);
assert.strictEqual(rows(one).length, 1);
const instant = of_steps(1);
instant.line.ns = instant.line.threads[0].rows[0][2] = 0;
assert.strictEqual(open(instant).boxes().length, 1, 'a step that took no time');
const many = open(of_steps(100000));
assert(many.boxes().length <= kWidth, `${many.boxes().length} boxes in ${kWidth} pixels`);
assert.strictEqual(rows(many).length, 200);
assert.strictEqual(many.$('more').hidden, false);
many.$('more').onclick();
assert.strictEqual(rows(many).length, 400);
for (let i = 0; i < 12; ++i) many.frame.send('keydown', {key: '+'});
const near = many.boxes();
assert(near.length > 10 && near.length < 50 && near.slice(1, -1).every(box => box.w > 10), 'a step is as wide as it takes long');
const left_out = of_steps(2);
left_out.line.left_out = 5;
assert.match(open(left_out).$('line').textContent, /5 shortest boxes are left out/);

// Names are text, whatever they hold: an element whose markup is set throws.
for (const name of ['</script><b>', '"><i>', '&lt;', 'a\nb', '', 'x'.repeat(5000), '\u202e', '__proto__']) {
  const view = open(of_steps(2, () => name));
  view.frame.send('pointermove', {clientX: kLeft + 10, clientY: view.canvases[0].top + 5});
  assert.strictEqual(view.tip.children[0].own, name);
  assert.strictEqual(rows(view)[0].children[0].own, name);
}

// Colours tell apart for readers of every kind, and from the paper. Sight is simulated after Machado, Oliveira and
// Fernandes (2009); distances are those of Oklab, times 100.
const kSights = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
  deuteranopia: [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.01182, .04294, .968881]],
  tritanopia: [[1.255528, -.076749, -.178779], [-.078411, .930809, .147602], [.004733, .691367, .3039]],
};
const times = (matrix, v) => matrix.map(row => row.reduce((sum, n, i) => sum + n * v[i], 0));
const linear = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
  .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
const oklab = rgb => times([[.2104542553, .793617785, -.0040720468], [1.9779984951, -2.428592205, .4505937099],
  [.0259040371, .7827717662, -.808675766]], times([[.4122214708, .5363325363, .0514459929],
  [.2119034982, .6806995451, .1073969566], [.0883024619, .2817188376, .6299787005]], rgb).map(Math.cbrt));
const luminance = hex => times([[.2126, .7152, .0722]], linear(hex))[0];
const contrast = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
for (const [mode, colours] of [['light', light], ['dark', dark]]) {
  const all = data.families.map(f => [f.name, colours['--' + f.name]]);
  for (const [name, hex] of all) {
    assert(hex, `${mode}: ${name} has a colour`);
    const against = contrast(luminance(hex), luminance(colours['--paper']));
    assert(against >= 3, `${mode}: ${name} has a contrast of ${against.toFixed(2)} to the paper`);
  }
  for (const [sight, matrix] of Object.entries(kSights)) {
    const seen = all.map(([name, hex]) => [name, oklab(times(matrix, linear(hex)).map(c => Math.min(1, Math.max(0, c))))]);
    seen.forEach(([a, x], i) => seen.slice(i + 1).forEach(([b, y]) => {
      const apart = 100 * Math.hypot(...x.map((c, k) => c - y[k]));
      assert(apart >= 9, `${mode}, ${sight}: ${a} and ${b} are ${apart.toFixed(1)} apart`);
    }));
  }
}
