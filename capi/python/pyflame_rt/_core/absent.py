# SPDX-License-Identifier: Apache-2.0
"""Modules of the guide that are not there yet: importable, so that whoever asks for a name of theirs is told."""
import sys
from types import ModuleType
from typing import Any, Dict

from .library import version

_MODULES: "Dict[str, str]" = {
    "distillation": "Distillation", "pruning": "Pruning", "quantization": "Quantization",
    "serving": "The model server and its clients"}


def refuse(module: str, name: str) -> None:
    """Raises for a name of the guide that is not there yet."""
    # An AttributeError would reach whoever imports the name without these words.
    raise ImportError(f"{module}.{name} is not in this version ({version}): the README's table of what works lists what "
                      "is", name=module)


class _Absent(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        refuse(self.__name__, name)


def absent_modules(package: str) -> "Dict[str, ModuleType]":
    """The modules by name, which ``import`` finds from now on."""
    out: "Dict[str, ModuleType]" = {}
    for name, title in _MODULES.items():
        out[name] = sys.modules[f"{package}.{name}"] = _Absent(f"{package}.{name}", title + ": not in this version.")
    return out
