# SPDX-License-Identifier: Apache-2.0
"""com.microsoft operators of exported, optimised and quantized models: fused, channels-last and quantized forms."""
import numpy as np
from onnx import helper
from record import Bits, Case, rng

DOMAIN = "com.microsoft"
U8, I8, F32 = np.uint8, np.int8, np.float32
INT4, UINT4 = 22, 21


def one(op, name, inputs, outputs=1, constant=(), expected=None, **attrs):
    """A case of one node. |inputs| are in the operator's order, None where absent; positions |constant| are
    initializers."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if v is not None and i not in constant}
    kept = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if v is not None and i in constant}
    return Case(DOMAIN, op, name, [helper.make_node(op, names, results, domain=DOMAIN, name=op.lower(), **attrs)],
                given, results, initializers=kept,
                expected=dict(zip(results, expected)) if expected is not None else None)


def real(r, *shape, dtype=F32):
    return r.uniform(-2, 2, shape).astype(dtype)


def quantized(r, dtype, *shape):
    info = np.iinfo(dtype)
    return r.randint(info.min, info.max + 1, shape).astype(dtype)


def scale(value):
    return np.array(value, F32)


def zero(dtype, value):
    return np.array(value, dtype)


def fused():
    r = rng("fused")
    x, w, b = real(r, 2, 3, 6, 5), real(r, 4, 3, 3, 3), real(r, 4)
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    z = real(r, 2, 4, 6, 5)
    yield one("FusedConv", "none", [x, w, b], constant=(1, 2), **conv)
    yield one("FusedConv", "relu", [x, w, b], constant=(1, 2), activation="Relu", **conv)
    yield one("FusedConv", "relu_no_bias_strided", [x, w], activation="Relu", kernel_shape=[3, 3], strides=[2, 1])
    yield one("FusedConv", "sum_relu", [x, w, b, z], constant=(1, 2), activation="Relu", **conv)
    yield one("FusedConv", "sum_without_bias", [x, w, None, z], constant=(1,), **conv)
    yield one("FusedConv", "tanh", [x, w, b], constant=(1, 2), activation="Tanh", **conv)
    yield one("FusedConv", "sigmoid", [x, w, b], constant=(1, 2), activation="Sigmoid", **conv)
    yield one("FusedConv", "leaky_relu", [x, w, b], constant=(1, 2), activation="LeakyRelu",
              activation_params=[0.3], **conv)
    yield one("FusedConv", "clip", [x, w, b], constant=(1, 2), activation="Clip", activation_params=[-1.5, 3.0],
              **conv)
    yield one("FusedConv", "hard_sigmoid", [x, w, b], constant=(1, 2), activation="HardSigmoid",
              activation_params=[0.1, 0.4], **conv)
    yield one("FusedConv", "same_upper_group", [real(r, 1, 4, 5, 5), real(r, 4, 2, 2, 3), real(r, 4)],
              activation="Relu", auto_pad="SAME_UPPER", group=2)
    yield one("FusedConv", "one_dimension", [real(r, 2, 2, 9), real(r, 3, 2, 3)], activation="Relu", dilations=[2])

    a, bb, c = real(r, 4, 6), real(r, 6, 5), real(r, 5)
    for activation, more in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                             ("Elu", {"activation_alpha": 0.7}),
                             ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softplus", {}),
                             ("Softsign", {}), ("ThresholdedRelu", {"activation_alpha": 0.5}),
                             ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.2}),
                             ("Celu", {"activation_alpha": 0.6}),
                             ("ParametricSoftplus", {"activation_alpha": 0.5, "activation_beta": 1.5}),
                             ("ScaledTanh", {"activation_alpha": 0.5, "activation_beta": 1.5})):
        yield one("FusedGemm", activation.lower(), [a, bb, c], activation=activation, **more)
    yield one("FusedGemm", "transposed_scaled", [a.T.copy(), bb.T.copy(), real(r, 4, 1)], activation="Relu", transA=1,
              transB=1, alpha=0.5, beta=2.0)
    yield one("FusedGemm", "without_c", [a, bb], activation="Relu")

    batch, other = real(r, 2, 3, 4, 5), real(r, 2, 3, 5, 6)
    yield one("FusedMatMul", "plain", [batch, other])
    yield one("FusedMatMul", "alpha", [batch, other], alpha=0.125)
    yield one("FusedMatMul", "trans_a", [batch.swapaxes(2, 3).copy(), other], transA=1)
    yield one("FusedMatMul", "trans_b", [batch, other.swapaxes(2, 3).copy()], transB=1, alpha=1.5)
    yield one("FusedMatMul", "matrices", [real(r, 4, 5), real(r, 3, 5)], transB=1, alpha=0.25)
    yield one("FusedMatMul", "matrices_both", [real(r, 5, 4), real(r, 3, 5)], transA=1, transB=1)
    yield one("FusedMatMul", "trans_batch_a", [real(r, 4, 2, 3, 5), other], transBatchA=1)
    yield one("FusedMatMul", "trans_batch_a_and_a", [real(r, 5, 2, 3, 4), other], transBatchA=1, transA=1)
    yield one("FusedMatMul", "trans_batch_b", [batch, real(r, 5, 2, 3, 6)], transBatchB=1, alpha=2.0)
    yield one("FusedMatMul", "trans_batch_b_and_b", [batch, real(r, 6, 2, 3, 5)], transBatchB=1, transB=1)
    yield one("FusedMatMul", "broadcast", [real(r, 2, 1, 4, 5), real(r, 3, 5, 2)])
    yield one("FusedMatMul", "row_ignores_trans_a", [real(r, 5), real(r, 5, 3)], transA=1)
    yield one("FusedMatMul", "column_ignores_trans_b", [real(r, 3, 5), real(r, 5)], transB=1)
    yield one("FusedMatMul", "double", [real(r, 3, 5, dtype=np.float64), real(r, 5, 2, dtype=np.float64)], alpha=0.3)
    yield one("TransposeMatMul", "trans_b_alpha", [batch, other.swapaxes(2, 3).copy()], transB=1, alpha=0.5)
    yield one("TransposeMatMul", "trans_a", [real(r, 5, 4), real(r, 5, 3)], transA=1)
    yield one("FusedMatMulActivation", "relu", [batch, other], activation="Relu", alpha=0.5,
              expected=[np.maximum(batch @ other * F32(0.5), 0)])
    yield one("FusedMatMulActivation", "leaky_relu_transposed", [batch, other.swapaxes(2, 3).copy()], transB=1,
              activation="LeakyRelu", activation_alpha=0.25,
              expected=[np.where(batch @ other < 0, F32(0.25), F32(1)) * (batch @ other)])


def channels_last():
    r = rng("channels_last")
    for dtype in (U8, I8):
        x = quantized(r, dtype, 2, 7, 6, 3)
        kind = np.dtype(dtype).name
        yield one("NhwcMaxPool", kind, [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        yield one("NhwcMaxPool", kind + "_ceil_dilated", [x], kernel_shape=[2, 2], strides=[2, 2], dilations=[2, 1],
                  ceil_mode=1)
    yield one("NhwcMaxPool", "same_lower", [quantized(r, U8, 1, 5, 5, 2)], kernel_shape=[2, 2], auto_pad="SAME_LOWER")
    yield one("NhwcMaxPool", "one_dimension", [quantized(r, U8, 2, 9, 3)], kernel_shape=[3])
    x, w, b, z = real(r, 1, 5, 6, 3), real(r, 4, 3, 3, 3), real(r, 4), real(r, 1, 5, 6, 4)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = sum(np.einsum("nhwc,mc->nhwm", padded[:, i:i + 5, j:j + 6], w[:, :, i, j]) for i in range(3) for j in range(3))
    window = dict(pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    yield one("NhwcConv", "float", [x, w, b], constant=(1, 2), expected=[y + b], **window)
    yield one("NhwcFusedConv", "relu", [x, w, b], constant=(1, 2), activation="Relu", expected=[np.maximum(y + b, 0)],
              **window)
    yield one("NhwcFusedConv", "sum_without_bias", [x, w, None, z], constant=(1,), expected=[y + z], **window)


def elementwise_quantized():
    r = rng("elementwise_quantized")
    for op, out in (("QLinearAdd", 0.03127), ("QLinearMul", 0.01733)):
        for dtype, za, zb, zc in ((U8, 121, 133, 109), (I8, -5, 7, 3)):
            kind = np.dtype(dtype).name
            args = [quantized(r, dtype, 2, 3, 9), scale(0.0137), zero(dtype, za), quantized(r, dtype, 2, 3, 9),
                    scale(0.0211), zero(dtype, zb), scale(out), zero(dtype, zc)]
            yield one(op, kind, args, constant=(1, 2, 4, 5, 6, 7))
            args[3] = quantized(r, dtype, 3, 1)
            yield one(op, kind + "_broadcast", args, constant=(1, 2, 4, 5, 6, 7))
        a, b = quantized(r, U8, 40), quantized(r, U8, 40)
        real_c = (a * 0.0137 + b * 0.0211 if op == "QLinearAdd" else a * 0.0137 * b * 0.0211) / 0.05113
        yield one(op, "no_zero_points", [a, scale(0.0137), None, b, scale(0.0211), None, scale(0.05113)],
                  constant=(1, 4, 6), expected=[np.rint(real_c).clip(0, 255).astype(U8)])
        yield one(op, "scalar_operand", [zero(U8, 77), scale(0.0137), zero(U8, 20), quantized(r, U8, 2, 11),
                                         scale(0.0211), zero(U8, 128), scale(0.031), zero(U8, 128)])
    for dtype, zx, zy in ((U8, 131, 0), (I8, 4, -128)):
        kind = np.dtype(dtype).name
        every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype).reshape(2, 128)
        yield one("QLinearSigmoid", kind, [every, scale(0.0413), zero(dtype, zx), scale(0.0039), zero(dtype, zy)],
                  constant=(1, 2, 3, 4))
        yield one("QLinearLeakyRelu", kind, [every, scale(0.0413), zero(dtype, zx), scale(0.0377),
                                             zero(dtype, zy // 2)], constant=(1, 2, 3, 4), alpha=0.13)
    yield one("QLinearSigmoid", "no_zero_points", [quantized(r, U8, 30), scale(0.02), None, scale(0.0041), None])
    yield one("QLinearLeakyRelu", "default_alpha", [quantized(r, I8, 30), scale(0.0531), zero(I8, 20), scale(0.0177),
                                                    None])
    for dtype, zx, zy, zz in ((U8, 110, 140, 120), (I8, -3, 9, 1)):
        args = [r.rand(2, 1, 5) > 0.5, quantized(r, dtype, 2, 3, 5), scale(0.021), zero(dtype, zx),
                quantized(r, dtype, 3, 1), scale(0.033), zero(dtype, zy), scale(0.027), zero(dtype, zz)]
        yield one("QLinearWhere", np.dtype(dtype).name, args, constant=(2, 3, 5, 6, 7, 8))
        joined = [scale(0.027), zero(dtype, zz), quantized(r, dtype, 2, 3, 4), scale(0.021), zero(dtype, zx),
                  quantized(r, dtype, 2, 1, 4), scale(0.033), zero(dtype, zy), quantized(r, dtype, 2, 2, 4),
                  scale(0.027), zero(dtype, zz)]
        yield one("QLinearConcat", np.dtype(dtype).name, joined, constant=(0, 1, 3, 4, 6, 7, 9, 10), axis=1)
    yield one("QLinearConcat", "negative_axis_dynamic", joined[:2] + joined[2:5] + joined[2:5], axis=-1)
    for dtype in (U8, I8):
        kind, low = np.dtype(dtype).name, np.iinfo(dtype).min
        args = [quantized(r, dtype, 2, 3, 10), scale(0.0613), zero(dtype, low + 128), scale(1 / 256), zero(dtype, low)]
        yield one("QLinearSoftmax", kind, args, constant=(1, 2, 3, 4), axis=-1, opset=13)
        yield one("QLinearSoftmax", kind + "_middle", args, constant=(1, 2, 3, 4), axis=1, opset=13)
        yield one("QLinearSoftmax", kind + "_legacy", args, constant=(1, 2, 3, 4), axis=1, opset=12)


def pools_quantized():
    r = rng("pools_quantized")
    for dtype, zx, zy in ((U8, 121, 109), (I8, -5, 3)):
        kind = np.dtype(dtype).name
        x = quantized(r, dtype, 2, 3, 7, 6)
        tail = [scale(0.0137), zero(dtype, zx), scale(0.0091), zero(dtype, zy)]
        last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        fixed = (1, 2, 3, 4)
        yield one("QLinearAveragePool", kind, [x] + tail, constant=fixed, kernel_shape=[3, 2], strides=[2, 1])
        yield one("QLinearAveragePool", kind + "_pads", [x] + tail, constant=fixed, kernel_shape=[3, 3],
                  pads=[1, 1, 1, 1])
        yield one("QLinearAveragePool", kind + "_count_pads", [x] + tail, constant=fixed, kernel_shape=[3, 3],
                  pads=[1, 1, 1, 1], count_include_pad=1)
        yield one("QLinearAveragePool", kind + "_channels_last", [last] + tail, constant=fixed, kernel_shape=[2, 3],
                  strides=[2, 2], channels_last=1, ceil_mode=1)
        yield one("QLinearGlobalAveragePool", kind, [x] + tail, constant=fixed, channels_last=0)
        yield one("QLinearGlobalAveragePool", kind + "_channels_last", [last] + tail, constant=fixed, channels_last=1)
        mean = np.rint((x.astype(float) - zx).mean((1, 3)) * 0.0137 / 0.0091) + zy
        info = np.iinfo(dtype)
        mean = mean.clip(info.min, info.max).astype(dtype)
        yield one("QLinearReduceMean", kind, [x] + tail, constant=fixed, axes=[-1, 1], keepdims=0, expected=[mean])
        yield one("QLinearReduceMean", kind + "_keepdims", [x] + tail, constant=fixed, axes=[1, 3], keepdims=1,
                  expected=[mean.reshape(2, 1, 7, 1)])
    x = quantized(r, U8, 1, 2, 9)
    mean = np.rint(sum(x[:, :, i:i + 6] * 0.02 for i in range(4)) / 4 / 0.0113).clip(0, 255).astype(U8)
    yield one("QLinearAveragePool", "no_zero_points", [x, scale(0.02), None, scale(0.0113)], kernel_shape=[4],
              expected=[mean])
    yield one("QLinearGlobalAveragePool", "one_dimension", [quantized(r, U8, 2, 3, 9)] + [
        scale(0.02), zero(U8, 3), scale(0.011), zero(U8, 7)])


def products_quantized():
    r = rng("products_quantized")
    for ta, tb in ((U8, U8), (U8, I8), (I8, I8)):
        kind = f"{np.dtype(ta).name}_{np.dtype(tb).name}"
        a, b = quantized(r, ta, 2, 3, 8), quantized(r, tb, 8, 5)
        za, zb = zero(ta, 11 if ta == I8 else 113), zero(tb, 7 if tb == I8 else 129)
        sb = r.uniform(0.01, 0.05, 5).astype(F32)
        yield one("MatMulIntegerToFloat", kind, [a, b, scale(0.013), scale(0.021), za, zb], constant=(1,))
        yield one("MatMulIntegerToFloat", kind + "_columns_bias", [
            a, b, scale(0.013), sb, za, quantized(r, tb, 5), real(r, 5)], constant=(1, 3, 5, 6))
        yield one("QGemm", kind, [a[0], scale(0.013), za, b, scale(0.021), zb,
                                  r.randint(-900, 900, 5).astype(np.int32), scale(0.11), za])
        yield one("QGemm", kind + "_float", [a[1], scale(0.013), za, b, sb, quantized(r, tb, 5),
                                             r.randint(-900, 900, (3, 5)).astype(np.int32)], alpha=0.5,
                  constant=(3, 4, 5))
    yield one("MatMulIntegerToFloat", "no_zero_points", [a, b, scale(0.013), scale(0.021)])
    yield one("MatMulIntegerToFloat", "batched", [quantized(r, U8, 2, 3, 8), quantized(r, I8, 2, 8, 4), scale(0.013),
                                                  r.uniform(0.01, 0.05, (2, 1, 4)).astype(F32), zero(U8, 8),
                                                  np.zeros((2, 1, 4), I8)])
    yield one("QGemm", "transposed", [quantized(r, U8, 8, 3), scale(0.013), zero(U8, 99), quantized(r, I8, 5, 8),
                                      scale([0.02, 0.03, 0.01, 0.05, 0.04]), zero(I8, [0, 1, 2, 3, 4]), None,
                                      scale(0.09), zero(U8, 100)], transA=1, transB=1, alpha=0.75)
    for tb in (U8, I8):
        kind = np.dtype(tb).name
        a, b = real(r, 2, 4, 8), quantized(r, tb, 8, 5)
        yield one("DynamicQuantizeMatMul", kind, [a, b, scale(0.021), zero(tb, 9)], constant=(1, 2, 3))
        yield one("DynamicQuantizeMatMul", kind + "_columns_bias", [
            a, b, r.uniform(0.01, 0.05, 5).astype(F32), quantized(r, tb, 5), real(r, 5)], constant=(1, 2, 3, 4))
    yield one("DynamicQuantizeMatMul", "no_zero_point", [a, b, scale(0.021)])
    yield one("MatMulInteger16", "int16", [r.randint(-999, 999, (2, 3, 4)).astype(np.int16),
                                           r.randint(-999, 999, (4, 5)).astype(np.int16)])
    for op_last in (0, 1):
        for tx, tw in ((U8, U8), (U8, I8), (I8, I8)):
            x, w = quantized(r, tx, 1, 3, 6, 5), quantized(r, tw, 4, 3, 3, 2)
            zx, zw = (113 if tx == U8 else 11), (129 if tw == U8 else 0)
            if op_last:
                x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
            yield one("QLinearConv", f"{np.dtype(tx).name}_{np.dtype(tw).name}" + ("_channels_last" if op_last else ""),
                      [x, scale(0.013), zero(tx, zx), w, r.uniform(0.01, 0.03, 4).astype(F32), np.full(4, zw, tw),
                       scale(0.33), zero(tx, zx), r.randint(-900, 900, 4).astype(np.int32)],
                      constant=tuple(range(1, 9)), pads=[1, 0, 1, 1], strides=[1, 2], channels_last=op_last)
    yield one("QLinearConv", "group", [quantized(r, U8, 1, 4, 4, 5), scale(0.013), zero(U8, 120),
                                       quantized(r, I8, 6, 2, 2, 2), scale(0.02), zero(I8, 0), scale(0.21),
                                       zero(U8, 7)], constant=tuple(range(1, 8)), group=2, auto_pad="SAME_UPPER")


def lstm_quantized():
    r = rng("lstm_quantized")
    for kind, dtype in (("int8", I8), ("uint8", U8)):
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            hidden, width, time, batch = 4, 3, 5, 2
            w, rec = quantized(r, dtype, n, width, 4 * hidden), quantized(r, dtype, n, hidden, 4 * hidden)
            z = 0 if dtype == I8 else 128
            yield one("DynamicQuantizeLSTM", f"{kind}_{direction}", [
                real(r, time, batch, width), w, rec, real(r, n, 8 * hidden), None, None, None, None,
                scale([0.006] * n), np.full(n, z, dtype), scale([0.005] * n), np.full(n, z, dtype)],
                outputs=3, constant=(1, 2, 3, 8, 9, 10, 11), direction=direction, hidden_size=hidden)


def linear():
    r = rng("linear")
    x = real(r, 3, 8) * 20
    for dtype, z in ((U8, 128), (I8, 3), (np.uint16, 32000), (np.int16, -7)):
        kind = np.dtype(dtype).name
        yield one("QuantizeLinear", kind, [x, scale(0.137), zero(dtype, z)], constant=(1, 2))
        yield one("DequantizeLinear", kind, [quantized(r, dtype, 3, 8), scale(0.137), zero(dtype, z)],
                  constant=(1, 2))
    yield one("QuantizeLinear", "axis_0", [x, scale([0.1, 0.2, 0.3]), zero(np.int16, [1, 2, 3])], axis=0)
    yield one("QuantizeLinear", "no_zero_point", [x, scale(0.137)])
    yield one("DequantizeLinear", "axis_1", [quantized(r, np.uint16, 3, 2, 4), scale([0.1, 0.2]),
                                             zero(np.uint16, [100, 60000])], axis=1)
    yield one("DequantizeLinear", "int32", [r.randint(-9999, 9999, (3, 4)).astype(np.int32), scale(0.02)])
    yield one("DequantizeLinear", "float16", [quantized(r, U8, 3, 8), np.array(0.137, np.float16), zero(U8, 9)])


def moves():
    r = rng("moves")
    x = real(r, 3, 4)
    i64 = lambda *values: np.array(values, np.int64)  # noqa: E731
    yield one("Pad", "constant", [x, i64(0, 2, 1, 0), np.array([1.5], F32)])
    yield one("Pad", "row_of_pads", [x, i64(1, 0, 0, 2).reshape(1, 4), np.array(0.5, F32)], constant=(1,))
    yield one("Pad", "row_of_pads_dynamic", [x, i64(1, 0, 0, 2).reshape(1, 4)])
    yield one("Pad", "reflect", [x, i64(1, 2, 0, 1)], mode="reflect", constant=(1,))
    yield one("Pad", "edge", [x, i64(1, 2, 0, -1)], mode="edge", constant=(1,))
    for axis in (0, 1, -1, -3):
        yield one("ExpandDims", f"axis_{axis}".replace("-", "minus_"), [x, np.array(axis, np.int32)], constant=(1,))
    yield one("ExpandDims", "dynamic", [x, np.array(1, np.int32)])
    yield one("Range", "float", [np.array(1, F32), np.array(4, F32), np.array(0.5, F32)])
    yield one("Range", "default_delta", [np.array([2], np.int64), np.array([7], np.int64)])
    yield one("Range", "int32_down", [np.array([9], np.int32), np.array(1, np.int32), np.array([-3], np.int32)])
    yield one("GatherND", "pairs", [x, i64(0, 1, 2, 3).reshape(2, 2)])
    yield one("GatherND", "rows", [real(r, 2, 3, 4), np.array([[1], [0], [-1]], np.int32)])
    yield one("Trilu", "lower", [real(r, 2, 4, 3), i64(1)[0]], upper=0)
    yield one("Trilu", "upper", [real(r, 4, 4)])
    yield one("Unique", "float", [np.array([2, 1, 1, 3, 4, 3], F32)], outputs=3)
    yield one("SampleOp", "echo", [x])
    image, grid = real(r, 1, 2, 4, 5), r.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(F32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            if (mode, padding) == ("bicubic", "border"):
                continue  # the peer clamps positions that the reference implementation leaves alone
            yield one("GridSample", f"{mode}_{padding}", [image, grid], mode=mode, padding_mode=padding)
    yield one("GridSample", "defaults_aligned", [image, grid], align_corners=1)
    yield one("UnfoldTensor", "last", [real(r, 2, 7)], dim=-1, size=3, step=2)
    yield one("UnfoldTensor", "first", [real(r, 5, 2)], dim=0, size=2, step=1)
    yield one("UnfoldTensor", "int64", [np.arange(24, dtype=np.int64).reshape(2, 6, 2)], dim=1, size=4, step=2)
    yield one("ConvTransposeWithDynamicPads", "constant_pads", [
        real(r, 1, 2, 3, 3), real(r, 2, 3, 3, 3), i64(1, 0, 1, 1), real(r, 3)], constant=(2,), strides=[2, 2],
        output_padding=[1, 0])
    yield one("ConvTransposeWithDynamicPads", "dynamic_pads", [
        real(r, 1, 2, 3, 3), real(r, 2, 3, 3, 3), i64(1, 0, 1, 1), real(r, 3)], strides=[2, 2])


def others():
    r = rng("others")
    for dtype in (np.uint32, np.int32, np.uint64, np.int64, F32, np.float64):
        data = (real(r, 3, 4).astype(dtype) if np.dtype(dtype).kind == "f" else r.randint(0, 9999, (3, 4)).astype(dtype))
        yield one("MurmurHash3", np.dtype(dtype).name, [data])
    yield one("MurmurHash3", "seed_signed", [r.randint(-99, 99, 5).astype(np.int32)], seed=77, positive=0)
    yield one("MurmurHash3", "text", [np.array([["", "a"], ["ab", "abc"], ["four", "fünf!"]], dtype=object)], seed=3)
    yield one("NGramRepeatBlock", "two", [np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64), real(r, 2, 6)],
              ngram_size=2)
    yield one("NGramRepeatBlock", "three", [np.array([[1, 2, 3, 1, 2]], np.int64), real(r, 1, 6)], ngram_size=3)
    yield one("NGramRepeatBlock", "longer_than_text", [np.array([[1, 2]], np.int64), real(r, 1, 6)], ngram_size=4)
    i64 = lambda *values: np.array(values, np.int64)  # noqa: E731
    src = i64(1, 5, 3, 4, 2, 5, 3, 6)
    grams = dict(min_ngram_size=1, max_ngram_size=3)
    yield one("BifurcationDetector", "start", [src, i64(1, 5, 3), i64(0)], outputs=2, **grams)
    yield one("BifurcationDetector", "one_match", [src, i64(7, 3, 4), i64(0)], outputs=2, **grams)
    yield one("BifurcationDetector", "predicted", [src, i64(9, 5), i64(2), i64(3, 4, 2, 9, 9, 9, 9)], outputs=2,
              **grams)
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, -0.2, 1.2, 0.6]], F32)
    for mode in ("bilinear", "nearest"):
        yield one("CropAndResize", mode, [real(r, 2, 3, 5, 6), boxes, np.array([0, 1, 0], np.int32),
                                          np.array([3, 4], np.int32)], constant=(3,), mode=mode,
                  extrapolation_value=0.7)
    yield one("CropAndResize", "one_line_dynamic", [real(r, 1, 2, 5, 6), boxes[:1], np.array([0], np.int32),
                                                    np.array([1, 1], np.int32)])
    for metric in ("euclidean", "sqeuclidean"):
        yield one("CDist", metric, [real(r, 4, 3), real(r, 5, 3)], metric=metric)
    yield one("CDist", "double", [real(r, 4, 3, dtype=np.float64), real(r, 2, 3, dtype=np.float64)])
    yield one("Inverse", "matrix", [real(r, 4, 4)])
    yield one("Inverse", "batch", [real(r, 2, 3, 3)])
    yield one("Inverse", "double", [real(r, 3, 3, dtype=np.float64)])
    yield one("DynamicTimeWarping", "matrix", [real(r, 4, 6)])
    yield one("DynamicTimeWarping", "batch_of_one", [real(r, 1, 5, 3)])


def low_bits():
    r = rng("low_bits")
    for quant_type, kind in ((0, "fp4"), (1, "nf4")):
        k, n, block = 32, 6, 16
        yield one("MatMulBnb4", kind, [real(r, 3, k), r.randint(0, 256, n * k // 2).astype(U8),
                                       r.uniform(0.5, 2, n * k // block).astype(F32)], constant=(1, 2), K=k, N=n,
                  block_size=block, quant_type=quant_type)
    yield one("MatMulBnb4", "batched", [real(r, 2, 3, 48), r.randint(0, 256, 5 * 24).astype(U8),
                                        r.uniform(0.5, 2, 5 * 48 // 16).astype(F32)], constant=(1, 2), K=48, N=5,
              block_size=16, quant_type=1)
    for kind, dtype in (("int4", INT4), ("uint4", UINT4)):
        data = Bits(dtype, [4, 32], r.randint(0, 256, 64).astype(U8))
        scales = r.uniform(0.1, 1, (4, 2)).astype(F32)
        zeros = Bits(dtype, [4, 2], r.randint(0, 256, 4).astype(U8))
        rows = np.array([[3, 0], [1, -1]], np.int64)
        yield one("GatherBlockQuantized", kind + "_rows", [data, rows, scales, zeros], constant=(0, 2, 3),
                  gather_axis=0, quantize_axis=1, block_size=16)
        yield one("GatherBlockQuantized", kind + "_no_zero_points", [data, rows.astype(np.int32), scales],
                  constant=(0, 2), gather_axis=0, quantize_axis=1, block_size=16)
        yield one("GatherBlockQuantized", kind + "_quantize_axis_0", [
            Bits(dtype, [32, 6], r.randint(0, 256, 96).astype(U8)), np.array([2, 0], np.int64),
            r.uniform(0.1, 1, (2, 6)).astype(F32)], constant=(0, 2), gather_axis=1, quantize_axis=0, block_size=16)
    yield one("GatherBlockQuantized", "uint8_of_4_bits", [
        quantized(r, U8, 4, 16), rows, scales, r.randint(0, 256, (4, 1)).astype(U8)], constant=(0, 2, 3),
        gather_axis=0, quantize_axis=1, block_size=16, bits=4)
    yield one("GatherBlockQuantized", "uint8_of_8_bits", [quantized(r, U8, 4, 32), rows, scales], constant=(0, 2),
              gather_axis=0, quantize_axis=1, block_size=16, bits=8)
    yield one("GatherBlockQuantized", "float16_scales", [
        data, rows, scales.astype(np.float16), zeros], constant=(0, 2, 3), gather_axis=0, quantize_axis=1,
        block_size=16)


def spectra():
    r = rng("spectra")
    x = real(r, 2, 3, 8)
    y = np.fft.rfft(x)
    parts = np.stack([y.real, y.imag], -1).astype(F32)
    yield one("Rfft", "last_dimension", [x], signal_ndim=1, onesided=1, normalized=0, expected=[parts])
    yield one("Irfft", "last_dimension", [parts], signal_ndim=1, onesided=1, normalized=0,
              expected=[np.fft.irfft(y).astype(F32)])


def removed():
    """Of ai.onnx before opset 10."""
    r = rng("removed")
    x = real(r, 1, 2, 4, 6)
    for op, name, inputs, attrs in (
            ("Affine", "both", [x], dict(alpha=2.0, beta=0.5)),
            ("Affine", "defaults", [x], {}),
            ("Scale", "float", [x], dict(scale=0.3)),
            ("ImageScaler", "channels", [x], dict(scale=2.0, bias=[1.0, 3.0])),
            ("Crop", "borders", [x], dict(border=[1, 1, 2, 1])),
            ("Crop", "size", [x], dict(border=[1, 0, 2, 1], scale=[2, 3])),
            ("ScaledTanh", "float", [x], dict(alpha=2.0, beta=1.5)),
            ("ParametricSoftplus", "float", [x], dict(alpha=2.0, beta=1.5)),
            ("DynamicSlice", "negative", [x[0, 0], np.array([1, 0]), np.array([3, -1])], {}),
            ("DynamicSlice", "axes", [x, np.array([1]), np.array([5]), np.array([3])], {})):
        names = [f"x{i}" for i in range(len(inputs))]
        yield Case("ai.onnx", op, name, [helper.make_node(op, names, ["y0"], name=op.lower(), **attrs)],
                   dict(zip(names, inputs)), ["y0"], opsets={"": 7})


def texts_split():
    """Texts as skl2onnx splits them, and in the operator's other ways."""
    def texts(rows):
        return np.array(rows, object)
    line = ["one two", "three,four  five", "", "...", "Fluß naïve x", "a\nb ö", "日本語 1 22"]
    pairs = [["aXbXXc", ""], ["aaYXbb", "X"], ["ab1c22d", "1,2;3"]]
    for name, rows, attrs in (
            ("words", line, dict(tokenexp="[a-zA-Z0-9_]+")),
            ("words_of_columns", [[row] for row in line], dict(tokenexp="\\w\\w+")),
            ("words_of_two_characters", line, dict(tokenexp="[^ ]+", mincharnum=2)),
            ("marked", line, dict(tokenexp="[^ ]+", mark=1)),
            ("marked_without_a_token", ["", "..."], dict(tokenexp="[a-z]+", mark=1)),
            ("characters", line, dict(separators=[""])),
            ("characters_by_a_dot", line, dict(tokenexp=".", mark=1)),
            ("two_characters_each", line, dict(tokenexp="..", pad_value="")),
            ("the_longest_match", ["aab", "abab"], dict(tokenexp="a|aa|aab")),
            ("matches_of_nothing", ["abc", "bb"], dict(tokenexp="b*")),
            ("a_separator", pairs, dict(separators=["X"])),
            ("separators_in_turn", pairs, dict(separators=["X", "YX"], mincharnum=2)),
            ("separators_in_the_other_turn", pairs, dict(separators=["YX", "X"])),
            ("separators_of_numbers", pairs, dict(separators=["[0-9]+", "[,;]"])),
            ("separators_of_nothing", pairs, dict(separators=["c*", "X"])),
            ("separators_before_an_expression", pairs, dict(separators=["X"], tokenexp="a"))):
        yield one("Tokenizer", name, [texts(rows)], **{"mark": 0, "mincharnum": 1, "pad_value": "#", **attrs})


def cases():
    for family in (texts_split, fused, channels_last, elementwise_quantized, pools_quantized, products_quantized, lstm_quantized,
                   linear, moves, others, low_bits, spectra, removed):
        yield from family()
