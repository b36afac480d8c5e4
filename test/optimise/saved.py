#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optimised models, saved as ONNX, in ONNX Runtime.

    /usr/bin/python3 test/optimise/saved.py --pfrt PFRT --peer LIBONNXRUNTIME.SO [--level none] FOLDER...

Every ONNX backend test below the folders is saved by `pfrt optimize` and run by the peer. Its outputs must be those
that the test has or, where the peer's own differ from these, those that the peer gives for the original. Models that
the peer does not run in either form are counted; one that it runs as it was and not as it is saved is a failure, and
so is one that is not saved, but for those that saved_exceptions.txt lists with a reason.
"""
import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recorded"))
from peer import BITS, NUMPY, PACKED, STRING, Bits, Peer  # noqa: E402

TYPED = {1: "float_data", 2: "int32_data", 3: "int32_data", 4: "int32_data", 5: "int32_data", 6: "int32_data",
         7: "int64_data", 9: "int32_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike"}
SECONDS = 120  # limit of a model


def from_tensor(proto):
    dims, dtype = tuple(proto.dims), proto.data_type
    if dtype == STRING:
        return np.array(list(proto.string_data), dtype=object).reshape(dims)
    if proto.HasField("raw_data"):
        if dtype in NUMPY:
            return np.frombuffer(proto.raw_data, NUMPY[dtype]).reshape(dims).copy()
        return Bits(dtype, dims, proto.raw_data)
    if dtype in (14, 15):
        parts = np.array(proto.float_data if dtype == 14 else proto.double_data, NUMPY[dtype - 13 if dtype == 14 else 11])
        return parts.view(NUMPY[dtype]).reshape(dims)
    if dtype == 10:
        return np.array(proto.int32_data, np.uint16).view(np.float16).reshape(dims)
    if dtype in NUMPY:
        return np.array(getattr(proto, TYPED[dtype])).astype(NUMPY[dtype]).reshape(dims)
    return Bits(dtype, dims, np.array(proto.int32_data).astype(BITS.get(dtype, np.uint8)).tobytes())


def from_sequence(proto):
    if proto.elem_type == SequenceProto.SEQUENCE:
        return [from_sequence(p) for p in proto.sequence_values]
    if proto.elem_type == SequenceProto.MAP:
        return [from_map(p) for p in proto.map_values]
    return [from_tensor(p) for p in proto.tensor_values]


def from_map(proto):
    keys = list(proto.string_keys) or list(proto.keys)
    return dict(zip(keys, from_tensor(proto.values.tensor_values[0]).tolist()))


def read(path, info):
    """The value in a file whose type |info| declares; None for an empty optional."""
    data = path.read_bytes()
    kind = info.type.WhichOneof("value")
    if kind == "optional_type":
        proto = OptionalProto.FromString(data)
        if proto.elem_type == OptionalProto.TENSOR:
            return from_tensor(proto.tensor_value)
        return from_sequence(proto.sequence_value) if proto.elem_type == OptionalProto.SEQUENCE else None
    readers = [lambda: from_tensor(TensorProto.FromString(data))]  # the recorded form of a map may be a dense tensor
    if kind == "sequence_type":
        readers.insert(0, lambda: from_sequence(SequenceProto.FromString(data)))
    if kind == "map_type":
        readers.insert(0, lambda: from_map(MapProto.FromString(data)))
    for reader in readers:
        with suppress(DecodeError):
            return reader()
    raise ValueError(f"{path} holds none of what its type says")


def decoded(value):
    """Numbers that compare: bfloat16 as float32, other bits as they are."""
    if isinstance(value, Bits):
        if value.dtype == 16:
            bits = np.frombuffer(value.data, np.uint16).astype(np.uint32) << 16
            return bits.view(np.float32).reshape(value.dims)
        data = np.frombuffer(value.data, np.uint8)
        width = 8 // PACKED.get(value.dtype, 1)
        parts = [data >> shift & (1 << width) - 1 for shift in range(0, 8, width)]
        return np.stack(parts, -1).reshape(-1)[:math.prod(value.dims)]
    return value


def same(got, want, rtol, atol):
    if got is None or want is None:
        return got is None and want is None
    if isinstance(want, (list, dict)) or isinstance(got, (list, dict)):
        if isinstance(got, list) and got and isinstance(got[0], dict) and not isinstance(want, (list, dict)):
            got = np.array([[row[key] for key in sorted(row)] for row in got])  # as a dense tensor
            return same(got, want, rtol, atol)
        if type(got) is not type(want) or len(got) != len(want):
            return False
        if isinstance(want, dict):
            return all(key in got and same(np.array(got[key]), np.array(want[key]), rtol, atol) for key in want)
        return all(same(g, w, rtol, atol) for g, w in zip(got, want))
    got, want = decoded(got), decoded(want)
    if got.shape != want.shape:
        return False
    if got.dtype == object or want.dtype == object:
        text = lambda t: t if isinstance(t, bytes) else str(t).encode()  # noqa: E731
        return [text(t) for t in got.reshape(-1)] == [text(t) for t in want.reshape(-1)]
    if got.dtype.kind in "fc" and got.dtype.itemsize == 2:
        rtol = max(rtol, 1e-2)
    if got.dtype.kind in "fc":
        return bool(np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    return bool(np.array_equal(got, want))


def same_shape(got, want):
    return isinstance(got, np.ndarray) and isinstance(want, np.ndarray) and got.shape == want.shape


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                yield from operators(body)


def data_sets(folder, model):
    """(inputs by name, outputs in order) of each data set."""
    graph = model.graph
    defaults = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in defaults]
    for data in sorted(folder.glob("test_data_set_*")):
        if (data / "input_0.pb").exists() or not inputs:
            given = {info.name: read(data / f"input_{i}.pb", info) for i, info in enumerate(inputs)
                     if (data / f"input_{i}.pb").exists()}
            yield given, [read(data / f"output_{i}.pb", info) for i, info in enumerate(graph.output)
                          if (data / f"output_{i}.pb").exists()]


PEER = None


def start(library):
    global PEER
    PEER = Peer(library)


def answers(model, inputs):
    """What the peer gives, or why not."""
    try:
        return PEER.run(model, inputs), None
    except Exception as error:  # noqa: BLE001: whatever it is, it is the finding
        return None, re.sub(r"\s+", " ", str(error))


def judge(folder, saved_path, rtol, atol):
    """passed, absent (the peer has no such operator) or failed, and why."""
    original, saved = (folder / "model.onnx").read_bytes(), saved_path.read_bytes()
    model = onnx.ModelProto.FromString(original)
    random = not RANDOM.isdisjoint(operators(model.graph))
    verdict = "absent", "no data"
    for inputs, wanted in data_sets(folder, model):
        got, why = answers(saved, inputs)
        if got is not None and len(got) == len(wanted):
            if all(same(g, w, rtol, atol) for g, w in zip(got, wanted)):
                verdict = "passed", ""
                continue
        reference, refused = answers(original, inputs)
        if got is None:
            if reference is None:
                return "absent", f"{refused} Saved: {why}"
            return "failed", "runs as it was, but saved: " + why
        alike = same_shape if random else lambda g, w: same(g, w, rtol, atol)
        if reference is None:
            reference = wanted
        if len(got) != len(reference) or not all(alike(g, w) for g, w in zip(got, reference)):
            return "failed", "outputs differ"
        verdict = "passed", ""
    return verdict


def exceptions():
    lines = (Path(__file__).resolve().parent / "saved_exceptions.txt").read_text().splitlines()
    return {line.split(" ", 1)[0] for line in lines if line and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser(description="Run saved models in ONNX Runtime.")
    parser.add_argument("--pfrt", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--level", default="all")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-5)
    parser.add_argument("--keep", type=Path, help="folder that keeps the saved models")
    parser.add_argument("--verbose", action="store_true", help="also list what the peer lacks")
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()

    cases = sorted({m.parent for folder in args.folders for m in folder.rglob("model.onnx")})
    counts = {"passed": 0, "absent": 0, "excepted": 0, "failed": 0}
    listed = exceptions()
    pool = ProcessPoolExecutor(1, initializer=start, initargs=(args.peer,))
    with tempfile.TemporaryDirectory() as scratch:
        keep = args.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        for case in cases:
            name = f"{case.parent.name}.{case.name}"
            saved = keep / f"{name}.onnx"
            done = subprocess.run([args.pfrt, "optimize", case / "model.onnx", saved, "--level", args.level],
                                  capture_output=True, text=True)
            if done.returncode:
                verdict, why = "failed", "is not saved: " + done.stderr.strip()
            else:
                try:
                    verdict, why = pool.submit(judge, case, saved, args.rtol, args.atol).result(SECONDS)
                except BrokenProcessPool:
                    verdict, why = "failed", "ends the peer's process"
                    pool = ProcessPoolExecutor(1, initializer=start, initargs=(args.peer,))
            if name in listed and verdict == "failed":
                verdict = "excepted"
            elif name in listed and args.level == "all":
                verdict, why = "failed", f"is {verdict}: take it out of saved_exceptions.txt"
            counts[verdict] += 1
            if verdict == "failed" or args.verbose and verdict == "absent":
                print(f"{verdict}: {os.path.relpath(case)}: {why[:1000]}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()), f"of {len(cases)} at level", args.level)
    pool.shutdown()
    sys.exit(1 if counts["failed"] or not cases else 0)


if __name__ == "__main__":
    main()
