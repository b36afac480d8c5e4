#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that every case of this folder passes; record.py has their sources. Argument: the tool.
set -euo pipefail
cd "$(dirname "$0")"
[ -n "$(find . -name model.onnx -print -quit)" ] || { echo "no cases here"; exit 77; }
"$1" test .
