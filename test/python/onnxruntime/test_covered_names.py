# SPDX-License-Identifier: Apache-2.0
"""The names of ONNX Runtime's API that the programs here use, read off their source.

covered_names.txt has them, one a line; ``python3 test_covered_names.py`` writes it.
"""
import ast
import importlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = HERE / "covered_names.txt"
# The programs call their objects by these names.
VARIABLES = {"session": "InferenceSession", "options": "SessionOptions", "run_options": "RunOptions",
             "value": "OrtValue", "binding": "IOBinding", "arg": "NodeArg", "meta": "ModelMetadata",
             "device": "OrtDevice", "sparse": "SparseTensor"}
STATE = "capi.onnxruntime_pybind11_state"


def dotted(expression):
    """("session", "run") of session.run; calls in between are looked through where they make an object."""
    if isinstance(expression, ast.Name):
        return [expression.id]
    if isinstance(expression, ast.Attribute):
        inner = dotted(expression.value)
        return inner and [*inner, expression.attr]
    if isinstance(expression, ast.Call):
        inner = dotted(expression.func)
        if inner and inner[-1] in VARIABLES.values():
            return inner
    return None


def names_of(source):
    """Dotted names of the API that a program's source uses."""
    found = set()
    for part in ast.walk(ast.parse(source)):
        path = dotted(part) if isinstance(part, ast.Attribute) else None
        if not path or len(path) < 2:
            continue
        if path[0] == "ort":
            found.add(".".join(path[1:3] if path[1][0].isupper() else path[1:2]))
        elif path[0] == "state":
            found.add(f"{STATE}.{path[1]}")
        elif path[0] in VARIABLES:
            found.add(f"{VARIABLES[path[0]]}.{path[1]}")
    return found


def used():
    sources = [path.read_text() for path in HERE.glob("*.py") if path.name != Path(__file__).name]
    return sorted(set().union(*map(names_of, sources)))


def programs():
    functions = [part.name for path in HERE.glob("test_*.py") if path.name != Path(__file__).name
                 for part in ast.parse(path.read_text()).body if isinstance(part, ast.FunctionDef)]
    return [name for name in functions if name.startswith("test_")]


def test_the_list_is_what_the_programs_use():
    assert FILE.read_text().split() == used()


def test_there_are_enough_programs_and_names():
    assert len(programs()) == len(set(programs())) >= 60
    assert len(used()) >= 40


def test_each_name_is_there():
    ort = importlib.import_module("pyflame_rt.onnxruntime")
    made = {"SessionOptions": ort.SessionOptions(), "RunOptions": ort.RunOptions(),
            "NodeArg": ort.NodeArg("x", "tensor(float)", [1]), "ModelMetadata": ort.ModelMetadata()}
    for name in used():
        first, *rest = name.split(".")
        what = made.get(first, getattr(ort, first)) if rest else getattr(ort, first)
        for part in rest:
            what = getattr(what, part)


if __name__ == "__main__":
    FILE.write_text("".join(name + "\n" for name in used()))
