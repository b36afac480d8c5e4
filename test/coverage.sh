#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which lines the tests reach: builds the preset coverage, runs tests and writes build/coverage/report/index.html.
#
# usage: coverage.sh [--target NAME]... [CTEST ARGUMENT...]
#   --target: build this alone (test programs of test/README.md; all by default), and run the tests that are there
#   e.g. coverage.sh --target pfrt_core_test -R Graph
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
targets=()
while [ "${1:-}" = --target ]; do
  targets+=("$2")
  shift 2
done
need_packages "${BUILD_PACKAGES[@]}" libgtest-dev lcov
build=build/coverage
cmake --preset coverage >/dev/null
cmake --build --preset coverage --target "${targets[@]:-all}"
find "$build" -name '*.gcda' -delete
failed=0
ctest --preset coverage -j"$(nproc)" "$@" || failed=$?
# Lines that no test reaches count from what was compiled. Lines of the system's headers, of generated code and of the
# tests themselves are nobody's aim. Its warnings (of headers compiled beforehand, of its own source) go to a file.
read_lines() {
  lcov --quiet --capture --directory "$build" --base-directory "$PWD" --no-external "$@" 2>"$build/lcov.log" ||
    { cat "$build/lcov.log" >&2; exit 1; }
}
read_lines --initial --output-file "$build/compiled.info"
read_lines --output-file "$build/reached.info"
lcov --quiet --add-tracefile "$build/compiled.info" --add-tracefile "$build/reached.info" \
  --output-file "$build/all.info"
lcov --quiet --remove "$build/all.info" "$PWD/test/*" "$PWD/build/*" "*CompilerId.c*" --output-file "$build/lines.info"
genhtml --quiet --prefix "$PWD" --output-directory "$build/report" "$build/lines.info"
lcov --summary "$build/lines.info" 2>&1 | grep -E 'lines|functions'
echo "the report is in $PWD/$build/report/index.html"
exit $failed
