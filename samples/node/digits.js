// SPDX-License-Identifier: Apache-2.0
//
// Classifies real handwritten digits: prints the class of the first held-out image, then how many of all are right.
// Argument: the folder with digits.onnx and digits_test.bin (layout in train.py).
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const {InferenceSession, Tensor} = require('pyflame-rt');

const PIXELS = 64;

function readDigits(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.toString('latin1', 0, 8) !== 'PFRTDIG1' || bytes.readUInt32LE(12) * bytes.readUInt32LE(16) !== PIXELS)
    throw new Error(`${file} is not a file of 8x8 digits`);
  return Array.from({length: bytes.readUInt32LE(8)}, (_, i) => {
    const record = bytes.subarray(20 + i * (1 + PIXELS), 20 + (i + 1) * (1 + PIXELS));
    return {label: record[0], pixels: Float32Array.from(record.subarray(1), pixel => pixel / 16)};
  });
}

async function main() {
  const folder = process.argv[2] ?? path.join(__dirname, '..', 'digits');
  const digits = readDigits(path.join(folder, 'digits_test.bin'));
  const session = await InferenceSession.create(path.join(folder, 'digits.onnx'));

  let right = 0;
  for (const [i, {label, pixels}] of digits.entries()) {
    const {probabilities} = await session.run({image: new Tensor(pixels, [1, 1, 8, 8])});
    const best = probabilities.data.indexOf(Math.max(...probabilities.data));
    if (i === 0) console.log(`image 0: a ${best} (p ${probabilities.data[best].toFixed(3)}), labelled ${label}`);
    right += best === label;
  }
  console.log(`${right} of ${digits.length} held-out images are right`);
  console.log(`accuracy ${(100 * right / digits.length).toFixed(1)} %`);
  await session.release();
}

main().catch(error => {
  console.error(`digits: ${error.message}`);
  process.exitCode = 1;
});
