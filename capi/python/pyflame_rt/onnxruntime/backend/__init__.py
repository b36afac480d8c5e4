# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface by ONNX Runtime's names: ``prepare(model, "CPU").run(inputs)``."""
from pyflame_rt.onnxruntime.backend.backend import (OnnxRuntimeBackend, is_compatible, prepare, run, run_model,
                                                    supports_device)
from pyflame_rt.onnxruntime.backend.backend_rep import OnnxRuntimeBackendRep

__all__ = ["OnnxRuntimeBackend", "OnnxRuntimeBackendRep", "is_compatible", "prepare", "run", "run_model",
           "supports_device"]
