# SPDX-License-Identifier: Apache-2.0
"""``python3 -m pyflame_rt.onnxruntime SCRIPT [ARGUMENT...]`` runs a program for which this package is ``onnxruntime``."""
import runpy
import sys
from pathlib import Path

from pyflame_rt.onnxruntime._install import install_as_onnxruntime

_USAGE = """usage: python3 -m pyflame_rt.onnxruntime SCRIPT [ARGUMENT...]
       python3 -m pyflame_rt.onnxruntime -m MODULE [ARGUMENT...]

Runs a program for which 'import onnxruntime' imports pyflame_rt.onnxruntime."""


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    is_module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + is_module:
        sys.exit(_USAGE)
    install_as_onnxruntime()
    if is_module:
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not Path(arguments[0]).exists():
        sys.exit(f"python3 -m pyflame_rt.onnxruntime: there is no file '{arguments[0]}'\n{_USAGE}")
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


main()
