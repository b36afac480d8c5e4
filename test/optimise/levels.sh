#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that optimisation changes no verdict: the conformance sets, test/recorded and ../shared/zoo pass and fail
# case for case as at level none, at every level, with each pass alone and with each left out. Arguments: the build
# folder, then options for `pfrt test`.
set -euo pipefail
cd "$(dirname "$0")/../.."
pfrt=${1:-build/release}/bin/pfrt
shift || true
passes=(ConstantFoldingPass DeadCodeEliminationPass CSEPass OperatorFusionPass LayoutOptimizationPass)
debian=/usr/share/libonnx-testdata/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sets=()
for folder in "$debian"/{node,simple,pytorch-converted,pytorch-operator} ../shared/onnx/{node,light} test/recorded; do
  [ -d "$folder" ] && sets+=("$folder") || echo "$folder: not here, left out"
done
faults=0

# verdicts FILE OPTION...: writes each case and whether it passed.
verdicts() {
  local file=$1
  shift
  "$pfrt" test "${sets[@]}" --report "$work/sets" "$@" >/dev/null 2>&1 || true
  cut -f 1,2 "$work/sets" | tail -n +2 >"$file"
  [ -d ../shared/zoo ] || return 0
  "$pfrt" test ../shared/zoo --rtol 1e-2 --atol 1e-3 --report "$work/zoo" "$@" >/dev/null 2>&1 || true
  cut -f 1,2 "$work/zoo" | tail -n +2 >>"$file"
}

# check NAME OPTION...
check() {
  local name=$1
  shift
  verdicts "$work/now" "$@"
  echo "$name: $(grep -c 'passed$' "$work/now" || true) of $(wc -l <"$work/now") passed"
  diff "$work/none" "$work/now" || faults=$((faults + 1))
}

verdicts "$work/none" --level none "$@"
echo "none: $(grep -c 'passed$' "$work/none" || true) of $(wc -l <"$work/none") passed"
for level in basic extended all; do check "$level" --level "$level" "$@"; done
for pass in "${passes[@]}"; do
  others=()
  for other in "${passes[@]}"; do [ "$other" = "$pass" ] || others+=(--skip "$other"); done
  check "$pass alone" --level all "${others[@]}" "$@"
  check "all but $pass" --level all --skip "$pass" "$@"
done
[ "$faults" -eq 0 ]
