# SPDX-License-Identifier: Apache-2.0
"""Classifies handwritten digits: prints the class of the first held-out image and its probability, then how many of
all are right. Argument: the folder with digits.onnx and digits_test.bin."""
import os
import struct
import sys

import numpy as np

import pyflame_rt

PIXELS = 64


def read_digits(path):
    """Labels [N] and images [N, 1, 8, 8] in 0..1; the layout is described in samples/digits/train.py."""
    with open(path, "rb") as file:
        header = file.read(20)
        if len(header) < 20 or header[:8] != b"PFRTDIG1" or struct.unpack("<2I", header[12:]) != (8, 8):
            raise ValueError(f"{path} is not a file of 8x8 digits")
        (count,) = struct.unpack("<I", header[8:12])
        records = np.frombuffer(file.read(count * (1 + PIXELS)), np.uint8)
    if records.size != count * (1 + PIXELS):
        raise ValueError(f"{path} is truncated")
    records = records.reshape(count, 1 + PIXELS)
    return records[:, 0], records[:, 1:].astype(np.float32).reshape(count, 1, 8, 8) / 16


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    labels, images = read_digits(os.path.join(folder, "digits_test.bin"))
    session = pyflame_rt.InferenceSession(os.path.join(folder, "digits.onnx"))
    (probabilities,) = session.run(None, {"image": images})
    classes = probabilities.argmax(axis=1)
    print(f"the first image is a {classes[0]} with probability {probabilities[0].max():.6f}")
    right = int((classes == labels).sum())
    print(f"{right} of {len(labels)} held-out images are right")
    print(f"accuracy {100 * right / len(labels):.1f} %")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, pyflame_rt.PyFlameRTError) as fault:
        sys.exit(f"digits: {fault}")
