#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of growing for a decoder: steps with a state that grows beside steps of one size (growing.py).
#
#   growing.sh [--steps N] [--rounds N] [--json]
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
export PYFLAME_RT_LIBRARY=$PWD/build/release/lib/libpyflamert_c.so PYTHONPATH=$PYTHONPATH:$PWD/capi/python
exec /usr/bin/python3 bench/models/growing.py --models "$models" "$@"
