# SPDX-License-Identifier: Apache-2.0
"""What tables.py makes of the tool's answers."""
import json
import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tables
from cases import Case, cases, made, zoo_inputs

MACHINE = {"cpu": "a cpu", "isa": ["avx2"], "isa_cap": None, "cores_online": 2, "cores_usable": 1, "memory": 2**30, "system": "Linux",
           "version": "1", "peer": "1.30.0"}
ANSWER = {"ours": {"median_s": 0.002}, "peer": {"median_s": 0.003}, "ratio": 1.5, "rms_relative_difference": 1e-6,
          "notes": ["a note"]}


def rows(*ratios):
    return [{"model": f"m{i}", "ratio": r} if r else {"model": f"m{i}", "refused": "why"} for i, r in enumerate(ratios)]


def tool(tmp_path, *lines):
    """A program in place of pfrt."""
    path = tmp_path / "pfrt"
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(0o755)
    return tables.Bench(str(path), "libpeer.so", seconds=1)


def test_the_mean_is_geometric():
    assert tables.geometric_mean([1, 4]) == pytest.approx(2)
    assert tables.geometric_mean([0.5, 0.5, 4]) == pytest.approx(1)


def test_a_model_that_does_not_run_is_counted_and_is_not_in_the_mean():
    found = tables.summary(rows(1.0, None, 4.0), (1.9, 1.2))
    assert found["models"] == 3 and found["ran"] == 2 and found["mean"] == pytest.approx(2)
    assert found["worst"] == 1.0 and found["worst_model"] == "m0"
    assert found["mean_met"] and not found["worst_met"]
    text = tables.summary_text(found)
    assert "geometric mean 2.000 (1.9 asked)" in text and "1.000 m0 (1.2 asked; MISSED)" in text
    assert "1 not run" in text


def test_of_memory_less_is_better():
    found = tables.summary(rows(0.5, 0.8), (0.7, None), better=min)
    assert found["worst"] == 0.8 and found["mean_met"] and "asked_worst" not in found
    assert not tables.summary(rows(0.71), (0.7, None), better=min)["mean_met"]


def test_nothing_ran():
    found = tables.summary(rows(None), (1.8, 1.2))
    assert found == {"models": 1, "ran": 0} and tables.summary_text(found) == "no model ran on both sides"
    assert tables.summary_text(tables.summary([])) == "no model is one of these"


def test_the_tool_is_given_what_a_case_needs(tmp_path):
    bench = tool(tmp_path, 'printf "%s\\n" "$@" > "$(dirname "$0")/words"', f"echo '{json.dumps(ANSWER)}'")
    case = Case("m*8", tmp_path / "m.onnx", {"N": 8}, {"x": tmp_path / "x.npy"})
    row = tables.latency_row(case, bench.run(case, 2, "bf16"))
    words = (tmp_path / "words").read_text().splitlines()
    pairs = list(zip(words, words[1:]))
    for pair in (("bench", str(case.path)), ("--peer", "libpeer.so"), ("--threads", "2"), ("--precision", "bf16"),
                 ("--seconds", "1"), ("--dim", "N=8"), ("--input", f"x={tmp_path}/x.npy")):
        assert pair in pairs
    assert row["ours_ms"] == pytest.approx(2) and row["peer_ms"] == pytest.approx(3) and row["ratio"] == 1.5


def test_the_machine_is_described():
    text = tables.machine_text(MACHINE)
    for part in ("a cpu", "avx2", "2 online, 1 usable", "1.0 GiB", "Linux", "ONNX Runtime 1.30.0"):
        assert part in text


def test_what_the_tool_refuses_is_said(tmp_path, capsys):
    bench = tool(tmp_path, "echo 'pfrt: ours: node x has no kernel' >&2; exit 2")
    case = Case("m", tmp_path / "m.onnx")
    report = tables.Report(False, MACHINE)
    report.table("set B", {}, report.LATENCY, [tables.latency_row(case, bench.run(case, 1, "fp32"))])
    printed = capsys.readouterr().out
    assert "not run: ours: node x has no kernel" in printed and "no model ran" in printed
    assert "died of signal 9" in tool(tmp_path, "kill -9 $$").run(case, 1, "fp32")["refused"]


def test_a_precision_that_is_refused_ends_the_table(tmp_path, capsys):
    bench = tool(tmp_path, "echo \"pfrt: --precision: precision 'odd' is not available\" >&2; exit 2")
    report = tables.Report(True, MACHINE)
    report.table("set A", {"set": "a"}, report.LATENCY, (
        tables.latency_row(c, bench.run(c, 1, "odd")) for c in [Case("m", tmp_path / "m.onnx")] * 3))
    report.finish()
    found = json.loads(capsys.readouterr().out)
    assert found["tables"] == [{"set": "a", "rows": [], "refused": "--precision: precision 'odd' is not available"}]
    assert found["machine"] == MACHINE


def test_a_difference_without_measure_is_a_note():
    row = tables.latency_row(Case("m", None), {**ANSWER, "rms_relative_difference": None})
    assert len(row["notes"]) == 2 and "zero everywhere" in row["notes"][1]
    assert tables.row_text(row, tables.Report.LATENCY).split() == ["m", "2", "3", "1.500", "-"]


