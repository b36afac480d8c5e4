#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime and the digits sample, then classifies 297 handwritten digits it has never seen: in C++, or with
# --python in Python.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

need_packages "${BUILD_PACKAGES[@]}"
mkdir -p build
cmake -S . -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release -DPYFLAME_RT_BUILD_TESTS=OFF \
      -DPYFLAME_RT_BUILD_TOOL=OFF -DPYFLAME_RT_BUILD_SAMPLES=ON >build/quickstart.log 2>&1 ||
  { cat build/quickstart.log >&2; exit 1; }
if [ -t 1 ]; then
  cmake --build build/quickstart
else
  cmake --build build/quickstart >>build/quickstart.log 2>&1 || { cat build/quickstart.log >&2; exit 1; }
fi
if [ "${1:-}" = "--python" ]; then
  need_packages python3-numpy
  PYTHONPATH=capi/python PYFLAME_RT_LIBRARY=build/quickstart/lib/libpyflamert_c.so \
    exec /usr/bin/python3 samples/python/digits.py samples/digits
fi
exec build/quickstart/bin/digits samples/digits
