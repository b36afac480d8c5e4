#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the sample of one language as samples/README.md says, with the library of a build folder: it prints the numbers
# that the C++ sample prints, and says what is wrong when a file or the library is. For Rust, Java and Go the package in
# capi is built first, its tests are run, and so is the program on its page. Arguments: c, rust, java, go or python; the
# build folder.
set -euo pipefail
language=$1
build=$(realpath "$2")
cd "$(dirname "$0")/../.."
export PATH=/usr/bin:$PATH  # Debian's compilers before others
unset PYFLAME_RT_LIBRARY LD_LIBRARY_PATH PFRT_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need() {
  command -v "$1" >/dev/null && return 0
  echo "$1 is not here"
  exit 77
}

# versioned FILE TEXT: the package's file has TEXT with the project's version in place of VERSION.
versioned() {
  local version
  version=$(sed -n 's/^project(pyflame_rt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  grep -qF "${2/VERSION/$version}" "$1" || { echo "FAILED: the version in $1 is not the project's, $version"; exit 1; }
}

# page LANGUAGE: the program on the page of the language's package.
page() {
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "capi/$1/README.md"
}

case $language in
  c)
    need cc
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude samples/c/digits.c -L"$build/lib" -lpyflamert_c -o "$work/digits"
    sample=("$work/digits")
    ;;
  rust)
    need rustc
    versioned capi/rust/Cargo.toml 'version = "VERSION"'
    rust() { rustc --edition 2021 -D warnings "$@"; }
    rust --crate-type rlib --crate-name pyflame_rt -o "$work/libpyflame_rt.rlib" capi/rust/src/lib.rs
    user() { rust --extern pyflame_rt="$work/libpyflame_rt.rlib" "$@"; }
    user -o "$work/digits" samples/rust/digits.rs
    page rust >"$work/first.rs"
    user -o "$work/first" "$work/first.rs"
    rust --test -o "$work/layout_test" capi/rust/src/lib.rs
    user --test -o "$work/session_test" capi/rust/tests/session.rs
    sample=("$work/digits")
    first=("$work/first")
    test_package() {
      "$work/layout_test"
      "$work/session_test"
      # A cargo of the same system as rustc understands it.
      [ ! -x "$(dirname "$(command -v rustc)")/cargo" ] ||
        (cd capi/rust && CARGO_TARGET_DIR=$work/target cargo test --locked --quiet)
    }
    ;;
  java)
    need javac
    jna=/usr/share/java/jna.jar
    [ -e $jna ] || { echo "$jna is not here"; exit 77; }
    java() { command java -cp "$jna:$work" "$@"; }
    compile() { javac --release 17 -Xlint:all -Werror -cp "$jna:$work" -d "$work" "$@"; }
    versioned capi/java/pom.xml "<version>VERSION</version>"
    page java >"$work/First.java"
    compile capi/java/src/main/java/pyflamert/*.java
    compile samples/java/Digits.java "$work/First.java" capi/java/src/test/java/pyflamert/*.java
    sample=(java Digits)
    first=(java First)
    test_package() { java pyflamert.PackageTest; }
    ;;
  go)
    need go
    unformatted=$(gofmt -l capi/go samples/go)
    [ -z "$unformatted" ] || { echo "FAILED: gofmt would change $unformatted"; exit 1; }
    export GOCACHE=$work/cache GOPATH=$work/go GOFLAGS=-mod=readonly GOPROXY=off GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=1
    mkdir "$work/first_program"
    page go >"$work/first_program/main.go"
    sed "s|\.\./\.\.|$PWD|" samples/go/go.mod >"$work/first_program/go.mod"
    (cd capi/go && go vet . && go test -c -o "$work/package_test" .)
    (cd samples/go && go vet . && go build -o "$work/digits" .)
    (cd "$work/first_program" && go build -o "$work/first" .)
    sample=("$work/digits")
    first=("$work/first")
    test_package() { (cd capi/go && "$work/package_test"); }
    ;;
  python)
    /usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "needs NumPy: python3-numpy"; exit 77; }
    export PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1
    sample=(/usr/bin/python3 samples/python/digits.py)
    ;;
  *)
    echo "no sample in '$language'" >&2
    exit 2
    ;;
esac

# prints FOLDER LIBRARIES: expects the output of the C++ sample, without the pictures.
prints() {
  grep -E '^(the first image|[0-9]+ of|accuracy)' <("$build/bin/digits" "$1") >"$work/expected" || true
  [ "$(wc -l <"$work/expected")" -eq 3 ] || { echo "FAILED: the C++ sample printed"; cat "$work/expected"; exit 1; }
  LD_LIBRARY_PATH=$2 "${sample[@]}" "$1" >"$work/printed"
  diff "$work/expected" "$work/printed" || { echo "FAILED: $language differs from the C++ sample"; exit 1; }
}

# fails FOLDER LIBRARIES TEXT: expects no result, a line with TEXT on stderr, and an exit with the sample's own error.
fails() {
  local code=0
  LD_LIBRARY_PATH=$2 "${sample[@]}" "$1" >"$work/printed" 2>"$work/errors" || code=$?
  if [ $code -eq 0 ] || [ $code -ge 128 ] || [ -s "$work/printed" ] || ! grep -qF -- "$3" "$work/errors"; then
    echo "FAILED: $language with $1 and the library of '$2' ended with $code, without '$3' alone:"
    cat "$work/printed" "$work/errors"
    exit 1
  fi
}

library=$build/lib
digits=samples/digits
prints $digits "$library"
mkdir "$work"/{part,none,other,short,no_images,no_model,text,cut,rubbish}
{ head -c 8 $digits/digits_test.bin; printf '\5\0\0\0'; head -c 345 $digits/digits_test.bin | tail -c 333; } \
  >"$work/part/digits_test.bin"
cp $digits/digits.onnx "$work/part"
prints "$work/part" "$library"  # 5 images
grep -q ' of 5 held-out' "$work/printed"

cp $digits/digits_test.bin "$work/no_model"
fails "$work/no_model" "$library" "digits.onnx': No such file or directory"
fails "$work/no_images" "$library" "digits_test.bin"
cp $digits/digits.onnx "$work/text/digits_test.bin"
fails "$work/text" "$library" "is not a file of 8x8 digits"
head -c 1000 $digits/digits_test.bin >"$work/cut/digits_test.bin"
fails "$work/cut" "$library" "is truncated"
cp $digits/digits_test.bin "$work/rubbish/digits_test.bin"
echo "no model" >"$work/rubbish/digits.onnx"
fails "$work/rubbish" "$library" "reading an ONNX model of 9 bytes"

cc -shared -fPIC -Iinclude test/samples/strange_library.c -o "$work/other/libpyflamert_c.so"
fails $digits "$work/none" "libpyflamert_c.so"
fails $digits "$work/other" "this library is of major version 7"
case $language in
  python)  # its package looks for the library itself
    PYFLAME_RT_LIBRARY=$library/libpyflamert_c.so prints $digits ""
    PYFLAME_RT_LIBRARY=$work/none/missing.so fails $digits "$library" "missing.so"
    ;;
  rust | java | go)  # so do theirs, which look at the tables' sizes
    cc -shared -fPIC -Iinclude -DSHORT_TABLES test/samples/strange_library.c -o "$work/short/libpyflamert_c.so"
    fails $digits "$work/short" "table 'status' has 16 bytes"
    PYFLAME_RT_LIBRARY=$library/libpyflamert_c.so prints $digits ""
    PYFLAME_RT_LIBRARY=$work/none/missing.so fails $digits "$library" "PYFLAME_RT_LIBRARY names '$work/none/missing.so'"
    PYFLAME_RT_LIBRARY=libm.so.6 fails $digits "$library" "pfrt_get_api"
    fails $digits "$work/none" "neither '$work/native/libpyflamert_c.so' nor '$work/libpyflamert_c.so'"
    PYFLAME_RT_LIBRARY=$library/libpyflamert_c.so "${first[@]}" >"$work/printed"
    grep -q '[[]0\.003672' "$work/printed" ||
      { echo "FAILED: the program on the package's page printed"; cat "$work/printed"; exit 1; }
    PYFLAME_RT_LIBRARY=$library/libpyflamert_c.so test_package
    cp -rL "$library" "$work/native"
    prints $digits ""  # by the library beside the program
    ;;
esac
echo "$language prints what C++ prints"
