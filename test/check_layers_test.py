# SPDX-License-Identifier: Apache-2.0
"""check_layers.py finds what is planted in a small tree: circles and arrows back up, of includes and of imports."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True  # the sources may be read-only
import check_layers  # noqa: E402

PACKAGE = check_layers.PACKAGE
LAYERS = f"""core/low:
core/high: core/low
{PACKAGE}: {PACKAGE}
{PACKAGE}/_low:
{PACKAGE}/_high: {PACKAGE}/_low
{PACKAGE}/_front: {PACKAGE}/_low
{PACKAGE}/top: {PACKAGE}/_high
"""
TREE = {
    "cmake/layers.txt": LAYERS,
    "core/low/a.h": "#include <vector>\n",
    "core/high/b.cc": '#include "core/low/a.h"\n',
    f"{PACKAGE}/__init__.py": "from . import _low, top\nfrom ._high.b import two\n",
    f"{PACKAGE}/top.py": "import os\nfrom ._high.b import two\n",
    f"{PACKAGE}/_low/__init__.py": "",
    f"{PACKAGE}/_low/a.py": "one = 1\n",
    f"{PACKAGE}/_low/c.py": "from . import a\n",
    f"{PACKAGE}/_high/__init__.py": "",
    f"{PACKAGE}/_high/b.py": "import numpy\nfrom .._low.a import one\nfrom pyflame_rt._low import c\ntwo = 2\n",
    f"{PACKAGE}/_front/__init__.py": "from ._inner import three\nfrom . import more\n",
    f"{PACKAGE}/_front/_inner.py": "three = 3\n",
    f"{PACKAGE}/_front/more/__init__.py": "from .._inner import three\n",
}
CIRCLE = f"a circle of 2: {PACKAGE}/_low/a {PACKAGE}/_low/c"
UP = f"{PACKAGE}/_low/a.py:1: {PACKAGE}/_high/b: {PACKAGE}/_low may import only itself"
# Each pair is what is planted, by file, and the beginnings of the faults that this brings.
PLANTED = [
    ({}, []),
    ({f"{PACKAGE}/_low/a.py": "from . import c\n"}, [CIRCLE]),
    ({f"{PACKAGE}/_low/a.py": "from pyflame_rt._low.c import one\n"}, [CIRCLE]),
    ({f"{PACKAGE}/_low/a.py": "import pyflame_rt._low.c\n"}, [CIRCLE]),
    ({f"{PACKAGE}/_low/a.py": "def late():\n    from .c import one\n    return one\n"}, [CIRCLE]),
    ({f"{PACKAGE}/_low/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .c import one\n"},
     [CIRCLE]),
    ({f"{PACKAGE}/_front/_inner.py": "from . import three\n"},
     [f"a circle of 3: {PACKAGE}/_front/__init__ {PACKAGE}/_front/_inner "]),
    ({f"{PACKAGE}/_low/a.py": "from .._high.b import two\n"},
     [f"{PACKAGE}/_low/a.py:1: {PACKAGE}/_high/__init__: ", UP, f"a circle of 3: {PACKAGE}/_high/b ",
      f"a circle of 2: {PACKAGE}/_high {PACKAGE}/_low"]),
    ({f"{PACKAGE}/top.py": "from ._low import a\n"},
     [f"{PACKAGE}/top.py:1: {PACKAGE}/_low/__init__: {PACKAGE}/top may import only itself and {PACKAGE}/_high",
      f"{PACKAGE}/top.py:1: {PACKAGE}/_low/a: "]),
    ({f"{PACKAGE}/other.py": "from ._low import a\n"},
     [f"{PACKAGE}/other.py:1: {PACKAGE}/_low/__init__: cmake/layers.txt has no line for this folder or module",
      f"{PACKAGE}/other.py:1: {PACKAGE}/_low/a: cmake/layers.txt has no line"]),
    ({"core/low/a.h": '#include "core/high/b.h"\n', "core/high/b.h": ""},
     ["core/low/a.h:1: core/high/b.h: core/low may include only itself", "a circle of 2: core/high/b core/low/a",
      "a circle of 2: core/high core/low"]),
]


def faults_of(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        layers = check_layers.Layers(os.path.join(root, "cmake", "layers.txt"))
        return check_layers.check_includes(layers, root)[0] + check_layers.check_imports(layers, root)[0]


def main():
    for planted, expected in PLANTED:
        found = faults_of({**TREE, **planted})
        assert len(found) == len(expected), (planted, found)
        for fault, start in zip(found, expected):
            assert fault.startswith(start), (planted, fault, start)
    print(f"{len(PLANTED) - 1} planted faults are found, and none without them")


if __name__ == "__main__":
    main()