def test_creation_and_first_run_are_added_and_rounds_give_medians(tmp_path):
    side = {"load_s": 0.5, "first_run_s": 0.25, "peak_bytes": 7e6}
    answer = {**ANSWER, "ours": side, "peer": {**side, "load_s": 1.25, "peak_bytes": 1e7}}
    slow = {**answer, "ours": {**side, "load_s": 100}}
    bench = tool(tmp_path, 'n="$(dirname "$0")/n"; echo >> "$n"', f"a='{json.dumps(answer)}'; b='{json.dumps(slow)}'",
                 '[ "$(wc -l < "$n")" = 1 ] && echo "$b" || echo "$a"')
    case = Case("m", tmp_path / "m.onnx")
    launched = tables.launches(bench, case, 1, "fp32", 3)
    assert tables.start_row(case, launched)["ratio"] == pytest.approx(2)
    assert tables.memory_row(case, launched)["ratio"] == pytest.approx(0.7)


def test_decode_counts_what_is_streamed(tmp_path):
    constants = [numpy_helper.from_array(np.zeros(shape, np.float32), name)
                 for name, shape in (("table", (100, 4)), ("weight", (4, 5)))]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("MatMul", ["x", "weight"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])], constants)
    onnx.save(helper.make_model(graph), str(tmp_path / "m.onnx"))
    assert tables.streamed_bytes(tmp_path / "m.onnx") == 80
    row = tables.decode_row(Case("m", tmp_path / "m.onnx"), ANSWER)
    assert row["ours_gbs"] == pytest.approx(80 / 0.002 / 1e9)


def zoo_model(folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
             helper.make_tensor_value_info("rate", TensorProto.INT64, [])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ports, [output])
    onnx.save(helper.make_model(graph), str(folder / "model.onnx"))
    for index, array in enumerate((np.ones((5, 3), np.float32), np.array(16000))):
        (data / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def test_the_zoo_is_fed_random_floats_and_recorded_integers(tmp_path):
    zoo_model(tmp_path / "zoo" / "m")
    files = zoo_inputs(tmp_path / "zoo" / "m", tmp_path)
    assert files["rate"] == tmp_path / "zoo" / "m" / "test_data_set_0" / "input_1.pb"
    fed = np.load(files["x"])
    assert fed.shape == (5, 3) and fed.dtype == np.float32 and fed.std() > 0.1 and math.isfinite(fed.sum())


def test_a_zoo_that_is_absent_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PFRT_ZOO", str(tmp_path / "none"))
    monkeypatch.setattr("cases.write_models", lambda folder, names: None)
    assert [c.name for c in cases("b", tmp_path)] == ["squeezenet", "shufflenet"]
    assert f"{tmp_path}/none is not here" in capsys.readouterr().err


def test_batches_and_past_tokens_are_dimensions(tmp_path, monkeypatch):
    monkeypatch.setattr("cases.write_models", lambda folder, names: None)
    eight, step = made(tmp_path, ["encoder*8", "decoder_step"])
    assert eight.path == tmp_path / "encoder.onnx" and eight.options() == ["--dim", "N=8"]
    assert step.options() == ["--dim", "past=127"]


def test_tiny_models_are_those_of_b_that_take_the_peer_little_time(tmp_path, monkeypatch):
    times = {"small": 0.0001, "large": 0.003, "odd": None}
    monkeypatch.setattr(tables, "cases", lambda name, folder: [Case(m, tmp_path / m) for m in times])
    runs = []

    class Timed:
        def run(self, case, threads, precision):
            runs.append((case.name, threads))
            seconds = times[case.name]
            return {**ANSWER, "peer": {"median_s": seconds}} if seconds else {"refused": "no kernel"}

    class Args:
        threads, precision, models = [1], ["fp32"], tmp_path

    report = tables.Report(True, MACHINE)
    tables.latency_tables(Timed(), report, ["b", "tiny"], Args)
    assert [[r["model"] for r in t["rows"]] for t in report.tables] == [["small", "large", "odd"], ["small", "odd"]]
    assert runs == [("small", 1), ("large", 1), ("odd", 1)]  # once, for both tables
    Args.threads = [2]
    tables.latency_tables(Timed(), report, ["tiny"], Args)
    assert report.tables[-1]["threads"] == 1 and runs[3:] == [("small", 1), ("large", 1), ("odd", 1)]


def test_axes_are_held_against_the_same_of_one_size(tmp_path, monkeypatch):
    monkeypatch.setattr("cases.write_models", lambda folder, names: None)

    class Bench:
        def pair(self, case, precision, other, other_precision):
            if "bert" in case.path.name:
                return {"refused": "no kernel"}
            assert (case.path.name, other.path.name) in {(f"{m}_fixed.onnx", f"{m}_axes.onnx") for m in ("encoder", "decoder")}
            return {"median_s": [0.1, 0.11 if "encoder" in case.path.name else 0.1], "ratio": 1.1}

    class Args:
        precision, models = ["fp32"], tmp_path

    report = tables.Report(True, MACHINE)
    tables.axes_tables(Bench(), report, Args)
    (table,) = report.tables
    assert [r["model"] for r in table["rows"]] == ["encoder", "decoder", "bert"]
    assert table["rows"][0]["axes_ms"] == pytest.approx(110) and table["rows"][2]["refused"] == "no kernel"
    assert table["summary"]["worst"] == 1.1 and not table["summary"]["worst_met"]
