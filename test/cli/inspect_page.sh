#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the script of the page that `inspect` writes, and checks that it opens with the whole graph in the window.
# Arguments: the tool, the root.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v node >/dev/null || { echo "node is not here: how the page opens was not looked at"; exit 77; }
"$1" inspect "$2/samples/digits/digits.onnx" --html "$work/page.html" >/dev/null
node "$2/test/cli/inspect_page.js" "$work/page.html"
