# SPDX-License-Identifier: Apache-2.0
"""The library: where it is, its table of functions, and the strings and errors that cross over."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import abi, callbacks
from .errors import PyFlameRTError, error_of

NAME = "libpyflamert_c.so"


def _candidates() -> Iterable[str]:
    """Files to try: the one asked for, the wheel's own, the one of the installation this package lies in."""
    named = os.environ.get("PYFLAME_RT_LIBRARY")
    if named:
        return [named]
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    beside = [os.path.join(here, "lib", NAME)]
    while here != os.path.dirname(here):
        here = os.path.dirname(here)
        beside.append(os.path.join(here, NAME))
    return [*filter(os.path.exists, beside), NAME]


def _open() -> ctypes.CDLL:
    tried = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError as fault:
            tried.append(f"{candidate}: {fault}")
    raise ImportError(f"pyflame_rt: the library {NAME} could not be opened; set PYFLAME_RT_LIBRARY to its path. "
                      f"Tried {'; '.join(tried)}")


class _Area:
    """The functions of a table as attributes. Each is made when it is first asked for: a program uses few of them."""

    def __init__(self, address: int, functions: Dict[str, Any]) -> None:
        self._address = address
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        try:
            offset, *signature = self._functions[name]
        except KeyError:
            raise AttributeError(f"the table of functions has no '{name}'") from None
        function = ctypes.CFUNCTYPE(*signature)(self._address_in(offset))
        setattr(self, name, function)
        return function

    def _address_in(self, offset: int) -> int:
        return ctypes.c_void_p.from_address(self._address + offset).value or 0

    def address_of(self, name: str) -> int:
        """The address of a function."""
        return self._address_in(self._functions[name][0])


def read(string: Any) -> str:
    """Text of a String struct."""
    return ctypes.string_at(string.data, string.size).decode("utf-8", "replace") if string.size else ""


def text(value: str) -> Any:
    """A String struct that keeps its bytes."""
    if not isinstance(value, str):
        raise TypeError(f"text is needed where {value!r} was given")
    data = value.encode("utf-8")
    out = abi.String(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))
    out.bytes = data
    return out


def texts(values: Iterable[str]) -> Any:
    """An array of String structs that keeps their bytes."""
    made = [text(v) for v in values]
    out: Any = (abi.String * len(made))(*made)
    out.strings = made
    return out


_cdll = _open()
if not hasattr(_cdll, "pfrt_get_api"):
    raise ImportError(f"pyflame_rt: {_cdll._name} is another library, without pfrt_get_api; set PYFLAME_RT_LIBRARY to "
                      f"the path of {NAME}")
_cdll.pfrt_get_api.restype = ctypes.c_void_p
_cdll.pfrt_get_api.argtypes = [ctypes.c_uint32, ctypes.c_void_p]
_info = abi.AbiInfo(struct_size=ctypes.sizeof(abi.AbiInfo))
_address = _cdll.pfrt_get_api(abi.ABI_VERSION, ctypes.byref(_info))
if not _address:
    raise ImportError(f"pyflame_rt: {_cdll._name}: {read(_info.message)}")
_api = abi.Api.from_address(_address)

path: str = _cdll._name
version: str = read(_info.version)
status = _Area(_api.status, abi.STATUS_API)
options = _Area(_api.options, abi.OPTIONS_API)
env = _Area(_api.env, abi.ENV_API)
value = _Area(_api.value, abi.VALUE_API)
graph = _Area(_api.graph, abi.GRAPH_API)
model = _Area(_api.model, abi.MODEL_API)
session = _Area(_api.session, abi.SESSION_API)
state = _Area(_api.state, abi.STATE_API)
cache = _Area(_api.cache, abi.CACHE_API)
report = _Area(_api.report, abi.REPORT_API)
optimizer = _Area(_api.optimizer, abi.OPTIMIZER_API)
pattern = _Area(_api.pattern, abi.PATTERN_API)
memory = _Area(_api.memory, abi.MEMORY_API)
batcher = _Area(_api.batcher, abi.BATCHER_API)
streams = _Area(_api.streams, abi.STREAMS_API)


def _error(address: int) -> PyFlameRTError:
    faults: List[PyFlameRTError] = []
    for i in range(status.child_count(address)):
        faults.append(_error(status.child(address, i)))
    return error_of(status.code(address), read(status.message(address)), faults)


def take_error(address: Optional[int]) -> Optional[PyFlameRTError]:
    """The exception of a status, which is released; None for success. What a callback raised is its cause."""
    if not address:
        return None
    try:
        fault = _error(address)
        fault.__cause__ = callbacks.cause_of(str(fault))
        return fault
    finally:
        status.release(address)


def check(address: Optional[int]) -> None:
    """Raises what a status says."""
    if address:
        fault = take_error(address)
        assert fault is not None
        if fault.__cause__ is not None and not isinstance(fault.__cause__, Exception):
            raise fault.__cause__  # Ctrl-C in a callback stays one
        raise fault


class Handle:
    """A reference to something of the library's, dropped with the object. ``address`` is None once it is closed."""

    __slots__ = ("address", "_release", "__weakref__")

    def __init__(self, address: int, release: Any) -> None:
        self.address: Optional[int] = address
        self._release = release

    @property
    def _as_parameter_(self) -> Optional[int]:
        """Functions of the library take the handle itself, which then stays for the time of the call."""
        return self.address

    def close(self) -> None:
        address, self.address = self.address, None
        if address:
            self._release(address)

    def __del__(self) -> None:
        # At exit the function may be gone before the object.
        if getattr(self, "address", None) and self._release is not None:
            self.close()


def make(create: Any, release: Any, *args: Any) -> Handle:
    """A handle from a function whose last parameter receives it."""
    out = ctypes.c_void_p()
    check(create(*args, ctypes.byref(out)))
    assert out.value
    return Handle(out.value, release)


_default_env: Optional[Handle] = None
_env_lock = threading.Lock()
on_default_env: List[Callable[[Handle], None]] = []  # called with the environment that sessions share, once it is made


def begin_env(options: Optional[int]) -> bool:
    """Makes the environment that sessions share, with options; False when there is one already."""
    global _default_env
    with _env_lock:
        if _default_env is not None:
            return False
        made = make(env.create, env.release, options)
        for begin in on_default_env:
            begin(made)
        _default_env = made
        return True


def has_default_env() -> bool:
    return _default_env is not None


def default_env() -> Handle:
    """The environment that sessions share, made when first asked for. It goes on working in a forked child."""
    if _default_env is None:
        begin_env(None)
    assert _default_env is not None
    return _default_env
