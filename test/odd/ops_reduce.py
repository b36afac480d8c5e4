# SPDX-License-Identifier: Apache-2.0
"""Reductions, products, normalisations, recurrent networks and losses."""
from draw import F16, F32, F64, FLOATS, HUGE, I8, I32, I64, U8, NUMBERS, np

REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


def reduction(op):
    def make(d):
        d.version(7)
        shape = d.shape()
        types = [F32, F32, F32, F64, I32, I64]
        if op in ("ReduceMax", "ReduceMin") and d.version() >= 12:
            types += [I8, U8]
        axes = d.axes(len(shape)) if d.chance(0.8) else None
        if d.version() < 11 and axes:
            axes = [a % len(shape) if len(shape) and abs(a) < 9 else a for a in axes]
        low = 0.1 if "Log" in op and d.chance(0.7) else None
        dtype = d.pick(types)
        x = d.data(dtype, shape, None if low is None else 1 if np.dtype(dtype).kind == "i" else low, None if low is None
                   else 3)
        attrs = d.maybe({}, keepdims=d.flag())
        as_input = d.version() >= (13 if op == "ReduceSum" else 18)
        if as_input:
            d.maybe(attrs, 0.3, noop_with_empty_axes=d.flag())
            return d.finish(op, [x, None if axes is None else d.shape_input(axes)], **attrs)
        d.finish(op, [x], axes=axes or None, **attrs)
    return make


def arg(op):
    def make(d):
        d.version(7)
        shape = d.shape(0 if d.odd(0.1) else 1)
        attrs = d.maybe({}, axis=d.axis(len(shape)), keepdims=d.flag())
        if d.version() >= 12:
            d.maybe(attrs, 0.4, select_last_index=d.flag())
        d.finish(op, [d.data(d.pick([F32, F32, F64, I32, I64] + ([U8, I8] if d.version() >= 13 else [])), shape)],
                 **attrs)
    return make


def along_axis(op):
    def make(d):
        d.version(7)
        shape = d.shape(0 if d.odd(0.1) else 1)
        d.finish(op, [d.data(d.pick([F32, F32, F32, F64]), shape)], **d.maybe({}, axis=d.axis(len(shape))))
    return make


def cumulative(op, since):
    def make(d):
        d.version(since)
        shape = d.shape(0 if d.odd(0.1) else 1)
        at = np.array(d.axis(len(shape)), I64)
        at = np.clip(at, -2**31, 2**31 - 1).astype(I32) if d.chance(0.4) else at
        d.finish(op, [d.data(d.pick([F32, F64, I32, I64]), shape), d.input(at if not d.odd(0.1) else at.reshape(1), 0.6)],
                 **d.maybe({}, exclusive=d.flag(), reverse=d.flag()))
    return make


def top_k(d):
    d.version(7)
    shape = d.shape(0 if d.odd(0.05) else 1)
    axis = d.int(0, len(shape) - 1) if shape else 0
    k = d.int(0 if d.chance(0.1) else 1, max(1, shape[axis] if shape else 1))
    if d.odd():
        k = d.pick([0, -1, 9] + HUGE)
    x = d.data(d.pick([F32, F32, F64, I64, I32] if d.version() >= 11 else [F32]), shape)
    attrs = {"axis": d.pick([axis, axis - len(shape)]) if d.version() >= 11 else axis}
    if d.odd(0.1):
        attrs["axis"] = d.axis(len(shape))
    if shape and attrs["axis"] in (-1, len(shape) - 1) and d.chance(0.5):
        attrs = {}
    if d.version() < 10:
        return d.finish("TopK", [x], 2, k=k, **attrs)
    if d.version() >= 11:
        d.maybe(attrs, 0.5, largest=d.flag(), sorted=1)
    d.finish("TopK", [x, d.shape_input([k])], 2, **attrs)


