# SPDX-License-Identifier: Apache-2.0
"""Models that bench/models writes are ones that can be run, and say what they are for."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pyflame_rt
import pytest

from network import serialize
from transformers import bert_axes, decoder, decoder_axes, decoder_step, encoder_axes

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"tokens": 6, "vocabulary": 11, "width": 8, "heads": 2, "inner": 16, "layers": 2}


def session_of(model):
    options = pyflame_rt.SessionOptions()
    options.num_threads = 1
    return pyflame_rt.InferenceSession(model, options)


def write(folder, *names):
    command = [sys.executable, ROOT / "bench" / "models" / "make_models.py", folder, "--only", ",".join(names)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_network_gives_probabilities_that_differ(tmp_path):
    assert write(tmp_path, "squeezenet", "shufflenet", "mobilenet_v2").returncode == 0
    pixels = np.random.default_rng(0).standard_normal((2, 3, 224, 224), dtype=np.float32)
    for name in ("squeezenet", "shufflenet", "mobilenet_v2"):
        (found,) = session_of(tmp_path / f"{name}.onnx").run(None, {"data": pixels})
        assert found.shape == (2, 1000)
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
        assert (found.max(1) > 0.003).all() and (found.max(1) < 0.9).all()
        assert np.abs(found[0] - found[1]).max() > 1e-4


def test_weights_are_the_same_every_time(tmp_path):
    write(tmp_path / "a", "squeezenet")
    write(tmp_path / "b", "squeezenet")
    assert (tmp_path / "a" / "squeezenet.onnx").read_bytes() == (tmp_path / "b" / "squeezenet.onnx").read_bytes()


def test_chains_of_convolutions_keep_their_shape(tmp_path):
    command = [sys.executable, ROOT / "bench" / "models" / "conv_chains.py", tmp_path, "--length", "2"]
    subprocess.run(command, check=True)
    for side, channels in ((56, 64), (28, 128), (14, 256), (7, 512)):
        model = onnx.load(tmp_path / f"conv_chain_{side}x{side}x{channels}.onnx")
        assert [node.op_type for node in model.graph.node] == ["Conv", "Relu"] * 2
        data = np.random.default_rng(2).standard_normal((1, channels, side, side), dtype=np.float32)
        (found,) = session_of(serialize(model)).run(None, {"data": data})
        assert found.shape == data.shape and (found > 0).any()


@pytest.mark.parametrize("make", [encoder_axes, decoder_axes, bert_axes])
def test_symbolic_axes_give_what_fixed_ones_give(make):
    ids = np.random.default_rng(4).integers(0, 1000, (1, 128))
    feed = {"ids": ids}
    if make is bert_axes:
        feed |= {"types": ids % 2, "mask": np.int64(np.arange(128) < 100)[None]}
    (fixed,) = session_of(serialize(make(fixed=True))).run(None, feed)
    symbolic = session_of(serialize(make()))
    for rows, tokens in ((2, 40), (1, 128), (3, 7)):
        cut = {name: np.repeat(x[:, :tokens], rows, axis=0) for name, x in feed.items()}
        (found,) = symbolic.run(None, cut)
        assert found.shape[:2] == (rows, tokens)
        if make is decoder_axes:  # a token sees those before it alone
            np.testing.assert_allclose(found[0], fixed[0, :tokens], rtol=1e-3, atol=1e-4)
    (found,) = symbolic.run(None, feed)
    np.testing.assert_allclose(found, fixed, rtol=1e-3, atol=1e-4)


def test_a_name_that_is_not_known_is_refused(tmp_path):
    done = write(tmp_path, "squeezenet", "resnet51")
    assert done.returncode == 2 and "no such model: resnet51" in done.stderr
    assert not list(tmp_path.iterdir())


def test_steps_of_the_decoder_give_what_the_whole_prompt_gives():
    for model in (whole := decoder(**SMALL), step := decoder_step(**SMALL)):
        onnx.checker.check_model(model, full_check=True)
    ids = np.random.default_rng(1).integers(0, SMALL["vocabulary"], (3, SMALL["tokens"]))
    (expected,) = session_of(serialize(whole)).run(None, {"ids": ids})
    session = session_of(serialize(step))
    names = [port.name for port in session.get_outputs()]
    cache = {port.name: np.zeros((3, 2, 0, 4), np.float32) for port in session.get_inputs() if port.name != "ids"}
    for token in range(SMALL["tokens"]):
        found = dict(zip(names, session.run(None, {"ids": ids[:, token:token + 1], **cache})))
        np.testing.assert_allclose(found.pop("logits")[:, 0], expected[:, token], rtol=1e-4, atol=1e-5)
        cache = {name.replace("present", "past"): value for name, value in found.items()}
    assert set(cache) == {f"past_{what}_{layer}" for what in ("key", "value") for layer in range(2)}
    assert expected.std() == pytest.approx(1, abs=0.5)
