# SPDX-License-Identifier: Apache-2.0
"""Models as callers give them: paths, open files, bytes."""
from __future__ import annotations

import io
import os
from typing import IO, Any, Optional, Union

ModelSource = Union[str, "os.PathLike[str]", IO[bytes], bytes, bytearray, memoryview]


def source_of(model: Any) -> Union[str, bytes]:
    """The path or the bytes of a model.

    A file that is open at its beginning stands for its path, so that files beside it are found; of any other stream
    the model is what is left to read.
    """
    if isinstance(model, str):
        return str(model)
    if hasattr(model, "__fspath__"):
        return os.fsdecode(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if not callable(getattr(model, "read", None)):
        nearest = "; give its bytes, model.SerializeToString()" if hasattr(model, "SerializeToString") else ""
        raise TypeError(f"a model is a path, an open file, bytes or a Graph, got {type(model).__name__}{nearest}")
    if isinstance(model, io.TextIOBase):
        raise TypeError(f"the file {getattr(model, 'name', model)!r} is open for text; open it with "
                                 "open(path, 'rb'), or give the path")
    path = _path_of(model)
    if path is not None:
        return path
    data = model.read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"reading the model: {type(model).__name__}.read() gave {type(data).__name__}, not "
                                 "bytes; open it in binary mode")
    return bytes(data)


def _path_of(file: Any) -> Optional[str]:
    """The path of a file that is open at its beginning and still lies there."""
    try:
        name: Any = file.name
        if not isinstance(name, str) or file.tell() != 0 or not os.path.samestat(os.stat(name), os.fstat(file.fileno())):
            return None
        if file.writable():
            file.flush()
        return str(os.path.abspath(name))
    except (AttributeError, OSError, ValueError):
        return None
