// SPDX-License-Identifier: Apache-2.0
'use strict';

const {test} = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {spawnSync} = require('node:child_process');
const {InferenceSession, Tensor, env, listSupportedBackends, ...errors} = require('pyflame-rt');
const {model} = require('./onnx.js');

const DIGITS = path.join(process.env.PYFLAME_RT_SOURCE, 'samples', 'digits', 'digits.onnx');
const unary = (op, from, to = from, attributes) => model({
  nodes: [[op, ['x'], ['y'], attributes]], inputs: [['x', from, ['n']]], outputs: [['y', to, ['n']]]});
const add = model({
  nodes: [['Add', ['a', 'b'], ['s']], ['Mul', ['s', 'b'], ['p']], ['Neg', ['p'], ['q']]],
  inputs: [['a', 1, ['n', 2]], ['b', 1, ['n', 2]]], outputs: [['q', 1, ['n', 2]], ['s', 1, ['n', 2]]]});
const pair = () => ({a: new Tensor('float32', [1, 2, 3, 4], [2, 2]), b: new Tensor('float32', [1, 1, 2, 2], [2, 2])});

test('tensors take their type from the data, or say it', () => {
  assert.equal(new Tensor(new Int16Array(3)).type, 'int16');
  assert.deepEqual(new Tensor(new Int16Array(3)).dims, [3]);
  assert.equal(new Tensor(new Uint16Array(1)).type, 'uint16');
  assert.equal(new Tensor('float16', new Uint16Array(1)).type, 'float16');
  assert.equal(new Tensor(['a', 'b'], [2, 1]).type, 'string');
  assert.deepEqual(new Tensor([true, false]).data, Uint8Array.of(1, 0));
  assert.deepEqual(new Tensor('int64', [1, -2]).data, BigInt64Array.of(1n, -2n));
  const data = new Float32Array(6);
  const tensor = new Tensor(data, [2, 3]);
  assert.equal(tensor.data, data);
  assert.equal(tensor.reshape([3, 2]).data, data);
  assert.equal(tensor.size, 6);
  assert.equal(new Tensor(new Uint8Array(1), []).size, 1);
});

test('console.log of a tensor says type, shape and first values', () => {
  const {inspect} = require('node:util');
  const print = (tensor, options) => inspect(tensor, {colors: false, ...options});
  assert.equal(print(new Tensor(Float32Array.of(1.5, -2, 0, 4, 5, 6), [2, 3])),
               'Tensor float32 [ 2, 3 ]: 1.5, -2, 0, 4, 5, 6');
  assert.equal(print(new Tensor(new Int8Array(1000), [10, 100])),
               'Tensor int8 [ 10, 100 ]: 0, 0, 0, 0, 0, 0, 0, 0, ... 992 more');
  assert.equal(print(new Tensor('int64', [1, -2])), 'Tensor int64 [ 2 ]: 1n, -2n');
  assert.equal(print(new Tensor(['a', 'b'])), "Tensor string [ 2 ]: 'a', 'b'");
  assert.equal(print(new Tensor([true, false])), 'Tensor bool [ 2 ]: true, false');
  assert.equal(print(new Tensor('float16', Uint16Array.of(0x3c00, 0xc000, 1, 0x7c00, 0x7e00))),
               'Tensor float16 [ 5 ]: 1, -2, 5.96e-8, Infinity, NaN');
  assert.equal(print(new Tensor(Float32Array.of(0.1, NaN))), 'Tensor float32 [ 2 ]: 0.1, NaN');
  assert.equal(print(new Tensor(new Uint8Array(1), [])), 'Tensor uint8 []: 0');
  assert.equal(print(new Tensor(new Uint8Array(0), [0, 4])), 'Tensor uint8 [ 0, 4 ]');
  assert.equal(print({y: new Tensor(Uint8Array.of(7))}), '{ y: Tensor uint8 [ 1 ]: 7 }');
  assert.equal(print([[[new Tensor(Uint8Array.of(7))]]], {depth: 1}), '[ [ [Array] ] ]');
  assert.equal(print(new Tensor(Uint8Array.of(7, 8)), {maxArrayLength: 1}), 'Tensor uint8 [ 2 ]: 7, ... 1 more');
  const gone = new Tensor(new Uint8Array(3));
  gone.dispose();
  assert.equal(print(gone), 'Tensor uint8 [ 3 ]: disposed');
});

