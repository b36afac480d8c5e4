#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pyflame_rt/_core/abi.py, the C ABI's structs and constants for ctypes, from the headers.

With --check nothing is written, and the exit code says whether the file is what would be.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from pycparser import c_ast, c_parser

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(__file__).resolve().parent / "pyflame_rt" / "_core" / "abi.py"
HEADERS = ["pyflame_rt/pyflame_rt.h", "pyflame_rt/custom.h"]
# Stand-ins for the standard headers, which no parser need see.
STANDARD = {
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void*)0)\n",
    "stdint.h": "".join(f"typedef int {n};\n" for n in (
        "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t").split()),
}
POINTER_SIZE = 8
SCALARS = {
    "size_t": "c_size_t", "int64_t": "c_int64", "uint64_t": "c_uint64", "int32_t": "c_int32",
    "uint32_t": "c_uint32", "uint8_t": "c_uint8", "float": "c_float", "double": "c_double", "int": "c_int",
    "char": "c_char",
}


def parse():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STANDARD.items():
            Path(folder, name).write_text(text)
        source = "".join(f'#include "{h}"\n' for h in HEADERS)
        command = ["cc", "-E", "-P", "-nostdinc", "-I", folder, "-I", str(ROOT / "include"), "-x", "c", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    text = done.stdout.replace('__attribute__((visibility("default")))', "")
    return c_parser.CParser().parse(text)


class Writer:
    def __init__(self):
        self.aliases = dict(SCALARS)  # C name -> Python expression
        self.lines = []

    def type(self, node):
        """The ctypes expression of a declared type."""
        if isinstance(node, c_ast.TypeDecl):
            return self.type(node.type)
        if isinstance(node, c_ast.IdentifierType):
            name = " ".join(node.names)
            return "None" if name == "void" else self.aliases[name]
        if isinstance(node, (c_ast.Struct, c_ast.Enum)):
            return self.aliases[node.name]
        if isinstance(node, c_ast.PtrDecl):
            if isinstance(node.type, c_ast.FuncDecl):
                return self.function(node.type)
            return "c_void_p"
        if isinstance(node, c_ast.ArrayDecl):
            return f"{self.type(node.type)} * {node.dim.value}"
        raise TypeError(type(node))

    def function(self, node):
        args = [] if node.args is None else [self.type(p.type) for p in node.args.params]
        # A function may be left out, which CFUNCTYPE does not allow.
        args = ["c_void_p" if a.startswith("CFUNCTYPE") else a for a in args if a != "None"]
        return f"CFUNCTYPE({', '.join([self.type(node.type), *args])})"

    def table(self, name, decls):
        """A table of functions: signatures by name, of which ctypes makes a function when it is first asked for."""
        self.lines += ["", "", f"{name[len('pfrt_'):].upper()} = {{"]
        for index, d in enumerate(decls):
            if isinstance(d.type, c_ast.PtrDecl) and isinstance(d.type.type, c_ast.FuncDecl):
                offset = POINTER_SIZE * (index - 1)  # struct_size and abi are 4 bytes each
                self.lines.append(f'    "{d.name}": ({offset}, {self.type(d.type)[len("CFUNCTYPE("):-1]}),')
        self.lines.append("}")

    def struct(self, name, decls):
        if name.endswith("_api") and name != "pfrt_api":
            self.table(name, decls)
            return
        python = name[len("pfrt_"):].title().replace("_", "")
        self.aliases[name] = python
        self.lines += ["", "", f"class {python}(Structure):"]
        self.lines.append("    _fields_ = [")
        self.lines += [f'        ("{d.name}", {self.type(d.type)}),' for d in decls]
        self.lines.append("    ]")

    def enum(self, node):
        value = -1
        for item in node.values.enumerators:
            value = value + 1 if item.value is None else evaluate(item.value)
            if not item.name.endswith("_FORCE32"):
                self.lines.append(f"{item.name[len('PFRT_'):]} = {value}")

    def typedef(self, node):
        if node.name in SCALARS:
            return
        inner = node.type
        if isinstance(inner, c_ast.TypeDecl) and isinstance(inner.type, c_ast.Struct):
            struct = inner.type
            if struct.decls:
                self.struct(node.name, struct.decls)
            return
        self.aliases[node.name] = self.type(inner)
        if self.aliases[node.name].startswith("CFUNCTYPE"):
            python = node.name[len("pfrt_"):].title().replace("_", "")
            self.lines += ["", "", f"{python} = {self.aliases[node.name]}"]

    def write(self, tree):
        for node in tree.ext:
            if isinstance(node, c_ast.Typedef):
                self.typedef(node)
            elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Enum):
                self.lines += ["", ""] if self.lines and not self.lines[-1].count(" = ") else [""]
                self.enum(node.type)
        return "\n".join(self.lines)


def evaluate(node):
    if isinstance(node, c_ast.Constant):
        return int(node.value.rstrip("uUlL"), 0)
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
        return -evaluate(node.expr)
    if isinstance(node, c_ast.BinaryOp) and node.op == "<<":
        return evaluate(node.left) << evaluate(node.right)
    raise TypeError(type(node))


def abi_version():
    """(major, minor) of types.h"""
    found = {}
    for line in (ROOT / "include/pyflame_rt/types.h").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "#define" and words[1] in ("PFRT_ABI_MAJOR", "PFRT_ABI_MINOR"):
            found[words[1]] = int(words[2].rstrip("u"))
    return found["PFRT_ABI_MAJOR"], found["PFRT_ABI_MINOR"]


def dtypes():
    """Rows of PFRT_DTYPE_TABLE: (ONNX's number, the guide's number, bits, name, ONNX's name)."""
    text = (ROOT / "include/pyflame_rt/types.h").read_text()
    table = text[text.index("#define PFRT_DTYPE_TABLE"):text.index("typedef uint32_t pfrt_dtype;")]
    for line in table.splitlines():
        if line.strip().startswith("X("):
            cells = [c.strip().strip('"') for c in line[line.index("(") + 1:line.rindex(")")].split(",")]
            yield int(cells[1]), int(cells[2]), int(cells[3]), cells[4], cells[5]


def numbers():
    """Lines for the macros that are numbers: PFRT_NO_NODE and its like."""
    for header in ("types.h", "plugin.h", "pyflame_rt.h", "custom.h"):
        for line in (ROOT / "include/pyflame_rt" / header).read_text().splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == "#define" and words[2] in ("0xffffffffu", "UINT32_MAX"):
                yield f"{words[1][len('PFRT_'):]} = 0xffffffff\n"


def generate():
    writer = Writer()
    body = writer.write(parse())
    major, minor = abi_version()
    rows = "".join(f"    {row},\n" for row in dtypes())
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        '"""The C ABI\'s structs and constants, written from the headers by generate.py; not to be edited."""\n'
        "from ctypes import (CFUNCTYPE, Structure, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32,\n"
        "                    c_uint64, c_void_p)\n\n"
        f"ABI_VERSION = {major} << 16 | {minor}\n"
        "# ONNX's number, the guide's number, bits, name, ONNX's name\n"
        f"DTYPES = (\n{rows})\n"
        f"{''.join(numbers())}"
        f"{body}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    text = generate()
    if not args.check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        sys.exit(f"{TARGET} is not what the headers say: run capi/python/generate.py")


if __name__ == "__main__":
    main()
