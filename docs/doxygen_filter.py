#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives Doxygen a header in its own notation. The headers have plain comments: one above what it describes, or behind
it on its line. Argument: the header; the result goes to stdout, line for line.

What a comment says it says of all that is declared on the line it belongs to. A member of a C struct is described too:

- where the comment of the struct or of the functions' table speaks of |member|;
- where the rules of the ABI (include/pyflame_rt/README.md) say once what it is in every struct: struct_size, abi,
  retain, the functions x_count and x_at that walk a list, the x_count beside an array;
- where it is made by a table macro, whose row says what it is.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import List, Set, Tuple

BY_RULE = [(re.compile(pattern), text) for pattern, text in (
    (r"uint32_t struct_size", "Bytes of the struct, set by whoever allocates it; readers take no more."),
    (r"uint32_t abi", "Version for which the struct was filled in: major << 16 | minor."),
    (r"uint32_t reserved", "Always 0."),
    (r"void\* user", "Handed to the functions beside it, untouched."),
    (r"void\* host", "The host's own; not to be looked at."),
    (r"void \(\*retain\)\(\w+\* \w+\)", "Adds a reference."),
    (r"void \(\*release\w*\)\(PFRT_OWN \w+\* \w+\)", "Drops a reference; the last one frees. NULL is allowed."),
    (r"void \(\*release\)\(void\* user\)", "May be NULL. Called once, when nothing else will be called."),
    (r"size_t \(\*(\w+)_count\)\(.*\)", r"Length of the list that \1_at walks."),
    (r"pfrt_status\* \(\*(\w+)_count\)\(.*size_t\* out_count\)", r"Length of the list that \1_at walks."),
    (r"pfrt_status\* \(\*(\w+)_at\)\(.*size_t index,.*\)",
     r"Element \\a index, from 0 on, of \1_count. INVALID_ARGUMENT beyond."),
    (r"pfrt_string \(\*(\w+)_at\)\(.*size_t index\)", r"Element \\a index, from 0 on, of \1_count; empty beyond."),
    (r"(?:size_t|uint32_t|uint64_t) (\w+)_count", r"Length of \1s."),
    (r"\w+_UNSET = 0,?", "Not said."),
    (r"\w+_FORCE32 = 0x7fffffff,?", "Makes the enum 32 bits wide; never a value."),
)]
ROW = re.compile(r"\s*X\((\w+), (\d+), (.*?)\)\s*(?:/\*(.*?)\*/)?\s*\\?$")
SEVERAL = re.compile(r"(\s*)((?:const )?[\w:<>, ]+?[\w>]\*?(?: const)?) (\**\w+(?: = [\w.]+)?(?:, \**\w+(?: = [\w.]+)?)+);")


def parameters(text: str) -> str:
    """|name| is a parameter; words in angle brackets are no HTML."""
    return re.sub(r"\|([\w>*.-]+)\|", r"\\a \1", re.sub(r"<(\w+)>", r"&lt;\1&gt;", text))


def table_rows(lines: List[str], macro: str) -> List[Tuple[str, str, str]]:
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


def split(code: str) -> List[str]:
    """Declarations of one line, each alone; a function's or an enum's is left as it is."""
    found = SEVERAL.fullmatch(code.rstrip())
    if not found or "(" in code:
        return [code]
    indent, kind, names = found.groups()
    return [f"{indent}{kind} {name};" for name in names.split(", ")]


