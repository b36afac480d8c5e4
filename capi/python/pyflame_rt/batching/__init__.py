# SPDX-License-Identifier: Apache-2.0
"""Batching: requests of many threads share runs of one session.

>>> batcher = pyflame_rt.batching.DynamicBatcher(session, BatchConfig(max_latency_us=500))
>>> batcher.start()
>>> future = batcher.submit({"input": row})
>>> future.result()["output"]
>>> batcher.stop()

Each request brings rows of a batch, mostly one, and gets those of the outputs that are its own. Requests share a run
where the model is proved to compute each row by itself; ``BatcherStats.unbatched_reason`` says why one is not.
"""
from ._batcher import BatchConfig, BatcherStats, DynamicBatcher, PriorityBatcher

__all__ = ["BatchConfig", "BatcherStats", "DynamicBatcher", "PriorityBatcher"]
