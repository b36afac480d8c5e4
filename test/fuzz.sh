#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Changes conformance models at random and loads and runs them (fuzz/fuzz_models.cc): nothing may crash, hang or take
# memory without bound. Arguments: a build folder (asan's finds most), seconds (default 600), the seed (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --build "$1" --target pfrt_fuzz
folders=()
for folder in /usr/share/libonnx-testdata/data ../shared/onnx/node test/recorded; do
  [ -d "$folder" ] && folders+=("$folder")
done
# Leaks are not searched at the end, since GCC 12 reads outside memory once a library with thread-local storage was
# closed.
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=4096:handle_sigbus=0:quarantine_size_mb=64:detect_leaks=0
"$1/test/fuzz/pfrt_fuzz" --seconds "${2:-600}" --seed "${3:-1}" "${folders[@]}"
