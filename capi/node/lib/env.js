// SPDX-License-Identifier: Apache-2.0
// The process's environment: the providers there are, and how much is logged.
'use strict';

const native = require('./native.js');
const {makeError} = require('./errors.js');

const LOG_LEVELS = ['verbose', 'info', 'warning', 'error', 'fatal'];
const LOG_WORDS = ['debug', 'info', 'warning', 'error', 'off'];  // the library's

let handle = 0n;
let logLevel = 'warning';

// Made with the first use, and kept: what is loaded later shares threads and plug-ins.
function environment() {
  return handle ||= native.make(native.env.create, null);
}

function providers() {
  const rows = [];
  const row = new BigUint64Array([72n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n]);
  for (let i = 0, n = native.env.providerCount(environment()); i < n; ++i) {
    native.check(native.env.providerAt(environment(), i, row));
    const name = native.text({data: row[1], size: Number(row[2])});
    rows.push({name, word: name.replace(/ExecutionProvider$/, '').toLowerCase(), available: row[0] >> 32n !== 0n});
  }
  return rows;
}

// The execution providers that can be used here, by the names that |executionProviders| takes.
function listSupportedBackends() {
  return providers().filter(row => row.available).map(row => ({name: row.word, bundled: true}));
}

// |severity| is the index of onnxruntime-node: 0 verbose to 4 fatal.
function logWord(severity, attempt) {
  if (LOG_WORDS[severity]) return LOG_WORDS[severity];
  throw makeError('INVALID_ARGUMENT', `${attempt}: logSeverityLevel is ${severity}; it is 0 (verbose), 1 (info), ` +
                                          '2 (warning), 3 (error) or 4 (nothing)');
}

const env = {
  get versions() { return {pyflameRt: native.version}; },
  // What sessions log that are made afterwards and do not say it themselves.
  get logLevel() { return logLevel; },
  set logLevel(level) {
    if (!LOG_LEVELS.includes(level))
      throw makeError('INVALID_ARGUMENT', `setting env.logLevel: '${level}' is none of ${LOG_LEVELS.join(', ')}`);
    logLevel = level;
  },
  get debug() { return logLevel === 'verbose'; },
  set debug(on) { logLevel = on ? 'verbose' : 'warning'; },
};

const defaultSeverity = () => LOG_LEVELS.indexOf(logLevel);

module.exports = {env, environment, providers, listSupportedBackends, logWord, defaultSeverity, LOG_WORDS};
