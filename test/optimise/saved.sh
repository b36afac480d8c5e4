#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Saves the models of all conformance sets, of test/recorded and of ../shared/zoo as `pfrt optimize` leaves them, and has
# ONNX Runtime run them; see saved.py. Arguments: the build folder, ONNX Runtime's library (default: the one that
# bench/run.sh fetches), levels (default: basic all).
set -euo pipefail
cd "$(dirname "$0")/../.."
pfrt=${1:-build/release}/bin/pfrt
peer=${2:-$(find build/bench -path '*linux/x64/libonnxruntime.so.1' 2>/dev/null | head -n 1)}
[ -n "$peer" ] || { echo "no libonnxruntime.so.1: bench/run.sh fetches it" >&2; exit 77; }
levels=("${@:3}")
[ ${#levels[@]} -gt 0 ] || levels=(basic all)
debian=/usr/share/libonnx-testdata/data
faults=0

# check LEVEL OPTION... FOLDER: checks the sets that are here.
check() {
  local level=$1 folder=${*: -1}
  shift
  [ -d "$folder" ] || { echo "$folder: not here, left out"; return 0; }
  /usr/bin/python3 test/optimise/saved.py --pfrt "$pfrt" --peer "$peer" --level "$level" "$@" 2>/dev/null ||
    faults=$((faults + 1))
}

for level in "${levels[@]}"; do
  for set in node simple pytorch-converted pytorch-operator; do check "$level" "$debian/$set"; done
  for set in node light; do check "$level" "../shared/onnx/$set"; done
  check "$level" test/recorded
  check "$level" --rtol 1e-2 --atol 1e-3 ../shared/zoo
done
[ "$faults" -eq 0 ]
