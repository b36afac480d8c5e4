// SPDX-License-Identifier: Apache-2.0
// The C ABI as JavaScript functions: finds libpyflamert_c.so, decodes its tables, and turns statuses into exceptions.
// Pointers are bigints. Structs that are filled every run are laid out by hand, in 64-bit words.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const koffi = require('koffi');
const {makeError} = require('./errors.js');

const ABI = 0x20000;  // 2.0

// Loading a model parses it on the thread of the call. Refused once anything else has used koffi's calls.
try {
  koffi.config({async_stack_size: 1 << 20});
} catch {
  // The program's own configuration stays.
}

const host = koffi.load(null);
const copyBytes = host.func('memcpy', 'void*', ['void*', 'void*', 'size_t']);
const PfrtString = koffi.struct({data: 'void*', size: 'size_t'});

function findLibrary() {
  const given = process.env.PYFLAME_RT_LIBRARY;
  if (given) {
    if (fs.existsSync(given)) return given;
    throw makeError('NOT_FOUND', `opening the library: PYFLAME_RT_LIBRARY names '${given}', which does not exist; ` +
                                     'set it to the path of libpyflamert_c.so');
  }
  const own = ['native', '.'].map((folder) => path.join(__dirname, '..', folder, 'libpyflamert_c.so'));
  return own.find((file) => fs.existsSync(file)) || 'libpyflamert_c.so';
}

// Threads of the library outlive koffi, which unloads what it has loaded when the process ends.
function keepLoaded(file) {
  const NOW = 2, NODELETE = 0x1000;
  host.func('dlopen', 'void*', ['str', 'int'])(file, NOW | NODELETE);
}

function openLibrary() {
  const file = findLibrary();
  try {
    const library = koffi.load(file);
    keepLoaded(file);
    return library;
  } catch (error) {
    throw makeError('NOT_FOUND', `opening the library: ${error.message}; set PYFLAME_RT_LIBRARY to the path of ` +
                                     'libpyflamert_c.so, or put its folder on the loader\'s path');
  }
}

const library = openLibrary();
const info = new BigUint64Array([40n, 0n, 0n, 0n, 0n]);
const table = library.func('pfrt_get_api', 'void*', ['uint32_t', 'void*'])(ABI, info);
if (!table) throw makeError('UNSUPPORTED', `opening the library: ${text(koffi.decode(info, 24, PfrtString))}`);

function text(string) {
  return string.size ? koffi.decode.string(string.data, string.size) : '';
}

// A pfrt_string argument. |koffi| keeps the buffer for the call.
function str(value) {
  const bytes = Buffer.from(String(value), 'utf8');
  return {data: bytes.length ? bytes : null, size: bytes.length};
}

// area(index, {name: [slot, result, arguments]}): functions of one noun; slots count from 0 after the table's head.
function area(index, slots) {
  const pointers = koffi.decode(table, 8 + 8 * index, 'void*');
  const functions = {};
  for (const [name, [slot, result, ...args]] of Object.entries(slots))
    functions[name] = koffi.decode(koffi.decode(pointers, 8 + 8 * slot, 'void*'), koffi.proto(result, args));
  return functions;
}

const P = 'void*', N = 'size_t', U32 = 'uint32_t';
const status = area(0, {
  code: [0, U32, P], message: [1, PfrtString, P], childCount: [2, N, P], child: [3, P, P, N], release: [4, 'void', P],
});
const options = area(1, {
  create: [0, P, U32, P], release: [2, 'void', P], setText: [8, P, P, PfrtString, PfrtString],
  setStrings: [7, P, P, PfrtString, P, N],
});
const env = area(2, {create: [0, P, P, P], providerCount: [7, N, P], providerAt: [8, P, P, N, P]});
const value = area(3, {
  release: [1, 'void', P], createTensor: [3, P, U32, P, N, P], tensor: [5, P, P, P],
  createStrings: [19, P, P, N, P, N, P, P], strings: [20, P, P, P, N, P, P],
});
const model = area(5, {
  loadFile: [0, P, P, PfrtString, P, P], loadMemory: [1, P, P, P, N, U32, P, P, P, P], release: [4, 'void', P],
});
const session = area(6, {
  create: [0, P, P, P, P], release: [2, 'void', P], inputCount: [3, N, P], inputAt: [4, P, P, N, P],
  outputCount: [5, N, P], outputAt: [6, P, P, N, P], run: [9, P, P, P, N, P, N, P],
  providerStateCount: [13, N, P], providerState: [14, P, P, N, P],
});

// The exception that a status stands for; releases it.
function toError(failed) {
  const faults = [];
  for (let i = 0; i < status.childCount(failed); ++i) faults.push(text(status.message(status.child(failed, i))));
  const error = makeError(status.code(failed), text(status.message(failed)), faults);
  status.release(failed);
  return error;
}

function check(failed) {
  if (failed) throw toError(failed);
}

// make(fn, ...args): the handle that a function gives by its last parameter.
function make(fn, ...args) {
  const out = new BigUint64Array(1);
  check(fn(...args, out));
  return out[0];
}

// A few calls at once: each may use every thread of the machine, and koffi's workers are shared with other users of it.
const IN_FLIGHT = 4;
const waiting = [];
const pending = new Set();

function start(job) {
  pending.add(job);
  job.fn.async(...job.args, (error, failed) => {
    pending.delete(job);
    if (waiting.length) start(waiting.shift());
    if (error) job.reject(error);
    else if (failed) job.reject(toError(failed));
    else job.resolve();
  });
}

// Calls |fn| off the event loop's thread; |args| are kept until it has returned.
function callAsync(fn, ...args) {
  return new Promise((resolve, reject) => {
    const job = {fn, args, resolve, reject};
    if (pending.size < IN_FLIGHT) start(job);
    else waiting.push(job);
  });
}

async function makeAsync(fn, ...args) {
  const out = new BigUint64Array(1);
  await callAsync(fn, ...args, out);
  return out[0];
}

module.exports = {
  version: text(koffi.decode(info, 8, PfrtString)), abiString: PfrtString, decode: koffi.decode, address: koffi.address,
  options, env, value, model, session, str, text, check, make, callAsync, makeAsync, copyBytes,
};
