#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ONNX models to measure with: well-known topologies, seeded weights.

    make_models.py OUT_DIR [--only NAME,NAME...] [--type TYPE] [--huge MIB]

The weights are random, so the answers mean nothing; but they are scaled so that activations keep the size they have in
a trained network and the probabilities are neither uniform nor saturated. Convolutional networks (topologies.py) take
pixels, transformers (transformers.py) token ids. The batch is symbolic, "N"; decoder_step takes "past" tokens.

--type writes the topologies in float16 or bfloat16 instead of float32: the weights are the same ones rounded, the
files are called NAME_TYPE.onnx.

--huge writes a chain of matrix products of about MIB mebibytes twice, with the same weights: huge_embedded.onnx carries
them in the file, huge_external.onnx leaves them in huge_external.data. The topologies are then only written if --only
asks for them.
"""
import argparse
from pathlib import Path

import onnx

import element_type
import huge
from network import write
from topologies import (alexnet, densenet121, inception, inception_v2, mobilenet_v2, resnet50, shufflenet, squeezenet,
                        vgg19, zfnet512)
from transformers import (bert_axes, bert_fixed, decoder, decoder_axes, decoder_fixed, decoder_step, encoder, encoder_axes,
                          encoder_fixed)

TOPOLOGIES = {f.__name__: f for f in (resnet50, vgg19, densenet121, inception, inception_v2, zfnet512, alexnet,
                                      squeezenet, shufflenet, mobilenet_v2, encoder, decoder, decoder_step,
                                      encoder_axes, encoder_fixed, decoder_axes, decoder_fixed, bert_axes, bert_fixed)}


def main():
    parser = argparse.ArgumentParser(description="Write ONNX benchmark models with seeded weights.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--only", metavar="NAMES", help="comma-separated, of " + ", ".join(TOPOLOGIES))
    parser.add_argument("--type", choices=element_type.TYPES, default="float32", help="of floats (float32)")
    parser.add_argument("--huge", type=int, metavar="MIB",
                        help="write two models of about this size, in layers of 64 MiB")
    args = parser.parse_args()

    if args.only:
        names = args.only.split(",")
    else:
        names = [] if args.huge else list(TOPOLOGIES)
    if unknown := set(names) - set(TOPOLOGIES):
        parser.error("no such model: " + ", ".join(sorted(unknown)))
    layers = 0
    if args.huge is not None:
        layers = max(1, round(args.huge * 2**20 / huge.LAYER_BYTES))
        if not 0 < args.huge or layers > huge.MAX_LAYERS:
            parser.error(f"--huge takes 1 to {huge.MAX_LAYERS * huge.LAYER_BYTES >> 20}")

    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        model = TOPOLOGIES[name]()
        onnx.checker.check_model(model, full_check=True)
        element_type.retype(model, args.type)
        suffix = "" if args.type == "float32" else f"_{args.type}"
        write(model, args.out / f"{name}{suffix}.onnx")
    if layers:
        huge.write_embedded(args.out, layers)
        huge.write_external(args.out, layers)


if __name__ == "__main__":
    main()
