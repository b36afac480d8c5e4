# SPDX-License-Identifier: Apache-2.0
"""Another name of onnxruntime_pybind11_state."""
from pyflame_rt.custom import CustomOpDef  # noqa: F401
from pyflame_rt.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F401, F403
from pyflame_rt.onnxruntime.capi.onnxruntime_pybind11_state import __all__  # noqa: F401
