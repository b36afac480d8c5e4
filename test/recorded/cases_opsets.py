# SPDX-License-Identifier: Apache-2.0
"""What operators meant at their older versions, which ONNX Runtime no longer has, by the standard's text of the time:
attributes that became inputs, broadcasting by attribute, other defaults."""
import numpy as np
from onnx import helper
from record import Case, rng

F32 = np.float32


def one(op, name, opset, inputs, expected, **attrs):
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(len(expected))]
    return Case("ai.onnx", op, name, [helper.make_node(op, names, results, name=op.lower(), **attrs)],
                dict(zip(names, inputs)), results, opsets={"": opset}, expected=dict(zip(results, expected)))


def real(r, *shape):
    return r.uniform(-2, 2, shape).astype(F32)


def ints(*values):
    return np.array(values, np.int64)


def broadcasts():
    r = rng("broadcasts")
    x = real(r, 2, 3, 4, 5)
    operators = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    for op, fn in operators.items():
        b = real(r, 3, 4) + 4
        yield one(op, "opset1_axis", 1, [x, b], [fn(x, b[:, :, None])], broadcast=1, axis=1, consumed_inputs=[0, 0])
        yield one(op, "opset6_axis", 6, [x, b], [fn(x, b[:, :, None])], broadcast=1, axis=1)
        yield one(op, "opset6_negative_axis", 6, [x, b], [fn(x, b[:, :, None])], broadcast=1, axis=-3)
        yield one(op, "opset6_suffix", 6, [x, real(r, 4, 5) * 0 + 3], [fn(x, F32(3))], broadcast=1)
    b = real(r, 2)
    power = np.abs(x)
    yield one("Pow", "opset1_axis", 1, [power, b], [np.power(power, b[:, None, None, None])], broadcast=1, axis=0)
    for op, fn in {"Less": np.less, "Greater": np.greater}.items():
        yield one(op, "opset1_axis", 1, [x, b], [fn(x, b[:, None, None, None])], broadcast=1, axis=0)
    i, j = r.randint(0, 3, (2, 3)).astype(np.int32), r.randint(0, 3, 2).astype(np.int32)
    yield one("Equal", "opset1_axis", 1, [i, j], [i == j[:, None]], broadcast=1, axis=0)
    p, q = r.rand(2, 3) > 0.5, r.rand(2) > 0.5
    for op, fn in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
        yield one(op, "opset1_axis", 1, [p, q], [fn(p, q[:, None])], broadcast=1, axis=0)
    slope = real(r, 3)
    yield one("PRelu", "opset1_channels", 1, [x, slope], [np.where(x < 0, x * slope[:, None, None], x)])
    yield one("PRelu", "opset6_one", 6, [x, slope[:1]], [np.where(x < 0, x * slope[0], x)])
    a, b, c = real(r, 3, 4), real(r, 4, 5), real(r, 5)
    yield one("Gemm", "opset6_broadcast", 6, [a, b, c], [(2 * (a @ b) + 0.5 * c).astype(F32)], alpha=2.0, beta=0.5,
              broadcast=1)


