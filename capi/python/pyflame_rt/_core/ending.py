# SPDX-License-Identifier: Apache-2.0
"""What modules do at the interpreter's end.

Functions are called after all handlers that the program registers with ``atexit`` once it has imported the package, also
where the module that has them is loaded later.
"""
import atexit
from typing import Callable, List

at_end: List[Callable[[], None]] = []


def _end() -> None:
    for each in reversed(at_end):
        each()


atexit.register(_end)
