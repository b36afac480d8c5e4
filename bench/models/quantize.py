# SPDX-License-Identifier: Apache-2.0
"""Float models in integers: `static` in QDQ form, `dynamic` with ranges found at run time, in the nodes that ONNX
Runtime's quantize_static and quantize_dynamic write.

Weights are int8, symmetric, of `static` per output channel; activations uint8 per tensor, whose zero point absorbs a
Relu or Clip. Every function takes float32 models with one graph and leaves them as they are.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PRODUCTS = ("Conv", "Gemm", "MatMul")
# Operators with quantization parameters of their own for each input and output, and those that keep their input's.
ARITHMETIC = ("Add", "AveragePool", "Concat", "GlobalAveragePool")
MOVES = ("MaxPool", "Reshape", "Transpose")
ACTIVATIONS = ("Relu", "Clip")
CALIBRATION_INPUTS = 4


# ---- before


class Graph:
    """What is asked of a graph while it is changed."""

    def __init__(self, model):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.nodes = list(self.model.graph.node)
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.model.graph.initializer}
        self.outputs = {o.name for o in self.model.graph.output}

    def producer(self, name):
        return next((n for n in self.nodes if name in n.output), None)

    def consumers(self, name):
        return [n for n in self.nodes if name in n.input]

    def only_consumer(self, name):
        """The node that alone reads |name|, where nobody else can."""
        found = self.consumers(name)
        return found[0] if len(found) == 1 and name not in self.outputs else None

    def remove(self, node, replacement=None):
        """|replacement|: what its readers read from now on."""
        self.nodes.remove(node)
        if replacement is not None:
            for reader in self.nodes:
                for i, name in enumerate(reader.input):
                    if name == node.output[0]:
                        reader.input[i] = replacement

    def finished(self):
        graph = self.model.graph
        read = {name for node in self.nodes for name in node.input}
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(numpy_helper.from_array(np.asarray(array, order="C"), name)
                                 for name, array in self.constants.items() if name in read)
        return self.model


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def fold_batch_norm(graph, norm):
    conv = graph.producer(norm.input[0])
    if conv is None or conv.op_type != "Conv" or graph.only_consumer(norm.input[0]) is not norm:
        return
    scale, shift, mean, variance = (graph.constants[name].astype(np.float64) for name in norm.input[1:5])
    factor = scale / np.sqrt(variance + attributes(norm).get("epsilon", 1e-5))
    weight = graph.constants[conv.input[1]]
    bias = graph.constants[conv.input[2]] if len(conv.input) > 2 else 0
    name = norm.output[0]
    graph.constants[f"{name}.weight"] = (weight * factor.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
    graph.constants[f"{name}.bias"] = ((bias - mean) * factor + shift).astype(np.float32)
    conv.input[:] = [conv.input[0], f"{name}.weight", f"{name}.bias"]
    graph.remove(norm)
    conv.output[0] = name


def prepared(model):
    """As the tools ask for: normalisations in their convolutions, no Dropout, a Sum of two as an Add."""
    graph = Graph(model)
    for node in list(graph.nodes):
        if node.op_type == "BatchNormalization":
            fold_batch_norm(graph, node)
        elif node.op_type == "Dropout":
            graph.remove(node, node.input[0])
        elif node.op_type == "Sum" and len(node.input) == 2:
            node.op_type = "Add"
    return graph.finished()


def ranges_of(model, run, feeds):
    """{value: (least, greatest)} of all float activations, over |feeds|. |run|: (model, names, feed) -> arrays."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    ports = {v.name: v.type.tensor_type.elem_type for v in (*inferred.value_info, *inferred.output)}
    names = [n.output[0] for n in model.graph.node if ports.get(n.output[0]) == TensorProto.FLOAT]
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    del asked.graph.output[:]
    asked.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
    out = {}

    def widen(name, array):
        low, high = out.get(name, (np.inf, -np.inf))
        out[name] = (min(low, float(array.min())), max(high, float(array.max())))

    for feed in feeds:
        for name, array in [*feed.items(), *zip(names, run(asked, names, feed))]:
            if array.dtype == np.float32:
                widen(name, array)
    return out


# ---- numbers


