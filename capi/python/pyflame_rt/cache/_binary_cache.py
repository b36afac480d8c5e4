# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled models: a folder of files, shared by threads and processes, that can all be made again."""
from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Callable, Iterable, List, Optional, Union

from .._core import abi, library as lib
from .._core.callbacks import permanent_function
from .._core.errors import PyFlameRTError
from .._graph.graph import Graph
from .._session.session import InferenceSession
from .._session.session_options import SessionOptions

FilePath = Union[str, "os.PathLike[str]"]


@dataclass
class CacheConfig:
    """Options that say how a cache is kept.

    cache_dir: its folder, which is made with the first entry.
    max_size_bytes, max_entries: of all entries, of which those unused for longest go; 0 = no limit.
    ttl: after which an entry is not used any more, as a timedelta or seconds; 0 = never.
    use_mmap: entries are mapped, so that processes share them; otherwise each reads a copy.
    """

    cache_dir: FilePath = ".pyflame_cache"
    max_size_bytes: int = 1 << 30
    max_entries: int = 100
    ttl: Union[timedelta, float] = timedelta(hours=24)
    use_mmap: bool = True

    def _native(self) -> Any:
        ttl = self.ttl.total_seconds() if isinstance(self.ttl, timedelta) else self.ttl
        native = abi.CacheConfig(struct_size=ctypes.sizeof(abi.CacheConfig), copy=0 if self.use_mmap else 1,
                                 max_bytes=self.max_size_bytes, max_entries=self.max_entries, ttl_s=int(ttl))
        folder = lib.text(os.fspath(self.cache_dir))
        native.folder = folder
        native.kept = folder
        return native


@dataclass
class CacheEntryInfo:
    """An entry of a cache.

    key: as ``CacheKey`` gives it, or ``put`` was given.
    kind: "compiled" is what a session has made of a model, "graph" what ``put`` was given, "tuned" what was measured
        on a machine.
    model_path: of the model; of a graph, its name; of measurements, how many of which provider and machine.
    cache_path, size_bytes: of its file.
    created_at, last_accessed: to a second.
    is_valid: whole and not too old.
    """

    key: str
    kind: str
    model_path: str
    cache_path: Path
    size_bytes: int
    created_at: datetime
    last_accessed: datetime
    is_valid: bool


