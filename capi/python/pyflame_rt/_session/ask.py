# SPDX-License-Identifier: Apache-2.0
"""Questions to the devices of providers, which need no model, and to services."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

import numpy as np

from .._core import abi, interrupt, library as lib
from .._core.options import NativeOptions
from .._core.progress import ProgressCall
from .._values.memory import python_of
from .._values.value import value_of


@dataclass
class Answer:
    """The answer of a device or a service: ``text``, which may be empty, and ``tensors`` by their names."""

    text: str = ""
    tensors: Dict[str, np.ndarray] = field(default_factory=dict)


def _options(provider: str, device: str, options: Optional[Mapping[str, Any]], timeout_ms: int) -> NativeOptions:
    native = NativeOptions(abi.OPTIONS_ASK)
    if device:
        native.set("device", device)
    if timeout_ms:
        native.set("timeout_ms", timeout_ms)
    for key, value in (options or {}).items():
        native.set(f"provider.{provider}.{key}", value)
    return native


def _answer(reply: lib.Handle) -> Answer:
    answer = Answer(lib.read(lib.env.reply_text(reply.address)))
    name, value = abi.String(), ctypes.c_void_p()
    for i in range(lib.env.reply_count(reply.address)):
        lib.check(lib.env.reply_at(reply.address, i, ctypes.byref(name), ctypes.byref(value)))
        assert value.value
        lib.value.retain(value.value)
        answer.tensors[lib.read(name)] = python_of(lib.Handle(value.value, lib.value.release))
    return answer


def ask(provider: str, verb: str, request: str, tensors: Sequence[Any], device: str,
        options: Optional[Mapping[str, Any]], timeout_ms: int, progress: Optional[Callable[[float], Optional[bool]]],
        ) -> Answer:
    """Environment.ask"""
    native = _options(provider, device, options, timeout_ms)

    def call(desc: Any, out: Any) -> Any:
        return lib.env.ask(lib.default_env().address, desc, out)

    return ask_by(call, native, provider, verb, request, tensors, progress)


def ask_by(call: Callable[[Any, Any], Any], native: NativeOptions, provider: str, verb: str, request: str,
           tensors: Sequence[Any], progress: Optional[Callable[[float], Optional[bool]]]) -> Answer:
    """Asks by |call|, a function of the library's that takes the description and a place for the reply."""
    values = [value_of(tensor, f"tensors[{i}]") for i, tensor in enumerate(tensors)]
    addresses = (ctypes.c_void_p * max(len(values), 1))(*(value.address for value in values))
    desc = abi.AskDesc(struct_size=ctypes.sizeof(abi.AskDesc), provider=lib.text(provider), verb=lib.text(verb),
                       request=lib.text(request), values=ctypes.cast(addresses, ctypes.c_void_p),
                       value_count=len(values), options=native.address)

    def create(_: Optional[int]) -> Answer:
        return _answer(lib.make(call, lib.env.reply_release, ctypes.byref(desc)))

    def work(_: Optional[int]) -> Answer:
        answer: Answer = interrupt.stoppable(native, create)
        return answer

    return told(native, progress)(work)


def told(native: NativeOptions, progress: Optional[Callable[[float], Optional[bool]]]) -> ProgressCall:
    """A call whose progress a function of the fraction alone hears."""

    def hear(fraction: float, _stage: str) -> Optional[bool]:
        assert progress is not None
        return progress(fraction)

    return ProgressCall(native, None if progress is None else hear)
