# SPDX-License-Identifier: Apache-2.0
"""The model that the guide's programs speak of: "input" [N, 3, 224, 224] to "output" [N, 1000]."""
import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, field, node, port
from pyflame_rt._core import abi, library as lib

# The classes' shares of the channels' means.
WEIGHTS = np.linspace(-1, 1, 3000, dtype=np.float32).reshape(3, 1000)


def expected(images):
    """The output for |images|."""
    return images.mean(axis=(2, 3), dtype=np.float64) @ WEIGHTS


def onnx_bytes(input_shape=("N", 3, 224, 224)):
    weights = field(1, 3) + field(1, 1000) + field(2, FLOAT) + field(8, "weights") + field(9, WEIGHTS.tobytes())
    nodes = [node("GlobalAveragePool", ["input"], ["mean"]), node("Flatten", ["mean"], ["flat"]),
             node("MatMul", ["flat", "weights"], ["output"])]
    graph = b"".join(field(1, one) for one in nodes) + field(2, "classifier") + field(5, weights)
    graph += field(11, port("input", FLOAT, input_shape)) + field(12, port("output", FLOAT, [input_shape[0], 1000]))
    return field(1, 8) + field(2, "guide") + field(3, "1.0") + field(7, graph) + field(8, field(2, 17))


def write_pfm(path, model):
    """Writes the bytes of an ONNX model in the runtime's own format."""
    env = lib.default_env().address
    loaded = lib.make(lib.model.load_memory, lib.model.release, env, model, len(model), abi.COPY, None, None, None)
    lib.check(lib.model.save(env, loaded.address, lib.text(str(path)), None))


@pytest.fixture(autouse=True)
def model_files(tmp_path, monkeypatch):
    """The model as "model.pfm" and "model.onnx", in the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    write_pfm("model.pfm", onnx_bytes())
    (tmp_path / "model.onnx").write_bytes(onnx_bytes())


@pytest.fixture
def session():
    return pyflame_rt.InferenceSession("model.pfm")


def images(count=1):
    return np.random.default_rng(count).standard_normal((count, 3, 224, 224)).astype(np.float32)


def right(results, input_data):
    return len(results) == 1 and np.allclose(results[0], expected(input_data), rtol=1e-4, atol=1e-5)
