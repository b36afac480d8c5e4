#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write nbits_models.py's decoder of 4-bit blocks of 32 for llama.cpp: GGUF version 3 with Q4_0 tensors, which hold the
same weights, and no tokens' texts.

    llama_gguf.py OUT.gguf
"""
import os
import struct
import sys
from pathlib import Path

import numpy as np

from nbits_models import EPSILON, Shape, llama_weights

BITS, BLOCK = 4, 32
ALIGNMENT = 32
UINT32, FLOAT32, STRING = 4, 6, 8  # types of metadata
F32, Q4_0 = 0, 2  # types of tensors


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(shape):
    """Keys with their types and values."""
    numbers = {"context_length": shape.positions, "embedding_length": shape.width, "block_count": shape.layers,
               "feed_forward_length": shape.inner, "attention.head_count": shape.heads,
               "attention.head_count_kv": shape.heads, "rope.dimension_count": shape.head,
               "vocab_size": shape.vocabulary}
    yield "general.architecture", STRING, "llama"
    yield "general.alignment", UINT32, ALIGNMENT
    for name, value in numbers.items():
        yield f"llama.{name}", UINT32, value
    yield "llama.attention.layer_norm_rms_epsilon", FLOAT32, EPSILON
    yield "tokenizer.ggml.model", STRING, "no_vocab"


def field(key, kind, value):
    packed = text(value) if kind == STRING else struct.pack("<f" if kind == FLOAT32 else "<I", value)
    return text(key) + struct.pack("<I", kind) + packed


def q4_0(integers, scales):
    """A float16 scale, then 16 bytes: numbers 0 to 15 of the block in the low halves, 16 to 31 in the high ones."""
    halves = integers[..., :BLOCK // 2] | integers[..., BLOCK // 2:] << 4
    return np.concatenate([scales.astype("<f2")[..., None].view(np.uint8), halves], axis=-1)


def tensor(weights):
    """Type, dimensions with the innermost first, and bytes."""
    if isinstance(weights, np.ndarray):
        return F32, weights.shape, weights.astype("<f4").tobytes()
    integers, scales = weights
    rows, blocks, _ = integers.shape
    return Q4_0, (blocks * BLOCK, rows), q4_0(integers, scales).tobytes()


def write(path, shape=Shape()):
    fields = list(metadata(shape))
    infos, data, count = b"", bytearray(), 0
    for name, weights in llama_weights(shape, BITS, BLOCK):
        kind, dims, content = tensor(weights)
        infos += text(f"{name}.weight") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += content + bytes(-len(content) % ALIGNMENT)
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(fields)) + b"".join(field(*f) for f in fields) + infos
    scratch = path.with_suffix(f".{os.getpid()}.part")
    with open(scratch, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        file.write(data)
    os.replace(scratch, path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: llama_gguf.py OUT.gguf")
    write(Path(sys.argv[1]))
