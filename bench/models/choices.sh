#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each convolution and product of set C by every row of the kernel table that can do it, beside the row that is chosen
# (exports/choices.py, micro/choices.cc): about 0.2 s for each of 1,600 nodes, on one thread.
#
#   choices.sh [--form full|pair|small|half ...] [--only NETWORK ...] [-- [--part I/N] [--seconds S] [--cold] [--json]]
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/models/setup.sh
exporter=()
. bench/models/exports/setup.sh
cmake --build build/release --target choices >/dev/null
lists=() measures=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do lists+=("$1"); shift; done
[ $# -eq 0 ] || measures=("${@:2}")
nodes=$models/choices.txt
/usr/bin/python3 bench/models/exports/choices.py --tool build/release/bin/pfrt --models "$models/exports" "${exporter[@]}" --out "$nodes" "${lists[@]}"
exec build/release/bin/choices "$nodes" "${measures[@]}"
