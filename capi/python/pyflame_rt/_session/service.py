# SPDX-License-Identifier: Apache-2.0
"""Services of plug-ins."""
from __future__ import annotations

import atexit
import ctypes
import threading
from typing import Any, Mapping, Optional, Set

from .._core import abi, library as lib
from .._core.options import text_of


class Service:
    """A running service of a plug-in, for example a model server.

    >>> with Service("heartbeat", {"interval_ms": 100, "model": "model.onnx"}) as service:
    ...     print(service.address)

    It runs until ``stop``, the end of the ``with`` block, or that of the process.

    Parameters
    ----------
    name: the plug-in's own ("Heartbeat") or that of its file ("heartbeat").
    options: by name; values are given as text.

    Raises NotFoundError, which lists the services there are, InvalidArgumentError for an option that the service does
    not know, and what it reports.
    """

    def __init__(self, name: str, options: Optional[Mapping[str, Any]] = None) -> None:
        pairs = [(lib.text(key), lib.text(text_of(value))) for key, value in (options or {}).items()]
        array = (abi.KeyValue * len(pairs))(*(abi.KeyValue(key, value) for key, value in pairs))
        out = ctypes.c_void_p()
        self.name = name
        self._lock = threading.Lock()
        lib.check(lib.env.service_start(lib.default_env().address, lib.text(name), array, len(array),
                                        ctypes.byref(out)))
        self._address: Optional[int] = out.value
        _running.add(self)

    @property
    def address(self) -> str:
        """The address that it can be reached at; "" when it has none, or was stopped."""
        with self._lock:
            return lib.read(lib.env.service_address(self._address)) if self._address else ""

    @property
    def running(self) -> bool:
        """Tells whether it runs: False once it was stopped."""
        return self._address is not None

    def stop(self) -> None:
        """Ends the service: afterwards none of its threads runs. Not to be called from one of them."""
        with self._lock:
            address, self._address = self._address, None
        if address:
            lib.env.service_stop(address)
        _running.discard(self)

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Service({self.name!r}, {self.address or 'running' if self.running else 'stopped'})"


# Not by a finaliser, which may run on any thread, one of the service's among them.
_running: Set[Service] = set()


@atexit.register
def _stop_all() -> None:
    for service in list(_running):
        service.stop()
