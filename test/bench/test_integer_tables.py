# SPDX-License-Identifier: Apache-2.0
"""What is asked in the tables of integers, and what is made of measurements."""
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import integer_models
import integer_tables
import nbits_models
import tables
import topologies
import work
from cases import Case
from integer_tables import Asked, column_of, judged, lines_against_peer, llama_row, share_row

ROOT = Path(__file__).resolve().parents[2]
VNNI = {"cpu": "AMD EPYC", "isa": ["avx2", "avx512f", "avx512_vnni", "avx512_bf16"], "isa_cap": ""}
ANSWER = {"ours": {"median_s": 0.002}, "peer": {"median_s": 0.003}, "ratio": 1.5, "rms_relative_difference": 1e-6,
          "max_relative_difference": 1e-5, "notes": []}


def test_a_machine_is_judged_by_what_it_uses():
    assert column_of(VNNI, None, True) == "vnni"
    assert column_of({**VNNI, "isa_cap": "avx512_vnni"}, "avx512_vnni", True) == "vnni"
    assert column_of({**VNNI, "isa_cap": "avx512"}, "avx512", True) is None
    assert column_of({**VNNI, "isa": [*VNNI["isa"], "amx_tile"]}, None, True) == "amx"
    assert column_of({**VNNI, "isa": ["avx2"]}, None, True) == "avx2"


def test_a_peer_that_is_not_held_back_is_asked_nothing():
    held = {**VNNI, "isa_cap": "avx2"}
    assert column_of(held, None, True) is None and column_of(held, "avx512", True) is None
    assert column_of(held, "avx2", True) == "avx2" and column_of(held, None, False) == "avx2"


def test_exact_products_are_asked_less_of_avx2_on_intel():
    for cpu, asked in (("AMD EPYC", 0.95), ("Intel(R) Xeon(R)", 0.75)):
        _, models = lines_against_peer({**VNNI, "cpu": cpu})[1]
        assert {a.avx2 for _, a in models} == {asked} and {a.vnni for _, a in models} == {0.95}


def test_every_model_of_a_line_can_be_made():
    named = {name for _, models in lines_against_peer(VNNI).values() for name, _ in models}
    named |= {*integer_tables.NETWORKS, *integer_tables.OTHERS, *integer_tables.DECODE_ASKED}
    assert named <= set(integer_models.MODELS) and len(named) > 30


def test_chains_are_asked_by_their_kind():
    asked = {name: a.vnni for line in (3, 4) for name, a in lines_against_peer(VNNI)[line][1]}
    assert asked["qdq_chain_3x3_64_56"] == 1.1 and asked["qdq_chain_1x1_256_28"] == 0.95
    assert asked["qdq_chain_depthwise_576_14"] == 1.8 and asked["dynamic_chain_u8u8_depthwise_144_56"] == 5
    assert asked["dynamic_chain_u8u8_1x1_256_28"] == 2.5 and asked["dynamic_chain_u8s8_3x3_256_14"] == 10


def test_a_row_says_what_it_misses():
    row = {"model": "m", "ours_ms": 2.0, "peer_ms": 3.0, "ratio": 1.5}
    assert judged(dict(row), 1.5)["met"] and not judged(dict(row), 1.6)["met"]
    assert "met" not in judged(dict(row), None)
    columns = {k: c for k, c in integer_tables.LATENCY.items() if k != "width"}
    assert tables.row_text(judged(dict(row), 1.6), columns).endswith("MISSED")
    assert tables.row_text(judged(dict(row), None), columns).split() == ["m", "2", "3", "1.500", "-"]
    refused = judged({"model": "n", "refused": "why"}, 2.0)
    found = tables.summary([judged(dict(row), 1.6), judged(dict(row), 1.0), refused])
    assert found["missed"] == ["m", "n"] and found["judged"] == 3
    assert "2 of 3 MISSED" in tables.summary_text(found)


def test_a_share_is_the_median_of_rounds():
    # Tokens of 100 MB in 10, 10 and 20 ms while memory gives 20, 12.5 and 10 GB/s.
    row = share_row("m", [(0.01, 20), (0.01, 12.5), (0.02, 10)], 100e6)
    assert row["ratio"] == pytest.approx(0.5) and row["ours_gbs"] == pytest.approx(10) and row["read_gbs"] == 12.5
    assert "100 MB" in row["notes"][0] and "100.0 tokens/s" in row["notes"][0]


def test_rounds_of_processes_give_the_median_of_their_ratios():
    row = llama_row("m", [(0.01, 0.02), (0.02, 0.02), (0.01, 0.015)])
    assert row["ours_ms"] == pytest.approx(10) and row["peer_ms"] == pytest.approx(20) and row["ratio"] == 1.5


def test_no_llama_is_said():
    class Args:
        llama = None

    row = integer_tables.Peers(None, VNNI, Args).against_llama("m", None, 1, 16, 1)
    assert "no llama.cpp" in row["refused"]


def test_a_busy_process_ends_with_what_it_is_for():
    with integer_tables.busy_process() as child:
        assert child.poll() is None
    assert child.returncode is not None
    with pytest.raises(RuntimeError), integer_tables.busy_process() as child:
        raise RuntimeError
    assert child.returncode is not None


