#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The hooks of cmake/hooks, installed by the command that CONTRIBUTING.md gives, let good commits pass and refuse each
# kind of bad one. Argument: the root.
set -euo pipefail
root=$(realpath "$1")
command -v git >/dev/null || { echo "git is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a
git init -q "$work"
cd "$work"
mkdir -p cmake core test
cp -r "$root/cmake/hooks" "$root/cmake/layers.txt" cmake
cp "$root/.clang-format" .
install=$(grep -m 1 -o 'git config core.hooksPath [^ ]*' "$root/CONTRIBUTING.md")
$install

# expect WHETHER MESSAGE: a commit of what is staged is accepted or refused.
expect() {
  local is=accepted
  git commit -q --allow-empty -m "$2" >said 2>&1 || is=refused
  [ $is = "$1" ] || { echo "FAILED: '$2' is $is"; cat said; exit 1; }
}
cat >test/check_layers.py <<'DONE'
import os, sys
sys.exit(os.path.exists("core/wrong.cc") and "core/wrong.cc goes the wrong way")
DONE
expect accepted "core: a subject of the right form"
expect refused "a subject without a folder"
expect refused "core: $(printf 'x%.0s' {1..67})"
expect accepted "core: $(printf 'x%.0s' {1..66})"
expect accepted "Merge branch 'of any length, which Git has written, so that nobody can make it shorter than it is'"
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "int  a;" >core/a.cc
  git add core/a.cc
  echo "int a;" >core/a.cc
  expect refused "core: the file is well formed, but not what is staged"
  git add core/a.cc
  expect accepted "core: well formed"
fi
echo "int b;" >core/wrong.cc
git add core/wrong.cc
expect refused "core: against the layers"
grep -q "core/wrong.cc goes the wrong way" said
git rm -q -f core/wrong.cc
git commit -q --no-verify --allow-empty -m "past the hooks"
echo "the hooks refuse what they should"
