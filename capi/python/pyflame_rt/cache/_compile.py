# SPDX-License-Identifier: Apache-2.0
"""Models compiled to graphs."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .. import opt
from .._errors import InvalidArgumentError
from .._graph import Graph
from .._model import load_model
from .._options import OptLevel, SessionOptions
from ._binary_cache import BinaryCache, CacheConfig, CacheKey, FilePath


@dataclass
class CompileOptions:
    """How ``compile_model`` compiles.

    cache_dir: keeps the result there for the next time; None = nowhere.
    optimization_level: 0 none, 1 basic, 2 extended, 3 all.
    """

    cache_dir: Optional[FilePath] = None
    optimization_level: int = 2


def compile_model(path: FilePath, options: Optional[CompileOptions] = None) -> Graph:
    """The optimised graph of a model file, out of the cache where it is there."""
    given = options or CompileOptions()
    try:
        level = OptLevel(given.optimization_level)
    except ValueError:
        raise InvalidArgumentError(f"compile_model: optimization_level {given.optimization_level} is none; give 0 "
                                   "(none) to 3 (all)") from None

    def compile() -> Graph:
        graph = load_model(path)
        opt.optimize(graph, level)
        return graph

    if given.cache_dir is None:
        return compile()
    kept = BinaryCache(CacheConfig(cache_dir=given.cache_dir))
    key = "compile_model/" + CacheKey.compute(path, SessionOptions(optimization_level=level))
    graph = kept.get(key)
    if graph is None:
        graph = compile()
        kept.put(key, graph)
    return graph
