# SPDX-License-Identifier: Apache-2.0
"""Types as ONNX writes them: "tensor(float)"."""
from __future__ import annotations

from pyflame_rt._core import abi
from pyflame_rt._values.info import PortInfo

_NAMES = {row[0]: row[4] for row in abi.DTYPES}
_KINDS = {abi.VALUE_SEQUENCE: "seq({})", abi.VALUE_OPTIONAL: "optional({})"}


def element_text(dtype: int) -> str:
    return _NAMES.get(dtype, "?")


def type_text(port: PortInfo) -> str:
    element = f"tensor({element_text(port.dtype)})"
    if port.kind == abi.VALUE_SPARSE:
        return f"sparse_{element}"
    if port.kind == abi.VALUE_MAP or port.key_dtype:
        element = f"map({element_text(port.key_dtype)},{element})"
    return _KINDS.get(port.kind, "{}").format(element)
