# SPDX-License-Identifier: Apache-2.0
"""The inner modules that users of ONNX Runtime import names from."""
from pyflame_rt.onnxruntime.capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
