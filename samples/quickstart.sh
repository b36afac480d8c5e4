#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime, its tool and the digits sample, then classifies 297 handwritten digits it has never seen: in C++,
# or with --python in Python. It leaves the tool, the library and its headers in build/install, for what comes next.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

need_packages "${BUILD_PACKAGES[@]}"
mkdir -p build
build=build/quickstart
prefix=build/install
# quietly COMMAND...: what it says goes to a file, and to stderr when it fails.
quietly() {
  "$@" >>$build.log 2>&1 || { cat $build.log >&2; exit 1; }
}
: >$build.log
quietly cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPYFLAME_RT_BUILD_TESTS=OFF \
  -DPYFLAME_RT_BUILD_BENCHES=OFF -DPYFLAME_RT_BUILD_SAMPLES=ON -DPYFLAME_RT_BUILD_PYTHON=ON
if [ -t 1 ]; then
  cmake --build $build
else
  quietly cmake --build $build
fi
quietly cmake --install $build --prefix $prefix --strip
if [ "${1:-}" = "--python" ]; then
  need_packages python3-numpy
  package=$(dirname "$(dirname "$(find $prefix -name py.typed)")")
  PYTHONPATH=$package /usr/bin/python3 -B samples/python/digits.py samples/digits
else
  $build/bin/digits samples/digits
fi
cat <<END

installed in $PWD/$prefix; try
  $prefix/bin/pfrt inspect samples/digits/digits.onnx
  cmake -S samples/custom_op -B build/custom_op -DCMAKE_PREFIX_PATH=\$PWD/$prefix && cmake --build build/custom_op
END
