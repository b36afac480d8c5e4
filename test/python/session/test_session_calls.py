# SPDX-License-Identifier: Apache-2.0
"""What a session calls of the program: progress, samples one by one, log lines; and progress of a PassManager."""
import gc

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import opt
from conftest import FLOAT, node, onnx_model, port


def chain():
    return onnx_model([node("Add", ["x", "x"], ["a"]), node("Relu", ["a"], ["b"]), node("Mul", ["b", "x"], ["y"])],
                      [port("x", FLOAT, ["N", 4])], [port("y", FLOAT, ["N", 4])])


def test_progress_of_a_session_rises_to_one():
    told = []
    options = pyflame_rt.SessionOptions(progress=lambda fraction, stage: told.append((fraction, stage)))
    pyflame_rt.InferenceSession(chain(), options)
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions) and fractions[-1] == 1
    stages = list(dict.fromkeys(stage for _, stage in told))
    assert stages == ["open providers", "optimise", "compile", "done"]


def test_progress_stops_a_session():
    def raises(fraction, stage):
        raise KeyError(stage)

    with pytest.raises(pyflame_rt.CancelledError):
        pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(progress=lambda fraction, stage: False))
    with pytest.raises(KeyError, match="open providers"):
        pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(progress=raises))


def test_samples_are_asked_for_one_by_one():
    made, yielded = [], []

    def source():
        made.append(True)
        for i in range(5):
            yielded.append(i)
            yield {"x": np.full((1, 4), i, np.float32)}

    options = pyflame_rt.SessionOptions(precision="auto", sample_source=source)
    session = pyflame_rt.InferenceSession(chain(), options)
    assert "precision auto measured on 5 given inputs" in "\n".join(session.notes())
    assert len(made) >= 1 and yielded[:5] == [0, 1, 2, 3, 4]
    read = len(yielded)
    session.run(None, {"x": np.ones((1, 4), np.float32)})
    assert len(yielded) == read


def test_what_a_sample_source_raises_comes_out():
    def raises():
        yield {"x": np.ones((1, 4), np.float32)}
        raise KeyError("gone")

    for source, error in ((raises, KeyError), (lambda: iter([3]), pyflame_rt.InputError),
                          (lambda: iter([{}]), pyflame_rt.InputError),
                          (lambda: iter([{"z": np.ones((1, 4), np.float32)}]), pyflame_rt.InputError)):
        with pytest.raises(error):
            pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(precision="auto", sample_source=source))
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called"):
        pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(sample_source=[{}]))


def test_a_session_has_a_logger_of_its_own():
    class Logger:
        def __init__(self):
            self.lines = []

        def __call__(self, level, message):
            self.lines.append((level, message))
            raise ValueError("is lost")

    logger = Logger()
    lines = logger.lines
    session = pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(log_level="debug", logger=logger))
    assert any(level == "info" and "session of graph" in line for level, line in lines)
    before = len(lines)
    session.run(None, {"x": np.ones((1, 4), np.float32)})
    assert len(lines) > before
    held = len(gc.get_referrers(logger))
    del session
    gc.collect()
    assert "Cleanup" in lines[-1][1]
    assert len(gc.get_referrers(logger)) < held, "the library has let it go"
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called"):
        pyflame_rt.InferenceSession(chain(), pyflame_rt.SessionOptions(logger=3))


def test_progress_of_a_pass_manager():
    graph = pyflame_rt.InferenceSession(chain()).graph()
    told = []
    manager = opt.PassManager.create_default(opt.PassManagerConfig(
        progress=lambda fraction, stage: told.append(fraction)))
    manager.run_until_fixed_point(graph)
    assert told == sorted(told) and told[-1] == 1 and len(told) > 3
    manager = opt.PassManager.create_default(opt.PassManagerConfig(progress=lambda fraction, stage: False))
    with pytest.raises(pyflame_rt.CancelledError):
        manager.run(graph)
