#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Follows the pages of documentation (pages.py) in a copy of the tree, with an existing build that is installed as the
# quickstart does. Arguments: the source folder, the build folder.
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "needs NumPy: python3-numpy"; exit 77; }
command -v pkg-config >/dev/null || { echo "pkg-config is not here"; exit 77; }
unset PYFLAME_RT_LIBRARY PFRT_PLUGIN_PATH LD_LIBRARY_PATH PYTHONPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/bin"
cp -r "$source"/{samples,cmake,bench} "$work"
mkdir "$work/capi"
cp -r "$source/capi/python" "$work/capi"
cmake --install "$build" --prefix "$work/build/install" --strip >/dev/null

# The installed build stands for the quickstart's, which need not be built again; --all brings the rest of it.
plugins=$(dirname "$(find "$work/build/install" -name libpyflamert_provider_cpu.so)")
mkdir "$work/rest"
for part in provider_wse ops_image executor_tbb; do
  [ ! -f "$plugins/libpyflamert_$part.so" ] || mv "$plugins/libpyflamert_$part.so" "$work/rest"
done
cat >"$work/samples/quickstart.sh" <<DONE
#!/bin/sh
[ "\$1" != --all ] || cp "$work"/rest/* "$plugins"
[ -x build/install/bin/pfrt ]
DONE
cd "$source"
/usr/bin/python3 test/docs/pages.py --tree "$work" README.md samples/README.md include/pyflame_rt/README.md \
  bench/README.md capi/go/README.md capi/java/README.md capi/node/README.md capi/python/README.md capi/rust/README.md \
  core/pass/rules/REWRITES.md providers/cpu/README.md test/README.md \
  samples/digits/README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/architecture.md docs/coming_from.md \
  docs/environment_variables.md
