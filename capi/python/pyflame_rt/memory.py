# SPDX-License-Identifier: Apache-2.0
"""Memory: pools, arenas, caches of buffers, and allocators and planners of one's own.

>>> config = pyflame_rt.memory.PoolConfig()
>>> config.memory_limit = 1 << 30
>>> pool = pyflame_rt.memory.MemoryPool(config)
>>> block = pool.allocate(4096)
>>> numpy.frombuffer(block, numpy.float32)[:] = 0
>>> pool.deallocate(block)

Sizes are bytes. Pools and caches may be used from several threads, arenas and what is made in them from one at a time.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Union

from ._core import abi, callbacks, library as lib
from ._core.errors import InvalidArgumentError

__all__ = ["Allocator", "Arena", "BufferCache", "BufferCacheStats", "MemoryBlock", "MemoryItem", "MemoryPlan",
           "MemoryPlanner", "MemoryPool", "MemoryRequest", "PoolConfig", "PoolStats", "ScopedArena", "global_buffer_cache",
           "global_pool", "set_allocator", "set_global_pool_config", "set_memory_planner"]


@dataclass
class PoolConfig:
    """Options that say how a pool works.

    Of ``size_classes``, ``max_blocks_per_class`` freed blocks each wait for reuse. ``alignment`` is that of every block.
    ``thread_safe`` False: one thread at a time; ``track_stats`` False: get_stats gives zeros. The pool may hold
    ``memory_limit`` bytes, what waits included; it begins with ``initial_pool_size``, and takes more with ``auto_grow``.
    """

    size_classes: List[int] = field(default_factory=lambda: [64 << i for i in range(17)])  # 64 to 4 Mi
    max_blocks_per_class: int = 64  # freed blocks that wait for reuse
    alignment: int = 64  # of every block, a power of two up to 2 Mi
    thread_safe: bool = True
    track_stats: bool = True  # False: get_stats gives zeros
    memory_limit: int = 0  # that the pool may hold, what waits included; 0 = none
    initial_pool_size: int = 0  # taken when the pool is made
    auto_grow: bool = True  # False: nothing beyond initial_pool_size


@dataclass(frozen=True)
class PoolStats:
    """Figures of what a pool has done.

    ``total_allocated`` and ``total_freed`` are bytes as they were asked for, in ``num_allocations`` and ``num_frees``
    calls; ``pool_hits`` allocations found memory in the pool, ``pool_misses`` took new. ``current_usage`` and
    ``peak_usage`` are bytes in use.
    """

    total_allocated: int
    total_freed: int
    num_allocations: int
    num_frees: int
    pool_hits: int
    pool_misses: int
    current_usage: int
    peak_usage: int

    def hit_rate(self) -> float:
        """The share of allocations that needed no new memory, from 0 to 1; 0 before the first."""
        calls = self.pool_hits + self.pool_misses
        return self.pool_hits / calls if calls else 0.0


class _Bytes:
    """Memory that goes back when nothing looks at it any more, even where a block was freed before."""

    @classmethod
    def at(cls, address: int, size: int, give_back: Any, *args: Any) -> Any:
        # A class of its own can be referred to weakly; a plain array of ctypes cannot.
        kind: Any = type("Bytes", (ctypes.c_ubyte * size,), {})
        array = kind.from_address(address)
        weakref.finalize(array, give_back, *args).atexit = False
        return array


class MemoryBlock:
    """Memory of a pool or an arena, which is read and written by its ``view``.

    Memory goes back when the block was freed, or is gone, and no view of it is left.
    """

    def __init__(self, owner: Any, array: Any, size: int) -> None:
        self._owner, self._array, self.size = owner, array, size

    @property
    def address(self) -> int:
        """The address of its first byte. InvalidArgumentError once it is freed."""
        return ctypes.addressof(self._alive())

    def view(self) -> memoryview:
        """The bytes, to be read and written; numpy.frombuffer takes it."""
        return memoryview(self._alive()).cast("B")[:self.size]

    def _alive(self) -> Any:
        if self._array is None:
            raise InvalidArgumentError("using a memory block: it is free already")
        return self._array

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<MemoryBlock of {self.size} bytes{', free' if self._array is None else ''}>"


def _c_config(config: Optional[PoolConfig]) -> Any:
    config = PoolConfig() if config is None else config
    if not config.size_classes:
        raise InvalidArgumentError("making a memory pool: size_classes is empty")
    for name in ("max_blocks_per_class", "alignment"):
        if getattr(config, name) < 1:
            raise InvalidArgumentError(f"making a memory pool: {name} is {getattr(config, name)}; give 1 at least")
    for name in ("memory_limit", "initial_pool_size"):
        if getattr(config, name) < 0:
            raise InvalidArgumentError(f"making a memory pool: {name} is {getattr(config, name)}; 0 = none")
    if min(config.size_classes) < 1:
        raise InvalidArgumentError(f"making a memory pool: a size class of {min(config.size_classes)} bytes")
    classes = (ctypes.c_uint64 * len(config.size_classes))(*config.size_classes)
    flags = ((0 if config.thread_safe else abi.POOL_ONE_THREAD) | (0 if config.track_stats else abi.POOL_NO_STATS) |
             (0 if config.auto_grow else abi.POOL_NO_GROWTH))
    c = abi.PoolConfig(struct_size=ctypes.sizeof(abi.PoolConfig), flags=flags,
                       size_classes=ctypes.cast(classes, ctypes.c_void_p), size_class_count=len(classes),
                       max_blocks_per_class=config.max_blocks_per_class, alignment=config.alignment,
                       memory_limit=config.memory_limit, initial_pool_size=config.initial_pool_size)
    c.classes = classes
    return c


def _size(bytes: int) -> int:
    if bytes < 0:
        raise InvalidArgumentError(f"allocating {bytes} bytes: give 0 at least")
    return bytes


def _give_back(pool: Any, address: int) -> None:
    # In a finalizer: nobody could take an error, and there is none for a block of the pool.
    lib.status.release(lib.memory.deallocate(pool, address))


class MemoryPool:
    """Memory for many blocks of similar sizes.

    Freed blocks of the size classes wait for the next of their class; larger ones are joined with their free
    neighbours, and the smallest that fits is taken.
    """

    def __init__(self, config: Optional[PoolConfig] = None) -> None:
        """Makes a pool; InvalidArgumentError names the field of |config| that cannot be."""
        self._handle = lib.make(lib.memory.create_pool, lib.memory.release_pool, ctypes.byref(_c_config(config)), None)

    def allocate(self, bytes: int) -> MemoryBlock:
        """A block of so many bytes, whose contents are undefined. OutOfMemoryError says whether the limit is reached."""
        return self.allocate_aligned(bytes, 0)

    def allocate_aligned(self, bytes: int, alignment: int) -> MemoryBlock:
        """A block at an address that is a multiple of |alignment|, a power of two up to 2 Mi."""
        out = ctypes.c_void_p()
        lib.check(lib.memory.allocate(self._handle, _size(bytes), alignment, ctypes.byref(out)))
        array = _Bytes.at(out.value or 0, max(bytes, 1), _give_back, self._handle, out.value)
        return MemoryBlock(self, array, bytes)

    def deallocate(self, block: MemoryBlock) -> None:
        """Frees a block of this pool; what views of it are left keep its memory until they are gone.

        InvalidArgumentError for one that is free already, or of something else.
        """
        if block._owner is not self and getattr(block._owner, "_handle", None) is not self._handle:
            raise InvalidArgumentError("freeing a memory block: it is not of this pool")
        block._alive()
        block._array = None

    def reallocate(self, block: MemoryBlock, bytes: int) -> MemoryBlock:
        """A block of another size with the same contents, as far as there is room; |block| is free then."""
        made = self.allocate(bytes)
        kept = min(bytes, block.size)
        made.view()[:kept] = block.view()[:kept]
        self.deallocate(block)
        return made

    def reserve(self, bytes: int) -> None:
        """Has so many bytes ready in one piece."""
        lib.check(lib.memory.reserve(self._handle, _size(bytes)))

    def trim(self) -> int:
        """Gives back what no block lies in, and returns how much this was."""
        out = ctypes.c_uint64()
        lib.check(lib.memory.trim(self._handle, ctypes.byref(out)))
        return out.value

    def get_stats(self) -> PoolStats:
        """Figures of what the pool has done so far."""
        c = abi.PoolStats(struct_size=ctypes.sizeof(abi.PoolStats))
        lib.check(lib.memory.pool_stats(self._handle, ctypes.byref(c)))
        return PoolStats(**{name: int(getattr(c, name)) for name in PoolStats.__dataclass_fields__})

    def reset_stats(self) -> None:
        """Blocks in use go on to count in current_usage."""
        lib.check(lib.memory.reset_stats(self._handle))


def set_global_pool_config(config: Optional[PoolConfig]) -> None:
    """Has tensors of the library's, and the memory that runs work in, come from a new pool of the process from now on.

    OutOfMemoryError beyond its limit. Constants of models, and environments with an allocator of their own, do not
    take from it. None: what comes afterwards is of the C library again.
    """
    lib.check(lib.memory.set_global_pool(None if config is None else ctypes.byref(_c_config(config))))


def global_pool() -> MemoryPool:
    """The pool of ``set_global_pool_config``; before, one that only the caller takes from.

    Its statistics also count what runs take outside of it: a tensor is a miss there, memory that a run has from one
    before it is a hit.
    """
    pool = MemoryPool.__new__(MemoryPool)
    pool._handle = lib.make(lib.memory.global_pool, lib.memory.release_pool)
    return pool


class Arena:
    """Memory for a while: blocks one behind the other, all freed at once by ``reset``.

    What does not fit comes from overflow blocks, which go with the next reset. Views that are left see what comes next
    at their place.
    """

    def __init__(self, capacity: int = 1 << 20) -> None:
        self._block = (ctypes.c_ubyte * max(_size(capacity), 1))()
        self._capacity, self._used = capacity, 0
        self._overflow: List[Any] = []

    def allocate(self, bytes: int) -> MemoryBlock:
        """A block of so many bytes, aligned for any number."""
        return self.allocate_aligned(bytes, 16)

    def allocate_aligned(self, bytes: int, alignment: int) -> MemoryBlock:
        """A block at an address that is a multiple of |alignment|, a power of two."""
        if alignment < 1 or alignment & (alignment - 1):
            raise InvalidArgumentError(f"allocating from an arena: alignment {alignment} is no power of two")
        block, start = self._block, self._used
        padding = -(ctypes.addressof(block) + start) % alignment
        if padding + _size(bytes) <= self._capacity - start:
            self._used = start + padding + bytes
            start += padding
        else:
            block = (ctypes.c_ubyte * (max(bytes, 1) + alignment))()
            self._overflow.append(block)
            start = -ctypes.addressof(block) % alignment
        return MemoryBlock(self, (ctypes.c_ubyte * bytes).from_buffer(block, start), bytes)

    def reset(self) -> None:
        """Frees everything."""
        self._rewind(0, 0)

    def used(self) -> int:
        """Bytes of the arena itself, what alignment costs included."""
        return self._used

    def capacity(self) -> int:
        """Bytes that the arena has."""
        return self._capacity

    def remaining(self) -> int:
        """Bytes that are not used."""
        return self._capacity - self._used

    def overflow_blocks(self) -> int:
        """Blocks beside the arena: 0 where the capacity is enough."""
        return len(self._overflow)

    def _rewind(self, used: int, overflow: int) -> None:
        self._used = min(used, self._used)
        del self._overflow[overflow:]


class ScopedArena:
    """A scope frees at its end what an arena gave inside ``with ScopedArena(arena) as scope``; scopes may be nested."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._at = (arena._used, len(arena._overflow))

    def allocate(self, bytes: int) -> MemoryBlock:
        """A block of the arena's."""
        return self._arena.allocate(bytes)

    def allocate_aligned(self, bytes: int, alignment: int) -> MemoryBlock:
        """A block at an address that is a multiple of |alignment|, a power of two."""
        return self._arena.allocate_aligned(bytes, alignment)

    def __enter__(self) -> "ScopedArena":
        self._at = (self._arena._used, len(self._arena._overflow))
        return self

    def __exit__(self, *fault: Any) -> None:
        self._arena._rewind(*self._at)


