# SPDX-License-Identifier: Apache-2.0
"""Files that others name: opening a pipe of such a name waits until somebody writes to it, so it is refused."""
from __future__ import annotations

import io
import os
import stat
from typing import Any


def open_regular(path: Any) -> io.BufferedReader:
    """A file for reading; OSError where there is none or it is no regular file. Never waits."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{os.fspath(path)!r} is no regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
