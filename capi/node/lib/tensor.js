// SPDX-License-Identifier: Apache-2.0
// A dense tensor over an array of JavaScript's. It is a view: whoever writes to the array writes to the tensor.
'use strict';

const {inspect} = require('node:util');

const native = require('./native.js');
const {makeError} = require('./errors.js');
const {STRING, byName, byNumber, byArray} = require('./types.js');

const IO_WORDS = 13;            // pfrt_io in 64-bit words
const IO_SIZE = 104n;
const TENSOR_SIZE = 80n;
const SHOWN = 8;  // elements that console.log prints

function describe(data) {
  return data === null || typeof data !== 'object' ? typeof data : data.constructor?.name ?? 'an object';
}

// The number that 16 bits of a half-precision one stand for.
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

function inferType(data) {
  if (Array.isArray(data)) {
    const kind = typeof data[0];
    if (kind === 'string' || kind === 'boolean') return byName.get(kind === 'string' ? 'string' : 'bool');
    throw makeError('DTYPE_MISMATCH', `making a tensor: an array of ${data.length ? kind : 'nothing'} does not say ` +
                                          'its type; give it first, as in new Tensor(\'float32\', data, dims)');
  }
  if (data instanceof Uint8ClampedArray) return byName.get('uint8');
  for (const [array, row] of byArray)
    if (data instanceof array) return row;
  throw makeError('DTYPE_MISMATCH', `making a tensor: ${describe(data)} is no data; give a typed array, string[] or ` +
                                        'boolean[]');
}

function convert(row, data) {
  if (row.number === STRING) {
    if (Array.isArray(data) && data.every(text => typeof text === 'string')) return data;
    throw makeError('DTYPE_MISMATCH', `making a tensor of string: the data are ${describe(data)}; give string[]`);
  }
  if (data instanceof row.array) return data;
  if (data instanceof Uint8ClampedArray && row.name === 'uint8')
    return new Uint8Array(data.buffer, data.byteOffset, data.length);
  if (row.name === 'float16' && data?.constructor?.name === 'Float16Array')
    return new Uint16Array(data.buffer, data.byteOffset, data.length);
  if (Array.isArray(data) && row.name !== 'float16') {
    const big = row.name === 'int64' || row.name === 'uint64';
    try {
      return row.array.from(data, big ? BigInt : undefined);
    } catch (error) {
      throw makeError('DTYPE_MISMATCH', `making a tensor of ${row.name}: ${error.message}`);
    }
  }
  throw makeError('DTYPE_MISMATCH', `making a tensor of ${row.name}: the data are ${describe(data)}; give ` +
                                        `${row.array.name}, or leave the type out to have it taken from the data`);
}

function checkDims(dims, length) {
  if (dims === undefined) return [length];
  if (!Array.isArray(dims))
    throw makeError('SHAPE_MISMATCH', `making a tensor: dims are ${describe(dims)}; give an array of integers`);
  let size = 1;
  for (const dim of dims) {
    if (!Number.isSafeInteger(dim) || dim < 0)
      throw makeError('SHAPE_MISMATCH', `making a tensor: dims [${dims}] have ${dim}; each is an integer from 0 on`);
    size *= dim;
  }
  if (size !== length)
    throw makeError('SHAPE_MISMATCH', `making a tensor: dims [${dims}] are ${size} elements, the data have ${length}`);
  return [...dims];
}

class Tensor {
  #row;
  #data;
  #dims;
  #io = null;       // a pfrt_io that points to the data and to |#nativeDims|
  #nativeDims = null;

