#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of docs/coming_from.md that need PyTorch or scikit-learn, each as the page has it. Argument: the build
# folder (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
export PYFLAME_RT_LIBRARY=${PYFLAME_RT_LIBRARY:-$PWD/${1:-build/release}/lib/libpyflamert_c.so}
export PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"

# follow NAME: the block of the page that is saved as build/NAME.py, by |python|.
follow() {
  sed -n "/^# build\/$1[.]py/,/^\`\`\`/p" docs/coming_from.md | grep -v '^```' >"$work/build/$1.py"
  [ -s "$work/build/$1.py" ] || { echo "FAILED: docs/coming_from.md has no build/$1.py"; exit 1; }
  local program
  program=$(realpath -s "$python")
  (cd "$work" && "$program" "build/$1.py" >log 2>&1) || { cat "$work/log"; echo "FAILED: $1"; exit 1; }
  echo "$1: as the page has it"
}

python_with scikit_learn scikit-learn==1.9.1 skl2onnx==1.20.0 onnx==1.23.2 numpy==2.4.6
follow from_sklearn
python_with torch_exports "${TORCH_PACKAGES[@]}"
follow from_torch
