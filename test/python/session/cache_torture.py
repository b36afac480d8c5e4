# SPDX-License-Identifier: Apache-2.0
"""Holds the cache of compiled models to what it promises while it is mistreated.

    cache_torture.py [--kills N] [--flips N] [--failures N] [--jumps N] [--seed N]

--kills: processes that fill, read and evict one folder and are killed with SIGKILL at random moments. --flips: bits of
entries that flip between sessions. --failures: sessions under an interposed library whose writes fail with ENOSPC or EIO
from a random call on. --jumps: processes for which the clock of the day has jumped, forth and back. After each: results are those of a session without a cache, nothing has crashed, and an entry that
was whole still is. PYFLAME_RT_LIBRARY and PYTHONPATH are those of other tests.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

INTERPOSED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
static long left = -1;
static int fails(int fd) {
  if (fd <= 2 || !getenv("FAIL_AFTER")) return 0;
  if (left < 0) left = atol(getenv("FAIL_AFTER"));
  return left-- <= 0 ? (errno = atoi(getenv("FAIL_WITH")), left = 0, 1) : 0;
}
ssize_t write(int fd, const void* data, size_t size) {
  static ssize_t (*next)(int, const void*, size_t);
  if (!next) next = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  return fails(fd) ? -1 : next(fd, data, size);
}
int rename(const char* from, const char* to) {
  static int (*next)(const char*, const char*);
  if (!next) next = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  return fails(3) ? -1 : next(from, to);
}
int clock_gettime(clockid_t clock, struct timespec* to) {
  static int (*next)(clockid_t, struct timespec*);
  if (!next) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, to);
  if (clock == CLOCK_REALTIME && getenv("JUMP")) to->tv_sec += atol(getenv("JUMP"));
  return result;
}
"""

# Each process makes, runs and compares sessions of some models with some options, and evicts now and then.
CHILD = r"""
import os, random, sys
import numpy as np
import pyflame_rt
from pyflame_rt import InferenceSession, SessionOptions
from pyflame_rt.cache import BinaryCache, CacheConfig
folder, models, seed, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
for _ in range(rounds):
    number = rng.randrange(6)
    path = os.path.join(models, f"{number}.onnx")
    session = InferenceSession(path, SessionOptions(cache_dir=folder, num_threads=1, log_level="off",
                                                    precision=rng.choice(["fp32", "ieee"])))
    got = session.run(None, {"x": np.load(os.path.join(models, "x.npy"))})[0]
    if not np.array_equal(got, np.load(os.path.join(models, f"{number}.npy"))):
        sys.exit("wrong answer of model %d" % number)
    if "KEEP" not in os.environ and rng.random() < 0.1:
        BinaryCache(CacheConfig(cache_dir=folder, max_entries=rng.randrange(3, 9))).evict_if_needed()
stats = BinaryCache(CacheConfig(cache_dir=folder)).get_stats()
print("done", stats.stores, stats.hits)
"""


def stop(why):
    print(why)
    sys.exit(1)


