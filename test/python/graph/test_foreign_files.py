# SPDX-License-Identifier: Apache-2.0
"""Files that are no models are recognised, and the way from there to a model is named."""
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

import pyflame_rt

POINTER = (b"version https://git-lfs.github.com/spec/v1\n"
           b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 52428800\n")


def archive(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, b"x" * 100)
    return out.getvalue()


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        file.addfile(tarfile.TarInfo("model.onnx"))
    return out.getvalue()


def array():
    out = io.BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


def safetensors():
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0\0\0\0"


FILES = [
    ("model.onnx", POINTER, "Git LFS pointer to a file of 52428800 bytes.*git lfs pull"),
    ("model.onnx", b"\r\n<!DOCTYPE html>\n<html><body>Sign in</body></html>", "web page"),
    ("model.onnx", b"<HTML>404</HTML>", "web page"),
    ("model.xml", b'<?xml version="1.0"?>\n<net name="a" version="11">', "OpenVINO"),
    ("model.pt", archive("archive/data.pkl", "archive/version"), r"PyTorch's \(torch.save\).*torch.onnx.export"),
    ("model.pt", archive("m/data.pkl", "m/code/__torch__.py", "m/version"), "TorchScript.*torch.onnx.export"),
    ("model.pt2", archive("m/archive_format", "m/models/model.json"), "torch.export.load"),
    ("model.keras", archive("config.json", "model.weights.h5"), "Keras.*format='onnx'"),
    ("model.onnx", archive("model.onnx"), "ZIP archive: unpack"),
    ("model.pth", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "pickle.*torch.onnx.export"),
    ("model.pkl", pickle.dumps({"a": 1}, protocol=4), "pickle.*skl2onnx"),
    ("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "GGUF"),
    ("model.tflite", b"\x1c\0\0\0TFL3" + bytes(20), "tf2onnx.convert --tflite"),
    ("model.safetensors", safetensors(), "safetensors.*no graph.*torch.onnx.export"),
    ("model.h5", b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5.*Keras"),
    ("model.onnx", gzip.compress(b"model"), "gzip: unpack"),
    ("model.onnx", bz2.compress(b"model"), "bzip2: unpack"),
    ("model.onnx", lzma.compress(b"model"), "xz: unpack"),
    ("model.onnx", tar(), "tar archive: unpack"),
    ("model.npy", array(), "NumPy array"),
    ("model.onnx", bytes(4096), "zeros alone"),
]


@pytest.mark.parametrize("name, content, what", FILES, ids=[what.split(".*")[0] for _, _, what in FILES])
def test_a_file_that_is_no_model_is_recognised(tmp_path, name, content, what):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(pyflame_rt.UnsupportedFormatError, match=f"(?s)^loading '.*{name}': it .*{what}"):
        pyflame_rt.InferenceSession(str(path))
    with pytest.raises(pyflame_rt.UnsupportedFormatError, match=what):
        pyflame_rt.InferenceSession(content)
    for size in range(len(content)):  # cut off anywhere
        with pytest.raises((pyflame_rt.UnsupportedFormatError, pyflame_rt.InvalidModelError)):
            pyflame_rt.InferenceSession(content[:size])


def test_what_begins_like_a_model_is_left_to_its_importer(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08\x12\x04test\xff\xff\xff")
    with pytest.raises(pyflame_rt.InvalidModelError, match="truncated, damaged or not ONNX"):
        pyflame_rt.InferenceSession(str(path))


def test_directories_of_archives_may_be_damaged():
    whole = archive("archive/data.pkl", "archive/code/a.py")
    for at in range(len(whole) - 180, len(whole)):
        for byte in (0, 0x7f, 0xff):
            with pytest.raises((pyflame_rt.UnsupportedFormatError, pyflame_rt.InvalidModelError)):
                pyflame_rt.InferenceSession(whole[:at] + bytes([byte]) + whole[at + 1:])
