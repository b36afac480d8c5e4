#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Doxygen over the public headers. A public name without a description, or one that Doxygen cannot read, is an
# error. Argument: the folder that receives the pages, in native/.
set -euo pipefail
out=$(realpath "$1")
cd "$(dirname "$0")/.."
mkdir -p "$out"
{
  cat docs/Doxyfile
  echo "OUTPUT_DIRECTORY = $out"
  echo "HTML_OUTPUT = native"
  echo "WARN_LOGFILE = $out/warnings"
} | doxygen - >/dev/null
if [ -s "$out/warnings" ]; then
  sed "s|^$PWD/||" "$out/warnings" >&2
  echo "docs/doxygen.sh: $(wc -l <"$out/warnings") names or comments of public headers, see above" >&2
  exit 1
fi
