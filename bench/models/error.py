#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The error of fp32 answers, ours and ONNX Runtime's, against a run of the same graph in double precision.

error.sh, beside this file, builds what is needed and calls it. Judged are a model's logits (what its Softmax takes, or
its first output) and the output of each Conv, MatMul and Gemm as it comes in the model, over seeded inputs. `fp32` is
asked for an RMS error no larger than the peer's and a maximum no larger than 1.5 times; a precision below it is only
shown. Logits come from sessions that give nothing else besides; products from others, as what a session must give
cannot be fused away.

The double-precision run is ours, of the graph with float64 in place of float32: the same numbers in weights and inputs.
"""
import argparse
import ctypes
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import pyflame_rt
from cases import A, made
from peer import CREATE_OPTIONS, FROM_ARRAY, RUN, SET_LEVEL, SET_THREADS, Peer
from tables import machine_of, machine_text

RELEASE_SESSION, RELEASE_VALUE, RELEASE_OPTIONS = 95, 96, 100
ENABLE_ALL = 99
PRODUCTS = ("Conv", "MatMul", "Gemm")
ASKED_RMS, ASKED_MAX = 1.0, 1.5


# ---- the graph


def products(graph):
    """Node names by the values that they give."""
    return {n.output[0]: n.name or n.output[0] for n in graph.node if n.op_type in PRODUCTS}


def logits(graph):
    """What the Softmax that gives an output takes; else the first output."""
    outputs = [o.name for o in graph.output]
    last = [n.input[0] for n in graph.node if n.op_type == "Softmax" and n.output[0] in outputs]
    return last[0] if last else outputs[0]


def with_outputs(model, names):
    """A copy whose outputs are |names|."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = {o.name: o for o in copy.graph.output}
    outputs = [kept.get(n) or helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
    del copy.graph.output[:]
    copy.graph.output.extend(outputs)
    return copy


def widened(tensor):
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def in_double(model):
    """|model|, changed in place: float64 wherever it says float32."""
    graph = model.graph
    del graph.value_info[:]
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(widened(tensor))
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                raise ValueError(f"{node.op_type} '{node.name}' has a subgraph, which is not converted")
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(widened(attribute.t))
    return model


def inputs_of(graph, dims, seed):
    """float32 normal numbers; ids of rows of the table that they gather."""
    rows = {n.input[1]: next(t.dims[0] for t in graph.initializer if t.name == n.input[0])
            for n in graph.node if n.op_type == "Gather" and n.input[0] in {t.name for t in graph.initializer}}
    rng, fed = np.random.default_rng(seed), {}
    for value in graph.input:
        shape = [d.dim_value or int(dims.get(d.dim_param, 1)) for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            fed[value.name] = rng.standard_normal(shape, dtype=np.float32)
        else:
            fed[value.name] = rng.integers(0, rows[value.name], shape)
    return fed


# ---- the sides


class Ours:
    def __init__(self, model, threads, precision):
        options = pyflame_rt.SessionOptions()
        options.num_threads = threads
        options.precision = precision
        self._names = [o.name for o in model.graph.output]
        self._session = pyflame_rt.InferenceSession(model.SerializeToString(), options)

    def run(self, inputs):
        return self._session.run(self._names, inputs)


class Theirs:
    def __init__(self, peer, model, threads):
        self._peer, self._names = peer, [o.name.encode() for o in model.graph.output]
        options = peer._new(CREATE_OPTIONS)
        peer._call(SET_LEVEL, options, ctypes.c_int(ENABLE_ALL))
        peer._call(SET_THREADS, options, ctypes.c_int(threads))
        data = model.SerializeToString()
        self._session = peer._new(FROM_ARRAY, peer._env, ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p),
                                  ctypes.c_size_t(len(data)), options)
        self._release(RELEASE_OPTIONS, options)

    def _release(self, slot, handle):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._peer._table[slot])(handle)

    def __del__(self):
        if hasattr(self, "_session"):
            self._release(RELEASE_SESSION, self._session)

    def run(self, inputs):
        peer, count = self._peer, len(self._names)
        given = (ctypes.c_char_p * len(inputs))(*[name.encode() for name in inputs])
        values = (ctypes.c_void_p * len(inputs))(*[peer._value(v) for v in inputs.values()])
        names, results = (ctypes.c_char_p * count)(*self._names), (ctypes.c_void_p * count)()
        peer._call(RUN, self._session, None, ctypes.addressof(given), ctypes.addressof(values),
                   ctypes.c_size_t(len(inputs)), ctypes.addressof(names), ctypes.c_size_t(count),
                   ctypes.addressof(results))
        arrays = [peer._read(result) for result in results]
        for value in (*values, *results):
            self._release(RELEASE_VALUE, value)
        peer._keep.clear()
        return arrays


# ---- the error


@dataclass
class Error:
    """Of one value over all inputs, against the double-precision one."""

    squares: float = 0.0
    worst: float = 0.0
    reference: float = 0.0
    count: int = 0

    def add(self, value, reference):
        if value.shape != reference.shape:
            raise ValueError(f"shapes differ: {value.shape} and {reference.shape} in double precision")
        difference = value.astype(np.float64) - reference
        self.squares += float(np.vdot(difference, difference))
        self.worst = max(self.worst, float(np.abs(difference).max(initial=0.0)))
        self.reference += float(np.vdot(reference, reference))
        self.count += reference.size

    def relative_rms(self):
        return (self.squares / self.reference) ** 0.5 if self.reference else float("inf")


