# SPDX-License-Identifier: Apache-2.0
"""A session of the library, as what works with one needs it: values on devices, bindings, runs."""
from __future__ import annotations

import ctypes
from typing import Any, List

from .._core import abi, library as lib
from .._core.errors import NotFoundError, PyFlameRTError
from .._values.info import PortInfo, read_info
from .providers import provider_states, word_of


class SessionHandle:
    """A session of the library with its inputs and outputs."""

    def _hold(self, handle: lib.Handle) -> None:
        """Takes over a session that the library has made, and reads its inputs and outputs."""
        self._handle = handle
        session = handle.address
        assert session
        self._pointer = ctypes.c_void_p(session)
        self._inputs = _ports(session, lib.session.input_count, lib.session.input_at)
        self._outputs = _ports(session, lib.session.output_count, lib.session.output_at)
        self._input_index = {port.name: i for i, port in enumerate(self._inputs)}
        self._output_index = {port.name: i for i, port in enumerate(self._outputs)}

    def get_providers(self) -> List[str]:
        """The execution providers in use, in the order of ``providers``."""
        return [state.name for state in provider_states(self._alive()) if state.condition != "failed"]

    def _provider_of(self, device: str) -> str:
        """The name of the provider in use whose device has this word."""
        words = {word_of(name): name for name in self.get_providers()}
        if word_of(device) not in words:
            raise NotFoundError(f"the session uses no device '{device}'; it uses " + ", ".join(map(repr, words)))
        return words[word_of(device)]

    def _alive(self) -> lib.Handle:
        """The library's handle. Whoever holds it holds the library's session, also when this one is closed."""
        handle = self._handle
        if not handle.address:
            raise PyFlameRTError("the session is closed")
        return handle

    def close(self) -> None:
        """Lets the model go now, not when the object goes. Runs that are under way end as if nothing happened."""
        self._handle = lib.Handle(0, None)


def _ports(session: int, count: Any, at: Any) -> List[PortInfo]:
    out = []
    info = abi.ValueInfo(struct_size=ctypes.sizeof(abi.ValueInfo))
    for i in range(count(session)):
        lib.check(at(session, i, ctypes.byref(info)))
        out.append(read_info(info))
    return out
