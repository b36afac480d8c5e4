#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds two commits, each in a checkout of its own below build/same, and compares the bits of all their results:
#   test/same_results.sh OLD_COMMIT NEW_COMMIT [argument of same_results.py]...
# PFRT_ISA holds for both.
set -euo pipefail
cd "$(dirname "$0")/.."
. test/run.sh

[ $# -ge 2 ] || { sed -n 's/^# //p' "$0" | sed 1d >&2; exit 2; }
libraries=()
for commit in "$1" "$2"; do
  name=$(git rev-parse --short --verify "$commit^{commit}")
  tree=$PWD/build/same/$name
  [ -d "$tree" ] || git worktree add --detach "$tree" "$name"
  (cd "$tree" && cmake --preset release -DPYFLAME_RT_BUILD_{TESTS,TOOL,BENCHES}=OFF "${launcher[@]}" &&
     cmake --build --preset release)
  libraries+=("$tree/build/release/lib/libpyflamert_c.so")
done
shift 2
/usr/bin/python3 test/same_results.py "${libraries[@]}" "$@"
