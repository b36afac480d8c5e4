# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators, casts and quantization."""
from draw import ANY, BOOL, F16, F32, F64, FLOATS, I8, I16, I32, I64, INTEGERS, NUMBERS, ONNX_TYPES, SIGNED, TEXT, U8, \
    U16, U32, U64, np

# First opset, types, and attributes with their ranges, by operator.
UNARY = {
    "Abs": (7, NUMBERS, {}), "Neg": (7, FLOATS + SIGNED, {}), "Sign": (9, NUMBERS, {}), "Sqrt": (7, FLOATS, {}),
    "Exp": (7, FLOATS, {}), "Log": (7, FLOATS, {}), "Erf": (9, FLOATS, {}), "Reciprocal": (7, FLOATS, {}),
    "Floor": (7, FLOATS, {}), "Ceil": (7, FLOATS, {}), "Round": (11, FLOATS, {}), "Sin": (7, FLOATS, {}),
    "Cos": (7, FLOATS, {}), "Tan": (7, FLOATS, {}), "Asin": (7, FLOATS, {}), "Acos": (7, FLOATS, {}),
    "Atan": (7, FLOATS, {}), "Sinh": (9, FLOATS, {}), "Cosh": (9, FLOATS, {}), "Tanh": (7, FLOATS, {}),
    "Asinh": (9, FLOATS, {}), "Acosh": (9, FLOATS, {}), "Atanh": (9, FLOATS, {}), "Relu": (7, FLOATS + SIGNED, {}),
    "LeakyRelu": (7, FLOATS, {"alpha": (-2, 2)}), "ThresholdedRelu": (10, FLOATS, {"alpha": (-2, 2)}),
    "Elu": (7, FLOATS, {"alpha": (-2, 2)}), "Selu": (7, FLOATS, {"alpha": (-2, 2), "gamma": (-2, 2)}),
    "Celu": (12, [F32], {"alpha": (-2, 2)}), "Sigmoid": (7, FLOATS, {}),
    "HardSigmoid": (7, FLOATS, {"alpha": (-2, 2), "beta": (-2, 2)}), "HardSwish": (14, FLOATS, {}),
    "Mish": (18, FLOATS, {}), "Softplus": (7, FLOATS, {}), "Softsign": (7, FLOATS, {}),
    "Shrink": (9, NUMBERS, {"lambd": (-1, 2), "bias": (-2, 2)}), "Not": (7, [BOOL], {}), "IsNaN": (9, FLOATS, {}),
    "IsInf": (10, [F32, F64], {"detect_negative": None, "detect_positive": None}), "BitwiseNot": (18, INTEGERS, {}),
    "Identity": (7, ANY + [TEXT], {}), "Swish": (24, FLOATS, {"alpha": (-2, 2)}),
}
BINARY = {"Add": NUMBERS, "Sub": NUMBERS, "Mul": NUMBERS, "Div": NUMBERS, "And": [BOOL], "Or": [BOOL], "Xor": [BOOL],
          "Equal": ANY + [TEXT], "Less": NUMBERS, "Greater": NUMBERS, "LessOrEqual": NUMBERS,
          "GreaterOrEqual": NUMBERS, "BitwiseAnd": INTEGERS, "BitwiseOr": INTEGERS, "BitwiseXor": INTEGERS,
          "PRelu": FLOATS + [I32, I64, U32, U64]}
