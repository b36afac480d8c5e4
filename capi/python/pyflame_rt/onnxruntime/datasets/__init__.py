# SPDX-License-Identifier: Apache-2.0
"""Small models for examples."""
from __future__ import annotations

import atexit
import base64
import os
import shutil
import tempfile
from typing import Optional

# Models of a few hundred bytes, made by onnx.helper: Sigmoid; Mul by the numbers from 1 to 6; LinearClassifier and ZipMap.
_MODELS = {
    "logreg_iris.onnx": (
        "CAcSCnB5ZmxhbWVfcnQ6pQMK4QEKC2Zsb2F0X2lucHV0EgxvdXRwdXRfbGFiZWwSBnNjb3JlcyIQTGluZWFyQ2xhc3NpZmllciob"
        "ChBjbGFzc2xhYmVsc19pbnRzQABAAUACoAEHKi8KDGNvZWZmaWNpZW50cz3NzCzAPTMzE0A9mpkZPz3NzMy/PWZmBkA9MzMzv6AB"
        "BioeCgppbnRlcmNlcHRzPTMzA0E9zcwMQD1mZibBoAEGKhIKC211bHRpX2NsYXNzGAGgAQIqHAoOcG9zdF90cmFuc2Zvcm0iB1NP"
        "RlRNQVigAQM6CmFpLm9ubngubWwKTwoGc2NvcmVzEhJvdXRwdXRfcHJvYmFiaWxpdHkiBlppcE1hcCodChJjbGFzc2xhYmVsc19p"
        "bnQ2NHNAAEABQAKgAQc6CmFpLm9ubngubWwSC2xvZ3JlZ19pcmlzWh0KC2Zsb2F0X2lucHV0Eg4KDAgBEggKAggDCgIIAmIaCgxv"
        "dXRwdXRfbGFiZWwSCgoICAcSBAoCCANiJgoSb3V0cHV0X3Byb2JhYmlsaXR5EhAiDgoMKgoIBxIGCgQIARIAQgQKABANQg4KCmFp"
        "Lm9ubngubWwQAQ=="
    ),
    "mul_1.onnx": (
        "CAcSCnB5ZmxhbWVfcnQ6ZgoOCgFYCgFXEgFZIgNNdWwSBW11bF8xKiMIAwgCEAFCAVdKGAAAgD8AAABAAABAQAAAgEAAAKBAAADA"
        "QFoTCgFYEg4KDAgBEggKAggDCgIIAmITCgFZEg4KDAgBEggKAggDCgIIAkIECgAQDQ=="
    ),
    "sigmoid.onnx": (
        "CAcSCnB5ZmxhbWVfcnQ6TAoPCgF4EgF5IgdTaWdtb2lkEgdzaWdtb2lkWhcKAXgSEgoQCAESDAoCCAMKAggECgIIBWIXCgF5EhIK"
        "EAgBEgwKAggDCgIIBAoCCAVCBAoAEA0="
    ),
}
_folder: Optional[str] = None


def get_example(name: str) -> str:
    """The path of an example model: "sigmoid.onnx" (x [3, 4, 5]), "mul_1.onnx" (X [3, 2]; Y = X * W) or
    "logreg_iris.onnx" (float_input [3, 2]; a class and a map of probabilities by class for each row). It lies in a folder
    of the process's own, which is removed at its end."""
    global _folder
    if name not in _MODELS:
        raise FileNotFoundError(f"there is no example '{name}'; there are {', '.join(sorted(_MODELS))}")
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="pyflame_rt_examples_")
        atexit.register(_remove, _folder, os.getpid())
    path = os.path.join(_folder, name)
    if not os.path.exists(path):
        with open(path, "xb") as file:
            file.write(base64.b64decode(_MODELS[name]))
    return path


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves its parent's files alone
        shutil.rmtree(folder, ignore_errors=True)
