# SPDX-License-Identifier: Apache-2.0
"""Whether two lists of outputs are one result."""
import numpy as np
from draw import Bits

# Tolerance relative to the elements' size and to the largest finite element: kernels differ in the order of sums.
RELATIVE = {"float16": 4e-3, "float32": 2e-4, "float64": 1e-9, "complex64": 2e-4, "complex128": 1e-9}


def text_of(element):
    return element.decode("utf-8", "replace") if isinstance(element, bytes) else str(element)


def widened(array):
    """|array| in float64, or as it is where its type is exact."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def tensors(a, b, quantized):
    """"" when equal, else how they differ."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shape {list(a.shape)} and {list(b.shape)}"
    if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
        x, y = [[text_of(e) for e in t.reshape(-1)] for t in (a, b)]
        return "" if x == y else next(f"text {p!r} and {q!r}" for p, q in zip(x, y) if p != q)
    if a.dtype != b.dtype:
        return f"type {a.dtype} and {b.dtype}"
    if a.dtype.kind in "iub":
        if quantized and a.dtype.kind in "iu" and a.dtype.itemsize <= 2:
            wrong = np.abs(a.astype(np.int64) - b.astype(np.int64)) > 1
        else:
            wrong = a != b
    else:
        tolerance = RELATIVE[a.dtype.name]
        with np.errstate(all="ignore"):
            x, y = widened(a), widened(b)
            finite = np.abs(y[np.isfinite(y)])
            largest = float(finite.max()) if finite.size else 0.0
            near = np.abs(x - y) <= tolerance * np.abs(y) + tolerance * 0.1 * min(max(1.0, largest), 1e4)
            wrong = ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if a.ndim else ()
    return f"value {a[at]} and {b[at]} at {list(at)}, {int(wrong.sum())} of {wrong.size}"


def values(a, b, quantized):
    if a is None or b is None:
        return "" if a is b else f"kind {type(a).__name__} and {type(b).__name__}"
    if isinstance(b, Bits):
        if isinstance(a, Bits):
            return "" if (a.dims, a.data) == (b.dims, b.data) else "bits"
        return "" if np.asarray(a).tobytes() == b.data else "bits"
    if isinstance(b, (list, dict)) or isinstance(a, (list, dict)):
        if type(a) is not type(b) or len(a) != len(b):
            return f"kind {type(a).__name__} of {len(a)} and {type(b).__name__} of {len(b)}"
        if isinstance(b, dict):
            keys = [{text_of(k) if isinstance(k, (bytes, str)) else k: v for k, v in m.items()} for m in (a, b)]
            if set(keys[0]) != set(keys[1]):
                return "keys"
            a, b = [[np.asarray(m[k]) for k in sorted(keys[0])] for m in keys]
        return next((d for d in (values(x, y, quantized) for x, y in zip(a, b)) if d), "")
    return tensors(a, b, quantized)


def outputs(a, b, quantized=False):
    """"" when equal, else how the first output that differs does. |quantized|: integers may be one apart."""
    for i, (x, y) in enumerate(zip(a, b)):
        how = values(x, y, quantized)
        if how:
            return f"output {i}: {how}"
    return "" if len(a) == len(b) else "number of outputs"
