# SPDX-License-Identifier: Apache-2.0
"""Element types that ONNX Runtime lacks in most operators, by the standard's text: 4- and 2-bit integers, E2M1,
8-bit floats and complex numbers. Values are codes (the low bits of an element); decode() gives what they stand for."""
import numpy as np
from onnx import helper
from record import Bits, Case, rng, tensor_proto

UINT4, INT4, E2M1, E8M0, UINT2, INT2 = 21, 22, 23, 24, 25, 26
E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ = 17, 18, 19, 20
BITS = {UINT4: 4, INT4: 4, E2M1: 4, UINT2: 2, INT2: 2}
PACKED = list(BITS)
FLOAT8 = [E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ]
NAMES = {UINT4: "uint4", INT4: "int4", E2M1: "e2m1", E8M0: "e8m0", UINT2: "uint2", INT2: "int2",
         E4M3FN: "e4m3fn", E4M3FNUZ: "e4m3fnuz", E5M2: "e5m2", E5M2FNUZ: "e5m2fnuz"}
FORMS = {E4M3FN: (8, 3, 7), E4M3FNUZ: (8, 3, 8), E5M2: (8, 2, 15), E5M2FNUZ: (8, 2, 16), E2M1: (4, 1, 1)}


def tensor(dtype, codes):
    """A tensor from codes: packed from the low bits up, the last byte filled with zeros."""
    bits = BITS.get(dtype, 8)
    flat = np.asarray(codes, np.uint8).reshape(-1) & ((1 << bits) - 1)
    each = 8 // bits
    flat = np.concatenate([flat, np.zeros(-len(flat) % each, np.uint8)]).reshape(-1, each)
    data = np.zeros(len(flat), np.uint8)
    for i in range(each):
        data |= flat[:, i] << (i * bits)
    return Bits(dtype, np.shape(codes), data.tobytes())


def decode(dtype, codes):
    """What the codes stand for; finite ones only."""
    codes = np.asarray(codes, np.int64)
    if dtype in (UINT4, UINT2):
        return codes.astype(np.float64)
    if dtype in (INT4, INT2):
        half = 1 << (BITS[dtype] - 1)
        return ((codes ^ half) - half).astype(np.float64)
    if dtype == E8M0:
        return 2.0 ** (codes - 127)
    bits, mantissa, bias = FORMS[dtype]
    sign = np.where(codes >> (bits - 1), -1.0, 1.0)
    magnitude = codes & ((1 << (bits - 1)) - 1)
    exponent, fraction = magnitude >> mantissa, (magnitude & ((1 << mantissa) - 1)) / (1 << mantissa)
    return sign * np.where(exponent > 0, 2.0 ** (exponent - bias) * (1 + fraction), 2.0 ** (1 - bias) * fraction)


def finite(dtype):
    if dtype in BITS:
        return np.arange(1 << BITS[dtype])
    if dtype == E8M0:
        return np.arange(100, 150)
    top = {E4M3FN: 0x7e, E4M3FNUZ: 0x7f, E5M2: 0x7b, E5M2FNUZ: 0x7f}[dtype]
    skip = 129 if dtype in (E4M3FNUZ, E5M2FNUZ) else 128
    return np.concatenate([np.arange(top + 1), np.arange(skip, top + 129)])


def some(r, dtype, *shape):
    return r.choice(finite(dtype), shape)


def nearest(dtype, values):
    """The codes of the nearest values, ties to the even code; saturated."""
    codes = finite(dtype)
    codes = codes[decode(dtype, codes) >= 0]
    codes = codes[codes < (1 << (BITS.get(dtype, 8) - 1))]
    table = decode(dtype, codes)
    out = np.zeros(np.shape(values), np.int64)
    for i, v in np.ndenumerate(np.asarray(values, np.float64)):
        distance = np.abs(table - min(abs(v), table[-1]))
        best = [c for c, d in zip(codes, distance) if d == distance.min()]
        code = next((c for c in best if c % 2 == 0), best[0])
        negative = np.signbit(v) and not (code == 0 and dtype in (E4M3FNUZ, E5M2FNUZ))
        out[i] = code | (1 << (BITS.get(dtype, 8) - 1) if negative else 0)
    return out


def one(op, name, inputs, expected, opset=25, **attrs):
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    return Case("ai.onnx", op, name, [helper.make_node(op, names, ["y"], name=op.lower(), **attrs)],
                {n: v for n, v in zip(names, inputs) if v is not None}, ["y"], opsets={"": opset},
                expected={"y": expected})


def ints(*values):
    return np.array(values, np.int64)


