# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of pyflame_rt: the package with the library and its plug-ins. What pip calls (PEP 517 and 660).

A wheel is a zip file that lists what is in it, so nothing but Python is needed here: ``pip install`` works in a fresh
virtual environment, without a network and from sources that are read-only.

The library is that of the folder in PYFLAME_RT_BUILD_DIR: a build of these sources (build/release) or an installation.
Without it CMake makes a release build, which takes minutes and what BUILD_PACKAGES of cmake/setup.sh lists; progress
is shown by ``pip install -v``. An editable install (``-e``) uses the library where it is, or builds it in build/python.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = "libpyflamert_c.so"
PLUGINS = "pyflame_rt/plugins"  # beside the library
TAG = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def version():
    """The project's one number."""
    return re.search(r"project\(pyflame_rt VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def build_library(build):
    """Builds the library in the folder |build|."""
    if not shutil.which("cmake"):
        raise SystemExit("pyflame_rt: building the library needs cmake and the packages that BUILD_PACKAGES of "
                         "cmake/setup.sh lists; or set PYFLAME_RT_BUILD_DIR to a folder where it is built or installed")
    parts = ["TESTS", "TOOL", "SAMPLES", "BENCHES"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(["cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release",
                    *(f"-DPYFLAME_RT_BUILD_{part}=OFF" for part in parts)], check=True)
    subprocess.run(["cmake", "--build", build, "--parallel"], check=True)


def find_library(folder):
    """The library of a build or an installation, which has its plug-ins beside it."""
    for found in sorted([*Path(folder).glob(f"lib*/{LIBRARY}"), *Path(folder).glob(f"lib*/*/{LIBRARY}")]):
        if any((found.parent / PLUGINS).glob("*.so")):
            return found.resolve()
    raise SystemExit(f"pyflame_rt: {folder} has no lib/{LIBRARY} with lib/{PLUGINS}; PYFLAME_RT_BUILD_DIR is a folder "
                     "that CMake built or installed into")


def stripped(file):
    """The bytes of a shared object without what only debuggers read."""
    if not shutil.which("strip"):
        return file.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, file.name)
        subprocess.run(["strip", "--strip-unneeded", "-o", out, file], check=True)
        return out.read_bytes()


def metadata():
    """The files of the wheel's dist-info folder, but for the list of files."""
    lines = ["Metadata-Version: 2.1", "Name: pyflame_rt", f"Version: {version()}",
             "Summary: Loads machine learning models (ONNX), optimises their graphs and runs them",
             "License: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.23"]
    wheel = ["Wheel-Version: 1.0", "Generator: pyflame_rt build_backend", "Root-Is-Purelib: false", f"Tag: {TAG}"]
    return {"METADATA": "\n".join(lines).encode() + b"\n", "WHEEL": "\n".join(wheel).encode() + b"\n",
            "LICENSE": (ROOT / "LICENSE").read_bytes()}


def package_files(library):
    """What is installed: path in the wheel to bytes."""
    files = {}
    for file in sorted((HERE / "pyflame_rt").rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            files[str(file.relative_to(HERE))] = file.read_bytes()
    for file in [library, *sorted((library.parent / PLUGINS).glob("*.so"))]:
        files[f"pyflame_rt/lib/{file.relative_to(library.parent)}"] = stripped(file)
    return files


def write_wheel(folder, files):
    """Writes the wheel of |files| to |folder|; its name."""
    name, info = f"pyflame_rt-{version()}-{TAG}.whl", f"pyflame_rt-{version()}.dist-info"
    files = {**files, **{f"{info}/{file}": data for file, data in metadata().items()}}
    record = []
    with zipfile.ZipFile(Path(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data):
            entry = zipfile.ZipInfo(path)  # of a fixed date: the same files make the same wheel
            entry.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
            add(path, data)
        add(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode())
    return name


# ------------------------------------------------------------------ what pip calls

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"pyflame_rt-{version()}.dist-info"
    Path(metadata_directory, info).mkdir()
    for name, data in metadata().items():
        Path(metadata_directory, info, name).write_bytes(data)
    return info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    given = os.environ.get("PYFLAME_RT_BUILD_DIR")
    if given:
        return write_wheel(wheel_directory, package_files(find_library(given)))
    with tempfile.TemporaryDirectory() as build:
        build_library(build)
        return write_wheel(wheel_directory, package_files(find_library(build)))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    given = os.environ.get("PYFLAME_RT_BUILD_DIR")
    if not given:
        given = ROOT / "build" / "python"
        build_library(given)
    # site.py adds lines of a .pth file to sys.path and runs those that import.
    lines = f"{HERE}\nimport os; os.environ.setdefault('PYFLAME_RT_LIBRARY', {str(find_library(given))!r})\n"
    return write_wheel(wheel_directory, {"pyflame_rt_editable.pth": lines.encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("pyflame_rt: there is no source distribution; a wheel is built from the repository")