@dataclass(frozen=True)
class BufferCacheStats:
    """Figures of what a cache of buffers has done, and has.

    ``cached_buffers`` wait, of ``cached_bytes``; ``hits`` calls of get_buffer found one, ``misses`` made one.
    """

    cached_buffers: int
    cached_bytes: int
    hits: int
    misses: int

    def hit_rate(self) -> float:
        """The share of calls that found a buffer, from 0 to 1; 0 before the first."""
        calls = self.hits + self.misses
        return self.hits / calls if calls else 0.0


class BufferCache:
    """Buffers kept for whoever needs one of about the same size next; those given back longest ago go first."""

    def __init__(self, max_buffers: int = 32, max_bytes: int = 256 << 20) -> None:
        """At most |max_buffers| wait, of |max_bytes| together."""
        self._max_buffers, self._max_bytes = max_buffers, max_bytes
        self._lock = threading.Lock()
        self._waiting: List[bytearray] = []  # the last given back at the end
        self._used: Dict[int, bytearray] = {}
        self.hits = 0
        self.misses = 0

    def get_buffer(self, bytes: int) -> memoryview:
        """A view of so many bytes: of the smallest buffer that waits of at most twice the size, else of a new one."""
        _size(bytes)
        with self._lock:
            fitting = [b for b in self._waiting if bytes <= len(b) <= 2 * bytes]
            if fitting:
                buffer = min(fitting, key=len)
                self._waiting = [b for b in self._waiting if b is not buffer]
                self.hits += 1
            else:
                buffer = bytearray(bytes)
                self.misses += 1
            self._used[id(buffer)] = buffer
        return memoryview(buffer)[:bytes]

    def return_buffer(self, view: memoryview) -> None:
        """Takes a buffer back, by the view that get_buffer gave. InvalidArgumentError for any other."""
        with self._lock:
            buffer = self._used.pop(id(view.obj), None)
            if buffer is None:
                raise InvalidArgumentError("giving a buffer back: the cache has given none like it, or has it already")
            self._waiting.append(buffer)
            while len(self._waiting) > self._max_buffers or self.cached_bytes() > self._max_bytes:
                self._waiting.pop(0)

    def acquire(self, bytes: int) -> memoryview:
        """get_buffer by another name."""
        return self.get_buffer(bytes)

    def release(self, view: memoryview) -> None:
        """return_buffer by another name."""
        self.return_buffer(view)

    def get_stats(self) -> BufferCacheStats:
        """All figures at one moment."""
        with self._lock:
            return BufferCacheStats(self.cached_buffers(), self.cached_bytes(), self.hits, self.misses)

    def cached_buffers(self) -> int:
        """The number of buffers that wait."""
        return len(self._waiting)

    def cached_bytes(self) -> int:
        """The bytes of those that wait."""
        return sum(map(len, self._waiting))

    def clear(self) -> None:
        """Frees what waits."""
        with self._lock:
            self._waiting.clear()


