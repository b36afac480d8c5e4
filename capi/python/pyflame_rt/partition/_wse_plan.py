# SPDX-License-Identifier: Apache-2.0
"""The wafer-scale chips that a graph is divided over, and the plan that results."""
from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from .._core.errors import InvalidArgumentError
from .._session.ask import Answer


@dataclass
class WSEChipConfig:
    """Wafer-scale chips in a grid, and the links between neighbours. A name that there is not is refused.

    Attributes
    ----------
    num_chips: how many chips there are, which ``partition_for_multi_chip`` holds against the topology; 1 = not said.
    topology: columns and rows of the grid.
    inter_chip_bandwidth: of a link, in bytes a second; 0 = the default of the machine.
    inter_chip_latency: of a link, in nanoseconds; 0 = none is known, and taken as 0.
    chip_memory_bytes: bytes of a chip that may be used; 0 = all that the machine has.
    """

    num_chips: int = 1
    topology: Sequence[int] = field(default_factory=lambda: [1, 1])
    inter_chip_bandwidth: float = 0.0
    inter_chip_latency: float = 0.0
    chip_memory_bytes: int = 0

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __setattr__(self, name: str, value: Any) -> None:
            known = [f.name for f in fields(self)]
            if name not in known:
                raise AttributeError(f"WSEChipConfig has no option '{name}'; it has {', '.join(known)}")
            super().__setattr__(name, value)

    def total_chips(self) -> int:
        """Chips in the grid: columns times rows."""
        columns, rows = self._grid()
        return columns * rows

    def _grid(self) -> Tuple[int, int]:
        given = self.topology
        sizes = [] if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") else list(given)
        if len(sizes) != 2 or not all(_is_whole(size) and size > 0 for size in sizes):
            raise InvalidArgumentError(f"topology of wafer-scale chips is {given!r}; give two positive whole numbers, "
                                       "columns and rows, as [2, 2]")
        return int(sizes[0]), int(sizes[1])

    def _need_num_chips(self) -> None:
        """Fails when num_chips says another number of chips than the topology."""
        if not _is_whole(self.num_chips) or self.num_chips < 1:
            raise InvalidArgumentError(f"num_chips of wafer-scale chips is {self.num_chips!r}; give a whole number of 1 "
                                       "or more")
        columns, rows = self._grid()
        if self.num_chips > 1 and self.num_chips != columns * rows:
            raise InvalidArgumentError(f"num_chips is {self.num_chips}, but topology [{columns}, {rows}] has "
                                       f"{columns * rows} chips; make them equal, or leave num_chips at 1")

    def _options(self) -> Dict[str, str]:
        """The provider's options, by their keys without "provider.wse."."""
        columns, rows = self._grid()
        return {"chips": f"{columns}x{rows}", "timing_only": "true",
                "inter_chip_bandwidth": repr(float(self._number("inter_chip_bandwidth", "bytes a second"))),
                "inter_chip_latency": repr(float(self._number("inter_chip_latency", "nanoseconds"))),
                "chip_memory_bytes": str(int(self._number("chip_memory_bytes", "bytes")))}

    def _number(self, name: str, unit: str) -> Any:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
            raise InvalidArgumentError(f"{name} of wafer-scale chips is {value!r}; give {unit}, a number of 0 or more "
                                       "(0 = the default)")
        return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


@dataclass
class WSEPartition:
    """The part of a graph that lies on one chip.

    Attributes
    ----------
    chip: its number, row by row from 0.
    nodes: names of the nodes, in the order in which they run.
    memory_bytes: bytes of its memory that they take.
    cycles: simulated cycles of all of them, one after another.
    compute_time_us: the same in microseconds.
    """

    chip: int
    nodes: List[str] = field(default_factory=list)
    memory_bytes: int = 0
    cycles: int = 0
    compute_time_us: float = 0.0


@dataclass
class WSEPlan:
    """The plan of where the nodes of a graph lie on wafer-scale chips, and what a run takes there, as simulated.

    Nodes without a name of their own, or with one that another has, go by the name of their first output.

    Attributes
    ----------
    machine: the device, "wse2".
    partitions: one for each chip that is used, by its number.
    node_to_partition: the chip's number, by the name of the node.
    unplaced: names of the nodes that the wafer does not take: the CPU runs them, and their time is not in the plan.
    total_comm_bytes: bytes that a run sends between chips.
    load_imbalance: the cycles of the busiest chip over the mean of those used, less 1.
    total_latency_us: from the first stage to the last, in microseconds.
    pipeline_interval_us: between two results of a stream of runs, in microseconds.
    streaming: the weights do not fit on the chips at once: one chip works, and they come from the host in each run.
    simulated: True: no such device was used.
    text: the plan as a table.
    """

    machine: str = ""
    partitions: List[WSEPartition] = field(default_factory=list)
    node_to_partition: Dict[str, int] = field(default_factory=dict)
    unplaced: List[str] = field(default_factory=list)
    total_comm_bytes: int = 0
    load_imbalance: float = 0.0
    total_latency_us: float = 0.0
    pipeline_interval_us: float = 0.0
    streaming: bool = False
    simulated: bool = True
    text: str = field(default="", repr=False)
    _svg: str = field(default="", repr=False)

    def svg(self) -> str:
        """A picture of the chips, with each stage in its place; "" when nothing lies on them."""
        return self._svg

    def __str__(self) -> str:
        return self.text


def plan_from(answer: Answer, machine: str, node_names: Sequence[str], svg: str) -> WSEPlan:
    """The plan that the provider answered, of a graph with these nodes."""
    tensors = answer.tensors
    names, chips, stages = (tensors[key].tolist() for key in ("name", "chip", "stage"))
    clock_hz = float(tensors["clock_hz"][0])
    streaming = bool(tensors["streaming"][0])
    by_chip: Dict[int, WSEPartition] = {}
    for name, chip, cycles in zip(names, chips, tensors["cycles"].tolist()):
        one = by_chip.setdefault(chip, WSEPartition(chip))
        one.nodes.append(name)
        one.cycles += cycles
    # Stages lie side by side, or one after another in the same place.
    for stage, chip in sorted(set(zip(stages, chips))):
        taken, one = int(tensors["stage_bytes"][stage]), by_chip[chip]
        one.memory_bytes = max(one.memory_bytes, taken) if streaming else one.memory_bytes + taken
    partitions = [by_chip[chip] for chip in sorted(by_chip)]
    for one in partitions:
        one.compute_time_us = 1e6 * one.cycles / clock_hz
    placed = dict(zip(names, chips))
    loads = [one.cycles for one in partitions]
    return WSEPlan(machine, partitions, placed, [name for name in node_names if name not in placed],
                   total_comm_bytes=int(tensors["comm_bytes"][0]),
                   load_imbalance=max(loads) * len(loads) / sum(loads) - 1 if sum(loads) else 0.0,
                   total_latency_us=1e6 * float(tensors["run_cycles"][0]) / clock_hz,
                   pipeline_interval_us=1e6 * float(tensors["result_cycles"][0]) / clock_hz,
                   streaming=streaming, text=answer.text, _svg=svg)
