#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole models beside ONNX Runtime 1.30, in tables (tables.py): latency by set, threads and precision; with --start
# session creation and first run, with --memory peak memory, with --cold and --warm what a process takes until then, without
# and with a warm cache of compiled models.
#
#   run.sh [--set a|b|tiny|decode|half|axes|integer|c|all ...] [--threads N ...] [--precision P ...] [--seconds S]
#          [--json] [--only LINE|NETWORK ...] [--form full|pair|small|dynamic|half ...] [--start] [--memory]
#          [--cold] [--warm] [--rounds N] [--record] [--peer-isa I]
#
# Set c is not part of all, since it installs PyTorch (exports/setup.sh) and makes its models for minutes. --only takes
# lines of the set integer and networks of set c. PEER=LIBRARY is another copy of ONNX Runtime's library, LLAMA=FOLDER
# other shared libraries of llama.cpp (for the set integer). --peer-isa gives the word of PFRT_ISA that this PEER is held
# to. --record adds latencies to bench/results.
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
llama=() exporter=()
case " $* " in
  *" integer "*|*" all "*) . bench/models/llama.sh ;;
  *" --set "*|*" --start "*|*" --memory "*|*" --cold "*|*" --warm "*|*" --help "*|*" -h "*) ;;
  *) . bench/models/llama.sh ;;
esac
case " $* " in
  *" c "*) . bench/models/exports/setup.sh ;;
esac
export PYFLAME_RT_LIBRARY=$PWD/build/release/lib/libpyflamert_c.so PYTHONPATH=$PYTHONPATH:$PWD/capi/python
exec /usr/bin/python3 bench/models/tables.py --tool build/release/bin/pfrt --starter build/release/bin/start --peer "$peer" --models "$models" "${llama[@]}" "${exporter[@]}" "$@"