_global_buffer_cache = BufferCache()


def global_buffer_cache() -> BufferCache:
    """The cache of the process."""
    return _global_buffer_cache


class Allocator:
    """Memory of one's own in the place of the library's: derive from it, and give an object to ``set_allocator``.

    Methods are called from any thread, several at once; what they raise counts as "no memory".
    """

    def alloc(self, size: int) -> int:
        """The address of |size| bytes, never 0; 0 or None when there are none."""
        raise NotImplementedError

    def free(self, address: int) -> None:
        """Takes back what alloc gave."""
        raise NotImplementedError


def _allocate(user: int, bytes: int, alignment: int) -> Optional[int]:
    try:
        allocator, began = callbacks.held(user)
        address = allocator.alloc(bytes + alignment)
        if not address:
            return None
        aligned: int = -(-address // alignment) * alignment
        began[aligned] = address
        return aligned
    except BaseException:  # nothing may pass through the library
        return None


def _free(user: int, data: int, bytes: int) -> None:
    try:
        allocator, began = callbacks.held(user)
        allocator.free(began.pop(data))
    except BaseException:  # as above
        pass


_ALLOCATE = callbacks.permanent(abi.Allocator, "allocate", _allocate)
_FREE = callbacks.permanent(abi.Allocator, "free", _free)


def set_allocator(allocator: Optional[Allocator]) -> None:
    """Sets where bytes of models and runs that begin afterwards come from; None restores the library's own.

    It is kept until the last of them was given back.
    """
    if allocator is None:
        lib.check(lib.env.set_allocator(lib.default_env(), None))
        return
    c = abi.Allocator(struct_size=ctypes.sizeof(abi.Allocator), user=callbacks.hold((allocator, {})),
                      allocate=_ALLOCATE, free=_FREE,
                      release=ctypes.cast(callbacks.RELEASE, type(abi.Allocator().release)))
    lib.check(lib.env.set_allocator(lib.default_env(), ctypes.byref(c)))


@dataclass(frozen=True)
class MemoryItem:
    """A buffer to be placed: ``bytes`` at a multiple of ``alignment``, in use from ``first_step`` to ``last_step``.

    ``name`` is that of the value it holds, or else of the node that uses it first; it may be "". Steps of one number may
    run at once.
    """

    name: str
    bytes: int
    alignment: int
    first_step: int
    last_step: int

    def lives_with(self, other: "MemoryItem") -> bool:
        """Tells whether the two are in use at the same time: they may not overlap then."""
        return self.first_step <= other.last_step and other.first_step <= self.last_step


@dataclass(frozen=True)
class MemoryRequest:
    """The task of a planner: to place ``items`` of ``graph`` in a block of ``memory``, "host" or a provider's name."""

    graph: str
    memory: str
    items: List[MemoryItem]


@dataclass
class MemoryPlan:
    """The answer of a planner: ``offsets`` of the items in a block, in their order, and how many ``bytes`` that has."""

    offsets: List[int]
    bytes: int


class MemoryPlanner:
    """A planner of the memory that runs work in: derive from it, and give an object to ``set_memory_planner``."""

    def create_plan(self, request: MemoryRequest) -> MemoryPlan:
        """The plan for a request. What it raises is the cause of the run's error."""
        raise NotImplementedError("the planner has no create_plan")


def _create_plan(user: int, request: Any) -> int:
    c = ctypes.cast(request, ctypes.POINTER(abi.MemoryRequest)).contents

    def fail(code: int, message: str) -> int:
        return int(c.fail(request, code, lib.text(message)))

    return callbacks.guard(fail, _answer, user, c)


def _answer(user: int, c: Any) -> None:
    planner = callbacks.held(user)
    size = ctypes.cast(c.items, ctypes.POINTER(ctypes.c_uint32)).contents.value if c.count else 0
    items = []
    for i in range(c.count):
        item = ctypes.cast(c.items + i * size, ctypes.POINTER(abi.MemoryItem)).contents
        items.append(MemoryItem(lib.read(item.name), item.bytes, item.alignment, item.first, item.last))
    asked = MemoryRequest(lib.read(c.graph), lib.read(c.memory), items)
    plan = planner.create_plan(asked) if hasattr(planner, "create_plan") else planner(asked)
    if not isinstance(plan, MemoryPlan):
        raise InvalidArgumentError(f"a memory planner gives a MemoryPlan, got {type(plan).__name__}")
    if len(plan.offsets) != len(items):
        raise InvalidArgumentError(f"a memory planner gave {len(plan.offsets)} offsets for {len(items)} items")
    for number in (*plan.offsets, plan.bytes):
        if not 0 <= number < 1 << 64:
            raise InvalidArgumentError(f"a memory planner gave {number}, which is no place in memory")
    offsets = ctypes.cast(c.offsets, ctypes.POINTER(ctypes.c_uint64))
    for i, offset in enumerate(plan.offsets):
        offsets[i] = offset
    c.bytes = plan.bytes


_CREATE_PLAN = callbacks.permanent(abi.MemoryPlanner, "create_plan", _create_plan)


def set_memory_planner(planner: Union[MemoryPlanner, Callable[[MemoryRequest], MemoryPlan], None]) -> None:
    """Sets who places what runs work in, for plans that runs make from now on; None restores the library's own.

    A MemoryPlanner, or a function from a MemoryRequest to a MemoryPlan. It is called from any thread, several at once.
    An answer in which items overlap that are in use at the same time, or lie outside of the block, fails the run with
    InvalidArgumentError, which names them.
    """
    if planner is None:
        lib.check(lib.env.set_memory_planner(lib.default_env(), None))
        return
    if not callable(planner) and not hasattr(planner, "create_plan"):
        raise InvalidArgumentError(f"a memory planner is a MemoryPlanner or a function, got {type(planner).__name__}")
    c = abi.MemoryPlanner(struct_size=ctypes.sizeof(abi.MemoryPlanner), user=callbacks.hold(planner),
                          create_plan=_CREATE_PLAN,
                          release=ctypes.cast(callbacks.RELEASE, type(abi.MemoryPlanner().release)))
    lib.check(lib.env.set_memory_planner(lib.default_env(), ctypes.byref(c)))
