# SPDX-License-Identifier: Apache-2.0
"""The package under the name ``onnxruntime``, for programs whose imports cannot be changed."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

from pyflame_rt._core.errors import InvalidArgumentError

_OWN, _THEIRS = "pyflame_rt.onnxruntime", "onnxruntime"


class _Loader(importlib.abc.Loader):
    """Gives the module of this package that another name stands for."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(_OWN + spec.name[len(_THEIRS):])
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module is made already. Its imports go on by its own name, which the import system has just replaced.
        module.__spec__ = self._own


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``onnxruntime`` and what is within it here, before any other."""

    def find_spec(self, fullname: str, path: Optional[Sequence[str]] = None,
                  target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != _THEIRS and not fullname.startswith(_THEIRS + "."):
            return None
        own = importlib.util.find_spec(_OWN + fullname[len(_THEIRS):])
        if own is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=own.submodule_search_locations is not None)


def install_as_onnxruntime() -> None:
    """Has ``import onnxruntime``, of this process and from now on, import ``pyflame_rt.onnxruntime``.

    >>> import pyflame_rt.onnxruntime
    >>> pyflame_rt.onnxruntime.install_as_onnxruntime()
    >>> import onnxruntime

    It is to be called before anything imports ``onnxruntime``: InvalidArgumentError says so where that was imported
    already. A second call does nothing. ``python3 -m pyflame_rt.onnxruntime SCRIPT`` does it for a whole program.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    there = sys.modules.get(_THEIRS)
    if there is not None:
        raise InvalidArgumentError(f"install_as_onnxruntime: onnxruntime is imported already, from "
                                   f"{getattr(there, '__file__', None)}; call it before that")
    sys.meta_path.insert(0, _Finder())
