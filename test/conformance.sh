#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the ONNX backend tests of Debian's libonnx-testdata (and of ../shared/onnx where that is present) against the
# floors that the operators here reach. A floor may only rise. Argument: the build folder.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
debian=/usr/share/libonnx-testdata/data
shared=../shared/onnx
failures=0

# check FLOOR NAME DIR: at least FLOOR cases pass.
check() {
  local floor=$1 name=$2 dir=$3 last passed
  [ -d "$dir" ] || { echo "$name: not here, left out"; return 0; }
  last=$("$build/bin/pfrt" test "$dir" 2>/dev/null | tail -n 1) || true
  passed=$(sed -E 's/^([0-9]+) passed.*/\1/' <<<"$last")
  echo "$name: $last (floor $floor)"
  [ "${passed:-0}" -ge "$floor" ] || failures=$((failures + 1))
}

check 773 "node operators" "$debian/node"
check 21 "simple" "$debian/simple"
check 82 "pytorch-converted" "$debian/pytorch-converted"
check 35 "pytorch-operator" "$debian/pytorch-operator"
check 9 "light networks" "$shared/light"
[ "$failures" -eq 0 ]