def movements():
    for t in PACKED:
        r, n = rng("move" + NAMES[t]), NAMES[t]
        x = some(r, t, 3, 5, 3)
        yield one("Transpose", n, [tensor(t, x)], tensor(t, x.transpose(2, 0, 1)), perm=[2, 0, 1])
        yield one("Reshape", n, [tensor(t, x), ints(5, -1)], tensor(t, x.reshape(5, 9)))
        yield one("Identity", n, [tensor(t, x)], tensor(t, x))
        yield one("Flatten", n, [tensor(t, x)], tensor(t, x.reshape(3, 15)), axis=1)
        yield one("Unsqueeze", n, [tensor(t, x), ints(0)], tensor(t, x[None]))
        yield one("Squeeze", n, [tensor(t, x[:1]), ints(0)], tensor(t, x[0]))
        fill = np.array(some(r, t))
        padded = np.full((3, 8, 4), fill)
        padded[:, 1:6, :3] = x
        yield one("Pad", n, [tensor(t, x), ints(0, 1, 0, 0, 2, 1), tensor(t, fill)], tensor(t, padded))
        yield one("Pad", n + "_edge", [tensor(t, x), ints(0, 1, 0, 0, 2, 1)],
                  tensor(t, np.pad(x, [(0, 0), (1, 2), (0, 1)], mode="edge")), mode="edge")
        yield one("Shape", n, [tensor(t, x)], ints(3, 5, 3))
        # A chain: values between nodes are unpacked and packed again.
        nodes = [helper.make_node("Transpose", ["x"], ["a"], perm=[1, 2, 0]),
                 helper.make_node("Reshape", ["a", "dims"], ["b"]),
                 helper.make_node("Transpose", ["b"], ["y"], perm=[1, 0])]
        yield Case("ai.onnx", "Transpose", n + "_chain", nodes, {"x": tensor(t, x)}, ["y"],
                   initializers={"dims": ints(5, 9)}, opsets={"": 25},
                   expected={"y": tensor(t, x.transpose(1, 2, 0).reshape(5, 9).T)})
        value = tensor_proto("value", tensor(t, fill.reshape(1)))
        yield one("ConstantOfShape", n, [ints(3, 5)], tensor(t, np.full((3, 5), fill)), value=value)
        value = tensor_proto("value", tensor(t, x))
        nodes = [helper.make_node("Constant", [], ["c"], value=value),
                 helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 1])]
        yield Case("ai.onnx", "Constant", n, nodes, {}, ["y"], opsets={"": 25},
                   expected={"y": tensor(t, x.transpose(0, 2, 1))})
    for a, b in ((INT4, UINT4), (UINT4, E2M1), (INT2, UINT2)):
        x = some(rng("bits"), a, 3, 3)
        yield one("BitCast", f"{NAMES[a]}_{NAMES[b]}", [tensor(a, x)], tensor(b, x), opset=26, to=b)


def casts():
    for t in PACKED + FLOAT8 + [E8M0]:
        n, x = NAMES[t], finite(t)
        yield one("Cast", n + "_to_float", [tensor(t, x)], decode(t, x).astype(np.float32), to=1)
    for t in FLOAT8 + [E2M1]:
        v = np.concatenate([rng("cast").uniform(-9, 9, 40), [0.0, -0.0, 1e9, -1e9, 1e-9, np.inf, -np.inf]])
        v = v.astype(np.float32)
        clipped = np.clip(v, -1e8, 1e8)
        yield one("Cast", "float_to_" + NAMES[t], [v], tensor(t, nearest(t, clipped)), to=t)
        h = v[:40].astype(np.float16)
        yield one("Cast", "half_to_" + NAMES[t], [h], tensor(t, nearest(t, h)), to=t)
        x = some(rng("between"), INT4, 4, 5)
        yield one("Cast", "int4_to_" + NAMES[t], [tensor(INT4, x)], tensor(t, nearest(t, decode(INT4, x))), to=t)
    for t in (UINT4, INT4, UINT2, INT2):
        v = np.arange(-20, 21)
        for dtype in (np.int8, np.int32, np.int64, np.float32, np.float64):
            yield one("Cast", f"{np.dtype(dtype).name}_to_{NAMES[t]}", [v.astype(dtype)],
                      tensor(t, v & ((1 << BITS[t]) - 1)), to=t)
    v = np.array([1, 1.25, 1.5, 1.75, 3, 6, 0.3, 2.0 ** -127, 2.0 ** 127, 1e-3], np.float32)
    power = np.log2(v.astype(np.float64))
    for mode, codes in (("up", np.ceil(power)), ("down", np.floor(power)),
                        ("nearest", np.floor(power) + (v / 2 ** np.floor(power) >= 1.5))):
        yield one("Cast", "float_to_e8m0_" + mode, [v], tensor(E8M0, codes.astype(int) + 127), to=E8M0,
                  round_mode=mode)


