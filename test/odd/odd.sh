#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs random models of one operator: nothing ends the process, and levels all and none agree. Arguments: the source
# folder, the library, how many cases, a seed, and the tool, whose operators have to be covered.
set -euo pipefail
export PYFLAME_RT_LIBRARY=$2 PYTHONDONTWRITEBYTECODE=1
python=/usr/bin/python3
"$python" -c 'import numpy, onnx' 2>/dev/null || { echo "needs NumPy and onnx: python3-numpy, python3-onnx"; exit 77; }
if grep -q __tsan_func_entry "$PYFLAME_RT_LIBRARY"; then
  echo "an interpreter that is not built for it cannot load a library with ThreadSanitizer"
  exit 77
fi
if grep -q __asan_report_load "$PYFLAME_RT_LIBRARY"; then
  preload=$(cc -print-file-name=libasan.so)
  [ -e "$preload" ] || { echo "needs libasan.so, which comes with the compiler"; exit 77; }
  export LD_PRELOAD=$preload PYTHONMALLOC=malloc
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_sigbus=0
fi
if [ -n "${5:-}" ]; then "$python" "$1/test/odd/covered.py" "$5"; fi
"$python" "$1/test/odd/odd.py" --cases "$3" --seed "$4"