class Place:
    def __init__(self, folder):
        self.models, self.cache, self.child = folder / "models", folder / "cache", folder / "child.py"
        self.models.mkdir()
        self.child.write_text(CHILD)
        rng = np.random.default_rng(0)
        x = rng.integers(-4, 4, (4, 64)).astype(np.float32)  # sums are exact, whatever their order
        np.save(self.models / "x.npy", x)
        for number in range(6):
            import pyflame_rt
            graph = pyflame_rt.Graph(f"model{number}")
            graph.add_input("x", [None, 64], pyflame_rt.DType.Float32)
            w = rng.integers(-4, 4, (64, 300 + 10 * number)).astype(np.float32)
            graph.add_initializer("w", w)
            graph.add_node("product", "MatMul", inputs=["x", "w"], outputs=["p"])
            graph.add_node("relu", "Relu", inputs=["p"], outputs=["y"])
            graph.add_output("y")
            pyflame_rt.save_model(graph, str(self.models / f"{number}.onnx"))
            np.save(self.models / f"{number}.npy", np.maximum(x @ w, 0))

    def start(self, seed, rounds, **environment):
        return subprocess.Popen([sys.executable, str(self.child), str(self.cache), str(self.models), str(seed), str(rounds)],
                                env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def entries(self):
        return sorted(self.cache.glob("*.compiled")) if self.cache.exists() else []

    def check(self, doing):
        """Every entry that is there is whole."""
        from pyflame_rt.cache import BinaryCache, CacheConfig
        broken = [e.cache_path for e in BinaryCache(CacheConfig(cache_dir=self.cache)).entries(check=True)
                  if not e.is_valid]
        if broken:
            stop(f"{doing}: {broken[0]} is not whole")


def finish(process, doing):
    out, err = process.communicate(timeout=120)
    if process.returncode != 0 or "done" not in out:
        stop(f"{doing}: exit code {process.returncode}: {err.strip()[-500:]}")
    return map(int, out.split()[-2:])


def kill(place, count, rng):
    """Nothing is evicted in the first third, so that what was there once stays."""
    running, killed, seed, seen = [], 0, rng.randrange(1 << 30), set()
    while killed < count:
        while len(running) < 4:
            seed += 1
            keep = {"KEEP": "1"} if 3 * killed < count else {}
            running.append((place.start(seed, 1000, **keep), time.monotonic() + rng.uniform(0.15, 0.6)))
        running.sort(key=lambda pair: pair[1])
        process, when = running.pop(0)
        time.sleep(max(0.0, when - time.monotonic()))
        code = process.poll()
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate()
        if code not in (None, 0):
            stop(f"kills: a process ended by itself, {code}: {err.strip()[-500:]}")
        killed += 1
        if 3 * killed < count:
            lost = seen.difference(entries := place.entries())
            if lost:
                stop(f"kills: {lost.pop()} was there and is lost")
            seen.update(entries)
    for process, _ in running:
        process.kill()
        process.communicate()
    place.check("kills")
    finish(place.start(1, 30), "after kills")
    left = [p.name for p in place.cache.iterdir() if ".pfrt-" in p.name]
    print(f"{killed} kills: {len(place.entries())} entries, all whole; {len(left)} unfinished files left")


def flip(place, count, rng):
    from pyflame_rt import InferenceSession, SessionOptions
    x = np.load(place.models / "x.npy")
    options = SessionOptions(cache_dir=place.cache, num_threads=1, log_level="off")
    for at in range(count):
        number = rng.randrange(6)
        InferenceSession(str(place.models / f"{number}.onnx"), options)
        for path in rng.sample(place.entries(), min(2, len(place.entries()))):
            data = bytearray(path.read_bytes())
            bit = rng.randrange(len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
            with open(path, "r+b") as file:
                file.seek(bit // 8)
                file.write(data[bit // 8:bit // 8 + 1])
        got = InferenceSession(str(place.models / f"{number}.onnx"), options).run(None, {"x": x})[0]
        if not np.array_equal(got, np.load(place.models / f"{number}.npy")):
            stop(f"flip {at}: wrong answer of model {number}")
    print(f"{count} times bits flipped: no wrong answer")


def interposed(folder):
    source, library = folder / "interposed.c", folder / "interposed.so"
    source.write_text(INTERPOSED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return str(library)


def fail(place, count, rng, library):
    for at in range(count):
        code = rng.choice((28, 5))  # ENOSPC, EIO
        process = place.start(rng.randrange(1 << 30), 8, LD_PRELOAD=library, FAIL_WITH=str(code),
                              FAIL_AFTER=str(rng.randrange(0, 40)))
        finish(process, f"failure {at}")
    place.check("failures")
    print(f"{count} processes whose writes failed: all served; {len(place.entries())} entries, all whole")


def jump(place, count, rng, library):
    finish(place.start(0, 60, KEEP="1"), "before jumps")
    for at in range(count):
        by = rng.choice((-1, 1)) * 10 ** rng.randrange(1, 9)  # seconds to years
        stores, hits = finish(place.start(rng.randrange(1 << 30), 8, KEEP="1", LD_PRELOAD=library, JUMP=str(by)),
                              f"clock {at}, {by} s")
        if by < 0 and hits + stores == 0:
            stop(f"clock {at}, {by} s: the cache was not used")
    place.check("jumps")
    print(f"{count} processes whose clock had jumped: all served; {len(place.entries())} entries, all whole")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--jumps", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # each flip is a line of the log
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        place = Place(folder)
        if args.kills:
            kill(place, args.kills, rng)
        library = interposed(folder) if args.failures or args.jumps else None
        if args.failures:
            fail(place, args.failures, rng, library)
        if args.jumps:
            jump(place, args.jumps, rng, library)
        if args.flips:
            flip(place, args.flips, rng)


if __name__ == "__main__":
    main()
