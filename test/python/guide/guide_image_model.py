# SPDX-License-Identifier: Apache-2.0
"""The model that the guide's snippets call "model.onnx": images [1, 3, 224, 224] to ten numbers."""
import numpy as np

import pyflame_rt


def image_graph():
    """conv -> batch norm -> relu -> pool -> dropout -> matmul + bias, and nodes that optimisation gets rid of."""
    rng = np.random.default_rng(7)

    def weights(*shape):
        return rng.normal(scale=0.2, size=shape).astype(np.float32)

    graph = pyflame_rt.Graph("images")
    graph.set_opset(17)
    graph.add_input("input", [1, 3, 224, 224], pyflame_rt.DType.Float32)
    for name, value in {"conv.weight": weights(4, 3, 8, 8), "bn.scale": weights(4), "bn.bias": weights(4),
                        "bn.mean": weights(4), "bn.var": np.abs(weights(4)) + 1, "fc.weight": weights(4, 10),
                        "half": weights(10), "unused": weights(3)}.items():
        graph.add_initializer(name, value)
    graph.add_node("same", "Identity", ["input"], ["image"])
    graph.add_node("conv", "Conv", ["image", "conv.weight"], ["c"], attrs={"strides": [8, 8]})
    graph.add_node("bn", "BatchNormalization", ["c", "bn.scale", "bn.bias", "bn.mean", "bn.var"], ["n"])
    graph.add_node("relu", "Relu", ["n"], ["r"])
    graph.add_node("pool", "GlobalAveragePool", ["r"], ["p"])
    graph.add_node("flat", "Flatten", ["p"], ["f"])
    graph.add_node("drop", "Dropout", ["f"], ["d"])
    graph.add_node("dead", "Exp", ["f"], ["nobody"])
    graph.add_node("bias", "Add", ["half", "half"], ["fc.bias"])
    graph.add_node("fc", "MatMul", ["d", "fc.weight"], ["m"])
    graph.add_node("fc_bias", "Add", ["m", "fc.bias"], ["a1"])
    graph.add_node("fc_bias_again", "Add", ["m", "fc.bias"], ["a2"])
    graph.add_node("sum", "Mul", ["a1", "a2"], ["output"])
    graph.add_output("output", [1, 10], pyflame_rt.DType.Float32)
    return graph


def reference(image):
    """The model in NumPy, in float64."""
    w = {name: value.numpy().astype(np.float64) for name, value in image_graph().initializers.items()}
    windows = image.astype(np.float64).reshape(3, 28, 8, 28, 8)
    c = np.einsum("ciajb,ocab->oij", windows, w["conv.weight"])
    scale = w["bn.scale"] / np.sqrt(w["bn.var"] + 1e-5)
    n = (c - w["bn.mean"][:, None, None]) * scale[:, None, None] + w["bn.bias"][:, None, None]
    a = np.maximum(n, 0).mean(axis=(1, 2)) @ w["fc.weight"] + 2 * w["half"]
    return (a * a)[None]
