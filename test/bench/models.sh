#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of bench/models without ONNX Runtime and without clocks. Arguments: the source folder, the
# library.
set -euo pipefail
cd "$1"
export PYFLAME_RT_LIBRARY=$2 PYTHONPATH=$1/capi/python:$1/bench/models:$1/test/recorded PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 -c 'import numpy, onnx, pytest' 2>/dev/null ||
  { echo "needs NumPy, onnx and pytest: python3-numpy, python3-onnx, python3-pytest"; exit 77; }
/usr/bin/python3 -m pytest -q -p no:cacheprovider test/bench
