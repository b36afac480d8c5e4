# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh after setup.sh: builds llama.cc and sets |llama| to the options that tables.py takes, none where
# llama.cpp is neither in LLAMA nor to be had.
find_llama() { dirname "$(find "$models/node_modules/@node-llama-cpp" -name 'libggml-base.so' 2>/dev/null | head -n 1)" 2>/dev/null; }
libraries=${LLAMA:-$(find_llama)}
if [ -n "${LLAMA:-}" ] && [ ! -f "$LLAMA/libggml-base.so" ]; then
  echo "LLAMA=$LLAMA has no libggml-base.so" >&2
  exit 1
fi
if [ ! -f "$libraries/libggml-base.so" ]; then
  command -v npm >/dev/null || need_packages npm
  (cd "$models" && npm install --silent --ignore-scripts @node-llama-cpp/linux-x64@3.22.1 >/dev/null) || true
  libraries=$(find_llama)
fi
if [ -f "$libraries/libggml-base.so" ]; then
  c++ -std=c++17 -O2 bench/models/llama.cc -o "$models/llama" -ldl
  llama=(--llama "$models/llama" "$libraries")
else
  echo "llama.cpp is not here: figures beside it are left out" >&2
fi
