#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Python package into a virtual environment by pip, runs a model with nothing set, and removes it again.
# Arguments: the source folder; the folder of a build or installation, without which pip builds the library itself.
set -euo pipefail
source=$(realpath "$1")
build=${2:+$(realpath "$2")}
python=/usr/bin/python3
"$python" -c 'import numpy, venv, ensurepip' 2>/dev/null ||
  { echo "needs NumPy and venv: python3-numpy, python3-venv"; exit 77; }
unset PYFLAME_RT_LIBRARY PYFLAME_RT_BUILD_DIR PYTHONPATH PFRT_PLUGIN_PATH LD_LIBRARY_PATH LD_PRELOAD
export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
failed() { echo "FAILED: $*"; exit 1; }

"$python" -m venv --system-site-packages "$work/venv"
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
pip_install() { "$work/venv/bin/pip" install --quiet --no-build-isolation "$@"; }
installed() { find "$site" -iname '*pyflame*'; }

# From sources that stay as they are.
copy=$work/sources
if [ -n "$build" ]; then
  mkdir -p "$copy"/capi/python "$copy/build"
  ln -s "$build" "$copy/build/release"  # where it is found without a word
  cp -r "$source"/capi/python/{pyflame_rt,build_backend.py,pyproject.toml} "$copy/capi/python"
  cp "$source"/{CMakeLists.txt,LICENSE,pyproject.toml} "$copy"
else
  mkdir "$copy"
  tar -C "$source" -c --exclude=./build --exclude=./.git . | tar -C "$copy" -x
fi
find "$copy" -name __pycache__ -prune -exec rm -rf {} +
chmod -R a-w "$copy"
find "$copy" | sort >"$work/before"
pip_install "$copy/capi/python"
find "$copy" | sort | diff "$work/before" - || failed "pip wrote to the source folder"
find "$site/pyflame_rt" -name '*.so' -exec nm {} + 2>&1 | grep -E ' [TtDdBb] ' && failed "the library is not stripped"
grep -q '^Tag: py3-none-linux_x86_64$' "$site"/pyflame_rt-*.dist-info/WHEEL
# All that its plug-ins need is in it, but what comes with Python itself.
outside=$(find "$site/pyflame_rt" -name '*.so' -exec ldd {} + | grep '=>' |
  grep -vE "=> $site/pyflame_rt/lib/.*/bundled/|^\s+lib(c|m|stdc\+\+|gcc_s)\.so" || true)
[ -z "$outside" ] || failed "the wheel leaves to the system: $outside"
if command -v dpkg-query >/dev/null; then
  licences=$(ls "$site"/pyflame_rt-*.dist-info/licenses)
  grep -q '^libprotobuf-lite' <<<"$licences" || failed "no licence of protobuf among: $licences"
fi

# Elsewhere, with an empty environment.
cat >"$work/program.py" <<'PROGRAM'
import importlib.metadata, pathlib, re, sys
import numpy as np
import pyflame_rt
from pyflame_rt._core import library

