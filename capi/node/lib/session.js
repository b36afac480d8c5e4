// SPDX-License-Identifier: Apache-2.0
// A model ready to run. Runs go on beside the event loop; memory of inputs, and of outputs that the caller gives, is
// used where it is, and kept until the run is over.
'use strict';

const native = require('./native.js');
const {makeError} = require('./errors.js');
const {byNumber} = require('./types.js');
const {environment} = require('./env.js');
const {sessionOptions, runOptions} = require('./options.js');
const {Tensor, IO_WORDS} = require('./tensor.js');

const COPY = 1;         // pfrt_memory_mode
const SKIP = 1n;        // PFRT_IO_SKIP
const KIND_TENSOR = 1;  // pfrt_value_kind
const PROVIDER_FAILED = 4n;  // PFRT_PROVIDER_FAILED
const KINDS = ['value', 'tensor', 'sequence', 'map', 'optional', 'sparse tensor'];

const releaseHandle = handle => native.session.release(handle);
const forgotten = new FinalizationRegistry(releaseHandle);

// Run options that work in progress listens to. A process that exits does not wait for runs: they are cancelled.
const listening = new Set();
let plainOptions = null;  // of asynchronous runs without options of their own
function optionsForAll() {
  if (!plainOptions) {
    plainOptions = runOptions({});
    listening.add(plainOptions);
    process.on('exit', () => listening.forEach(settings => settings.cancel()));
  }
  return plainOptions;
}

function readInfo(read, session, index) {
  const info = new BigUint64Array([56n, 0n, 0n, 0n, 0n, 0n, 0n]);
  native.check(read(session, index, info));
  const words = new Int32Array(info.buffer);
  const name = native.text({data: info[2], size: Number(info[3])});
  const [kind, dtype, rank] = words.subarray(1, 4);
  const row = byNumber.get(dtype);
  const optional = words[13] !== 0;
  if (kind !== KIND_TENSOR) return {name, kind, optional, metadata: {name, isTensor: false}};
  const shape = [];
  for (let i = 0; i < rank; ++i) {
    const dim = Number(native.decode(info[4], 8 * i, 'int64_t'));
    shape.push(dim >= 0 ? dim : info[5] ? native.text(native.decode(info[5], 16 * i, native.abiString)) : '');
  }
  const metadata = {name, isTensor: true, type: row?.name ?? `type ${dtype}`, shape: Object.freeze(shape)};
  return {name, kind, optional, metadata};
}

function readAll(count, read, session) {
  return Array.from({length: count(session)}, (_, i) => readInfo(read, session, i));
}

const quoted = names => names.map(name => `'${name}'`).join(', ') || 'none';

class InferenceSession {
  #handle;
  #inputs;
  #outputs;
  #inputIndex;
  #outputIndex;
  #running = 0;
  #released = false;
  #done = null;      // resolves release() that waits for runs

