#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tests that no change since a commit can have touched, one a line.

cmake/layers.txt says which folder may include which, and for each test program what it is about and what else it runs.
A program is touched where a file changed of a folder that it is about, runs, or reaches by includes. With --about it is
touched only where a folder changed that it is about, or its own: sanitizers look at code, and need not look at it again
through every layer above. Where a file changed that no line knows (the build, this script), every test is touched.

usage: affected.py [--about] BASE          tests to leave out, as CMake's PYFLAME_RT_LEAVE_OUT takes them
       affected.py --sources FOLDER BASE   sources of the folder that changed, or include something of ours that did, and
                                           those by which threads wait for each other, as PYFLAME_RT_KERNELS_ANEW takes
                                           them
       affected.py --folders BASE          folders that the change reaches
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_layers import INCLUDE, Layers  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
# Text that no test reads, beside what tests of pages name as theirs.
UNREAD = (".ci/base", ".gitignore", ".gitattributes", ".editorconfig", "LICENSE")
SYNCHRONISES = re.compile(r"std::(atomic(_ref)?|(timed_)?mutex|condition_variable|call_once|once_flag)\b")


def changed_files(base):
    """Files that differ from |base|, committed or not; renamed ones by both names."""
    git = ["git", "-C", str(ROOT)]
    names = []
    for command in (["diff", "--name-only", "--no-renames", base], ["ls-files", "--others", "--exclude-standard"]):
        names += subprocess.run([*git, *command], check=True, capture_output=True, text=True).stdout.split("\n")
    return sorted(set(names) - {""})


def is_in(path, folder):
    return path == folder or path.startswith(folder + "/") or folder == "*"


def includes(layers, folder):
    """Every folder that |folder| reaches by includes, itself too."""
    found, open_ = set(), [folder]
    while open_:
        one = open_.pop()
        if one in found:
            continue
        found.add(one)
        for key, allowed in layers.allowed.items():
            if key == one or key.startswith(one + "/") or (key.endswith("/*") and one.startswith(key[:-1])):
                open_ += [a if not a.startswith("pyflame_rt") else "include" for a in allowed]
    return found


def untouched(layers, files, about_only):
    known = {place for about, runs, own in layers.tests.values() for place in (*about, *runs, *own)}
    known |= set(layers.allowed) | {"include"}
    for file in files:
        if file in UNREAD or file.endswith(".md"):
            continue
        if not any(is_in(file, place) for place in known):
            return []
    left = []
    for name, (about, runs, own) in layers.tests.items():
        places = {*about, *own}
        if not about_only:
            places |= set(runs)
            places |= {folder for place in (*about, *runs) for folder in includes(layers, place)}
        if not any(is_in(file, place) for file in files for place in places):
            left.append(name)
    return left


def changed_sources(folder, files):
    """Sources of |folder| that are among |files|, or include one of them through whatever headers.

    The headers of include/ declare what others define, and nearly every source includes them: they make none new.
    Sources that synchronise threads are always among them: ThreadSanitizer, which would not see that threads had waited
    for each other there, would report what they do to memory afterwards.
    """
    found = {}

    def touched(path):
        if path in found:
            return found[path]
        found[path] = path in files  # circles of headers end here
        if not found[path] and (ROOT / path).is_file():
            text = (ROOT / path).read_text(encoding="utf-8")
            found[path] = any(touched(header) for _, header in INCLUDE.findall(text))
        return found[path]

    sources = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.cc"))
    return [source for source in sources if touched(source) or synchronises(source)]


def synchronises(source):
    """Whether the source, its own header or one that these include has something by which threads wait for each other."""
    own = [text_of(source), text_of(Path(source).with_suffix(".h"))]
    included = [text_of(header) for text in own for _, header in INCLUDE.findall(text)]
    return any(SYNCHRONISES.search(text) for text in own + included)


def text_of(path):
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def main(arguments):
    folder = ""
    if "--sources" in arguments[:-1]:
        at = arguments.index("--sources")
        folder = arguments.pop(at + 1)
        arguments.pop(at)
    flags = [a for a in arguments if a.startswith("--")]
    bases = [a for a in arguments if not a.startswith("--")]
    if len(bases) != 1 or set(flags) - {"--about", "--folders"}:
        sys.exit(__doc__.split("\n\n")[-1])
    layers = Layers(ROOT / "cmake" / "layers.txt")
    files = changed_files(bases[0])
    if folder:
        print(";".join(changed_sources(folder, set(files))))
    elif "--folders" in flags:
        changed = {layers.folder(file)[0] or str(Path(file).parent) for file in files}
        reached = {key for key in layers.allowed
                   if any(is_in(c, f) or is_in(f, c) for c in changed for f in includes(layers, key))}
        print("\n".join(sorted(changed | reached)))
    else:
        print(";".join(untouched(layers, files, "--about" in flags)))


if __name__ == "__main__":
    main(sys.argv[1:])
