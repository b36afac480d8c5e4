#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Seconds and memory that models of COUNT nodes, constants, attributes... take to load, optimise and run.
# Usage: bench/wide.sh [BUILD_DIR] [COUNT] [KIND]...
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "${1:-$here/../build/release}")
count=${2:-200000}
shift $(($# < 2 ? $# : 2))
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || mapfile -t kinds < <(python3 "$here/wide.py" --list)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kind in "${kinds[@]}"; do
  python3 "$here/wide.py" "$kind" "$count" "$folder/model.onnx"
  # Time is by the shell's clock, memory is the kernel's record of the peak.
  python3 - "$kind" "$count" "$build/bin/pfrt" run "$folder/model.onnx" --level all --json <<'PY'
import resource
import subprocess
import sys
import time
kind, count, *command = sys.argv[1:]
start = time.monotonic()
run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
seconds = time.monotonic() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
text = run.stderr.strip().splitlines()[-1] if run.returncode and run.stderr.strip() else ""
print(f"{kind:18} {count:>8} {seconds:8.2f} s {peak:8.0f} MB  exit {run.returncode} {text}", flush=True)
PY
done
