#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the release configuration and runs its tests. --full adds the long list: sanitizers over everything, every
# ISA, clang, clang-tidy, and the conformance sets where they are present.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

TEST_PACKAGES=(ccache libgtest-dev libbenchmark-dev libonnx1 clang-format binutils doxygen python3-numpy python3-onnx python3-pytest
               python3-pycparser python3-venv mypy rustc golang-go openjdk-17-jdk-headless libjna-java)

# phase NAME: names the work up to the next phase. The time of each is printed at the end, however that comes.
phases=() phase_name="" phase_began=0
phase() {
  [ -z "$phase_name" ] || phases+=("$(printf '%6d s  %s' $((SECONDS - phase_began)) "$phase_name")")
  phase_name=$1 phase_began=$SECONDS
}
report_phases() {
  phase ""
  [ ${#phases[@]} -eq 0 ] || printf '%s\n' "seconds of each phase:" "${phases[@]}"
}
trap report_phases EXIT

# run_suite PRESET TARGET [CTEST ARGUMENT...]: builds and tests with |settings|, which may take other builds' results
# over.
settings=(-DPYFLAME_RT_KERNELS_FROM= -DPYFLAME_RT_KERNELS_ANEW= -DPYFLAME_RT_THREAD_TESTS=OFF)
run_suite() {
  local preset=$1 target=$2
  shift 2
  phase "$preset: build"
  leave_out "$preset"
  cmake --preset "$preset" "${launcher[@]}" "${settings[@]}"
  cmake --build --preset "$preset" --target "$target"
  phase "$preset: tests"
  ctest --preset "$preset" -j"$(nproc)" "$@" && return
  echo "what failed, once more and alone:"
  ctest --preset "$preset" --rerun-failed
  return 1
}

# leave_out PRESET: with |since|, a commit, leaves out the tests that no change since then reaches, and of those with a
# sanitizer also what no change is about.
since=""
leave_out() {
  local left="" about=()
  case $1 in asan | tsan) about=(--about) ;; esac
  if [ -n "$since" ]; then
    left=$(/usr/bin/python3 test/affected.py "${about[@]}" "$since")
    [ -z "$left" ] || echo "$1: left out, since nothing after $since touches them: ${left//;/ }"
  fi
  settings+=("-DPYFLAME_RT_LEAVE_OUT=$left")
}

# Compiled objects are kept in ccache's own folder, where the next run finds them, also from a checkout elsewhere.
launcher=()
use_ccache() {
  command -v ccache >/dev/null || return 0
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime,time_macros,pch_defines
}
use_ccache

main() {
  local full=""
  case ${1:-} in
    --full) full=yes && export PFRT_TEST_ALL=1 ;;
    --since) since=${2:?--since needs a commit} ;;
    "") ;;
    *) echo "usage: test/run.sh [--full | --since COMMIT]" >&2 && return 2 ;;
  esac
  phase "packages"
  need_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
  use_ccache
  command -v npm >/dev/null || need_packages nodejs npm  # other packages of Node.js bring npm along
  run_suite release all
  [ -n "$full" ] || return 0
  phase "conformance"
  need_packages libonnx-testdata python3-numpy python3-onnx
  test/conformance.sh build/release --threads 1
  test/conformance.sh build/release --threads 4
  phase "random models of one operator"
  # Random models of one operator: levels agree and nothing ends the process.
  test/odd/odd.sh "$PWD" build/release/lib/libpyflamert_c.so 60000 2
  phase "clients"
  test/python/install.sh "$PWD"
  # These are other people's programs; one that cannot be installed here says so and is left out.
  local client
  for client in test/clients/*.sh; do
    "$client" build/release || [ $? -eq 77 ]
  done
  phase "pages on a fresh Debian"
  # This follows the pages like a stranger, on a Debian with nothing installed; only root can make one.
  [ "$(id -u)" -ne 0 ] || test/docs/fresh.sh build/fresh
  phase "determinism, memory, allocation"
  /usr/bin/python3 bench/models/make_models.py build/models
  test/determinism.sh build/release build/models/*.onnx
  test/memory.sh build/release build/memory
  # This starts a process for each request for memory that fails.
  PFRT_ALLOCATION_ALL=1 build/release/test/allocation/pfrt_allocation_test
  # This takes every level, type and number, for dimensions of 0 and odd numbers.
  PFRT_EMPTY_ALL=1 build/release/test/empty/pfrt_empty_test
  local isa
  for isa in generic avx2 avx512 amx; do
    phase "as on $isa"
    PFRT_ISA=$isa ctest --preset release -j"$(nproc)"
    # This draws 100,000 random cases over all rows of the kernel table.
    PFRT_ISA=$isa PFRT_TEST_SEEDS=80 build/release/test/providers/cpu/pfrt_provider_cpu_test --gtest_filter='Kernels.*'
    PFRT_ISA=$isa test/conformance.sh build/release
  done
  phase "emulated tiles"
  # Tests run as on a machine with tiles, which are emulated where this one has none.
  PFRT_TEST_EMULATE_TILES=1 build/release/test/providers/cpu/pfrt_provider_cpu_test --gtest_filter='-*Measure*'
  run_suite asan all
  phase "asan: random models, conformance, fuzzing"
  test/odd/odd.sh "$PWD" build/asan/lib/libpyflamert_c.so 20000 3
  test/conformance.sh build/asan
  test/fuzz.sh build/asan 600
  run_suite tsan all
  # This preset has neither optimisation nor precompiled headers, so it shows what a source forgot to include.
  run_suite dev all
  need_packages clang-16 clang-tidy-16
  run_suite clang all
  phase "clang-tidy"
  test/clang_tidy.sh build/clang
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  main "$@"
fi
