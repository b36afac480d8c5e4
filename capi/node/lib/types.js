// SPDX-License-Identifier: Apache-2.0
// Element types that JavaScript has arrays for: the name in tensors, the number in the ABI (types.h), the array.
'use strict';

const ROWS = [
  ['float32', 1, Float32Array], ['uint8', 2, Uint8Array], ['int8', 3, Int8Array], ['uint16', 4, Uint16Array],
  ['int16', 5, Int16Array], ['int32', 6, Int32Array], ['int64', 7, BigInt64Array], ['string', 8, Array],
  ['bool', 9, Uint8Array], ['float16', 10, Uint16Array], ['float64', 11, Float64Array], ['uint32', 12, Uint32Array],
  ['uint64', 13, BigUint64Array],
].map(([name, number, array]) => ({name, number, array}));

const STRING = 8;
const byName = new Map(ROWS.map(row => [row.name, row]));
const byNumber = new Map(ROWS.map(row => [row.number, row]));
// The type that an array has when none is given: Uint8Array is uint8, Uint16Array uint16.
const byArray = new Map([...ROWS].reverse().filter(row => row.name !== 'bool' && row.name !== 'float16')
                            .map(row => [row.array, row]));

module.exports = {STRING, byName, byNumber, byArray};
