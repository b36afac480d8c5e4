#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs samples/quickstart.sh in a copy of the tree, where an existing build stands for the one it makes, and then
# every command that it prints as the next, with CMake's own generator. Argument: the build folder.
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

# The packages are here, or the test would not build, so they are only listed. CMake configures and builds the runtime
# itself.
real=$(command -v cmake)
cat >"$work/bin/dpkg-query" <<'FAKE'
#!/usr/bin/env bash
echo "${@: -1}" >>"$(dirname "$0")/packages"
echo "install ok installed"
FAKE
cat >"$work/bin/cmake" <<FAKE
#!/usr/bin/env bash
case "\$*" in
  "--preset quickstart"*) exit 0 ;;
  "--build build/quickstart")
    printf '[%s/100] Building CXX object\n' 1 2 3 4 5 6 7 60 100
    [ ! -e "$work/bin/broken" ] || { echo "a compiler's complaint"; exit 1; }
    exit 0
    ;;
esac
exec "$real" "\$@"
FAKE
chmod +x "$work"/bin/*
cd "$work/tree"
PATH=$work/bin:$PATH ./samples/quickstart.sh >"$work/printed" 2>"$work/progress"
[ "$(grep -o "^built [0-9]* % in [0-9]* s$" "$work/progress" | cut -d ' ' -f 2 | xargs)" = "5 60 100" ] ||
  { echo "FAILED: no word of progress"; cat "$work/progress"; exit 1; }
grep -q "^accuracy 9[789]" "$work/printed" || { echo "FAILED: no accuracy"; cat "$work/printed"; exit 1; }
for package in make pkg-config; do  # CMake's default generator and samples/README.md need these
  grep -qx $package "$work/bin/packages" || { echo "FAILED: the quickstart does not install $package"; exit 1; }
done
! grep -qx nlohmann-json3-dev "$work/bin/packages" || { echo "FAILED: the quickstart installs what it does not use"; exit 1; }
PATH=$work/bin:$PATH ./samples/quickstart.sh --all >"$work/output" 2>&1
for package in nlohmann-json3-dev libjpeg-dev; do  # of the parts that are built on request
  grep -qx $package "$work/bin/packages" || { echo "FAILED: the quickstart --all does not install $package"; exit 1; }
done
touch "$work/bin/broken"
if PATH=$work/bin:$PATH ./samples/quickstart.sh >"$work/output" 2>&1 || ! grep -q "a compiler's complaint" "$work/output"; then
  echo "FAILED: a build that fails is not shown"; cat "$work/output"; exit 1
fi
rm "$work/bin/broken"
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