def ratio(ours, peer):
    return ours / peer if peer else float("inf") if ours else 0.0


def ratios(ours, peer):
    """Of the RMS errors, and of the maxima."""
    return ratio(ours.squares ** 0.5, peer.squares ** 0.5), ratio(ours.worst, peer.worst)


def accumulate(sides, graph, dims, seeds):
    """An Error for each of the first two sides and each output; the third side is the reference."""
    errors = None
    for seed in range(seeds):
        inputs = inputs_of(graph, dims, seed)
        double = {name: v.astype(np.float64) if v.dtype == np.float32 else v for name, v in inputs.items()}
        references = sides[2].run(double)
        errors = errors or [[Error() for _ in references] for _ in sides[:2]]
        for side, found in zip(sides, errors):
            for value, reference, error in zip(side.run(inputs), references, found):
                error.add(value, reference)
    return errors


def judged(case, peer, args):
    """Errors of one model: its logits, and the product of the worst ratio by each measure."""
    model = onnx.load(str(case.path))
    graph, names = model.graph, products(model.graph)

    def errors(outputs):
        asked = with_outputs(model, outputs)
        sides = [Ours(asked, args.threads, args.precision), Theirs(peer, asked, args.threads), None]
        sides[2] = Ours(in_double(asked), args.threads, "fp32")
        return accumulate(sides, graph, case.dims, args.inputs)

    (ours,), (theirs,) = errors([logits(graph)])
    rms, most = ratios(ours, theirs)
    row = {"model": case.name, "logits_rms_ours": ours.relative_rms(), "logits_rms_peer": theirs.relative_rms(),
           "logits_rms_ratio": rms, "logits_max_ratio": most, "products": []}
    for name, a, b in zip(names.values(), *errors(list(names))):
        rms, most = ratios(a, b)
        row["products"].append({"name": name, "rms_ours": a.relative_rms(), "rms_peer": b.relative_rms(),
                                "rms_ratio": rms, "max_ratio": most})
    return row


def met(row):
    return all(r <= ASKED_RMS for r in (row["logits_rms_ratio"], *(p["rms_ratio"] for p in row["products"]))) and \
        all(r <= ASKED_MAX for r in (row["logits_max_ratio"], *(p["max_ratio"] for p in row["products"])))


HEADING = (f"{'':16}{'logits: ours':>13}{'peer':>10}{'RMS':>9}{'max':>9}   {'products: over':<16}"
           f"{'worst RMS':<24}{'worst max':<24}")


def row_text(row, precision="fp32"):
    if "refused" in row:
        return f"{row['model']:16}not judged: {row['refused']}"
    found = row["products"]
    over = sum(p["rms_ratio"] > ASKED_RMS or p["max_ratio"] > ASKED_MAX for p in found)
    worst = [f"{p[key]:.4g} {p['name']}" for key in ("rms_ratio", "max_ratio")
             for p in [max(found, key=lambda p: p[key])]]
    return (f"{row['model']:16}{row['logits_rms_ours']:>13.2e}{row['logits_rms_peer']:>10.2e}"
            f"{row['logits_rms_ratio']:>9.4g}{row['logits_max_ratio']:>9.4g}   {f'{over} of {len(found)}':<16}"
            f"{worst[0]:<24}{worst[1]:<24}{'MISSED' if precision == 'fp32' and not met(row) else ''}")


def main():
    known = [name for name in A if "*" not in name]
    parser = argparse.ArgumentParser(prog="error.sh", description="Errors of fp32 models against double precision.")
    parser.add_argument("--tool", required=True, help="pfrt")
    parser.add_argument("--peer", required=True, help="ONNX Runtime's shared library")
    parser.add_argument("--models", required=True, type=Path, help="folder for the models that are made")
    parser.add_argument("--only", nargs="+", choices=A, default=known, metavar="MODEL",
                        help="of " + ", ".join(A) + "; default: those of batch 1")
    parser.add_argument("--inputs", type=int, default=20, help="how many, by seed; default 20")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--products", action="store_true", help="a line for each product, too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.inputs < 1 or args.threads < 1:
        parser.error("--inputs and --threads take 1 or more")

    peer, rows, machine = Peer(args.peer), [], machine_of(args.tool, args.peer)
    if not args.json:
        print(f"{machine_text(machine)}\n\nrelative RMS errors, and ratios "
              f"ours / peer, at {args.precision} over {args.inputs} inputs\n{HEADING}", flush=True)
    for case in made(args.models, args.only):
        try:
            rows.append(judged(case, peer, args))
        except (pyflame_rt.PyFlameRTError, RuntimeError, ValueError) as reason:
            rows.append({"model": case.name, "refused": " ".join(str(reason).split())})
        if not args.json:
            print(row_text(rows[-1], args.precision), flush=True)
            for p in rows[-1].get("products", ()) if args.products else ():
                print(f"    {p['name']:22}{p['rms_ours']:>10.2e}{p['rms_peer']:>10.2e}{p['rms_ratio']:>9.4g}"
                      f"{p['max_ratio']:>9.4g}")
    if args.json:
        print(json.dumps({"machine": machine, "precision": args.precision,
                          "inputs": args.inputs, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
