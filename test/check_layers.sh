#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds every #include of the tree against cmake/layers.txt; prints each that goes the wrong way. Argument: the root.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

find include core providers plugins capi cxxapi samples -name '*.cc' -o -name '*.h' -o -name '*.hpp' |
  LC_ALL=C sort | xargs grep -nE '^[[:space:]]*#[[:space:]]*include' |
  awk '
    function starts(text, prefix) { return substr(text, 1, length(prefix)) == prefix }
    FILENAME == "cmake/layers.txt" {
      if ($0 ~ /^#/ || NF == 0) next
      colon = index($0, ":")
      key = substr($0, 1, colon - 1)
      value = substr($0, colon + 1)
      if (starts(key, "library ")) library[substr(key, 9)] = value
      else layer[key] = value
      next
    }
    {
      file = $0; sub(/:.*/, "", file)
      rest = substr($0, length(file) + 2)
      line = rest; sub(/:.*/, "", line)
      quoted = rest ~ /#[[:space:]]*include[[:space:]]*"/
      header = rest
      sub(/^[^"<]*["<]/, "", header); sub(/[">].*$/, "", header)
      where = file ":" line ": " header
      ++count

      for (prefix in library) {
        if (!starts(header, prefix)) continue
        n = split(library[prefix], places, " "); ok = 0
        for (i = 1; i <= n; ++i) if (starts(file, places[i])) ok = 1
        if (!ok) { print where ": only" library[prefix] " may include it"; bad = 1 }
      }
      if (!quoted && !starts(header, "pyflame_rt/")) next

      own = ""
      for (key in layer) if (starts(file, key "/") && length(key) > length(own)) own = key
      if (own == "") { print where ": cmake/layers.txt has no line for this folder"; bad = 1; next }
      # A header without a folder, or of the folder itself, is its own.
      if (index(header, "/") == 0 && own == "include/pyflame_rt") next
      if (starts(header, own "/")) next
      n = split(layer[own], allowed, " "); ok = 0
      for (i = 1; i <= n; ++i)
        if (header == allowed[i] || starts(header, allowed[i] "/")) ok = 1
      if (own == "include/pyflame_rt" && starts(header, "pyflame_rt/")) ok = 1
      if (!ok) { print where ": " own " may include only itself and" layer[own]; bad = 1 }
    }
    END {
      if (count < 500) { print "only " count " includes were read: the check itself is broken"; exit 1 }
      if (!bad) print count " includes point the right way"
      exit bad
    }' cmake/layers.txt -
