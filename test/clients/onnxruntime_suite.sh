#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs ONNX Runtime's own tests of its Python API by this library instead: what fails is listed, with reasons, in
# onnxruntime_suite.txt. Arguments: the build folder (build/release), and a checkout of ONNX Runtime's sources, which are
# no part of this tree (or ONNXRUNTIME_SOURCE; without one the script is skipped).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=${1:-build/release}
tree=${2:-${ONNXRUNTIME_SOURCE:-}}
if [ -z "$tree" ]; then
  echo "onnxruntime_suite: SKIPPED: give a checkout of ONNX Runtime 1.32, or ONNXRUNTIME_SOURCE with its folder"
  exit 77
fi
export PYFLAME_RT_LIBRARY=${PYFLAME_RT_LIBRARY:-$PWD/$build/lib/libpyflamert_c.so}
export PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1
python_with onnxruntime_suite onnx==1.23.2 numpy==2.4.6
"$python" -m pyflame_rt.onnxruntime test/clients/onnxruntime_suite.py "$tree"
