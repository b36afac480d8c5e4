# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh and error.sh, at the root: installs what is missing, builds, and sets |models| and |peer|
# (PEER where that is set).
. cmake/setup.sh
models=$PWD/build/bench

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev python3-numpy python3-onnx
mkdir -p "$models"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release --target pfrt start pyflamert_c pyflamert_provider_cpu pyflamert_import_onnx >/dev/null

find_peer() { find "$models" -path '*linux/x64/libonnxruntime.so.1' | head -n 1; }
peer=${PEER:-$(find_peer)}
if [ -z "$peer" ]; then
  command -v npm >/dev/null || need_packages npm
  (cd "$models" && npm install --silent --ignore-scripts onnxruntime-node@1.30.0 >/dev/null)
  peer=$(find_peer)
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/test/recorded  # peer.py
