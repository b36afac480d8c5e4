#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the sample digit classifier with numpy alone and write it as ONNX.

The data are the 1,797 optical digits (8x8 pixels, values 0..16) that come with
scikit-learn. The first 1,500 train the network; the last 297 measure it. The model
expects pixels divided by 16.

Nothing is chosen on the 297: the augmentation and the number of epochs come from
cross-validation inside the 1,500 (--folds 5), the seed was fixed beforehand.

Two files are written:

  digits.onnx       "image" float32 [batch,1,8,8] -> "probabilities" float32 [batch,10]
  digits_test.bin   the 297 held-out images, little-endian:

      offset  type        meaning
      0       char[8]     magic "PFRTDIG1"
      8       uint32      count
      12      uint32      height (8)
      16      uint32      width (8)
      20      count records of
                uint8       label, 0..9
                uint8[64]   pixels 0..16, row by row
"""

import argparse
import os
import struct
from pathlib import Path

# The order of a threaded sum depends on the number of threads; one thread makes
# a repeated run give the same weights, bit for bit.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 0
TRAIN_COUNT = 1500
EPOCHS = 60
BATCH = 50
PEAK_RATE = 2e-3
WEIGHT_DECAY = 1e-2


class Conv3x3:
    """3x3 convolution, stride 1, padding 1, as a product with unfolded patches.

    Activations are laid out [channel, image, row, column], so that the product
    of the weights with the patches already has the right order.
    """

    def __init__(self, rng, inputs, outputs):
        weight = rng.normal(0, np.sqrt(2 / (inputs * 9)), (outputs, inputs, 3, 3))
        self.params = [weight.astype(np.float32), np.zeros(outputs, np.float32)]

    @staticmethod
    def convolve(weight, x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
        patches = windows.transpose(0, 4, 5, 1, 2, 3).reshape(weight[0].size, -1)
        return (weight.reshape(len(weight), -1) @ patches).reshape(-1, *x.shape[1:]), patches

    def forward(self, x):
        weight, bias = self.params
        y, self.patches = self.convolve(weight, x)
        return y + bias[:, None, None, None]

    def backward(self, dy):
        weight, _ = self.params
        rows = dy.reshape(len(weight), -1)
        dweight = np.einsum("om,km->ok", rows, self.patches)
        self.grads = [dweight.reshape(weight.shape), rows.sum(axis=1)]
        # Back to the input: the same convolution with each kernel turned half
        # way round and the roles of the channels exchanged.
        return self.convolve(weight[:, :, ::-1, ::-1].swapaxes(0, 1), dy)[0]


class Gemm:
    def __init__(self, rng, inputs, outputs):
        weight = rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs))
        self.params = [weight.astype(np.float32), np.zeros(outputs, np.float32)]

    def forward(self, x):
        self.x = x
        return x @ self.params[0].T + self.params[1]

    def backward(self, dy):
        self.grads = [dy.T @ self.x, dy.sum(axis=0)]
        return dy @ self.params[0]


class Relu:
    params = grads = ()

    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class MaxPool2x2:
    params = grads = ()

    def forward(self, x):
        c, n, h, w = x.shape
        tiles = x.reshape(c, n, h // 2, 2, w // 2, 2)
        y = tiles.max(axis=(3, 5), keepdims=True)
        self.shape, self.winners = x.shape, tiles == y
        return y.reshape(c, n, h // 2, w // 2)

    def backward(self, dy):
        # Ties share the gradient.
        share = dy[:, :, :, None, :, None] / self.winners.sum(axis=(3, 5), keepdims=True)
        return (self.winners * share.astype(np.float32)).reshape(self.shape)


class Flatten:
    params = grads = ()

    def forward(self, x):
        self.shape = x.shape
        return x.swapaxes(0, 1).reshape(x.shape[1], -1)

    def backward(self, dy):
        c, n, h, w = self.shape
        return dy.reshape(n, c, h, w).swapaxes(0, 1)


class Adam:
    """Adam with decoupled weight decay on everything but the biases."""

    def __init__(self, params):
        self.params = params
        self.mean = [np.zeros_like(p) for p in params]
        self.square = [np.zeros_like(p) for p in params]
        self.steps = 0

    def step(self, grads, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.steps += 1
        bias1, bias2 = 1 - beta1**self.steps, 1 - beta2**self.steps
        for p, g, m, s in zip(self.params, grads, self.mean, self.square):
            m += (1 - beta1) * (g - m)
            s += (1 - beta2) * (g * g - s)
            if p.ndim > 1:
                p *= 1 - rate * WEIGHT_DECAY
            p -= rate * (m / bias1) / (np.sqrt(s / bias2) + epsilon)


def make_network(rng):
    return [
        Conv3x3(rng, 1, 16), Relu(),
        Conv3x3(rng, 16, 32), Relu(),
        MaxPool2x2(), Flatten(),
        Gemm(rng, 32 * 4 * 4, 64), Relu(),
        Gemm(rng, 64, 10),
    ]


def forward(network, images):
    x = images[None]
    for layer in network:
        x = layer.forward(x)
    return x


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def accuracy(network, images, labels):
    return np.mean(forward(network, images).argmax(axis=1) == labels)


def jitter(rng, images):
    """Slant, turn, stretch and shift each image a little, sampling bilinearly, and thin or
    thicken its strokes: the writers of the held-out images are others than those of the rest."""
    n, h, w = images.shape
    matrix = np.eye(2) + rng.normal(0, 0.15, (n, 2, 2))
    shift = rng.uniform(-1.0, 1.0, (n, 2, 1))
    centre = np.array([[(h - 1) / 2], [(w - 1) / 2]])
    grid = np.indices((h, w)).reshape(2, -1) - centre
    position = np.clip(matrix @ grid + centre + shift, -1, [[h], [w]])

    corner = np.floor(position).astype(int)
    fraction = position - corner
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)))
    which = np.arange(n)[:, None]
    result = 0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = np.abs(1 - dy - fraction[:, 0]) * np.abs(1 - dx - fraction[:, 1])
            result += weight * padded[which, corner[:, 0] + 1 + dy, corner[:, 1] + 1 + dx]
    result = np.clip(result.reshape(images.shape).astype(np.float32), 0, 1)
    return result ** np.exp(rng.normal(0, 0.5, (n, 1, 1))).astype(np.float32)


def train(images, labels, rng):
    network = make_network(rng)
    optimiser = Adam([p for layer in network for p in layer.params])
    targets = np.eye(10, dtype=np.float32)[labels]
    total = EPOCHS * -(-len(images) // BATCH)
    for epoch in range(EPOCHS):
        loss = 0.0
        order = rng.permutation(len(images))
        for start in range(0, len(images), BATCH):
            batch = order[start:start + BATCH]
            x, t = jitter(rng, images[batch]), targets[batch]
            p = softmax(forward(network, x))
            loss -= np.sum(np.log(np.sum(p * t, axis=1)))
            dy = (p - t) / np.float32(len(batch))
            for layer in reversed(network):
                dy = layer.backward(dy)
            rate = PEAK_RATE * 0.5 * (1 + np.cos(np.pi * optimiser.steps / total))
            optimiser.step([g for layer in network for g in layer.grads], rate)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  loss {loss / len(images):.4f}", flush=True)
    return network


def cross_validate(images, labels, folds):
    """Each fold is a run of neighbours, so that few writers are on both sides."""
    wrong = 0
    for fold, part in enumerate(np.array_split(np.arange(len(images)), folds)):
        rest = np.setdiff1d(np.arange(len(images)), part)
        network = train(images[rest], labels[rest], np.random.default_rng(SEED + fold))
        wrong += round(len(part) * (1 - accuracy(network, images[part], labels[part])))
    print(f"{wrong} of {len(images)} wrong in {folds} folds")


def to_onnx(network):
    nodes, initializers = [], []
    value = "image"
    attributes = {
        Conv3x3: {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]},
        MaxPool2x2: {"kernel_shape": [2, 2], "strides": [2, 2]},
        Flatten: {"axis": 1},
        Gemm: {"transB": 1},
        Relu: {},
    }
    operators = {Conv3x3: "Conv", MaxPool2x2: "MaxPool"}
    counts = {}
    for layer in network:
        kind = type(layer)
        operator = operators.get(kind, kind.__name__)
        counts[operator] = counts.get(operator, 0) + 1
        name = f"{operator.lower()}{counts[operator]}"
        inputs = [value]
        for suffix, array in zip(("weight", "bias"), layer.params):
            inputs.append(f"{name}.{suffix}")
            initializers.append(numpy_helper.from_array(array, inputs[-1]))
        nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes[kind]))
        value = name
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], name="softmax", axis=1))

    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        initializers)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
        producer_name="pyflame_rt digits",
        doc_string="Handwritten digits, 8x8 pixels divided by 16; probabilities of 0..9.")
    onnx.checker.check_model(model, full_check=True)
    return model


def write_test_set(path, pixels, labels):
    count, height, width = pixels.shape
    records = np.column_stack([labels, pixels.reshape(count, -1)]).astype(np.uint8)
    path.write_bytes(b"PFRTDIG1" + struct.pack("<3I", count, height, width) + records.tobytes())


def main():
    parser = argparse.ArgumentParser(description="Train the digits sample and write its files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent,
                        help="directory to write to (default: beside this script)")
    parser.add_argument("--folds", type=int, metavar="N",
                        help="write nothing; cross-validate on N runs of the training images")
    args = parser.parse_args()

    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    labels = digits.target
    held_out = slice(TRAIN_COUNT, None)
    if args.folds:
        return cross_validate(images[:TRAIN_COUNT], labels[:TRAIN_COUNT], args.folds)
    out = args.out
    out.mkdir(parents=True, exist_ok=True)

    network = train(images[:TRAIN_COUNT], labels[:TRAIN_COUNT], np.random.default_rng(SEED))
    (out / "digits.onnx").write_bytes(to_onnx(network).SerializeToString(deterministic=True))
    write_test_set(out / "digits_test.bin", digits.images[held_out], labels[held_out])

    for what, part in (("train", slice(TRAIN_COUNT)), ("held out", held_out)):
        print(f"{what:8s}  {100 * accuracy(network, images[part], labels[part]):.2f} %"
              f" of {len(labels[part])}")


if __name__ == "__main__":
    main()
