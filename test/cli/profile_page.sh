#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the tool's trace has the form that trace viewers expect, and that the page's script draws it. Arguments:
# the tool, the root.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" profile "$2/samples/digits/digits.onnx" --threads 2 --runs 7 --no-measure -o "$work/trace.json" --html "$work/page.html" \
  >"$work/told"
/usr/bin/python3 "$2/test/check_trace.py" "$work/trace.json" profiled=7 warm-up=3
command -v node >/dev/null || { echo "node is not here: whether the page draws anything was not looked at"; exit 77; }
node "$2/test/cli/profile_page.js" "$work/page.html"
