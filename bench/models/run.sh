#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole models beside ONNX Runtime 1.30, in tables (tables.py): latency by set, threads and precision; with --start
# session creation and first run, with --memory peak memory.
#
#   run.sh [--set a|b|tiny|decode|half|all ...] [--threads N ...] [--precision P ...] [--seconds S] [--json]
#          [--start] [--memory] [--rounds N] [--record [--peer-isa I]]
#
# PEER=LIBRARY is another copy of ONNX Runtime's library. --record adds latencies to bench/results.
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
exec /usr/bin/python3 bench/models/tables.py --tool build/release/bin/pfrt --peer "$peer" --models "$models" "$@"
