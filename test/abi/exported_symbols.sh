#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shared object built here exports one symbol: pfrt_get_api the library, pfrt_plugin_query a plug-in.
# Argument: the folder of the libraries.
set -euo pipefail
command -v nm >/dev/null || { echo "nm is not here"; exit 77; }

count=0 bad=0 sanitized=0
while IFS= read -r -d '' library; do
  count=$((count + 1))
  want=pfrt_plugin_query
  case "$library" in */libpyflamert_c.so*) want=pfrt_get_api ;; esac
  got=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | LC_ALL=C sort -u)
  [ "$got" = "$want" ] && continue
  if grep -qE '^_*(asan|odr_asan|tsan|ubsan|sanitizer|lsan)' <<<"$got"; then
    sanitized=1
    continue
  fi
  echo "$library exports, where only $want should be:"
  echo "$got"
  bad=1
done < <(find "$1" -name 'libpyflamert_*.so*' -type f -print0)

[ "$count" -gt 0 ] || { echo "no library was found in $1"; exit 1; }
[ "$bad" -eq 0 ] || exit 1
[ "$sanitized" -eq 0 ] || { echo "the sanitizer adds symbols of its own"; exit 77; }
echo "$count libraries export one symbol each"
