# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 and 8 bits in blocks, for integer_models.py: single products (MatMulNBits) and a decoder of llama's
shape, each a function of no arguments in MODELS.

The decoder reads 428 M weights a token. llama_gguf.py writes the same one, weight for weight, for llama.cpp.
"""
import functools
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"
EPSILON, THETA = 1e-5, 10000.0
# rows, K, N
PRODUCTS = [(rows, 4096, 4096) for rows in (1, 128, 512)] + [(128, 1024, 1024), (512, 768, 3072)]
# bits, block, accuracy level
FORMS = [(4, 32, 0), (4, 32, 4), (4, 128, 0), (4, 128, 4), (8, 32, 4), (8, 128, 0), (8, 128, 4)]
LLAMAS = [(4, 32), (4, 128), (8, 32)]
LEVEL = 4


@dataclass
class Shape:
    width: int = 2048
    layers: int = 8
    heads: int = 16
    inner: int = 5632
    vocabulary: int = 8192
    positions: int = 2048

    @property
    def head(self):
        return self.width // self.heads


def blocks(rng, rows, width, bits, block, gain=1.0):
    """Integers of [rows, blocks, block] about a zero point in the middle, and a scale a block that float16 holds."""
    middle = 1 << (bits - 1)
    integers = rng.integers(1, 2 * middle, (rows, width // block, block), np.uint8)
    deviation = (((2 * middle - 1) ** 2 - 1) / 12) ** 0.5
    spread = rng.uniform(0.8, 1.2, integers.shape[:2])
    scales = (spread * gain / (deviation * width ** 0.5)).astype(np.float16).astype(np.float32)
    return integers, scales


def packed(integers, bits):
    """As MatMulNBits has them: of 4 bits two a byte, the first in the low half."""
    return integers if bits == 8 else integers[..., ::2] | integers[..., 1::2] << 4


def dequantized(integers, scales, bits):
    values = (integers.astype(np.float32) - (1 << (bits - 1))) * scales[..., None]
    return values.reshape(len(integers), -1)


class Nodes:
    def __init__(self, bits, block, level):
        self.bits, self.block, self.level = bits, block, level
        self.nodes, self.initializers = [], []

    def node(self, operator, inputs, domain=None, outputs=1, **attributes):
        name = f"{operator.lower()}{len(self.nodes)}"
        made = [name] + [f"{name}.{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(operator, inputs, made, name=name, domain=domain, **attributes))
        return name

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def product(self, x, weights):
        integers, scales = weights
        rows, count, block = integers.shape
        return self.node("MatMulNBits", [x, self.constant(packed(integers, self.bits)), self.constant(scales.ravel())],
                         CONTRIB, K=count * block, N=rows, bits=self.bits, block_size=block, accuracy_level=self.level)

    def model(self, name, inputs, outputs):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)],
                                 ir_version=8, producer_name="pyflame_rt bench")


def port(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def product(bits, block, level, rows, inner, columns):
    nodes = Nodes(bits, block, level)
    nodes.product("x", blocks(np.random.default_rng(block), columns, inner, bits, block))
    nodes.nodes[-1].output[0] = "y"
    return nodes.model("nbits", [port("x", TensorProto.FLOAT, [rows, inner])],
                       [port("y", TensorProto.FLOAT, [rows, columns])])


# ---- the decoder


def llama_weights(shape, bits, block):
    """(name, array or blocks) by the names that GGUF has for them, in a fixed order. Projections that end in a
    residual sum are weak, so that it does not grow with depth."""
    rng = np.random.default_rng(bits * 1000 + block)
    width, inner = shape.width, shape.inner

    def norm():
        return rng.uniform(0.8, 1.2, width).astype(np.float32)

    yield "token_embd", blocks(rng, shape.vocabulary, width, bits, block, gain=width ** 0.5)
    for layer in range(shape.layers):
        at = f"blk.{layer}."
        yield at + "attn_norm", norm()
        for part in ("q", "k", "v"):
            yield f"{at}attn_{part}", blocks(rng, width, width, bits, block)
        yield at + "attn_output", blocks(rng, width, width, bits, block, gain=0.5)
        yield at + "ffn_norm", norm()
        for part in ("gate", "up"):
            yield f"{at}ffn_{part}", blocks(rng, inner, width, bits, block)
        yield at + "ffn_down", blocks(rng, width, inner, bits, block, gain=0.5)
    yield "output_norm", norm()
    yield "output", blocks(rng, shape.vocabulary, width, bits, block)


def rotations(shape):
    """Cosines and sines of [positions, half a head]."""
    angles = np.outer(np.arange(shape.positions), THETA ** (-np.arange(0, shape.head, 2) / shape.head))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def llama(bits, block, level=LEVEL, shape=Shape()):
    """In the operators that exporters of decoders write. "tokens" ids after "past" ones; logits of the last."""
    net = Nodes(bits, block, level)
    weights = llama_weights(shape, bits, block)

    def following(name):
        found, array = next(weights)
        assert found.endswith(name), (found, name)
        return array

    def length(value, axis):
        return net.node("Gather", [net.node("Shape", [value]), net.constant(np.array(axis, np.int64))], axis=0)

    total = net.node("Cast", [net.node("Add", [length("past_key_0", 2), length("ids", 1)])], to=TensorProto.INT32)
    last = net.node("Reshape", [net.node("Sub", [total, net.constant(np.array(1, np.int32))]),
                                net.constant(np.array([1], np.int64))])
    cosines, sines = map(net.constant, rotations(shape))
    table = net.constant(dequantized(*following("token_embd"), bits))
    inputs, outputs = [port("ids", TensorProto.INT64, [1, "tokens"])], []
    residual, branch = net.node("Gather", [table, "ids"], axis=0), None

    def normalized(weight):
        """The sum of residual and branch, kept for the next one, normalised."""
        nonlocal residual, branch
        scale = net.constant(weight)
        if branch is None:
            return net.node("SimplifiedLayerNormalization", [residual, scale], epsilon=EPSILON, axis=-1, stash_type=1)
        name = net.node("SkipSimplifiedLayerNormalization", [residual, branch, scale], CONTRIB, outputs=4,
                        epsilon=EPSILON)
        net.nodes[-1].output[1:3] = ["", ""]  # mean and deviation, which nobody asks for
        residual = f"{name}.3"
        return name

    for layer in range(shape.layers):
        x = normalized(following("attn_norm"))
        query, key, value = (net.product(x, following(f"attn_{part}")) for part in ("q", "k", "v"))
        cache = [f"past_key_{layer}", f"past_value_{layer}"]
        mixed = net.node("GroupQueryAttention", [query, key, value, *cache, last, total, cosines, sines], CONTRIB,
                         outputs=3, num_heads=shape.heads, kv_num_heads=shape.heads, do_rotary=1, rotary_interleaved=1)
        grown = [f"present_key_{layer}", f"present_value_{layer}"]
        net.nodes[-1].output[1:3] = grown
        for ports, names, tokens in ((inputs, cache, "past"), (outputs, grown, "total")):
            ports += [port(name, TensorProto.FLOAT, [1, shape.heads, tokens, shape.head]) for name in names]
        branch = net.product(mixed, following("attn_output"))
        x = normalized(following("ffn_norm"))
        gate, up = (net.product(x, following(f"ffn_{part}")) for part in ("gate", "up"))
        gate = net.node("Mul", [gate, net.node("Sigmoid", [gate])])
        branch = net.product(net.node("Mul", [gate, up]), following("ffn_down"))
    x = normalized(following("output_norm"))
    net.nodes[-1].output[3] = ""
    x = net.node("Gather", [x, net.constant(np.array(-1, np.int64))], axis=1)
    net.product(x, following("output"))
    net.nodes[-1].output[0] = "logits"
    return net.model("llama", inputs, [port("logits", TensorProto.FLOAT, [1, shape.vocabulary]), *outputs])


def models():
    out = {}
    for bits, block, level in FORMS:
        for shape in PRODUCTS:
            out[f"nbits{bits}_b{block}_l{level}_{'x'.join(map(str, shape))}"] = functools.partial(
                product, bits, block, level, *shape)
    for bits, block in LLAMAS:
        out[f"llama_{bits}b{block}"] = functools.partial(llama, bits, block)
    return out


MODELS = models()