  // Sessions are made by create().
  constructor(key, handle) {
    if (key !== InferenceSession.#key)
      throw makeError('INVALID_ARGUMENT', 'making a session: use await InferenceSession.create(model, options)');
    this.#handle = handle;
    this.#inputs = readAll(native.session.inputCount, native.session.inputAt, handle);
    this.#outputs = readAll(native.session.outputCount, native.session.outputAt, handle);
    this.#inputIndex = new Map(this.#inputs.map(({name}, i) => [name, i]));
    this.#outputIndex = new Map(this.#outputs.map(({name}, i) => [name, i]));
    this.inputNames = Object.freeze(this.#inputs.map(({name}) => name));
    this.outputNames = Object.freeze(this.#outputs.map(({name}) => name));
    this.inputMetadata = Object.freeze(this.#inputs.map(({metadata}) => Object.freeze(metadata)));
    this.outputMetadata = Object.freeze(this.#outputs.map(({metadata}) => Object.freeze(metadata)));
    forgotten.register(this, handle, this);
  }
  static #key = Symbol('create');

  // create(path, options), create(bytes, options), create(buffer, offset, length, options)
  static async create(source, ...rest) {
    const range = source instanceof ArrayBuffer || source instanceof SharedArrayBuffer
        ? rest.splice(0, rest.findIndex(argument => typeof argument !== 'number') >>> 0) : [];
    const [options = {}] = rest;
    if (options === null || typeof options !== 'object')
      throw makeError('INVALID_ARGUMENT', `making a session: the options are ${options}; give an object, or nothing`);
    const settings = sessionOptions(options);
    let model = 0n;
    try {
      model = await loadModel(source, range);
      const desc = new BigUint64Array([88n, model, settings, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n]);
      return new InferenceSession(this.#key, await native.makeAsync(native.session.create, environment(), desc));
    } finally {
      native.options.release(settings);
      if (model) native.model.release(model);
    }
  }

  // The providers in use, by preference.
  get providers() {
    this.#checkOpen();
    const names = [];
    const row = new BigUint64Array([48n, 0n, 0n, 0n, 0n, 0n]);
    for (let i = 0, n = native.session.providerStateCount(this.#handle); i < n; ++i) {
      native.check(native.session.providerState(this.#handle, i, row));
      if (row[0] >> 32n !== PROVIDER_FAILED) names.push(native.text({data: row[1], size: Number(row[2])}));
    }
    return names;
  }

  // run(feeds, options) or run(feeds, fetches, options): a promise of the outputs by name. |fetches| is a list of
  // names, or an object of names to null or to the tensor that the output is written to.
  async run(feeds, ...rest) {
    const run = this.#prepare(feeds, ...rest);
    try {
      run.settings ||= optionsForAll();
      if (run.own) listening.add(run.settings);
      await native.callAsync(native.session.run, ...run.arguments());
      return this.#collect(run);
    } finally {
      this.#finish(run);
    }
  }

  // As run(), but on this thread, which waits: cheaper where a run takes microseconds.
  runSync(feeds, ...rest) {
    const run = this.#prepare(feeds, ...rest);
    try {
      native.check(native.session.run(...run.arguments()));
      return this.#collect(run);
    } finally {
      this.#finish(run);
    }
  }

  // Frees the session, once its runs are over. Runs that begin afterwards are refused.
  async release() {
    if (this.#released) return this.#done;
    this.#released = true;
    forgotten.unregister(this);
    if (!this.#running) return releaseHandle(this.#handle);
    let resolve;
    this.#done = new Promise(r => resolve = r);
    this.#done.resolve = resolve;
    return this.#done;
  }

  #checkOpen() {
    if (this.#released)
      throw makeError('INVALID_ARGUMENT', 'running: the session has been released; make another with create()');
  }

  #prepare(feeds, second, third) {
    this.#checkOpen();
    if (feeds === null || typeof feeds !== 'object' || feeds instanceof Tensor)
      throw makeError('INPUT', `running: feeds are no object; give one of input names to tensors, inputs are ` +
                                   quoted(this.inputNames));
    const [fetches, options] = this.#isFetches(second) ? [this.#readFetches(second), third] : [null, third ?? second];
    const run = new Run(this.#handle, this.#inputs.length, this.#outputs.length);
    ++this.#running;
    try {
      for (const name in feeds) this.#feed(run, name, feeds[name]);
      for (let i = 0; i < this.#inputs.length; ++i) this.#leaveOut(run, i);
      for (let i = 0; i < this.#outputs.length; ++i) this.#fetch(run, i, fetches);
      if (options) run.listen(options);
      return run;
    } catch (error) {
      this.#finish(run);
      throw error;
    }
  }

  #leaveOut(run, i) {
    if (run.block[i * IO_WORDS]) return;  // fed
    const {name, optional} = this.#inputs[i];
    if (!optional)
      throw makeError('INPUT', `running: input '${name}' is not fed; inputs are ${quoted(this.inputNames)}`);
    Tensor.clear(run.block, i * IO_WORDS);
  }

  #feed(run, name, tensor) {
    const index = this.#inputIndex.get(name);
    if (index === undefined)
      throw makeError('INPUT', `running: there is no input '${name}'; inputs are ${quoted(this.inputNames)}`);
    if (!(tensor instanceof Tensor))
      throw makeError('INPUT', `running: input '${name}' is ${tensor === null ? 'null' : `a ${typeof tensor}`}; give ` +
                                   'a Tensor, as in new Tensor(\'float32\', data, dims)');
    const value = Tensor.fill(tensor, run.block, index * IO_WORDS);
    if (value) run.values.push(value);
    else run.tensors.push(tensor.data);
  }

  #fetch(run, i, fetches) {
    const at = (this.#inputs.length + i) * IO_WORDS;
    const {name, kind, metadata} = this.#outputs[i];
    const target = fetches ? fetches.get(name) : null;
    if (target) {
      if (target.type === 'string' || metadata.type === 'string')
        throw makeError('UNSUPPORTED', `running: output '${name}' is of strings, which are not written to a given ` +
                                           'tensor; fetch it with null');
      if (metadata.isTensor && metadata.type !== target.type)
        throw makeError('DTYPE_MISMATCH', `running: output '${name}' is ${metadata.type}, the tensor given for it ` +
                                              `${target.type}; give one of ${metadata.type}, or null`);
      Tensor.fill(target, run.block, at);
      run.tensors.push(target.data);
      run.fetched.push([name, i, target]);
      return;
    }
    Tensor.clear(run.block, at);
    if (target === undefined) {
      run.block[at + 1] = SKIP;
      return;
    }
    if (kind !== KIND_TENSOR)
      throw makeError('UNSUPPORTED', `running: output '${name}' is a ${KINDS[kind] ?? 'value'}, which has no form in ` +
                                         'JavaScript; name the outputs that are tensors as fetches');
    run.fetched.push([name, i, null]);
  }

  #isFetches(second) {
    if (Array.isArray(second)) return true;
    if (second === null || typeof second !== 'object') return false;
    const values = Object.values(second);
    return values.length > 0 && values.every(value => value === null || value instanceof Tensor) &&
        Object.keys(second).some(name => this.#outputIndex.has(name));
  }

  #readFetches(given) {
    const entries = Array.isArray(given) ? given.map(name => [name, null]) : Object.entries(given);
    if (!entries.length)
      throw makeError('INPUT', `running: no output is asked for; outputs are ${quoted(this.outputNames)}`);
    for (const [name] of entries)
      if (!this.#outputIndex.has(name))
        throw makeError('INPUT', `running: there is no output '${name}'; outputs are ${quoted(this.outputNames)}`);
    return new Map(entries);
  }

  #collect(run) {
    const results = {};
    for (const [name, i, target] of run.fetched) {
      const tensor = target ?? Tensor.fromValue(run.block[(this.#inputs.length + i + 1) * IO_WORDS - 1]);
      if (!tensor)
        throw makeError('UNSUPPORTED', `running: output '${name}' has an element type that JavaScript has no array ` +
                                           'for; name the other outputs as fetches');
      results[name] = tensor;
    }
    return results;
  }

  #finish(run) {
    run.end();
    --this.#running;
    if (this.#released && !this.#running) {
      releaseHandle(this.#handle);
      this.#done.resolve();
    }
  }
}

// What one run uses: the pfrt_io of inputs and outputs, in session order, and all that must stay until it is over.
class Run {
  values = [];    // of strings
  tensors = [];   // data in use
  fetched = [];   // [name, index, the caller's tensor or null]
  settings = null;
  own = false;    // whether |settings| are this run's
  #ignore = null;

  constructor(session, inputs, outputs) {
    this.session = session;
    this.block = new BigUint64Array((inputs + outputs) * IO_WORDS);
    this.inputs = inputs;
    this.outputs = outputs;
  }

  arguments() {
    const outputs = this.block.subarray(this.inputs * IO_WORDS);
    return [this.session, this.block, this.inputs, outputs, this.outputs, this.settings && this.settings.words];
  }

  listen(options) {
    if (typeof options !== 'object')
      throw makeError('INVALID_ARGUMENT', `running: the options are a ${typeof options}; give an object, or nothing`);
    this.settings = runOptions(options);
    this.own = true;
    const {signal} = options;
    if (!signal) return;
    const cancel = () => this.settings.cancel();
    if (signal.aborted) cancel();
    signal.addEventListener('abort', cancel);
    this.#ignore = () => signal.removeEventListener('abort', cancel);
  }

  end() {
    this.#ignore?.();
    this.values.forEach(native.value.release);
    for (const [, i, target] of this.fetched) {
      const value = this.block[(this.inputs + i + 1) * IO_WORDS - 1];
      if (value && !target) native.value.release(value);
    }
    if (this.own) listening.delete(this.settings);
  }
}

async function loadModel(source, range) {
  if (typeof source === 'string')
    return native.makeAsync(native.model.loadFile, environment(), native.str(source), null);
  const whole = source instanceof ArrayBuffer || source instanceof SharedArrayBuffer;
  if (!whole && !(source instanceof Uint8Array))
    throw makeError('INVALID_ARGUMENT', 'making a session: the model is neither a path nor bytes; give a string, ' +
                                            'Uint8Array or ArrayBuffer');
  const bytes = whole ? new Uint8Array(source, ...range) : source;
  return native.makeAsync(native.model.loadMemory, environment(), bytes, bytes.length, COPY, null, null, null);
}

module.exports = {InferenceSession};
