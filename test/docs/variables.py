#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/environment_variables.md to the sources: each variable that they read has a row there, and no other has.

A name counts as read where a source asks for it (getenv, os.environ, process.env, "${NAME:-...}"), or has it as a whole
string and it begins with PFRT_ or PYFLAME_RT_, macros of the C headers and options of CMake apart.

usage: variables.py ROOT
"""
import re
import sys
from pathlib import Path
from typing import Dict, Set

FOLDERS = ("bench", "capi", "cmake", "core", "cxxapi", "docs", "plugins", "providers", "samples", "test", ".ci")
SUFFIXES = (".cc", ".h", ".hpp", ".c", ".py", ".js", ".java", ".go", ".rs", ".cs", ".sh", ".bash", "")
READ = [re.compile(pattern) for pattern in (
    r"(?:getenv|Getenv|\bvariable|env::var|GetEnvironmentVariable)\(\s*\"([A-Z][A-Z0-9_]+)\"",
    r"os\.environ(?:\.get\(|\[)\s*[\"']([A-Z][A-Z0-9_]+)[\"'](?!\] = )",
    r"[\"']([A-Z][A-Z0-9_]+)[\"'] (?:not )?in os\.environ",
    r"process\.env\.([A-Z][A-Z0-9_]+)",
    r"\$\{([A-Z][A-Z0-9_]+):?[-=+?]",
    r"[\"']((?:PFRT|PYFLAME_RT)_[A-Z0-9_]+)[\"']",
)]
DEFINED = re.compile(r"#define (PFRT_[A-Z0-9_]+)|\b(PFRT_[A-Z0-9_]+) = ")
ROW = re.compile(r"^\| (`[^|]+`) \|", re.M)
# Set by a test for its own children, or by the system for everyone.
NOT_OURS = {"FAIL_AFTER", "FAIL_WITH", "HOME", "JUMP", "KEEP", "LD_PRELOAD", "PATH", "PFRT_TEST_FORBID_CODE",
            "PFRT_VARIABLE_TEST", "PYFLAME_RT_SOURCE"}
LEAST = 15  # fewer were never read: the check itself would be broken


def read_in(root: Path) -> Dict[str, str]:
    """Each variable that is read, with one of the files that do."""
    defined: Set[str] = set()
    for header in sorted((root / "include").rglob("*.h")):
        for names in DEFINED.findall(header.read_text(encoding="utf-8")):
            defined.update(names)
    found: Dict[str, str] = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file() or path == Path(__file__).resolve():
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            for pattern in READ:
                for name in pattern.findall(text):
                    if name not in defined and name not in NOT_OURS:
                        found.setdefault(name, str(path.relative_to(root)))
    return found


def main(root: Path) -> int:
    page = (root / "docs" / "environment_variables.md").read_text(encoding="utf-8")
    listed = {name for row in ROW.findall(page) for name in re.findall(r"`(\w+)`", row)}
    found = read_in(root)
    faults = [f"{file} reads {name}, which docs/environment_variables.md does not list"
              for name, file in sorted(found.items()) if name not in listed]
    faults += [f"docs/environment_variables.md lists {name}, which nothing reads"
               for name in sorted(listed - found.keys())]
    if len(found) < LEAST:
        faults.append(f"only {len(found)} variables were found: the check itself is broken")
    print("\n".join(faults) or f"{len(found)} variables are on the page")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