def test_a_busy_process_ends_with_its_parent():
    script = "import integer_tables as t, os; busy = t.busy_process(); print(busy.__enter__().pid); os._exit(0)"
    done = subprocess.run([sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, text=True, timeout=60)
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    for _ in range(200):
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("it goes on without its parent")


class Args:
    peer_isa, llama = None, None
    models = None


def test_a_line_is_measured_model_by_model(tmp_path, monkeypatch):
    runs = []

    class Bench:
        seconds = 1

        def run(self, case, threads, precision, **_):
            runs.append((case.name, threads, precision))
            return dict(ANSWER)

    monkeypatch.setattr(integer_tables, "write_integer_models", lambda folder, names: None)
    monkeypatch.setattr(integer_tables, "integers", lambda folder, name, **dims: Case(name, tmp_path / name, dims))
    report = tables.Report(True, VNNI)
    monkeypatch.setattr(integer_tables.Peers, "peak", lambda self: 100.0)
    monkeypatch.setattr(onnx, "load", lambda path: integer_models.MODELS[Path(path).name]())
    integer_tables.Tables(Bench(), report, VNNI, Args).print([2])
    (table,) = report.tables
    assert table["line"] == 2 and table["isa"] == "avx512_bf16" and table["set"] == "integer"
    assert [r["asked"] for r in table["rows"]] == [2.2, 2.2, 10, 10] and len(table["summary"]["missed"]) == 4
    assert [r[0] for r in runs] == [r["model"] for r in table["rows"]] and {r[1:] for r in runs} == {(1, "fp32")}
    first = table["rows"][0]
    assert first["ours_gops"] == pytest.approx(2 * 128 * 1024 * 1024 / 0.002 / 1e9)
    assert first["of_peak"] == pytest.approx(first["ours_gops"] / 100)


def test_what_is_recorded_has_a_line_a_row(tmp_path):
    class Recorder:
        lines = []

        def add(self, about, row):
            self.lines.append((about["set"], row["model"]))

    report = tables.Report(True, VNNI, Recorder())
    rows = [judged({"model": "m", "ours_ms": 1.0, "peer_ms": 2.0, "ratio": 2.0}, None)]
    report.table("own", {"set": "integer_own", "recorded": True}, integer_tables.OWN, rows)
    report.table("share", {"set": "integer_share", "recorded": False}, integer_tables.OWN, rows)
    assert Recorder.lines == [("integer_own", "m")]


def doubled(path, rows):
    weight = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])] if rows else [
                              helper.make_node("Nothing", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
                              [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def pair(*words):
    return subprocess.run([sys.executable, ROOT / "bench" / "models" / "pair.py", *map(str, words)], capture_output=True,
                          text=True)


def test_two_sides_of_ours_take_turns(tmp_path):
    model = doubled(tmp_path / "m.onnx", 1)
    done = pair(model, "fp32", model, "fp32", "--dim", "N=3", "--seconds", "0.01")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and len(found["median_s"]) == 2 and min(found["runs"]) > 0
    assert found["ratio"] == pytest.approx(found["median_s"][1] / found["median_s"][0])


def test_a_side_that_cannot_run_is_said(tmp_path):
    model = doubled(tmp_path / "m.onnx", 1)
    done = pair(model, "odd", model, "fp32", "--seconds", "0.01")
    assert done.returncode == 1 and "odd" in done.stderr and not done.stdout
    args = Args()
    args.models = tmp_path
    bench = tables.Bench("pfrt", "peer", 0.01)
    case = Case("m", model, {"N": 2})
    row = integer_tables.Peers(bench, VNNI, args).against_own("m", case, "odd", case)
    assert "odd" in row["refused"]
    row = integer_tables.Peers(bench, VNNI, args).against_own("m", case, "fp32", case)
    assert row["ratio"] > 0 and row["ours_ms"] > 0


def test_operations_are_those_of_products():
    models = integer_models.MODELS
    assert work.operations(models["qdq_matmul_u8s8_512x768x3072"]()) == 2 * 512 * 768 * 3072
    assert work.operations(models["dynamic_matmul_u8s8_128x1024x1024"]()) == 2 * 128 * 1024 * 1024
    assert work.operations(models["qdq_chain_1x1_256_28"]()) == 6 * 2 * 28 * 28 * 256 * 256
    assert work.operations(models["dynamic_chain_u8u8_depthwise_144_56"]()) == 6 * 2 * 56 * 56 * 144 * 9
    assert 8.0e9 < work.operations(topologies.resnet50()) < 8.4e9
    assert work.operations(topologies.resnet50(), {"N": 2}) == 2 * work.operations(topologies.resnet50())
    assert 0.58e9 < work.operations(topologies.mobilenet_v2()) < 0.64e9


def test_a_prompt_has_the_logits_of_its_last_token():
    shape = nbits_models.Shape(width=64, layers=2, heads=2, inner=96, vocabulary=40, positions=16)
    model = nbits_models.llama(4, 32, shape=shape)
    layers = 2 * (4 * 64 * 64 + 3 * 64 * 96)
    assert work.decoder_operations(model, 7) == 2 * (7 * layers + 40 * 64)


def test_options_of_other_sets_are_refused(capsys, monkeypatch):
    words = ["tables.py", "--tool", "t", "--peer", "p", "--models", "m", "--set"]
    for more in (["a", "--only", "1"], ["integer", "--threads", "2"], ["integer", "--precision", "bf16"],
                 ["integer", "--only", "13"]):
        monkeypatch.setattr(sys, "argv", words + more)
        with pytest.raises(SystemExit):
            tables.main()
        assert "set integer" in (said := capsys.readouterr().err) or "invalid choice: 13" in said


def test_asked_by_column():
    assert Asked(1, 2, 3).of("avx2") == 2 and Asked(1, 2, 3).of(None) is None
