# SPDX-License-Identifier: Apache-2.0
"""The module that ONNX Runtime has its Python classes in."""
from pyflame_rt.onnxruntime._session import InferenceSession
from pyflame_rt.onnxruntime._values import IOBinding, OrtDevice, OrtValue, SparseTensor

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "SparseTensor"]
