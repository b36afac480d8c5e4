#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the ONNX backend tests of Debian's libonnx-testdata, and those of ../shared where that is present. Every case
# passes except those that conformance_exceptions.txt lists with a reason; a listed case that passes has to be removed
# there. PFRT_ALSO=wse takes the exceptions of "wse:SET" as well. Arguments: the build folder, then options for `pfrt
# test` (--threads 4).
set -euo pipefail
cd "$(dirname "$0")/.."
pfrt=${1:-build/release}/bin/pfrt
shift || true
debian=/usr/share/libonnx-testdata/data
report=$(mktemp)
trap 'rm -f "$report"' EXIT
faults=0

# check SET DIR [OPTION...]: expects exactly the exceptions of SET to fail in DIR.
check() {
  local set=$1 dir=$2
  shift 2
  [ -d "$dir" ] || { echo "$set: not here, left out"; return 0; }
  : >"$report"
  "$pfrt" test "$dir" --report "$report" "$@" >/dev/null 2>&1 || true
  local failing listed
  failing=$(awk -F'\t' 'NR > 1 && $2 != "passed" { print $1 }' "$report" | LC_ALL=C sort)
  listed=$(awk -v set="$set" -v also="${PFRT_ALSO:-}:$set" '$1 == set || $1 == also { print $2 }' \
    test/conformance_exceptions.txt | LC_ALL=C sort)
  echo "$set: $(awk -F'\t' '$2 == "passed"' "$report" | wc -l) of $(tail -n +2 "$report" | wc -l) passed"
  while read -r case; do
    [ -n "$case" ] || continue
    echo "  FAILED $(awk -F'\t' -v c="$case" '$1 == c { print $1 ": " $3 }' "$report")"
    faults=$((faults + 1))
  done < <(LC_ALL=C comm -23 <(echo "$failing") <(echo "$listed"))
  while read -r case; do
    [ -n "$case" ] || continue
    echo "  FAILED $case passes: take it out of conformance_exceptions.txt"
    faults=$((faults + 1))
  done < <(LC_ALL=C comm -13 <(echo "$failing") <(echo "$listed"))
}

check debian-node "$debian/node" "$@"
check debian-simple "$debian/simple" "$@"
check debian-pytorch-converted "$debian/pytorch-converted" "$@"
check debian-pytorch-operator "$debian/pytorch-operator" "$@"
check node ../shared/onnx/node "$@"
check light ../shared/onnx/light "$@"
check zoo ../shared/zoo --rtol 1e-2 --atol 1e-3 "$@"
[ "$faults" -eq 0 ]
