#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of our latency beside ONNX Runtime's: run.sh, beside this file, builds what is needed and calls it.

Sets are those of cases.py, and integer_tables.py's; `tiny` is what of B takes the peer under 0.2 ms on one thread. Each
row is a `pfrt bench`, which takes the sides in turns, 100 ms each, and gives medians; a ratio is the peer's time over
ours. What a side cannot run is listed with its reason and is not part of the mean.

--start is session creation and first run, each in a process of its own (the median of --rounds); --memory is VmHWM of
such a process, over models of at least 100 MB. --cold and --warm (start.py) count from before the process is started,
the second with a cache of compiled models.

--record adds the latencies to bench/results (results.py), which picture.py draws.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import onnx

import integer_tables
import start
from cases import HERE, axes_cases, cases, exported
from exports.networks import FORMS, NETWORKS
from peer import Peer
from results import Recorder, machine_isa, used_isa

TINY_MS = 0.2
LARGE_BYTES = 100e6
SETS = ("a", "b", "tiny", "decode", "half", "axes", "integer", "c")
ASKED_FOR_ALONE = ("c",)  # of no other word of --set than their own: PyTorch takes 6 GB
THREADS = {"a": (1, 2), "b": (1, 2), "tiny": (1,), "decode": (1,), "half": (1,), "c": (1,)}  # axes: 1; integer: by line
# Requirements by set and precision: the geometric mean of the ratios, and the least ratio of a model.
ASKED = {("a", "fp32"): (1.45, 1.12), ("a", "fast"): (1.9, None), ("a", "bf16"): (4.5, None), ("b", "fp32"): (1.7, 1.05),
         ("tiny", "fp32"): (2.0, None), ("decode", "fp32"): (1.0, None), ("decode", "bf16"): (1.8, None)}
ASKED_START, ASKED_MEMORY = 5.0, 0.7
ASKED_AXES = 1.03
# How far set C's outputs may be from the peer's, as RMS of the output that agrees least.
FORM_TITLES = {"full": "batch 1", "pair": "batch 2", "small": "64 pixels", "dynamic": "symbolic axes",
               "half": "float16"}
TOLERANCE, LOOSER = 2e-4, {"fast": 1e-3, "bf16": 0.1, "auto": 1e-2, "half": 2e-2}


class PrecisionRefused(Exception):
    pass


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def one_line(text):
    return " ".join(text.split()) or "no reason given"


