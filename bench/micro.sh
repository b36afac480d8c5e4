#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rows of the CPU provider's kernel table, each called directly and by a session, on shapes of real models (micro/).
# Arguments are Google Benchmark's: bench/micro.sh --benchmark_filter='MatMul.*128x768'
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

need_packages "${BUILD_PACKAGES[@]}" libgtest-dev libbenchmark-dev
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build/release --target micro >/dev/null
exec build/release/bin/micro "$@"