def quantize(t, x, scale, zero):
    q = (x.astype(np.float32) / scale.astype(np.float32)).astype(np.float32)
    if t in FLOAT8 + [E2M1]:
        return nearest(t, q)
    low, high = (0, (1 << BITS[t]) - 1) if t in (UINT4, UINT2) else (-(1 << (BITS[t] - 1)), (1 << (BITS[t] - 1)) - 1)
    return np.clip(np.rint(q) + decode(t, zero), low, high).astype(np.int64) & ((1 << BITS[t]) - 1)


def scaled():
    for t in PACKED + FLOAT8:
        r, n = rng("scale" + NAMES[t]), NAMES[t]
        whole = t in (UINT4, INT4, UINT2, INT2)
        x = r.uniform(-6, 6, (3, 5)).astype(np.float32)
        one_scale, row_scale = np.float32(0.5), r.uniform(0.3, 2, 3).astype(np.float32)
        block_scale = r.uniform(0.3, 2, (3, 3)).astype(np.float32)
        for form, scale, attrs in (("tensor", one_scale, {}), ("axis", row_scale, dict(axis=0)),
                                   ("block", block_scale, dict(axis=1, block_size=2))):
            zero = some(r, t, *np.shape(scale)) if whole else np.zeros(np.shape(scale), np.int64)
            def spread(p):
                p = np.asarray(p)
                return (p if p.ndim == 0 else p[:, None] if p.ndim == 1 else np.repeat(p, 2, axis=1)[:, :5])
            s, z = np.broadcast_to(spread(scale), (3, 5)), np.broadcast_to(spread(zero), (3, 5))
            yield one("QuantizeLinear", f"{n}_{form}", [x, scale, tensor(t, zero)],
                      tensor(t, quantize(t, x, s, z)), **attrs)
            codes = some(r, t, 3, 5)
            y = ((decode(t, codes) - decode(t, z)) * s).astype(np.float32)
            yield one("DequantizeLinear", f"{n}_{form}", [tensor(t, codes), scale, tensor(t, zero)], y, **attrs)
        yield one("QuantizeLinear", n + "_asked", [x, one_scale],
                  tensor(t, quantize(t, x, np.full((3, 5), one_scale), np.zeros((3, 5), np.int64))), output_dtype=t)
        yield one("DequantizeLinear", n + "_power", [tensor(t, codes), tensor(E8M0, np.array(126))],
                  (decode(t, codes) / 2).astype(np.float16), output_dtype=10)
        yield one("QuantizeLinear", n + "_power", [x, tensor(E8M0, np.array(126)), tensor(t, np.array([0]))],
                  tensor(t, quantize(t, x, np.full((3, 5), np.float32(0.5)), np.zeros((3, 5), np.int64))))


def products():
    r = rng("products")
    for t in FLOAT8:
        a, b = r.choice(nearest(t, np.arange(-4, 5)), (3, 4)), r.choice(nearest(t, np.arange(-4, 5)), (4, 2))
        y = decode(t, a) @ decode(t, b) * 0.5
        zero = tensor(t, np.array(0))
        yield one("QLinearMatMul", NAMES[t], [tensor(t, a), np.float32(0.5), zero, tensor(t, b), np.float32(2), zero,
                                              np.float32(2), zero], tensor(t, nearest(t, y)), opset=21)
    a, b = r.randint(0, 256, (2, 3, 4)).astype(np.uint8), r.randint(-128, 128, (2, 4, 5)).astype(np.int8)
    sa, za = np.exp2(r.randint(-2, 2, (2, 3, 1))).astype(np.float32), r.randint(0, 256, (2, 3, 1)).astype(np.uint8)
    sb, zb = np.exp2(r.randint(-2, 2, (2, 1, 5))).astype(np.float32), r.randint(-9, 9, (2, 1, 5)).astype(np.int8)
    y = ((a.astype(float) - za) * sa) @ ((b.astype(float) - zb) * sb) / 256
    y = np.clip(np.rint(y) + 100, 0, 255).astype(np.uint8)
    yield one("QLinearMatMul", "each_matrix", [a, sa, za, b, sb, zb, np.float32(256), np.uint8(100)], y, opset=10)


def cases():
    yield from movements()
    yield from casts()
    yield from scaled()
    yield from products()
