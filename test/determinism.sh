#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks for equal bits with 1, 2, 3, 4 and 8 threads. Arguments: the build folder, models. DIMS="batch=33" sets
# dimensions.
set -euo pipefail
pfrt=$1/bin/pfrt
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=()
for dim in ${DIMS:-}; do options+=(--dim "$dim"); done
for model in "$@"; do
  for threads in 1 2 3 4 8; do
    "$pfrt" run "$model" --threads "$threads" "${options[@]}" --output "$work/$threads" >/dev/null
    [ -n "$(ls "$work/$threads")" ] || { echo "FAILED: $model wrote no outputs"; exit 1; }
    diff -r "$work/1" "$work/$threads" >/dev/null ||
      { echo "FAILED: $model differs between 1 and $threads threads"; exit 1; }
  done
  echo "$(basename "$model"): the same bits for 1, 2, 3, 4 and 8 threads"
  rm -rf "${work:?}"/*
done
