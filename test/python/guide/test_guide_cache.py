# SPDX-License-Identifier: Apache-2.0
"""The guide's Python snippets on caches and mapped files, as it writes them. The numbers count its Python snippets."""
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import DType, InferenceSession
from pyflame_rt._core import library


@pytest.fixture
def model(digits, tmp_path):
    return shutil.copy(digits, tmp_path / "model.onnx")


def test_39_binary_cache(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache_dir = tmp_path / "pyflame_cache"

    # Configure cache
    config = pyflame_rt.cache.CacheConfig()
    config.cache_dir = Path(cache_dir)
    config.max_size_bytes = 1024 * 1024 * 1024  # 1GB
    config.use_mmap = True

    # Create cache
    cache = pyflame_rt.cache.BinaryCache(config)
    assert all(cache.warmup([model]))

    # Check cache status
    print(f"Cache entries: {cache.entry_count()}")
    print(f"Total size: {cache.total_size()} bytes")

    # List entries
    for key in cache.list_entries():
        info = cache.get_info(key)
        print(f"  {key}: {info.size_bytes} bytes, valid={info.is_valid}")
        assert info.is_valid and info.size_bytes == os.path.getsize(info.cache_path)
    assert cache.entry_count() == 1 and cache.total_size() > 0

    # Clear cache
    cache.clear()
    assert cache.entry_count() == 0

    # Use global cache
    monkeypatch.setattr("pyflame_rt.cache._binary_cache._global", None)
    pyflame_rt.cache.set_global_cache_config(config)
    try:
        InferenceSession(model)
        assert pyflame_rt.cache.global_cache().entry_count() == 1
    finally:  # sessions of other tests use no cache that they do not name
        library.check(library.cache.set_default(library.default_env(), None))


def test_40_mapped_files(tmp_path):
    path = Path(tmp_path / "model.pfm")
    path.write_bytes(np.arange(1024, dtype=np.float32).tobytes())

    # Check if memory mapping is supported
    if pyflame_rt.cache.MMapLoader.can_mmap(path):
        print("Memory mapping supported")

    # Get page alignment
    alignment = pyflame_rt.cache.MMapLoader.page_alignment()
    assert alignment % 4096 == 0

    # Open memory-mapped file
    file = pyflame_rt.cache.MappedFile.open(path)
    assert file.is_valid()
    if file.is_valid():
        print(f"File size: {file.size()} bytes")

        # Provide access hints
        assert file.advise(pyflame_rt.cache.MMapAdvice.Sequential)
    lazy = pyflame_rt.cache.LazyTensor(file, 400, [10, 3], DType.Float32)
    assert lazy.shape == (10, 3) and not lazy.is_materialized()
    np.testing.assert_array_equal(lazy.materialize().numpy(), np.arange(100, 130, dtype=np.float32).reshape(10, 3))
    with pytest.raises(pyflame_rt.InputError, match="more than the file's 4096"):
        pyflame_rt.cache.LazyTensor(file, 4000, [100], DType.Float32)
    assert not pyflame_rt.cache.MMapLoader.can_mmap(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    assert not pyflame_rt.cache.MappedFile.open(tmp_path / "pipe").is_valid()
