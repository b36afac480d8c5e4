#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Follows pages line by line on a fresh Debian 12: a chroot that debootstrap makes, with this tree as git has it and
# nothing installed but what the page's own commands install. Needs root, and takes as long as the quickstart's build.
# The chroot stays for a look, and is made anew by the next call; what debootstrap made is kept beside it.
#
# usage: fresh.sh FOLDER [PAGE...]
#   FOLDER: where the chroot is made; PAGE: by default README.md samples/README.md docs/coming_from.md
set -euo pipefail
folder=$(realpath -m "$1")
shift
cd "$(dirname "$0")/../.."
. cmake/setup.sh
[ "$(id -u)" -eq 0 ] || { echo "fresh.sh: chroot needs root" >&2; exit 1; }
[ $# -gt 0 ] || set -- README.md samples/README.md docs/coming_from.md
need_packages debootstrap python3

base=$folder/base
root=$folder/root
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sort -u | grep -m 1 -v security)
[ -e "$base/made" ] || {
  rm -rf "$base"
  mkdir -p "$base"
  debootstrap --variant=minbase bookworm "$base" "$mirror"
  touch "$base/made"
}
unmount() {
  local part
  for part in proc dev; do
    mountpoint -q "$root/$part" && umount "$root/$part"
  done
  return 0
}
unmount
! grep -qF " $root/" /proc/mounts || { echo "fresh.sh: something is still mounted in $root" >&2; exit 1; }
rm -rf --one-file-system "$root"
cp -a "$base" "$root"
# Packages come from the sources of this machine.
rm -rf "$root/etc/apt/sources.list"
cp -r /etc/apt/sources.list.d/*.sources /etc/apt/sources.list "$root/etc/apt/sources.list.d/" 2>/dev/null || true
cp -r /etc/apt/apt.conf.d "$root/etc/apt/"
cp -r /etc/apt/keyrings /etc/apt/trusted.gpg.d "$root/etc/apt/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
trap unmount EXIT
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir -p "$root/src"
git ls-files -z --cached --others --exclude-standard |
  tar -c --null --ignore-failed-read -T - | tar -x -C "$root/src"
/usr/bin/python3 test/docs/pages.py --chroot "$root" --tree /src "$@"
