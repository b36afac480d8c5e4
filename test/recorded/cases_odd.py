# SPDX-License-Identifier: Apache-2.0
"""What random models of one operator (test/odd) found, small enough to keep."""
import numpy as np
from onnx import helper
from record import Case, rng

F32, I64 = np.float32, np.int64


def one(op, name, inputs, opset, outputs=1, constant=(), expected=None, **attrs):
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    values = {n: v for n, v in zip(names, inputs) if n}
    return Case("ai.onnx", op, name, [helper.make_node(op, names, results, name=op.lower(), **attrs)],
                {n: v for n, v in values.items() if int(n[1:]) not in constant}, results,
                initializers={n: v for n, v in values.items() if int(n[1:]) in constant}, opsets={"": opset},
                expected=dict(zip(results, expected)) if expected is not None else None)


def unknown_rank(op, name, x, inputs, opset, **attrs):
    """An operator on |x|, of which only a run knows the rank."""
    nodes = [helper.make_node("Compress", ["dims", "keep"], ["kept"]),
             helper.make_node("Reshape", ["x", "kept"], ["t"]),
             helper.make_node(op, ["t", *[f"x{i}" for i in range(len(inputs))]], ["y"], name=op.lower(), **attrs)]
    return Case("ai.onnx", op, name, nodes, {"x": x, "dims": np.array(x.shape, I64), "keep": np.ones(x.ndim, bool)},
                ["y"], initializers={f"x{i}": v for i, v in enumerate(inputs)}, opsets={"": opset})


def cases():
    r = rng("odd")
    x = r.uniform(-2, 2, (3, 4)).astype(F32)
    yield unknown_rank("CenterCropPad", "unknown_rank", x, [np.array([5, 2], I64)], 18)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield unknown_rank(op, "unknown_rank_opset11", x, [], 11, axis=-1)
    row = np.array([[1, 2, 1, 3], [2, 3, 3, 1]], I64)
    for mode in ("IDF", "TFIDF"):
        yield one("TfIdfVectorizer", f"columns_in_another_order_{mode.lower()}", [row], 9, mode=mode, min_gram_length=1,
                  max_gram_length=2, max_skip_count=0, ngram_counts=[0, 3], ngram_indexes=[4, 2, 0, 1, 3],
                  pool_int64s=[1, 2, 3, 1, 2, 3, 3], weights=[0.5, 2.0, 1.0, 3.0, 4.0])
