# SPDX-License-Identifier: Apache-2.0
"""Weights of files that have no graph, and the functions that build one for them."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Union

from .._core import abi, library as lib
from .._values.constant import tensor_at
from .._values.memory import SparseTensor
from .._values.tensor import Tensor
from .graph import Graph


class Weights(Mapping[str, Union[Tensor, SparseTensor]]):
    """The tensors of a file by name, read-only: they share the file's memory, and may be kept.

    ``meta`` has what the file says besides, as text.
    """

    def __init__(self, given: Any) -> None:
        names = (abi.String * given.count).from_address(given.names) if given.count else ()
        values = (ctypes.c_void_p * given.count).from_address(given.values) if given.count else ()
        meta = (abi.KeyValue * given.meta_count).from_address(given.meta) if given.meta_count else ()
        self.meta: Dict[str, str] = {lib.read(entry.key): lib.read(entry.value) for entry in meta}
        self._values: Dict[str, lib.Handle] = {}
        for name, address in zip(names, values):
            lib.value.retain(address)
            self._values[lib.read(name)] = lib.Handle(address, lib.value.release)

    def __getitem__(self, name: str) -> Union[Tensor, SparseTensor]:
        handle = self._values.get(name)
        if handle is None:
            raise KeyError(f"there is no tensor '{name}' among the {len(self)} of the file: "
                           + ", ".join(list(self._values)[:20]) + (", ..." if len(self) > 20 else ""))
        assert handle.address
        return tensor_at(handle.address)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Weights: {len(self)} tensors>"


# definer(graph, weights) fills the graph of a file that has weights alone.
Definer = Callable[[Graph, Weights], Any]


def define_with(definer: Optional[Definer]) -> Optional[Callable[[Any], None]]:
    """What LoadCall calls with the struct of a definition."""
    return None if definer is None else functools.partial(_define, definer)


def _define(definer: Definer, definition: Any) -> None:
    lib.graph.retain(definition.graph)
    graph = Graph._of(lib.Handle(definition.graph, lib.graph.release))
    definer(graph, Weights(abi.Weights.from_address(definition.weights)))
