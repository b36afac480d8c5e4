# SPDX-License-Identifier: Apache-2.0
"""The guide's Python of memory pools, as printed. Numbers are those of guide_snippets.md."""

import pyflame_rt
from guide_model import images, model_files


def test_38_python_api(capsys):
    import pyflame_rt

    # Configure pool
    config = pyflame_rt.memory.PoolConfig()
    config.memory_limit = 4 * 1024 * 1024 * 1024  # 4GB
    config.alignment = 64

    # Create pool
    pool = pyflame_rt.memory.MemoryPool(config)

    # Check statistics
    stats = pool.get_stats()
    print(f"Hit rate: {stats.hit_rate():.2%}")
    print(f"Peak usage: {stats.peak_usage} bytes")

    # Use global pool
    pyflame_rt.memory.set_global_pool_config(config)
    global_pool = pyflame_rt.memory.global_pool()

    assert capsys.readouterr().out == "Hit rate: 0.00%\nPeak usage: 0 bytes\n"
    try:
        pyflame_rt.InferenceSession("model.pfm").run(None, {"input": images()})
        assert global_pool.get_stats().peak_usage > 0
    finally:
        pyflame_rt.memory.set_global_pool_config(None)


