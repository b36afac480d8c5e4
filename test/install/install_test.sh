#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build, builds programs against it by find_package and by pkg-config, runs a model with each, and checks
# which libraries a .pfm user loads and how large these are. Arguments: the build folder, the source folder.
set -euo pipefail
build=$1
source=$2
export CMAKE_GENERATOR=Ninja
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/tree" >/dev/null
mv "$work/tree" "$work/moved"  # users may move an installed tree
tree=$work/moved
model=$source/samples/digits/digits.onnx
headers() { (cd "$1" && find pyflame_rt -name '*.h' -o -name '*.hpp'); }
diff <(headers "$tree/include" | LC_ALL=C sort) \
     <({ headers "$source/include" && headers "$source/cxxapi"; } | LC_ALL=C sort) ||
  { echo "FAILED: other headers are installed than the source has"; exit 1; }
expect() {
  local got
  got=$("$@")
  [ "$got" = "10 classes" ] || { echo "FAILED: $* printed '$got'"; exit 1; }
}

cmake -S "$source/test/install/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$tree" >/dev/null
cmake --build "$work/consumer" >/dev/null
expect "$work/consumer/run_c" "$model"
expect "$work/consumer/run_cxx" "$model"

# As a part of another project, where a program that links the library is all that is asked for, plug-ins are built too.
mkdir "$work/app"
cat >"$work/app/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C CXX)
add_subdirectory($source pyflame_rt EXCLUDE_FROM_ALL)
add_executable(app $source/test/install/consumer/run.cc)
target_link_libraries(app PRIVATE pyflame_rt::cxx)
TEXT
cmake -S "$work/app" -B "$work/app/build" >/dev/null
cmake --build "$work/app/build" -- -n >"$work/steps"
for file in libpyflamert_c libpyflamert_provider_cpu libpyflamert_import_onnx libpyflamert_ops_text; do
  grep -q "Linking.*$file\.so" "$work/steps" || { echo "FAILED: add_subdirectory does not build $file.so"; exit 1; }
done
if grep -q provider_null "$work/steps"; then echo "FAILED: add_subdirectory builds the skeleton of a provider"; exit 1; fi
[ -z "$(find "$tree" -name '*provider_null*')" ] || { echo "FAILED: the skeleton of a provider is installed"; exit 1; }

pc=$(dirname "$(find "$tree" -name pyflame_rt.pc)")
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers -o "$work/by_pc" \
  "$source/test/install/consumer/run.c" $(PKG_CONFIG_PATH="$pc" pkg-config --cflags --libs pyflame_rt) \
  -Wl,-rpath,"$(PKG_CONFIG_PATH="$pc" pkg-config --variable=libdir pyflame_rt)"
expect "$work/by_pc" "$model"

"$tree/bin/pfrt" convert "$model" "$work/digits.pfm" >/dev/null
expect "$work/by_pc" "$work/digits.pfm" no-importer

# A user's own plug-ins are built against the installed headers, checked by the installed tool, and used.
for sample in custom_op custom_pass custom_provider custom_service; do
  cmake -S "$source/samples/$sample" -B "$work/$sample" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$tree" \
        -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" >/dev/null
  cmake --build "$work/$sample" >/dev/null
  for file in "$work/$sample"/libpyflamert_*.so; do
    "$tree/bin/pfrt" check-plugin "$file" >"$work/rules" || { echo "FAILED: check-plugin $file"; cat "$work/rules"; exit 1; }
  done
done
got=$(PFRT_PLUGIN_PATH="$work/custom_op" "$work/custom_op/use_clamp")
[ "$got" = "-1 -0.5 0 1.5 2" ] || { echo "FAILED: use_clamp printed '$got'"; exit 1; }
PFRT_PLUGIN_PATH=$work/custom_pass "$tree/bin/pfrt" explain "$model" >"$work/steps"
grep -q "pass 'SquarePass' found nothing" "$work/steps" || { echo "FAILED: the sample pass does not run"; cat "$work/steps"; exit 1; }
own=(--provider CustomExecutionProvider --provider CPUExecutionProvider)
PFRT_PLUGIN_PATH=$work/custom_provider "$tree/bin/pfrt" explain "$model" "${own[@]}" >"$work/steps"
grep -q CustomExecutionProvider "$work/steps" || { echo "FAILED: the sample provider runs nothing"; cat "$work/steps"; exit 1; }
PFRT_PLUGIN_PATH=$work/custom_provider "$tree/bin/pfrt" run "$model" "${own[@]}" >/dev/null

if grep -q '^PYFLAME_RT_BUILD_PYTHON:BOOL=ON' "$build/CMakeCache.txt" && /usr/bin/python3 -c 'import numpy'; then
  python=$(dirname "$(dirname "$(find "$tree" -name py.typed)")")
  got=$(cd "$work" && env -i PYTHONPATH="$python" /usr/bin/python3 -B -c 'import sys, numpy, pyflame_rt
image = numpy.zeros((1, 1, 8, 8), numpy.float32)
print(pyflame_rt.InferenceSession(sys.argv[1]).run(None, {"image": image})[0].size, "classes", pyflame_rt._core.library.path)
' "$model")
  [ "$got" = "10 classes $(find "$tree" -name libpyflamert_c.so)" ] || { echo "FAILED: Python printed '$got'"; exit 1; }
fi

# Where an installation has no provider of wafers, the tool says what is missing and who makes it.
rm "$(find "$tree" -name libpyflamert_provider_wse.so)"
if "$tree/bin/pfrt" wse "$model" >"$work/said" 2>&1 || ! grep -q "libpyflamert_provider_wse.so.*BUILD_WSE=ON" "$work/said"; then
  echo "FAILED: pfrt wse without its provider says"
  cat "$work/said"
  exit 1
fi

size=0
for file in $(find "$tree" -name libpyflamert_c.so -o -name libpyflamert_provider_cpu.so); do
  strip -o "$work/stripped" "$file"
  size=$((size + $(stat -c %s "$work/stripped")))
done
echo "C library and CPU provider, stripped: $size bytes"
[ "$size" -gt 0 ] && [ "$size" -lt 8200000 ]
