#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Node.js package into the build folder, runs its tests and its sample, and checks its types. Arguments:
# the source folder, the build folder, the C library.
set -euo pipefail
source=$1
work=$2/test/node
export PYFLAME_RT_LIBRARY=$3 PYFLAME_RT_SOURCE=$source NODE_PATH=$work/node_modules

if ! command -v node >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
  echo "SKIPPED: node 18 or newer is not here"
  exit 77
fi
mkdir -p "$work"
# The test is skipped when npm cannot fetch a package here; fetched packages stay.
for package in koffi@3 typescript; do
  [ -d "$work/node_modules/${package%@*}" ] && continue
  command -v npm >/dev/null || break
  [ -f "$work/package.json" ] || echo '{"private": true}' >"$work/package.json"
  timeout 100 npm install --prefix "$work" --prefer-offline --fetch-retries 0 --ignore-scripts --no-audit --no-fund \
    --silent "$package" || break
done
if [ ! -d "$work/node_modules/koffi" ]; then
  echo "SKIPPED: the npm package koffi is not here"
  exit 77
fi

version=$(sed -n 's/^project(pyflame_rt VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
grep -q "\"version\": \"$version\"" "$source/capi/node/package.json" ||
  { echo "FAILED: the version in capi/node/package.json is not the project's, $version"; exit 1; }

# The package is copied, not linked, since Node looks for koffi beside the package itself.
rm -rf "$work/node_modules/pyflame-rt"
mkdir -p "$work/node_modules/pyflame-rt"
cp -r "$source"/capi/node/{lib,index.d.ts,package.json} "$work/node_modules/pyflame-rt/"

node --test "$source/test/node/package_test.js"
node "$source/samples/node/digits.js" "$source/samples/digits" | tee "$work/digits.out"
grep -q "accuracy 9[789]" "$work/digits.out"
# This runs the program on the package's page, as it stands there.
sed -n '/^```js$/,/^```$/{/^```/d;p}' "$source/capi/node/README.md" >"$work/page.js"
(cd "$source" && node "$work/page.js") | tee "$work/page.out"
grep -qF 'Tensor float32 [ 1, 10 ]: 0.003672' "$work/page.out" || { echo "FAILED: the page's program"; exit 1; }

# The package with its library, in a folder of its own: it needs no variable, and stays through a second install.
build=${PYFLAME_RT_LIBRARY%/lib/*}
if command -v npm >/dev/null && command -v python3 >/dev/null; then
  rm -rf "$work/packed"
  mkdir -p "$work/packed"
  packed=$(bash "$source/capi/node/pack.sh" "$build" "$work/packed")
  echo '{"private": true}' >"$work/packed/package.json"
  fetched() {
    timeout 100 npm install --prefix "$work/packed" --prefer-offline --fetch-retries 0 --no-audit --no-fund --silent "$@"
  }
  if fetched "$packed" && fetched koffi@3; then
    cp "$source/samples/node/digits.js" "$work/packed/digits.js"
    (cd "$work/packed" && env -u PYFLAME_RT_LIBRARY -u NODE_PATH node digits.js "$source/samples/digits") |
      grep -q "accuracy 9[789]" || { echo "FAILED: the package with its library"; exit 1; }
  else
    echo "npm fetches nothing here: the package with its library was not installed"
  fi
  rm -rf "$work/packed"
fi

if [ -x "$work/node_modules/.bin/tsc" ]; then
  cp "$source/test/node/types.ts" "$work/types.ts"
  (cd "$work" && node_modules/.bin/tsc --noEmit --strict --target es2022 --lib es2022,dom \
    --module node16 --moduleResolution node16 types.ts)
else
  echo "the npm package typescript is not here: whether the types are right was not looked at"
fi
