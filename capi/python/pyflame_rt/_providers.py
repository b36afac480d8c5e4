# SPDX-License-Identifier: Apache-2.0
"""What execution providers there are."""
from __future__ import annotations

import ctypes
from typing import List

from . import _abi, _library as lib


def get_available_providers() -> List[str]:
    """The execution providers that sessions can use here."""
    env = lib.default_env().address
    info = _abi.ProviderInfo(struct_size=ctypes.sizeof(_abi.ProviderInfo))
    out = []
    for i in range(lib.env.provider_count(env)):
        lib.check(lib.env.provider_at(env, i, ctypes.byref(info)))
        if info.available:
            out.append(lib.read(info.name))
    return out
