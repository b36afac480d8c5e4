// SPDX-License-Identifier: Apache-2.0

export namespace Tensor {
  interface DataTypeMap {
    float32: Float32Array;
    uint8: Uint8Array;
    int8: Int8Array;
    uint16: Uint16Array;
    int16: Int16Array;
    int32: Int32Array;
    int64: BigInt64Array;
    string: string[];
    bool: Uint8Array;
    /** Bits of half-precision numbers. */
    float16: Uint16Array;
    float64: Float64Array;
    uint32: Uint32Array;
    uint64: BigUint64Array;
  }
  type Type = keyof DataTypeMap;
  type DataType = DataTypeMap[Type];
  /** What the constructor takes for a type: its array, used in place, or numbers, which are converted. */
  type Source<T extends Type> = DataTypeMap[T] | (
    T extends 'string' ? readonly string[] : T extends 'bool' ? readonly boolean[] | readonly number[] :
    T extends 'int64' | 'uint64' ? readonly (number | bigint)[] : T extends 'float16' ? never : readonly number[]);
}

/** A dense tensor over an array, which is not copied: whoever writes to the array writes to the tensor. */
export interface Tensor<T extends Tensor.Type = Tensor.Type> {
  readonly type: T;
  readonly data: Tensor.DataTypeMap[T];
  readonly dims: readonly number[];
  readonly size: number;
  readonly location: 'cpu' | 'none';
  /** The data; with |release| the tensor is disposed. */
  getData(release?: boolean): Promise<Tensor.DataTypeMap[T]>;
  /** Another tensor over the same data. */
  reshape(dims: readonly number[]): Tensor<T>;
  dispose(): void;
}

export interface TensorConstructor {
  new <T extends Tensor.Type>(type: T, data: Tensor.Source<T>, dims?: readonly number[]): Tensor<T>;
  new (data: Float32Array, dims?: readonly number[]): Tensor<'float32'>;
  new (data: Float64Array, dims?: readonly number[]): Tensor<'float64'>;
  new (data: Int8Array, dims?: readonly number[]): Tensor<'int8'>;
  new (data: Uint8Array | Uint8ClampedArray, dims?: readonly number[]): Tensor<'uint8'>;
  new (data: Int16Array, dims?: readonly number[]): Tensor<'int16'>;
  new (data: Uint16Array, dims?: readonly number[]): Tensor<'uint16'>;
  new (data: Int32Array, dims?: readonly number[]): Tensor<'int32'>;
  new (data: Uint32Array, dims?: readonly number[]): Tensor<'uint32'>;
  new (data: BigInt64Array, dims?: readonly number[]): Tensor<'int64'>;
  new (data: BigUint64Array, dims?: readonly number[]): Tensor<'uint64'>;
  new (data: readonly string[], dims?: readonly number[]): Tensor<'string'>;
  new (data: readonly boolean[], dims?: readonly number[]): Tensor<'bool'>;
}
export const Tensor: TensorConstructor;

export namespace InferenceSession {
  type OnnxValueMapType = {[name: string]: Tensor};
  type FeedsType = {readonly [name: string]: Tensor};
  /** Names, or an object of names to null or to the tensor that the output is written to. */
  type FetchesType = readonly string[] | {readonly [name: string]: Tensor | null};
  type ExecutionProviderConfig = string | {readonly name: string; readonly [option: string]: unknown};
  type ValueMetadata =
    {readonly name: string; readonly isTensor: false} |
    /** A dimension is a number, the name of a dynamic one, or '' where that has no name. */
    {readonly name: string; readonly isTensor: true; readonly type: string;
     readonly shape: readonly (number | string)[]};

  interface SessionOptions {
    executionProviders?: readonly ExecutionProviderConfig[];
    graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
    executionMode?: 'sequential' | 'parallel';
    intraOpNumThreads?: number;
    /** 0 verbose, 1 info, 2 warning, 3 error, 4 nothing. */
    logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
    preferredOutputLocation?: 'cpu' | {readonly [output: string]: 'cpu'};
    /** Options of the library by their own names: {precision: 'ieee', session: {fallback: 'off'}}. */
    extra?: Record<string, unknown>;
    /** Without meaning here, from here on; a warning says so once. */
    interOpNumThreads?: number;
    enableCpuMemArena?: boolean;
    enableMemPattern?: boolean;
    enableGraphCapture?: boolean;
    freeDimensionOverrides?: {readonly [name: string]: number};
    logId?: string;
    logVerbosityLevel?: number;
  }

  interface RunOptions {
    tag?: string;
    logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
    /** The run fails with DEADLINE after so many milliseconds. */
    timeoutMs?: number;
    numThreads?: number;
    /** The run fails with CANCELLED once it is aborted. */
    signal?: AbortSignal;
    terminate?: boolean;
    /** Members of pfrt_run_desc by their names: {memory_limit: 1 << 30, priority: 1}. */
    extra?: Record<string, unknown>;
    /** Without meaning here. */
    logVerbosityLevel?: number;
  }
}

/** A model ready to run. Failures reject with a PyFlameRTError. */
export class InferenceSession {
  private constructor();
  static create(path: string, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  static create(bytes: Uint8Array | ArrayBufferLike,
                options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  static create(buffer: ArrayBufferLike, byteOffset: number, byteLength?: number,
                options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  /** Execution providers in use, in the order in which they were named. */
  readonly providers: readonly string[];
  run(feeds: InferenceSession.FeedsType, options?: InferenceSession.RunOptions):
      Promise<InferenceSession.OnnxValueMapType>;
  run(feeds: InferenceSession.FeedsType, fetches: InferenceSession.FetchesType, options?: InferenceSession.RunOptions):
      Promise<InferenceSession.OnnxValueMapType>;
  /** As run(), on this thread, which waits. */
  runSync(feeds: InferenceSession.FeedsType, options?: InferenceSession.RunOptions): InferenceSession.OnnxValueMapType;
  runSync(feeds: InferenceSession.FeedsType, fetches: InferenceSession.FetchesType,
          options?: InferenceSession.RunOptions): InferenceSession.OnnxValueMapType;
  /** Frees the session once its runs are over. */
  release(): Promise<void>;
}

export interface Env {
  readonly versions: {readonly pyflameRt: string};
  /** What sessions log that are made afterwards and do not say it themselves. */
  logLevel: 'verbose' | 'info' | 'warning' | 'error' | 'fatal';
  debug: boolean;
}
export const env: Env;
export function listSupportedBackends(): {name: string; bundled: boolean}[];

/** |code| is a word of PFRT_CODE_TABLE in types.h; |faults| are single faults where there are several. */
export class PyFlameRTError extends Error {
  readonly code: string;
  readonly faults: readonly string[];
}
export class InputError extends PyFlameRTError {}
export class ShapeMismatchError extends PyFlameRTError {}
export class DTypeMismatchError extends PyFlameRTError {}
export class InvalidModelError extends PyFlameRTError {}
export class UnsupportedFormatError extends PyFlameRTError {}
export class UnsupportedOperatorError extends PyFlameRTError {}
export class ValidationError extends PyFlameRTError {}
export class BackendError extends PyFlameRTError {}