def attributes():
    r = rng("attributes")
    x = real(r, 2, 3, 4)
    yield one("Slice", "opset1", 1, [x], [x[:, 1:3, 1:-1]], axes=[1, 2], starts=[1, 1], ends=[5, -1])
    yield one("Slice", "opset1_without_axes", 1, [x], [x[1:2, 0:2]], starts=[1, 0], ends=[2, 2])
    yield one("Split", "opset2_attribute", 2, [x], [x[..., :1], x[..., 1:]], axis=2, split=[1, 3])
    yield one("Split", "opset1_input", 1, [x, np.array([1, 2], F32)], [x[:, :1], x[:, 1:]], axis=1)
    yield one("Split", "opset11_equal", 11, [x], [x[..., :2], x[..., 2:]], axis=-1)
    yield one("Pad", "opset1", 1, [x], [np.pad(x, [(0, 1), (2, 0), (1, 1)], constant_values=1.5)],
              paddings=[0, 2, 1, 1, 0, 1], value=1.5)
    yield one("Pad", "opset2_reflect", 2, [x], [np.pad(x, [(0, 0), (2, 1), (1, 2)], mode="reflect")],
              pads=[0, 2, 1, 0, 1, 2], mode="reflect")
    order = np.argsort(-x, axis=1, kind="stable")[:, :2]
    yield one("TopK", "opset1", 1, [x], [np.take_along_axis(x, order, 1), order.astype(np.int64)], axis=1, k=2)
    yield one("Reshape", "opset1", 1, [x], [x.reshape(2, 6, 2)], shape=[0, -1, 2], consumed_inputs=[0])
    yield one("Squeeze", "opset1", 1, [x[:1]], [x[0]], axes=[0])
    yield one("Unsqueeze", "opset1", 1, [x], [x[:, None, :, None]], axes=[1, 3])
    yield one("Concat", "opset1_default_axis", 1, [x, x], [np.concatenate([x, x], 1)])
    yield one("Cast", "opset1_name", 1, [x], [x.astype(np.int32)], to="INT32")
    yield one("Cast", "opset1_bool", 1, [x], [x != 0], to="BOOL")
    yield one("Clip", "opset1", 1, [x], [np.maximum(x, F32(-0.5))], min=-0.5)
    top = np.finfo(F32).max
    wild = np.array([-np.inf, -1, 0, 2, np.inf], F32)
    yield one("Clip", "opset1_unbounded", 1, [wild], [wild])
    yield one("Clip", "opset6_default_bounds", 6, [wild], [np.clip(wild, -top, F32(1.5))], max=1.5)
    yield one("ReduceSum", "opset1", 1, [x], [x.sum((0, 2))], axes=[0, 2], keepdims=0)
    yield one("ReduceSumSquare", "opset18_nothing_reduced", 18, [x], [x * x], noop_with_empty_axes=1)
    yield one("ReduceL2", "opset18_nothing_reduced", 18, [x], [np.abs(x)], noop_with_empty_axes=1)
    yield one("Tile", "opset1", 1, [x, np.array(3, F32), np.array(1, F32)], [np.tile(x, (1, 3, 1))])
    whole = np.array([-3, 0, 2, 9], np.int32)
    yield one("Erf", "opset9_integers", 9, [whole], [np.array([0, 0, 0, 1], np.int32)])
    yield one("ArgMax", "opset1", 1, [x], [x.argmax(1)[:, None].astype(np.int64)], axis=1)


