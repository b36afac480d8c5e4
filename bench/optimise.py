#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What optimisation saves: steps and bytes a run at levels none and all, beside ONNX Runtime's nodes.

optimise.sh, beside this file, builds what is needed and calls it. A step is a row of `pfrt explain`, those of
subgraphs included; bytes are what the steps read and write. The peer's nodes, those of subgraphs included, are
counted in the model it saves at ORT_ENABLE_ALL.
"""
import argparse
import ctypes
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "recorded"))
from peer import CREATE_OPTIONS, SET_LEVEL, Peer  # noqa: E402

CREATE_SESSION, SET_OPTIMIZED_PATH = 7, 11
ENABLE_ALL = 99
BERT = ROOT / "bench" / "models" / "bert_encoder.onnx"
BERT_INPUTS = ROOT / "bench" / "models" / "bert_encoder" / "3x24"
FIRST_LAYER = "/layer.0/norm/Add_1_output_0"  # the output of the encoder's first layer
ASKED = {"steps": 0.55, "bytes": 0.6, "peer": 1.1, "bert": 8}


def explain(pfrt, model, inputs, level):
    command = [pfrt, "explain", str(model), "--level", level, "--json"]
    for name, source in inputs.items():
        command += ["--input", f"{name}={source}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"optimise.py: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    for note in answer["notes"]:
        if note.startswith("not run"):
            sys.exit(f"optimise.py: {model}: {note}")
    return answer["steps"]


def node_count(graph):
    return sum(1 + sum(node_count(body) for a in node.attribute for body in [a.g, *a.graphs] if body.node)
               for node in graph.node)


def peer_nodes(peer, model, scratch):
    saved = scratch / "peer.onnx"
    options = peer._new(CREATE_OPTIONS)
    peer._call(SET_LEVEL, options, ctypes.c_int(ENABLE_ALL))
    peer._call(SET_OPTIMIZED_PATH, options, str(saved).encode())
    peer._new(CREATE_SESSION, peer._env, str(model).encode(), options)
    return node_count(onnx.load(str(saved), load_external_data=False).graph)


def zoo_inputs(folder):
    """The model's inputs with the files that hold them."""
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in constants]
    files = [folder / "test_data_set_0" / f"input_{i}.pb" for i in range(len(names))]
    return {name: file for name, file in zip(names, files) if file.exists()}


def models(work):
    """(name, model, inputs by name)"""
    zoo = ROOT.parent / "shared" / "zoo"
    if zoo.is_dir():
        for folder in sorted(zoo.iterdir()):
            if (folder / "model.onnx").exists():
                yield folder.name, folder / "model.onnx", zoo_inputs(folder)
    else:
        print("../shared/zoo is not here: its models are left out", file=sys.stderr)
    for name in ("resnet50", "squeezenet", "inception"):
        yield name, work / f"{name}.onnx", {}
    yield "bert_encoder", BERT, bert_inputs()


def bert_inputs():
    return {file.stem: file for file in BERT_INPUTS.glob("*.npy") if file.stem != "last_hidden_state"}


def cut_after(model, value, path):
    """The part of |model| that gives |value|."""
    graph = model.graph
    kept, wanted = [], {value}
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.insert(0, node)
            wanted.update(node.input)
    output = onnx.helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)
    constants = [t for t in graph.initializer if t.name in wanted]
    part = onnx.helper.make_graph(kept, "part", graph.input, [output], constants)
    onnx.save(onnx.helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version), str(path))


def steps_a_layer(pfrt, steps, scratch):
    """Of the encoder: what its second layer adds to the first."""
    cut = scratch / "first_layer.onnx"
    cut_after(onnx.load(str(BERT)), FIRST_LAYER, cut)
    return steps - len(explain(pfrt, cut, bert_inputs(), "all"))


def left_in_resnet(steps):
    """Steps that are a batch normalisation, or nothing but additions and Relu."""
    alone = {"Add", "Sum", "Relu"}
    return [s["ops"] for s in steps
            if "BatchNormalization" in s["ops"].split(",") or alone.issuperset(s["ops"].split(","))]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def measure(pfrt, peer, work):
    rows, extra = [], {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for name, model, inputs in models(work):
            none = explain(pfrt, model, inputs, "none")
            best = explain(pfrt, model, inputs, "all")
            rows.append({"model": name, "steps_none": len(none), "steps_all": len(best),
                         "peer_nodes": peer_nodes(peer, model, scratch),
                         "bytes_none": sum(s["bytes"] for s in none), "bytes_all": sum(s["bytes"] for s in best)})
            if name == "bert_encoder":
                extra["bert_steps_a_layer"] = steps_a_layer(pfrt, len(best), scratch)
            if name == "resnet50":
                extra["resnet50_left"] = left_in_resnet(best)
    return rows, extra


def summary(rows, extra):
    moved = [r for r in rows if r["bytes_none"]]
    return {"steps": geometric_mean([r["steps_all"] / r["steps_none"] for r in rows]),
            "bytes": geometric_mean([r["bytes_all"] / r["bytes_none"] for r in moved]),
            "over_peer": [r["model"] for r in rows if r["steps_all"] > ASKED["peer"] * r["peer_nodes"]], **extra}


def print_table(rows, found):
    print(f"{'model':20}{'steps none':>12}{'all':>6}{'ratio':>7}{'peer':>6}{'ratio':>7}"
          f"{'MB none':>10}{'all':>9}{'ratio':>7}")
    for r in rows:
        moved = r["bytes_all"] / r["bytes_none"] if r["bytes_none"] else math.nan
        print(f"{r['model']:20}{r['steps_none']:12}{r['steps_all']:6}{r['steps_all'] / r['steps_none']:7.2f}"
              f"{r['peer_nodes']:6}{r['steps_all'] / r['peer_nodes']:7.2f}"
              f"{r['bytes_none'] / 1e6:10.2f}{r['bytes_all'] / 1e6:9.2f}{moved:7.2f}")
    left = found["resnet50_left"]
    for what, value, asked, good in (
            ("steps at all / at none, geometric mean", f"{found['steps']:.2f}", f"at most {ASKED['steps']}",
             found["steps"] <= ASKED["steps"]),
            ("bytes at all / at none, geometric mean", f"{found['bytes']:.2f}", f"at most {ASKED['bytes']}",
             found["bytes"] <= ASKED["bytes"]),
            ("more than 10 % over the peer's nodes", ", ".join(found["over_peer"]) or "none", "none",
             not found["over_peer"]),
            ("BERT's steps a layer", found["bert_steps_a_layer"], f"at most {ASKED['bert']}",
             found["bert_steps_a_layer"] <= ASKED["bert"]),
            ("ResNet-50: BatchNormalization, or Add, Sum, Relu alone", f"{len(left)} {' '.join(sorted(set(left)))}".strip(),
             "0", not left)):
        print(f"{what}: {value} ({asked} asked{'' if good else '; MISSED'})")


def main():
    parser = argparse.ArgumentParser(description="Count steps and bytes before and after optimisation.")
    parser.add_argument("--pfrt", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--work", type=Path, required=True, help="where make_models.py has written")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows, extra = measure(args.pfrt, Peer(args.peer), args.work)
    found = summary(rows, extra)
    if args.json:
        print(json.dumps({"models": rows, **found}, indent=1))
    else:
        print_table(rows, found)


if __name__ == "__main__":
    main()
