# SPDX-License-Identifier: Apache-2.0
"""Operators that the peer lacks: com.microsoft's Rfft and Irfft (its CPU provider has none) and the steps of
optimizers; and SparseToDenseMatMul of a sparse constant, which the recorder has no inputs of. Expected outputs are NumPy formulas from the standard's
text, in double."""
import numpy as np
from onnx import helper
from peer import dtype_of
from record import Case, rng

F32, F64 = np.float32, np.float64


def one(domain, op, name, inputs, expected, **attrs):
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(expected))]
    return Case(domain, op, name, [helper.make_node(op, names, results, domain=domain, name=op.lower(), **attrs)],
                dict(zip(names, inputs)), results, expected=dict(zip(results, expected)))


def transforms():
    r = rng("rfft")
    for name, shape in (("prime", (3, 67)), ("even", (2, 2, 16)), ("odd", (15,))):
        x = r.uniform(-2, 2, shape).astype(F32)
        y = np.fft.rfft(x.astype(F64), axis=-1)
        pairs = np.stack([y.real, y.imag], -1)
        attrs = dict(onesided=1, normalized=0, signal_ndim=1)
        yield one("com.microsoft", "Rfft", name, [x], [pairs.astype(F32)], **attrs)
        bins = r.uniform(-2, 2, pairs.shape).astype(F32)
        back = np.fft.irfft(bins[..., 0].astype(F64) + 1j * bins[..., 1], axis=-1)
        yield one("com.microsoft", "Irfft", name, [bins], [back.astype(F32)], **attrs)


TRAINING = "ai.onnx.preview.training"


def steps(name, formula, carried, dtypes=(F32, F32), t=3, shapes=((2, 3), (4,)), **attrs):
    """A step over tensors of |shapes|; |formula| takes rate, t, x, g and |carried| more, all double."""
    r = rng(name)
    rate, kind = np.array(0.125, dtypes[0]), dtypes[1]
    lists = [[(r.uniform(0.5, 2, s) if role else r.uniform(-2, 2, s)).astype(kind) for s in shapes]
             for role in (0, 0, 1, 1)[:2 + carried]]
    new = [formula(float(rate), t, *[values[i].astype(F64) for values in lists], **attrs)
           for i in range(len(shapes))]
    expected = [result[k].astype(kind) for k in range(1 + carried) for result in new]
    op, case = name.split("/")
    attrs = {k: v for k, v in attrs.items()}
    return one(TRAINING, op, case, [rate, np.array(t, np.int64)] + [v for values in lists for v in values], expected,
               **attrs)


def adagrad(rate, t, x, g, h, decay_factor=0., epsilon=0., norm_coefficient=0.):
    slope = norm_coefficient * x + g
    h = h + slope * slope
    return x - rate / (1 + t * decay_factor) * slope / (np.sqrt(h) + epsilon), h


def adam(rate, t, x, g, v, h, alpha=0.9, beta=0.999, epsilon=0., norm_coefficient=0., norm_coefficient_post=0.):
    slope = norm_coefficient * x + g
    v, h = alpha * v + (1 - alpha) * slope, beta * h + (1 - beta) * slope * slope
    if t > 0:
        rate = rate * np.sqrt(1 - beta**t) / (1 - alpha**t)
    return (1 - norm_coefficient_post) * (x - rate * v / (np.sqrt(h) + epsilon)), v, h


def momentum(rate, t, x, g, v, alpha, beta, mode, norm_coefficient):
    slope = norm_coefficient * x + g
    v = alpha * v + (beta if t > 0 else 1) * slope
    return x - rate * (slope + alpha * v if mode == "nesterov" else v), v


def optimizers():
    yield steps("Adagrad/defaults", adagrad, 1)
    yield steps("Adagrad/all", adagrad, 1, (F64, F64), decay_factor=0.25, epsilon=0.5, norm_coefficient=0.125)
    yield steps("Adam/defaults", adam, 2)
    yield steps("Adam/first_step", adam, 2, (F64, F32), t=0)
    yield steps("Adam/all", adam, 2, (F32, F64), alpha=0.75, beta=0.5, epsilon=0.25, norm_coefficient=0.125,
                norm_coefficient_post=0.0625)
    shared = dict(alpha=0.75, beta=0.5, norm_coefficient=0.125)
    yield steps("Momentum/standard", momentum, 1, mode="standard", **shared)
    yield steps("Momentum/first_step", momentum, 1, t=0, mode="standard", **shared)
    yield steps("Momentum/nesterov", momentum, 1, (F32, F64), mode="nesterov", **shared)


def sparse_products():
    r = rng("sparse")
    for name, kind, attrs in (("plain", F32, {}), ("turned", F64, dict(transA=1, transB=1, alpha=0.5)),
                              ("int64", np.int64, {})):
        a = r.randint(-4, 5, (4, 3)).astype(kind) * (r.uniform(size=(4, 3)) < 0.4)
        b = r.randint(-4, 5, (5, 4) if attrs else (3, 5)).astype(kind)
        at = np.flatnonzero(a)
        proto = helper.make_sparse_tensor(
            helper.make_tensor("a", dtype_of(a), [len(at)], a.reshape(-1)[at]),
            helper.make_tensor("at", 7, [len(at)], at), a.shape)
        nodes = [helper.make_node("Constant", [], ["a"], sparse_value=proto),
                 helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", **attrs)]
        y = (a.T if attrs else a) @ (b.T if attrs else b) * kind(attrs.get("alpha", 1))
        yield Case("com.microsoft", "SparseToDenseMatMul", name, nodes, {"b": b}, ["y"], expected={"y": y.astype(kind)})


def cases():
    yield from sparse_products()
    yield from transforms()
    yield from optimizers()
