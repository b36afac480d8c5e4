#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as `pfrt convert` and `pfrt optimize` write them, in the packages onnx and ONNX Runtime.

    saved_models.py --pfrt PFRT --random PFRT_OPTIMISE_TEST [--only PATTERN] [--part convert|optimize]

The models are the node cases of onnx, those of test/recorded, random ones and those of rewrites.py. What is written has
to pass onnx.checker with full_check where the original does, its nodes have attributes of their schemas alone, and ONNX
Runtime makes a session of it where it does of the original, but for EXCEPTIONS. A conversion keeps operators, attributes and the types of
inputs and outputs, with a .pfm file between or without. Every rewrite of `pfrt passes` is seen, but for those of UNSEEN.
"""
import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import onnx.checker
import onnx.defs
import onnxruntime
from onnx.backend.test.case.node import collect_testcases
from onnxruntime.capi import onnxruntime_pybind11_state

import rewrites

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ("none", "basic", "extended", "all")
RANDOM_MODELS = 300
# Rewrites that no model here can have.
UNSEEN = {"CancelTransposes": "waits for the option insert_transposes to be off",
          "ChannelsLast": "makes what a provider of channels-last kernels asks for",
          "MergedProducts": "belongs to a pass of no level"}
# Faults that are accepted in a model: words of the message, and the reason. The list may only shrink.
EXCEPTIONS = {
    "test_identity_opt": ("'opt_in' is", "no node tells that the optional holds a sequence"),
    "test_optional_get_element_optional_tensor": ("Field 'shape'", "what an optional holds has no shape before the run"),
    "test_spacetodepth_dcr_mode_example": ("'mode' is gone", "DCR is all that the older opset has, and it needs no newer"),
    "test_scan_sum": ("save the model as .pfm", "the batches of Scan at opset 8 have no newer form"),
    "ai.onnx.Scan.batched": ("save the model as .pfm", "the batches of Scan at opset 8 have no newer form"),
    "ai.onnx.Scan.batched_backwards": ("save the model as .pfm", "the batches of Scan at opset 8 have no newer form"),
    "ai.onnx.ml.TreeEnsembleClassifier.vector": ("expected to have rank 2", "the peer takes vectors at opset 1 alone")}

onnxruntime.set_default_logger_severity(4)


def schemas():
    """Attributes by (domain, operator) and opset."""
    found = {}
    for schema in onnxruntime_pybind11_state.get_all_operator_schema():
        found.setdefault((schema.domain, schema.name), {})[schema.since_version] = set(schema.attributes)
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), {})[schema.since_version] = set(schema.attributes)
    return found


SCHEMAS = schemas()


def bodies(node):
    for attribute in node.attribute:
        yield from [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []


def foreign_attributes(model, nodes=None):
    """Attributes that the schema of their operator at the model's opset does not have."""
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node if nodes is None else nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        versions = {since: own for since, own in SCHEMAS.get((domain, node.op_type), {}).items()
                    if since <= opsets.get(domain, 1)}
        if versions:
            own = versions[max(versions)]
            for attribute in node.attribute:
                if attribute.name not in own:
                    yield f"{domain or 'ai.onnx'}.{node.op_type} has no attribute '{attribute.name}'"
        for body in bodies(node):
            yield from foreign_attributes(model, body.node)


def refusal(model):
    """What onnx.checker says of a model, or ""."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return ""
    except Exception as fault:  # noqa: BLE001: whatever it is, it is the finding
        return " ".join(str(fault).split()) or type(fault).__name__


def runtime_refusal(model):
    """Why ONNX Runtime makes no session of a model, or "". That it has no kernel is no fault of the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return ""
    except onnxruntime_pybind11_state.NotImplemented:
        return ""
    except Exception as fault:  # noqa: BLE001
        return " ".join(str(fault).split())


def faults_of(saved, original):
    """What is wrong with a model that was right before."""
    yield from foreign_attributes(saved)
    why = refusal(saved)
    if why and not refusal(original):
        yield f"onnx.checker: {why}"
    why = runtime_refusal(saved)
    if why and not runtime_refusal(original):
        yield f"ONNX Runtime: {why}"


def types(values):
    return [(value.name, value.type.SerializeToString(deterministic=True)) for value in values]


def shapeless(type_proto):
    """A type without what is known of its shape, which reading may add to."""
    kind = type_proto.WhichOneof("value")
    if kind is None:
        return kind
    inner = getattr(type_proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        return kind, inner.elem_type
    if kind == "map_type":
        return kind, inner.key_type, shapeless(inner.value_type)
    return kind, shapeless(inner.elem_type)


def nodes_differ(before, after):
    """The first difference of two graphs' nodes, bodies and declared types, or ""."""
    for one, other in zip([*before.input, *before.output], [*after.input, *after.output]):
        if one.type.WhichOneof("value") and (one.name, shapeless(one.type)) != (other.name, shapeless(other.type)):
            return f"'{one.name}' is {shapeless(other.type)}, was {shapeless(one.type)}"
    if [node.op_type for node in before.node] != [node.op_type for node in after.node]:
        return f"nodes are {[node.op_type for node in after.node]}, were {[node.op_type for node in before.node]}"
    for one, other in zip(before.node, after.node):
        names = [{attribute.name: attribute for attribute in node.attribute} for node in (one, other)]
        for name in names[0].keys() | names[1].keys():
            pair = [named.get(name) for named in names]
            if pair[0] is None or pair[1] is None:
                return f"{one.op_type}: attribute '{name}' is {'gone' if pair[1] is None else 'new'}"
            if pair[0].type != pair[1].type:
                return f"{one.op_type}: attribute '{name}' is of type {pair[1].type}, was {pair[0].type}"
            if pair[0].type == onnx.AttributeProto.TYPE_PROTO and pair[0].tp != pair[1].tp:
                return f"{one.op_type}: attribute '{name}' is another type"
            inner = [[*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])] for attribute in pair]
            for body, copy in zip(*inner):
                if why := nodes_differ(body, copy):
                    return why
    return ""


