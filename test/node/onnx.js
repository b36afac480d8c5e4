// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX models: just enough of the wire format for graphs of nodes between typed inputs and outputs.
'use strict';

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}
const field = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
const text = (number, string) => field(number, Buffer.from(string));
const integer = (number, value) => Buffer.concat([varint(number * 8), varint(value)]);
const message = (...fields) => Buffer.concat(fields);

// [name, element type, [dims: numbers or names]]
function valueInfo([name, type, dims]) {
  const shape = dims.map(dim => field(1, typeof dim === 'number' ? integer(1, dim) : text(2, dim)));
  return message(text(1, name), field(2, field(1, message(integer(1, type), field(2, message(...shape))))));
}

// node(['Add', ['a', 'b'], ['c'], {integer attributes}])
function node([op, inputs, outputs, attributes = {}]) {
  return message(...inputs.map(name => text(1, name)), ...outputs.map(name => text(2, name)), text(4, op),
                 ...Object.entries(attributes).map(
                     ([name, value]) => field(5, message(text(1, name), integer(3, value), integer(20, 2)))));
}

// [name, [float32 values]]
const initializer = ([name, values]) => message(integer(1, values.length), integer(2, 1), text(8, name),
                                                field(9, Buffer.from(Float32Array.from(values).buffer)));

function model({nodes, inputs, outputs, initializers = []}) {
  const graph = message(...nodes.map(n => field(1, node(n))), text(2, 'g'),
                        ...initializers.map(i => field(5, initializer(i))),
                        ...inputs.map(v => field(11, valueInfo(v))), ...outputs.map(v => field(12, valueInfo(v))));
  return message(integer(1, 8), field(7, graph), field(8, integer(2, 17)));
}

module.exports = {model};
