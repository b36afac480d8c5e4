// SPDX-License-Identifier: Apache-2.0
// onnxruntime-node's options as the library's. One table a kind: each option is set, has no meaning here (said once, by
// name), or is refused because results or files would differ from what was asked for.
'use strict';

const native = require('./native.js');
const {makeError} = require('./errors.js');
const {providers, logWord, defaultSeverity} = require('./env.js');

const SESSION = 3, RUN = 4;  // pfrt_options_kind
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

function set(handle, key, given) {
  native.check(native.options.setText(handle, native.str(key), native.str(given)));
}

function expect(right, given, name, what) {
  if (!right) throw makeError('INVALID_ARGUMENT', `reading options: ${name} is ${given}; give ${what}`);
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
  terminate: (handle, given) => given && native.options.cancel(handle),
  // The session listens to it while the run goes on.
  signal: (handle, given, name) => expect(given instanceof AbortSignal, given, name, 'an AbortSignal'),
  logVerbosityLevel: meaningless('logSeverityLevel alone chooses lines'),
};

// A handle of the library's options, the caller's to release.
function makeOptions(kind, table, given) {
  const handle = native.make(native.options.create, kind);
  try {
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined) continue;
      if (!Object.hasOwn(table, name))
        throw makeError('INVALID_ARGUMENT', `reading options: there is no '${name}'; there are ` +
                                                `${Object.keys(table).join(', ')}`);
      table[name](handle, value, name);
    }
  } catch (error) {
    native.options.release(handle);
    throw error;
  }
  return handle;
}

const sessionOptions = given =>
  makeOptions(SESSION, SESSION_OPTIONS, {logSeverityLevel: defaultSeverity(), ...given});
const runOptions = given => makeOptions(RUN, RUN_OPTIONS, given);

module.exports = {sessionOptions, runOptions};
