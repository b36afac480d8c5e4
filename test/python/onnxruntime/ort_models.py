# SPDX-License-Identifier: Apache-2.0
"""The module under test, and the models of the programs here.

``PFRT_TEST_ONNXRUNTIME`` names another module than pyflame_rt.onnxruntime: the programs are right for ONNX Runtime too.
"""
import importlib
import os
import sys

import numpy as np
import pytest

from conftest import BOOL, DOUBLE, FLOAT, INT64, ROOT, STRING, field, node, onnx_model, port

MODULE = os.environ.get("PFRT_TEST_ONNXRUNTIME", "pyflame_rt.onnxruntime")
ort = importlib.import_module(MODULE)
state = importlib.import_module(MODULE + ".capi.onnxruntime_pybind11_state")
DIGITS = str(ROOT / "samples" / "digits" / "digits.onnx")
CPU = ["CPUExecutionProvider"]

ADD = onnx_model([node("Add", ["a", "b"], ["y"])], [port("a", FLOAT, ["N", 3]), port("b", FLOAT, ["N", 3])],
                 [port("y", FLOAT, ["N", 3])])
NEG_ABS = onnx_model([node("Neg", ["x"], ["n"]), node("Abs", ["x"], ["a"])], [port("x", FLOAT, ["N"])],
                     [port("n", FLOAT, ["N"]), port("a", FLOAT, ["N"])])
STRINGS = onnx_model([node("Identity", ["s"], ["t"])], [port("s", STRING, ["N"])], [port("t", STRING, ["N"])])
NOT = onnx_model([node("Not", ["b"], ["c"])], [port("b", BOOL, ["N"])], [port("c", BOOL, ["N"])])
SQUARE = onnx_model([node("Mul", ["x", "x"], ["y"])], [port("x", DOUBLE, [])], [port("y", DOUBLE, [])])
CUMSUM = onnx_model([node("CumSum", ["x", "axis"], ["y"])], [port("x", INT64, ["N"]), port("axis", INT64, [])],
                    [port("y", INT64, ["N"])])
MATMUL = onnx_model([node("MatMul", ["a", "b"], ["m"]), node("Relu", ["m"], ["y"])],
                    [port("a", FLOAT, ["M", "K"]), port("b", FLOAT, ["K", "N"])], [port("y", FLOAT, ["M", "N"])])
TOPK = onnx_model([node("TopK", ["x", "k"], ["values", "indices"])], [port("x", FLOAT, ["N"]), port("k", INT64, [1])],
                  [port("values", FLOAT, ["K"]), port("indices", INT64, ["K"])])
NONZERO = onnx_model([node("NonZero", ["x"], ["y"])], [port("x", FLOAT, ["N"])], [port("y", INT64, [1, "K"])])
UNKNOWN_OP = onnx_model([node("NoSuchOperator", ["x"], ["y"])], [port("x", FLOAT, [1])], [port("y", FLOAT, [1])])
DANGLING = onnx_model([node("Neg", ["nowhere"], ["y"])], [], [port("y", FLOAT, [1])])


def tensor(name, array):
    """A TensorProto."""
    kinds = {"float32": FLOAT, "int64": INT64}
    return (b"".join(field(1, d) for d in array.shape) + field(2, kinds[str(array.dtype)]) + field(8, name) +
            field(9, array.tobytes()))


def sequence_port(name):
    """A ValueInfoProto of a sequence of float tensors."""
    return field(1, name) + field(2, field(4, field(1, field(1, field(1, FLOAT)))))


def model(nodes, inputs, outputs, initializers=(), name="made", doc="", properties=(), **about):
    """onnx_model with initializers and what a model says of itself."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, name)
    graph += b"".join(field(5, tensor(*i)) for i in initializers)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    numbers = {"producer_name": 2, "producer_version": 3, "domain": 4, "model_version": 5}
    out = field(1, 8) + b"".join(field(numbers[key], value) for key, value in about.items())
    if doc:
        out += field(6, doc)
    out += field(7, graph) + field(8, field(2, 17))
    return out + b"".join(field(14, field(1, key) + field(2, value)) for key, value in properties)


WEIGHTS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
LINEAR = model([node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "bias"], ["y"])],
               [port("x", FLOAT, ["batch", 3]), port("bias", FLOAT, [2])], [port("y", FLOAT, ["batch", 2])],
               [("w", WEIGHTS), ("bias", np.array([10, 20], np.float32))])
ABOUT = model([node("Neg", ["x"], ["y"])], [port("x", FLOAT, [1])], [port("y", FLOAT, [1])], name="about",
              doc="says who it is", properties=[("author", "a person"), ("classes", "3")], producer_name="the tests",
              producer_version="1", domain="org.example", model_version=7)
SEQUENCE = onnx_model([node("SequenceConstruct", ["a", "b"], ["s"])],
                      [port("a", FLOAT, ["N"]), port("b", FLOAT, ["M"])], [sequence_port("s")])
PICK = onnx_model([node("SequenceAt", ["s", "i"], ["y"])], [sequence_port("s"), port("i", INT64, [])],
                  [port("y", FLOAT, ["N"])])


def floats(*values):
    return np.array(values, np.float32)


def row(*values):
    return np.array([values], np.float32)


def open_session(bytes_of_model, options=None):
    return ort.InferenceSession(bytes_of_model, options, providers=CPU)
