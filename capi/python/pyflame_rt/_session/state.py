# SPDX-License-Identifier: Apache-2.0
"""States: what one run leaves for the next."""
from __future__ import annotations

import ctypes
import operator
import os
from typing import Any, FrozenSet, Iterable, List, Mapping, Tuple, Union

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._values.memory import taken
from .._values.value import value_of

Growth = Union[int, str, None]
Pair = Union[Tuple[str, str], Tuple[str, str, Growth], Tuple[str, str, Growth, "Room"]]
Room = Union[int, Tuple[int, int]]


class State:
    """A state keeps what runs leave for the next: key-value caches, recurrent layers. ``create_state`` makes one.

    >>> state = session.create_state()
    >>> options = RunOptions(state=state)
    >>> for token in tokens:
    ...     (logits,) = session.run(["logits"], {"token": token}, options)

    A run takes its inputs from the state, and once it has succeeded the state has what it left; a run that fails
    changes nothing, and one with ``RunOptions(state=state, keeps_state=True)`` only reads it. Runs with different
    states may be under way at once, and so may runs that keep one state; others with one state wait for each other, in
    the order of the calls. Changing a state that a run has raises BusyError. Name the outputs that are wanted: others
    are not copied.
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

    def clone_for(self, session: Any, pairs: Union[Mapping[str, str], Iterable[Pair], None] = None) -> "State":
        """A state of another session, with the values that this one has for inputs of the same names.

        ``pairs`` are as ``session.create_state`` has them. Values are shared; those on a device that the session does
        not use come to host memory. NotFoundError, ShapeMismatchError, DTypeMismatchError or InvalidArgumentError lists
        all inputs that do not fit.
        """
        if not hasattr(session, "_alive"):
            raise InvalidArgumentError(f"a state is cloned for an InferenceSession, got {type(session).__name__}")
        array, count = _pairs_of(pairs)
        other = session._alive()
        return _state_of(lib.make(lib.state.clone_for, lib.state.release, self._handle.address, other.address, array,
                                  count))

    def truncate(self, length: int) -> None:
        """Leaves the first ``length`` along the growing axes; 0 leaves the state as it was made.

        UnsupportedError for more than 0 where a value is replaced by each run: clone the state before.
        """
        lib.check(lib.state.truncate(self._handle.address, ctypes.c_int64(length)))

    def select_rows(self, rows: Iterable[int]) -> None:
        """Makes row i of each value what row ``rows[i]`` was, along the axis of the batch.

        That is the axis whose dimension has the batch's name in the session's other inputs, else axis 0. Rows may be
        repeated, in any order and left out. InvalidArgumentError for a row that there is not; then nothing changes.
        """
        listed = [operator.index(row) for row in rows]
        for row in listed:
            if not -1 << 63 <= row < 1 << 63:
                raise InvalidArgumentError(f"a row of a state is counted from 0, got {row}")
        array = (ctypes.c_int64 * len(listed))(*listed)
        lib.check(lib.state.select_rows(self._handle.address, array, len(listed)))

    def get(self, input_name: str) -> Any:
        """A copy of the value that this input will have; None where there is none yet."""
        out = ctypes.c_void_p()
        lib.check(lib.state.get(self._handle.address, lib.text(input_name), ctypes.byref(out)))
        return None if not out.value else taken(out.value)

    def set(self, input_name: str, value: Any) -> None:
        """Gives this input a value, which is copied, for the next run."""
        handle = value_of(value, input_name)
        lib.check(lib.state.set(self._handle.address, lib.text(input_name), handle.address))

    def set_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Gives inputs values, which are copied, by the names of the outputs that leave them.

        >>> state = step_session.create_state()
        >>> state.set_outputs(dict(zip(present_names, prompt_session.run(present_names, {"ids": prompt}))))

        NotFoundError lists outputs that are not the state's; then nothing changes.
        """
        handles = [value_of(value, name) for name, value in outputs.items()]
        array = (ctypes.c_void_p * len(handles))(*(handle.address for handle in handles))
        lib.check(lib.state.set_outputs(self._handle.address, lib.texts(outputs), array, len(handles)))

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


def _pairs_of(pairs: Union[Mapping[str, str], Iterable[Pair], None]) -> Tuple[Any, int]:
    """The pairs as the library takes them, and their number."""
    listed: List[Any] = []
    given_pairs: List[Any] = list(pairs.items() if isinstance(pairs, Mapping) else pairs or [])
    for pair in given_pairs:
        if isinstance(pair, str) or len(pair) not in (2, 3, 4):
            raise InvalidArgumentError("a pair of a state is (input, output), (input, output, axis) or (input, output, "
                                       f"axis, capacity), got {pair!r}")
        growth, axis, capacity = abi.STATE_BY_NAMES, 0, 0
        for given in pair[2:3]:
            if given == IN_PLACE:
                growth = abi.STATE_IN_PLACE
            else:
                growth, axis = (abi.STATE_REPLACED, 0) if given is None else (abi.STATE_GROWS, given)
        if isinstance(axis, str):
            raise InvalidArgumentError(f"the axis of a pair is a number, None or \"{IN_PLACE}\", got {axis!r}")
        for room in pair[3:]:
            if (growth == abi.STATE_IN_PLACE) != isinstance(room, tuple) or (isinstance(room, tuple) and len(room) != 2):
                raise InvalidArgumentError(f"the capacity of a pair is a length, and (axis, length) with \"{IN_PLACE}\", "
                                           f"got {room!r}")
            axis, capacity = room if isinstance(room, tuple) else (axis, room)
            if not 0 < capacity < 1 << 63:
                raise InvalidArgumentError(f"the capacity of a pair is a length above 0, got {capacity}")
        if not 0 <= axis < 1 << 32:
            raise InvalidArgumentError(f"the axis of a pair is counted from 0, got {axis}")
        listed.append(abi.StatePair(struct_size=ctypes.sizeof(abi.StatePair), growth=growth, axis=axis,
                                    input=lib.text(pair[0]), output=lib.text(pair[1]), capacity=capacity))
    out: Any = (abi.StatePair * len(listed))(*listed)
    out.pairs = listed  # which keep the names
    return out, len(listed)


def create_state(session: Any, pairs: Union[Mapping[str, str], Iterable[Pair], None]) -> State:
    """A state of the session of this handle; pairs are as ``InferenceSession.create_state`` has them."""
    array, count = _pairs_of(pairs)
    return _state_of(lib.make(lib.state.create, lib.state.release, session.address, array, count))


def _state_of(handle: lib.Handle) -> State:
    count, name, names = lib.state.input_count(handle.address), abi.String(), set()
    for i in range(count):
        lib.check(lib.state.input_at(handle.address, i, ctypes.byref(name)))
        names.add(lib.read(name))
    return State(handle, frozenset(names))