  // new Tensor(type, data, dims?) or new Tensor(data, dims?); |data| is not copied but for plain arrays of numbers.
  constructor(first, second, third) {
    const typed = typeof first === 'string';
    const [data, dims] = typed ? [second, third] : [first, second];
    this.#row = typed ? byName.get(first) : inferType(data);
    if (!this.#row)
      throw makeError('DTYPE_MISMATCH', `making a tensor: there is no type '${first}'; types are ` +
                                            [...byName.keys()].join(', '));
    this.#data = convert(this.#row, data);
    if (this.#data.buffer?.resizable)
      throw makeError('INVALID_ARGUMENT', 'making a tensor: its memory is a resizable ArrayBuffer, which may go ' +
                                              'during a run; copy it with slice()');
    this.#dims = Object.freeze(checkDims(dims, this.#data.length));
  }

  get type() { return this.#row.name; }
  get dims() { return this.#dims; }
  get size() { return this.#dims.reduce((size, dim) => size * dim, 1); }
  get location() { return this.#data ? 'cpu' : 'none'; }
  get data() {
    if (this.#data) return this.#data;
    throw makeError('INVALID_ARGUMENT', 'reading a tensor: it has been disposed');
  }

  // As |data|; with |release| the tensor gives its data away and is disposed.
  async getData(release = false) {
    const data = this.data;
    if (release) this.dispose();
    return data;
  }

  // Another tensor over the same data.
  reshape(dims) { return new Tensor(this.type, this.data, dims); }

  dispose() { this.#data = this.#io = null; }

  // What console.log prints: Tensor float32 [2, 3]: 1, 2, 3, ... 3 more
  [inspect.custom](depth, options) {
    const head = `${this.constructor.name} ${options.stylize(this.type, 'special')} ` +
        inspect([...this.#dims], {...options, breakLength: Infinity});
    if (!this.#data) return `${head}: disposed`;
    if (depth !== null && depth < 0) return head;
    const shown = Math.min(this.size, options.maxArrayLength ?? Infinity, SHOWN);
    const words = Array.from({length: shown}, (_, i) => inspect(this.#element(i), options));
    if (this.size > shown) words.push(`... ${this.size - shown} more`);
    return words.length ? `${head}: ${words.join(', ')}` : head;
  }

  #element(i) {
    const element = this.#data[i];
    if (this.type === 'bool') return element !== 0;
    // As many digits as the type has: 0.1, not 0.10000000149011612.
    if (this.type === 'float32') return Number(element.toPrecision(7));
    return this.type === 'float16' ? Number(fromHalf(element).toPrecision(4)) : element;
  }

  // Writes the pfrt_io of this tensor to word |at| of |block|. Strings become a value, which is returned; it is the
  // caller's to release, after the run.
  static fill(tensor, block, at) {
    const data = tensor.data;
    if (tensor.#row.number === STRING) {
      Tensor.clear(block, at);
      block[at + IO_WORDS - 1] = stringValue(data, tensor.#dims);
      return block[at + IO_WORDS - 1];
    }
    if (!tensor.#io) tensor.#io = tensor.#describe(data);
    else if (data.byteLength !== Number(tensor.#io[6])) throw detached(tensor);
    block.set(tensor.#io, at);
    return 0n;
  }

  // A pfrt_io of nothing: an input that is not fed, or an output to be allocated.
  static clear(block, at) {
    block[at] = IO_SIZE;
    block[at + 2] = TENSOR_SIZE;
  }

  #describe(data) {
    if (data.length !== this.size) throw detached(this);
    this.#nativeDims = BigInt64Array.from(this.#dims, BigInt);
    return new BigUint64Array([
      IO_SIZE, 0n, TENSOR_SIZE | BigInt(this.#row.number) << 32n, BigInt(this.#dims.length), native.address(data), 0n,
      BigInt(data.byteLength), native.address(this.#nativeDims), 0n, 0n, 0n, 0n, 0n,
    ]);
  }

  // A copy of what a pfrt_value holds; null when it has a type without an array in JavaScript.
  static fromValue(value) {
    native.check(native.value.tensor(value, view));
    const row = byNumber.get(Number(view[0] >> 32n));
    if (!row) return null;
    const dims = new BigInt64Array(Number(view[1] & 0xffffffffn));
    if (dims.length) native.copyBytes(dims, view[5], dims.byteLength);
    const shape = Array.from(dims, Number);
    const count = shape.reduce((size, dim) => size * dim, 1);
    if (row.number === STRING) return new Tensor('string', readStrings(value, count), shape);
    const data = new row.array(count);
    if (count) native.copyBytes(data, view[2], data.byteLength);
    return new Tensor(row.name, data, shape);
  }
}

const view = new BigUint64Array(Number(TENSOR_SIZE) / 8).fill(TENSOR_SIZE, 0, 1);

function detached(tensor) {
  return makeError('INVALID_ARGUMENT', `running: a tensor of dims [${tensor.dims}] has lost its data, whose ` +
                                           'ArrayBuffer was transferred elsewhere; transfer a copy');
}

// Texts cross over in one call, with a byte of 0 between two; where one has such a byte within, with their ends.
function stringValue(data, dims) {
  const joined = data.join('\0');
  let bytes = Buffer.from(joined, 'utf8'), ends = null;
  if (data.length && joined.split('\0').length !== data.length) {
    const parts = data.map((text) => Buffer.from(text, 'utf8'));
    let end = 0n;
    ends = BigUint64Array.from(parts, (part) => end += BigInt(part.length));
    bytes = Buffer.concat(parts);
  }
  const shape = BigInt64Array.from(dims, BigInt);
  return native.make(native.value.createStrings, shape, dims.length, bytes.length ? bytes : null, bytes.length, ends);
}

function readStrings(value, count) {
  const read = (text, ends) => native.check(native.value.strings(value, text, text ? text.length : 0, size, ends));
  const size = new BigUint64Array(1);
  read(null, null);
  const bytes = Buffer.alloc(Number(size[0]));
  if (!bytes.length) return count ? [''] : [];
  read(bytes, null);
  const texts = bytes.toString('utf8').split('\0');
  if (texts.length === count) return texts;
  const ends = new BigUint64Array(count);
  read(bytes, ends);
  return Array.from(ends, (end, i) => bytes.toString('utf8', i ? Number(ends[i - 1]) : 0, Number(end)));
}

module.exports = {Tensor, IO_WORDS};
