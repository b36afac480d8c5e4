# SPDX-License-Identifier: Apache-2.0
"""Graphs divided over chips.

>>> from pyflame_rt import partition
>>> from pyflame_rt.partition import wse
>>> config = partition.WSEChipConfig(topology=[2, 2])
>>> plan = wse.partition_for_wse(graph, config)
>>> print(plan.load_imbalance, plan.node_to_partition)

``wse`` is for wafer-scale chips, which are simulated: nothing of the sort has to be there.
"""
from . import wse
from ._wse_plan import WSEChipConfig, WSEPartition, WSEPlan

__all__ = ["WSEChipConfig", "WSEPartition", "WSEPlan", "wse"]