def products(d, limit=5):
    """Two shapes that a matrix product takes, for the most part."""
    m, k, n = d.size(1, limit), d.size(1, limit), d.size(1, limit)
    if d.chance(0.1):
        k = d.int(16, 70)
    batch = d.shape(0, 2, 3)
    a, b = batch + [m, k], d.broadcastable(batch) + [k, n]
    if d.chance(0.3):
        a, b = d.broadcastable(batch) + [m, k], batch + [k, n]
    if d.chance(0.12):
        a = [k]
    if d.chance(0.12):
        b = [k]
    if d.odd():
        side = d.pick([a, b])
        side[d.int(0, len(side) - 1)] += 1
    if d.odd(0.04):
        a = []
    return a, b


def matmul(d):
    d.version(7)
    a, b = products(d)
    dtype = d.pick([F32, F32, F32, F64, F16, I32, I64])
    d.finish("MatMul", [d.data(dtype, a), d.data(dtype, b)])


def gemm_parts(d, dtype):
    m, k, n = d.size(1, 6), d.size(1, 6), d.size(1, 6)
    attrs = d.maybe({}, 0.5, alpha=d.pick([0.0, -1.0, 0.5, 2.0]), beta=d.pick([0.0, -1.0, 0.5, 2.0]))
    ta, tb = d.flag() if d.chance(0.4) else 0, d.flag() if d.chance(0.4) else 0
    if ta:
        attrs["transA"] = ta
    if tb:
        attrs["transB"] = tb
    a, b = [k, m] if ta else [m, k], [n, k] if tb else [k, n]
    if d.odd():
        a[d.int(0, 1)] += 1
    if d.odd(0.05):
        a = a + [1]
    c = d.pick([[n], [m, n], [m, 1], [1, n], [1], []]) if not d.odd() else d.pick([[m], [n, m], [2, m, n], [1, 1, n]])
    return d.data(dtype, a), d.data(dtype, b), d.data(dtype, c), attrs


def gemm(d):
    d.version(7)
    a, b, c, attrs = gemm_parts(d, d.pick([F32, F32, F32, F64, F16]))
    d.finish("Gemm", [a, b, c if d.version() < 11 or d.chance(0.7) else None], **attrs)


def matmul_integer(d):
    d.version(10)
    a, b = products(d)
    ta, tb = d.pick([U8, U8, I8]), d.pick([U8, I8])
    za = d.data(ta, [] if not d.odd() else [3], 0, 9) if d.chance(0.6) else None
    zb = d.data(tb, [] if d.chance(0.6) or len(b) < 2 else [b[-1]], 0, 9) if d.chance(0.5) else None
    d.finish("MatMulInteger", [d.data(ta, a, 0, 100), d.data(tb, b, 0, 100), za, zb])


def qlinear_matmul(d):
    d.version(10)
    a, b = products(d)
    t, tb = d.pick([U8, I8]), d.pick([U8, I8])
    columns = [] if d.chance(0.6) or len(b) < 2 else [b[-1]]
    scale = lambda s: (np.abs(d.data(F32, s, 0.01, 0.1)) + F32(0.01)).astype(F32)
    d.finish("QLinearMatMul", [d.data(t, a, 0, 120), scale([]), d.data(t, [], 0, 50), d.data(tb, b, 0, 120),
                               scale(columns), d.data(tb, columns, 0, 50), scale([]) * F32(20), d.data(t, [], 0, 50)])


def det(d):
    d.version(11)
    n = d.size(1, 4)
    d.finish("Det", [d.data(d.pick([F32, F32, F64]), d.shape(0, 2, 3) + ([n, n] if not d.odd() else [n, n + 1]))])


def einsum(d):
    d.version(12)
    sizes = {c: d.size(1, 4) for c in "ijkl"}
    terms = ["".join(d.pick("ijkl") for _ in range(d.int(0 if d.chance(0.1) else 1, 3))) for _ in range(d.int(1, 2))]
    used = sorted(set("".join(terms)))
    out = "".join(c for c in used if d.chance(0.6))
    equation = ",".join(terms) + ("->" + out if d.chance(0.8) else "")
    if d.odd():
        equation = d.pick([equation + "z", equation.replace("->", "-"), "...," + equation, "", "i j->", equation + "->",
                           equation.upper()])
    shapes = [[sizes[c] for c in t] for t in terms]
    if d.odd() and shapes[0]:
        shapes[0][0] = d.pick([1, 7])
    d.finish("Einsum", [d.data(d.pick([F32, F32, F64, I32]), s) for s in shapes], equation=equation)


