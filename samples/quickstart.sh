#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime, its tool and the digits sample, then classifies 297 handwritten digits it has never seen: in C++,
# or with --python in Python. It leaves the tool, the library and its headers in build/install, for what comes next.
# --all builds the provider of simulated wafers, the operators that decode images and the executor on oneTBB as well.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

packages=("${QUICKSTART_PACKAGES[@]}") options=() python=no
for argument in "$@"; do
  case $argument in
    --python) python=yes packages+=(python3-numpy) ;;
    --all)
      packages+=("${BUILD_PACKAGES[@]}")
      options=(-DPYFLAME_RT_BUILD_WSE=ON -DPYFLAME_RT_BUILD_IMAGE_OPS=ON -DPYFLAME_RT_TBB=ON)
      ;;
    *)
      echo "usage: samples/quickstart.sh [--python] [--all], not $argument" >&2
      exit 2
      ;;
  esac
done
need_packages "${packages[@]}"
mkdir -p build
build=build/quickstart
prefix=build/install

# quietly COMMAND...: its output goes to a file, and to stderr when it fails.
quietly() {
  "$@" >>$build.log 2>&1 || { cat $build.log >&2; exit 1; }
}
# shown COMMAND...: the same for Ninja, with a line on stderr for each twentieth of its steps.
shown() {
  local line done=0
  "$@" 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] && [ $((BASH_REMATCH[1] * 20 / BASH_REMATCH[2])) -gt $done ]; then
      done=$((BASH_REMATCH[1] * 20 / BASH_REMATCH[2]))
      echo "built $((done * 5)) % in $SECONDS s" >&2
    fi
  done >>$build.log || { cat $build.log >&2; exit 1; }
}
: >$build.log
quietly cmake --preset quickstart "${options[@]}"
if [ -t 1 ]; then
  cmake --build $build
else
  shown cmake --build $build
fi
quietly cmake --install $build --prefix $prefix --strip
if [ $python = yes ]; then
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
