#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that every source has the shape that clang-format 14 gives it (other versions differ in details). The C
# headers of include/ are laid out by hand. Argument: the root.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "clang-format 14 is not here"
  exit 77
fi
find core providers plugins capi cxxapi samples bench test \
     '(' -name '*.cc' -o -name '*.h' -o -name '*.hpp' -o -name '*.c' ')' -print0 |
  xargs -0 -n 16 -P 2 clang-format --dry-run -Werror
