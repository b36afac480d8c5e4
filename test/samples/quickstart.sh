#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs samples/quickstart.sh in a copy of the tree, where a build that exists is taken for the one it makes, then every
# command that it prints as the next, with CMake's own generator. Argument: the build folder.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
command -v make >/dev/null || { echo "make is not here"; exit 77; }
unset CMAKE_GENERATOR CMAKE_PREFIX_PATH PYFLAME_RT_LIBRARY PFRT_PLUGIN_PATH LD_LIBRARY_PATH PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/build" "$work/bin"
cp -r samples cmake "$work/tree"
ln -s "$build" "$work/tree/build/quickstart"

# What the packages bring is here, or the test would not build: they are only listed. CMake configures and builds the
# runtime itself as it pleases.
real=$(command -v cmake)
cat >"$work/bin/dpkg-query" <<'FAKE'
#!/usr/bin/env bash
echo "${@: -1}" >>"$(dirname "$0")/packages"
echo "install ok installed"
FAKE
cat >"$work/bin/cmake" <<FAKE
#!/usr/bin/env bash
case "\$*" in "-S . -B build/quickstart "* | "--build build/quickstart") exit 0 ;; esac
exec "$real" "\$@"
FAKE
chmod +x "$work"/bin/*
cd "$work/tree"
PATH=$work/bin:$PATH ./samples/quickstart.sh >"$work/printed"
grep -q "^accuracy 9[789]" "$work/printed" || { echo "FAILED: no accuracy"; cat "$work/printed"; exit 1; }
for package in make pkg-config; do  # of CMake's default generator and of samples/README.md
  grep -qx $package "$work/bin/packages" || { echo "FAILED: the quickstart does not install $package"; exit 1; }
done
grep -qF "installed in $PWD/build/install" "$work/printed" || { echo "FAILED: no word of pfrt"; cat "$work/printed"; exit 1; }
commands=$(sed -n 's/^  //p' "$work/printed" | grep -c . || true)
[ "$commands" -ge 2 ] || { echo "FAILED: no commands"; cat "$work/printed"; exit 1; }
sed -n '/^installed in/,$s/^  //p' "$work/printed" | while IFS= read -r command; do
  bash -euo pipefail -c "$command" >"$work/output" 2>&1 || { echo "FAILED: $command"; cat "$work/output"; exit 1; }
done
for sample in custom_op custom_pass custom_provider custom_service tbb_host; do
  cmake -S samples/$sample -B build/$sample -DCMAKE_PREFIX_PATH="$PWD/build/install" >"$work/output" 2>&1 &&
    cmake --build build/$sample >>"$work/output" 2>&1 || { echo "FAILED: $sample"; cat "$work/output"; exit 1; }
done
[ "$(PFRT_PLUGIN_PATH=build/custom_op build/custom_op/use_clamp)" = "-1 -0.5 0 1.5 2" ]
echo "the quickstart leaves what the samples need"
