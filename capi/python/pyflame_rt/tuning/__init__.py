# SPDX-License-Identifier: Apache-2.0
"""Tuning of one operator at one shape: how its kernel is to divide the work, found by measurement.

>>> from pyflame_rt import tuning
>>> tuner = tuning.AutoTuner(cache_dir="/var/cache/models")
>>> config = tuner.tune_kernel(tuning.OpKernelInfo("Conv"), [(1, 64, 56, 56), (64, 64, 3, 3)])
>>> config.int_params["band"], config.performance_score

What is found goes to the cache folder, and sessions with ``tune=True`` or ``tune="cached"`` that have the same step take
it from there without measuring.
"""
from ._auto_tuner import AutoTuner, KernelConfig, OpKernelInfo

__all__ = ["AutoTuner", "KernelConfig", "OpKernelInfo"]
