#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts comments that open with a fragment instead of a sentence, and fails where there are more than LIMIT.

A comment that opens with "Of", "What" or "Those" and the like has, nearly always, no verb of its own: a reader has to
find what it belongs to. A run of lines that are nothing but comment counts as one comment, and so does one behind code.
Sources of C++ and C, headers and Python are read.

usage: check_comments.py [--list] [PATH...]    (default: the whole tree)
"""

import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 100  # It is only ever lowered.
OPENINGS = ("Of What Who That Those As Likewise Whose Which One By From Where How").split()
FRAGMENT = re.compile(r"(?:%s|The same)\b(?!')" % "|".join(OPENINGS))


def lines_of_cpp(text):
    """(line, column, words, whether nothing stands before it) of each // comment; strings and /* */ are passed over."""
    token = re.compile(r'R"([^( ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
    for found in token.finditer(text):
        words = found.group()
        if words.startswith("//"):
            start = text.rfind("\n", 0, found.start()) + 1
            before = text[start : found.start()]
            yield text.count("\n", 0, start) + 1, len(before), words.lstrip("/").lstrip("<").strip(), not before.strip()
        elif words.startswith("/*"):
            start = text.rfind("\n", 0, found.start()) + 1
            first = text.count("\n", 0, start) + 1
            alone = not text[start : found.start()].strip()
            for number, part in enumerate(words[2:-2].split("\n")):
                yield first + number, found.start() - start, part.strip().lstrip("*<!").strip(), alone


def lines_of_python(path):
    with open(path, "rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                yield line, column, token.string.lstrip("#").strip(), not token.line[:column].strip()


def comments(path):
    """(line, first words) of each comment: lines that follow each other in one column are one, up to an empty line."""
    lines = lines_of_python(path) if path.suffix == ".py" else lines_of_cpp(path.read_text(encoding="utf-8"))
    last = None
    for number, column, words, alone in lines:
        goes_on = last is not None and number == last[0] + 1 and column == last[1] and last[2]
        if words and not goes_on:
            yield number, words
        last = (number, column, bool(words)) if words or not alone else None


def sources(paths):
    """Names of the files to read, by git where there is a checkout; builds are passed over."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths],
                            cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.split("\n")
    else:
        found = (path.relative_to(ROOT) for folder in paths for path in sorted((ROOT / folder).rglob("*")))
        names = [path.as_posix() for path in found if not path.parts[0].startswith(("build", "."))]
    for name in names:
        if name.endswith((".cc", ".h", ".hpp", ".c", ".py")) and (ROOT / name).is_file():
            yield name


def main(arguments):
    listing = "--list" in arguments
    paths = [argument for argument in arguments if argument != "--list"] or ["."]
    total, fragments = 0, []
    for name in sources(paths):
        for line, words in comments(ROOT / name):
            total += 1
            if FRAGMENT.match(words):
                fragments.append(f"{name}:{line}: {words}")
    if listing or len(fragments) > LIMIT:
        print("\n".join(fragments))
    print(f"{len(fragments)} of {total} comments open with a fragment; at most {LIMIT} may")
    return len(fragments) > LIMIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
