# SPDX-License-Identifier: Apache-2.0
"""``python3 -m pyflame_rt`` is the tool ``pfrt``, of the wheel or of the build that the library is of."""
import os
import sys
from pathlib import Path

from pyflame_rt._core import library

_TOOL = "pfrt"


def main() -> None:
    own, lib = Path(__file__).resolve().parent / "bin" / _TOOL, Path(library.path).resolve()
    for tool in (own, *(folder / "bin" / _TOOL for folder in lib.parents[1:3])):
        if tool.is_file():
            folders = [str(lib.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            sys.stdout.flush()
            os.execve(tool, [_TOOL, *sys.argv[1:]], {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)})
    sys.exit(f"pyflame_rt: there is no {_TOOL} beside {lib}; build it (PYFLAME_RT_BUILD_TOOL) or install it there")


if __name__ == "__main__":
    main()
