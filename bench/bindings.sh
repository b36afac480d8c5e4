#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Time of a run from Python, beside the bare C call and onnxruntime-node 1.30 (bindings.py). Argument: --json.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
work=build/bench

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev python3-numpy python3-onnx
command -v npm >/dev/null || need_packages npm
mkdir -p "$work"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release --target overhead pyflamert_c pyflamert_provider_cpu pyflamert_import_onnx >/dev/null

[ -d "$work/node_modules/onnxruntime-node" ] ||
  (cd "$work" && npm install --silent --ignore-scripts onnxruntime-node@1.30.0 >/dev/null)
export PYFLAME_RT_LIBRARY=$PWD/build/release/lib/libpyflamert_c.so PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 bench/bindings.py --overhead build/release/bin/overhead \
  --peer "$PWD/$work/node_modules/onnxruntime-node" "$@"