class CHeader:
    """One pass over the lines of a C header."""

    def __init__(self, lines: List[str]) -> None:
        self.lines = lines
        self.out: List[str] = []
        self.above = ""  # the comment that ended on the line before
        self.mentioned: Set[str] = set()  # |names| in the comment of the struct at hand
        self.struct = ""
        self.typedef = ""  # the comment of the last typedef: that of the enum with its values, too

    def rule(self, code: str) -> str:
        """What the ABI's rules or the struct's own comment say of a declaration; empty = nothing."""
        bare = code.strip().rstrip(";")
        for pattern, text in BY_RULE:
            if found := pattern.fullmatch(bare):
                return found.expand(text)
        name = re.search(r"\(\*(\w+)\)|(\w+)$", bare)
        if name and (name[1] or name[2]) in self.mentioned:
            return f"As {self.struct} says above."
        return ""

    def code(self, line: str, behind: str) -> str:
        """A line of code with the comment |behind| it, or what is known of it otherwise."""
        parts = split(line)
        said = behind or (self.above if len(parts) > 1 else "")
        made = []
        for i, part in enumerate(parts):
            text = said if i > 0 or behind else ""
            if not text and not self.above:
                text = self.rule(part)
            made.append(f"{part} /**< {text} */" if text else part)
        return " ".join(made)

    def run(self) -> List[str]:
        at = 0
        while at < len(self.lines):
            at += self.step(at)
        return self.out

    def step(self, at: int) -> int:
        """Writes what becomes of line |at|; how many lines that took."""
        line = self.lines[at]
        if found := re.match(r"#define PFRT_X\(.*\) (\w+)##name = number,", line):
            macro = re.match(r"\s*(PFRT_\w+_TABLE)\(PFRT_X\)", self.lines[at + 1])
            assert macro, line
            self.out += ["", " ".join(f"{found[1]}{name} = {number}, /**< {text}. */"
                                      for name, number, text in table_rows(self.lines, macro[1])), ""]
            self.above = ""
            return 3
        if line.startswith("#define PFRT_") and line.endswith("\\"):
            count = next(i for i, later in enumerate(self.lines[at:]) if not later.endswith("\\")) + 1
            self.out += self.lines[at:at + count]
            self.above = ""
            return count
        start = line.find("/*")
        if start < 0:
            if found := re.match(r"typedef struct (\w+) \{", line):
                self.struct, self.mentioned = found[1], set(re.findall(r"\|(\w+)\|", self.above))
            elif re.match(r"(typedef|#)", line) or not line.strip():
                self.mentioned = set()
            if re.match(r"typedef uint\d+_t ", line):
                self.typedef = self.above
            named = f"/** {parameters(self.typedef)} */ " if line.startswith("enum {") and not self.above else ""
            self.out.append(named + self.code(line, ""))
            self.above = ""
            return 1
        count = next(i for i, later in enumerate(self.lines[at:]) if "*/" in later) + 1
        text = "\n".join(self.lines[at:at + count])
        if at == 0:
            self.out += ["/** @file", *self.lines[1:count]]
        elif re.match(r"\s*/\* ?-{3,}", line):  # a heading, or the version that what follows came with
            self.out += [""] * count
        elif not line[:start].strip():
            self.above = " ".join(re.sub(r"^\s*(/\*+|\*(?!/))|\*/$", "", part.strip()).strip()
                                  for part in text.split("\n"))
            self.out += [parameters(part) for part in text.replace("/*", "/**", 1).split("\n")]
            return count
        else:
            behind = " ".join(re.sub(r"^(/\*+|\*(?!/))|\*/$", "", part.strip()).strip()
                              for part in text[start:].split("\n"))
            self.above = ""
            self.out += [self.code(line[:start], parameters(behind)), *[""] * (count - 1)]
            return count
        self.above = ""
        return count


CXX_BY_RULE = [(re.compile(pattern), text) for pattern, text in (
    (r"static \w+& instance\(\)", "The only one, made when it is first asked for."),
    (r"(?:\w+\(|\w+& operator=\()\w+&&(?: other)?\) noexcept.*", "Moves; what was moved from can only be assigned to."),
    (r"explicit \w+Error\(const std::string& message.*", "With what() and code()."),
    (r"pfrt_\w+\* handle\(\) const.*", "For calls of the C API; lives as long as the object."),
)]


def own_macros(lines: List[str]) -> Set[str]:
    """Macros that are undefined again in the same file: nobody else sees them."""
    return {found[1] for line in lines if (found := re.match(r"#undef (\w+)", line))}


def cxx_header(lines: List[str]) -> List[str]:
    """The lines of a C++ header. A comment above a function is that of its overloads below, too."""
    macros = own_macros(lines)
    out: List[str] = []
    above: List[str] = []  # the comment that ended on the line before
    last, last_text = "", ""  # the function that was described last
    continued = False
    for at, line in enumerate(lines):
        if continued or any(re.match(rf"(#(define|undef) )?{name}\b|\s+PFRT_\w+_TABLE\({name}\)", line) for name in macros):
            continued = line.endswith("\\")
            out.append("")
            continue
        code = line.strip()
        behind = re.match(r'([^"]*(?:"[^"]*"[^"]*)*?[;,{})])\s+//(.*)$', line)
        if at == 0:
            out.append("/// @file")
        elif code.startswith("//"):
            above.append(parameters(code[2:].strip()))
            out.append(parameters(line.replace("//", "///", 1)))
            continue
        elif behind and behind[1].strip() != "}":  # a namespace's end says which
            out.append(" ".join(f"{part} /**< {parameters(behind[2]).strip()} */" for part in split(behind[1])))
        else:
            text = " ".join(above)
            name = re.match(r"\s{0,2}[\w:<>,&*\[\] ]*?\b(\w+)\(", line)
            parts = split(line)
            if name and text:
                last, last_text = name[1], text
            elif name and name[1] == last and last_text:
                out.append(f"/** {last_text} */ {line}")
                above = []
                continue
            elif not text and (rule := next((t for pattern, t in CXX_BY_RULE if pattern.match(code)), "")):
                parts = [f"/** {rule} */ {line}"]
            if text and len(parts) > 1:
                parts = [parts[0], *(f"{part} /**< {text} */" for part in parts[1:])]
            out.append(" ".join(parts))
        above = []
    return out


def main() -> None:
    path = Path(sys.argv[1])
    lines = path.read_text(encoding="utf-8").split("\n")
    print("\n".join(CHeader(lines).run() if path.suffix == ".h" else cxx_header(lines)))


if __name__ == "__main__":
    main()