source, site = map(pathlib.Path, sys.argv[1:])
package = pathlib.Path(pyflame_rt.__file__).parent
assert package == site / "pyflame_rt", package
assert pathlib.Path(library.path) == package / "lib" / "libpyflamert_c.so", library.path
project = re.search(r"project\(pyflame_rt VERSION (\S+)", (source / "CMakeLists.txt").read_text()).group(1)
assert pyflame_rt.__version__ == importlib.metadata.version("pyflame_rt") == project
assert (package / "py.typed").exists()
plugins = {file.name for file in (package / "lib" / "pyflame_rt" / "plugins").iterdir()}
assert {"libpyflamert_import_onnx.so", "libpyflamert_provider_cpu.so", "libpyflamert_ops_text.so"} <= plugins, plugins
assert "libpyflamert_provider_null.so" not in plugins
assert pyflame_rt.get_available_providers()[0] == "CPUExecutionProvider"
assert "NullExecutionProvider" not in pyflame_rt.get_available_providers()
session = pyflame_rt.InferenceSession(source / "samples/digits/digits.onnx")
rows = np.frombuffer((source / "samples/digits/digits_test.bin").read_bytes(), np.uint8, offset=20).reshape(-1, 65)
found = session.run(None, {"image": (rows[:, 1:] / 16).astype(np.float32).reshape(-1, 1, 8, 8)})[0].argmax(axis=1)
assert (found == rows[:, 0]).sum() == 291
mapped = [line.split()[-1] for line in open("/proc/self/maps") if "libprotobuf-lite" in line]
assert mapped and all(file.startswith(str(package / "lib/pyflame_rt/bundled/")) for file in mapped), mapped
PROGRAM
run_program() { (cd "$work" && env -i "$work/venv/bin/python" -B program.py "$source" "$site"); }
run_program
# The tool is a command of its own, and the package's.
run_tool() {
  local said
  for tool in "$work/venv/bin/pfrt" "$work/venv/bin/python -m pyflame_rt"; do
    said=$(cd "$work" && env -i $tool run "$source/samples/digits/digits.onnx" --dim batch=1 --json 2>&1) ||
      failed "$tool: $said"
    grep -q '"probabilities"' <<<"$said" || failed "$tool said $said"
    (cd "$work" && ! env -i $tool run absent.onnx >/dev/null 2>&1) || failed "$tool ends with 0 whatever happens"
  done
}
run_tool

"$work/venv/bin/pip" uninstall --quiet --yes pyflame_rt
left=$(installed)
[ -z "$left" ] || failed "pip uninstall left $left"
[ -n "$build" ] || exit 0
rm -f "$copy/build/release" 2>/dev/null || { chmod u+w "$copy/build" && rm "$copy/build/release" && chmod u-w "$copy/build"; }
export PYFLAME_RT_BUILD_DIR=$build

# A copy of the build's library that is named by a wrong folder, found in one laid out as Debian does, or made by CMake.
PYFLAME_RT_BUILD_DIR=$work/venv pip_install "$copy/capi/python" >"$work/errors" 2>&1 &&
  failed "installed without a library"
grep -q "$work/venv has no lib/libpyflamert_c.so" "$work/errors" ||
  { cat "$work/errors"; failed "no word of the library"; }
mkdir -p "$work/tree/lib/x86_64-linux-gnu" "$work/bin"
cp -r "$build"/lib/{libpyflamert_c.so,pyflame_rt} "$work/tree/lib/x86_64-linux-gnu"
PYFLAME_RT_BUILD_DIR=$work/tree pip_install "$copy"  # `pip install .` in the repository
run_program
cat >"$work/bin/cmake" <<CMAKE
#!/usr/bin/env bash
echo "\$*" >>"$work/cmake_calls"
[ "\$1" = -S ] && mkdir -p "\$4" && cp -r "$work/tree/lib" "\$4" || [ "\$1" = --build ]
CMAKE
chmod +x "$work/bin/cmake"
env -u PYFLAME_RT_BUILD_DIR PATH="$work/bin:$PATH" "$work/venv/bin/pip" install --quiet --no-build-isolation \
  --force-reinstall --no-deps "$copy/capi/python"
grep -q -- "-S $copy -B .* -DCMAKE_BUILD_TYPE=Release" "$work/cmake_calls" || failed "CMake was not asked for a build"
grep -q -- "^--build" "$work/cmake_calls" || failed "CMake did not build"
run_program

# An editable install is the sources and the build themselves.
pip_install --force-reinstall --no-deps -e "$copy/capi/python"
[ ! -e "$site/pyflame_rt" ] || failed "an editable install copied the package"
got=$(cd "$work" && env -i venv/bin/python -B -c 'import pyflame_rt as p; print(p.__file__, p._core.library.path)')
[ "$got" = "$copy/capi/python/pyflame_rt/__init__.py $build/lib/libpyflamert_c.so" ] ||
  failed "an editable install uses $got"
run_tool
"$work/venv/bin/pip" uninstall --quiet --yes pyflame_rt
left=$(installed)
[ -z "$left" ] || failed "pip uninstall left $left"
