#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the API reference to build/docs: index.html leads to the C and C++ headers (Doxygen) and the Python package
# (pydoc). Argument: the folder of a build or installation, which the Python package needs (default: build/install,
# then build/release).
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh
need_packages doxygen python3-numpy

library=""
for folder in ${1:-build/install build/release}; do
  [ -z "$library" ] && [ -d "$folder" ] && library=$(find "$(realpath "$folder")" -name libpyflamert_c.so | head -n 1)
done
[ -n "$library" ] || {
  echo "docs/build.sh: no libpyflamert_c.so in ${1:-build/install or build/release}; run ./samples/quickstart.sh first" >&2
  exit 1
}
out=build/docs
rm -rf "$out"
mkdir -p "$out/python"
docs/doxygen.sh "$out"
PYFLAME_RT_LIBRARY=$library PYTHONPATH=capi/python /usr/bin/python3 -B docs/python_pages.py "$out/python"
cp docs/index.html "$out/index.html"
echo "the API reference is in $PWD/$out/index.html"
