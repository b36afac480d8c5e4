# SPDX-License-Identifier: Apache-2.0
"""Loads of files by an importer of the tests (test/plugins/importers): definers, options, entries."""
import os
import subprocess
import sys
import textwrap

import pytest

FOLDER = os.environ.get("PFRT_TEST_IMPORTERS", "")

pytestmark = pytest.mark.skipif(not os.path.isdir(FOLDER), reason="the importers of the tests are not built")

WEIGHTS = "rows\nweight w 1 2 3\nweight b 10 20 30\nmeta epoch 7\n"
PRELUDE = """
import numpy
import pyflame_rt
from pyflame_rt import DType, InferenceSession, InvalidArgumentError, PyFlameRTError, UnsupportedFormatError, load_model

def linear(graph, weights):
    assert sorted(weights) == ["b", "w"] and len(weights) == 2 and "w" in weights and "c" not in weights
    assert weights.meta == {"epoch": "7"}
    graph.add_input("x", [3], DType.Float32)
    for name, tensor in weights.items():
        graph.add_initializer(name, tensor)
    graph.add_node("product", "Mul", inputs=["x", "w"], outputs=["p"])
    graph.add_node("sum", "Add", inputs=["p", "b"], outputs=["y"])
    graph.add_output("y", [3], DType.Float32)

def run(graph, x):
    return InferenceSession(graph).run(None, {"x": numpy.array(x, numpy.float32)})[0].tolist()

def raises(kind, *args, **named):
    try:
        load_model(*args, **named)
    except kind as fault:
        return fault
    raise AssertionError("nothing was raised")
"""


def in_process(tmp_path, code, **files):
    """Runs |code| in a process that finds the importers, among |files| with the extension .rows."""
    for name, text in files.items():
        (tmp_path / f"{name}.rows").write_text(text)
    subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(code)], check=True, cwd=tmp_path,
                   env={**os.environ, "PFRT_PLUGIN_PATH": FOLDER + ":" + os.environ.get("PFRT_PLUGIN_PATH", "")})


def test_a_definer_builds_the_graph_of_weights(tmp_path):
    in_process(tmp_path, """
        kept = []
        def define(graph, weights):
            linear(graph, weights)
            kept.extend([graph, weights, weights["w"]])
        graph = load_model("w.rows", definer=define)
        assert run(graph, [1, 1, 1]) == [11, 22, 33]
        assert kept[2].numpy().tolist() == [1, 2, 3] and kept[1]["b"].numpy().tolist() == [10, 20, 30]
        try:
            kept[0].add_input("late", [1], DType.Float32)
        except InvalidArgumentError as fault:
            assert "the load is over" in str(fault), fault
        else:
            raise AssertionError("the model's graph was edited")
        graph.add_output("p", [3], DType.Float32)
        """, w=WEIGHTS)


def test_what_a_definer_raises_is_the_cause_of_the_error(tmp_path):
    in_process(tmp_path, """
        def refuse(graph, weights):
            raise ValueError("there is no such layer")
        fault = raises(PyFlameRTError, "w.rows", definer=refuse)
        assert isinstance(fault.__cause__, ValueError) and "ValueError: there is no such layer" in str(fault), fault
        fault = raises(PyFlameRTError, "w.rows", definer=lambda graph, weights: weights["conv9"])
        assert isinstance(fault.__cause__, KeyError) and "'conv9'" in str(fault) and "b" in str(fault), fault
        fault = raises(UnsupportedFormatError, "w.rows")
        assert "weights (2 tensors), no graph" in str(fault), fault
        fault = raises(InvalidArgumentError, "g.rows", definer=linear)
        assert "a definer was given" in str(fault), fault
        def interrupt(graph, weights):
            raise KeyboardInterrupt
        raises(KeyboardInterrupt, "w.rows", definer=interrupt)
        """, w=WEIGHTS, g="rows\n")


def test_options_and_entries(tmp_path):
    in_process(tmp_path, """
        listed = pyflame_rt.Environment.instance().importer_options("rows")
        assert [option.key for option in listed][:2] == ["import.rows.scale", "import.rows.describe"], listed
        assert listed[0].type == "float" and listed[1].choices == ["short", "long"], listed
        assert run(load_model("g.rows", options={"import.rows.scale": 3}), [1, 2]) == [3, 6]
        fault = raises(InvalidArgumentError, "g.rows", options={"import.rows.scal": 3})
        assert "'import.rows.scale'" in str(fault), fault
        assert run(load_model("e.rows", entry="encode"), [1, 2]) == [2, 4]
        fault = raises(InvalidArgumentError, "e.rows", entry="decode")
        assert "forward, encode" in str(fault), fault
        """, g="rows\n", e="rows\nentry forward\nentry encode\n")
