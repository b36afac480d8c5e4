#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ONNX models to measure with: well-known topologies, seeded weights.

    make_models.py OUT_DIR [--only resnet50,squeezenet,inception,encoder,decoder] [--huge MIB]

The weights are random, so the answers mean nothing; but they are scaled so that
activations keep the size they have in a trained network and the probabilities
are neither uniform nor saturated. Feed pixels of about zero mean, unit variance.
The two transformers (transformers.py) take token ids.

--huge writes a chain of matrix products of about MIB mebibytes twice, with the
same weights: huge_embedded.onnx carries them in the file, huge_external.onnx
leaves them in huge_external.data. The topologies are then only written
if --only asks for them.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from transformers import decoder, encoder

CLASSES = 1000
HUGE_WIDTH = 4096
HUGE_LAYER_BYTES = HUGE_WIDTH * HUGE_WIDTH * 4
HUGE_MAX_LAYERS = 31  # 32 layers of 64 MiB would pass protobuf's limit of 2 GiB


def make_model(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                             producer_name="pyflame_rt bench")


class Network:
    """Appends nodes one by one; every method takes and returns value names."""

    def __init__(self, name, seed):
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.channels = {"data": 3}

    def node(self, operator, inputs, channels, output=None, **attributes):
        name = output or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.channels[name] = channels
        return name

    def constant(self, role, array):
        name = f"{len(self.nodes)}.{role}"
        self.initializers.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def weight(self, shape, gain):
        """A gain of 2 makes up for the half that a Relu takes; 1 tames the logits."""
        deviation = np.float32((gain / np.prod(shape[1:])) ** 0.5)
        return self.rng.standard_normal(shape, dtype=np.float32) * deviation

    def conv(self, x, outputs, kernel, stride=1, pad=0, bias=True, gain=2.0):
        weight = self.weight((outputs, self.channels[x], kernel, kernel), gain)
        inputs = [x, self.constant("weight", weight)]
        if bias:
            inputs.append(self.constant("bias", self.rng.normal(0, 0.05, outputs)))
        return self.node("Conv", inputs, outputs, kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=[pad] * 4)

    def conv_relu(self, *args, **kwargs):
        return self.relu(self.conv(*args, **kwargs))

    def batch_norm(self, x, scale=1.0):
        c, rng = self.channels[x], self.rng
        return self.node("BatchNormalization", [
            x,
            self.constant("scale", scale * rng.uniform(0.8, 1.2, c)),
            self.constant("bias", rng.normal(0, 0.1, c)),
            self.constant("mean", rng.normal(0, 0.1, c)),
            self.constant("var", rng.uniform(0.7, 1.3, c)),
        ], c, epsilon=1e-5)

    def relu(self, x):
        return self.node("Relu", [x], self.channels[x])

    def add(self, a, b):
        return self.node("Add", [a, b], self.channels[a])

    def concat(self, *parts):
        return self.node("Concat", parts, sum(self.channels[p] for p in parts), axis=1)

    def max_pool(self, x, kernel, stride, pads=(0, 0, 0, 0)):
        return self.node("MaxPool", [x], self.channels[x], kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=pads)

    def average_pool(self, x, kernel):
        return self.node("AveragePool", [x], self.channels[x], kernel_shape=[kernel] * 2)

    def global_average_pool(self, x):
        return self.node("GlobalAveragePool", [x], self.channels[x])

    def lrn(self, x):
        return self.node("LRN", [x], self.channels[x], size=5, alpha=1e-4, beta=0.75, bias=1.0)

    def flatten(self, x):
        return self.node("Flatten", [x], self.channels[x], axis=1)

    def gemm(self, x, outputs, gain):
        weight = self.constant("weight", self.weight((outputs, self.channels[x]), gain))
        bias = self.constant("bias", self.rng.normal(0, 0.05, outputs))
        return self.node("Gemm", [x, weight, bias], outputs, transB=1)

    def softmax(self, x):
        return self.node("Softmax", [x], self.channels[x], output="prob", axis=1)

    def model(self):
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, 224, 224])],
            [helper.make_tensor_value_info("prob", TensorProto.FLOAT, ["N", CLASSES])],
            self.initializers)
        return make_model(graph)


