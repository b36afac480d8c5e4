# SPDX-License-Identifier: Apache-2.0
"""The networks of set C: what make.py exports of timm, torchvision and transformers, with random weights.

A network's function gives the module for inputs of a size, which is pixels a side, tokens or frames of sound. It
imports the packages when it is called, so that the list can be read where there are none.
"""
import hashlib
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

# full: a network's own size, batch 1. pair: batch 2. small: SMALL pixels. dynamic: symbolic axes, fed as full is.
# half: full, from the module in float16.
FORMS = ("full", "pair", "small", "dynamic", "half")
SMALL = 64
FORMAT = 1  # Raised when make.py writes something else for the same network, so that all are made again.

ONE_SIZE = ("full", "pair", "dynamic", "half")  # of networks that take no other pixels
ROWS, TOKENS, IMAGE = (0,), (0, 1), (0, 2, 3)  # the axes that form dynamic leaves open


@dataclass
class Network:
    name: str
    make: Callable  # (size) -> module
    feed: Callable  # (rng, batch, size, more) -> inputs by name; an image is |more| pixels wider than high
    size: int
    axes: tuple
    forms: tuple = FORMS
    settled: int = 2  # images that batch norms get their statistics of; more where a norm sees one value of each
    older: bool = False  # PyTorch's older exporter writes it where the present one cannot

    def __post_init__(self):
        parts = [getattr(part, "source", None) or inspect.getsource(part) for part in (self.make, self.feed)]
        text = f"{FORMAT} {parts} {self.size} {self.axes}{' older' * self.older}"
        text += f" {self.settled}" * (self.settled != 2)
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:12]  # changes when what is exported does


def sourced(source, function):
    function.source = source
    return function


# ---------------------------------------------------------------------- inputs


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def image(rng, batch, size, more):
    return {"image": normal(rng, batch, 3, size, size + more)}


def clip(rng, batch, size, more):
    return {"clip": normal(rng, batch, 3, 16, size, size + more)}


def frames(rng, batch, size, more):
    first = rng.uniform(-1, 1, (batch, 3, size, size + more)).astype(np.float32)
    return {"first": first, "second": np.roll(first, 3, -1)}


def scene(rng, batch, size, more):
    return {"image": rng.random((3, size, size + more), dtype=np.float32)}


def spectrogram(rng, batch, size, more):
    return {"input_features": normal(rng, batch, 80, size)}


def text(rng, batch, size, more):
    return {"input_ids": rng.integers(1, 1000, (batch, size)), "attention_mask": np.ones((batch, size), np.int64)}


def typed_text(rng, batch, size, more):
    return {**text(rng, batch, size, more), "token_type_ids": np.zeros((batch, size), np.int64)}


# ---------------------------------------------------------------------- networks of packages


def timm(name, size=224, axes=IMAGE, resized=False, forms=FORMS, model=None, settled=2):
    """|resized|: the module is made for one size, which it is told."""
    def make(size):
        import timm as package
        return package.create_model(model or name, **({"img_size": size} if resized else {}))
    return Network(name, sourced(f"timm {model or name} {resized}", make), image, size, axes, forms, settled)


def torchvision(name, model=None, feed=image, size=224, axes=IMAGE, forms=FORMS, result=None, **options):
    """|result|: which is given of several."""
    def make(size):
        import torchvision as package
        from modules import Chosen
        module = package.models.get_model(model or name, weights=None, **options)
        return module if result is None else Chosen(module, result)
    return Network(name, sourced(f"torchvision {model or name} {result} {options}", make), feed, size, axes, forms)


def masks(name, model):
    return torchvision(name, model, result="out", weights_backbone=None)


def detector(name, model, **options):
    """|options| leave few boxes: random weights give many with nearly equal scores, whose order is nobody's fault."""
    def make(size):
        import torchvision as package
        from modules import Detector
        return Detector(package.models.get_model(model, weights=None, weights_backbone=None, min_size=size,
                                                 max_size=size, **options))
    return Network(name, sourced(f"detector {model} {options}", make), scene, 320, (), ("full",), older=True)


def segformer_b0(size):
    import transformers as t
    from modules import Called
    return Called(t.SegformerForSemanticSegmentation(t.SegformerConfig(num_labels=150)), ["pixel_values"], ["logits"])


def whisper_tiny_encoder(size):
    import transformers as t
    from modules import Called
    config = t.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
                             decoder_layers=1, decoder_attention_heads=6, decoder_ffn_dim=1536, num_mel_bins=80)
    return Called(t.WhisperModel(config).get_encoder(), ["input_features"], ["last_hidden_state"])