BINARY_SINCE = {"LessOrEqual": 12, "GreaterOrEqual": 12, "BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18}


def unary(op):
    since, types, ranges = UNARY[op]

    def make(d):
        d.version(since)
        attrs = d.maybe({}, **{n: d.flag() if r is None else d.real(*r) for n, r in ranges.items()})
        if attrs and d.odd(0.1):
            name = d.pick(sorted(attrs))
            if isinstance(attrs[name], float):
                attrs[name] = d.pick([0.0, float("nan"), float("inf"), -1e30])
        d.finish(op, [d.data(d.pick(types), d.shape())], **attrs)
    return make


def binary(op):
    def make(d):
        d.version(BINARY_SINCE.get(op, 7))
        dtype = d.pick(BINARY[op])
        shape = d.shape()
        a, b = d.data(dtype, shape), d.data(dtype, d.broadcastable(shape))
        if op == "Div" and np.dtype(dtype).kind in "iu":
            b = np.where(b == 0, b.dtype.type(1), b)
            if np.dtype(dtype).kind == "i":
                b = np.where(b == -1, b.dtype.type(3), b)
        if op != "PRelu" and d.chance(0.4):
            a, b = b, a
            if op == "Div" and np.dtype(dtype).kind in "iu":
                b = np.where((b == 0) | (b == np.array(-1).astype(b.dtype)), b.dtype.type(2), b)
        d.finish(op, [a, b])
    return make


def variadic(op):
    def make(d):
        d.version(8)
        dtype = d.pick(NUMBERS if op in ("Max", "Min") else FLOATS)
        shape = d.shape()
        d.finish(op, [d.data(dtype, shape)] + [d.data(dtype, d.broadcastable(shape)) for _ in range(d.int(0, 3))])
    return make


def mod(d):
    d.version(10)
    dtype = d.pick(NUMBERS)
    shape = d.shape()
    real = np.dtype(dtype).kind == "f"
    b = d.data(dtype, d.broadcastable(shape))
    b = np.where(b == 0, b.dtype.type(3), b)
    attrs = {"fmod": 1} if real and not d.odd() else d.maybe({}, fmod=d.flag())
    d.finish("Mod", [d.data(dtype, shape), b], **attrs)


def power(d):
    d.version(7)
    base = d.pick([F32, F32, F64, I32, I64, F16])
    shape = d.shape()
    exponent = d.pick([F32, F64, I32, I64, base]) if d.version() >= 12 else base
    low = 0 if np.dtype(base).kind == "i" else None
    e = d.data(exponent, d.broadcastable(shape), low=low, high=3 if low is not None else None)
    if d.chance(0.4):
        e = np.asarray(d.pick([0, 1, 2, 3, 0.5, -1]) if low is None and np.dtype(exponent).kind == "f" else d.int(0, 3)
                       ).astype(exponent)
    d.finish("Pow", [d.data(base, shape), e])


def clip(d):
    d.version(7)
    dtype = d.pick(NUMBERS)
    if d.version() < 11:
        dtype = F32
        return d.finish("Clip", [d.data(dtype, d.shape())], **d.maybe({}, min=d.real(), max=d.real()))
    bounds = [d.data(dtype, [] if not d.odd() else [1]) if d.chance(0.7) else None for _ in range(2)]
    d.finish("Clip", [d.data(dtype, d.shape()), *bounds])


def where(d):
    d.version(9)
    dtype = d.pick(ANY + [TEXT])
    shape = d.shape()
    shapes = [shape, d.broadcastable(shape), d.broadcastable(shape)]
    d.random.shuffle(shapes)
    d.finish("Where", [d.data(BOOL, shapes[0]), d.data(dtype, shapes[1]), d.data(dtype, shapes[2])])


def bit_shift(d):
    d.version(11)
    dtype = d.pick([U8, U16, U32, U64])
    shape = d.shape()
    bits = np.dtype(dtype).itemsize * 8
    d.finish("BitShift", [d.data(dtype, shape), d.data(dtype, d.broadcastable(shape), 0, bits - (not d.odd()))],
             direction=d.pick(["LEFT", "RIGHT"]) if not d.odd(0.05) else d.pick(["left", "", "UP"]))


def gelu(d):
    d.version(20)
    d.finish("Gelu", [d.data(d.pick(FLOATS), d.shape())], approximate=d.pick(["none", "tanh", None]) if not d.odd()
             else "other")


def dropout(d):
    d.version(7)
    x = d.data(d.pick(FLOATS), d.shape())
    if d.version() < 12:
        return d.finish("Dropout", [x], **d.maybe({}, ratio=d.real(0, 0.9)))
    ratio = np.array(d.real(0, 0.9), F32) if d.chance(0.5) else None
    d.finish("Dropout", [x, ratio, np.array(False) if d.chance(0.4) else None], d.int(1, 2))


CAST = [F32, F64, F16, I8, I16, I32, I64, U8, U16, U32, U64, BOOL]


def cast_data(d, dtype, to):
    """Values that |to| can hold: what becomes of others is not defined."""
    x = d.data(dtype, d.shape())
    if np.dtype(dtype).kind == "f" and to is not BOOL and np.dtype(to).kind in "iu":
        info = np.iinfo(to)
        x = np.clip(np.nan_to_num(x, nan=0, posinf=9, neginf=-9), max(info.min, -100), 100).astype(dtype)
    return x


def cast(d):
    d.version(9)
    to = d.pick(CAST)
    if d.chance(0.12):  # casts from text
        words = ["1", "-2", "0", "17"] if np.dtype(to).kind in "iu" or to is BOOL else ["1", "-2.5", "NaN", "INF",
                                                                                      "-inf", "1e3", " 4", "3.0"]
        x = np.array([d.pick(words) for _ in range(d.int(0, 4))], object)
        if d.odd(0.5) and len(x):
            x[0] = d.pick(["", "x", "1.5.2", "99999999999999999999"])
        return d.finish("Cast", [x], to=ONNX_TYPES[to])
    dtype = d.pick(CAST)
    x = cast_data(d, dtype, to)
    if d.chance(0.08):
        return d.finish("Cast", [x], to=8)
    d.finish("Cast", [x], to=d.pick([0, 77, -1]) if d.odd(0.05) else ONNX_TYPES[to])


def cast_like(d):
    d.version(15)
    to, dtype = d.pick(CAST), d.pick(CAST)
    d.finish("CastLike", [cast_data(d, dtype, to), d.data(to, d.shape())])


def scales(d, shape, axis, dtype):
    """A scale and zero point for a tensor, an axis of it, or what does not fit."""
    form = [] if axis is None else [shape[axis]]
    if d.odd():
        form = d.pick([[1], [3], [1, 1], [2, 2]])
    scale = np.abs(d.data(F32, form, 0.01, 0.5)) + F32(0.01)
    return scale.astype(F32), (None if d.chance(0.25) else d.data(dtype, form, -3 if np.iinfo(dtype).min else 0, 9))


def linear(op):
    def make(d):
        d.version(10)
        types = [U8, I8] if d.version() < 21 else [U8, I8, U16, I16]
        dtype = d.pick(types)
        shape = d.shape(0, 4)
        per_axis = bool(shape) and d.version() >= 13 and d.chance(0.5)
        axis = d.int(0, len(shape) - 1) if per_axis else None
        scale, zero = scales(d, shape, axis, dtype)
        attrs = {}
        if per_axis:
            attrs["axis"] = axis if not d.odd() else d.axis(len(shape))
            if d.chance(0.3):
                attrs["axis"] -= len(shape)
        elif d.version() >= 13 and d.chance(0.2):
            attrs["axis"] = d.axis(max(1, len(shape)))
        if per_axis and d.version() >= 21 and d.chance(0.4) and shape[axis]:
            block = d.int(1, shape[axis] + (1 if d.odd() else 0))
            blocks = [n if i != axis else -(-n // block) for i, n in enumerate(shape)]
            attrs["block_size"] = block
            scale = (np.abs(d.data(F32, blocks, 0.01, 0.5)) + F32(0.01)).astype(F32)
            zero = None if zero is None else d.data(dtype, blocks, 0, 9)
        if op == "QuantizeLinear":
            x = d.data(d.pick([F32, F32, F32, I32]), shape, -40, 40)
        else:
            wide = zero is None and d.chance(0.2)
            x = d.data(I32 if wide else dtype, shape, -100 if dtype in (I8, I16) else 0, 200 if dtype is not I8 else 120)
        d.finish(op, [x, scale, zero], **attrs)
    return make


def dynamic_quantize(d):
    d.version(11)
    d.finish("DynamicQuantizeLinear", [d.data(F32, d.shape())], 3)


GENERATORS = {
    **{("", op): unary(op) for op in UNARY}, **{("", op): binary(op) for op in BINARY},
    **{("", op): variadic(op) for op in ("Max", "Min", "Sum", "Mean")},
    ("", "Mod"): mod, ("", "Pow"): power, ("", "Clip"): clip, ("", "Where"): where, ("", "BitShift"): bit_shift,
    ("", "Gelu"): gelu, ("", "Dropout"): dropout, ("", "Cast"): cast, ("", "CastLike"): cast_like,
    ("", "QuantizeLinear"): linear("QuantizeLinear"), ("", "DequantizeLinear"): linear("DequantizeLinear"),
    ("", "DynamicQuantizeLinear"): dynamic_quantize,
}
