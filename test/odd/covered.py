#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operator of `pfrt ops` has a generator here, or is listed below with the reason why not. Argument: the tool."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generators  # noqa: E402

WITHOUT = {
    "of opsets before 10, in test/recorded": ["Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus",
                                               "Scale", "ScaledTanh"],
    "random, nothing to compare": ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                                   "RandomUniformLike"],
    "bodies, in test/optimise": ["If", "Loop", "Scan", "SequenceMap", "ai.onnx.preview/FlexAttention"],
    "no inputs, or a part of other cases": ["Constant", "SequenceEmpty", "OptionalGetElement", "OptionalHasElement"],
    "files, in test/plugins/ops": ["ImageDecoder"],
    "the peer lacks it": ["CausalConvWithState", "LinearAttention", "SwiGLU", "ai.onnx.preview.training/Adagrad",
                          "ai.onnx.preview.training/Adam", "ai.onnx.preview.training/Momentum",
                          "com.microsoft/FusedMatMulActivation", "com.microsoft/NhwcConv",
                          "com.microsoft/NhwcFusedConv"],
    "maps, which only another operator makes": ["ai.onnx.ml/CastMap", "ai.onnx.ml/DictVectorizer", "ai.onnx.ml/ZipMap"],
    "another name of one with a generator, or it and another": [
        "SimplifiedLayerNormalization", "ai.onnx.ml/TreeEnsemble", "com.microsoft/DequantizeLinear",
        "com.microsoft/GridSample", "com.microsoft/MatMulInteger16", "com.microsoft/QEmbedLayerNormalization",
        "com.microsoft/QLinearConv", "com.microsoft/QuantizeLinear", "com.microsoft/SampleOp",
        "com.microsoft/SimplifiedLayerNormalization", "com.microsoft/SparseToDenseMatMul", "com.microsoft/Trilu",
        "com.microsoft/Unique"],
}


def main():
    listed = json.loads(subprocess.run([sys.argv[1], "ops", "--json"], check=True, capture_output=True).stdout)
    every = {"/".join(filter(None, (o["domain"], o["op"]))) for o in listed["operators"]}
    made = {"/".join(filter(None, key)) for key in generators.GENERATORS}
    apart = {name for names in WITHOUT.values() for name in names}
    faults = [f"{name} has no generator in test/odd and no reason in covered.py" for name in every - made - apart]
    faults += [f"{name} is listed in covered.py and has a generator" for name in apart & made]
    faults += [f"{name} is no operator of `pfrt ops`" for name in (apart | made) - every]
    print("\n".join(sorted(faults)) or f"{len(made)} operators with generators, {len(apart)} with a reason")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
