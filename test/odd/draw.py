# SPDX-License-Identifier: Apache-2.0
"""One random case: what a family's generators draw from, and the model that comes of it.

A case is made from its seed alone. At most two things of a case are odd (an axis beyond the rank, a size that does not
fit, an attribute of no meaning): with more, both sides refuse and nothing is learnt.
"""
import os
import sys

import numpy as np
from onnx import helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recorded"))
from peer import Bits  # noqa: E402
from record import tensor_proto, type_proto  # noqa: E402

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
BOOL, TEXT = np.bool_, object
FLOATS = [F32, F32, F32, F32, F64, F16]
INTEGERS = [I32, I64, I8, U8, I16, U16, U32, U64]
SIGNED = [I32, I64, I8, I16]
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + [BOOL]
HUGE = [2**31 - 1, -2**31, 2**31, 2**40, 2**62, -2**63, 2**63 - 1]
MOST = 2**31 - 1
ONNX_TYPES = {F32: 1, U8: 2, I8: 3, U16: 4, I16: 5, I32: 6, I64: 7, TEXT: 8, BOOL: 9, F16: 10, F64: 11, U32: 12, U64: 13}
NEWEST_OPSET = 24
WORDS = ["", "a", "B", "aB c", "x,y", "1", "-2.5", "NaN", "inf", "ab", "ba", "\u00e4", " ", "the", "The"]


def bounded(value):
    """What an attribute of integers can hold of |value|."""
    if isinstance(value, list):
        return [bounded(each) for each in value]
    return max(-(1 << 63), min(value, (1 << 63) - 1)) if isinstance(value, int) else value


