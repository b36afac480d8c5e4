# SPDX-License-Identifier: Apache-2.0
"""A convolutional network for topologies.py, node by node, with seeded random weights."""
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CLASSES = 1000
SIDE = 224


def make_model(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                             producer_name="pyflame_rt bench")


def serialize(message):
    return message.SerializeToString(deterministic=True)


def write(model, path):
    """At once: whoever reads |path| meanwhile has the whole old file."""
    scratch = path.with_suffix(f".{os.getpid()}.part")
    scratch.write_bytes(serialize(model))
    os.replace(scratch, path)


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

    def constant(self, role, array, dtype=np.float32):
        name = f"{len(self.nodes)}.{role}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def weight(self, shape, gain):
        """A gain of 2 makes up for the half that a Relu takes; 1 tames the logits."""
        deviation = np.float32((gain / np.prod(shape[1:])) ** 0.5)
        return self.rng.standard_normal(shape, dtype=np.float32) * deviation

    def conv(self, x, outputs, kernel, stride=1, pad=0, bias=True, gain=2.0, group=1):
        weight = self.weight((outputs, self.channels[x] // group, kernel, kernel), gain)
        inputs = [x, self.constant("weight", weight)]
        if bias:
            inputs.append(self.constant("bias", self.rng.normal(0, 0.05, outputs)))
        grouped = {} if group == 1 else {"group": group}
        return self.node("Conv", inputs, outputs, kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=[pad] * 4, **grouped)

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

    def scaled_norm(self, x):
        """As Caffe's models have it: the scale and the shift of a normalisation once more, as nodes of their own."""
        c = self.channels[x]

        def spread(role, vector):
            inputs = [self.constant(role, vector), self.constant("axes", [1, 2], np.int64)]
            return self.node("Unsqueeze", inputs, c)

        x = self.batch_norm(x)
        x = self.node("Mul", [x, spread("scale", self.rng.uniform(0.8, 1.2, c))], c)
        return self.node("Add", [x, spread("shift", self.rng.normal(0, 0.1, c))], c)

    def relu(self, x):
        return self.node("Relu", [x], self.channels[x])

    def relu6(self, x):
        return self.node("Clip", [x, self.constant("low", 0), self.constant("high", 6)], self.channels[x])

    def sum(self, a, b):
        return self.node("Sum", [a, b], self.channels[a])

    def concat(self, *parts):
        return self.node("Concat", parts, sum(self.channels[p] for p in parts), axis=1)

    def max_pool(self, x, kernel, stride, pads=(0, 0, 0, 0)):
        return self.node("MaxPool", [x], self.channels[x], kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=pads)

    def halve(self, x):
        """The pooling of the Inceptions: the window that hangs over the far edge counts."""
        return self.max_pool(x, 3, 2, pads=(0, 0, 1, 1))

    def average_pool(self, x, kernel, **attributes):
        return self.node("AveragePool", [x], self.channels[x], kernel_shape=[kernel] * 2, **attributes)

    def global_average_pool(self, x):
        return self.node("GlobalAveragePool", [x], self.channels[x])

    def lrn(self, x, alpha=1e-4, bias=1.0):
        return self.node("LRN", [x], self.channels[x], size=5, alpha=alpha, beta=0.75, bias=bias)

    def shuffle(self, x, groups, side):
        """Channels of |groups| groups taken in turn."""
        c = self.channels[x]
        x = self.reshape(x, [0, groups, c // groups, side, side], c)
        x = self.node("Transpose", [x], c, perm=[0, 2, 1, 3, 4])
        return self.reshape(x, [0, c, side, side], c)

    def reshape(self, x, shape, channels):
        return self.node("Reshape", [x, self.constant("shape", shape, np.int64)], channels)

    def flatten(self, x):
        return self.node("Flatten", [x], self.channels[x], axis=1)

    def rows(self, x, side):
        """As flatten, of maps of |side|, written as a Reshape."""
        width = self.channels[x] * side * side
        return self.reshape(x, [0, width], width)

    def dropout(self, x):
        return self.node("Dropout", [x, self.constant("ratio", 0.5)], self.channels[x])

    def gemm(self, x, outputs, gain):
        weight = self.constant("weight", self.weight((outputs, self.channels[x]), gain))
        bias = self.constant("bias", self.rng.normal(0, 0.05, outputs))
        return self.node("Gemm", [x, weight, bias], outputs, transB=1)

    def softmax(self, x):
        return self.node("Softmax", [x], self.channels[x], output="prob", axis=1)

    def model(self, output="prob", shape=("N", CLASSES)):
        self.nodes[-1].output[0] = output
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            self.initializers)
        return make_model(graph)
