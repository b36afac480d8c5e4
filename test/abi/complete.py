# SPDX-License-Identifier: Apache-2.0
"""Every struct of the C headers and every number that they define is held in place by layout_test.c.

A number that nobody wrote down could change unseen: its row is missing here before that can happen. Argument: the folder
of the headers.
"""
import re
import sys
from pathlib import Path

HEADERS = ("types", "pyflame_rt", "plugin", "custom")
LEAST = 80  # structs, and numbers: fewer were never there, and the check itself would be broken


def struct_members(text):
    """(struct, its last member) of each struct."""
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \w+;", text, re.S):
        last = body.strip().rstrip(";").split(";")[-1]
        function = re.search(r"\(\*(\w+)\)", last)
        yield name, function[1] if function else re.search(r"(\w+)(?:\[\w+\])?$", last.strip())[1]


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


def main(folder):
    text = "".join((Path(folder) / f"{name}.h").read_text(encoding="utf-8") for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    layout = (Path(__file__).parent / "layout_test.c").read_text(encoding="utf-8")
    ends = dict(re.findall(r"PFRT_ENDS\((\w+), (\w+),", layout))
    sizes = set(re.findall(r"PFRT_SIZE\((\w+),", layout))
    held = set(re.findall(r"PFRT_IS\((\w+),", layout))
    structs, names = dict(struct_members(text)), set(numbers(text))
    faults = [f"{name}: PFRT_ENDS names {ends.get(name, 'no member')}, its last member is {last}"
              for name, last in structs.items() if ends.get(name) != last]
    faults += [f"{name}: no PFRT_SIZE" for name in structs if name not in sizes]
    faults += [f"{name}: no PFRT_IS" for name in sorted(names - held)]
    if min(len(structs), len(names)) < LEAST:
        faults.append(f"only {len(structs)} structs and {len(names)} numbers were found: the check itself is broken")
    print("\n".join(faults) or f"{len(structs)} structs and {len(names)} numbers are held by layout_test.c")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