def functions():
    r = rng("functions")
    x = real(r, 2, 3, 4)
    flat = x.reshape(2, 12).astype(np.float64)
    soft = np.exp(flat - flat.max(1, keepdims=True))
    soft /= soft.sum(1, keepdims=True)
    hard = (np.arange(12) == flat.argmax(1)[:, None]).astype(F32)
    for opset in (1, 11):
        yield one("Softmax", f"opset{opset}_flattens", opset, [x], [soft.reshape(x.shape).astype(F32)])
        yield one("LogSoftmax", f"opset{opset}_flattens", opset, [x], [np.log(soft).reshape(x.shape).astype(F32)])
        yield one("Hardmax", f"opset{opset}_flattens", opset, [x], [hard.reshape(x.shape)])
    selu = np.where(x > 0, x, F32(1.6732) * np.expm1(x)) * F32(1.0507)
    yield one("Selu", "opset1", 1, [x], [selu.astype(F32)], consumed_inputs=[0])
    yield one("Elu", "opset1", 1, [x], [np.where(x > 0, x, F32(0.5) * np.expm1(x)).astype(F32)], alpha=0.5,
              consumed_inputs=[0])
    for opset, attrs in ((1, dict(is_test=1, consumed_inputs=[0])), (6, dict(is_test=1)), (7, {}), (10, {})):
        yield one("Dropout", f"opset{opset}", opset, [x], [x], ratio=0.7, **attrs)
    image = real(r, 2, 3, 2, 2)
    scale, bias, mean = real(r, 3), real(r, 3), real(r, 3)
    variance = np.abs(real(r, 3)) + 0.1
    def channel(p):
        return p[:, None, None].astype(np.float64)
    y = (image - channel(mean)) / np.sqrt(channel(variance) + 1e-3) * channel(scale) + channel(bias)
    for opset, attrs in ((1, dict(is_test=1, consumed_inputs=[0, 0, 0, 1, 1])), (6, dict(is_test=1)), (7, {}), (9, {})):
        yield one("BatchNormalization", f"opset{opset}", opset, [image, scale, bias, mean, variance], [y.astype(F32)],
                  epsilon=1e-3, **attrs)
    each = [real(r, 3, 2, 2) for _ in range(3)] + [np.abs(real(r, 3, 2, 2)) + F32(0.1)]
    y = (image - each[2]) / np.sqrt(each[3].astype(np.float64) + 1e-3) * each[0] + each[1]
    yield one("BatchNormalization", "opset6_every_element", 6, [image, *each], [y.astype(F32)], epsilon=1e-3,
              is_test=1, spatial=0)
    yield one("BatchNormalization", "opset7_every_element", 7, [image, *each], [y.astype(F32)], epsilon=1e-3, spatial=0)
    big = np.kron(image, np.ones((2, 3), F32))
    yield one("Upsample", "opset1", 1, [image], [big], height_scale=2.0, width_scale=3.0)
    yield one("Upsample", "opset7", 7, [image], [big], scales=[1.0, 1.0, 2.0, 3.0])
    yield one("Upsample", "opset9", 9, [image, np.array([1, 1, 2, 3], F32)], [big])
    wide = real(r, 1, 2, 4, 4)
    corners = np.stack([wide[:, :, i:i + 3, j:j + 3] for i in (0, 1) for j in (0, 1)])
    yield one("AveragePool", "opset1", 1, [wide], [corners.mean(0)], kernel_shape=[2, 2])
    yield one("MaxPool", "opset1", 1, [wide], [corners.max(0)], kernel_shape=[2, 2])
    yield one("LpPool", "opset1", 1, [wide], [np.sqrt((corners ** 2).sum(0))], kernel_shape=[2, 2], p=2.0)
    yield one("GlobalLpPool", "opset1", 1, [wide], [np.abs(wide).sum((2, 3), keepdims=True)], p=1.0)


def groups():
    r = rng("groups")
    x, scale, bias = real(r, 2, 6, 5), real(r, 3), real(r, 3)
    g = x.reshape(2, 3, 10).astype(np.float64)
    y = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5) * scale[:, None] + bias[:, None]
    y = y.reshape(x.shape).astype(F32)
    yield one("GroupNormalization", "opset18", 18, [x, scale, bias], [y], num_groups=3)
    # Only a run knows how many channels there are.
    nodes = [helper.make_node("Reshape", ["x", "dims"], ["t"]),
             helper.make_node("GroupNormalization", ["t", "scale", "bias"], ["y"], num_groups=3)]
    yield Case("ai.onnx", "GroupNormalization", "opset18_late_channels", nodes,
               {"x": x.reshape(-1), "dims": ints(2, 6, 5), "scale": scale, "bias": bias}, ["y"], opsets={"": 18},
               expected={"y": y})


def training():
    r = rng("training")
    for dtype in (np.float32, np.float64):
        x = r.uniform(-2, 2, (3, 2, 4)).astype(dtype)
        scale, bias, mean = (r.uniform(-1, 1, 2).astype(dtype) for _ in range(3))
        variance = r.uniform(0.1, 2, 2).astype(dtype)
        m, v = x.mean((0, 2)), x.var((0, 2))
        y = (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * scale[:, None] + bias[:, None]
        outputs = [y.astype(dtype), (mean * 0.8 + m * 0.2).astype(dtype), (variance * 0.8 + v * 0.2).astype(dtype)]
        yield one("BatchNormalization", f"training_{np.dtype(dtype).name}", 15, [x, scale, bias, mean, variance],
                  outputs, training_mode=1, momentum=0.8)
    yield one("BatchNormalization", "training_alone", 15, [x, scale, bias, mean, variance], outputs[:1],
              training_mode=1, momentum=0.8)


def cases():
    yield from broadcasts()
    yield from attributes()
    yield from functions()
    yield from groups()
    yield from training()
