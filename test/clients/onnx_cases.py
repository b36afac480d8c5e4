#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The node cases of the package onnx, through Python.

    onnx_cases.py [--level none] [--facade] [--only PATTERN]

Every case of `onnx.backend.test.case.node` is run by a session that is fed what the case gives, with arrays of ml_dtypes
among it, and has to give outputs of the case's types, shapes and values. Of operators that draw numbers, types and
shapes are compared. Cases run in processes of their own, several one after another; one that ends its process fails.

Tolerances are the cases' own, with those of onnx's runner for bfloat16, the same two steps for float16, and an absolute
one in proportion to an output's largest value, since the sums of a transform are rounded as that is.
"""
import argparse
import fnmatch
import itertools
import os
import pickle
import signal
import sys
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.case.node import collect_testcases

import pyflame_rt
import pyflame_rt.onnxruntime

EACH = 100  # cases of a process
SECONDS = 60  # limit of a case
TWO_STEPS = {"bfloat16": 2**-6, "float16": 2**-9}
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike"}


class Difference(Exception):
    """What an output has that the case does not."""


def operators(nodes):
    for node in nodes:
        yield node.op_type
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                yield from operators(body.node)


def draws_numbers(model):
    bodies = itertools.chain(model.graph.node, *(function.node for function in model.functions))
    return not RANDOM.isdisjoint(operators(bodies))


def python_of(value):
    """A value of a case, whose arrays may be protobuf messages."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    if isinstance(value, list):
        return [python_of(element) for element in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value)


def compare(got, want, case, values, where):
    """Raises Difference where |got| is not |want|."""
    if want is None or isinstance(want, (list, dict)):
        if type(got) is not type(want) or want is not None and len(got) != len(want):
            raise Difference(f"{where} is {got!r:.80}, wanted {want!r:.80}")
        if isinstance(want, list):
            for i, (one, other) in enumerate(zip(got, want)):
                compare(one, other, case, values, f"{where}[{i}]")
        elif isinstance(want, dict) and got != want:
            raise Difference(f"{where} is {got}, wanted {want}")
        return
    if not isinstance(got, np.ndarray):
        raise Difference(f"{where} is a {type(got).__name__}, wanted an array")
    text = want.dtype.kind in "OUS"
    if (got.dtype.kind not in "OUS" if text else got.dtype != want.dtype) or got.shape != want.shape:
        raise Difference(f"{where} is {got.dtype} {list(got.shape)}, wanted {want.dtype} {list(want.shape)}")
    if not values:
        return
    if text:
        alike = [str(t) for t in got.ravel()] == [t.decode() if isinstance(t, bytes) else str(t) for t in want.ravel()]
    elif want.dtype.kind == "c":
        alike = np.allclose(got, want, case.rtol, case.atol, equal_nan=True)
    elif want.dtype.kind in "biu" or want.dtype.name.lstrip("u").startswith("int"):
        alike = np.array_equal(got, want)
    else:
        steps = TWO_STEPS.get(want.dtype.name, 0)
        got, want = got.astype(np.float64), want.astype(np.float64)
        largest = np.abs(want, where=np.isfinite(want), out=np.zeros_like(want)).max(initial=1)
        alike = np.allclose(got, want, max(case.rtol, steps), case.atol * largest, equal_nan=True)
    if not alike:
        raise Difference(f"{where} is {got.ravel()[:6]}, wanted {want.ravel()[:6]}")


def run(case, package, options):
    model = case.model
    values = not draws_numbers(model)
    session = package.InferenceSession(model.SerializeToString(), options)
    for inputs, outputs in case.data_sets:
        feed = {port.name: python_of(value) for port, value in zip(model.graph.input, inputs)}
        results = session.run(None, feed)
        if len(results) != len(outputs):
            raise Difference(f"there are {len(results)} outputs, wanted {len(outputs)}")
        for port, got, want in zip(model.graph.output, results, outputs):
            compare(got, python_of(want), case, values, f"'{port.name}'")


def run_batch(cases, package, level, out):
    """In a child: writes a verdict after each case."""
    options = pyflame_rt.SessionOptions()
    options.optimization_level = level
    options.log_level = "off"
    for case in cases:
        signal.alarm(SECONDS)
        try:
            run(case, package, options)
            why = ""
        except Exception as fault:  # noqa: BLE001: whatever it is, it is the finding
            why = f"{type(fault).__name__}: {' '.join(str(fault).split())}"
        pickle.dump(why, out)
        out.flush()


def verdicts(cases, package, level):
    """A case after another with why it failed, or ""."""
    at = 0
    while at < len(cases):
        batch = cases[at:at + EACH]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                run_batch(batch, package, level, out)
                out.flush()
                os._exit(0)
        os.close(writing)
        done = 0
        with os.fdopen(reading, "rb") as results:
            while True:
                try:
                    why = pickle.load(results)
                except (EOFError, pickle.UnpicklingError):
                    break
                yield batch[done], why
                done += 1
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if done < len(batch):
            what = f"takes more than {SECONDS} s" if status == -signal.SIGALRM else f"ends its process: {status}"
            yield batch[done], what
            done += 1
        at += done


def main():
    parser = argparse.ArgumentParser(description="Run the node cases of the package onnx.")
    parser.add_argument("--level", default="all", choices=["none", "basic", "extended", "all"])
    parser.add_argument("--facade", action="store_true", help="by pyflame_rt.onnxruntime")
    parser.add_argument("--only", default="*", help="names of cases, as a pattern")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = [case for case in collect_testcases() if fnmatch.fnmatch(case.name, args.only)]
    package = pyflame_rt.onnxruntime if args.facade else pyflame_rt
    level = pyflame_rt.OptLevel[args.level.upper()]
    passed = failed = 0
    for case, why in verdicts(cases, package, level):
        passed, failed = passed + (not why), failed + bool(why)
        if why:
            print(f"{case.name}: {why[:400]}", flush=True)
    print(f"onnx {onnx.__version__}, {package.__name__}, level {args.level}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
