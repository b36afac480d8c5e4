#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the members of every struct of the C headers given, in order, one a line: "pfrt_api: const pfrt_env_api* env".
set -euo pipefail

awk '
  { text = text " " $0 }
  END {
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
      text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
    gsub(/PFRT_OWN/, "", text)
    while (match(text, /typedef struct [a-z0-9_]+ \{[^}]*\}/)) {
      body = substr(text, RSTART, RLENGTH)
      text = substr(text, RSTART + RLENGTH)
      name = body
      sub(/^typedef struct /, "", name)
      sub(/ \{.*/, "", name)
      sub(/^[^{]*\{/, "", body)
      sub(/\}$/, "", body)
      n = split(body, members, ";")
      for (i = 1; i <= n; ++i) {
        member = members[i]
        gsub(/[ \t]+/, " ", member)
        gsub(/\( /, "(", member)
        sub(/^ /, "", member)
        sub(/ $/, "", member)
        if (member != "") print name ": " member
      }
    }
  }' "$@"
