# SPDX-License-Identifier: Apache-2.0
"""What ``import pyflame_rt`` loads, and what it says of modules that are not there yet."""
import ast
import inspect
import subprocess
import sys

import pytest

import pyflame_rt

LATER = ["backend", "batching", "cache", "custom", "import_module", "memory", "opt", "partition", "streaming", "tuning"]
ABSENT = ["distillation", "pruning", "quantization", "serving"]


def run(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def test_modules_are_loaded_when_they_are_first_asked_for():
    loaded = run("import sys, pyflame_rt; print(*(m for m in sys.modules if m.startswith('pyflame_rt.')))").split()
    assert not [m for m in loaded if m.split(".")[1] in LATER]
    assert not [m for m in loaded if m.split(".")[1] in ("_session", "_graph", "_values")]
    for name in LATER:
        assert run(f"import pyflame_rt; print(pyflame_rt.{name}.__name__)").strip() == f"pyflame_rt.{name}"
        assert run(f"from pyflame_rt import {name}; print({name}.__name__)").strip() == f"pyflame_rt.{name}"
    assert run("import pyflame_rt; print(pyflame_rt.Backend.__module__)").startswith("pyflame_rt.backend")
    assert run("from pyflame_rt import *; print(ImportOptions.__name__, opt.__name__)").split() == ["ImportOptions",
                                                                                                 "pyflame_rt.opt"]


def test_every_name_is_listed():
    assert set(pyflame_rt.__all__) <= set(dir(pyflame_rt))
    for name in pyflame_rt.__all__:
        assert getattr(pyflame_rt, name) is not None
    with pytest.raises(AttributeError, match="module 'pyflame_rt' has no attribute 'Sesion'"):
        pyflame_rt.Sesion
    assert not hasattr(pyflame_rt, "Sesion")


def test_type_checkers_see_the_names_that_are_loaded_later():
    tree = ast.parse(inspect.getsource(pyflame_rt))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {name.name: node.module for node in block.body for name in node.names if node.module}
    assert seen == pyflame_rt._LATER


@pytest.mark.parametrize("module", ABSENT)
def test_modules_of_the_guide_that_are_not_there_say_so(module):
    says = f"pyflame_rt.{module}.Thing is not in this version .*README"
    with pytest.raises(ImportError, match=says):
        getattr(getattr(pyflame_rt, module), "Thing")
    with pytest.raises(ImportError, match=says):
        exec(f"from pyflame_rt.{module} import Thing")
    assert "not in this version" in getattr(pyflame_rt, module).__doc__
