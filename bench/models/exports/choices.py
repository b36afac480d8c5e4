#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the convolutions and products of set C as build/release/bin/choices reads them (bench/micro/choices.cc).

bench/models/choices.sh builds what is needed and calls it. Nodes are those of the optimised graphs, with all
dimensions; `pfrt explain` says which of them have images in nChw16c. Equal ones are one line. Products whose factors
only the run knows are among them, those of which a dimension is not known are not.
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

from networks import FORMS, NETWORKS, exports

HERE = Path(__file__).resolve().parent
OPERATORS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


class Graph:
    """An optimised model with what became of its nodes."""

    def __init__(self, tool, job, inputs):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "optimised.onnx"
            subprocess.run([tool, "optimize", job.model, file], check=True, stdout=subprocess.DEVNULL)
            self.graph = onnx.load(file, load_external_data=False).graph
        feeds = [f"--input={name}={job.folder / file}" for name, file in inputs.items()]
        explained = json.loads(subprocess.run([tool, "explain", job.model, "--json", *feeds], check=True,
                                              stdout=subprocess.PIPE).stdout)
        self.step = {name: step for step in explained["steps"] for name in step["nodes"].split(",")}
        self.constants = {value.name for value in self.graph.initializer}
        self.constants |= {node.output[0] for node in self.graph.node if node.op_type == "Constant"}
        self.types = {value.name: value.type.tensor_type
                      for value in (*self.graph.value_info, *self.graph.input, *self.graph.output)}
        self.producer = {name: node for node in self.graph.node for name in node.output}
        self.readers = collections.defaultdict(list)
        for node in self.graph.node:
            for name in node.input:
                self.readers[name].append(node)
        self.initial = {value.name: value for value in self.graph.initializer}

    def dims(self, name):
        """None where they, or float32 elements, are not known."""
        if name in self.initial:
            found, dtype = list(self.initial[name].dims), self.initial[name].data_type
        elif name in self.types:
            dtype = self.types[name].elem_type
            found = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in self.types[name].shape.dim]
        else:
            return None
        return found if found and min(found) > 0 and dtype == onnx.TensorProto.FLOAT else None

    def blocked(self, node, step, forwards):
        """Whether a node beside |step| has values in nChw16c; nodes without a step hand theirs on."""
        other = self.step.get(node.name)
        if other is step:
            return forwards and any(self.blocked(reader, step, True) for reader in self.readers[node.output[0]])
        if other is not None:
            return "_nchw16c" in other["kernel"]
        values = node.output if forwards else node.input
        nodes = [n for v in values for n in (self.readers[v] if forwards else filter(None, [self.producer.get(v)]))]
        return any(self.blocked(n, step, forwards) for n in nodes)

    def sides(self, node):
        step = self.step.get(node.name)
        if step is None or "_nchw16c" not in step["kernel"]:
            return ""
        before = self.producer.get(node.input[0])
        out = "i" if before is not None and self.blocked(before, step, False) else ""
        return out + "o" if any(self.blocked(n, step, True) for n in self.readers[node.output[0]]) else out

    def lines(self):
        for node in self.graph.node:
            if node.op_type not in OPERATORS or node.domain:
                continue
            inputs = [name for name in node.input if name]
            dims = [self.dims(name) for name in (*inputs, node.output[0])]
            if None in dims:
                yield None
                continue
            texts = ["x".join(map(str, d)) for d in dims]
            words = [node.op_type, *(f"in={text}{'C' if name in self.constants else ''}"
                                     for name, text in zip(inputs, texts)), f"out={texts[-1]}"]
            for attr in sorted(node.attribute, key=lambda a: a.name):
                if attr.type == onnx.AttributeProto.INTS:
                    words.append(f"{attr.name}={'x'.join(map(str, attr.ints))}")
                elif attr.type == onnx.AttributeProto.INT:
                    words.append(f"{attr.name}={attr.i}")
            sides = self.sides(node)
            yield " ".join(words + ([f"sides={sides}"] if sides else []))


def exported(folder, forms, names, exporter):
    """What there is of the networks, with files of inputs by name; what is not there is made, or said."""
    for form in forms:
        jobs = exports(folder, [form], names)
        absent = [job.network.name for job in jobs if job.made() is None]
        if absent and exporter:
            command = [exporter, str(HERE / "make.py"), str(folder), "--form", form, "--only", *absent]
            subprocess.run(command, check=True)
        for job in jobs:
            about = job.made() or {"refused": "there is no PyTorch to export it with"}
            if "refused" in about:
                print(f"{job.name}: not run: {about['refused']}", file=sys.stderr)
            else:
                yield job, about["inputs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="pfrt")
    parser.add_argument("--models", type=Path, required=True, help="folder of the exported models")
    parser.add_argument("--exporter", help="an interpreter with PyTorch, which makes models that are not there")
    parser.add_argument("--form", nargs="+", default=["full", "small"], choices=FORMS)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), choices=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    args = parser.parse_args()
    counts, unknown = collections.Counter(), 0
    for job, inputs in exported(args.models, args.form, args.only, args.exporter):
        lines = list(Graph(args.tool, job, inputs).lines())
        unknown += lines.count(None)
        counts.update(line for line in lines if line is not None)
        print(f"{job.name}: {counts.total()} nodes, {len(counts)} different", file=sys.stderr, flush=True)
    args.out.write_text("".join(f"{count} {line}\n" for line, count in sorted(counts.items())), encoding="utf-8")
    print(f"{args.out}: {unknown} nodes of unknown dimensions or other types left out", file=sys.stderr)


if __name__ == "__main__":
    main()
