# SPDX-License-Identifier: Apache-2.0
"""Graphs from model files, and back."""
from __future__ import annotations

from typing import Any, Mapping, Optional

from .._core.progress import Progress
from .graph import Graph, graph_of_model
from .model import Confine, LoadCall, model_of_graph, model_of_source, write_model
from .source import ModelSource
from .weights import Definer, define_with


def load_model(path: ModelSource, validate: bool = True, infer_shapes: bool = True,
               progress: Optional[Progress] = None, confine: Confine = "links", memory_limit: int = 0,
               definer: Optional[Definer] = None, entry: str = "",
               options: Optional[Mapping[str, Any]] = None) -> Graph:
    """The graph of a model file, its format found by the extension, then by the content. An open file or the bytes of a
    model will do too.

    |confine| says where files beside the model may be: "links" = in the model's folder or, where its path is a symbolic
    link, in the folder of the file it leads to; "strict" = in the folder that the path names, which no link may leave.

    |memory_limit|: bytes of host memory that the model's constants may take, mapped files not counted; 0 = no limit.

    |definer|: definer(graph, weights) is called for a file that has weights alone, and fills the graph. |weights| maps
    names to tensors, which share the file's memory. An error of the definer's is the cause of the load's.

    |entry|: which method of a file that may have several; |options|: those of importers, by "import.<word>.<key>"
    (``Environment.importer_options`` lists them).

    |progress| is called with how far the load is, from 0 to 1, and what is being done; it stops the load by returning
    False (CancelledError) or by raising. Raises ModelNotFoundError, InvalidModelError, UnsupportedFormatError, and
    ValidationError if |validate|.
    """
    model = model_of_source(path, LoadCall(validate, infer_shapes, progress, confine, memory_limit, "",
                                           define_with(definer), entry, options))
    assert model.address
    return graph_of_model(model.address)


def save_model(graph: Graph, path: Any, progress: Optional[Progress] = None) -> None:
    """Writes a graph to a .pfm or .onnx file, by the extension; |progress| as in load_model.

    ValidationError when it is not well formed, UnsupportedFormatError for another extension. The old file stays until
    the new one is whole, also when the save is stopped.
    """
    write_model(model_of_graph(graph), path, LoadCall(progress=progress))
