# SPDX-License-Identifier: Apache-2.0
"""States: what one run leaves for the next."""
from __future__ import annotations

import ctypes
import os
from typing import Any, FrozenSet, Iterable, List, Mapping, Tuple, Union

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._values.memory import taken
from .._values.value import value_of

Pair = Union[Tuple[str, str], Tuple[str, str, Union[int, str, None]]]


class State:
    """A state keeps what runs leave for the next: key-value caches, recurrent layers. ``create_state`` makes one.

    >>> state = session.create_state()
    >>> options = RunOptions(state=state)
    >>> for token in tokens:
    ...     (logits,) = session.run(["logits"], {"token": token}, options)

    A run takes its inputs from the state, and once it has succeeded the state has what it left; a run that fails changes
    nothing. Runs with different states may be under way at once; a second run with a state that one has raises
    BusyError, and so does changing it meanwhile. Name the outputs that are wanted: others are not copied.
    """

    def __init__(self, handle: lib.Handle, inputs: FrozenSet[str]) -> None:
        self._handle = handle
        self._inputs = inputs  # which need not be fed

    def __len__(self) -> int:
        """The length along the axes that values grow along: tokens of a cache."""
        return int(lib.state.length(self._handle.address))

    def __bool__(self) -> bool:
        return True

    def clone(self) -> "State":
        """A state of its own with the same values, which takes no memory until runs make new ones."""
        return State(lib.make(lib.state.clone, lib.state.release, self._handle.address), self._inputs)

    def truncate(self, length: int) -> None:
        """Leaves the first ``length`` along the growing axes; 0 leaves the state as it was made.

        UnsupportedError for more than 0 where a value is replaced by each run: clone the state before.
        """
        lib.check(lib.state.truncate(self._handle.address, ctypes.c_int64(length)))

    def get(self, input_name: str) -> Any:
        """A copy of the value that this input will have; None where there is none yet."""
        out = ctypes.c_void_p()
        lib.check(lib.state.get(self._handle.address, lib.text(input_name), ctypes.byref(out)))
        return None if not out.value else taken(out.value)

    def set(self, input_name: str, value: Any) -> None:
        """Gives this input a value, which is copied, for the next run."""
        handle = value_of(value, input_name)
        lib.check(lib.state.set(self._handle.address, lib.text(input_name), handle.address))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the values to a file, which is there whole or not at all."""
        lib.check(lib.state.save(self._handle.address, lib.text(os.fspath(path))))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Takes the values that ``save`` wrote. On failure nothing changes."""
        lib.check(lib.state.load(self._handle.address, lib.text(os.fspath(path))))

    def __repr__(self) -> str:
        return f"State(length={len(self)}, inputs={sorted(self._inputs)})"


# In the place of a pair's axis: runs write over the value where it is.
IN_PLACE = "in_place"


def create_state(session: Any, pairs: Union[Mapping[str, str], Iterable[Pair], None]) -> State:
    """A state of the session of this handle; pairs are as ``InferenceSession.create_state`` has them."""
    listed: List[Any] = []
    given_pairs: List[Any] = list(pairs.items() if isinstance(pairs, Mapping) else pairs or [])
    for pair in given_pairs:
        if isinstance(pair, str) or len(pair) not in (2, 3):
            raise InvalidArgumentError(f"a pair of a state is (input, output) or (input, output, axis), got {pair!r}")
        growth, axis = abi.STATE_BY_NAMES, 0
        for given in pair[2:]:
            if given == IN_PLACE:
                growth = abi.STATE_IN_PLACE
            else:
                growth, axis = (abi.STATE_REPLACED, 0) if given is None else (abi.STATE_GROWS, given)
        if isinstance(axis, str):
            raise InvalidArgumentError(f"the axis of a pair is a number, None or \"{IN_PLACE}\", got {axis!r}")
        if not 0 <= axis < 1 << 32:
            raise InvalidArgumentError(f"the axis of a pair is counted from 0, got {axis}")
        listed.append(abi.StatePair(struct_size=ctypes.sizeof(abi.StatePair), growth=growth, axis=axis,
                                    input=lib.text(pair[0]), output=lib.text(pair[1])))
    array = (abi.StatePair * len(listed))(*listed)
    handle = lib.make(lib.state.create, lib.state.release, session.address, array, len(listed))
    count, name, names = lib.state.input_count(handle.address), abi.String(), set()
    for i in range(count):
        lib.check(lib.state.input_at(handle.address, i, ctypes.byref(name)))
        names.add(lib.read(name))
    return State(handle, frozenset(names))