test('tensors that make no sense are refused', async () => {
  assert.throws(() => new Tensor(new Float32Array(5), [2, 3]), /\[2,3\] are 6 elements, the data have 5/);
  assert.throws(() => new Tensor('float32', new Float64Array(1)), errors.DTypeMismatchError);
  assert.throws(() => new Tensor('complex64', []), /there is no type 'complex64'/);
  assert.throws(() => new Tensor([1, 2]), /give it first/);
  assert.throws(() => new Tensor(new Int8Array(1), [-1]), errors.ShapeMismatchError);
  const tensor = new Tensor(new Int8Array(1));
  assert.equal((await tensor.getData(true)).length, 1);
  assert.throws(() => tensor.data, /disposed/);
});

test('a session describes itself and computes', async () => {
  const session = await InferenceSession.create(add);
  assert.deepEqual(session.inputNames, ['a', 'b']);
  assert.deepEqual(session.outputNames, ['q', 's']);
  assert.deepEqual(session.inputMetadata[0], {name: 'a', isTensor: true, type: 'float32', shape: ['n', 2]});
  const results = await session.run(pair());
  assert.deepEqual(results.q.data, Float32Array.of(-2, -3, -10, -12));
  assert.deepEqual(results.s.dims, [2, 2]);
  assert.deepEqual(session.runSync(pair()).q.data, results.q.data);
  assert.deepEqual(Object.keys(await session.run(pair(), ['s'])), ['s']);
  const target = new Tensor(new Float32Array(4), [2, 2]);
  const fetched = await session.run(pair(), {q: target, s: null});
  assert.equal(fetched.q, target);
  assert.deepEqual(target.data, results.q.data);
  await session.release();
  await assert.rejects(session.run(pair()), /has been released/);
});

test('a tensor is a view: what is written to its array is what the next run sees', async () => {
  const session = await InferenceSession.create(add);
  const feeds = pair();
  session.runSync(feeds);
  feeds.a.data[0] = 9;
  assert.equal(session.runSync(feeds).s.data[0], 10);
  await session.release();
});

for (const [type, number, values] of [
  ['float32', 1, Float32Array.of(1.5, -2)], ['uint8', 2, Uint8Array.of(0, 255)], ['int8', 3, Int8Array.of(-128, 127)],
  ['uint16', 4, Uint16Array.of(0, 65535)], ['int16', 5, Int16Array.of(-32768, 1)], ['int32', 6, Int32Array.of(-1, 7)],
  ['int64', 7, BigInt64Array.of(-(2n ** 63n), 2n ** 62n)], ['string', 8, ['é', '']], ['bool', 9, Uint8Array.of(1, 0)],
  ['float16', 10, Uint16Array.of(0x3c00, 0x7bff)], ['float64', 11, Float64Array.of(1e300, -0)],
  ['uint32', 12, Uint32Array.of(0, 4294967295)], ['uint64', 13, BigUint64Array.of(0n, 2n ** 64n - 1n)],
]) {
  test(`elements of ${type} come and go`, async () => {
    const session = await InferenceSession.create(unary('Identity', number));
    const {y} = await session.run({x: new Tensor(type, values, [2])});
    assert.equal(y.type, type);
    assert.deepEqual(y.data, values);
    const empty = await session.run({x: new Tensor(type, values.slice(0, 0), [0])});
    assert.deepEqual(empty.y.dims, [0]);
    await session.release();
  });
}

test('texts of any length and with any character come and go', async () => {
  const session = await InferenceSession.create(unary('Identity', 8));
  for (const texts of [[''], ['', ''], ['\0'], ['a\0b', '', '\0\0', 'é'], Array.from({length: 600}, (_, i) => `w ${i}`),
    ['x'.repeat(100000), '日本', '\u{1f600}']]) {
    const {y} = await session.run({x: new Tensor('string', texts, [texts.length])});
    assert.deepEqual(y.data, texts);
  }
  await session.release();
});

