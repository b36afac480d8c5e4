# SPDX-License-Identifier: Apache-2.0
"""The decoder of nbits_models.py, and the same one for llama.cpp."""
import struct

import numpy as np
import onnx
import pyflame_rt
import pytest

import integer_tables
import llama_gguf
import nbits_models
from network import write

SMALL = nbits_models.Shape(width=64, layers=2, heads=2, inner=96, vocabulary=40, positions=16)


def session_of(model):
    options = pyflame_rt.SessionOptions()
    options.num_threads = 1
    return pyflame_rt.InferenceSession(model.SerializeToString(), options)


def cache_of(tokens):
    return {f"past_{what}_{layer}": np.zeros((1, 2, tokens, 32), np.float32) for what in ("key", "value") for layer in range(2)}


@pytest.mark.parametrize("bits,block", ((4, 32), (8, 16)))
def test_a_product_is_that_of_its_blocks(bits, block):
    model = nbits_models.product(bits, block, 0, 3, 64, 24)
    integers, scales = nbits_models.blocks(np.random.default_rng(block), 24, 64, bits, block)
    weight = nbits_models.dequantized(integers, scales, bits)
    assert weight.shape == (24, 64) and abs(weight.mean()) < 0.02
    x = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32)
    (found,) = session_of(model).run(None, {"x": x})
    np.testing.assert_allclose(found, x @ weight.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(scales, scales.astype(np.float16).astype(np.float32))


def test_tokens_after_one_another_give_what_the_whole_prompt_gives():
    session = session_of(nbits_models.llama(4, 32, 0, SMALL))
    names = [port.name for port in session.get_outputs()]
    ids = np.random.default_rng(2).integers(0, SMALL.vocabulary, (1, 5))
    whole = session.run(["logits"], {"ids": ids, **cache_of(0)})[0]
    cache = cache_of(0)
    for token in range(5):
        found = dict(zip(names, session.run(None, {"ids": ids[:, token:token + 1], **cache})))
        logits = found.pop("logits")
        cache = {name.replace("present", "past"): value for name, value in found.items()}
    assert cache["past_key_0"].shape == (1, 2, 5, 32)
    np.testing.assert_allclose(logits, whole, rtol=1e-3, atol=1e-4)
    assert logits.std() == pytest.approx(1, abs=0.5)


def test_the_bytes_of_a_token_are_those_of_its_products(tmp_path):
    model = nbits_models.llama(4, 32, shape=SMALL)
    write(model, tmp_path / "m.onnx")
    weights = 2 * (4 * 64 * 64 + 3 * 64 * 96) + 40 * 64
    assert integer_tables.token_bytes(tmp_path / "m.onnx") == weights // 2 + weights // 32 * 4
    levels = {a.i for n in model.graph.node for a in n.attribute if a.name == "accuracy_level"}
    assert levels == {4}


def test_the_shape_that_is_measured_has_240_mb_of_4_bit_weights():
    shape = nbits_models.Shape()
    weights = shape.layers * (4 * shape.width ** 2 + 3 * shape.width * shape.inner) + shape.vocabulary * shape.width
    assert 425e6 < weights < 431e6 and weights / 2 + weights / 32 * 4 > 240e6


class File:
    """Reads what llama_gguf.py writes, by the format's description."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def field(self):
        key, kind = self.text(), self.number("I")
        return key, self.text() if kind == 8 else self.number("f" if kind == 6 else "I")

    def tensor(self):
        name, rank = self.text(), self.number("I")
        return name, [self.number("Q") for _ in range(rank)], self.number("I"), self.number("Q")


def test_the_file_for_llama_holds_the_same_weights(tmp_path):
    llama_gguf.write(tmp_path / "m.gguf", SMALL)
    file = File((tmp_path / "m.gguf").read_bytes())
    assert file.data[:4] == b"GGUF"
    file.at = 4
    assert file.number("I") == 3
    tensors, fields = file.number("Q"), file.number("Q")
    fields = dict(file.field() for _ in range(fields))
    assert fields["general.architecture"] == "llama" and fields["llama.feed_forward_length"] == 96
    assert fields["llama.vocab_size"] == 40 and fields["llama.attention.head_count"] == 2
    infos = {name: about for name, *about in (file.tensor() for _ in range(tensors))}
    start = -(-file.at // 32) * 32
    expected = dict(nbits_models.llama_weights(SMALL, 4, 32))
    assert set(infos) == {f"{name}.weight" for name in expected} and len(infos) == 3 + 2 * 9
    for name, weights in expected.items():
        dims, kind, offset = infos[f"{name}.weight"]
        at = start + offset
        assert offset % 32 == 0
        if kind == 0:
            found = np.frombuffer(file.data, "<f4", dims[0], at)
            np.testing.assert_array_equal(found, weights)
            continue
        count = dims[0] * dims[1] // 32
        raw = np.frombuffer(file.data, np.uint8, count * 18, at).reshape(count, 18)
        scale = raw[:, :2].copy().view("<f2").astype(np.float32)
        values = np.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1).astype(np.float32) - 8
        np.testing.assert_array_equal((values * scale).reshape(dims[1], dims[0]),
                                      nbits_models.dequantized(*weights, 4))


def test_the_model_can_be_checked():
    model = nbits_models.llama(4, 32, shape=SMALL)
    names = [o for n in model.graph.node for o in n.output if o]
    assert len(names) == len(set(names))
    given = {i.name for i in model.graph.input} | {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        assert set(node.input) <= given
        given.update(node.output)
    assert onnx.ModelProto.FromString(model.SerializeToString()) == model
