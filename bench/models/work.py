# SPDX-License-Identifier: Apache-2.0
"""Arithmetic that a model's products take: two operations a factor pair, padding of convolutions included."""
import math

import onnx


def sized(model, dims):
    """A copy whose symbolic dimensions are |dims|, by name, or 1."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for port in copy.graph.input:
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = int(dims.get(dim.dim_param, 1))
    for port in copy.graph.output:
        port.type.tensor_type.ClearField("shape")
    return copy


def shapes_of(model):
    inferred = onnx.shape_inference.infer_shapes(model).graph
    out = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
           for v in (*inferred.value_info, *inferred.input, *inferred.output) if v.type.tensor_type.HasField("shape")}
    return {**out, **{t.name: list(t.dims) for t in inferred.initializer}}


def operations(model, dims=None):
    """Of Conv, MatMul and Gemm in float and integers. 0 where there are none; an error where a shape is not known."""
    shapes, total = shapes_of(sized(model, dims or {})), 0
    for node in model.graph.node:
        kind = node.op_type.removesuffix("Integer")
        if kind not in ("Conv", "MatMul", "Gemm"):
            continue
        if node.output[0] not in shapes or node.input[1] not in shapes or 0 in shapes[node.output[0]]:
            raise ValueError(f"the shape of '{node.output[0]}' is not known")
        right = shapes[node.input[1]]
        if kind == "Conv":
            depth = math.prod(right[1:])
        elif kind == "MatMul":
            depth = right[-2]
        else:
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            depth = right[1 if transposed else 0]
        total += 2 * math.prod(shapes[node.output[0]]) * depth
    return total


def decoder_operations(model, tokens):
    """Of MatMulNBits in nbits_models.py's decoder: the last product, the logits', is of one row."""
    sizes = [math.prod(a.i for a in node.attribute if a.name in ("K", "N")) for node in model.graph.node
             if node.op_type == "MatMulNBits"]
    return 2 * (tokens * sum(sizes[:-1]) + sizes[-1])