test('types are converted by the model, not by the way', async () => {
  const session = await InferenceSession.create(unary('Cast', 1, 7, {to: 7}));
  assert.deepEqual((await session.run({x: new Tensor(Float32Array.of(2.9, -2.9))})).y.data, BigInt64Array.of(2n, -2n));
});

test('an input with an initializer may be left out', async () => {
  const session = await InferenceSession.create(model({
    nodes: [['Add', ['x', 'c'], ['y']]], inputs: [['c', 1, [2]], ['x', 1, [2]]], outputs: [['y', 1, [2]]],
    initializers: [['c', [10, 20]]]}));
  const x = new Tensor(Float32Array.of(1, 2));
  assert.deepEqual((await session.run({x})).y.data, Float32Array.of(11, 22));
  assert.deepEqual((await session.run({x, c: x})).y.data, Float32Array.of(2, 4));
});

test('wrong feeds, fetches and models say what to do', async () => {
  const session = await InferenceSession.create(add);
  const {a, b} = pair();
  await assert.rejects(session.run({a}), {name: 'InputError', code: 'INPUT', message: /'b' is not fed/});
  await assert.rejects(session.run({a, b, c: a}), /there is no input 'c'; inputs are 'a', 'b'/);
  await assert.rejects(session.run({a, b: [1]}), /give a Tensor/);
  await assert.rejects(session.run({a, b}, ['z']), /there is no output 'z'; outputs are 'q', 's'/);
  await assert.rejects(session.run({a, b}, []), /no output is asked for/);
  await assert.rejects(session.run({a, b: new Tensor('float64', [1, 1, 1, 1], [2, 2])}),
                       {name: 'DTypeMismatchError', message: /'b' expects float32, got float64/});
  await assert.rejects(session.run({a, b: b.reshape([4])}), {name: 'ShapeMismatchError', message: /\[4\]/});
  await assert.rejects(session.run({a, b}, {q: new Tensor(new Int32Array(4), [2, 2])}), errors.DTypeMismatchError);
  await assert.rejects(session.run({a, b}, {q: new Tensor(new Float32Array(2), [1, 2])}), errors.PyFlameRTError);
  await assert.rejects(InferenceSession.create('/no/such.onnx'), {code: 'NOT_FOUND', message: /such\.onnx/});
  await assert.rejects(InferenceSession.create(new Uint8Array(9)), errors.UnsupportedFormatError);
  await assert.rejects(InferenceSession.create(7), /neither a path nor bytes/);
  assert.throws(() => new InferenceSession(), /use await InferenceSession.create/);
  assert.deepEqual((await session.run({a, b})).s.data, Float32Array.of(2, 3, 5, 6));
});

test('memory that was transferred away is an error', async () => {
  const session = await InferenceSession.create(add);
  const feeds = pair();
  await session.run(feeds);
  structuredClone(feeds.a.data, {transfer: [feeds.a.data.buffer]});
  await assert.rejects(session.run(feeds), /transferred/);
});

test('options are set, warned about once, or refused', async () => {
  const warnings = [];
  const listen = warning => warnings.push(warning.message);
  process.on('warning', listen);
  const options = {
    executionProviders: ['cpu'], graphOptimizationLevel: 'all', intraOpNumThreads: 1, executionMode: 'parallel',
    logSeverityLevel: 3, logId: 'x', extra: {precision: 'ieee'}};
  for (let i = 0; i < 2; ++i) {
    const session = await InferenceSession.create(add, options);
    assert.deepEqual(session.providers, ['CPUExecutionProvider']);
    assert.equal((await session.run(pair(), {tag: 't', timeoutMs: 60000})).s.data[0], 2);
    assert.equal(session.runSync(pair(), {extra: {timeout_ms: '60000', priority: 1, tag: ''}}).s.data[0], 2);
    assert.throws(() => session.runSync(pair(), {extra: {timeout: 1}}), /no option 'timeout' .* timeout_ms/);
    for (const wrong of [-1, 0.5, 'x', '', null, true])
      assert.throws(() => session.runSync(pair(), {extra: {priority: wrong}}), /priority is .*from 0 on/);
    assert.throws(() => session.runSync(pair(), {extra: {memory_limit: 1}}), {code: 'OUT_OF_MEMORY'});
  }
  await new Promise(setImmediate);
  process.off('warning', listen);
  assert.equal(warnings.filter(message => message.includes('\'logId\'')).length, 1);
  const refused = (given, expected) => assert.rejects(InferenceSession.create(add, given), expected);
  await refused({executionProviders: ['cuda']}, /no execution provider 'cuda'; there are .*'cpu'/);
  await refused({graphOptimizationLevel: 'most'}, /disabled, basic, extended/);
  await refused({intraOpNumThreads: -1}, /from 0 on/);
  await refused({optimizedModelFilePath: 'x.onnx'}, {code: 'UNSUPPORTED'});
  await refused({externalData: []}, {code: 'UNSUPPORTED'});
  await refused({enableProfiling: true}, {code: 'UNSUPPORTED'});
  await refused({preferredOutputLocation: 'gpu-buffer'}, /not 'gpu-buffer'/);
  await refused({intraOpThreads: 1}, /there is no 'intraOpThreads'/);
  await refused({executionProviders: 'cpu'}, /give a list/);
  await refused({executionProviders: [{name: 'cpu', nonsense: 1}]}, /no option 'nonsense'/);
  await refused({extra: {session: {nonsense: '1'}}}, errors.InputError);
});

