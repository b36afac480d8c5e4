# SPDX-License-Identifier: Apache-2.0
"""The module that ONNX Runtime has its Python classes in."""
from pyflame_rt.onnxruntime._adapters import AdapterFormat
from pyflame_rt.onnxruntime._environment import check_and_normalize_provider_args
from pyflame_rt.onnxruntime._session import InferenceSession
from pyflame_rt.onnxruntime._values import IOBinding, OrtDevice, OrtDeviceVendorId, OrtValue, SparseTensor

__all__ = ["AdapterFormat", "IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "SparseTensor",
           "check_and_normalize_provider_args"]
