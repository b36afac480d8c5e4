#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares networks that both of PyTorch's exporters wrote with PyTorch, at every level and with three sizes a
# session. Installs PyTorch under build/clients (6 GB, with the libraries that its wheel brings). Arguments: the build
# folder (build/release), then options for torch_exports.py (--only PATTERN).
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=build/release
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  build=$1
  shift
fi
python_with torch_exports "${TORCH_PACKAGES[@]}"
export PYFLAME_RT_LIBRARY=${PYFLAME_RT_LIBRARY:-$PWD/$build/lib/libpyflamert_c.so}
[ -e "$PYFLAME_RT_LIBRARY" ] || { echo "$PYFLAME_RT_LIBRARY is not there: build the preset release first"; exit 2; }
export PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore
nice "$python" test/clients/torch_exports.py --work build/clients/torch_exports "$@"
