// SPDX-License-Identifier: Apache-2.0
// onnxruntime-node's options as the library's: a handle of a session's, a struct of a run's. There is one table for each:
// an option is set, has no meaning here (said once, by name), or is refused because results or files would differ from
// what was asked for.
'use strict';

const native = require('./native.js');
const {makeError} = require('./errors.js');
const {providers, logWord, defaultSeverity, LOG_WORDS} = require('./env.js');

const SESSION = 3;  // pfrt_options_kind
const LEVELS = {disabled: 'none', basic: 'basic', extended: 'extended', layout: 'all', all: 'all'};

const warned = new Set();
function warnOnce(name, why) {
  if (warned.has(name)) return;
  warned.add(name);
  process.emitWarning(`the option '${name}' has no meaning here: ${why}`, 'PyFlameRTWarning');
}
const meaningless = why => (handle, given, name) => warnOnce(name, why);
const refused = (code, why) => (handle, given, name) => {
  throw makeError(code, `reading options: '${name}' is refused: ${why}`);
};

function expect(right, given, name, what) {
  if (!right) throw makeError('INVALID_ARGUMENT', `reading options: ${name} is ${given}; give ${what}`);
}

// A pfrt_run_desc in 64-bit words, and what it points to: it has to stay until the run is over.
class RunDesc {
  static #SIZE = 96n;
  static #NUMBERS = {timeout_ms: 2, num_threads: 3, priority: 4, memory_limit: 5};  // words
  words = new BigUint64Array(Number(RunDesc.#SIZE) / 8);
  #cancel = new Uint32Array(1);
  #tag = null;

  constructor() {
    this.words[0] = RunDesc.#SIZE;
    this.words[1] = native.address(this.#cancel);
  }

  // Stops the run.
  cancel() { Atomics.store(this.#cancel, 0, 1); }

  // Sets a member by its name.
  set(key, given) {
    if (key === 'tag') {
      this.#tag = Buffer.from(String(given), 'utf8');
      this.words[6] = this.#tag.length ? native.address(this.#tag) : 0n;
      this.words[7] = BigInt(this.#tag.length);
    } else if (key === 'log_level') {
      expect(LOG_WORDS.includes(given), given, key, `one of ${LOG_WORDS.join(', ')}`);
      this.words[0] = RunDesc.#SIZE | BigInt(LOG_WORDS.indexOf(given) + 1) << 32n;
    } else {
      const numbers = RunDesc.#NUMBERS;
      if (!Object.hasOwn(numbers, key))
        throw makeError('INVALID_ARGUMENT', `reading options: a run has no option '${key}' of the library's; it has ` +
                                                `tag, log_level, ${Object.keys(numbers).join(', ')}`);
      const number = typeof given === 'string' && given !== '' ? Number(given) : given;
      expect(Number.isSafeInteger(number) && number >= 0, given, key, 'an integer from 0 on');
      this.words[numbers[key]] = BigInt(number);
    }
  }
}

// |target| is a handle of options or a RunDesc.
function set(target, key, given) {
  if (target instanceof RunDesc) target.set(key, given);
  else native.check(native.options.setText(target, native.str(key), native.str(given)));
}

function setWord(key, words) {
  return (handle, given, name) => {
    if (!Object.hasOwn(words, given))
      throw makeError('INVALID_ARGUMENT', `reading options: ${name} is '${given}'; it is one of ` +
                                              Object.keys(words).join(', '));
    set(handle, key, words[given]);
  };
}

function setCount(key) {
  return (handle, given, name) => {
    expect(Number.isSafeInteger(given) && given >= 0, given, name, 'an integer from 0 on');
    set(handle, key, given);
  };
}

// {a: {b: 1}} is the library's option 'a.b'; what the library does not know it refuses, with the nearest there is.
function setExtra(handle, given, name, prefix = '') {
  expect(given !== null && typeof given === 'object', given, name, 'an object of the library\'s options');
  for (const [key, value] of Object.entries(given)) {
    if (value !== null && typeof value === 'object') setExtra(handle, value, name, `${prefix}${key}.`);
    else set(handle, prefix + key, value);
  }
}

const setSeverity = (handle, given) => set(handle, 'log_level', logWord(given, 'reading options'));

function setProviders(handle, list, name) {
  expect(Array.isArray(list), list, name, 'a list, as in [\'cpu\']');
  const known = providers();
  const names = list.map(entry => {
    const {name, ...own} = typeof entry === 'string' ? {name: entry} : entry;
    const row = known.find(r => r.name === name || r.word === name);
    if (!row)
      throw makeError('NOT_FOUND', `reading options: there is no execution provider '${name}'; there are ` +
                                       known.map(r => `'${r.word}'`).join(', '));
    for (const [key, value] of Object.entries(own)) {
      if (key === 'useArena') warnOnce(key, 'memory is pooled by size');
      else set(handle, `provider.${row.word}.${key}`, value);
    }
    return row.name;
  });
  if (names.length) set(handle, 'providers', names.join(','));
}

const noProfile = refused('UNSUPPORTED', 'no profile is written; `pfrt explain` prints what each step takes');

const SESSION_OPTIONS = {
  executionProviders: setProviders,
  graphOptimizationLevel: setWord('optimization_level', LEVELS),
  executionMode: setWord('execution_mode', {sequential: 'sequential', parallel: 'parallel'}),
  intraOpNumThreads: setCount('num_threads'),
  logSeverityLevel: setSeverity,
  extra: setExtra,
  preferredOutputLocation(handle, given, name) {
    const places = typeof given === 'string' ? [given] : Object.values(given);
    const other = places.find(place => place !== 'cpu');
    if (other) refused('UNSUPPORTED', `outputs are tensors on 'cpu', not '${other}'`)(handle, given, name);
  },
  interOpNumThreads: meaningless('steps that run at once share the threads of intraOpNumThreads'),
  enableCpuMemArena: meaningless('memory is pooled by size'),
  enableMemPattern: meaningless('memory is planned when dimensions are known'),
  enableGraphCapture: meaningless('plans are kept anyway'),
  freeDimensionOverrides: meaningless('a plan is made for each set of dimensions that is fed'),
  logId: meaningless('lines of the log carry no name of their session'),
  logVerbosityLevel: meaningless('logSeverityLevel alone chooses lines'),
  enableProfiling: (handle, given, name) => given && noProfile(handle, given, name),
  profileFilePrefix: (handle, given, name) => noProfile(handle, given, name),
  optimizedModelFilePath: refused('UNSUPPORTED', 'sessions write no models; use `pfrt optimize`'),
  externalData: refused('UNSUPPORTED', 'give the path of the model; files with its data are read beside it'),
};

const RUN_OPTIONS = {
  logSeverityLevel: setSeverity,
  tag: (handle, given) => set(handle, 'tag', given),
  timeoutMs: setCount('timeout_ms'),
  numThreads: setCount('num_threads'),
  extra: setExtra,
  terminate: (desc, given) => given && desc.cancel(),
  // The session listens to it while the run goes on.
  signal: (handle, given, name) => expect(given instanceof AbortSignal, given, name, 'an AbortSignal'),
  logVerbosityLevel: meaningless('logSeverityLevel alone chooses lines'),
};

function setAll(target, table, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(table, name))
      throw makeError('INVALID_ARGUMENT', `reading options: there is no '${name}'; there are ` +
                                              `${Object.keys(table).join(', ')}`);
    table[name](target, value, name);
  }
  return target;
}

// A handle of the library's options, the caller's to release.
function sessionOptions(given) {
  const handle = native.make(native.options.create, SESSION);
  try {
    return setAll(handle, SESSION_OPTIONS, {logSeverityLevel: defaultSeverity(), ...given});
  } catch (error) {
    native.options.release(handle);
    throw error;
  }
}

const runOptions = given => setAll(new RunDesc(), RUN_OPTIONS, given);

module.exports = {sessionOptions, runOptions};
