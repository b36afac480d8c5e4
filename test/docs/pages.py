#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows pages of documentation as a reader would: every block of code on them is saved, compiled or run.

A page is followed from its top, in a tree where the runtime is installed in build/install:

- A block whose first line is a comment that names a file is saved there; what comes later uses it. C and C++ are also
  compiled with every warning on, by each compiler there is.
- `sh` is run by bash, which stops at the first failure; variables that a block exports are there in the next.
- `python` runs in one interpreter a page: names of one block are there in the next.
- `cpp` without a file's name is the body of main in a program that includes <pyflame_rt/pyflame_rt.hpp> and uses the
  namespace, `c` that of one that includes <pyflame_rt/pyflame_rt.h>; it is compiled and run.
- `text` is what the block before it prints; a line `...` in it stands for any lines.
- `js` is run by test/node/package.sh, which has the package's dependencies; `rust`, `go` and `java` are by
  test/samples/sample.sh.

A comment <!-- not followed: why --> exempts the next block. Any other language is an error, and so are paths in
`backticks` and links that lead nowhere.

usage: pages.py --tree DIR [--chroot DIR] PAGE...
  --tree: the source tree to follow the pages in; with --chroot, as seen from inside
  --chroot: a system to run commands in (a fresh one: fresh.sh), as root
"""
from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

WARNINGS = "-Wall -Wextra -Wpedantic -Werror"
CXX_MAIN = """#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include <pyflame_rt/pyflame_rt.hpp>

using namespace pyflame_rt;

int main() {{
{body}
}}
"""
C_MAIN = """#include <pyflame_rt/pyflame_rt.h>

int main(void) {{
{body}
}}
"""
# Paths of this tree start so when words in backticks name them, patterns included: a folder of it, then a slash.
FOLDERS = "bench|capi|cmake|core|cxxapi|docs|include|plugins|providers|samples|test"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./<>*+-]*)")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


class Fault(Exception):
    pass


class Block(NamedTuple):
    line: int
    language: str
    text: str
    followed: bool


def blocks_of(page: Path) -> Iterator[Block]:
    """The page's blocks of code, in order."""
    lines = page.read_text(encoding="utf-8").split("\n")
    at, followed = 0, True
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("<!-- not followed:"):
            followed = False
        elif line.startswith("```"):
            start = at
            while not lines[at].startswith("```"):
                at += 1
            yield Block(start, line[3:].strip(), "\n".join(lines[start:at]) + "\n", followed)
            at, followed = at + 1, True


class Machine:
    """Runs commands in the tree: here, or in a chroot with an environment of its own."""

    def __init__(self, tree: str, root: Optional[str]) -> None:
        self.tree = tree
        self.folder = Path(root or "/", tree.lstrip("/"))
        self.before = ["chroot", root, "env", "-i", "HOME=/root", "TERM=dumb",
                       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"] if root else []
        self.environment = self.folder / "build" / "pages.env"
        self.environment.parent.mkdir(parents=True, exist_ok=True)
        self.environment.write_text("")

    def run(self, commands: str) -> str:
        """What |commands| print. Raises Fault when one fails."""
        script = f"cd {shlex.quote(self.tree)}\n. build/pages.env\n{commands}\nexport -p >build/pages.env\n"
        done = subprocess.run([*self.before, "bash", "-euo", "pipefail", "-c", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise Fault(f"exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def save(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


COMPILE = """
export PKG_CONFIG_PATH=$(dirname "$(find build/install -name pyflame_rt.pc)")
flags="$(pkg-config --cflags --libs pyflame_rt) -Wl,-rpath,$(pkg-config --variable=libdir pyflame_rt) -pthread"
"""


def compile_with(compilers: str, standard: str, name: str) -> str:
    """Commands that compile |name| by each of |compilers| that there is, the last of them first."""
    return COMPILE + f"""
found=no
for compiler in {compilers}; do
  command -v $compiler >/dev/null || continue
  found=yes
  $compiler -std={standard} {WARNINGS} {name} $flags -o build/page_program
done
[ $found = yes ]
"""


class Follower:
    def __init__(self, machine: Machine, page: Path) -> None:
        self.machine = machine
        self.page = page
        self.python = ""  # the blocks so far: each is run after those before it
        self.printed: Optional[str] = None

    def follow(self, block: Block) -> str:
        """Does what a reader would do with the block; a word that says what it was."""
        first = block.text.split("\n", 1)[0]
        named = re.fullmatch(r"(?://|#|/\*) *(build/[\w./]+)(?: *\*/)?", first)
        if block.language == "text":
            self.compare(block.text)
            return "compared"
        self.printed = None
        if named:
            self.machine.save(named[1], block.text)
        if not block.followed:
            return "not followed"
        if block.language == "sh":
            self.printed = self.machine.run(block.text)
        elif block.language in ("c", "cpp"):
            is_c = block.language == "c"
            name = named[1] if named else f"build/page_block.{'c' if is_c else 'cc'}"
            if not named:
                self.machine.save(name, (C_MAIN if is_c else CXX_MAIN).format(body=block.text))
            self.machine.run(compile_with("clang cc", "c11", name) if is_c else
                             compile_with("clang++ c++", "c++17", name))
            self.printed = self.machine.run("build/page_program")
        elif block.language == "python":
            self.run_python(block.text)
        elif block.language == "js":
            return "left to test/node/package.sh"
        elif block.language in ("rust", "go", "java"):
            return "left to test/samples/sample.sh"
        else:
            raise Fault(f"language '{block.language}' is not one that is followed; see test/docs/pages.py")
        return "saved and run" if named else "run"

    def run_python(self, text: str) -> None:
        mark = "----- this block -----"
        self.machine.save("build/page_block.py", f"{self.python}\nprint({mark!r})\n{text}")
        where = 'PYTHONPATH=$(dirname "$(dirname "$(find build/install -name py.typed)")")'
        output = self.machine.run(f"{where} /usr/bin/python3 -B build/page_block.py")
        self.printed = output.split(mark + "\n", 1)[1]
        self.python += "\n" + text

    def compare(self, expected: str) -> None:
        if self.printed is None:
            raise Fault("text follows no block that prints")
        pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + r"[ \t]*\n"
                          for line in expected.rstrip("\n").split("\n"))
        if not re.fullmatch(pattern, self.printed):
            raise Fault(f"the block before it printed\n{self.printed}in place of\n{expected}")


def lost_paths(page: Path, root: Path) -> Iterator[str]:
    """Links and paths that lead nowhere."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in LINK.findall(text):
        if not (page.parent / link).exists():
            yield f"link to {link}"
    for path in PATH.findall(text):
        pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
        if not any(root.glob(pattern)):
            yield f"path {path}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", required=True)
    parser.add_argument("--chroot")
    parser.add_argument("pages", nargs="+", help="relative to the source tree that this script lies in")
    args = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    failed = passed = 0
    for name in args.pages:
        page = root / name
        follower = Follower(Machine(args.tree, args.chroot), page)
        for lost in lost_paths(page, root):
            print(f"FAILED: {name}: {lost} leads nowhere")
            failed += 1
        for block in blocks_of(page):
            try:
                word = follower.follow(block)
            except Fault as fault:
                print(f"FAILED: {name}:{block.line}: {block.language}: {fault}")
                failed += 1
                continue
            passed += 1
            print(f"{name}:{block.line}: {block.language}: {word}", flush=True)
    print(f"{passed} blocks followed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
