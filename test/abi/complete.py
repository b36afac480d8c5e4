# SPDX-License-Identifier: Apache-2.0
"""What the C headers define is held by tests, and structs can grow as the README beside the headers says.

Every struct and every number is held in place by layout_test.c: a number that nobody wrote down could change unseen.
Every number also occurs in another test, which shows what it means. No struct that may grow is part of another one, and
each has a row in core/base/abi/first_version.h with the last member that layout_test.c has for its first version.
Argument: the folder of the headers.
"""
import re
import sys
from pathlib import Path

HEADERS = ("types", "pyflame_rt", "plugin", "custom")
LEAST = 80  # structs, and numbers: fewer were never there, and the check itself would be broken
ROOT = Path(__file__).parents[2]
TESTS = (".c", ".cc", ".h", ".hpp", ".py")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def struct_bodies(text):
    return re.findall(r"typedef struct (\w+) \{(.*?)\n\} \w+;", text, re.S)


def last_member(body):
    last = body.strip().rstrip(";").split(";")[-1]
    function = re.search(r"\(\*(\w+)\)", last)
    return function[1] if function else re.search(r"(\w+)(?:\[\w+\])?$", last.strip())[1]


def frozen_structs(text):
    """Those whose comment, right before them, has the word."""
    return {name for comment, name in re.findall(r"/\*((?:(?!\*/).)*)\*/\s*typedef struct (\w+) \{", text, re.S)
            if re.search(r"\bfrozen\b", comment, re.I)}


def numbers(text):
    """Each constant of an enum, those of tables included."""
    for body in re.findall(r"\benum \{(.*?)\}", text, re.S):
        for prefix, table in re.findall(r"#define PFRT_X\(.*?\) (PFRT_\w+?)##name = number,\s*(PFRT_\w+_TABLE)", body):
            rows = re.search(rf"#define {table}\(X\)((?:.*\\\n)*.*)", text)[1]
            yield from (prefix + name for name in re.findall(r"\bX\((\w+),", rows))
        plain = re.sub(r"^\s*#.*$|PFRT_\w+_TABLE\(.*?\)", "", body, flags=re.M)
        yield from (name for name in re.findall(r"\b(PFRT_[A-Z0-9_]+)\b(?=\s*(?:=|,|$))", plain)
                    if not name.endswith("_FORCE32"))
    yield from re.findall(r"#define (PFRT_(?!ABI_)[A-Z0-9_]+) (?:UINT\d+_MAX|0x\w+|\d+u?)$", text, re.M)


def names_in_tests():
    """The names that occur in tests, but for those that only hold numbers in place."""
    out = set()
    for path in (ROOT / "test").rglob("*"):
        if path.suffix in TESTS and path.name != "layout_test.c":
            out.update(re.findall(r"\bPFRT_\w+", path.read_text(encoding="utf-8", errors="replace")))
    return out


def faults_of_growth(structs, frozen, ends, firsts, readme):
    """What is wrong with how structs may grow. |ends| are the rows of layout_test.c, |firsts| those of first_version.h."""
    may_grow = {name for name in structs if name not in frozen}
    for name, body in structs.items():
        for member in re.split(r"[;(,]", body):
            by_value = re.match(r"\s*(?:const )?(?:struct )?(pfrt_\w+) (?!\*)\w", member)
            if by_value and by_value[1] in may_grow:
                yield f"{name}: {by_value[1]}, which may grow, is part of it; point to it"
    listed = re.search(r"\*\*Frozen\*\* are (.*?):", readme, re.S)
    if not listed or set(re.findall(r"`(pfrt_\w+)`", listed[1])) != frozen:
        yield f"README.md has other frozen structs than the headers: {', '.join(sorted(frozen))}"
    first_ends = {}
    for name, member in ends:
        first_ends.setdefault(name, member)
    for name in sorted(may_grow):
        if name.endswith("_api"):  # a library's own tables, which it never reads
            continue
        if firsts.get(name) != first_ends.get(name):
            yield (f"{name}: first_version.h ends at {firsts.get(name, 'no member')}, "
                   f"layout_test.c at {first_ends.get(name)}")


def main(folder):
    whole = "".join((Path(folder) / f"{name}.h").read_text(encoding="utf-8") for name in HEADERS)
    text = without_comments(whole)
    layout = (Path(__file__).parent / "layout_test.c").read_text(encoding="utf-8")
    first_version = (ROOT / "core/base/abi/first_version.h").read_text(encoding="utf-8")
    readme = (ROOT / "include/pyflame_rt/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"PFRT_ENDS\((\w+), (\w+),", layout)
    ends = dict(rows)
    sizes = set(re.findall(r"PFRT_SIZE\((\w+),", layout))
    held = set(re.findall(r"PFRT_IS\((\w+),", layout))
    structs, names = dict(struct_bodies(text)), set(numbers(text))
    faults = [f"{name}: PFRT_ENDS names {ends.get(name, 'no member')}, its last member is {last_member(body)}"
              for name, body in structs.items() if ends.get(name) != last_member(body)]
    faults += [f"{name}: no PFRT_SIZE" for name in structs if name not in sizes]
    faults += [f"{name}: no PFRT_IS" for name in sorted(names - held)]
    faults += [f"{name}: no test but layout_test.c has it" for name in sorted(names - names_in_tests())]
    faults += faults_of_growth(structs, frozen_structs(whole), rows,
                               dict(re.findall(r"PFRT_FIRST\((\w+), (\w+)\)", first_version)), readme)
    if min(len(structs), len(names)) < LEAST:
        faults.append(f"only {len(structs)} structs and {len(names)} numbers were found: the check itself is broken")
    print("\n".join(faults) or f"{len(structs)} structs and {len(names)} numbers are held by tests")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
