#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package against a library. Arguments: the source folder, the library in its build folder.
set -euo pipefail
cd "$1"
export PYFLAME_RT_LIBRARY=$2 PFRT_TEST_IMPORTERS=${2%/lib/*}/test/plugins/importers/lib PYTHONPATH=$1/capi/python:$1/test/python PYTHONDONTWRITEBYTECODE=1
python=/usr/bin/python3 others=()
"$python" -c 'import numpy, pytest' 2>/dev/null || { echo "needs NumPy and pytest: python3-numpy, python3-pytest"; exit 77; }
if grep -q __tsan_func_entry "$PYFLAME_RT_LIBRARY"; then
  echo "an interpreter that is not built for it cannot load a library with ThreadSanitizer"
  exit 77
fi
if "$python" -c 'import pycparser' 2>/dev/null; then
  "$python" capi/python/generate.py --check
else
  echo "pycparser is not here: whether _core/abi.py is what the headers say was not looked at"
fi
if grep -q __asan_report_load "$PYFLAME_RT_LIBRARY"; then
  # The interpreter is not instrumented: the sanitizer has to be there before it. It sees Python's blocks only if each
  # is one of malloc's. Python never frees some, so leaks are looked for by stress.py and not at the end; failing
  # allocations and SIGBUS are what tests ask for, and thread-local blocks as in test/CMakeLists.txt.
  preload=$(cc -print-file-name=libasan.so)
  [ -e "$preload" ] || { echo "needs libasan.so, which comes with the compiler"; exit 77; }
  # With the C++ library, whose exceptions the sanitizer looks for once, at the start.
  export LD_PRELOAD="$preload $(cc -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc
  export ASAN_OPTIONS=leak_check_at_exit=0:allocator_may_return_null=1:handle_sigbus=0:intercept_tls_get_addr=0
  # These reach the library by the same calls as the others.
  others=(--ignore=test/python/guide --ignore=test/python/onnxruntime)
elif "$python" -m mypy --version >/dev/null 2>&1; then
  "$python" -m mypy --config-file capi/python/pyproject.toml --cache-dir /dev/null \
    capi/python/pyflame_rt test/python/typed_client.py
else
  echo "mypy is not here: whether the types are right was not looked at"
fi
"$python" test/python/typed_client.py samples/digits
"$python" -m pytest -q -p no:cacheprovider "${others[@]}" test/python
