# SPDX-License-Identifier: Apache-2.0
"""Chains of matrix products as large as wanted, for make_models.py."""
import numpy as np
from onnx import TensorProto, helper

from network import make_model, serialize

WIDTH = 4096
LAYER_BYTES = WIDTH * WIDTH * 4
MAX_LAYERS = 31  # 32 layers of 64 MiB would pass protobuf's limit of 2 GiB


def layer_weight(layer):
    """A product with it keeps the variance of its input."""
    rng = np.random.default_rng([4096, layer])
    shape = (WIDTH, WIDTH)
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(WIDTH**-0.5)


def chain(name, layers):
    values = ["x"] + [f"h{i}" for i in range(1, layers)] + ["y"]
    nodes = [helper.make_node("MatMul", [values[i], f"w{i}"], [values[i + 1]], name=f"matmul{i}")
             for i in range(layers)]
    x, y = (helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", WIDTH])
            for value in "xy")
    return helper.make_graph(nodes, name, [x], [y])


def layer_tensor(layer):
    return TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[WIDTH] * 2)


def write_external(out, layers):
    graph = chain("huge_external", layers)
    with open(out / "huge_external.data", "wb") as data:
        for layer in range(layers):
            tensor = layer_tensor(layer)
            tensor.data_location = TensorProto.EXTERNAL
            # A layer is a whole number of 64-byte lines, so all of them are aligned.
            for key, value in (("location", "huge_external.data"), ("offset", data.tell()),
                               ("length", LAYER_BYTES)):
                tensor.external_data.add(key=key, value=str(value))
            graph.initializer.append(tensor)
            data.write(layer_weight(layer).data)
    (out / "huge_external.onnx").write_bytes(serialize(make_model(graph)))


def write_embedded(out, layers):
    """Frame the protobuf by hand, so that one layer at a time is in memory."""

    def varint(value):
        groups = []
        while value > 0x7F:
            groups.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(groups + [value])

    def header(message, field, length):
        number = message.DESCRIPTOR.fields_by_name[field].number
        return varint(number << 3 | 2) + varint(length)

    graph = chain("huge_embedded", layers)
    heads = []
    for layer in range(layers):
        tensor = layer_tensor(layer)
        head = serialize(tensor) + header(tensor, "raw_data", LAYER_BYTES)
        heads.append(header(graph, "initializer", len(head) + LAYER_BYTES) + head)

    model = make_model(graph)
    body = serialize(model.graph)
    length = len(body) + sum(map(len, heads)) + layers * LAYER_BYTES
    model.ClearField("graph")
    with open(out / "huge_embedded.onnx", "wb") as file:
        file.write(serialize(model) + header(model, "graph", length) + body)
        for layer, head in enumerate(heads):
            file.write(head)
            file.write(layer_weight(layer).data)
