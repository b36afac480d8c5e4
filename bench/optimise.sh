#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Executed steps and bytes moved at optimisation levels none and all, and the nodes that ONNX Runtime 1.30 keeps, for
# the models of ../shared/zoo, the networks of models/make_models.py and models/bert_encoder.onnx. Argument: --json.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
work=build/bench

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev python3-numpy python3-onnx
command -v npm >/dev/null || need_packages npm
mkdir -p "$work"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release --target pfrt pyflamert_provider_cpu pyflamert_import_onnx >/dev/null

peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
if [ -z "$peer" ]; then
  (cd "$work" && npm install --silent --ignore-scripts onnxruntime-node@1.30.0 >/dev/null)
  peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
fi
for network in resnet50 squeezenet inception; do
  [ -f "$work/$network.onnx" ] || /usr/bin/python3 bench/models/make_models.py "$work" --only "$network"
done
/usr/bin/python3 bench/optimise.py --pfrt build/release/bin/pfrt --peer "$peer" --work "$work" "$@"
