#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that every public name of the C and C++ headers has a description (Doxygen), and every one of the Python
# package a docstring. Arguments: the source folder, the C library.
set -euo pipefail
cd "$1"
command -v doxygen >/dev/null || { echo "doxygen is not here"; exit 77; }
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "needs NumPy: python3-numpy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
docs/doxygen.sh "$work"
[ -s "$work/native/structpfrt__session__api.html" ] || { echo "FAILED: no page of the session's functions"; exit 1; }
export PYFLAME_RT_LIBRARY=$2 PYTHONPATH=capi/python PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 docs/python_pages.py --check

# The check itself must find a header and a class with a name that nobody describes.
mkdir "$work/seeded"
tar -c docs include cxxapi | tar -x -C "$work/seeded"
echo 'typedef struct pfrt_seeded { int number; } pfrt_seeded;' >>"$work/seeded/include/pyflame_rt/types.h"
if "$work/seeded/docs/doxygen.sh" "$work/seeded/out" 2>"$work/said"; then
  echo "FAILED: a struct without a description was not noticed"
  exit 1
fi
grep -q pfrt_seeded "$work/said"
if /usr/bin/python3 -c '
import runpy, sys
import pyflame_rt
del pyflame_rt.Graph.add_node.__doc__
sys.argv = ["docs/python_pages.py", "--check"]
runpy.run_path(sys.argv[0], run_name="__main__")' >"$work/said"; then
  echo "FAILED: a method without a docstring was not noticed"
  exit 1
fi
grep -q "pyflame_rt.Graph.add_node" "$work/said"
echo "names without a description are noticed"
