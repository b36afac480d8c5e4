#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A step of a decoder after few tokens and after many, with a cache of its state (decoding.py).
#
#   decoding.sh [--cache in_place|grows] [--layers N] [--room N] [--json] ...
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
export PYFLAME_RT_LIBRARY=$PWD/build/release/lib/libpyflamert_c.so PYTHONPATH=$PYTHONPATH:$PWD/capi/python
exec /usr/bin/python3 bench/models/decoding.py "$@"
