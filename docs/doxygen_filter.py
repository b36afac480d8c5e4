#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives Doxygen a header in its own notation. The headers have plain comments: one above what it describes, or behind
it on its line. Argument: the header; the result goes to stdout, line for line.

Members that the ABI's rules explain once for all structs (struct_size, abi, reserved, user, ...) get that sentence, and
enumerators that a table macro makes are written out with the table's text.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

# What include/pyflame_rt/README.md says of every struct, enum and table that has such a member.
BY_RULE = {
    r"uint32_t struct_size;": "Bytes of the struct, set by whoever allocates it; readers take no more.",
    r"uint32_t abi;": "Version that the struct was filled in for, major << 16 | minor.",
    r"uint32_t reserved;": "Always 0.",
    r"void\* user;": "Handed to every function of this struct, untouched.",
    r"void\* host;": "The host's own; not to be looked at.",
    r"void \(\*retain\)\(\w+\* \w+\);": "Adds a reference.",
    r"void \(\*release\)\(PFRT_OWN \w+\* \w+\);": "Drops a reference; the last one frees. NULL is allowed.",
    r"\w+_UNSET = 0,?": "Not said.",
    r"\w+_FORCE32 = 0x7fffffff,?": "Makes the enum 32 bits wide; never a value.",
}
RULES = [(re.compile(rf"\s*{pattern}(\s*}};)?"), text) for pattern, text in BY_RULE.items()]
ROW = re.compile(r"\s*X\((\w+), (\d+), (.*?)\)\s*(?:/\*(.*?)\*/)?\s*\\?$")


def parameters(text: str) -> str:
    """|name| is a parameter."""
    return re.sub(r"\|([\w>*.-]+)\|", r"\\a \1", text)


def table_rows(lines: list[str], macro: str) -> list[tuple[str, str, str]]:
    """Name, number and description of each row X(...) of a table macro."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"#define {macro}(X)"))
    rows = []
    for line in lines[start + 1:]:
        found = ROW.match(line)
        if found is None:
            break
        name, number, rest, remark = found.groups()
        fields = [field.strip().strip('"') for field in rest.split(",")]
        if len(fields) == 1:
            text = f'"{fields[0]}"' + (f": {remark.strip()}" if remark else "")
        else:  # of element types: the guide's number, bits, name, ONNX's name
            text = f'"{fields[2]}", {fields[1]} bits an element; {fields[0]} in C++ and Python'
        rows.append((name, number, text))
    return rows


def c_header(lines: list[str]) -> list[str]:
    out: list[str] = []
    inside = False
    expanding = ""
    for at, line in enumerate(lines):
        if found := re.match(r"#define PFRT_X\(.*\) (\w+)##name = number,", line):
            expanding = found[1]
            out.append("")
        elif expanding and (found := re.match(r"\s*(PFRT_\w+_TABLE)\(PFRT_X\)", line)):
            out.append(" ".join(f"{expanding}{name} = {number}, /**< {text}. */"
                                for name, number, text in table_rows(lines, found[1])))
        elif line.startswith("#undef PFRT_X"):
            expanding = ""
            out.append("")
        elif line.startswith("#define PFRT_") and line.endswith("\\"):
            out.append(line)
        elif inside:
            out.append(parameters(line))
            inside = "*/" not in line
        elif at == 0:
            out.append("/** @file")
            inside = True
        elif re.match(r"\s*/\* ?-{3,}", line):  # a heading, or the version that what follows came with
            out.append("")
            inside = "*/" not in line
        elif line.lstrip().startswith("/*"):
            out.append(parameters(line.replace("/*", "/**", 1)))
            inside = "*/" not in line
        elif "/*" in line:
            out.append(parameters(line.replace("/*", "/**<", 1)))
            inside = "*/" not in line
        else:
            # More than one on a line belongs to an enum that fits there.
            rule = next((text for pattern, text in RULES if pattern.fullmatch(line)), None)
            out.append(f"{line} /**< {rule} */" if rule and "};" not in line else line)
    return out


def cxx_header(lines: list[str]) -> list[str]:
    out: list[str] = []
    for at, line in enumerate(lines):
        if at == 0:
            out.append("/// @file")
        elif line.lstrip().startswith("//"):
            out.append(parameters(line.replace("//", "///", 1)))
        elif found := re.match(r'([^"]*(?:"[^"]*"[^"]*)*?[;,{})]  )//(.*)$', line):
            out.append(f"{found[1]}///<{parameters(found[2])}")
        else:
            out.append(line)
    return out


def main() -> None:
    path = Path(sys.argv[1])
    lines = path.read_text(encoding="utf-8").split("\n")
    print("\n".join((c_header if path.suffix == ".h" else cxx_header)(lines)))


if __name__ == "__main__":
    main()
