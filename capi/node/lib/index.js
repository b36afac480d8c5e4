// SPDX-License-Identifier: Apache-2.0
'use strict';

const {env, listSupportedBackends} = require('./env.js');
const {makeError, CODES, ...errors} = require('./errors.js');
const {InferenceSession} = require('./session.js');
const {Tensor} = require('./tensor.js');

module.exports = {InferenceSession, Tensor, env, listSupportedBackends, ...errors};
