#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Latency of ours and of ONNX Runtime 1.30, interleaved in one process, on the digits model and on a ResNet-50 that
# models/make_models.py writes. Before that, the overhead of the runtime in a run (overhead.cc). Arguments: threads
# (default 1), seconds a model (default 10).
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
threads=${1:-1}
seconds=${2:-10}
work=build/bench

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev python3-numpy python3-onnx
command -v npm >/dev/null || need_packages npm
mkdir -p "$work"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release --target overhead pfrt pyflamert_provider_cpu pyflamert_import_onnx >/dev/null
build/release/bin/overhead

peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
if [ -z "$peer" ]; then
  (cd "$work" && npm install --silent --ignore-scripts onnxruntime-node@1.30.0 >/dev/null)
  peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
fi
[ -f "$work/resnet50.onnx" ] || /usr/bin/python3 bench/models/make_models.py "$work" --only resnet50

for model in samples/digits/digits.onnx "$work/resnet50.onnx"; do
  echo "== $(basename "$model"), $threads thread(s)"
  build/release/bin/pfrt bench "$model" --peer "$peer" --threads "$threads" --seconds "$seconds"
done
