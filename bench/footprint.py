# SPDX-License-Identifier: Apache-2.0
"""Prints three tables: what headers cost a compiler, what packages weigh, how many lines a first run takes.

footprint.sh makes the folder |--work|: an installed tree, the packages, and node_modules with both.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "first_run"
MODEL = "samples/digits/digits.onnx"
EXPECTED = "0.0283"  # the probability of a 5 on a blank image
ROUNDS = 5
COMMENT = re.compile(r"\s*(//|#(?!include)|/\*.*\*/\s*$|$)")


def compile_cost(source, command):
    """(seconds of a processor, MB) of a compiler for |source|, a text, in the median of ROUNDS."""
    seconds, peaks = [], []
    for _ in range(ROUNDS):
        child = subprocess.Popen(command, stdin=subprocess.PIPE)
        child.stdin.write(source.encode())
        child.stdin.close()
        _, status, usage = os.wait4(child.pid, 0)
        seconds.append(usage.ru_utime + usage.ru_stime)
        if status:
            sys.exit(f"compiling {source!r} failed")
        peaks.append(usage.ru_maxrss / 1024)
    return statistics.median(seconds), statistics.median(peaks)


def headers(tree, peer):
    """Rows of what one #include costs; cc1plus is a child of the driver's, whose peak counts too."""
    include = tree / "include"
    rows = [("pyflame_rt/pyflame_rt.hpp", "c++", include), ("pyflame_rt/session.hpp", "c++", include),
            ("pyflame_rt/pyflame_rt.h", "c", include)]
    if peer:
        rows += [("onnxruntime_cxx_api.h", "c++", peer), ("onnxruntime_c_api.h", "c", peer)]
    out = []
    for header, language, folder in rows:
        seconds, peak = compile_cost(f"#include <{header}>\n", [
            "c++" if language == "c++" else "cc", "-std=c++17" if language == "c++" else "-std=c11", "-I", str(folder),
            "-x", language, "-c", "-o", os.devnull, "-"])
        out.append({"header": header, "seconds": round(seconds, 2), "MB": round(peak)})
    return out


def size_of(path):
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def packages(work):
    """Rows of the bytes of what is fetched and of what is then on disk."""
    def one(pattern):
        return next(iter(sorted(work.glob(pattern))), None)
    site = Path(sys.prefix).resolve().glob("lib/python3*/site-packages")
    site = next(iter(site))
    library = one("tree/lib/**/libpyflamert_c.so")
    plugin = one("tree/lib/**/libpyflamert_provider_cpu.so")
    importer = one("tree/lib/**/libpyflamert_import_onnx.so")
    peer = one("node_modules/onnxruntime-node/bin/napi-v*/linux/x64")
    return [{"what": "Python wheel", "ours": size_of(one("pyflame_rt-*.whl")), "peer": size_of(one("onnxruntime-*.whl"))},
            {"what": "the same, installed", "ours": size_of(site / "pyflame_rt"), "peer": size_of(site / "onnxruntime")},
            {"what": "npm package, installed", "ours": size_of(work / "node_modules/pyflame-rt"),
             "peer": size_of(work / "node_modules/onnxruntime-node")},
            {"what": "libraries that run an .onnx file", "ours": sum(stripped(f, work) for f in (library, plugin, importer)),
             "peer": sum(stripped(f, work) for f in peer.glob("libonnxruntime.so.1"))}]


def stripped(path, work):
    copy = work / "stripped"
    subprocess.run(["strip", "-o", copy, path], check=True)
    return copy.stat().st_size


def run_program(path, work, peer):
    """Builds and runs a program; what it printed, or None where the peer's headers are not here."""
    ours = path.stem == "ours"
    command, variables = {".py": [sys.executable, path], ".js": ["node", path]}.get(path.suffix), {}
    if command is None:
        if not ours and not peer:
            return None
        include = work / "tree/include" if ours else peer
        library = next((work / "tree/lib").rglob("libpyflamert_c.so")) if ours else next(
            (work / "node_modules/onnxruntime-node/bin").rglob("linux/x64/libonnxruntime.so.1"))
        program = work / f"first_run_{path.stem}{path.suffix[1:]}"
        compiler = ["cc", "-std=c11"] if path.suffix == ".c" else ["c++", "-std=c++17"]
        subprocess.run([*compiler, "-I", include, path, library, f"-Wl,-rpath,{library.parent}", "-o", program], check=True)
        command = [program]
    if path.suffix == ".js":
        variables = {"NODE_PATH": str(work / "node_modules")}
    return subprocess.run([*command, MODEL], check=True, capture_output=True, text=True,
                          env={**os.environ, **variables}).stdout.strip()


def lines_of(path):
    return sum(not COMMENT.match(line) for line in path.read_text().splitlines())


def first_runs(work, peer):
    """Rows of lines that are neither empty nor comments."""
    out = []
    for language, suffix in (("Python", "py"), ("C++", "cc"), ("JavaScript", "js"), ("C", "c")):
        row = {"language": language}
        for side in ("ours", "peer"):
            path = PROGRAMS / f"{side}.{suffix}"
            printed = run_program(path, work, peer)
            if printed not in (EXPECTED, None):
                sys.exit(f"{path} printed {printed!r}, not {EXPECTED!r}")
            row[side] = lines_of(path) if printed else None
        out.append(row)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peer-headers", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tables = {"headers": headers(options.work / "tree", options.peer_headers), "packages": packages(options.work),
              "first_run": first_runs(options.work, options.peer_headers)}
    if options.json:
        print(json.dumps(tables, indent=1))
        return
    print(f"{'header':34}{'seconds':>10}{'MB':>10}")
    for row in tables["headers"]:
        print(f"{row['header']:34}{row['seconds']:10.2f}{row['MB']:10}")
    print(f"\n{'MB of':34}{'ours':>10}{'peer':>10}")
    for row in tables["packages"]:
        print(f"{row['what']:34}{row['ours'] / 1e6:10.1f}{row['peer'] / 1e6:10.1f}")
    print(f"\n{'lines of a first run in':34}{'ours':>10}{'peer':>10}")
    for row in tables["first_run"]:
        print(f"{row['language']:34}{row['ours']:10}{row['peer'] or '-':>10}")


if __name__ == "__main__":
    main()
