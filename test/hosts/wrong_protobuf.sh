#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes C to stdout, with a function that ends the process for each protobuf symbol that the shared object $1 needs.
set -euo pipefail
symbols=$(nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | grep '6google8protobuf' | sort -u)
echo '#include <stdio.h>'
echo '#include <stdlib.h>'
for symbol in $symbols; do
  echo "void $symbol(void);"
  echo "void $symbol(void) { fputs(\"$symbol of the host was called\\n\", stderr); abort(); }"
done
echo "extern const unsigned pfrt_wrong_symbols;"
echo "const unsigned pfrt_wrong_symbols = $(wc -w <<<"$symbols");"