def batch_norm(d):
    d.version(7)
    x = d.shape(0 if d.odd(0.05) else 2, 5)
    c = [x[1] if len(x) > 1 else 1] if not d.odd() else [d.int(0, 6)]
    dtype = d.pick([F32, F32, F64])
    part = lambda low=None: d.data(dtype, c, low, None if low is None else 2)
    attrs = d.maybe({}, epsilon=d.pick([1e-5, 1e-3, 0.0, 0.5]), momentum=d.real(0, 1))
    outputs = 1
    if d.version() >= 14 and d.chance(0.2):
        attrs["training_mode"], outputs = 1, d.pick([1, 3])
    d.finish("BatchNormalization", [d.data(dtype, x), part(), part(), part(), part(0.1)], outputs, **attrs)


def instance_norm(d):
    d.version(7)
    x = d.shape(2 if d.odd(0.1) else 3, 5)
    c = [x[1]] if not d.odd() else [d.int(0, 6)]
    d.finish("InstanceNormalization", [d.data(F32, x), d.data(F32, c), d.data(F32, c)],
             **d.maybe({}, epsilon=d.pick([1e-5, 1e-3, 0.5])))


def layer_norm(d):
    d.version(17)
    x = d.shape(1, 4)
    axis = d.int(0, len(x) - 1)
    dtype = d.pick([F32, F32, F32, F64])
    form = x[axis:] if not d.odd() else x[axis:] + [2]
    if d.chance(0.1):
        form = [1 if d.chance(0.5) else n for n in form]
    attrs = {"axis": d.pick([axis, axis - len(x)]) if not d.odd(0.1) else d.axis(len(x))}
    if axis == len(x) - 1 and d.chance(0.5):
        attrs = {}
    d.finish("LayerNormalization", [d.data(dtype, x), d.data(dtype, form), d.data(dtype, form) if d.chance(0.6) else
                                    None], d.int(1, 3), **d.maybe(attrs, epsilon=d.pick([1e-5, 1e-3, 0.5])))


def rms_norm(d):
    d.version(23)
    x = d.shape(1, 4)
    axis = d.int(0, len(x) - 1)
    d.finish("RMSNormalization", [d.data(F32, x), d.data(F32, x[axis:] if not d.odd() else [3])],
             axis=d.pick([axis, axis - len(x)]))


def group_norm(d):
    d.version(21)
    groups = d.int(1, 3)
    c = groups * d.int(1, 3)
    x = [d.size(1, 3), c, *d.shape(1, 3)]
    form = [c] if not d.odd() else [d.int(0, 5)]
    d.finish("GroupNormalization", [d.data(F32, x), d.data(F32, form), d.data(F32, form)],
             num_groups=groups if not d.odd(0.1) else d.pick([0, -1, c + 1, 2**40]),
             **d.maybe({}, epsilon=d.pick([1e-5, 1e-3, 0.5])))


def lp_norm(d):
    d.version(7)
    shape = d.shape(1)
    d.finish("LpNormalization", [d.data(d.pick([F32, F32, F64]), shape)], **d.maybe(
        {}, axis=d.axis(len(shape)), p=d.int(1, 2) if not d.odd() else d.pick([0, 3, -1])))


def mean_variance(d):
    d.version(9)
    shape = d.shape(1) if d.chance(0.3) else d.rank_shape(4)
    d.finish("MeanVarianceNormalization", [d.data(F32, shape)],
             axes=d.axes(len(shape), True) if d.chance(0.4) or len(shape) < 4 else None)


