#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Export a small BERT encoder with PyTorch (Debian's python3-torch, 1.13).

    bert_encoder.py OUT_DIR

Two layers of width 64 with 4 heads over a vocabulary of 100, seeded random weights: the graph is
what exporters make of the architecture, the answers mean nothing. Written are

  bert_encoder.onnx       input_ids, attention_mask, token_type_ids (int64 [batch,sequence]) ->
                          last_hidden_state (float32 [batch,sequence,64])
  bert_encoder/BxS/*.npy  inputs of B rows of S tokens and what PyTorch answers
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from torch import nn

VOCABULARY, POSITIONS, TYPES = 100, 64, 2
WIDTH, HEADS, INNER, LAYERS = 64, 4, 256, 2
EPSILON = 1e-12
SEED = 2018
OPSET = 14
SHAPES = ((1, 7), (3, 24))
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.token_type = nn.Embedding(TYPES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("positions", torch.arange(POSITIONS).unsqueeze(0))

    def forward(self, ids, types):
        x = self.word(ids) + self.token_type(types) + self.position(self.positions[:, :ids.size(1)])
        return self.dropout(self.norm(x))


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def heads(self, x):
        return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        weights = self.dropout(torch.softmax(scores + mask, dim=-1))
        y = (weights @ value).permute(0, 2, 1, 3).contiguous()
        return self.out(y.view(y.size(0), y.size(1), WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = SelfAttention()
        self.attention_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask):
        x = self.attention_norm(self.dropout(self.attention(x, mask)) + x)
        y = self.outer(nn.functional.gelu(self.inner(x)))
        return self.norm(self.dropout(y) + x)


class BertEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings()
        self.layer = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids, mask, types):
        x = self.embeddings(ids, types)
        mask = mask.unsqueeze(1).unsqueeze(2).to(dtype=x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        for layer in self.layer:
            x = layer(x, mask)
        return x


def make_encoder():
    """Weights of the size they have in a trained encoder, so that attention is not uniform."""
    torch.manual_seed(SEED)
    encoder = BertEncoder().eval()
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if "norm.weight" in name:
                parameter.uniform_(0.8, 1.2)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1)
            else:
                parameter.normal_(0, 1.5 / math.sqrt(parameter.size(-1)))
    return encoder


def make_inputs(batch, sequence):
    """Each row but the first is padded, the later the more, as a batch of sentences is."""
    rng = np.random.default_rng([SEED, batch, sequence])
    lengths = sequence - 4 * np.arange(batch)[:, None]
    places = np.arange(sequence)
    mask = (places < lengths).astype(np.int64)
    ids = rng.integers(1, VOCABULARY, (batch, sequence)) * mask
    types = ((places >= lengths // 2) & (places < lengths)).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def run(encoder, inputs):
    with torch.no_grad():
        return encoder(*(torch.from_numpy(inputs[name]) for name in INPUTS)).numpy()


def main():
    parser = argparse.ArgumentParser(description="Export a small BERT encoder and record what it answers.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    torch.set_num_threads(1)
    encoder = make_encoder()
    example = make_inputs(2, 12)
    axes = {name: {0: "batch", 1: "sequence"} for name in INPUTS + (OUTPUT,)}
    torch.onnx.export(encoder, tuple(torch.from_numpy(example[name]) for name in INPUTS),
                      str(out / "bert_encoder.onnx"), input_names=list(INPUTS), output_names=[OUTPUT],
                      dynamic_axes=axes, opset_version=OPSET, do_constant_folding=True)
    for batch, sequence in SHAPES:
        folder = out / "bert_encoder" / f"{batch}x{sequence}"
        folder.mkdir(parents=True, exist_ok=True)
        inputs = make_inputs(batch, sequence)
        for name, array in (*inputs.items(), (OUTPUT, run(encoder, inputs))):
            np.save(folder / f"{name}.npy", array)


if __name__ == "__main__":
    main()
