#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Errors of the models of set A against double precision, ours and ONNX Runtime 1.30's (error.py).
#
#   error.sh [--only MODEL ...] [--inputs N] [--precision P] [--threads N] [--products] [--json]
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
export PYFLAME_RT_LIBRARY=$PWD/build/release/lib/libpyflamert_c.so PYTHONPATH=$PYTHONPATH:$PWD/capi/python
exec /usr/bin/python3 bench/models/error.py --tool build/release/bin/pfrt --peer "$peer" --models "$models" "$@"
