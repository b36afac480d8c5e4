# SPDX-License-Identifier: Apache-2.0
"""What results.py keeps of measurements, and picture.py draws of them."""
import xml.etree.ElementTree as ET

import pytest

import picture
import results

MACHINE = {"cpu": "A(R) Cpu 9 (TM)", "isa": ["avx2", "avx512f"], "isa_cap": None}
ROW = {"model": "m", "ours_ms": 2.0, "peer_ms": 3.0, "ratio": 1.5}
ABOUT = {"set": "a", "threads": 1, "precision": "fp32"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(results, "commit_of", lambda _: "01234567")
    return tmp_path / "results"


def test_the_set_is_the_lower_of_machine_and_cap():
    assert results.machine_isa(MACHINE) == "avx512" and results.used_isa(MACHINE) == "avx512"
    assert results.used_isa({**MACHINE, "isa_cap": "avx2"}) == "avx2"
    assert results.used_isa({**MACHINE, "isa_cap": "amx"}) == "avx512"
    assert results.machine_isa({"isa": []}) == "generic"


def test_a_cap_is_the_best_set_at_or_below_it_that_the_machine_has():
    vnni = {"isa": ["avx2", "avx512f", "avx512_vnni"], "isa_cap": None}
    assert results.machine_isa(vnni) == "avx512_vnni"
    for cap, used in (("", "avx512_vnni"), ("avx512_bf16", "avx512_vnni"), ("avx512", "avx512"), ("avx_vnni", "avx2"),
                      ("generic", "generic")):
        assert results.used_isa({**vnni, "isa_cap": cap}) == used
    assert results.used_isa({"isa": ["avx2", "avx_vnni"], "isa_cap": "avx512"}) == "avx_vnni"


def test_lines_are_added_and_the_later_one_counts(folder):
    results.Recorder(MACHINE).add(ABOUT, ROW)
    later = results.Recorder(MACHINE)
    later.add(ABOUT, {**ROW, "ratio": 1.75})
    later.add(ABOUT, {"model": "n", "refused": "why"})
    later.add({**ABOUT, "threads": 2}, ROW)
    text = (folder / "a-cpu-9.tsv").read_text()
    assert text.splitlines()[0].split("\t") == list(results.COLUMNS) and len(text.splitlines()) == 4
    found = results.newest(folder)
    assert {key: {m: line["ratio"] for m, line in models.items()} for key, models in found.items()} == {
        ("A(R) Cpu 9 (TM)", "avx512", "a", "1", "fp32"): {"m": "1.750"},
        ("A(R) Cpu 9 (TM)", "avx512", "a", "2", "fp32"): {"m": "1.500"}}


def test_the_picture_has_a_point_a_machine_and_model_and_joins_none(folder):
    for machine, ratio in ((MACHINE, 1.5), ({**MACHINE, "isa_cap": "avx2"}, 9.0)):
        recorder = results.Recorder(machine)
        for model in ("m", "n<"):
            recorder.add(ABOUT, {**ROW, "model": model, "ratio": ratio})
        recorder.add({**ABOUT, "set": "b"}, ROW)
        recorder.add({**ABOUT, "precision": "bf16"}, ROW)
    machines = picture.machines_of(results.newest(folder))
    assert [len(ratios) for ratios in machines.values()] == [3, 3]
    root = ET.fromstring(picture.drawn(machines))
    points = {}
    for path in root.findall(".//{*}path[@class='point']"):
        x, y = (float(n) for n in path.get("transform").removeprefix("translate(").rstrip(")").split())
        points.setdefault((path.get("fill"), path.get("d")), []).append((x, y))
    (first, second) = points.values()  # each machine has a colour and a shape of its own
    assert len(first) == len(second) == 3
    assert first[0][1] > second[0][1] >= picture.TOP  # a larger ratio is higher, and none leaves the picture
    assert len({x for x, _ in first + second}) == 6  # points of one model stand side by side
    assert not root.findall(".//{*}polyline") and not root.findall(".//{*}polygon")
    # Lines stand for a ratio or part the sets: each goes straight across, or straight down.
    for line in root.findall(".//{*}line"):
        assert line.get("x1") == line.get("x2") or line.get("y1") == line.get("y2")
    assert all(path.get("class") in ("point", "key") for path in root.findall(".//{*}path"))
    texts = [t.text for t in root.findall(".//{*}text")]
    assert "n<" in texts and any("AVX-512 (A(R) Cpu 9 (TM)" in t and "A 1.50; B 1.50" in t for t in texts)
    assert "n<, " in "".join(t.text for t in root.findall(".//{*}path/{*}title"))
