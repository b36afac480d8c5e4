#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write chains of ResNet-50's 3x3 convolutions, each with its Relu, as ONNX models with random weights.

    conv_chains.py OUT_DIR [--length 8]

One model for each shape: conv_chain_56x56x64.onnx and so on. In a chain a runtime
may keep the layout it likes between its convolutions, as it does in a network.
"""

import argparse
from pathlib import Path

from onnx import TensorProto, helper

from network import Network, make_model, serialize

SHAPES = [(56, 64), (28, 128), (14, 256), (7, 512)]  # side, channels


def chain(side, channels, length):
    net = Network(f"conv_chain_{side}x{side}x{channels}", seed=side)
    net.channels["data"] = channels
    x = "data"
    for _ in range(length):
        x = net.conv_relu(x, channels, 3, pad=1)
    shape = [1, channels, side, side]
    return make_model(helper.make_graph(
        net.nodes, net.name, [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], net.initializers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--length", type=int, default=8)
    args = parser.parse_args()
    for side, channels in SHAPES:
        model = serialize(chain(side, channels, args.length))
        (args.out / f"conv_chain_{side}x{side}x{channels}.onnx").write_bytes(model)


if __name__ == "__main__":
    main()
