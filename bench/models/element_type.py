# SPDX-License-Identifier: Apache-2.0
"""A float32 model in another type of floats: constants, inputs and outputs; the nodes stay as they are."""
import numpy as np
from onnx import TensorProto, numpy_helper

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
# Oldest opset at which all operators of the convolutional networks take bfloat16, in the form that they have at 13.
# Those of the transformers take it at 14.
BFLOAT16_OPSET = 22


def bfloat16_bits(array):
    """Rounded to nearest even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def retype_tensor(tensor, data_type):
    array = numpy_helper.to_array(tensor)
    halves = bfloat16_bits(array) if data_type == TensorProto.BFLOAT16 else array.astype(np.float16)
    for name in ("float_data", "raw_data"):
        tensor.ClearField(name)
    tensor.data_type = data_type
    tensor.raw_data = halves.tobytes()


def retype(model, name):
    """In place; |name| is of TYPES."""
    data_type = TYPES[name]
    if data_type == TensorProto.FLOAT:
        return
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            retype_tensor(tensor, data_type)
    for port in [*model.graph.input, *model.graph.output]:
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = data_type
    if data_type == TensorProto.BFLOAT16 and any(node.op_type == "Conv" for node in model.graph.node):
        model.opset_import[0].version = BFLOAT16_OPSET
        model.ir_version = 10
