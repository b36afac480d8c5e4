# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that build: installs what is missing. Usage: need_packages NAME...

need_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=""
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  echo "installing: ${missing[*]}" >&2
  $sudo apt-get update -qq >/dev/null
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# The quickstart needs these: compiler, protobuf (importer), FlatBuffers and xxHash (.pfm), RE2 (operators of text),
# xbyak (CPU provider), CLI11 (tool). Make and pkg-config are for users' own programs, the samples first.
QUICKSTART_PACKAGES=(g++ cmake make ninja-build pkg-config protobuf-compiler libprotobuf-dev flatbuffers-compiler
                     libflatbuffers-dev libxxhash-dev libxbyak-dev libcli11-dev libre2-dev)
# All parts need these as well: oneTBB (its executor), nlohmann-json (machine files of wafers), libraries of images (ImageDecoder).
BUILD_PACKAGES=("${QUICKSTART_PACKAGES[@]}" nlohmann-json3-dev
                libjpeg-dev libpng-dev libtiff-dev libopenjp2-7-dev libwebp-dev libtbb-dev)
