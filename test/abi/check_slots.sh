#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The structs of the headers begin with the members they had in every band of the ABI (slots_*.txt), and other types and
# callbacks are what they were: members are only added at the end. The newest band has all there is now. abidiff would
# compare the one exported symbol and what it leads to: this sees the same, and beside it what plug-ins and clients hand
# over, which no symbol leads to. Argument: the folder of the headers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
current=$(mktemp)
trap 'rm -f "$current"' EXIT
bash "$here/slots.sh" "$1/types.h" "$1/pyflame_rt.h" "$1/plugin.h" "$1/custom.h" >"$current"

for golden in "$here"/slots_*.txt; do
  awk -v golden="$golden" '
    { name = $0; sub(/:.*/, "", name) }
    NR == FNR { now[name, ++size[name]] = $0; next }
    {
      ++count
      found = now[name, ++seen[name]]
      if (found == $0) next
      print "band of " golden ": member " seen[name] " was \"" $0 "\", is \"" found "\""
      bad = 1
    }
    END {
      if (count < 100) { print golden " has only " count " members"; bad = 1 }
      if (!bad) print count " members stand where they stood"
      exit bad
    }' "$current" "$golden"
done
newest=$(printf '%s\n' "$here"/slots_*.txt | sort -V | tail -n 1)
if [ "$(wc -l <"$current")" -ne "$(wc -l <"$newest")" ]; then
  echo "$newest is the newest band and has not what the headers have now; write it by slots.sh, or one of a new minor:"
  diff "$newest" "$current" || exit 1
fi
