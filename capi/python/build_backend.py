# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of pyflame_rt: the package with the library and its plug-ins. What pip calls (PEP 517 and 660).

A wheel is a zip file that lists what is in it, so nothing but Python is needed here: ``pip install`` works without a
network where NumPy is there already (``python3 -m venv --system-site-packages``), and from sources that are read-only.

The wheel also has the libraries that the plug-ins need (protobuf, RE2, oneTBB, those of image formats), so that it works on a
system of the same age with Python and NumPy alone. They are the build machine's, each with its licence.

The library is that of the folder in PYFLAME_RT_BUILD_DIR: a build of these sources or an installation; without it, that
of build/install or build/release, where they are. Else CMake makes a release build, which takes minutes and what
BUILD_PACKAGES of cmake/setup.sh lists; the terminal shows how far it is. An editable install (``-e``) uses the library
where it is, or builds it in build/python. The tool ``pfrt`` is in the wheel where it lies beside the library.
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
LIBRARY, TOOL = "libpyflamert_c.so", "pfrt"
PLUGINS = "pyflame_rt/plugins"  # beside the library
SKELETON = "libpyflamert_provider_null.so"  # to copy from; it runs nothing
BUNDLED = "pyflame_rt/bundled"  # beside the library too; pfrt.cmake tells the plug-ins
# These are glibc's and the compiler's, and are there wherever Python is.
SYSTEM = re.compile(r"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so)")
TAG = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def version():
    """The project's one number."""
    return re.search(r"project\(pyflame_rt VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def terminal():
    """The terminal that pip runs in, which takes the output of this for itself; what is written is lost without one."""
    try:
        return open("/dev/tty", "w", encoding="utf-8")
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


def build_library(build):
    """Builds the library and the tool in the folder |build|."""
    if not shutil.which("cmake"):
        raise SystemExit("pyflame_rt: building the library needs cmake and the packages that BUILD_PACKAGES of "
                         "cmake/setup.sh lists; or set PYFLAME_RT_BUILD_DIR to a folder where it is built or installed")
    parts = ["TESTS", "SAMPLES", "BENCHES"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(["cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release",
                    *(f"-DPYFLAME_RT_BUILD_{part}=OFF" for part in parts)], check=True)
    with terminal() as screen, subprocess.Popen(["cmake", "--build", build, "--parallel"], stdout=subprocess.PIPE,
                                                text=True) as work:
        for line in work.stdout:
            print(line, end="", flush=True)
            done = re.match(r"\[ *(\d+(?:/\d+|%))\]", line)
            if done:
                screen.write(f"\r\033[Kpyflame_rt: building the library, {done.group(1)}")
                screen.flush()
        screen.write("\r\033[K")
    if work.returncode:
        raise SystemExit(f"pyflame_rt: cmake --build {build} failed with code {work.returncode}; pip install -v shows why")


def built_library():
    """The library of the folder that is named, or of one where these sources are built; None where there is none."""
    given = os.environ.get("PYFLAME_RT_BUILD_DIR")
    if given:
        return find_library(given)
    for folder in (ROOT / "build" / "install", ROOT / "build" / "release"):
        for found in libraries_in(folder):
            if version().encode() in found.read_bytes():
                print(f"pyflame_rt: the library is that of {folder}")
                return found
    return None


def libraries_in(folder):
    """Libraries of a build or an installation that have their plug-ins beside them."""
    for found in sorted([*Path(folder).glob(f"lib*/{LIBRARY}"), *Path(folder).glob(f"lib*/*/{LIBRARY}")]):
        if any((found.parent / PLUGINS).glob("*.so")):
            yield found.resolve()


def find_library(folder):
    """The library of a build or an installation, which has its plug-ins beside it."""
    for found in libraries_in(folder):
        return found
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


def needed_libraries(files):
    """The libraries that shared objects need besides SYSTEM: name to path."""
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True)
    needed, missing = {}, []
    for line in done.stdout.splitlines():
        found = re.match(r"\s+(\S+) => (/\S+|not found)", line)
        if found and found.group(2) == "not found":
            missing.append(found.group(1))
        elif found and not SYSTEM.match(Path(found.group(1)).name):
            needed[found.group(1)] = Path(found.group(2))
    if missing:
        raise SystemExit(f"pyflame_rt: the plug-ins need {', '.join(sorted(set(missing)))}, which this machine does "
                         "not have: install what BUILD_PACKAGES of cmake/setup.sh lists")
    return dict(sorted(needed.items()))


def licence_of(library):
    """The licence of a library of the system's: its package and the text; None where no package says."""
    if not shutil.which("dpkg-query"):
        return None
    for path in (library, library.resolve(), Path(str(library.resolve()).replace("/usr/lib", "/lib", 1))):
        done = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            text = Path("/usr/share/doc", package, "copyright")
            return (package, text.read_bytes()) if text.exists() else None
    return None


def tool_of(library):
    """The tool that was built or installed with a library; None where it was not."""
    for folder in library.parents[1:3]:
        if (folder / "bin" / TOOL).is_file():
            return folder / "bin" / TOOL
    return None


def metadata():
    """The files of the wheel's dist-info folder, but for the list of files."""
    lines = ["Metadata-Version: 2.1", "Name: pyflame_rt", f"Version: {version()}",
             "Summary: Loads machine learning models (ONNX), optimises their graphs and runs them",
             "License: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.23"]
    wheel = ["Wheel-Version: 1.0", "Generator: pyflame_rt build_backend", "Root-Is-Purelib: false", f"Tag: {TAG}"]
    return {"METADATA": "\n".join(lines).encode() + b"\n", "WHEEL": "\n".join(wheel).encode() + b"\n",
            "LICENSE": (ROOT / "LICENSE").read_bytes(),
            "entry_points.txt": f"[console_scripts]\n{TOOL} = pyflame_rt.__main__:main\n".encode()}


def package_files(library):
    """The files that are installed: a dict of their paths in the wheel and their bytes."""
    files = {}
    for file in sorted((HERE / "pyflame_rt").rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            files[str(file.relative_to(HERE))] = file.read_bytes()
    tool = tool_of(library)
    if tool is not None:
        files[f"pyflame_rt/bin/{TOOL}"] = stripped(tool)
    plugins = [file for file in sorted((library.parent / PLUGINS).glob("*.so")) if file.name != SKELETON]
    for file in [library, *plugins]:
        files[f"pyflame_rt/lib/{file.relative_to(library.parent)}"] = stripped(file)
    for name, file in needed_libraries([library, *plugins]).items():
        files[f"pyflame_rt/lib/{BUNDLED}/{name}"] = file.read_bytes()
        licence = licence_of(file)
        if licence:
            files[f"pyflame_rt-{version()}.dist-info/licenses/{licence[0]}"] = licence[1]
    return files


def write_wheel(folder, files):
    """Writes the wheel of |files| to |folder|; its name."""
    name, info = f"pyflame_rt-{version()}-{TAG}.whl", f"pyflame_rt-{version()}.dist-info"
    files = {**files, **{f"{info}/{file}": data for file, data in metadata().items()}}
    record = []
    with zipfile.ZipFile(Path(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data):
            entry = zipfile.ZipInfo(path)  # of a fixed date: the same files make the same wheel
            entry.external_attr = (0o100755 if path.endswith((".so", f"/{TOOL}")) else 0o100644) << 16
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
    there = built_library()
    if there is not None:
        return write_wheel(wheel_directory, package_files(there))
    with tempfile.TemporaryDirectory() as build:
        build_library(build)
        return write_wheel(wheel_directory, package_files(find_library(build)))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    library = built_library()
    if library is None:
        build_library(ROOT / "build" / "python")
        library = find_library(ROOT / "build" / "python")
    # site.py adds lines of a .pth file to sys.path and runs those that import.
    lines = f"{HERE}\nimport os; os.environ.setdefault('PYFLAME_RT_LIBRARY', {str(library)!r})\n"
    return write_wheel(wheel_directory, {"pyflame_rt_editable.pth": lines.encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("pyflame_rt: there is no source distribution; a wheel is built from the repository")