class Draw:
    """The random choices of one case and what they built so far."""

    def __init__(self, seed, index):
        self.random = np.random.RandomState([seed % 2**32, index % 2**32])
        self.oddities = self.pick([0, 0, 0, 1, 1, 2])
        self.special = self.chance(0.12)  # NaN, infinities and extremes among the data
        self.empty = self.chance(0.06)    # dimensions of 0
        self.nodes, self.inputs, self.initializers, self.opsets = [], {}, {}, {}
        self.fixed = self.chance(0.5)     # inputs have their shapes declared
        self.constant = self.pick([0.0, 0.2, 1.0])
        self.count = 0
        self.outputs = []
        self.opset = None

    # ------------------------------------------------------------------ choices
    def chance(self, p):
        return self.random.random_sample() < p

    def odd(self, p=0.15):
        """Whether to do something odd here."""
        if self.oddities and self.chance(p):
            self.oddities -= 1
            return True
        return False

    def pick(self, choices):
        return choices[self.random.randint(len(choices))]

    def int(self, low, high):
        """Both ends included."""
        return int(self.random.randint(low, high + 1))

    def size(self, low=1, high=5):
        if self.empty and self.chance(0.3):
            return 0
        return 1 if self.chance(0.15) and low <= 1 else self.int(low, high)

    def shape(self, low=0, high=4, limit=5):
        return [self.size(1, limit) for _ in range(self.int(low, high))]

    def rank_shape(self, rank, limit=5):
        return self.shape(rank, rank, limit)

    def broadcastable(self, shape):
        """A shape that broadcasts with |shape|, for the most part to it."""
        out = [1 if self.chance(0.3) else n for n in shape]
        out = out[self.int(0, len(out)):] if self.chance(0.4) else out
        if self.chance(0.1):
            out = [self.size()] * (len(out) == len(shape)) + out
        if out and self.odd():
            out[self.int(0, len(out) - 1)] = self.int(0, 6)
        return out

    def real(self, low=-2.0, high=2.0):
        return float(F32(self.random.uniform(low, high)))

    def data(self, dtype, shape, low=None, high=None):
        shape, count = tuple(shape), int(np.prod(shape, dtype=np.int64))
        if dtype is TEXT:
            return np.array([self.pick(WORDS) for _ in range(count)], object).reshape(shape)
        if dtype is BOOL:
            return np.asarray(self.random.randint(0, 2, shape)).astype(BOOL)
        if np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            low = max(info.min, -5 if low is None else int(low))
            high = max(low, min(info.max, 6 if high is None else int(high)))
            out = np.asarray(self.random.randint(low, high + 1, shape)).astype(dtype)
            extremes = [info.min, info.max, 0]
        else:
            if self.chance(0.3):  # ties and whole numbers
                out = np.asarray(self.random.randint(-4, 5, shape) / 2).astype(dtype)
                if low is not None:
                    out = np.clip(out, low, high).astype(dtype)
            else:
                out = np.asarray(self.random.uniform(-2 if low is None else low, 2 if high is None else high,
                                                     shape)).astype(dtype)
            info = np.finfo(dtype)
            extremes = [np.nan, np.inf, -np.inf, info.max, info.tiny / 4, -0.0]
        if self.special and count and low is None:
            flat = out.reshape(-1)
            for _ in range(self.int(1, 3)):
                flat[self.int(0, count - 1)] = self.pick(extremes)
            out = flat.reshape(shape)
        return out

    def axis(self, rank):
        if self.odd():
            return self.pick([rank, -rank - 1, rank + 3] + HUGE)
        return self.int(-rank, rank - 1) if rank else 0

    def axes(self, rank, some=False):
        """Distinct axes, for the most part."""
        count = self.int(1 if some else 0, rank) if rank else 0
        out = [int(a) for a in self.random.permutation(rank)[:count]]
        out = [a - rank if self.chance(0.3) else a for a in out]
        if self.odd():
            out.append(self.axis(rank) if rank and self.chance(0.5) else self.pick([rank, -rank - 1] + HUGE))
        return out

    def maybe(self, attrs, p=0.6, /, **more):
        """Adds some of |more| to |attrs|; the rest keep their defaults."""
        for name, value in more.items():
            if self.chance(p):
                attrs[name] = value
        return attrs

    def flag(self):
        return self.pick([2, -1, 7]) if self.odd(0.03) else self.int(0, 1)

    def version(self, since=7, newest=NEWEST_OPSET):
        """The opset of ai.onnx; drawn once."""
        if self.opset is None:
            common = [v for v in (11, 13, 17, 18, 19, 20, 21, 22) if since <= v <= newest]
            self.opset = self.pick(common) if common and self.chance(0.7) else self.int(since, max(since, newest))
        return self.opset

    # ------------------------------------------------------------------ the graph
    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def input(self, value, constant=None):
        """An input of the model, or one of its constants with the probability |constant|."""
        if value is None:
            return ""
        name = self.name("x")
        value = value if isinstance(value, Bits) else np.asarray(value)
        if self.chance(self.constant if constant is None else constant):
            self.initializers[name] = value
        else:
            self.inputs[name] = value
        return name

    def shape_input(self, values, dtype=I64, rank=1):
        """A shape, axes, ...: mostly constant."""
        values = np.array(values, dtype) if rank is None else np.array(values, dtype).reshape([-1] if rank else [])
        if rank == 1 and self.odd(0.04):
            values = values.reshape(1, -1) if self.chance(0.5) or values.size != 1 else values.reshape(())
        return self.input(values, constant=0.6)

    def node(self, op, inputs, outputs=1, domain="", **attrs):
        """Adds a node; |inputs| are names or values (made inputs). Returns its outputs' names."""
        names = [v if isinstance(v, str) else self.input(v) for v in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.name("y") for _ in range(outputs)]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        attrs = {key: bounded(value) for key, value in attrs.items()}
        self.nodes.append(helper.make_node(op, names, results, domain=domain, name=f"{op}_{len(self.nodes)}", **attrs))
        return results

    def result(self, *names):
        self.outputs.extend(names)

    def finish(self, op, inputs, outputs=1, domain="", chain=True, **attrs):
        """The node that the case is about, its outputs being the model's; sometimes with a neighbour for fusion."""
        names = [v if isinstance(v, str) else self.input(v) for v in inputs]
        kinds = {**self.inputs, **self.initializers}
        first = kinds.get(names[0]) if names else None
        real = isinstance(first, np.ndarray) and first.dtype in (F32, F64)
        if chain and real and self.chance(0.12):
            names[0] = self.node(self.pick(["Neg", "Abs", "Identity", "Relu", "Sqrt"]), [names[0]])[0]
        results = self.node(op, names, outputs, domain, **attrs)
        if chain and real and self.chance(0.15):
            step = self.pick(["Relu", "Neg", "Identity", "Abs", "Transpose", "Flatten"])
            results[0] = self.node(step, [results[0]])[0]
        self.result(*results)

    def model(self, op):
        """The model's bytes."""
        def info(name, value):
            out = helper.make_empty_tensor_value_info(name)
            if value is None:
                out.ClearField("type")
            else:
                out.type.CopyFrom(type_proto(value, self.fixed))
            return out

        graph = helper.make_graph(
            self.nodes, op, [info(n, v) for n, v in self.inputs.items()], [info(n, None) for n in self.outputs],
            [tensor_proto(n, v) for n, v in self.initializers.items()])
        opsets = {"": self.version(), **{n.domain: 1 for n in self.nodes if n.domain}, **self.opsets}
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()],
                                 ir_version=8).SerializeToString()

    def text(self):
        """The case in one line: nodes with attributes, inputs with types and shapes."""
        def value(name, v):
            kind = f"type{v.dtype}" if isinstance(v, Bits) else str(np.asarray(v).dtype) if not isinstance(
                v, list) else "sequence"
            shape = "" if isinstance(v, list) else list(v.dims) if isinstance(v, Bits) else list(np.shape(v))
            small = not isinstance(v, (Bits, list)) and np.size(v) <= 6 and (name in self.initializers or
                                                                           np.asarray(v).dtype.kind in "iu")
            return f"{name}:{kind}{shape}" + (f"={np.asarray(v).tolist()}" if small else "")

        parts = []
        for node in self.nodes:
            attrs = []
            for a in node.attribute:
                v = helper.get_attribute_value(a)
                attrs.append(f"{a.name}={v if isinstance(v, (int, float, bytes, list)) else '...'}")
            parts.append(f"{node.op_type}({', '.join([*node.input, *attrs])})")
        kept = [value(n, v) for n, v in self.inputs.items()] + ["const " + value(n, v)
                                                                 for n, v in self.initializers.items()]
        return f"opset {self.version()} " + " -> ".join(parts) + " | " + ", ".join(kept) + (
            "" if self.fixed else " | shapes undeclared") + self.marks(values=[*self.inputs.values(),
                                                                              *self.initializers.values()])

    def marks(self, values):
        """What differences.txt may ask for: elements that are no ordinary numbers, tensors without elements."""
        arrays = [v for v in values if isinstance(v, np.ndarray)]
        out = "" if not any(n.op_type == "Sqrt" for n in self.nodes) else " | not finite"
        for array in arrays:
            if array.dtype.kind == "f" and array.size and not (np.abs(array) < 1e30).all() or (
                    array.dtype == F16 and array.size and (np.abs(array) > 6e4).any()):
                out = " | not finite"
        return out + (" | no elements" if any(a.size == 0 for a in arrays) else "")


def helper_tensor(array):
    """An attribute's tensor."""
    return tensor_proto("value", array)
