# SPDX-License-Identifier: Apache-2.0
"""Streams: runs of one session that are asked for now and answered later.

>>> async_session = pyflame_rt.streaming.AsyncSession(session, AsyncOptions(num_streams=2))
>>> async_session.start()
>>> result = async_session.run_async({"input": array}).result()
>>> result.success, result.get_outputs()
>>> async_session.stop()
"""
from typing import TYPE_CHECKING, Any

from .._core.absent import refuse
from ._async_session import AsyncOptions, AsyncResult, AsyncSession, AsyncStats

__all__ = ["AsyncOptions", "AsyncResult", "AsyncSession", "AsyncStats"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "StreamingInference":
            refuse(__name__, name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
