// SPDX-License-Identifier: Apache-2.0
// Runs the script of a profile's page on elements that only record, and checks the drawing. Argument: the page.
'use strict';
const assert = require('assert');
const page = require('fs').readFileSync(process.argv[2], 'utf8');

class Element {
  constructor() { Object.assign(this, {children: [], style: {}, attributes: {}, own: ''}); }
  appendChild(child) { this.children.push(child); return child; }
  setAttribute(name, value) { this.attributes[name] = value; }
  set textContent(text) { this.own = String(text); this.children = []; }
  get textContent() { return this.own + this.children.map(child => child.textContent).join('\n'); }
  set innerHTML(_) { throw new Error('the script writes markup'); }
}
const byId = {};
const element = id => byId[id] = byId[id] || new Element();
for (const id of ['trace', 'roof'])
  element(id).own = page.match(new RegExp(`<script type="application/json" id="${id}">(.*?)</script>`, 's'))[1];
const document = {getElementById: element, createElement: () => new Element(), createElementNS: () => new Element()};
const script = page.slice(page.lastIndexOf('<script>') + '<script>'.length, page.lastIndexOf('</script>'));
new Function('document', script)(document);

const trace = JSON.parse(element('trace').own);
const steps = new Set(trace.traceEvents.filter(e => e.cat === 'Node').map(e => e.name));
const rows = () => element('steps').children[1].children;
assert.strictEqual(rows().length, steps.size);
assert.match(element('about').textContent, /, 7 of them counted here/);
assert.match(element('roofs').textContent, /was not measured/);
assert.match(element('stages').textContent, /model_loading/);
const boxes = element('line').children.flatMap(lane => lane.children).filter(box => box.className === 'Node');
assert.strictEqual(boxes.length, steps.size);
for (const box of boxes) assert(parseFloat(box.style.left) >= 0 && parseFloat(box.style.width) <= 100);
assert.deepStrictEqual(element('curve').children.map(path => path.attributes.class), ['working', 'results']);

// A click on a heading sorts by that column, a second one the other way round.
const names = () => rows().map(row => row.children[0].own);
const click = column => element('steps').children[0].children[0].children[column].children[0].onclick();
click(0);
assert.deepStrictEqual(names(), [...names()].sort());
click(0);
assert.deepStrictEqual(names(), [...names()].sort().reverse());
