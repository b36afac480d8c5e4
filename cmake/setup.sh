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

# What building the runtime itself takes: compiler, protobuf (importer), FlatBuffers and xxHash (.pfm), RE2 and the
# image libraries (operators of text and images), oneTBB (its executor), xbyak (CPU provider), nlohmann-json (machine
# files), CLI11 (tool). Make and pkg-config are for users' own programs, the samples first.
BUILD_PACKAGES=(g++ cmake make ninja-build pkg-config protobuf-compiler libprotobuf-dev flatbuffers-compiler
                libflatbuffers-dev libxxhash-dev libxbyak-dev libcli11-dev libre2-dev nlohmann-json3-dev
                libjpeg-dev libpng-dev libtiff-dev libopenjp2-7-dev libwebp-dev libtbb-dev)
