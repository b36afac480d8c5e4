#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every case of this folder passes (record.py says where they come from). Argument: the tool.
set -euo pipefail
cd "$(dirname "$0")"
[ -n "$(find . -name model.onnx -print -quit)" ] || { echo "no cases here"; exit 77; }
"$1" test .
