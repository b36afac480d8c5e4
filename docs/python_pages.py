#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of the Python package's public names, from its docstrings. The package must be importable.

usage: python_pages.py FOLDER    writes a page a module and an index there
       python_pages.py --check   lists public names without a docstring, and fails when there are any
"""
from __future__ import annotations

import enum
import html
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any, Iterator, List, Tuple

MODULES = ("pyflame_rt", "pyflame_rt.backend", "pyflame_rt.batching", "pyflame_rt.cache", "pyflame_rt.custom",
           "pyflame_rt.import_module", "pyflame_rt.memory", "pyflame_rt.opt", "pyflame_rt.partition",
           "pyflame_rt.partition.wse", "pyflame_rt.streaming", "pyflame_rt.tuning", "pyflame_rt.onnxruntime")
STYLE = """body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
h2 { border-top: 1px solid #ccc; padding-top: 1em } h3 { margin: 1.2em 0 0 }
code, pre { font-family: monospace; font-size: 14px } pre { margin: .3em 0 0 1.5em; white-space: pre-wrap }
a { color: #06c; text-decoration: none }"""


def public_names(module: Any) -> Iterator[Tuple[str, Any]]:
    """What a program may take from the module: __all__, or else what is defined there."""
    names = getattr(module, "__all__", None)
    for name in sorted(names if names is not None else vars(module)):
        value = getattr(module, name)
        if names is not None or not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
            if not inspect.ismodule(value):
                yield name, value


def members(cls: type) -> Iterator[Tuple[str, Any]]:
    """The public methods and properties of a class that are written in this package, members of enums aside."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        value = inspect.getattr_static(cls, name)
        if name.startswith("_") or not owner.__module__.startswith("pyflame_rt") or isinstance(value, enum.Enum):
            continue
        if callable(value) or isinstance(value, (property, classmethod, staticmethod)):
            yield name, value


def doc_of(value: Any) -> str:
    """The docstring of the thing itself; that of a base class is of another thing."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    return inspect.cleandoc(value.__doc__ or "") if "__doc__" in dir(value) else ""


def own_doc(cls: type) -> str:
    doc = vars(cls).get("__doc__")
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def attributes(cls: type) -> List[Tuple[str, str]]:
    """The public attributes that a class declares, and the comment behind each in the source; "" where there is none."""
    source = inspect.getsource(cls)
    found = []
    for name in vars(cls).get("__annotations__", {}):
        comment = re.search(rf"^    {name}: .*?  # (.*)$", source, flags=re.M)
        if not name.startswith("_"):
            found.append((name, comment[1] if comment else ""))
    return found


def undocumented() -> List[str]:
    """Full names of what has no docstring, or of an attribute with no comment that its class's docstring leaves out."""
    found = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        if not doc_of(module):
            found.append(module_name)
        for name, value in public_names(module):
            full = f"{module_name}.{name}"
            if inspect.isclass(value):
                doc = own_doc(value)
                found += [full] if not doc else []
                found += [f"{full}.{attribute}" for attribute, comment in attributes(value)
                          if not comment and not re.search(rf"\b{attribute}\b", doc)]
                found += [f"{full}.{member}" for member, thing in members(value) if not doc_of(thing)]
            elif callable(value) and not doc_of(value):
                found.append(full)
    return sorted(set(found))


def signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        return name
    try:
        text = str(inspect.signature(value.__func__ if isinstance(value, (classmethod, staticmethod)) else value))
    except (TypeError, ValueError):
        return name
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are kept as they are written
    return name + text.replace("(self, ", "(").replace("(self)", "()").replace("(cls, ", "(").replace("(cls)", "()")


def entry(level: int, title: str, anchor: str, doc: str) -> str:
    return (f"<h{level} id='{html.escape(anchor)}'><code>{html.escape(title)}</code></h{level}>\n"
            f"<pre>{html.escape(doc)}</pre>\n")


def page(module_name: str) -> str:
    """The HTML page of one module."""
    module = importlib.import_module(module_name)
    names = list(public_names(module))
    out = [f"<!doctype html><meta charset='utf-8'><title>{module_name}</title><style>{STYLE}</style>",
           f"<p><a href='index.html'>Python</a></p><h1>{module_name}</h1><pre>{html.escape(doc_of(module))}</pre><p>",
           " · ".join(f"<a href='#{name}'>{name}</a>" for name, _ in names), "</p>"]
    for name, value in names:
        if inspect.isclass(value):
            kind = "exception" if issubclass(value, BaseException) else "class"
            shown = name if issubclass(value, (BaseException, enum.Enum)) else signature(name, value)
            out.append(entry(2, f"{kind} {shown}", name, own_doc(value)))
            if issubclass(value, enum.Enum):
                rows = "\n".join(f"{item.name} = {item.value!r}" for item in value)
                out.append(f"<pre>{html.escape(rows)}</pre>")
            commented = "\n".join(f"{name}: {comment}" for name, comment in attributes(value) if comment)
            out += [f"<pre>{html.escape(commented)}</pre>"] if commented else []
            for member, thing in members(value):
                out.append(entry(3, signature(member, thing), f"{name}.{member}", doc_of(thing)))
        else:
            doc = doc_of(value) if callable(value) else ""
            out.append(entry(2, signature(name, value) if callable(value) else f"{name} = {value!r}", name, doc))
    return "\n".join(out)


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = undocumented()
        for name in found:
            print(f"{name} has no docstring, or is left out of its class's")
        print(f"{len(found)} public names of Python are not documented" if found else
              "every public name of Python is documented")
        return 1 if found else 0
    folder = Path(sys.argv[1])
    for module_name in MODULES:
        (folder / f"{module_name}.html").write_text(page(module_name), encoding="utf-8")
    rows = "".join(f"<li><a href='{name}.html'>{name}</a>: {html.escape(doc_of(importlib.import_module(name)).split(chr(10))[0])}"
                   for name in MODULES)
    (folder / "index.html").write_text(f"<!doctype html><meta charset='utf-8'><title>PyFlameRT for Python</title>"
                                       f"<style>{STYLE}</style><h1>PyFlameRT for Python</h1><ul>{rows}</ul>",
                                       encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
