# SPDX-License-Identifier: Apache-2.0
"""How soon a process has a session and its first result, beside the peer's: tables of run.sh --cold and --warm.

Each figure is of a process of its own (bench/start.cc), from before it is started; ours and the peer's take turns.
--warm: ours with PFRT_CACHE_DIR, where another process had filled the cache some seconds before. Also peak memory of
models of at least 100 MB, and the proportional memory (PSS) of four processes beside one's.
"""
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, mapping, numpy_helper

from cases import fed_inputs

LARGE_BYTES = 100e6
SETTLED_S = 2.5  # after this age the cache takes files for settled
SHARED = "vgg19"
ASKED = {"session": 10.0, "run": 5.5, "memory": 0.55, "pss": 1.3}


class Starter:
    def __init__(self, program, peer, scratch, cache=None):
        self.program, self.peer, self.scratch = program, peer, scratch
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.environment = {k: v for k, v in os.environ.items() if k != "PFRT_CACHE_DIR"}
        if cache:
            self.environment["PFRT_CACHE_DIR"] = str(cache)

    def words(self, case):
        """What the program feeds, as files of elements; None where that cannot be told from the model alone."""
        words = []
        for index, value in enumerate(fed_inputs(onnx.load(str(case.path), load_external_data=False).graph)):
            kind = value.type.tensor_type
            if kind.elem_type in (TensorProto.UNDEFINED, TensorProto.STRING, TensorProto.BFLOAT16):
                return None
            dtype = mapping.TENSOR_TYPE_TO_NP_TYPE[kind.elem_type]
            path = case.files.get(value.name)
            if path is None:
                shape = [d.dim_value or int(case.dims.get(d.dim_param, 1)) for d in kind.shape.dim]
                array = np.random.default_rng(index).standard_normal(shape) if dtype.kind == "f" else np.zeros(shape)
            else:
                array = np.load(path) if path.suffix == ".npy" else numpy_helper.to_array(onnx.load_tensor(str(path)))
            file = self.scratch / f"{case.name.replace('*', '_')}.{index}.bin"
            array.astype(dtype).tofile(file)
            words += [value.name, str(kind.elem_type), "x".join(map(str, array.shape)), str(file)]
        return words

    def launch(self, side, case, words, hold=False):
        """Starts a process; with |hold| it is still there."""
        command = [self.program, "ours" if side == "ours" else self.peer, str(case.path), str(time.monotonic() * 1e3),
                   *(["--hold"] if hold else []), *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment)

    def once(self, side, case, words):
        out, fault = self.launch(side, case, words).communicate()
        if not out:
            raise RuntimeError(" ".join(fault.split()) or "the process said nothing")
        session, run, peak = map(float, out.split())
        return {"session": session, "run": run, "memory": peak * 1024 / 1e6}

    def pss(self, case, words, count):
        """Proportional memory of |count| processes that have run the model, in MB."""
        held = [self.launch("ours", case, words, hold=True) for _ in range(count)]
        try:
            for process in held:
                process.stdout.readline()
            total = 0
            for process in held:
                rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                total += int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1])
            return total / 1e3
        finally:
            for process in held:
                process.stdin.close()
                process.wait()


def row(starter, case, words, rounds):
    if words is None:
        return {"model": case.name, "refused": "its inputs are not made here"}
    try:
        seen = {side: [] for side in ("ours", "peer")}
        for _ in range(rounds + 1):
            for side, all_of in seen.items():
                all_of.append(starter.once(side, case, words))
    except RuntimeError as fault:
        return {"model": case.name, "refused": str(fault)}
    medians = {side: {key: statistics.median(one[key] for one in all_of[1:]) for key in all_of[0]}
               for side, all_of in seen.items()}
    out = {"model": case.name, "ratio": medians["peer"]["session"] / medians["ours"]["session"],
           "run_ratio": medians["peer"]["run"] / medians["ours"]["run"],
           "memory_ratio": medians["ours"]["memory"] / medians["peer"]["memory"]}
    for key in ("session", "run", "memory"):
        out.update({f"{side}_{key}": medians[side][key] for side in medians})
    return out


def tables(program, report, cases, args, warm, geometric_mean):
    cache = Path(args.models) / "start_cache"
    starter = Starter(program, args.peer, Path(args.models) / "start_inputs", cache if warm else None)
    words = {case.name: starter.words(case) for case in cases}
    if warm:
        shutil.rmtree(cache, ignore_errors=True)
        for _ in range(2):
            for case in cases:
                if words[case.name] is not None:
                    starter.once("ours", case, words[case.name])
            time.sleep(SETTLED_S)
    columns = {"ours_session": ("session ms", ".4g"), "peer_session": ("peer ms", ".4g"), "ratio": ("ratio", ".2f"),
               "ours_run": ("first run", ".4g"), "peer_run": ("peer ms", ".4g"), "run_ratio": ("ratio", ".2f"),
               "memory_ratio": ("memory", ".2f")}
    title = "from a warm cache" if warm else "without a cache"
    rows = report.table(f"process to session and to first run, {title}, medians of {args.rounds} processes",
                        {"set": "start", "warm": warm}, columns,
                        (row(starter, case, words[case.name], args.rounds) for case in cases),
                        (ASKED["session"] if warm else None, None))
    ran = [r for r in rows if "ratio" in r]
    large = [r for r, c in zip(rows, cases) if "ratio" in r and c.path.stat().st_size >= LARGE_BYTES]
    report.say(f"first run: geometric mean {geometric_mean([r['run_ratio'] for r in ran]):.2f}"
               + (f" ({ASKED['run']} asked)" if warm else ""))
    if large:
        report.say(f"peak memory of models above 100 MB: at most {max(r['memory_ratio'] for r in large):.2f} of the "
                   f"peer's, geometric mean {geometric_mean([r['memory_ratio'] for r in large]):.2f} "
                   f"({ASKED['memory']} asked)")
    shared = next((c for c in cases if c.name == SHARED), None)
    if warm and shared and words[SHARED] is not None:
        one, four = starter.pss(shared, words[SHARED], 1), starter.pss(shared, words[SHARED], 4)
        report.say(f"{SHARED}: one process has {one:.0f} MB (PSS), four have {four:.0f} MB, {four / one:.2f} times one's "
                   f"({ASKED['pss']} asked)")
