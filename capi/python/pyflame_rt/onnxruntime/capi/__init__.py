# SPDX-License-Identifier: Apache-2.0
"""Modules that are internal to ONNX Runtime, but from which programs import names."""
from pyflame_rt.onnxruntime.capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
