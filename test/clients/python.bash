# SPDX-License-Identifier: Apache-2.0
# Sourced by clients in Python, from the root of the tree.

# python_with NAME [--beside OTHER] PACKAGE==VERSION...: |python| is an interpreter with the packages, installed once
# under build/clients/NAME, and with those of OTHER that these do not replace. Where the registry is not reached the
# script is skipped by its name.
python_with() {
  local name=$1 venv=build/clients/$1/venv log=build/clients/$1/pip.log beside=
  shift
  if [ "$1" = --beside ]; then
    beside=$2
    shift 2
  fi
  python=$venv/bin/python
  [ "$(cat "$venv/installed" 2>/dev/null)" != "$*" ] || return 0
  /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null ||
    { echo "$name: SKIPPED: needs venv: python3-venv"; exit 77; }
  rm -rf "build/clients/$name"
  mkdir -p "build/clients/$name"
  /usr/bin/python3 -m venv "$venv"
  [ -z "$beside" ] || realpath "build/clients/$beside/venv/lib/"python3*/site-packages >"$(
    echo "$venv"/lib/python3*/site-packages)/beside.pth"
  python_installs "$name" "$@"
  echo "$*" >"$venv/installed"
}

# python_adds NAME PACKAGE==VERSION...: |python|, which python_with NAME made, has these packages too, without what they
# require.
python_adds() {
  local name=$1 added=build/clients/$1/venv/added
  shift
  [ "$(cat "$added" 2>/dev/null)" != "$*" ] || return 0
  python_installs "$name" --no-deps "$@"
  echo "$*" >"$added"
}

# python_installs NAME ARGUMENT...: what pip installs with these arguments.
python_installs() {
  local name=$1 log=build/clients/$1/pip.log
  shift
  "$python" -m pip install --quiet --disable-pip-version-check "$@" 2>"$log" && return 0
  cat "$log"
  # A registry that answers and does not have a version is a fault; one that is not reached is not.
  if grep -qiE 'connection|timed out|resolution|unreachable|proxy' "$log"; then
    echo "$name: SKIPPED: the registry of Python packages is not reached"
    exit 77
  fi
  exit 1
}

# PyTorch, with what its exports are made of and held to. Installed once, as torch_exports: 6 GB.
TORCH_PACKAGES=(torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 timm==1.0.31 onnx==1.23.2 onnxscript==0.7.2
                onnxruntime==1.32.0 numpy==2.4.6)
