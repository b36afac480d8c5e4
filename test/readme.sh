#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Takes the programs out of the README as they are, builds them with the library of a build folder, and runs them: they
# print the same number. Arguments: the source folder, the build folder.
set -euo pipefail
cd "$1"
lib=$2/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYFLAME_RT_LIBRARY PFRT_PLUGIN_PATH
export LD_LIBRARY_PATH=$lib PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1

# block LANGUAGE: the README's only block of it.
block() {
  [ "$(grep -c "^\`\`\`$1\$" README.md)" -eq 1 ] || { echo "FAILED: the README has not one block of $1" >&2; exit 1; }
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" README.md
}

block c >"$work/use.c"
block cpp >"$work/use.cc"
block python >"$work/use.py"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/use.c" -L"$lib" -lpyflamert_c -o "$work/c"
c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -Icxxapi "$work/use.cc" -L"$lib" -lpyflamert_c -o "$work/cpp"
if command -v clang++ >/dev/null; then
  clang++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -Icxxapi "$work/use.cc" -L"$lib" -lpyflamert_c -o "$work/clang"
else
  cp "$work/cpp" "$work/clang"
fi
expected=$("$work/c")
[[ $expected =~ ^0\.[0-9]{6}$ ]] || { echo "FAILED: C printed '$expected'"; exit 1; }
for program in "$work/cpp" "$work/clang" "/usr/bin/python3 $work/use.py"; do
  if [[ $program == *.py ]] && ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    echo "NumPy is not here: the block of Python was not run"
    continue
  fi
  got=$($program)
  [ "$got" = "$expected" ] || { echo "FAILED: $program printed '$got', C '$expected'"; exit 1; }
done
echo "each prints $expected"
