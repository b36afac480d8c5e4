#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what PyTorch exports: every network of torch_networks.py, as each of its exporters writes it.

    test/clients/torch_exports.sh [BUILD] [--only PATTERN] [--jobs 2] [--again]

A model is made once, with its inputs of three sizes, PyTorch's outputs and what ONNX Runtime makes of them; it stays
under build/clients until its network changes. It is then run here at every level in a session each: the three sizes,
and the largest once more, so that dimensions grow and shrink. Outputs have to equal PyTorch's within 1e-4 of their
largest magnitude wherever ONNX Runtime's do. Each model has a process of its own: what ends it is one failure.
"""
import argparse
import fnmatch
import hashlib
import inspect
import json
import os
import pathlib
import signal
import sys
import time
import traceback

import numpy as np

TOLERANCE = 1e-4
ORDER = (0, 1, 2, 1)
LEAST_EXPORTS = 120  # so many have to pass where all are run
SECONDS = {"export": 900, "run": 600}


class Export:
    """A network by one exporter at one opset, and the files that it is kept in."""

    def __init__(self, network, exporter, opset, work):
        self.network, self.exporter, self.opset = network, exporter, opset
        self.name = f"{network.name}-{exporter}-{opset}"
        digest = hashlib.sha256(f"{network.source()} {network.sizes} {network.axes}".encode()).hexdigest()[:12]
        self.stem = work / f"{self.name}-{digest}"

    def file(self, suffix):
        return self.stem.with_name(self.stem.name + suffix)

    def made(self):
        return self.file(".peer").exists()


# ---------------------------------------------------------------------- processes


def in_children(jobs, work, limit, seconds, log_of):
    """Calls work(job) in a forked process each, |limit| at a time; yields (job, what it came to), "" being well."""
    waiting, running = list(jobs), {}
    while waiting or running:
        while waiting and len(running) < limit:
            job = waiting.pop(0)
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                _child(job, work, log_of(job))
            running[child] = (job, time.monotonic() + seconds)
        # Each is waited for by its number, since the caller of this generator may have children of its own.
        child, status = next((one for one in (os.waitpid(pid, os.WNOHANG) for pid in running) if one[0]), (0, 0))
        if child == 0:
            for child, (job, end) in running.items():
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
            continue
        job, end = running.pop(child)
        if os.WIFSIGNALED(status):
            killed = time.monotonic() > end
            yield job, f"takes more than {seconds} s" if killed else f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
        elif os.WEXITSTATUS(status) != 0:
            yield job, last_line(log_of(job))
        else:
            yield job, ""


def _child(job, work, log):
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        work(job)
        code = 0
    except BaseException as fault:
        traceback.print_exc()
        print(f"{type(fault).__name__}: {' '.join(str(fault).split())[:600]}")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def last_line(log):
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "ended without a word"


# ---------------------------------------------------------------------- making models


def export(job):
    """Writes the model and, for each size, the inputs and PyTorch's outputs."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, feed = job.network.make()
    model.eval()
    fed = []
    with torch.no_grad():
        for i, size in enumerate(job.network.sizes):
            torch.manual_seed(i + 1)
            fed.append(feed(**size))
        # Run before the export, which may leave the module changed.
        given = [flat(model(*(value.clone() for value in inputs.values()))) for inputs in fed]
        _export(torch, job, model, fed[0], job.network.axes)
    arrays = {}
    for i, (inputs, outputs) in enumerate(zip(fed, given)):
        arrays.update({f"{i}/in/{name}": value.numpy() for name, value in inputs.items()})
        arrays.update({f"{i}/out/{j}": np.asarray(value) for j, value in enumerate(outputs)})
    np.savez(job.file(".npz"), **arrays)