class Bench:
    def __init__(self, tool, peer, seconds):
        self.tool, self.peer, self.seconds = tool, peer, seconds

    def run(self, case, threads, precision, seconds=None, alone=False):
        """The tool's answer, or {"refused": reason}. |alone|: without the peer."""
        peer = [] if alone else ["--peer", self.peer]
        command = [self.tool, "bench", str(case.path), "--json", *peer, "--threads", str(threads),
                   "--precision", precision, "--seconds", str(seconds or self.seconds), *case.options()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        reason = one_line(done.stderr.replace("pfrt: ", "", 1)) if done.returncode > 0 else \
            f"the tool died of signal {-done.returncode}"
        if reason.startswith("--precision"):
            raise PrecisionRefused(reason)
        return {"refused": reason}

    def pair(self, case, precision, other, other_precision):
        """Two sides of ours (pair.py) on one thread: its answer, or {"refused": reason}."""
        dims = [word for key, size in case.dims.items() for word in ("--dim", f"{key}={size}")]
        command = [sys.executable, str(HERE / "pair.py"), str(case.path), precision, str(other.path), other_precision, *dims,
                   "--seconds", str(self.seconds)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return {"refused": one_line(done.stderr) if done.returncode > 0 else f"died of signal {-done.returncode}"}
        return json.loads(done.stdout)


def latency_row(case, answer):
    if "refused" in answer:
        return {"model": case.name, "refused": answer["refused"]}
    difference, notes = answer["rms_relative_difference"], list(answer["notes"])
    if difference is None:  # JSON writes infinity so
        notes.append("an output is zero everywhere on the peer's side and is not on ours: no relative difference")
    return {"model": case.name, "ours_ms": answer["ours"]["median_s"] * 1e3,
            "peer_ms": answer["peer"]["median_s"] * 1e3, "ratio": answer["ratio"], "rms_difference": difference,
            "notes": notes}


def summary(rows, asked=(None, None), better=max):
    """Geometric mean and the worst ratio of the rows that ran, and what was asked of them."""
    ran = [r for r in rows if "ratio" in r]
    out = {"models": len(rows), "ran": len(ran)}
    if judged := [r for r in rows if r.get("asked") is not None]:
        out["missed"] = [r["model"] for r in judged if not r.get("met")]
        out["judged"] = len(judged)
    if ran:
        worst = (min if better is max else max)(ran, key=lambda r: r["ratio"])
        out.update(mean=geometric_mean([r["ratio"] for r in ran]), worst=worst["ratio"], worst_model=worst["model"])
        for key, bound in zip(("mean", "worst"), asked):
            if bound is not None:
                out[f"asked_{key}"] = bound
                out[f"{key}_met"] = better(out[key], bound) == out[key]
    return out


def verdict(found, key):
    if f"asked_{key}" not in found:
        return ""
    return f" ({found[f'asked_{key}']} asked{'' if found[f'{key}_met'] else '; MISSED'})"


def summary_text(found):
    if not found["ran"]:
        return "no model ran on both sides" if found["models"] else "no model is one of these"
    left = found["models"] - found["ran"]
    return (f"geometric mean {found['mean']:.3f}{verdict(found, 'mean')}, worst {found['worst']:.3f} "
            f"{found['worst_model']}{verdict(found, 'worst')}, over {found['ran']} models"
            + (f"; {left} not run" if left else "")
            + (f"; {len(found['missed'])} of {found['judged']} MISSED" if found.get("missed") else ""))


NAME_WIDTH = 22


def row_text(row, columns, width=NAME_WIDTH):
    if "refused" in row:
        return f"{row['model']:{width}}not run: {row['refused']}"
    cells = ["-" if row[key] is None else format(row[key], form) for key, (_, form) in columns.items()]
    return f"{row['model']:{width}}" + "".join(f"{cell:>12}" for cell in cells) + \
        ("" if row.get("met", True) else "  MISSED")


class Report:
    """Prints tables as they grow, or all of them as JSON at the end."""

    LATENCY = {"ours_ms": ("ours ms", ".4g"), "peer_ms": ("peer ms", ".4g"), "ratio": ("ratio", ".3f"),
               "rms_difference": ("differ", ".1e")}
    EXPORTS = {**LATENCY, "width": 26}
    DECODE = {**LATENCY, "ours_gbs": ("ours GB/s", ".1f"), "peer_gbs": ("peer GB/s", ".1f")}
    START = {"ours_ms": ("ours ms", ".4g"), "peer_ms": ("peer ms", ".4g"), "ratio": ("ratio", ".3f")}
    AXES = {"axes_ms": ("axes ms", ".4g"), "fixed_ms": ("fixed ms", ".4g"), "ratio": ("axes/fixed", ".3f")}
    MEMORY = {"ours_mb": ("ours MB", ".0f"), "peer_mb": ("peer MB", ".0f"), "ratio": ("ours/peer", ".3f")}

    def __init__(self, as_json, machine, recorder=None):
        self.as_json, self.tables, self.machine, self.recorder = as_json, [], machine, recorder
        if not as_json:
            print(machine_text(machine))

    def say(self, text):
        if not self.as_json:
            print(text, flush=True)

    def table(self, title, about, columns, rows, asked=(None, None), better=max):
        """|rows| may be a generator that measures."""
        self.say(f"\n== {title}")
        table, width = {**about, "rows": []}, columns.get("width", NAME_WIDTH)
        columns = {key: column for key, column in columns.items() if key != "width"}
        try:
            for row in rows:
                if not table["rows"]:
                    self.say(f"{'':{width}}" + "".join(f"{name:>12}" for name, _ in columns.values()))
                table["rows"].append(row)
                self.say(row_text(row, columns, width))
                if self.recorder and ("rms_difference" in row or about.get("recorded")):
                    self.recorder.add(about, row)
                for note in row.get("notes", ()):
                    self.say(f"{'':{width}}{note}")
            table["summary"] = summary(table["rows"], asked, better)
            self.say(summary_text(table["summary"]))
        except PrecisionRefused as refusal:
            table["refused"] = str(refusal)
            self.say(f"not measured: {refusal}")
        self.tables.append(table)
        return table["rows"]

    def finish(self):
        if self.as_json:
            print(json.dumps({"machine": self.machine, "tables": self.tables}, indent=1))


def machine_of(tool, peer):
    done = subprocess.run([tool, "doctor", "--json"], capture_output=True, text=True, check=True)
    keys = ("cpu", "isa", "isa_cap", "cores_online", "cores_usable", "memory", "system", "version")
    found = json.loads(done.stdout)
    return {**{key: found[key] for key in keys}, "peer": Peer(peer).version}


def machine_text(machine):
    cap = f"          capped by PFRT_ISA={machine['isa_cap']}\n" if machine["isa_cap"] else ""
    return (f"cpu       {machine['cpu']}\nisa       {' '.join(machine['isa'])}\n{cap}"
            f"cores     {machine['cores_online']} online, {machine['cores_usable']} usable\n"
            f"memory    {machine['memory'] / 2**30:.1f} GiB\nsystem    {machine['system']}\n"
            f"ours      {machine['version']}\npeer      ONNX Runtime {machine['peer']}")


def streamed_bytes(path):
    """Of constants, as fp32, without the tables that rows are gathered from."""
    graph = onnx.load(str(path)).graph
    tables = {n.input[0] for n in graph.node if n.op_type == "Gather"}
    return sum(len(t.raw_data) for t in graph.initializer if t.name not in tables)


def decode_row(case, answer):
    row = latency_row(case, answer)
    if "ratio" in row:
        size = streamed_bytes(case.path)
        row.update({f"{side}_gbs": size / row[f"{side}_ms"] / 1e6 for side in ("ours", "peer")})
        row["notes"].append(f"GB/s: {size / 1e6:.0f} MB of constants as fp32, over the time")
    return row


def latency_tables(bench, report, sets, args):
    titles = {"a": "set A", "b": "set B", "tiny": "tiny models of B", "decode": "decode, one token after 127",
              "half": "float16"}
    measured_b = {}  # results of set b on one thread, by precision

    def rows_of(name, threads, precision):
        row_of = decode_row if name == "decode" else latency_row
        return (row_of(c, bench.run(c, threads, precision)) for c in cases(name, args.models))

    for name in sets:
        if name in ("axes", "integer", "c"):
            continue
        for threads in THREADS[name] if name == "tiny" or not args.threads else args.threads:
            for precision in args.precision:
                if name == "tiny":
                    rows = measured_b.get(precision) or rows_of("b", threads, precision)
                    rows = (r for r in rows if "refused" in r or r["peer_ms"] < TINY_MS)
                else:
                    rows = rows_of(name, threads, precision)
                rows = report.table(f"{titles[name]}, {threads} thread(s), {precision}",
                                    {"set": name, "threads": threads, "precision": precision},
                                    report.DECODE if name == "decode" else report.LATENCY, rows,
                                    ASKED.get((name, precision), (None, None)))
                if name == "b" and threads == 1:
                    measured_b[precision] = rows


def export_row(case, answer, tolerance):
    row = latency_row(case, answer)
    if "ratio" in row:
        difference = row["rms_difference"]
        row.update(asked=tolerance, met=difference is not None and difference <= tolerance and not answer["notes"])
        if case.about:
            row["notes"].append(case.about)
        if not row["met"]:
            row["notes"].append(f"results have to be those of the peer within {tolerance:g}")
    return row


def export_tables(bench, report, args):
    """Set C, a table a form."""
    names = [name for name in NETWORKS if not args.networks or name in args.networks]
    for form in args.form:
        found = exported(args.models, form, names, args.exporter)
        for threads in args.threads or THREADS["c"]:
            for precision in args.precision:
                tolerance = max(LOOSER.get(key, TOLERANCE) for key in (form, precision))
                rows = ({"model": case.name, "refused": case.refused} if case.refused else
                        export_row(case, bench.run(case, threads, precision), tolerance) for case in found)
                about = {"set": "c" if form == "full" else f"c {form}", "threads": threads, "precision": precision}
                report.table(f"set C, {FORM_TITLES[form]}, {threads} thread(s), {precision}", about, report.EXPORTS,
                             rows)


def axes_row(bench, case, fixed, precision):
    answer = bench.pair(fixed, precision, case, precision)
    if "refused" in answer:
        return {"model": case.name, **answer}
    fixed_ms, axes_ms = (seconds * 1e3 for seconds in answer["median_s"])
    return {"model": case.name, "axes_ms": axes_ms, "fixed_ms": fixed_ms, "ratio": answer["ratio"]}


def axes_tables(bench, report, args):
    """Models with symbolic batch and length beside the same of one size: the first's time over the second's."""
    for precision in args.precision:
        report.table(f"symbolic axes beside fixed ones, 1 thread, {precision}",
                     {"set": "axes", "threads": 1, "precision": precision}, report.AXES,
                     (axes_row(bench, case, fixed, precision) for case, fixed in axes_cases(args.models)),
                     (None, ASKED_AXES), better=min)


def launches(bench, case, threads, precision, rounds):
    """Medians, over processes of their own, of creation, first run and peak memory of both sides.

    A launch before them is not counted: it brings the file into memory, and a virtual machine's memory into being.
    """
    answers = [bench.run(case, threads, precision, seconds=0.01) for _ in range(rounds + 1)][1:]
    refused = next((a["refused"] for a in answers if "refused" in a), None)
    if refused:
        return {"refused": refused}
    return {side: {key: statistics.median(a[side][key] for a in answers)
                   for key in ("load_s", "first_run_s", "peak_bytes")} for side in ("ours", "peer")}


def start_row(case, answer):
    if "refused" in answer:
        return {"model": case.name, **answer}
    ours, peer = ((answer[side]["load_s"] + answer[side]["first_run_s"]) * 1e3 for side in ("ours", "peer"))
    return {"model": case.name, "ours_ms": ours, "peer_ms": peer, "ratio": peer / ours}


def memory_row(case, answer):
    if "refused" in answer:
        return {"model": case.name, **answer}
    ours, peer = (answer[side]["peak_bytes"] / 1e6 for side in ("ours", "peer"))
    return {"model": case.name, "ours_mb": ours, "peer_mb": peer, "ratio": ours / peer}


def launch_tables(bench, report, args):
    for threads in args.threads or (1,):
        for precision in args.precision:
            about = {"threads": threads, "precision": precision}
            tail = f"{threads} thread(s), {precision}, medians of {args.rounds} processes"
            known = {}

            def launched(case):
                if case.name not in known:
                    known[case.name] = launches(bench, case, threads, precision, args.rounds)
                return known[case.name]

            if args.start:
                report.table(f"session creation and first run, {tail}", {"set": "start", **about}, report.START,
                             (start_row(c, launched(c)) for s in ("a", "b") for c in cases(s, args.models)),
                             (ASKED_START, None))
            if args.memory:
                large = [c for s in ("a", "b", "decode") for c in cases(s, args.models)
                         if c.path.stat().st_size >= LARGE_BYTES]
                report.table(f"peak memory of a process, {tail}", {"set": "memory", **about}, report.MEMORY,
                             (memory_row(c, launched(c)) for c in large), (ASKED_MEMORY, None), better=min)


def take_only(parser, args, sets):
    """Sets |args.lines| and |args.networks| from --only, and --form's default."""
    args.lines = sorted({int(word) for word in args.only or () if word.isdecimal()})
    args.networks = {word for word in args.only or () if not word.isdecimal()}
    if args.lines and "integer" not in sets:
        parser.error("--only with numbers chooses lines of set integer")
    if args.networks and "c" not in sets:
        parser.error("--only with names chooses networks of set c")
    if wrong := [str(line) for line in args.lines if line not in integer_tables.LINES]:
        parser.error(f"--only: set integer has lines 1 to {integer_tables.LINES[-1]}, and no {', '.join(wrong)}")
    if wrong := sorted(args.networks - set(NETWORKS)):
        parser.error(f"--only: set c has no {', '.join(wrong)}; it has {', '.join(NETWORKS)}")
    if args.form and "c" not in sets:
        parser.error("--form chooses forms of set c")
    args.form = args.form or ["full"]


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description="Measure models beside ONNX Runtime.")
    parser.add_argument("--tool", required=True, help="pfrt")
    parser.add_argument("--peer", required=True, help="ONNX Runtime's shared library")
    parser.add_argument("--models", required=True, type=Path, help="folder for the models that are made")
    parser.add_argument("--set", nargs="+", choices=(*SETS, "all"),
                        help="default: all, which is all but c, unless --memory, --start, --cold or --warm")
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1 and 2 for a and b, 1 for the rest; set integer has its own")
    parser.add_argument("--precision", nargs="+", help="default: fp32; set integer has its own")
    parser.add_argument("--seconds", type=float, default=5, help="for each side of a row; default 5")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--cold", action="store_true", help="process to session and first run")
    parser.add_argument("--warm", action="store_true", help="the same from a warm cache of compiled models")
    parser.add_argument("--starter", help="bench/start.cc, built")
    parser.add_argument("--rounds", type=int, default=3, help="processes a row of --start and --memory; default 3")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true", help="add latencies to bench/results/<processor>.tsv")
    parser.add_argument("--peer-isa", help="with PFRT_ISA: the set that the peer is held to as well")
    parser.add_argument("--only", nargs="+", metavar="WHAT",
                        help="lines of set integer, by number, and networks of set c, by name; default: all")
    parser.add_argument("--form", nargs="+", choices=FORMS, help="of set c; default: full")
    parser.add_argument("--exporter", help="an interpreter with PyTorch, which makes models of set c")
    parser.add_argument("--llama", nargs=2, metavar=("PROGRAM", "LIBRARIES"),
                        help="llama.cc built, and the folder of llama.cpp's libraries")
    args = parser.parse_args()
    if args.rounds < 1 or not args.seconds > 0:
        parser.error("--rounds and --seconds take more than 0")

    apart = args.memory or args.start or args.cold or args.warm
    wanted = args.set or ([] if apart else ["all"])
    sets = [s for s in SETS if s in wanted or "all" in wanted and s not in ASKED_FOR_ALONE]
    take_only(parser, args, sets)
    if sets == ["integer"] and (args.threads or args.precision):
        parser.error("set integer has its own --threads and --precision")
    args.precision = args.precision or ["fp32"]
    bench = Bench(args.tool, args.peer, args.seconds)
    machine = machine_of(args.tool, args.peer)
    if args.record and used_isa(machine) not in (machine_isa(machine), args.peer_isa):
        parser.error(f"--record: PFRT_ISA holds ours to {used_isa(machine)} and does not hold the peer; give a PEER that "
                     f"is held to it too, and --peer-isa {used_isa(machine)}")
    report = Report(args.json, machine, Recorder(machine) if args.record else None)
    latency_tables(bench, report, sets, args)
    if "axes" in sets:
        axes_tables(bench, report, args)
    if "integer" in sets:
        integer_tables.Tables(bench, report, machine, args).print(args.lines or integer_tables.LINES)
    if "c" in sets:
        export_tables(bench, report, args)
    launch_tables(bench, report, args)
    for warm in [w for w, asked in ((False, args.cold), (True, args.warm)) if asked]:
        start.tables(args.starter, report, [c for s in ("a", "b") for c in cases(s, args.models)], args, warm,
                     geometric_mean)
    report.finish()


if __name__ == "__main__":
    main()
