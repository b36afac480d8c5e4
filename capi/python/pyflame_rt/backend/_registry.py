# SPDX-License-Identifier: Apache-2.0
"""The backends of the process."""
from __future__ import annotations

import ctypes
import threading
from typing import Dict, List, Optional

from .._core import abi, callbacks, library as lib, shutdown
from .._core.errors import InvalidArgumentError
from ._backend import Backend
from ._calls import OPEN, Source


class BackendRegistry:
    """The backends of the process, by name."""

    _the: Optional["BackendRegistry"] = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._backends: Dict[str, Backend] = {}

    @classmethod
    def instance(cls) -> "BackendRegistry":
        """The one of the process."""
        with cls._lock:
            if cls._the is None:
                cls._the = cls()
            return cls._the

    def register_backend(self, backend: Backend) -> None:
        """Sessions may name it from now on; it is kept until the process ends.

        InvalidArgumentError when it has no name, or that of another provider.
        """
        if not isinstance(backend, Backend):
            raise InvalidArgumentError(f"register_backend: {backend!r} is no Backend; derive its class from Backend")
        name = backend.name
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"register_backend: the name of {backend!r} is {name!r}; give it a text")
        with self._lock:
            if name in self._backends:
                raise InvalidArgumentError(f"register_backend: the name '{name}' is taken by {self._backends[name]!r}, "
                                           "which was registered before")
            shutdown.count_calls()
            source = Source(name, backend)
            struct = abi.ClientProvider(
                struct_size=ctypes.sizeof(abi.ClientProvider), abi=abi.ABI_VERSION, name=lib.text(name),
                table=ctypes.addressof(source.table), open=OPEN, release=callbacks.RELEASE,
                user=callbacks.hold(source))
            lib.check(lib.env.register_provider(lib.default_env().address, ctypes.byref(struct)))
            self._backends[name] = backend

    def get(self, name: str) -> Optional[Backend]:
        """The backend of this name; None when there is none."""
        with self._lock:
            return self._backends.get(name)

    def has(self, name: str) -> bool:
        """Tells whether one of this name is registered."""
        return self.get(name) is not None

    def list(self) -> List[str]:
        """Names, sorted."""
        with self._lock:
            return sorted(self._backends)

    def __repr__(self) -> str:
        return f"BackendRegistry({', '.join(self.list())})"