def _export(torch, job, model, inputs, axes):
    path, values = str(job.file(".onnx")), tuple(inputs.values())
    if job.exporter == "dynamo":
        free = torch.export.Dim.DYNAMIC
        shapes = tuple({axis: free for axis in axes.get(name, {})} for name in inputs)
        fixed = [parameter for parameter in inspect.signature(model.forward).parameters.values()
                 if parameter.kind != parameter.VAR_POSITIONAL]
        if len(fixed) < len(inputs):
            shapes = (*shapes[:len(fixed)], shapes[len(fixed):])
        torch.onnx.export(model, values, path, input_names=list(inputs), opset_version=job.opset, dynamo=True,
                          dynamic_shapes=shapes, external_data=False, verbose=False)
    else:
        torch.onnx.export(model, values, path, input_names=list(inputs), opset_version=job.opset, dynamo=False,
                          dynamic_axes=axes)
    import onnx
    written = onnx.load(path, load_external_data=False)
    opset = next(entry.version for entry in written.opset_import if entry.domain in ("", "ai.onnx"))
    assert opset == job.opset, f"asked for opset {job.opset}, the exporter wrote {opset}"


def flat(value):
    """The tensors of nested results, in the order in which the exporters list them."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in flat(item)]
    return [value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)]


def ask_peer(job):
    """Notes for each size what sets ONNX Runtime apart from PyTorch, "" for nothing."""
    verdicts = ["ONNX Runtime does not load it"] * 3
    job.file(".verdicts").write_text(json.dumps(verdicts))
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(str(job.file(".onnx")), options, providers=["CPUExecutionProvider"])
    except Exception as fault:
        verdicts = [f"ONNX Runtime does not load it: {fault}"] * 3
    else:
        for i, (inputs, outputs) in enumerate(cases(job)):
            verdicts[i] = "ends ONNX Runtime"
            job.file(".verdicts").write_text(json.dumps(verdicts))
            verdicts[i] = _peer_verdict(session, inputs, outputs)
    job.file(".verdicts").write_text(json.dumps(verdicts))


def _peer_verdict(session, inputs, outputs):
    named = {port.name for port in session.get_inputs()}
    try:
        given = session.run(None, {name: value for name, value in inputs.items() if name in named})
    except Exception as fault:
        return f"ONNX Runtime: {fault}"
    differs = difference(given, outputs)
    return f"ONNX Runtime: {differs}" if differs else ""


def cases(job):
    """(inputs by name, PyTorch's outputs) of each size."""
    with np.load(job.file(".npz")) as arrays:
        for i in range(len(job.network.sizes)):
            inputs = {key.split("/", 2)[2]: arrays[key] for key in arrays if key.startswith(f"{i}/in/")}
            count = sum(key.startswith(f"{i}/out/") for key in arrays)
            yield inputs, [arrays[f"{i}/out/{j}"] for j in range(count)]


def difference(given, expected):
    """What sets results apart from those expected, "" for nothing."""
    if len(given) != len(expected):
        return f"{len(given)} outputs for {len(expected)}"
    for i, (a, b) in enumerate(zip(given, expected)):
        a = np.asarray(a)
        if a.shape != b.shape:
            return f"output {i} is {list(a.shape)} for {list(b.shape)}"
        if a.dtype.kind != b.dtype.kind:
            return f"output {i} is {a.dtype} for {b.dtype}"
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"output {i}: {int(np.sum(a != b))} of {b.size} elements differ"
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
            return f"output {i}: other elements are NaN or infinite"
        largest = np.abs(b[finite]).max(initial=0.0)
        error = np.abs(a[finite] - b[finite]).max(initial=0.0)
        if error > TOLERANCE * (largest or 1.0):
            return f"output {i} differs by {error:.3g}, the largest is {largest:.3g}"
    return ""


def make(jobs, limit):
    """Makes what is not there; what PyTorch does not export is given back with the reason."""
    wanted, failures = [job for job in jobs if not job.made()], {}
    for job, fault in in_children(wanted, export, limit, SECONDS["export"], lambda job: job.file(".export.log")):
        print(f"exported {job.name}" if not fault else f"NOT EXPORTED {job.name}: {fault}", flush=True)
        if fault:
            failures[job] = f"no export: {fault}"
            continue
        for _ in in_children([job], ask_peer, 1, SECONDS["run"], lambda job: job.file(".peer.log")):
            job.file(".verdicts").rename(job.file(".peer"))
    return failures


# ---------------------------------------------------------------------- running them


def run(job):
    """Runs a model at every level; the last line that it prints, if any, is a failure."""
    import pyflame_rt
    from pyflame_rt import OptLevel, SessionOptions
    expected, verdicts = list(cases(job)), json.loads(job.file(".peer").read_text())
    outcome = {"failures": [], "skipped": []}
    for level in (OptLevel.NONE, OptLevel.BASIC, OptLevel.EXTENDED, OptLevel.ALL):
        at = f"level {level.name.lower()}"
        print(at, flush=True)
        try:
            session = pyflame_rt.InferenceSession(job.file(".onnx"), SessionOptions(optimization_level=level,
                                                                                     num_threads=2))
        except Exception as fault:
            _note(outcome, at, " ".join(str(fault).split())[:400], verdicts[0] and verdicts[1] and verdicts[2])
            continue
        named = {port.name for port in session.get_inputs()}
        for turn, i in enumerate(ORDER):
            inputs, outputs = expected[i]
            print(f"{at}, run {turn + 1}", flush=True)
            try:
                given = session.run(None, {name: value for name, value in inputs.items() if name in named})
                fault = difference(given, outputs)
            except Exception as raised:
                fault = " ".join(str(raised).split())[:400]
            if fault:
                _note(outcome, f"{at}, run {turn + 1} of {job.network.sizes[i]}", fault, verdicts[i])
    job.file(".outcome").write_text(json.dumps(outcome))


def _note(outcome, at, fault, excuse):
    if excuse:
        outcome["skipped"].append(f"{at}: {fault} ({excuse[:300]})")
    else:
        outcome["failures"].append(f"{at}: {fault}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="*", help="names of exports, as a glob pattern; several between commas")
    parser.add_argument("--networks", default="torch_networks", help="the module that has them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="export again what is there")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="all failures of an export, not the first alone")
    args = parser.parse_args()
    networks = __import__(args.networks).NETWORKS
    jobs = [Export(network, exporter, opset, args.work)
            for network in networks for exporter, opset in network.exports]
    jobs = [job for job in jobs if any(fnmatch.fnmatchcase(job.name, glob) for glob in args.only.split(","))]
    if not jobs:
        sys.exit(f"no export is called {args.only}")
    if args.again:
        for job in jobs:
            job.file(".peer").unlink(missing_ok=True)
    failures = make(jobs, args.jobs)
    if args.export_only:
        return
    passed = failed = skipped = 0
    for job, reason in failures.items():
        failed += 1
        print(f"FAILED {job.name}: {reason}")
    jobs = [job for job in jobs if job not in failures]
    for job in jobs:
        job.file(".outcome").unlink(missing_ok=True)
    for job, fault in in_children(jobs, run, args.jobs, SECONDS["run"], lambda job: job.file(".run.log")):
        if fault:
            log = job.file(".run.log")
            where = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("level ")]
            outcome = {"failures": [f"{where[-1] if where else 'start'}: {fault}"], "skipped": []}
        else:
            outcome = json.loads(job.file(".outcome").read_text())
        if outcome["failures"]:
            failed += 1
            for line in outcome["failures"] if args.verbose else outcome["failures"][:1]:
                print(f"FAILED {job.name}: {line}", flush=True)
        elif outcome["skipped"]:
            skipped += 1
            print(f"SKIPPED {job.name}: {outcome['skipped'][0]}", flush=True)
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0 or passed < (LEAST_EXPORTS if args.only == "*" else 1))


if __name__ == "__main__":
    main()