def resnet50():
    net = Network("resnet50", seed=50)

    def conv_bn(x, outputs, kernel, stride=1, scale=1.0):
        x = net.conv(x, outputs, kernel, stride, pad=kernel // 2, bias=False)
        return net.batch_norm(x, scale)

    def bottleneck(x, width, stride):
        outputs = 4 * width
        y = net.relu(conv_bn(x, width, 1, stride))
        y = net.relu(conv_bn(y, width, 3))
        # A weak residual branch keeps the sum from growing with depth.
        y = conv_bn(y, outputs, 1, scale=0.25)
        if net.channels[x] != outputs:
            x = conv_bn(x, outputs, 1, stride)
        return net.relu(net.add(x, y))

    x = net.relu(conv_bn("data", 64, 7, 2))
    x = net.max_pool(x, 3, 2, pads=(1, 1, 1, 1))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = bottleneck(x, 64 << stage, 2 if stage > 0 and block == 0 else 1)
    x = net.flatten(net.global_average_pool(x))
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def squeezenet():
    """SqueezeNet 1.1."""
    net = Network("squeezenet", seed=11)

    def fire(x, squeeze, expand):
        x = net.conv_relu(x, squeeze, 1)
        return net.concat(net.conv_relu(x, expand, 1), net.conv_relu(x, expand, 3, pad=1))

    x = net.max_pool(net.conv_relu("data", 64, 3, 2), 3, 2)
    x = fire(fire(x, 16, 64), 16, 64)
    x = net.max_pool(x, 3, 2)
    x = fire(fire(x, 32, 128), 32, 128)
    x = net.max_pool(x, 3, 2)
    x = fire(fire(x, 48, 192), 48, 192)
    x = fire(fire(x, 64, 256), 64, 256)
    x = net.conv_relu(x, CLASSES, 1, gain=1.0)
    net.softmax(net.flatten(net.global_average_pool(x)))
    return net.model()


def inception():
    """Inception v1, also known as GoogLeNet, without its training-time heads."""
    net = Network("inception", seed=22)

    def halve(x):
        return net.max_pool(x, 3, 2, pads=(0, 0, 1, 1))

    def module(x, one, reduce3, three, reduce5, five, pool):
        return net.concat(
            net.conv_relu(x, one, 1),
            net.conv_relu(net.conv_relu(x, reduce3, 1), three, 3, pad=1),
            net.conv_relu(net.conv_relu(x, reduce5, 1), five, 5, pad=2),
            net.conv_relu(net.max_pool(x, 3, 1, pads=(1, 1, 1, 1)), pool, 1))

    x = net.lrn(halve(net.conv_relu("data", 64, 7, 2, pad=3)))
    x = net.conv_relu(net.conv_relu(x, 64, 1), 192, 3, pad=1)
    x = halve(net.lrn(x))
    x = module(x, 64, 96, 128, 16, 32, 32)
    x = module(x, 128, 128, 192, 32, 96, 64)
    x = halve(x)
    x = module(x, 192, 96, 208, 16, 48, 64)
    x = module(x, 160, 112, 224, 24, 64, 64)
    x = module(x, 128, 128, 256, 24, 64, 64)
    x = module(x, 112, 144, 288, 32, 64, 64)
    x = module(x, 256, 160, 320, 32, 128, 128)
    x = halve(x)
    x = module(x, 256, 160, 320, 32, 128, 128)
    x = module(x, 384, 192, 384, 48, 128, 128)
    x = net.flatten(net.average_pool(x, 7))
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def huge_weight(layer):
    """A product with it keeps the variance of its input."""
    rng = np.random.default_rng([4096, layer])
    shape = (HUGE_WIDTH, HUGE_WIDTH)
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(HUGE_WIDTH**-0.5)


def huge_graph(name, layers):
    values = ["x"] + [f"h{i}" for i in range(1, layers)] + ["y"]
    nodes = [helper.make_node("MatMul", [values[i], f"w{i}"], [values[i + 1]], name=f"matmul{i}")
             for i in range(layers)]
    x, y = (helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", HUGE_WIDTH])
            for value in "xy")
    return helper.make_graph(nodes, name, [x], [y])


def huge_tensor(layer):
    return TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[HUGE_WIDTH] * 2)


def write_huge_external(out, layers):
    graph = huge_graph("huge_external", layers)
    with open(out / "huge_external.data", "wb") as data:
        for layer in range(layers):
            tensor = huge_tensor(layer)
            tensor.data_location = TensorProto.EXTERNAL
            # A layer is a whole number of 64-byte lines, so all of them are aligned.
            for key, value in (("location", "huge_external.data"), ("offset", data.tell()),
                               ("length", HUGE_LAYER_BYTES)):
                tensor.external_data.add(key=key, value=str(value))
            graph.initializer.append(tensor)
            data.write(huge_weight(layer).data)
    (out / "huge_external.onnx").write_bytes(serialize(make_model(graph)))


def write_huge_embedded(out, layers):
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

    graph = huge_graph("huge_embedded", layers)
    heads = []
    for layer in range(layers):
        tensor = huge_tensor(layer)
        head = serialize(tensor) + header(tensor, "raw_data", HUGE_LAYER_BYTES)
        heads.append(header(graph, "initializer", len(head) + HUGE_LAYER_BYTES) + head)

    model = make_model(graph)
    body = serialize(model.graph)
    length = len(body) + sum(map(len, heads)) + layers * HUGE_LAYER_BYTES
    model.ClearField("graph")
    with open(out / "huge_embedded.onnx", "wb") as file:
        file.write(serialize(model) + header(model, "graph", length) + body)
        for layer, head in enumerate(heads):
            file.write(head)
            file.write(huge_weight(layer).data)


def serialize(message):
    return message.SerializeToString(deterministic=True)


def main():
    topologies = {f.__name__: f for f in (resnet50, squeezenet, inception, encoder, decoder)}
    parser = argparse.ArgumentParser(description="Write ONNX benchmark models with seeded weights.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--only", metavar="NAMES", help="comma-separated, of " + ", ".join(topologies))
    parser.add_argument("--huge", type=int, metavar="MIB",
                        help="write two models of about this size, in layers of 64 MiB")
    args = parser.parse_args()

    if args.only:
        names = args.only.split(",")
    else:
        names = [] if args.huge else list(topologies)
    if unknown := set(names) - set(topologies):
        parser.error("no such model: " + ", ".join(sorted(unknown)))
    layers = 0
    if args.huge is not None:
        layers = max(1, round(args.huge * 2**20 / HUGE_LAYER_BYTES))
        if not 0 < args.huge or layers > HUGE_MAX_LAYERS:
            parser.error(f"--huge takes 1 to {HUGE_MAX_LAYERS * HUGE_LAYER_BYTES >> 20}")

    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        model = topologies[name]()
        onnx.checker.check_model(model, full_check=True)
        (args.out / f"{name}.onnx").write_bytes(serialize(model))
    if layers:
        write_huge_embedded(args.out, layers)
        write_huge_external(args.out, layers)


if __name__ == "__main__":
    main()
