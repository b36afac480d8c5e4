# SPDX-License-Identifier: Apache-2.0
"""Import of model files, with options, statistics, and a result in place of an exception.

>>> result = import_module.ONNXImporter().import_model("model.onnx")
>>> if result.success:
...     session = pyflame_rt.InferenceSession(result.graph)
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from . import opt
from ._core.errors import PyFlameRTError, UnsupportedFormatError
from ._core.options import OptLevel
from ._core.progress import Progress
from ._graph.graph import Graph, graph_of_model
from ._graph.model import Confine, LoadCall, model_of_source
from ._graph.model_info import ImportStats, model_stats, read_metadata
from ._graph.source import source_of

__all__ = ["ImportOptions", "ImportResult", "ImportStats", "ONNXImporter"]


@dataclass
class ImportOptions:
    """Options that say how a model is imported.

    Attributes
    ----------
    validate: check the graph's form; a fault makes the import fail.
    infer_shapes: fill in types and shapes of inner values as far as they follow from the inputs.
    optimize: rewrite the graph as ``opt.optimize`` does at OptLevel.BASIC. Sessions optimise by their own level, with
        this or without.
    confine: "links" or "strict", where files beside the model may be, as in ``load_model``.
    progress: called with how far the import is, from 0 to 1, and what is being done. Returning False stops it, which
        is an error of the result; what it raises comes out.
    """

    validate: bool = True
    infer_shapes: bool = True
    optimize: bool = False
    progress: Optional[Progress] = None
    confine: Confine = "links"

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"ImportOptions has no option '{name}'; it has " + ", ".join(
                    self.__dataclass_fields__))
            super().__setattr__(name, value)


@dataclass
class ImportResult:
    """The outcome of an import: a ``graph`` if ``success``, and else in ``error`` what went wrong.

    ``stats`` count what the file has, before it was optimised.
    """

    success: bool = False
    graph: Optional[Graph] = None
    error: str = ""
    stats: ImportStats = field(default_factory=ImportStats)


class ONNXImporter:
    """Imports ONNX files."""

    def import_model(self, path: Any, options: Optional[ImportOptions] = None) -> ImportResult:
        """The graph of a file. Faults of the file are in the result, not raised."""
        options = options or ImportOptions()
        source = source_of(path)
        try:
            model = model_of_source(source, LoadCall(options.validate, options.infer_shapes, options.progress,
                                                     options.confine))
            assert model.address
            form = read_metadata(model.address).format
            if form != "onnx":
                what = f"'{source}'" if isinstance(source, str) else f"a model of {len(source)} bytes"
                raise UnsupportedFormatError(f"{what} is a {form} file, not ONNX: use load_model")
            graph = graph_of_model(model.address)
            if options.optimize:
                opt.optimize(graph, OptLevel.BASIC)
            return ImportResult(True, graph, "", model_stats(model.address))
        except PyFlameRTError as fault:
            return ImportResult(error=str(fault))
