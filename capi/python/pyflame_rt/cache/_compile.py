# SPDX-License-Identifier: Apache-2.0
"""Models compiled to graphs."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, Optional, Sequence

from .. import opt
from .._core.errors import InputError, InvalidArgumentError, ShapeMismatchError
from .._core.options import OptLevel
from .._graph.files import load_model
from .._graph.graph import Graph
from .._session.session_options import SessionOptions
from ._binary_cache import BinaryCache, CacheConfig, CacheKey, FilePath


@dataclass
class CompileOptions:
    """Options that say how ``compile_model`` compiles.

    cache_dir: keeps the result there for the next time; None = nowhere.
    optimization_level: 0 none, 1 basic, 2 extended, 3 all.
    dynamic_batch: the first dimension of each input may vary.
    input_shapes: shapes of inputs by name, in the place of the model's; a dimension of None or -1 may vary.
    """

    cache_dir: Optional[FilePath] = None
    optimization_level: int = 2
    dynamic_batch: bool = False
    input_shapes: Dict[str, Sequence[Optional[int]]] = field(default_factory=dict)


def _reshape_inputs(graph: Graph, options: CompileOptions) -> None:
    missing = dict(options.input_shapes)
    for index, info in enumerate(graph.inputs):
        shape, names = info.shape, info.dim_names
        given = missing.pop(info.name, None)
        if given is not None:
            if shape is not None and len(given) != len(shape):
                raise ShapeMismatchError(f"compile_model: input '{info.name}' has shape {shape}, its input_shapes have "
                                         f"{len(given)} dimensions")
            shape, names = [None if dim is None or dim < 0 else dim for dim in given], []
        if options.dynamic_batch and shape:
            shape, names = [None, *shape[1:]], ["batch", *[""] * (len(shape) - 1)]
        if shape is not info.shape:
            graph.replace_input(index, replace(info, shape=shape, dim_names=names))
    for name in missing:
        raise InputError(f"compile_model: input_shapes name '{name}', which is no input of the model")


def compile_model(path: FilePath, options: Optional[CompileOptions] = None) -> Graph:
    """The optimised graph of a model file, out of the cache where it is there.

    Raises InputError for an input that the model has not, ShapeMismatchError for a shape of another rank.
    """
    given = options or CompileOptions()
    try:
        level = OptLevel(given.optimization_level)
    except ValueError:
        raise InvalidArgumentError(f"compile_model: optimization_level {given.optimization_level} is none; give 0 "
                                   "(none) to 3 (all)") from None

    def compile() -> Graph:
        graph = load_model(path)
        _reshape_inputs(graph, given)
        opt.optimize(graph, level)
        return graph

    if given.cache_dir is None:
        return compile()
    kept = BinaryCache(CacheConfig(cache_dir=given.cache_dir))
    key = "compile_model/" + CacheKey.compute(path, SessionOptions(optimization_level=level))
    key += "/dynamic" if given.dynamic_batch else ""
    key += "".join(f"/{name}={list(given.input_shapes[name])}" for name in sorted(given.input_shapes))
    graph = kept.get(key)
    if graph is None:
        graph = compile()
        kept.put(key, graph)
    return graph
