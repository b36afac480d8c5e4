# SPDX-License-Identifier: Apache-2.0
"""The execution providers that there are, and the states of those that a session uses."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, List

from .._core import abi, library as lib


def word_of(name: str) -> str:
    """The word that a provider's names have in common: "cpu" of "CPUExecutionProvider", "CPUProvider" and "CPU"."""
    word = name.lower()
    for ending in ("executionprovider", "provider"):
        if word.endswith(ending) and word != ending:
            return word[:-len(ending)]
    return word


def get_available_providers() -> List[str]:
    """The execution providers that sessions can use here."""
    env = lib.default_env().address
    info = abi.ProviderInfo(struct_size=ctypes.sizeof(abi.ProviderInfo))
    out = []
    for i in range(lib.env.provider_count(env)):
        lib.check(lib.env.provider_at(env, i, ctypes.byref(info)))
        if info.available:
            out.append(lib.read(info.name))
    return out


def known_devices() -> List[str]:
    """The words of the devices that providers open."""
    env = lib.default_env().address
    info = abi.ProviderInfo(struct_size=ctypes.sizeof(abi.ProviderInfo))
    out: List[str] = []
    for i in range(lib.env.provider_count(env)):
        lib.check(lib.env.provider_at(env, i, ctypes.byref(info)))
        out += [word.strip() for word in lib.read(info.devices).split(",") if word.strip()]
    return out


@dataclass
class ProviderState:
    """The state of the provider ``name`` that a session was asked to use.

    ``condition``: "active" = in use, has never failed; "recovered" = in use again after a failure; "failing" = its last
    use failed and nobody took over; "failed" = not used any more, those after it run its nodes.
    """

    name: str
    condition: str
    reason: str  # of the last failure, or ""
    code: int  # of the last failure, or 0
    failures: int  # so far


_CONDITIONS = {abi.PROVIDER_ACTIVE: "active", abi.PROVIDER_RECOVERED: "recovered",
               abi.PROVIDER_FAILING: "failing", abi.PROVIDER_FAILED: "failed"}


def provider_states(session: Any) -> List[ProviderState]:
    """The states of the providers of the session of this handle."""
    state, out = abi.ProviderState(struct_size=ctypes.sizeof(abi.ProviderState)), []
    for i in range(lib.session.provider_state_count(session)):
        lib.check(lib.session.provider_state(session, i, ctypes.byref(state)))
        out.append(ProviderState(lib.read(state.name), _CONDITIONS.get(state.condition, "active"),
                                 lib.read(state.reason), state.code, state.failures))
    return out
