#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels against oneDNN 2.6 (Debian's libdnnl-dev): matrix products and convolutions, of floats (kernels.cc) and of bytes
# (integer_kernels.cc). Then ResNet-50's 3x3 convolutions in chains, against ONNX Runtime 1.30; those of bytes are in
# models/run.sh --set integer. Arguments: threads (default 1), precisions (default "fp32 int8"), seconds a row (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
threads=${1:-1}
precisions=${2:-fp32 int8}
seconds=${3:-1}
work=build/bench
build=build/release

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev libdnnl-dev python3-numpy python3-onnx
command -v npm >/dev/null || need_packages npm
mkdir -p "$work"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target pfrt pyflamert_provider_cpu pyflamert_import_onnx >/dev/null
c++ -std=c++17 -O2 -I. -Iinclude -Icxxapi -Icxxapi/pyflame_rt/compat bench/kernels.cc bench/integer_kernels.cc -o "$work/kernels" \
  -L"$build/lib" -Wl,-rpath,"$PWD/$build/lib" -lpyflamert_c -ldnnl
# Pin to the processors whose peaks are measured beside each row.
processors=$(/usr/bin/python3 -c "import os; print(*sorted(os.sched_getaffinity(0))[-$threads:], sep=',')")
for precision in $precisions; do
  OMP_NUM_THREADS=$threads taskset -c "$processors" "$work/kernels" --threads "$threads" --precision "$precision" --seconds "$seconds"
  echo
done
floats=" $precisions "
floats=${floats/ int8 / }
[ -n "${floats// /}" ] || exit 0

peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
if [ -z "$peer" ]; then
  (cd "$work" && npm install --silent --ignore-scripts onnxruntime-node@1.30.0 >/dev/null)
  peer=$(find "$work" -path '*linux/x64/libonnxruntime.so.1' | head -n 1)
fi
/usr/bin/python3 bench/models/conv_chains.py "$work"
for precision in $floats; do
  for model in "$work"/conv_chain_*.onnx; do
    echo
    echo "== $(basename "$model" .onnx), $threads thread(s), $precision"
    "$build/bin/pfrt" bench "$model" --peer "$peer" --threads "$threads" --precision "$precision" --seconds "$seconds"
  done
done
