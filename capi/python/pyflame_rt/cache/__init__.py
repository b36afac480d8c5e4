# SPDX-License-Identifier: Apache-2.0
"""Compiled models kept in a folder, and files as memory.

>>> from pyflame_rt import InferenceSession, SessionOptions, cache
>>> kept = cache.BinaryCache(cache.CacheConfig(cache_dir="/var/cache/models"))
>>> kept.warmup(["a.onnx", "b.onnx"])
>>> session = InferenceSession("a.onnx", SessionOptions(cache_dir="/var/cache/models"))

A session with ``cache_dir`` (or the environment variable PFRT_CACHE_DIR) starts from what another has made of the same
model, without reading, optimising and packing it again, and processes share what is packed.
"""
from ._binary_cache import (BinaryCache, CacheConfig, CacheEntryInfo, CacheKey, CacheStats, WarmupResult, global_cache,
                            set_global_cache_config)
from ._compile import CompileOptions, compile_model
from ._mapped import LazyTensor, MappedFile, MMapAdvice, MMapLoader

__all__ = ["BinaryCache", "CacheConfig", "CacheEntryInfo", "CacheKey", "CacheStats", "CompileOptions", "LazyTensor",
           "MMapAdvice", "MMapLoader", "MappedFile", "WarmupResult", "compile_model", "global_cache",
           "set_global_cache_config"]
