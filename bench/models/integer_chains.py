# SPDX-License-Identifier: Apache-2.0
"""Products and chains of convolutions in integers, for integer_models.py: each a function of no arguments in MODELS.

QDQ and dynamic forms are float models that quantize.py rewrites; their inputs and outputs are float.
"""
import functools

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

import quantize
from network import Network, make_model

PRODUCTS = ((128, 1024, 1024), (512, 768, 3072))  # rows, K, N
TYPES = {"u8": np.uint8, "s8": np.int8}
LENGTH = 6
# kernel, channels, side
CONVOLUTIONS = {"3x3_64_56": (3, 64, 56), "3x3_256_14": (3, 256, 14), "1x1_256_28": (1, 256, 28)}
DEPTHWISE = {"depthwise_144_56": (3, 144, 56), "depthwise_576_14": (3, 576, 14)}


def one_graph(name, nodes, x, y, constants):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", *x)],
                              [helper.make_tensor_value_info("y", *y)],
                              [numpy_helper.from_array(array, key) for key, array in constants.items()])
    return make_model(graph)


def matmul_integer(left, right, rows, inner, columns):
    """|left|, |right|: u8 or s8. Zero points are in the middle of u8, and 0 of s8."""
    rng = np.random.default_rng(rows)
    a, b = TYPES[left], TYPES[right]
    constants = {"w": rng.integers(np.iinfo(b).min, np.iinfo(b).max, (inner, columns), b, endpoint=True),
                 "x_zero_point": np.array(0 if left == "s8" else 128, a),
                 "w_zero_point": np.array(0 if right == "s8" else 128, b)}
    node = helper.make_node("MatMulInteger", ["x", "w", "x_zero_point", "w_zero_point"], ["y"], name="product")
    return one_graph("matmul_integer", [node], (mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(a)], [rows, inner]),
                     (TensorProto.INT32, [rows, columns]), constants)


def float_product(rows, inner, columns):
    weight = np.random.default_rng(rows).standard_normal((inner, columns), dtype=np.float32) / np.float32(inner ** 0.5)
    return one_graph("product", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
                     (TensorProto.FLOAT, [rows, inner]), (TensorProto.FLOAT, [rows, columns]), {"w": weight})


def qdq_matmul(activation, rows, inner, columns):
    # Products of unit normals by such weights are unit normals as well.
    ranges = {"x": (-4.5, 4.5), "y": (-4.5, 4.5)}
    return quantize.static(float_product(rows, inner, columns), ranges, TYPES[activation])


def dynamic_matmul(rows, inner, columns):
    return quantize.dynamic(float_product(rows, inner, columns))


def float_chain(kernel, channels, side, depthwise):
    net = Network("chain", seed=side)
    net.channels["data"] = channels
    x = "data"
    for _ in range(LENGTH):
        x = net.conv_relu(x, channels, kernel, pad=kernel // 2, group=channels if depthwise else 1)
    shape = [1, channels, side, side]
    return make_model(helper.make_graph(
        net.nodes, net.name, [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], net.initializers))


def qdq_chain(kernel, channels, side, depthwise=False):
    model = float_chain(kernel, channels, side, depthwise)
    ranges = {"data": (-4.5, 4.5)}
    # A gain of 2 keeps the size of activations. A depthwise chain has a wider range: each number is a sum of few.
    ranges.update({n.output[0]: (0.0, 8.0 if depthwise else 5.5) for n in model.graph.node if n.op_type == "Relu"})
    return quantize.static(model, ranges)


def dynamic_chain(weights, kernel, channels, side, depthwise=False):
    return quantize.dynamic(float_chain(kernel, channels, side, depthwise), ("Conv",), TYPES[weights])


def models():
    out = {}
    for shape in PRODUCTS:
        size = "x".join(map(str, shape))
        for left, right in (("u8", "s8"), ("u8", "u8"), ("s8", "s8")):
            out[f"matmul_integer_{left}{right}_{size}"] = functools.partial(matmul_integer, left, right, *shape)
        for activation in ("u8", "s8"):
            out[f"qdq_matmul_{activation}s8_{size}"] = functools.partial(qdq_matmul, activation, *shape)
        out[f"dynamic_matmul_u8s8_{size}"] = functools.partial(dynamic_matmul, *shape)
    for shapes, depthwise in ((CONVOLUTIONS, False), (DEPTHWISE, True)):
        for name, shape in shapes.items():
            out[f"qdq_chain_{name}"] = functools.partial(qdq_chain, *shape, depthwise)
            for weights in ("u8", "s8"):
                out[f"dynamic_chain_u8{weights}_{name}"] = functools.partial(dynamic_chain, weights, *shape, depthwise)
    return out


MODELS = models()