test('runs are cancelled by option and by signal', async () => {
  const session = await InferenceSession.create(add);
  await assert.rejects(session.run(pair(), {terminate: true}), {name: 'BackendError', code: 'CANCELLED'});
  await assert.rejects(session.run(pair(), {signal: 5}), /give an AbortSignal/);
  await assert.rejects(session.run(pair(), {signal: AbortSignal.abort()}), {code: 'CANCELLED'});
  assert.equal((await session.run(pair(), {signal: new AbortController().signal})).s.data[0], 2);
});

test('promises in parallel keep their own results, and release waits for them', async () => {
  const session = await InferenceSession.create(add);
  const runs = Array.from({length: 300}, (_, i) => session.run({
    a: new Tensor(new Float32Array(2).fill(i), [1, 2]), b: new Tensor(new Float32Array(2).fill(1), [1, 2])}));
  const released = session.release();
  const results = await Promise.all(runs);
  results.forEach(({s}, i) => assert.equal(s.data[1], i + 1));
  await released;
  await session.release();
});

test('many sessions open and close', async () => {
  for (let i = 0; i < 100; ++i) {
    const session = await InferenceSession.create(add);
    assert.equal(session.runSync(pair()).q.data[0], -2);
    await session.release();
  }
});

test('the environment answers', () => {
  assert.ok(listSupportedBackends().some(({name}) => name === 'cpu'));
  assert.match(env.versions.pyflameRt, /^\d+\.\d+\.\d+$/);
  assert.throws(() => { env.logLevel = 'loud'; }, /verbose, info/);
});

test('the model of digits comes from a path, bytes or a buffer', async () => {
  const bytes = fs.readFileSync(DIGITS);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const image = new Tensor(new Float32Array(64), [1, 1, 8, 8]);
  const results = [];
  for (const source of [DIGITS, bytes, buffer])
    results.push((await (await InferenceSession.create(source)).run({image})).probabilities.data);
  assert.ok(Math.abs(results[0].reduce((sum, p) => sum + p) - 1) < 1e-5);
  assert.deepEqual(results[1], results[0]);
  assert.deepEqual(results[2], results[0]);
});

for (const [how, statement] of [['process.exit', 'process.exit(3)'], ['the end', 'process.exitCode = 3'],
                                ['an exception', 'process.on("uncaughtException", () => process.exit(3)); throw 1']]) {
  test(`a process ends by ${how} with live sessions and runs`, () => {
    const code = `const {InferenceSession, Tensor} = require('pyflame-rt');
      (async () => {
        const session = await InferenceSession.create(${JSON.stringify(DIGITS)});
        const image = new Tensor(new Float32Array(64 * 100), [100, 1, 8, 8]);
        await session.run({image});
        for (let i = 0; i < 8; ++i) session.run({image}).catch(() => {});
        setImmediate(() => { ${statement} });
      })();`;
    const child = spawnSync(process.execPath, ['-e', code], {cwd: __dirname, encoding: 'utf8', timeout: 120000});
    assert.equal(child.status, 3, `${child.signal} ${child.stderr}`);
  });
}
