#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random models of one operator, with odd attributes and dimensions.

    test/odd/odd.py [--peer LIBONNXRUNTIME.SO] [--cases 100000] [--seed 1] [--op Conv,Slice] [--show]
    test/odd/odd.py --seed 1 --op Conv --case 1234 [--peer ...]       # one case again, with what each side says

Every case is run at levels all and none, which have to agree, and by the peer if it is given. What differs from the
peer is looked for in differences.txt; what is not there is a failure, as are crashes and levels that disagree. Cases
are run by a child process: what ends it costs one case, and is reported. PYFLAME_RT_LIBRARY says which library.
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import select
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capi", "python")]
BATCH = 2000
SECONDS = 60  # a case that takes longer hangs
FAULTS = ("levels", "internal", "ours crashes", "ours hangs")
COLUMNS = ("agree", "refused", "runs", "ours refuses", "peer refuses", "differs", "peer crashes", "peer hangs") + FAULTS


class Known:
    """A line of differences.txt: operators | classes | pattern | who is right | why."""

    def __init__(self, line):
        self.operators, self.classes, pattern, self.right, self.why = [part.strip() for part in line.split(" | ", 4)]
        self.pattern, self.count = re.compile(pattern), 0

    def matches(self, result):
        return (any(fnmatch.fnmatchcase(result["op"], glob) for glob in self.operators.split(",")) and
                result["class"] in self.classes.split(",") and
                self.pattern.search(result["how"] + " || " + result["case"]) is not None)


def known_differences():
    with open(os.path.join(HERE, "differences.txt"), encoding="utf-8") as file:
        return [Known(line) for line in file if line.strip() and not line.startswith("#")]


class Child:
    """A process that runs cases."""

    def __init__(self, args, operators):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py"), str(args.seed), json.dumps(operators), args.peer or ""],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if not args.errors else None,
            text=True, bufsize=1)

    def close(self):
        self.process.kill()
        self.process.wait()

    def lines(self, begin, end, step):
        """What the child says until it is done; at last "ended" or "hangs" where it does not come to that."""
        self.process.stdin.write(f"{begin} {end} {step}\n")
        self.process.stdin.flush()
        descriptor, buffer = self.process.stdout.fileno(), b""
        while True:
            if not select.select([descriptor], [], [], SECONDS)[0]:
                yield "hangs"
                return
            data = os.read(descriptor, 1 << 16)
            if not data:
                yield "ended"
                return
            *whole, buffer = (buffer + data).split(b"\n")
            for line in whole:
                if line == b"done":
                    return
                yield line.decode()


def results(args, operators, first, cases, step):
    """The results of all cases, also of those that end the child."""
    child, begin, end = Child(args, operators), first, first + cases * step
    while begin < end:
        stop, index, what = min(begin + BATCH * step, end), begin, "start"
        ended = ""
        for line in child.lines(begin, stop, step):
            if line in ("ended", "hangs"):
                ended = line
            elif line.startswith("{"):
                yield json.loads(line)
                index += step
            else:
                what = line.split()[1]
        begin = stop
        if ended:
            code = child.process.poll() if ended == "hangs" else child.process.wait()
            child.close()
            if what in ("start", "draw"):
                raise SystemExit(f"case {index}: the child ended while it {what}s (exit {code}); run it with --errors")
            yield {"index": index, "op": "/".join(filter(None, operators[index % len(operators)])),
                   "class": f"{what} {'hangs' if ended == 'hangs' else 'crashes'}", "how": f"exit {code}",
                   "case": text_of(args.seed, index, operators)}
            child, begin = Child(args, operators), index + step
    child.close()


def text_of(seed, index, operators):
    import generators
    from draw import Draw
    case = Draw(seed, index)
    generators.GENERATORS[tuple(operators[index % len(operators)])](case)
    return case.text()


def report(args, table, failures, known):
    columns = [c for c in COLUMNS if any(counts[c] for counts in table.values())]
    width = max(map(len, table)) if table else 8
    print(" " * width, *[f"{c:>12}" for c in columns])
    for op in sorted(table):
        print(f"{op:{width}}", *[f"{table[op][c] or '':>12}" for c in columns])
    print(f"{'all':{width}}", *[f"{sum(t[c] for t in table.values()):>12}" for c in columns])
    for entry in known:
        if entry.count:
            print(f"{entry.count:6} {entry.operators} ({entry.classes}; {entry.right}): {entry.why}")
    for result in failures[:args.limit]:
        print(f"FAILED {result['op']}: {result['class']}: {result['how']}\n  {result.get('case', '')}\n  again: "
              f"test/odd/odd.py --seed {args.seed} --op {result['op']} --case "
              f"{result['index']}{' --peer LIB' if args.peer else ''}")


def one_case(args, operators):
    """Runs a case here, and says everything of it."""
    import generators  # noqa: F401
    import numpy
    import worker
    numpy.set_printoptions(threshold=60)
    work = worker.Worker(args.seed, operators, args.peer)
    case, model = work.draw(args.case)
    if args.save:
        with open(args.save, "wb") as file:
            file.write(model)
    print(case.text())
    for name, value in {**case.inputs, **case.initializers}.items():
        print(name, "=", value)
    for name, level in zip(("all", "none"), work.levels):
        print("level", name, *worker.run_ours(model, case.inputs, level, work.limit))
    if args.peer:
        print("peer", *worker.run_peer(work.peer, model, case.inputs))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="libonnxruntime.so of ONNX Runtime 1.30")
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", help="operators, by name (domain/name) or pattern, a comma between")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--save", help="where to write the model of --case")
    parser.add_argument("--limit", type=int, default=40, help="failures to print")
    parser.add_argument("--json", help="a file to append failures to, a line each")
    parser.add_argument("--errors", action="store_true", help="let the child write to standard error")
    args = parser.parse_args()
    import generators
    operators = sorted(key for key in generators.GENERATORS if not args.op or any(
        fnmatch.fnmatchcase(name, glob) for glob in args.op.split(",") for name in (key[1], "/".join(filter(None, key)))))
    if args.case is not None:
        return one_case(args, operators)
    table, failures, known = collections.defaultdict(collections.Counter), [], known_differences()
    for result in results(args, operators, 0, args.cases, 1):
        table[result["op"]][result["class"]] += 1
        if result["class"] in ("agree", "refused", "runs"):
            continue
        entry = next((k for k in known if k.matches(result)), None)
        if entry:
            entry.count += 1
        elif result["class"] not in ("peer crashes", "peer hangs"):
            failures.append(result)
            if args.json:
                with open(args.json, "a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
    report(args, table, failures, known)
    print(f"{sum(sum(t.values()) for t in table.values())} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
