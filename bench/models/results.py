# SPDX-License-Identifier: Apache-2.0
"""Figures that were measured: bench/results/<processor>.tsv, a line a model, to which `run.sh --record` adds.

Lines are never changed: of two for the same model on the same kind of machine the later one counts.
"""
import csv
import re
import subprocess
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "results"
COLUMNS = ("date", "commit", "processor", "isa", "set", "threads", "precision", "model", "ours_ms", "peer_ms", "ratio")
# The words of PFRT_ISA beside the instruction set that each begins with.
LEVELS = (("amx", "amx_tile"), ("avx512_bf16", "avx512_bf16"), ("avx512_vnni", "avx512_vnni"), ("avx512", "avx512f"),
          ("avx_vnni", "avx_vnni"), ("avx2", "avx2"))


def machine_isa(machine):
    return next((word for word, has in LEVELS if has in machine["isa"]), "generic")


def used_isa(machine):
    """What kernels use: the machine's, or PFRT_ISA where that is lower."""
    order = [word for word, _ in LEVELS]
    allowed = LEVELS[order.index(machine["isa_cap"]):] if machine["isa_cap"] in order else \
        () if machine["isa_cap"] else LEVELS
    return next((word for word, has in allowed if has in machine["isa"]), "generic")


def commit_of(folder):
    """The short hash, with + where files differ from it."""
    def git(*args):
        return subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True).stdout
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!bench/results")
    return git("rev-parse", "--short=8", "HEAD").strip() + ("+" if changed.strip() else "")


class Recorder:
    def __init__(self, machine):
        slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(\w+\)", "", machine["cpu"]).lower()).strip("-")
        self.path = FOLDER / f"{slug or 'unknown'}.tsv"
        self.fixed = {"date": date.today().isoformat(), "commit": commit_of(FOLDER.parent),
                      "processor": machine["cpu"], "isa": used_isa(machine)}

    def add(self, about, row):
        """A row of a table of latencies; what did not run is not recorded."""
        if "ratio" not in row:
            return
        FOLDER.mkdir(exist_ok=True)
        fresh = not self.path.exists()
        line = {**self.fixed, **about, "model": row["model"], "ours_ms": f"{row['ours_ms']:.4g}",
                "peer_ms": f"{row['peer_ms']:.4g}", "ratio": f"{row['ratio']:.3f}"}
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n", extrasaction="ignore")
            if fresh:
                out.writeheader()
            out.writerow(line)


def newest(folder=FOLDER):
    """{(processor, isa, set, threads, precision): {model: line}}, in the order of files and lines."""
    found = {}
    for path in sorted(Path(folder).glob("*.tsv")):
        with open(path, newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file, delimiter="\t"):
                key = tuple(line[k] for k in ("processor", "isa", "set", "threads", "precision"))
                found.setdefault(key, {})[line["model"]] = line
    return found
