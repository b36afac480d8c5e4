#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write models in integers to measure with, with seeded weights.

    integer_models.py OUT_DIR [--only NAME,NAME...]

Networks of make_models.py quantized by quantize.py, with ranges that a float run of ours gives (PYFLAME_RT_LIBRARY
names the library); integer_chains.py's products and chains; nbits_models.py's weights of 4 and 8 bits.
"""
import argparse
import functools
from pathlib import Path

import numpy as np
import onnx

import integer_chains
import nbits_models
import quantize
from network import write
from topologies import densenet121, inception, mobilenet_v2, resnet50, shufflenet, squeezenet
from transformers import encoder


def feeds_of(model):
    """Normal numbers for float inputs; token ids, of which models here know 1,000."""
    for seed in range(quantize.CALIBRATION_INPUTS):
        rng = np.random.default_rng(seed)
        feed = {}
        for port in model.graph.input:
            shape = [d.dim_value or 1 for d in port.type.tensor_type.shape.dim]
            if port.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                feed[port.name] = rng.standard_normal(shape, dtype=np.float32)
            else:
                feed[port.name] = rng.integers(0, 1000, shape)
        yield feed


def run_float(model, names, feed):
    import pyflame_rt  # only here, as most models need no library
    return pyflame_rt.InferenceSession(model.SerializeToString()).run(names, feed)


def qdq(topology):
    model = quantize.prepared(topology())
    return quantize.static(model, quantize.ranges_of(model, run_float, feeds_of(model)))


QDQ = (resnet50, mobilenet_v2, encoder, squeezenet, shufflenet, inception, densenet121)
NETWORKS = {**{f"{f.__name__}_qdq": functools.partial(qdq, f) for f in QDQ},
            "encoder_dynamic": lambda: quantize.dynamic(encoder())}
MODELS = {**NETWORKS, **integer_chains.MODELS, **nbits_models.MODELS}


def main():
    parser = argparse.ArgumentParser(description="Write ONNX benchmark models in integers.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--only", metavar="NAMES", help="comma-separated, of " + ", ".join(MODELS))
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(MODELS)
    if unknown := set(names) - set(MODELS):
        parser.error("no such model: " + ", ".join(sorted(unknown)))
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        write(MODELS[name](), args.out / f"{name}.onnx")


if __name__ == "__main__":
    main()
