#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every installed header compiles alone and without a warning: C headers as C11 and C++17, C++ headers as C++17.
# Arguments: the C compiler, the C++ compiler, the folders of the C and of the C++ headers. Exit code 77: a compiler is
# not here.
set -euo pipefail
cc=$1 cxx=$2 c_headers=$3 cxx_headers=$4
for compiler in "$cc" "$cxx"; do
  command -v "$compiler" >/dev/null || { echo "$compiler is not here"; exit 77; }
done
flags=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)

# check COMPILER LANGUAGE STANDARD HEADER: compiles the header as a user writes it.
check() {
  echo "#include <$4>" |
    "$1" -x "$2" "-std=$3" "${flags[@]}" -I "$c_headers" -I "$cxx_headers" -I "$cxx_headers/pyflame_rt/compat" - ||
    { echo "$4 does not compile as $3"; exit 1; }
}

for header in types pyflame_rt plugin custom; do
  check "$cc" c c11 "pyflame_rt/$header.h"
  check "$cxx" c++ c++17 "pyflame_rt/$header.h"
done
find "$cxx_headers/pyflame_rt" -name '*.hpp' -printf 'pyflame_rt/%P\n' | LC_ALL=C sort |
  while IFS= read -r header; do check "$cxx" c++ c++17 "$header"; done
