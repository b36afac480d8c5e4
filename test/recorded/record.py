#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of this folder: a model, its inputs, and the outputs that ONNX Runtime gives.

    /usr/bin/python3 test/recorded/record.py --peer LIBONNXRUNTIME.SO [--only FAMILY] [--case TEXT]

A family is a module cases_<family>.py with a function cases() that yields Case. A case with |expected| has outputs
from an independent NumPy formula, where the peer lacks the operator. Folders are <domain>/<operator>/<case>, as
`pfrt test` takes them. Inputs come from a generator seeded by the case's name, so that a case can be added or
written again without touching others.
"""
import argparse
import importlib
import os
import shutil
import sys
import zlib
from dataclasses import dataclass, field

import numpy as np
from onnx import MapProto, SequenceProto, TensorProto, TypeProto, helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer import STRING, Bits, Peer, dtype_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Case:
    domain: str  # folder: "com.microsoft"
    op: str  # folder below it
    name: str
    nodes: list  # helper.make_node(...)
    inputs: dict  # name -> array, Bits, or a list of arrays (a sequence)
    outputs: list  # names
    initializers: dict = field(default_factory=dict)  # name -> array or Bits
    opsets: dict = field(default_factory=dict)  # domain -> version; ai.onnx 17 and the case's domain 1 unless given
    expected: dict = None  # name -> value, when the peer cannot give it
    functions: list = field(default_factory=list)


def rng(name):
    """The random generator of a case."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def tensor_proto(name, value):
    proto = TensorProto(name=name)
    if isinstance(value, Bits):
        proto.data_type, proto.raw_data = value.dtype, value.data
        proto.dims.extend(value.dims)
        return proto
    value = np.asarray(value)
    proto.data_type = dtype_of(value)
    proto.dims.extend(value.shape)
    if proto.data_type == STRING:
        proto.string_data.extend(t if isinstance(t, bytes) else str(t).encode() for t in value.reshape(-1))
    else:
        proto.raw_data = value.tobytes()
    return proto


def map_value_type(entry):
    """Of a map's entries: Python's int and float stand for int64 and float32."""
    return np.int64 if isinstance(entry, (int, np.integer)) else (
        np.float64 if type(entry) is np.float64 else np.float32)


def map_proto(name, value):
    proto = MapProto(name=name)
    keys, values = list(value), list(value.values())
    if keys and isinstance(keys[0], (str, bytes)):
        proto.key_type = TensorProto.STRING
        proto.string_keys.extend(k if isinstance(k, bytes) else k.encode() for k in keys)
    else:
        proto.key_type = TensorProto.INT64
        proto.keys.extend(keys)
    text = values and isinstance(values[0], (str, bytes))
    kind = object if text else map_value_type(values[0]) if values else np.float32
    proto.values.tensor_values.append(tensor_proto("", np.array(values, dtype=kind)))
    proto.values.elem_type = SequenceProto.TENSOR
    return proto


def value_proto(name, value):
    if isinstance(value, dict):
        return map_proto(name, value)
    if not isinstance(value, (list, tuple)):
        return tensor_proto(name, value)
    proto = SequenceProto(name=name)
    if value and isinstance(value[0], dict):
        proto.elem_type = SequenceProto.MAP
        proto.map_values.extend(map_proto("", v) for v in value)
    else:
        proto.elem_type = SequenceProto.TENSOR
        proto.tensor_values.extend(tensor_proto("", v) for v in value)
    return proto


def type_proto(value, with_dims):
    proto = TypeProto()
    if isinstance(value, dict):
        key = next(iter(value))
        proto.map_type.key_type = STRING if isinstance(key, (str, bytes)) else TensorProto.INT64
        entry = next(iter(value.values()))
        proto.map_type.value_type.tensor_type.elem_type = (
            STRING if isinstance(entry, (str, bytes)) else dtype_of(np.zeros(0, map_value_type(entry))))
    elif isinstance(value, (list, tuple)):
        proto.sequence_type.elem_type.CopyFrom(type_proto(value[0], False))
    else:
        proto.tensor_type.elem_type = value.dtype if isinstance(value, Bits) else dtype_of(np.asarray(value))
        if with_dims:
            proto.tensor_type.shape.SetInParent()
            for n in value.dims if isinstance(value, Bits) else np.shape(value):
                proto.tensor_type.shape.dim.add().dim_value = n
    return proto


def model_of(case, outputs):
    """The model's bytes; |outputs| maps names to values, or to None where the type is to be inferred."""
    def info(name, value, with_dims):
        out = helper.make_empty_tensor_value_info(name)
        if value is not None:
            out.type.CopyFrom(type_proto(value, with_dims))
        else:
            out.ClearField("type")
        return out

    graph = helper.make_graph(
        case.nodes, case.op + "_" + case.name, [info(n, v, True) for n, v in case.inputs.items()],
        [info(n, v, False) for n, v in outputs.items()], [tensor_proto(n, v) for n, v in case.initializers.items()])
    opsets = {"": 17, **({case.domain: 1} if case.domain != "ai.onnx" else {}), **case.opsets}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()],
                              functions=case.functions, ir_version=8)
    return model.SerializeToString()


def write(case, outputs):
    folder = os.path.join(HERE, case.domain, case.op, case.name)
    shutil.rmtree(folder, ignore_errors=True)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    files = {os.path.join(folder, "model.onnx"): model_of(case, outputs)}
    for kind, values in (("input", case.inputs), ("output", outputs)):
        for i, (name, value) in enumerate(values.items()):
            files[os.path.join(data, f"{kind}_{i}.pb")] = value_proto(name, value).SerializeToString()
    for path, content in files.items():
        with open(path, "wb") as file:
            file.write(content)
    return sum(map(len, files.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="libonnxruntime.so of ONNX Runtime 1.30")
    parser.add_argument("--only", help="one family")
    parser.add_argument("--case", default="", help="only cases whose domain/operator/name contains this")
    args = parser.parse_args()
    peer = Peer(args.peer)
    families = sorted(f[len("cases_"):-len(".py")] for f in os.listdir(HERE) if f.startswith("cases_"))
    written = failed = 0
    for family in families:
        if args.only and family != args.only:
            continue
        for case in importlib.import_module("cases_" + family).cases():
            label = f"{case.domain}/{case.op}/{case.name}"
            if args.case not in label:
                continue
            try:
                outputs = case.expected or dict(zip(
                    case.outputs, peer.run(model_of(case, dict.fromkeys(case.outputs)), case.inputs)))
                size = write(case, outputs)
                written += 1
                if size > 16384:
                    print(f"{label}: {size} bytes, smaller tensors would do", file=sys.stderr)
            except RuntimeError as error:
                failed += 1
                print(f"{label}: {error}", file=sys.stderr)
    print(f"{written} cases written by ONNX Runtime {peer.version}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
