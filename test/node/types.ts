// SPDX-License-Identifier: Apache-2.0
// Names and types that a TypeScript program uses, and mistakes that must not compile. It is compiled, but never run.
import {BackendError, InferenceSession, Tensor, env, listSupportedBackends} from 'pyflame-rt';

export async function use(): Promise<number> {
  const options: InferenceSession.SessionOptions = {graphOptimizationLevel: 'all', executionProviders: ['cpu']};
  const session = await InferenceSession.create('model.onnx', options);
  const x = new Tensor('float32', [1, 2], [1, 2]);
  const data: Float32Array = x.data;
  const big: BigInt64Array = new Tensor('int64', [1n]).data;
  const texts: string[] = new Tensor(['a']).data;
  const results: InferenceSession.OnnxValueMapType = await session.run({x}, ['y'], {timeoutMs: 5});
  await session.run({x}, {y: null});
  const [first] = session.inputMetadata;
  const rank = first.isTensor ? first.shape.length : 0;
  const names: readonly string[] = listSupportedBackends().map(({name}) => name);
  env.logLevel = 'error';
  // @ts-expect-error: there is no such level
  await InferenceSession.create('model.onnx', {graphOptimizationLevel: 'most'});
  // @ts-expect-error: a feed is a Tensor
  await session.run({x: [1, 2]});
  // @ts-expect-error: float32 is no array of bigints
  new Tensor('float32', new BigInt64Array(1));
  try {
    session.runSync({x});
  } catch (error) {
    if (error instanceof BackendError && error.code === 'CANCELLED') await session.release();
  }
  return data.length + big.length + texts.length + rank + names.length + results.y.dims.length;
}