def few_bits(scale):
    """Rounded up to 9 bits, so that the last digits of a range do not matter."""
    part, exponent = np.frexp(np.float64(scale))
    return np.float32(np.ldexp(np.ceil(part * 512) / 512, exponent))


def activation_parameters(low, high, dtype=np.uint8):
    """Scale and zero point of a range, which is made to hold 0."""
    low, high, least = min(low, 0.0), max(high, 0.0), np.iinfo(dtype).min
    scale = few_bits((high - low) / 255) if high > low else np.float32(1)
    return scale, dtype(np.clip(np.rint(-low / scale), 0, 255) + least)


def quantized(array, scale, zero_point, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(array / scale) + zero_point, info.min, info.max).astype(dtype)


def weight_parameters(weight, axis=None):
    """Symmetric int8: the scale of each index of |axis|, or one."""
    others = None if axis is None else tuple(i for i in range(weight.ndim) if i != axis)
    largest = np.abs(weight).max(axis=others)
    return np.where(largest > 0, largest / np.float32(127), 1).astype(np.float32)


def quantized_weight(weight, axis=None, dtype=np.int8):
    """The integers and their scale; as uint8, 128 more."""
    scale = weight_parameters(weight, axis)
    shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
    spread = scale if axis is None else scale.reshape(shape)
    return quantized(weight, spread, 0 if dtype == np.int8 else 128, dtype), scale


# ---- QDQ


def weight_axis(node):
    if node.op_type == "MatMul":
        return 1
    return 1 if node.op_type == "Gemm" and not attributes(node).get("transB", 0) else 0


class Static:
    def __init__(self, model, ranges, activation):
        self.graph, self.ranges, self.activation = Graph(prepared(model)), ranges, activation
        self.parameters = {}  # names of scale and zero point, by quantized value
        self.added = {}  # nodes to put before the node that gives a value, by value

    def takes(self, node):
        """Whether |node| is computed in integers. Additions are where an operand is: those inside of a normalisation
        or a Gelu are left in float, as people do who use the tools."""
        known = [name in self.parameters for name in node.input]
        weights = [name in self.graph.constants for name in node.input]
        if node.op_type in PRODUCTS:
            return not weights[0] and (node.op_type == "MatMul" or weights[1])
        return known[0] if node.op_type in MOVES else any(known) and node.op_type in ARITHMETIC

    def constant(self, name, array):
        self.graph.constants[name] = np.asarray(array)
        return name

    def quantize_value(self, name, like=None):
        """Gives |name| parameters, its own or those of |like|."""
        if name in self.parameters:
            return
        if like is not None:
            self.parameters[name] = self.parameters[like]
            return
        scale, zero_point = activation_parameters(*self.ranges[name], self.activation)
        self.parameters[name] = (self.constant(f"{name}.scale", scale), self.constant(f"{name}.zero_point", zero_point))

    def absorb(self, node):
        """The Relu or Clip after |node|, which the range of what is quantized next already says."""
        reader = self.graph.only_consumer(node.output[0])
        if reader is not None and reader.op_type in ACTIVATIONS and node.op_type in (*PRODUCTS, "Add"):
            self.graph.nodes.remove(reader)
            node.output[0] = reader.output[0]

    def dequantized(self, label, integers, scale, zero_point=0, axis=None):
        """A node that gives the constant from integers."""
        zero_points = np.full(np.shape(scale), zero_point, integers.dtype)
        inputs = [self.constant(f"{label}.quantized", integers), self.constant(f"{label}.scale", scale),
                  self.constant(f"{label}.zero_point", zero_points)]
        axes = {} if axis is None else {"axis": axis}
        return helper.make_node("DequantizeLinear", inputs, [f"{label}.dequantized"], name=f"{label}.dequantize", **axes)

    def constant_operand(self, node, index):
        """The node that gives constant input |index|."""
        array, label = self.graph.constants[node.input[index]], f"{node.output[0]}.{index}"
        if node.op_type in PRODUCTS and index == 1:
            axis = weight_axis(node)
            return self.dequantized(label, *quantized_weight(array, axis), axis=axis)
        if node.op_type in PRODUCTS:  # the bias, in steps of the sum of products
            step = self.graph.constants[self.parameters[node.input[0]][0]] * \
                self.graph.constants[f"{node.output[0]}.1.scale"]
            return self.dequantized(label, quantized(array, step, 0, np.int32), step, axis=0)
        scale, zero_point = activation_parameters(float(array.min()), float(array.max()), self.activation)
        return self.dequantized(label, quantized(array, scale, int(zero_point), self.activation), scale, zero_point)

    def quantize_node(self, node):
        moves = node.op_type in MOVES
        operands = list(node.input[:1] if moves else node.input)
        for name in operands:
            if name not in self.graph.constants:
                self.quantize_value(name)
        self.absorb(node)
        self.quantize_value(node.output[0], like=node.input[0] if moves else None)
        self.added[node.output[0]] = []
        for i, name in enumerate(operands):
            if name in self.graph.constants:
                made = self.constant_operand(node, i)
                self.added[node.output[0]].append(made)
                node.input[i] = made.output[0]

    def pair(self, name, source, result):
        parameters, quantized_name = list(self.parameters[name]), f"{name}.quantized"
        return [helper.make_node("QuantizeLinear", [source, *parameters], [quantized_name], name=f"{name}.quantize"),
                helper.make_node("DequantizeLinear", [quantized_name, *parameters], [result], name=f"{name}.dequantize")]

    def finished(self):
        graph, nodes = self.graph, []
        for node in list(graph.nodes):
            if node in graph.nodes and self.takes(node):
                self.quantize_node(node)
        for port in graph.model.graph.input:
            if port.name in self.parameters:
                nodes += self.pair(port.name, port.name, f"{port.name}.dequantized")
        for node in graph.nodes:
            nodes += self.added.get(node.output[0], [])
            for i, name in enumerate(node.input):
                if name in self.parameters:
                    node.input[i] = f"{name}.dequantized" if name not in graph.outputs else name
            nodes.append(node)
            name = node.output[0]
            if name in self.parameters:
                asked = name in graph.outputs  # its dequantized value keeps the name
                if asked:
                    node.output[0] = f"{name}.float"
                nodes += self.pair(name, node.output[0], name if asked else f"{name}.dequantized")
        graph.nodes = nodes
        return graph.finished()


