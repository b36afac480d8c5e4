#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the node cases of the package onnx through Python at levels all and none and through pyflame_rt.onnxruntime,
# and the tests of ml_dtypes. Arguments: the build folder (build/release), then options for onnx_cases.py (--only
# PATTERN).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=build/release
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  build=$1
  shift
fi
python_with onnx_cases onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6 pytest==9.2.0
export PYFLAME_RT_LIBRARY=${PYFLAME_RT_LIBRARY:-$PWD/$build/lib/libpyflamert_c.so}
export PYTHONPATH=$PWD/capi/python:$PWD/test/python PYTHONDONTWRITEBYTECODE=1
faults=0
"$python" -m pytest -q -p no:cacheprovider test/python/values/test_ml_dtypes.py || faults=1
"$python" test/clients/onnx_cases.py --level none "$@" || faults=1
"$python" test/clients/onnx_cases.py --facade "$@" || faults=1
"$python" test/clients/onnx_cases.py "$@" || faults=1
exit "$faults"
