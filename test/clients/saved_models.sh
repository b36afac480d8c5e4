#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads models that the tool wrote with the packages onnx and ONNX Runtime; see saved_models.py. Arguments: the build
# folder (build/release), then options for saved_models.py (--only PATTERN).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=build/release
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  build=$1
  shift
fi
python_with saved_models onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6 onnxruntime==1.32.0
PYTHONDONTWRITEBYTECODE=1 "$python" test/clients/saved_models.py --pfrt "$build/bin/pfrt" \
  --random "$build/test/optimise/pfrt_optimise_test" "$@"
