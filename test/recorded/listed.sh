#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that `pfrt ops` lists an operator of com.microsoft or ai.onnx.ml exactly when this folder has a case of it.
# Folders in small letters hold whole models, not operators. Argument: the tool.
set -euo pipefail
cd "$(dirname "$0")"
wrong=0
for domain in com.microsoft ai.onnx.ml; do
  listed=$("$1" ops | awk -v domain="$domain" '$2 == domain { print $1 }' | LC_ALL=C sort -u)
  recorded=$(find . -path "./$domain/*/*/model.onnx" | cut -d/ -f3 | LC_ALL=C grep '^[A-Z]' | LC_ALL=C sort -u)
  while read -r op; do
    [ -z "$op" ] || { echo "$domain.$op is listed and has no case in $domain/$op"; wrong=1; }
  done < <(LC_ALL=C comm -23 <(echo "$listed") <(echo "$recorded"))
  while read -r op; do
    [ -z "$op" ] || { echo "$domain.$op has cases and is not listed"; wrong=1; }
  done < <(LC_ALL=C comm -13 <(echo "$listed") <(echo "$recorded"))
done
[ "$("$1" ops | grep -c com.microsoft)" -gt 40 ] || { echo "com.microsoft has fewer operators than it had"; wrong=1; }
exit "$wrong"
