#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it costs to take the runtime into a program, beside ONNX Runtime 1.30: seconds and memory of a compiler for the
# headers, bytes of the packages, and the lines of a first run (bench/first_run, each of which is built and run).
# Argument: a folder with onnxruntime_cxx_api.h, which no package of npm has; without it the peer's rows in C and C++ are
# left out. Further ones go to footprint.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
. test/clients/python.bash
headers=""
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  headers=$(realpath "$1")
  shift
fi
need_packages "${BUILD_PACKAGES[@]}" python3-numpy
command -v npm >/dev/null || need_packages npm
work=$PWD/build/bench/footprint
rm -rf "$work"
mkdir -p "$work"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release >/dev/null
cmake --install build/release --prefix "$work/tree" >/dev/null
capi/node/pack.sh build/release "$work" >/dev/null
python_with footprint numpy==2.4.6 onnxruntime==1.32.0
PYFLAME_RT_BUILD_DIR=$PWD/build/release "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
  --no-build-isolation --no-index -w "$work" ./capi/python
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$work"/pyflame_rt-*.whl
"$python" -m pip download --quiet --disable-pip-version-check --no-deps -d "$work" onnxruntime==1.32.0
echo '{"private": true}' >"$work/package.json"  # npm installs here, and in no folder above
(cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts "$work"/pyflame-rt-*.tgz onnxruntime-node@1.30.0 >/dev/null)
exec "$python" bench/footprint.py --work "$work" ${headers:+--peer-headers "$headers"} "$@"
