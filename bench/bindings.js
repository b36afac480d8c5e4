// SPDX-License-Identifier: Apache-2.0
//
// The peer's side of bindings.py. It answers each number of runs, a line on stdin, with the microseconds that one run
// took, a line on stdout. Arguments: the folder of onnxruntime-node, the model.
'use strict';

const readline = require('node:readline');
const ort = require(process.argv[2]);

async function main() {
  const session = await ort.InferenceSession.create(process.argv[3], {intraOpNumThreads: 1, interOpNumThreads: 1});
  const inputs = Array.from({length: 16}, (_, i) =>
    new ort.Tensor('float32', Float32Array.from({length: 8}, (_, j) => i - j), [1, 8]));
  for await (const line of readline.createInterface({input: process.stdin})) {
    const runs = Number(line);
    const start = process.hrtime.bigint();
    for (let i = 0; i < runs; ++i) await session.run({x: inputs[i % 16]});
    console.log(Number(process.hrtime.bigint() - start) / 1e3 / runs);
  }
}

main().catch(error => {
  console.error(`bindings.js: ${error.message}`);
  process.exit(1);
});
