# SPDX-License-Identifier: Apache-2.0
"""Transformers for make_models.py, in the operators that exporters write at opset 14: normalisations, Gelu and
attention come as their parts, biases as additions. Those called NAME_axes have a symbolic batch and length, and compute
every shape from their inputs', as an export with dynamic axes does; NAME_fixed are the same of one row of 128 tokens.

Weights are random, scaled so that activations stay near unit variance and attention is neither flat nor one-hot.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Transformer:
    """Appends nodes one by one; methods take and return value names of [batch, tokens, width]."""

    def __init__(self, name, seed, width, heads, inner):
        self.name, self.width, self.heads, self.inner = name, width, heads, inner
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers, self.known = [], [], {}
        self.inputs, self.outputs = [], []
        self.fixed = None  # batch and tokens of NAME_fixed
        self.axes = False  # shapes are computed

    def node(self, operator, inputs, output=None, **attributes):
        name = output or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def number(self, value, dtype=np.float32):
        """A constant that nodes share."""
        key = (str(value), np.dtype(dtype).name)
        if key not in self.known:
            self.known[key] = self.constant(np.array(value, dtype))
        return self.known[key]

    def linear(self, x, inputs, outputs, gain=1.0):
        weight = self.rng.standard_normal((inputs, outputs), dtype=np.float32) * np.float32((gain / inputs) ** 0.5)
        bias = self.rng.normal(0, 0.02, outputs).astype(np.float32)
        return self.node("Add", [self.node("MatMul", [x, self.constant(weight)]), self.constant(bias)])

    def layer_norm(self, x):
        scale = self.rng.uniform(0.8, 1.2, self.width).astype(np.float32)
        bias = self.rng.normal(0, 0.05, self.width).astype(np.float32)
        centred = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[-1], keepdims=1)])
        squares = self.node("Pow", [centred, self.number(2.0)])
        variance = self.node("ReduceMean", [squares], axes=[-1], keepdims=1)
        deviation = self.node("Sqrt", [self.node("Add", [variance, self.number(1e-5)])])
        normal = self.node("Div", [centred, deviation])
        return self.node("Add", [self.node("Mul", [normal, self.constant(scale)]), self.constant(bias)])

    def gelu(self, x):
        erf = self.node("Erf", [self.node("Div", [x, self.number(2.0 ** 0.5)])])
        product = self.node("Mul", [x, self.node("Add", [erf, self.number(1.0)])])
        return self.node("Mul", [product, self.number(0.5)])

    def remember(self, what, layer, fresh):
        """Keys or values of all tokens: |fresh|, of [batch, heads, tokens, size], after the past ones, an input; the
        joined are an output."""
        past, present = f"past_{what}_{layer}", f"present_{what}_{layer}"
        for ports, name, tokens in ((self.inputs, past, "past"), (self.outputs, present, "present")):
            shape = ["N", self.heads, tokens, self.width // self.heads]
            ports.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.node("Concat", [past, fresh], output=present, axis=2)

    def scalar(self, value):
        """An int64 of rank 0 that nodes share."""
        name = f"scalar{value}"
        if name not in self.known:
            self.known[name] = name
            self.initializers.append(numpy_helper.from_array(np.int64(value), name))
        return name

    def length(self, x, axis):
        """A dimension of |x|, as [1]."""
        if self.fixed:
            return self.number([self.fixed[axis]], np.int64)
        size = self.node("Gather", [self.node("Shape", [x]), self.scalar(axis)], axis=0)
        return self.node("Unsqueeze", [size, self.number([0], np.int64)])

    def rows(self, x, *last):
        """The shape of |x| but for its last dimension, which becomes |last|."""
        if self.fixed:
            return self.number([*self.fixed, *last], np.int64)
        if not self.axes:
            return self.number([0, 0, *last], np.int64)
        sizes = [self.length(x, 0), self.length(x, 1), *(self.number([n], np.int64) for n in last)]
        return self.node("Concat", sizes, axis=0)

    def attention(self, x, mask=None, cached_layer=None):
        size = self.width // self.heads

        def split(y, permutation):
            return self.node("Transpose", [self.node("Reshape", [y, self.rows(y, self.heads, size)])], perm=permutation)

        query = split(self.linear(x, self.width, self.width), [0, 2, 1, 3])
        if cached_layer is None:
            key = split(self.linear(x, self.width, self.width), [0, 2, 3, 1])
            value = split(self.linear(x, self.width, self.width), [0, 2, 1, 3])
        else:
            key = split(self.linear(x, self.width, self.width), [0, 2, 1, 3])
            key = self.node("Transpose", [self.remember("key", cached_layer, key)], perm=[0, 1, 3, 2])
            value = split(self.linear(x, self.width, self.width), [0, 2, 1, 3])
            value = self.remember("value", cached_layer, value)
        scores = self.node("Div", [self.node("MatMul", [query, key]), self.number(float(size) ** 0.5)])
        if mask is not None:
            scores = self.node("Add", [scores, mask])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), value])
        joined = self.node("Transpose", [mixed], perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [joined, self.rows(joined, self.width)])
        return self.linear(joined, self.width, self.width)

    def feed_forward(self, x):
        return self.linear(self.gelu(self.linear(x, self.width, self.inner)), self.inner, self.width)

    def embed(self, vocabulary, tokens, position=None):
        """Of the input ids: a row of the table each, and one of each of the |tokens| positions or of |position|."""
        table = self.rng.standard_normal((vocabulary, self.width), dtype=np.float32)
        places = self.rng.standard_normal((tokens, self.width), dtype=np.float32) * np.float32(0.5)
        words = self.node("Gather", [self.constant(table), "ids"], axis=0)
        places = self.constant(places)
        if position is not None:
            places = self.node("Gather", [places, position], axis=0)
        return self.node("Add", [words, places])

    def first(self, table, tokens, axis):
        """The first |tokens|, [1], of a table."""
        zero, along = self.number([0], np.int64), self.number([axis], np.int64)
        return self.node("Slice", [table, zero, tokens, along])

    def causal_mask(self, tokens):
        """Of |tokens|, [1]: what is added to scores."""
        zero, one = self.scalar(0), self.scalar(1)
        places = self.node("Range", [zero, self.node("Squeeze", [tokens, self.number([0], np.int64)]), one])
        row, column = (self.node("Unsqueeze", [places, self.number([axis], np.int64)]) for axis in (0, 1))
        seen = self.node("LessOrEqual", [row, column])
        return self.node("Where", [seen, self.number(0.0), self.number(-np.inf)])

    def embed_axes(self, vocabulary, most, types=None):
        """Of ids of any number of tokens, up to |most|; |types|: an input of token types."""
        words, places = (self.constant(self.rng.standard_normal((n, self.width), dtype=np.float32) * np.float32(gain))
                         for n, gain in ((vocabulary, 1), (most, 0.5)))
        sum_ = self.node("Gather", [words, "ids"], axis=0)
        if types:
            kinds = self.constant(self.rng.standard_normal((2, self.width), dtype=np.float32) * np.float32(0.5))
            sum_ = self.node("Add", [sum_, self.node("Gather", [kinds, types], axis=0)])
        return self.node("Add", [sum_, self.first(places, self.length("ids", 1), 0)])

    def model(self, output, tokens, width):
        self.nodes[-1].output[0] = output
        batch = self.fixed[0] if self.fixed else "N"
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [batch, tokens])
        answer = helper.make_tensor_value_info(output, TensorProto.FLOAT, [batch, tokens, width])
        graph = helper.make_graph(self.nodes, self.name, [ids, *self.inputs], [answer, *self.outputs],
                                  self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8,
                                 producer_name="pyflame_rt bench")


def encoder(tokens=128):
    """6 layers of width 384, 12 heads, 1,536 inside: normalised after each sum."""
    net = Transformer("encoder", seed=384, width=384, heads=12, inner=1536)
    x = net.layer_norm(net.embed(1000, tokens))
    for _ in range(6):
        x = net.layer_norm(net.node("Add", [x, net.attention(x)]))
        x = net.layer_norm(net.node("Add", [x, net.feed_forward(x)]))
    return net.model("hidden", tokens, net.width)


def decoder(tokens=128, vocabulary=32000, width=512, heads=8, inner=2048, layers=6):
    """Normalised before each part; the whole prompt at once, logits of every token."""
    net = Transformer("decoder", seed=512, width=width, heads=heads, inner=inner)
    past = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    mask = net.constant(past.reshape(1, 1, tokens, tokens))
    x = net.embed(vocabulary, tokens)
    for _ in range(layers):
        x = net.node("Add", [x, net.attention(net.layer_norm(x), mask)])
        x = net.node("Add", [x, net.feed_forward(net.layer_norm(x))])
    net.linear(net.layer_norm(x), width, vocabulary)
    return net.model("logits", tokens, vocabulary)


def decoder_step(tokens=128, vocabulary=32000, width=512, heads=8, inner=2048, layers=6):
    """The decoder, one token after fewer than |tokens| past ones, whose keys and values are inputs. It sees them all,
    so that nothing is masked."""
    net = Transformer("decoder_step", seed=512, width=width, heads=heads, inner=inner)
    count = net.node("Gather", [net.node("Shape", ["past_key_0"]), net.number(2, np.int64)], axis=0)
    x = net.embed(vocabulary, tokens, count)
    for layer in range(layers):
        x = net.node("Add", [x, net.attention(net.layer_norm(x), cached_layer=layer)])
        x = net.node("Add", [x, net.feed_forward(net.layer_norm(x))])
    net.linear(net.layer_norm(x), width, vocabulary)
    return net.model("logits", 1, vocabulary)


MOST_TOKENS = 512
ROW = (1, 128)  # batch and tokens of NAME_fixed


def with_axes(net, fixed):
    """|net|, and the dimension of its tokens."""
    net.axes, net.fixed = not fixed, ROW if fixed else None
    return net, ROW[1] if fixed else "T"


def encoder_axes(fixed=False):
    net, tokens = with_axes(Transformer("encoder", seed=384, width=384, heads=12, inner=1536), fixed)
    x = net.layer_norm(net.embed_axes(1000, MOST_TOKENS))
    for _ in range(6):
        x = net.layer_norm(net.node("Add", [x, net.attention(x)]))
        x = net.layer_norm(net.node("Add", [x, net.feed_forward(x)]))
    return net.model("hidden", tokens, net.width)


def decoder_axes(fixed=False, vocabulary=8000):
    net, tokens = with_axes(Transformer("decoder", seed=512, width=512, heads=8, inner=2048), fixed)
    mask = net.causal_mask(net.length("ids", 1))
    x = net.embed_axes(vocabulary, MOST_TOKENS)
    for _ in range(6):
        x = net.node("Add", [x, net.attention(net.layer_norm(x), mask)])
        x = net.node("Add", [x, net.feed_forward(net.layer_norm(x))])
    net.linear(net.layer_norm(x), net.width, vocabulary)
    return net.model("logits", tokens, vocabulary)


def bert_axes(fixed=False):
    """An encoder with token types and a mask of tokens, as BERT's exports have."""
    net, tokens = with_axes(Transformer("bert", seed=256, width=256, heads=4, inner=1024), fixed)
    batch = ROW[0] if fixed else "N"
    for name in ("types", "mask"):
        net.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, [batch, tokens]))
    seen = net.node("Cast", [net.node("Unsqueeze", ["mask", net.number([1, 2], np.int64)])], to=TensorProto.FLOAT)
    mask = net.node("Mul", [net.node("Sub", [net.number(1.0), seen]), net.number(np.finfo(np.float32).min)])
    x = net.layer_norm(net.embed_axes(1000, MOST_TOKENS, "types"))
    for _ in range(4):
        x = net.layer_norm(net.node("Add", [x, net.attention(x, mask)]))
        x = net.layer_norm(net.node("Add", [x, net.feed_forward(x)]))
    return net.model("hidden", tokens, net.width)


def encoder_fixed():
    return encoder_axes(fixed=True)


def decoder_fixed():
    return decoder_axes(fixed=True)


def bert_fixed():
    return bert_axes(fixed=True)