def static(model, ranges, activation=np.uint8):
    """|ranges|: ranges_of(prepared(model), ...)."""
    return Static(model, ranges, activation).finished()


# ---- ranges at run time


def dynamic(model, operators=("MatMul",), weights=np.int8):
    """Products of |operators| by constant matrices or kernels, of |weights|, one scale a tensor."""
    graph = Graph(prepared(model))
    nodes, ready = [], {}
    for node in graph.nodes:
        if node.op_type not in operators or node.input[0] in graph.constants or node.input[1] not in graph.constants:
            nodes.append(node)
            continue
        x, name = node.input[0], node.output[0]
        if x not in ready:
            ready[x] = [f"{x}.{part}" for part in ("quantized", "scale", "zero_point")]
            nodes.append(helper.make_node("DynamicQuantizeLinear", [x], ready[x], name=f"{x}.quantize"))
        integers, scale = quantized_weight(graph.constants[node.input[1]], dtype=weights)
        graph.constants.update({f"{name}.weight": integers, f"{name}.weight_scale": scale,
                                f"{name}.weight_zero_point": weights(0 if weights == np.int8 else 128)})
        data, data_scale, zero_point = ready[x]
        last = f"{name}.product" if len(node.input) > 2 else name
        kept = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        nodes += [
            helper.make_node(f"{node.op_type}Integer", [data, f"{name}.weight", zero_point, f"{name}.weight_zero_point"],
                             [f"{name}.sum"], name=f"{name}.integer", **kept),
            helper.make_node("Cast", [f"{name}.sum"], [f"{name}.cast"], name=f"{name}.cast", to=TensorProto.FLOAT),
            helper.make_node("Mul", [data_scale, f"{name}.weight_scale"], [f"{name}.scales"], name=f"{name}.scales"),
            helper.make_node("Mul", [f"{name}.cast", f"{name}.scales"], [last], name=f"{name}.scaled")]
        if last != name:
            bias = graph.constants[node.input[2]]
            graph.constants[f"{name}.bias"] = bias.reshape(1, -1, *[1] * (integers.ndim - 2))
            nodes.append(helper.make_node("Add", [last, f"{name}.bias"], [name], name=f"{name}.biased"))
    graph.nodes = nodes
    return graph.finished()