@dataclass
class CacheStats:
    """Figures of what a cache has done for this process.

    hits, misses: entries that were found and not found.
    stores, evictions: that were added, and taken by the limits.
    invalid: that were not usable.
    """

    hits: int = 0
    misses: int = 0
    stores: int = 0
    evictions: int = 0
    invalid: int = 0

    def hit_rate(self) -> float:
        """The share of what was looked for that was found; 0 when nothing was looked for."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


@dataclass
class WarmupResult:
    """The outcome of ``warmup`` for the model at ``path``: true where it is in the cache, else ``error`` says why
    not."""

    path: str
    error: str = ""

    def __bool__(self) -> bool:
        return not self.error


# Functions of the library call these with the list that the number stands for.
_lists: "dict[int, List[Any]]" = {}


def _take_key(user: int, key: Any) -> None:
    _lists[user].append(lib.read(key))


def _take_entry(user: int, entry: int) -> None:
    e = abi.CacheEntry.from_address(entry)
    _lists[user].append(CacheEntryInfo(
        lib.read(e.key), lib.read(e.kind), lib.read(e.of), Path(lib.read(e.path)), e.bytes,
        datetime.fromtimestamp(e.created_ns / 1e9), datetime.fromtimestamp(e.used_ns / 1e9), bool(e.valid)))


_TAKE_KEY = permanent_function(ctypes.CFUNCTYPE(None, ctypes.c_void_p, abi.String), _take_key)
_TAKE_ENTRY = permanent_function(ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p), _take_entry)


def _gather(call: Callable[[int], Any]) -> List[Any]:
    """The items that |call|, given a number for the list, has put into it."""
    out: List[Any] = []
    _lists[id(out)] = out
    try:
        lib.check(call(id(out)))
    finally:
        del _lists[id(out)]
    return out


class CacheKey:
    """Names for what sessions make of models."""

    @staticmethod
    def compute(path: FilePath, options: Optional[SessionOptions] = None) -> str:
        """The key of the entry of a session of the model at ``path`` with ``options``: another one for other bytes,
        options, providers or processors. UnsupportedError for sessions that are not kept."""
        native = (options or SessionOptions())._native()
        keys = _gather(lambda user: lib.cache.key(lib.default_env().address, lib.text(os.fspath(path)), native.address,
                                                  ctypes.cast(_TAKE_KEY, ctypes.c_void_p), user))
        return str(keys[0])


class BinaryCache:
    """A folder of entries. Thread-safe, also between processes."""

    def __init__(self, config: Optional[CacheConfig] = None) -> None:
        self.config = config or CacheConfig()
        self._enabled = True
        native = self.config._native()
        self._cache = lib.make(lib.cache.open, lib.cache.release, lib.default_env().address, ctypes.byref(native))

    @property
    def is_enabled(self) -> bool:
        """A cache that is not enabled has nothing and keeps nothing; sessions do not ask."""
        return self._enabled

    def set_enabled(self, enabled: bool) -> None:
        """At first it is."""
        self._enabled = enabled

    def has(self, key: str) -> bool:
        """Tells whether there is a usable entry of that key."""
        there = ctypes.c_uint32()
        if self._enabled:
            lib.check(lib.cache.has(self._cache.address, lib.text(key), ctypes.byref(there)))
        return bool(there.value)

    def get(self, key: str) -> Optional[Graph]:
        """The graph that ``put`` was given, or that of the model that a session has compiled; None where there is
        none."""
        out = ctypes.c_void_p()
        if self._enabled:
            lib.check(lib.cache.get(self._cache.address, lib.text(key), ctypes.byref(out)))
        return Graph._of(lib.Handle(out.value, lib.graph.release)) if out.value else None

    def put(self, key: str, graph: Graph) -> None:
        """Keeps a copy with its constants."""
        if self._enabled:
            lib.check(lib.cache.put(self._cache.address, lib.text(key), graph._at()))

    def get_or_compile(self, path: FilePath, options: Optional[SessionOptions], compile: Callable[[], Graph]) -> Graph:
        """The graph of the key of ``path`` and ``options`` or, where there is none, what ``compile()`` gives, which is
        kept."""
        key = CacheKey.compute(path, options)
        there = self.get(key)
        if there is None:
            there = compile()
            self.put(key, there)
        return there

    def warmup(self, paths: Iterable[FilePath], options: Optional[SessionOptions] = None) -> List[WarmupResult]:
        """Makes a session of each model, so that others start from the cache; one that fails does not keep the rest
        from it."""

        out: List[WarmupResult] = []
        if not self._enabled:
            return out
        given = options or SessionOptions()
        own = SessionOptions()
        own.__dict__.update(given.__dict__)
        own.cache_dir = os.fspath(self.config.cache_dir)
        for path in paths:
            result = WarmupResult(os.fspath(path))
            out.append(result)
            try:
                InferenceSession(path, own)
                if not self.has(CacheKey.compute(path, own)):
                    result.error = "the session was made, but its entry could not be kept; the log says why"
            except (PyFlameRTError, OSError) as fault:
                result.error = str(fault)
        return out

    def remove(self, key: str) -> bool:
        """Removes an entry, and tells whether there was one."""
        removed = ctypes.c_uint32()
        lib.check(lib.cache.remove(self._cache.address, lib.text(key), ctypes.byref(removed)))
        return bool(removed.value)

    def _counted(self, function: Any) -> int:
        count = ctypes.c_uint64()
        lib.check(function(self._cache.address, ctypes.byref(count)))
        return count.value

    def clear(self) -> int:
        """Removes all entries; how many there were."""
        return self._counted(lib.cache.clear)

    def evict_if_needed(self) -> int:
        """Removes what is too old or beyond the limits, as adding an entry does; how many that were."""
        return self._counted(lib.cache.evict)

    def entries(self, check: bool = False) -> List[CacheEntryInfo]:
        """All entries, those used last first. ``check``: their files are read as a whole for ``is_valid``; otherwise
        their heads are."""
        return _gather(lambda user: lib.cache.list(self._cache.address, int(check),
                                                   ctypes.cast(_TAKE_ENTRY, ctypes.c_void_p), user))

    def list_entries(self) -> List[str]:
        """Their keys."""
        return [entry.key for entry in self.entries()]

    def get_info(self, key: str) -> Optional[CacheEntryInfo]:
        """The entry of that key, read as a whole; None where there is none."""
        return next((entry for entry in self.entries(check=True) if entry.key == key), None)

    def entry_count(self) -> int:
        """The number of entries of both kinds."""
        return len(self.entries())

    def total_size(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size_bytes for entry in self.entries())

    def validate(self) -> bool:
        """Tells whether all entries are whole."""
        return all(entry.is_valid for entry in self.entries(check=True))

    def get_stats(self) -> CacheStats:
        """Figures that count the process's sessions that use the folder too."""
        native = abi.CacheStatistics(struct_size=ctypes.sizeof(abi.CacheStatistics))
        lib.check(lib.cache.statistics(self._cache.address, ctypes.byref(native)))
        return CacheStats(native.hits, native.misses, native.stores, native.evictions, native.invalid)


_global: Optional[BinaryCache] = None
_global_lock = threading.Lock()


def set_global_cache_config(config: CacheConfig) -> None:
    """Has all sessions that do not say ``cache_dir`` use this cache from now on; it is ``global_cache()``."""
    global _global
    made, native = BinaryCache(config), config._native()
    with _global_lock:
        lib.check(lib.cache.set_default(lib.default_env().address, ctypes.byref(native)))
        _global = made


def global_cache() -> BinaryCache:
    """The cache of ``set_global_cache_config``; with the defaults where that was not called."""
    if _global is None:
        set_global_cache_config(CacheConfig())
    assert _global is not None
    return _global
