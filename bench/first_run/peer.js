// SPDX-License-Identifier: Apache-2.0
const {InferenceSession, Tensor} = require('onnxruntime-node');

InferenceSession.create(process.argv[2]).then(async session => {
  const {probabilities} = await session.run({image: new Tensor('float32', new Float32Array(64), [1, 1, 8, 8])});
  console.log(probabilities.data[5].toFixed(4));
});
