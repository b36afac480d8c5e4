#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the members of every struct of the C headers given, in order, one a line: "pfrt_api: const pfrt_env_api* env";
# then, a line each, what other types are ("pfrt_code: typedef uint32_t"), callbacks among them, and what is exported.
set -euo pipefail

awk '
  function plain(declaration) {
    gsub(/[ \t]+/, " ", declaration)
    gsub(/\( /, "(", declaration)
    sub(/^ /, "", declaration)
    sub(/ $/, "", declaration)
    return declaration
  }
  /^[ \t]*#/ || continued { continued = /\\$/; next }
  { text = text " " $0 }
  END {
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
      text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
    gsub(/PFRT_OWN/, "", text)
    others = text
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
        member = plain(members[i])
        if (member != "") print name ": " member
      }
    }
    while (match(others, /(typedef|PFRT_EXPORT) [^;{}]*;/)) {
      type = plain(substr(others, RSTART, RLENGTH - 1))
      others = substr(others, RSTART + RLENGTH)
      if (type ~ /^typedef struct/) continue  # a handle
      name = type
      if (!sub(/\).*/, "", name) || name !~ /\(\*/) sub(/\(.*/, "", name)
      sub(/.*[ *]/, "", name)
      sub(name "( |$)", "", type)
      print name ": " plain(type)
    }
  }' "$@"
