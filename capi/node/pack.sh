#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the npm package with the native library in it, pyflame-rt-VERSION.tgz, to a folder and prints its path.
# Arguments: the folder of a build or an installation; the folder to write to.
set -euo pipefail
source=$(realpath "$(dirname "$0")")
build=$(realpath "${1:?the folder of a build or an installation}")
out=$(realpath "${2:?the folder to write to}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source"/{lib,index.d.ts,package.json,README.md} "$work"
# The Python wheel has the same files: the library and plug-ins, stripped, and what they need of the build machine's.
PYTHONDONTWRITEBYTECODE=1 python3 - "$source/../python" "$build" "$work" <<'PROGRAM'
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import build_backend

work = Path(sys.argv[3])
for name, data in build_backend.package_files(build_backend.find_library(sys.argv[2])).items():
    folder, _, rest = name.partition("/")
    kind, _, path = rest.partition("/")
    if (folder, kind) == ("pyflame_rt", "lib"):
        target = work / "native" / path
    elif kind == "licenses":
        target = work / "native" / "licenses" / path
    else:
        continue
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
(work / "LICENSE").write_bytes((build_backend.ROOT / "LICENSE").read_bytes())
PROGRAM
(cd "$work" && npm pack --silent --pack-destination "$out") | sed "s|^|$out/|"
