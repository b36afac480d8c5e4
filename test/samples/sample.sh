#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the sample of one language as samples/README.md says, with the library of a build folder: it prints the numbers
# that the C++ sample prints, and says what is wrong when a file or the library is. Arguments: c, rust, java, go or
# python; the build folder.
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

case $language in
  c)
    need cc
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude samples/c/digits.c -L"$build/lib" -lpyflamert_c -o "$work/digits"
    sample=("$work/digits")
    ;;
  rust)
    need rustc
    rustc --edition 2021 -D warnings -o "$work/digits" samples/rust/digits.rs
    sample=("$work/digits")
    ;;
  java)
    need javac
    jna=/usr/share/java/jna.jar
    [ -e $jna ] || { echo "$jna is not here"; exit 77; }
    javac --release 17 -Xlint:all,-serial -Werror -cp $jna -d "$work" samples/java/Digits.java
    sample=(java -cp "$jna:$work" Digits)
    ;;
  go)
    need go
    unformatted=$(gofmt -l samples/go)
    [ -z "$unformatted" ] || { echo "FAILED: gofmt would change $unformatted"; exit 1; }
    GOCACHE=$work/cache GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=1 CGO_CFLAGS="-I$PWD/include" CGO_LDFLAGS="-L$build/lib" \
      go build -o "$work/digits" samples/go/digits.go
    sample=("$work/digits")
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
  rust | java)  # these know the tables without the headers, and look for the library themselves
    cc -shared -fPIC -Iinclude -DSHORT_TABLES test/samples/strange_library.c -o "$work/short/libpyflamert_c.so"
    fails $digits "$work/short" "table 'status' has 16 bytes"
    PYFLAME_RT_LIBRARY=$library/libpyflamert_c.so prints $digits ""
    PYFLAME_RT_LIBRARY=$work/none/missing.so fails $digits "$library" "missing.so"
    PYFLAME_RT_LIBRARY=libm.so.6 fails $digits "$library" "pfrt_get_api"
    ;;
esac
echo "$language prints what C++ prints"