class Saver:
    """Runs the tool in a folder of its own."""

    def __init__(self, pfrt, folder):
        self._pfrt, self._folder = pfrt, folder
        self.seen = set()

    def _run(self, *arguments):
        done = subprocess.run([self._pfrt, *arguments], capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{arguments[0]}: {(done.stderr or done.stdout).strip()[:300]}")
        return done.stdout

    def faults_of_conversion(self, name, path, original):
        once, between, twice = (self._folder / f"{name}.{end}" for end in ("once.onnx", "pfm", "twice.onnx"))
        self._run("convert", path, once)
        self._run("convert", path, between)
        self._run("convert", between, twice)
        saved = onnx.load(once)
        yield from faults_of(saved, original)
        # Functions are taken apart when a model is read.
        why = "" if original.functions else nodes_differ(original.graph, saved.graph)
        if why:
            yield why
        if once.read_bytes() != twice.read_bytes():
            yield "with a .pfm file between it is another one"

    def faults_of_optimisation(self, name, path, original):
        done = set()
        for level in LEVELS:
            out = self._folder / f"{name}.{level}.onnx"
            try:
                report = json.loads(self._run("optimize", path, out, "--level", level, "--json"))
            except RuntimeError as fault:
                if name.startswith("random."):
                    return  # some are made wrong
                yield str(fault)
                continue
            self.seen.update(rule for row in report["passes"] for rule in row["rewrites"])
            data = out.read_bytes()
            if data not in done:
                done.add(data)
                yield from (f"level {level}: {fault}" for fault in faults_of(onnx.load(out), original))


def models(args, folder):
    """Name and path of each."""
    for case in collect_testcases():
        path = folder / f"{case.name}.onnx"
        path.write_bytes(case.model.SerializeToString())
        yield case.name, path
    for path in sorted((ROOT / "test/recorded").rglob("model.onnx")):
        yield ".".join(path.relative_to(ROOT / "test/recorded").parts[:-1]), path
    for name, model in rewrites.models():
        path = folder / f"rewrite.{name}.onnx"
        path.write_bytes(model.SerializeToString())
        yield f"rewrite.{name}", path
    if args.part != "convert":
        random = folder / "random"
        subprocess.run([args.random, "--seed", "1", "--models", str(RANDOM_MODELS), "--config", "all", "--save", random],
                       stdout=subprocess.DEVNULL, check=True)
        for path in sorted(random.rglob("model.onnx"), key=lambda p: int(p.parent.name)):
            yield f"random.{path.parent.name}", path


def judge(name, path, savers, parts):
    faults = []
    try:
        original = onnx.load(path)
        for part in parts:
            found = getattr(savers, f"faults_of_{part}")(name, path, original)
            faults += [f"{part}: {fault}" for fault in found]
    except Exception as fault:  # noqa: BLE001: one model's fault is not the others'
        faults.append(f"{type(fault).__name__}: {' '.join(str(fault).split())}")
    return faults


def unseen(saver, pfrt):
    rules = {row["rule"] for row in json.loads(subprocess.check_output([pfrt, "passes", "--json"]))["rewrites"]}
    for rule in sorted(rules - saver.seen - UNSEEN.keys()):
        yield f"no model here has the rewrite {rule}"
    for rule in sorted(UNSEEN.keys() & saver.seen | UNSEEN.keys() - rules):
        yield f"take {rule} out of UNSEEN"


def main():
    parser = argparse.ArgumentParser(description="Hold saved models to the packages onnx and ONNX Runtime.")
    parser.add_argument("--pfrt", required=True)
    parser.add_argument("--random", required=True, help="the program of random models")
    parser.add_argument("--part", choices=["convert", "optimize"], help="only this")
    parser.add_argument("--only", default="*", help="names of models, as a pattern")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = {"convert": ["conversion"], "optimize": ["optimisation"]}.get(args.part, ["conversion", "optimisation"])
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        saver = Saver(args.pfrt, Path(scratch))
        chosen = [(name, path) for name, path in models(args, Path(scratch)) if fnmatch.fnmatch(name, args.only)]
        with ThreadPoolExecutor(2) as pool:
            for (name, _), found in zip(chosen, pool.map(lambda row: judge(*row, saver, parts), chosen)):
                words, _ = EXCEPTIONS.get(name, (None, ""))
                faults = [fault for fault in found if words is None or words not in fault]
                if words is not None and faults == found and "optimisation" in parts:
                    faults.append("is as it should be: take it out of EXCEPTIONS")
                passed, failed = passed + (not faults), failed + bool(faults)
                for fault in faults:
                    print(f"{name}: {fault[:500]}", flush=True)
        if args.only == "*" and args.part != "convert":
            for fault in unseen(saver, args.pfrt):
                print(fault)
                failed += 1
    print(f"onnx {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