def recurrent(op, gates):
    def make(d):
        d.version(7)
        t, b, i, h = d.size(1, 4), d.size(1, 3), d.size(1, 3), d.int(1, 4)
        direction = d.pick(["forward", "reverse", "bidirectional"])
        n = 2 if direction == "bidirectional" else 1
        batch_first = d.version() >= 14 and d.chance(0.2)
        attrs = {"hidden_size": h if not d.odd(0.1) else d.pick([0, -1, h + 1, 2**40]), "direction": direction}
        if batch_first:
            attrs["layout"] = 1
        states = [b, n, h] if batch_first else [n, b, h]
        lengths = d.data(I32, [b], 0 if d.odd() else 1, max(1, t)) if d.chance(0.4) else None
        inputs = [d.data(F32, [b, t, i] if batch_first else [t, b, i]), d.input(d.data(F32, [n, gates * h, i]), 0.6),
                  d.input(d.data(F32, [n, gates * h, h if not d.odd(0.05) else h + 1]), 0.6),
                  d.input(d.data(F32, [n, 2 * gates * h]), 0.6) if d.chance(0.6) else None, lengths,
                  d.data(F32, states) if d.chance(0.5) else None]
        if op == "LSTM":
            inputs += [d.data(F32, states) if d.chance(0.5) else None,
                       d.data(F32, [n, 3 * h]) if d.chance(0.3) else None]
            d.maybe(attrs, 0.2, input_forget=d.flag())
        if op == "GRU":
            d.maybe(attrs, 0.5, linear_before_reset=d.flag())
        d.maybe(attrs, 0.2, clip=d.real(0.1, 2))
        if d.chance(0.2):
            names = ["Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "Softplus", "LeakyRelu", "Elu", "Affine"]
            attrs["activations"] = [d.pick(names[:3] if d.chance(0.5) else names)
                                    for _ in range({"RNN": 1, "GRU": 2, "LSTM": 3}[op] * n)]
        d.finish(op, inputs, d.int(1, 3 if op == "LSTM" else 2), chain=False, **attrs)
    return make


def loss(op, since, outputs):
    def make(d):
        d.version(since)
        n, c, rest = d.size(1, 3), d.size(1, 4), d.shape(0, 2, 3)
        labels = d.data(I64, [n, *rest], 0, max(0, c - 1))
        attrs = d.maybe({}, reduction=d.pick(["none", "mean", "sum"]))
        if d.chance(0.3):
            attrs["ignore_index"] = d.pick([0, -1, 100, c - 1])
            if labels.size and attrs["ignore_index"] in (-1, 100):
                labels.reshape(-1)[0] = attrs["ignore_index"]
        if labels.size and d.odd():
            labels.reshape(-1)[0] = d.pick([c, -2, 2**40])
        weight = d.data(F32, [c if not d.odd(0.05) else c + 1], 0, 2) if d.chance(0.4) else None
        d.finish(op, [d.data(F32, [n, c, *rest]), labels, weight], d.int(1, outputs), **attrs)
    return make


GENERATORS = {
    **{("", "Reduce" + r): reduction("Reduce" + r) for r in REDUCTIONS},
    **{("", op): make for op, make in {
        "ArgMax": arg("ArgMax"), "ArgMin": arg("ArgMin"), "Softmax": along_axis("Softmax"),
        "LogSoftmax": along_axis("LogSoftmax"), "Hardmax": along_axis("Hardmax"), "CumSum": cumulative("CumSum", 11),
        "TopK": top_k, "MatMul": matmul, "Gemm": gemm, "MatMulInteger": matmul_integer,
        "QLinearMatMul": qlinear_matmul, "Det": det, "Einsum": einsum, "BatchNormalization": batch_norm,
        "InstanceNormalization": instance_norm, "LayerNormalization": layer_norm, "RMSNormalization": rms_norm,
        "GroupNormalization": group_norm, "LpNormalization": lp_norm, "MeanVarianceNormalization": mean_variance,
        "RNN": recurrent("RNN", 1), "GRU": recurrent("GRU", 3), "LSTM": recurrent("LSTM", 4),
        "NegativeLogLikelihoodLoss": loss("NegativeLogLikelihoodLoss", 12, 1),
        "SoftmaxCrossEntropyLoss": loss("SoftmaxCrossEntropyLoss", 12, 2)}.items()}}
