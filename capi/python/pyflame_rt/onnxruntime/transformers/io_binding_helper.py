# SPDX-License-Identifier: Apache-2.0
"""Element types as NumPy and PyTorch have them, by the types of a session's inputs and outputs."""
from __future__ import annotations

import importlib
from typing import Any, Dict, List

import numpy as np

from pyflame_rt._core.errors import InputError

_NUMPY: Dict[str, Any] = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8, "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
_TORCH = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(bfloat16)": "bfloat16",
          "tensor(double)": "float64", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16",
          "tensor(int8)": "int8", "tensor(uint8)": "uint8", "tensor(bool)": "bool"}


def _found(table: Dict[str, Any], ort_type: str, package: str) -> Any:
    if ort_type not in table:
        raise InputError(f"{package} has no element type for '{ort_type}'; there are {', '.join(table)}")
    return table[ort_type]


class TypeHelper:
    """Types of inputs and outputs, looked up by name and translated."""

    @staticmethod
    def get_input_type(ort_session: Any, name: str) -> str:
        """The type of an input, as "tensor(float)"."""
        return TypeHelper._type_of(ort_session.get_inputs(), name, "input")

    @staticmethod
    def get_output_type(ort_session: Any, name: str) -> str:
        """The type of an output, as "tensor(float)"."""
        return TypeHelper._type_of(ort_session.get_outputs(), name, "output")

    @staticmethod
    def _type_of(ports: List[Any], name: str, what: str) -> str:
        for port in ports:
            if port.name == name:
                return str(port.type)
        raise InputError(f"the session has no {what} '{name}'; it has {', '.join(port.name for port in ports)}")

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> Any:
        return _found(_NUMPY, ort_type, "NumPy")

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Any:
        return getattr(importlib.import_module("torch"), _found(_TORCH, ort_type, "PyTorch"))

    @staticmethod
    def numpy_type_to_torch_type(numpy_type: Any) -> Any:
        name = np.dtype(numpy_type).name
        return getattr(importlib.import_module("torch"), name)

    @staticmethod
    def torch_type_to_numpy_type(torch_type: Any) -> Any:
        return np.dtype(str(torch_type).rpartition(".")[2]).type

    @staticmethod
    def get_io_numpy_type_map(ort_session: Any) -> Dict[str, Any]:
        """NumPy's types of all inputs and outputs by name."""
        ports: List[Any] = [*ort_session.get_inputs(), *ort_session.get_outputs()]
        return {port.name: TypeHelper.ort_type_to_numpy_type(port.type) for port in ports}
