#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs and plug-ins of users are built by the oldest CMake that the pages promise, against an installed tree.
# Argument: the build folder (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=${1:-build/release}
python_with cmake cmake==3.18.4.post1
cmake=$PWD/$(dirname "$python")/cmake
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CMAKE_GENERATOR=Ninja
cmake --install "$build" --prefix "$work/tree" >/dev/null
"$cmake" --version | grep -q " 3\.18\." || { echo "FAILED: $cmake is another version"; exit 1; }
for project in test/install/consumer samples/custom_op samples/custom_pass samples/custom_provider samples/custom_service \
               samples/tbb_host; do
  if ! { "$cmake" -S "$project" -B "$work/build/$project" -DCMAKE_PREFIX_PATH="$work/tree" &&
    "$cmake" --build "$work/build/$project"; } >"$work/log" 2>&1; then
    cat "$work/log"
    echo "FAILED: $project by CMake 3.18"
    exit 1
  fi
done
for program in run_c run_cxx; do
  got=$("$work/build/test/install/consumer/$program" samples/digits/digits.onnx)
  [ "$got" = "10 classes" ] || { echo "FAILED: $program printed '$got'"; exit 1; }
done
got=$(PFRT_PLUGIN_PATH=$work/build/samples/custom_op "$work/build/samples/custom_op/use_clamp")
[ "$got" = "-1 -0.5 0 1.5 2" ] || { echo "FAILED: use_clamp printed '$got'"; exit 1; }
"$work/build/samples/tbb_host/tbb_host" samples/digits >/dev/null
echo "CMake 3.18: programs and plug-ins are built and run"
