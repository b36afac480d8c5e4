#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the page of passes and rewrites is the one that the tool prints. Arguments: the tool, the root.
set -euo pipefail

if ! diff "$2/core/pass/rules/REWRITES.md" <("$1" passes --markdown); then
  echo "core/pass/rules/REWRITES.md is not what the tables say; to print it anew:"
  echo "  build/release/bin/pfrt passes --markdown > core/pass/rules/REWRITES.md"
  exit 1
fi
