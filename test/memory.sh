#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that loading and running a model keeps its constants in memory once: peak memory stays under the model's
# bytes and 30 percent, embedded, external and as .pfm. Arguments: the build folder, an empty folder for files, MiB
# (default 1024).
set -euo pipefail
cd "$(dirname "$0")/.."
pfrt=$1/bin/pfrt
work=$2
mib=${3:-1024}
mkdir -p "$work"
/usr/bin/python3 bench/models/make_models.py "$work" --huge "$mib" >/dev/null
"$pfrt" convert "$work/huge_external.onnx" "$work/huge.pfm" >/dev/null
for model in huge_embedded.onnx huge_external.onnx huge.pfm; do
  peak=$("$pfrt" run --json "$work/$model" | grep -oE '"peak_bytes": *[0-9]+' | grep -oE '[0-9]+$')
  echo "$model: $((peak / 1048576)) MiB at the peak of a $mib MiB model"
  [ "$peak" -lt $((mib * 1048576 * 13 / 10)) ] || { echo "FAILED: $model"; exit 1; }
done
rm -f "$work"/huge*
