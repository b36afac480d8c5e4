#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes nodes.tsv: single nodes, which of their dimensions are 0 by turns, and what ONNX Runtime makes of that.

    /usr/bin/python3 test/empty/record.py --peer LIBONNXRUNTIME.SO [--only OPERATOR]... [FOLDER...]

Nodes are those of the one-node models in FOLDER (default: libonnx-testdata's and test/recorded) and of more_nodes.txt;
what inputs hold is made up (pattern), but for integers that fit a line. table.h says how a line is read.
"""
import argparse
import glob
import os
import signal
import sys
from collections import defaultdict

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "recorded"))
from peer import NUMPY, Bits, Peer, dtype_of  # noqa: E402

FOLDERS = ["/usr/share/libonnx-testdata/data/node", os.path.join(HERE, "..", "recorded")]
NAMES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
         10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
NUMBERS = {name: number for number, name in NAMES.items()}
NODES_AN_OPERATOR = 5
VARIANTS_A_NODE = 10
FEW = 24  # integers that are written out, and results
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


class Skip(Exception):
    pass


def pattern(dtype, dims):
    """What the test makes up too: table.cc."""
    i = np.arange(int(np.prod(dims)))
    if dtype == "string":
        return np.array([f"s{k % 3}" for k in i], dtype=object).reshape(dims)
    kind = NUMPY[NUMBERS[dtype]]
    if dtype == "bool":
        values = i % 2 == 1
    elif dtype.startswith(("float", "complex")):
        values = ((i * 37 + 11) % 23 - 11) / 8
    else:
        values = (i * 5 + 1) % 7
    return values.astype(kind).reshape(dims)


def text_of(array, few=FEW):
    """"float32[2,3]:0,1,..." without values beyond |few|; runs of a value as 0*6."""
    dtype = NAMES[dtype_of(array)]
    out = f"{dtype}[{','.join(map(str, array.shape))}]"
    if array.size == 0 or dtype == "string" or dtype.startswith("complex"):
        return out
    runs = []
    for value in array.reshape(-1).tolist():
        text = format(value, ".6g") if isinstance(value, float) else str(int(value))
        if runs and runs[-1][0] == text:
            runs[-1][1] += 1
        else:
            runs.append([text, 1])
    if len(runs) > few:
        return out
    return out + ":" + ",".join(t if n == 1 else f"{t}*{n}" for t, n in runs)


def attribute_text(a):
    value = helper.get_attribute_value(a)
    if a.type == onnx.AttributeProto.INT:
        return f"{a.name}=i:{value}"
    if a.type == onnx.AttributeProto.FLOAT:
        return f"{a.name}=f:{value:.9g}"
    if a.type == onnx.AttributeProto.STRING:
        text = value.decode()
        if any(c in text for c in "\t;\n|"):
            raise Skip("text")
        return f"{a.name}=s:{text}"
    if a.type == onnx.AttributeProto.INTS:
        return f"{a.name}=I:{','.join(map(str, value))}"
    if a.type == onnx.AttributeProto.FLOATS:
        return f"{a.name}=F:{','.join(format(v, '.9g') for v in value)}"
    if a.type == onnx.AttributeProto.STRINGS:
        texts = [v.decode() for v in value]
        if any(c in t for t in texts for c in "\t;,\n|"):
            raise Skip("text")
        return f"{a.name}=S:{','.join(texts)}"
    if a.type == onnx.AttributeProto.TENSOR:
        array = numpy_helper.to_array(value)
        if array.size > FEW or array.dtype == object:
            raise Skip("tensor attribute")
        return f"{a.name}=t:{text_of(array)}"
    raise Skip("attribute")


def attribute_of(text):
    name, value = text.split("=", 1)
    kind, value = value.split(":", 1)
    parts = value.split(",")
    return helper.make_attribute(name, {
        "i": lambda: int(value), "f": lambda: float(value), "s": lambda: value, "I": lambda: [int(v) for v in parts],
        "F": lambda: [float(v) for v in parts], "S": lambda: parts}[kind]())


def input_of(text):
    if text == "-":
        return None
    kind, rest = text.split("[")
    dims, values = rest.split("]")
    dims = tuple(int(d) for d in dims.split(",") if d)
    dtype = NUMPY[NUMBERS[kind]]
    array = np.array([dtype(float(v)) for v in values[1:].split(",")], dtype).reshape(dims) if values else None
    return kind, dims, array


class Node:
    """One line: what a node is and what it takes."""

    @classmethod
    def of_text(cls, line):
        node = cls()
        node.op, node.domain, opset, attributes, inputs, outputs = line.split("\t")
        node.opset = int(opset)
        node.opsets = {"": 17, node.domain: node.opset}
        node.attributes = sorted(attributes.split(";")) if attributes else []
        node.inputs = [input_of(i) for i in inputs.split(" ")]
        node.node = onnx.NodeProto(op_type=node.op, domain=node.domain)
        node.node.attribute.extend(attribute_of(a) for a in node.attributes)
        node.node.output.extend("o" if o == "1" else "" for o in outputs.split(","))
        return node

    @classmethod
    def of_model(cls, path):
        node = cls()
        node.read(path)
        return node

    def read(self, path):
        model = onnx.load(path)
        if len(model.graph.node) != 1 or model.functions or model.graph.sparse_initializer:
            raise Skip("not one node")
        node = model.graph.node[0]
        self.node, self.op, self.domain = node, node.op_type, node.domain if node.domain != "ai.onnx" else ""
        opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        self.opset = opsets.get(self.domain, 1)
        self.opsets = {**{"": 17}, **opsets}
        self.attributes = sorted(attribute_text(a) for a in node.attribute)
        fed = {}
        folder = os.path.join(os.path.dirname(path), "test_data_set_0")
        for i, info in enumerate(model.graph.input):
            if not info.type.HasField("tensor_type"):
                raise Skip("not tensors")
            with open(os.path.join(folder, f"input_{i}.pb"), "rb") as file:
                fed[info.name] = TensorProto.FromString(file.read())
        for tensor in model.graph.initializer:
            fed[tensor.name] = tensor
        for info in model.graph.output:
            if info.type.WhichOneof("value") not in (None, "tensor_type"):
                raise Skip("not tensors")
        self.inputs = []  # (dtype name, dims, array or None where it is made up), None where absent
        for name in node.input:
            if not name:
                self.inputs.append(None)
                continue
            proto = fed[name]
            if proto.data_type not in NAMES:
                raise Skip("a type that NumPy lacks")
            array = numpy_helper.to_array(proto)
            whole = array.dtype.kind in "iub" or array.size <= 4 and array.dtype.kind == "f"
            kept = array if whole and array.size <= FEW else None
            self.inputs.append((NAMES[proto.data_type], tuple(array.shape), kept))
        if not self.inputs:
            raise Skip("no inputs")

    def signature(self):
        return (tuple(a.split("=")[0] for a in self.attributes),
                tuple((i[0], len(i[1])) if i else None for i in self.inputs))

    def head(self):
        def text(i):
            if i is None:
                return "-"
            if i[2] is not None:
                return text_of(i[2])
            return f"{i[0]}[{','.join(map(str, i[1]))}]"
        return "\t".join([self.op, self.domain, str(self.opset), ";".join(self.attributes),
                          " ".join(map(text, self.inputs)), ",".join("1" if o else "0" for o in self.node.output)])

    def variants(self):
        """Sets of (input, axis) that are 0; and of (input, value): elements of that value are 0 too."""
        axes = [(n, d) for n, i in enumerate(self.inputs) if i for d in range(len(i[1]))]
        sizes = defaultdict(list)
        for n, d in axes:
            sizes[self.inputs[n][1][d]].append((n, d))
        out = []
        for size, group in sizes.items():
            out.append("+".join(f"{n}.{d}" for n, d in group))
            values = [n for n, i in enumerate(self.inputs)
                      if i and i[0] == "int64" and i[2] is not None and size in i[2].reshape(-1)]
            if values:
                out.append("+".join([f"{n}.{d}" for n, d in group if n not in values] +
                                    [f"{n}@{size}" for n in values]))
        firsts = [f"{n}.0" for n, i in enumerate(self.inputs) if i and len(i[1]) > 1]
        out.append("+".join(firsts))
        out += [f"{n}.{d}" for n, d in axes]
        if not axes:
            return [""]
        return [v for v in dict.fromkeys(out) if v][:VARIANTS_A_NODE]

    def feed(self, variant):
        arrays = []
        for n, i in enumerate(self.inputs):
            if i is None:
                arrays.append(None)
                continue
            dtype, dims, array = i
            dims = tuple(0 if f"{n}.{d}" in variant.split("+") else size for d, size in enumerate(dims))
            if array is None or dims != i[1]:
                array = pattern(dtype, dims)
            for part in variant.split("+"):
                if part.startswith(f"{n}@"):
                    array = np.where(array == int(part.split("@")[1]), 0, array).astype(array.dtype)
            arrays.append(array)
        return arrays

    def results(self, peer, variant):
        """What the outputs are, as text; x where the peer has none."""
        feed = {f"i{n}": a for n, a in enumerate(self.feed(variant)) if a is not None}
        node = onnx.NodeProto()
        node.CopyFrom(self.node)
        del node.input[:], node.output[:]
        node.input.extend(f"i{n}" if i else "" for n, i in enumerate(self.inputs))
        node.output.extend(f"o{n}" if o else "" for n, o in enumerate(self.node.output))
        outputs = []
        for name in node.output:
            if name:
                outputs.append(helper.make_empty_tensor_value_info(name))
                outputs[-1].ClearField("type")
        graph = helper.make_graph([node], "empty", [
            helper.make_tensor_value_info(name, dtype_of(a), a.shape) for name, a in feed.items()], outputs)
        model = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid(d, v) for d, v in self.opsets.items()])
        read, write = os.pipe()
        child = os.fork()  # the peer may die of it
        if child == 0:
            signal.alarm(20)  # or not end
            text = "x"
            try:
                os.close(1), os.close(2)
                values = peer.run(model.SerializeToString(), feed)
                if not any(isinstance(v, (Bits, list, dict)) or v is None for v in values):
                    text = " ".join(text_of(v, 12) for v in values)
            except Exception:  # its own, of any kind
                pass
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            text = file.read().decode()
        os.waitpid(child, 0)
        if self.op in RANDOM:
            text = " ".join(t.split(":")[0] for t in text.split(" "))
        return text or "x"


def nodes_of(folders, only):
    """A few of each operator, as different as can be."""
    found = defaultdict(dict)
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "**", "model.onnx"), recursive=True)):
            try:
                node = Node.of_model(path)
            except (Skip, FileNotFoundError, KeyError, UnicodeDecodeError):
                continue
            if not only or node.op in only:
                found[node.domain, node.op].setdefault(node.signature(), node)
    for key in sorted(found):
        yield from list(found[key].values())[:NODES_AN_OPERATOR]
    with open(os.path.join(HERE, "more_nodes.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if not line.startswith("#") and (not only or line.split("\t")[0] in only):
                yield Node.of_text(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="libonnxruntime.so of ONNX Runtime 1.30")
    parser.add_argument("--only", action="append", help="an operator; the table is then written to stdout")
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    args = parser.parse_args()
    peer = Peer(args.peer)
    lines = []
    for node in nodes_of(args.folders, args.only):
        results = [f"{v}>{node.results(peer, v)}" for v in node.variants()]
        if results:
            lines.append(node.head() + "\t" + "|".join(results))
    text = "\n".join(lines) + "\n"
    if args.only:
        sys.stdout.write(text)
        return 0
    with open(os.path.join(HERE, "nodes.tsv"), "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{len(lines)} nodes by ONNX Runtime {peer.version}, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