def minilm(size):
    import transformers as t
    from modules import Called
    config = t.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    return Called(t.BertModel(config, add_pooling_layer=False), ["input_ids", "attention_mask", "token_type_ids"],
                  ["last_hidden_state"])


def gpt2(size):
    import transformers as t
    from modules import Called
    return Called(t.GPT2LMHeadModel(t.GPT2Config(use_cache=False)), ["input_ids", "attention_mask"], ["logits"])


def distilbert(size):
    import transformers as t
    from modules import Called
    return Called(t.DistilBertModel(t.DistilBertConfig()), ["input_ids", "attention_mask"], ["last_hidden_state"])


_ALL = (
    timm("levit_128s", axes=ROWS, resized=True, settled=16), timm("mnasnet_small"),
    Network("segformer_b0", segformer_b0, image, 224, IMAGE), timm("lcnet_050"), timm("efficientnet_lite0"),
    Network("whisper_tiny_encoder", whisper_tiny_encoder, spectrogram, 3000, ROWS, ONE_SIZE),
    timm("mobilenetv3_large_100"), timm("efficientformer_l1", axes=ROWS, forms=ONE_SIZE), timm("focalnet_tiny_srf"),
    timm("deit_tiny", model="deit_tiny_patch16_224", axes=ROWS, resized=True), timm("hrnet_w18_small"),
    timm("tf_efficientnetv2_b0"), Network("minilm_16", minilm, typed_text, 16, TOKENS, ONE_SIZE),
    Network("minilm_128", minilm, typed_text, 128, TOKENS, ONE_SIZE), timm("ghostnet_100"),
    Network("gpt2", gpt2, text, 64, TOKENS, ONE_SIZE), Network("distilbert", distilbert, text, 128, TOKENS, ONE_SIZE),
    timm("mixer_s32", model="mixer_s32_224", axes=ROWS, resized=True), timm("eca_resnet33ts"), timm("edgenext_small"),
    timm("mobilevit_s", size=256, axes=ROWS), timm("cspresnet50"), timm("skresnet18", settled=16), timm("darknet53"),
    timm("repvgg_a0"), torchvision("resnet18"), torchvision("mobilenet_v2"), torchvision("mobilenet_v3_small"),
    torchvision("efficientnet_b0"), torchvision("regnet_y_400mf"), torchvision("shufflenet_v2", "shufflenet_v2_x1_0"),
    torchvision("swin_t", axes=ROWS), torchvision("swin_v2_t", axes=ROWS), torchvision("convnext_tiny"),
    torchvision("maxvit_t", axes=ROWS, forms=ONE_SIZE), masks("deeplabv3_mobilenet", "deeplabv3_mobilenet_v3_large"),
    masks("lraspp_mobilenet", "lraspp_mobilenet_v3_large"), masks("fcn_resnet50", "fcn_resnet50"),
    torchvision("r3d_18", feed=clip, size=112, axes=ROWS),
    torchvision("raft_small", feed=frames, axes=ROWS, forms=ONE_SIZE, result=-1),
    detector("fasterrcnn_mobilenet_320", "fasterrcnn_mobilenet_v3_large_320_fpn", box_score_thresh=0.0,
             box_detections_per_img=20),
    detector("retinanet", "retinanet_resnet50_fpn", detections_per_img=20))
NETWORKS = {network.name: network for network in _ALL}


class Export:
    """A network in a form, and the folder that it is kept in."""

    def __init__(self, network, form, out):
        self.network, self.form, self.folder = network, form, Path(out) / network.name / form
        self.name = f"{network.name} {form}"
        self.model, self._made = self.folder / "model.onnx", self.folder / "made.json"

    def made(self):
        """What was noted, None where it is to be made: "inputs", files by name, or "refused", why there is no model.

        "about" says what is unlike other exports.
        """
        try:
            found = json.loads(self._made.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if found.get("digest") == self.network.digest else None

    def note(self, **about):
        text = json.dumps({"digest": self.network.digest, **about}, indent=1) + "\n"
        self._made.write_text(text, encoding="utf-8")

    def forget(self):
        self._made.unlink(missing_ok=True)

    def inputs(self, batch=1, more=0):
        """By name, always the same."""
        size = SMALL if self.form == "small" else self.network.size
        return self.network.feed(np.random.default_rng(1), batch, size, more)


def exports(out, forms, names=NETWORKS):
    return [Export(NETWORKS[name], form, out) for form in forms for name in names if form in NETWORKS[name].forms]
