#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy 16 with .clang-tidy over our sources (not tests, samples and benches); fails when it finds anything.
# BUILD is a build folder of the preset clang, for its compile_commands.json and generated sources.
# Usage: test/clang_tidy.sh BUILD [--checks CHECKS] [FILE... | --changed COMMIT]
#   --changed COMMIT  only sources that differ from it; a header is read through the source of its name, or one that
#                     includes it; without the analyzer where they are more than 60, since it would take the longest
#                     of all checks
#   --checks CHECKS   added to those of .clang-tidy: '-clang-analyzer-*' leaves out the slowest ones
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

FOLDERS=(core capi providers cxxapi plugins)

# Prints the files of the given endings that include a header, the shortest first.
includers() {
  local header=$1 ending
  shift
  { git grep -lE "#include [\"<](${header%%/*}/)?${header#*/}[\">]" -- \
      $(for ending in "$@"; do printf '%s ' "${FOLDERS[@]/%//*.$ending}"; done) || true; } |
    xargs -r wc -c | sed '/ total$/d' | sort -n | awk '{print $2}'
}

# Prints the source through which a header is read: the one of its name, else one that includes it, or includes a
# header that does.
source_of() {
  local found header
  found=${1%.*}.cc
  [ -f "$found" ] || found=$(includers "$1" cc | sed -n 1p)
  if [ -z "$found" ]; then
    for header in $(includers "$1" h hpp); do
      found=$(source_of "$header")
      [ -z "$found" ] || break
    done
  fi
  echo "$found"
}

# Prints the sources that differ from a commit, whether committed since or not.
changed_since() {
  local file
  {
    git diff --name-only --diff-filter=d "$1" -- "${FOLDERS[@]}"
    git ls-files --others --exclude-standard -- "${FOLDERS[@]}"
  } | while read -r file; do
    case $file in
      *.cc) echo "$file" ;;
      *.h | *.hpp) source_of "$file" ;;
    esac
  done | sort -u | sed '/^$/d'
}

# Keeps one command for each source, though several targets may compile it, and drops the precompiled header, which
# may not exist.
write_commands() {
  python3 - "$1/compile_commands.json" "$2/compile_commands.json" <<'PYTHON'
import json, os, re, sys
entries = {}
for entry in json.load(open(sys.argv[1])):
    entry["command"] = re.sub(r" -Winvalid-pch( -Xclang \S+)+", "", entry["command"])
    sources = [entry["file"]]
    if "/Unity/" in entry["file"] and os.path.exists(entry["file"]):
        sources = re.findall(r'#include "(.+)"', open(entry["file"]).read())
    for source in sources:
        command = entry["command"].replace(entry["file"], source)
        entries.setdefault(source, {**entry, "file": source, "command": command})
json.dump(list(entries.values()), open(sys.argv[2], "w"))
PYTHON
}

tidy() {
  local findings
  findings=$(clang-tidy-16 --quiet -p "$COMMANDS" --checks="$CHECKS" "$1" </dev/null 2>/dev/null) && return
  echo "${findings:-$1: clang-tidy fails}"
  return 1
}

main() {
  local build=$1 files=()
  export CHECKS="" COMMANDS
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      --checks) CHECKS=$2; shift 2 ;;
      --changed)
        git rev-parse -q --verify "$2^{commit}" >/dev/null || { echo "$2: no commit" >&2; return 2; }
        mapfile -t files < <(changed_since "$2")
        [ ${#files[@]} -gt 0 ] || return 0
        if [ ${#files[@]} -gt 60 ]; then
          echo "${#files[@]} sources differ: read without clang-tidy's analyzer"
          [ -n "$CHECKS" ] || CHECKS="-clang-analyzer-*"
        fi
        shift 2 ;;
      -*) echo "$1: unknown option" >&2; return 2 ;;
      *) files+=("$1"); shift ;;
    esac
  done
  [ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files -- "${FOLDERS[@]/%//*.cc}")
  need_packages clang-tidy-16
  COMMANDS=$(mktemp -d)
  trap 'rm -r "$COMMANDS"' EXIT
  write_commands "$build" "$COMMANDS"
  export -f tidy
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy "$1"' tidy
}

main "$@"
