# SPDX-License-Identifier: Apache-2.0
"""Set C without PyTorch: its list, what is kept of an export, its table, and what a registry that is absent means."""
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tables
from cases import Case, exported
from exports.networks import FORMS, NETWORKS, Export, Network, exports, timm

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"cpu": "a cpu", "isa": ["avx2"], "isa_cap": None, "cores_online": 2, "cores_usable": 1, "memory": 2**30,
           "system": "Linux", "version": "1", "peer": "1.30.0"}
ANSWER = {"ours": {"median_s": 0.002}, "peer": {"median_s": 0.003}, "ratio": 1.5, "rms_relative_difference": 1e-6,
          "notes": []}
# Takes the place of an interpreter with PyTorch: it makes every export but lcnet_050's and says what it was given.
EXPORTER = """#!/bin/sh
exec {python} - "$@" <<'END'
import sys
sys.path.insert(0, {models!r})
import numpy as np
from exports.networks import exports
program, out, form = sys.argv[1], sys.argv[2], sys.argv[sys.argv.index("--form") + 1]
names = sys.argv[sys.argv.index("--only") + 1:]
with open({log!r}, "a") as log:
    print(form, *names, file=log)
for job in exports(out, [form], names):
    job.folder.mkdir(parents=True)
    if job.network.name == "lcnet_050":
        job.note(refused="no such operator")
    else:
        np.save(job.folder / "0.npy", np.ones(3, np.float32))
        job.note(inputs={{"image": "0.npy"}})
END
"""


@pytest.fixture
def exporter(tmp_path):
    program = tmp_path / "exporter"
    program.write_text(EXPORTER.format(python=sys.executable, models=str(ROOT / "bench" / "models"),
                                       log=str(tmp_path / "log")))
    program.chmod(0o755)
    return program


def test_every_network_says_what_it_is_fed():
    assert len(NETWORKS) == 42 and all(name == network.name for name, network in NETWORKS.items())
    for job in exports("out", FORMS):
        fed = job.inputs(batch=2)
        again = job.inputs(batch=2)
        assert fed and all(np.array_equal(fed[name], again[name]) for name in fed)
        assert all(value.dtype in (np.float32, np.int64) for value in fed.values())
        if job.form == "small":
            assert fed[next(iter(fed))].shape[-2:] == (64, 64)
        if job.form == "dynamic":
            assert job.network.axes and all(max(job.network.axes) < value.ndim for value in fed.values())


def test_what_is_exported_is_made_again_only_when_its_network_changes(tmp_path):
    def other(size):
        return size

    network = NETWORKS["segformer_b0"]
    job = Export(network, "full", tmp_path)
    assert job.made() is None
    job.folder.mkdir(parents=True)
    job.note(inputs={"image": "0.npy"})
    assert job.made()["inputs"] == {"image": "0.npy"}
    same = Network(network.name, network.make, network.feed, network.size, network.axes, ("full",))
    assert Export(same, "full", tmp_path).made()
    for changed in (Network(network.name, other, network.feed, network.size, network.axes),
                    Network(network.name, network.make, network.feed, 256, network.axes),
                    Network(network.name, network.make, network.feed, network.size, network.axes, older=True),
                    timm("segformer_b0")):
        assert Export(changed, "full", tmp_path).made() is None
    assert len({network.digest for network in NETWORKS.values()}) == len(NETWORKS)


def test_what_is_absent_is_made_once_and_what_cannot_be_is_named(tmp_path, exporter):
    names = ["levit_128s", "lcnet_050"]
    absent = exported(tmp_path, "full", names, None)
    assert [case.refused for case in absent] == ["there is no PyTorch to export it with"] * 2
    for _ in range(2):
        levit, lcnet = exported(tmp_path, "full", names, exporter)
        assert levit.name == "levit_128s" and not levit.refused and levit.path.name == "model.onnx"
        assert levit.options() == ["--input", f"image={levit.path.parent}/0.npy"]
        assert lcnet.refused == "no such operator"
    assert exported(tmp_path, "small", ["gpt2"], exporter) == []  # it takes no images
    assert (tmp_path / "log").read_text() == "full levit_128s lcnet_050\n"


def test_results_have_to_be_those_of_the_peer():
    case = Case("m", Path("m.onnx"))
    for answer, met in ((ANSWER, True), ({**ANSWER, "rms_relative_difference": 1e-3}, False),
                        ({**ANSWER, "rms_relative_difference": None}, False),
                        ({**ANSWER, "notes": ["other shape"]}, False)):
        row = tables.export_row(case, answer, 1e-4)
        assert row["met"] is met and row["ratio"] == 1.5
        assert any("within 0.0001" in note for note in row["notes"]) is not met
    assert "met" not in tables.export_row(case, {"refused": "why"}, 1e-4)


def test_what_is_unlike_other_exports_is_a_note_that_costs_nothing():
    row = tables.export_row(Case("m", Path("m.onnx"), about="by another exporter"), ANSWER, 1e-4)
    assert row["met"] and row["notes"] == ["by another exporter"] and ANSWER["notes"] == []


def test_an_exporter_s_reason_is_found_among_its_advice(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "test" / "clients"))
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "models" / "exports"))
    reason = importlib.import_module("make").reason
    said = ("Failed to export the model. \x1b[96mThis is step 1/3\x1b[0m\n- Debug `torch.export.export`\n\n"
            "## Exception summary\n\n<class 'torch.fx.GuardOnDataDependentSymNode'>: Could not guard on Eq(u1, 0) "
            "(unhinted: Eq(u1, 0)).  (Size-like symbols: u1)\n\nCaused by: (boxes.py:103 in nms)\nFor more, run")
    assert reason(said) == "GuardOnDataDependentSymNode: Could not guard on Eq(u1, 0) (boxes.py:103 in nms)"
    assert reason("<class 'ValueError'>: no axis 4\nmore") == "ValueError: no axis 4"
    assert reason("Traceback\nValueError: odd") == ""


def test_a_table_a_form_with_the_mean_and_the_least(tmp_path, exporter, capsys):
    class Bench:
        def run(self, case, threads, precision):
            ratio = 1.0 if case.name == "levit_128s" else 4.0
            return {**ANSWER, "ratio": ratio, "rms_relative_difference": 1e-3 if case.path.parent.name == "pair" else 0}

    class Args:
        models, form, networks = tmp_path, ["full", "pair"], {"levit_128s", "resnet18", "lcnet_050"}
        threads, precision = [2], ["fp32"]

    Args.exporter = exporter
    report = tables.Report(False, MACHINE)
    tables.export_tables(Bench(), report, Args)
    said = capsys.readouterr().out
    assert "== set C, batch 1, 2 thread(s), fp32" in said and "== set C, batch 2, 2 thread(s), fp32" in said
    assert "not run: no such operator" in said
    assert "geometric mean 2.000, worst 1.000 levit_128s, over 2 models; 1 not run" in said
    full, pair = report.tables
    assert [row["model"] for row in full["rows"]] == ["levit_128s", "lcnet_050", "resnet18"]
    assert full["set"] == "c" and full["summary"]["missed"] == []
    assert pair["set"] == "c pair" and pair["summary"]["missed"] == ["levit_128s", "resnet18"]


def test_options_of_set_c(capsys, monkeypatch):
    words = ["tables.py", "--tool", "t", "--peer", "p", "--models", "m", "--set"]
    for more, said in ((["a", "--only", "gpt2"], "set c"), (["c", "--only", "gpt3"], "set c has no gpt3"),
                       (["c", "--only", "1"], "set integer"), (["a", "--form", "full"], "set c"),
                       (["c", "--form", "odd"], "invalid choice")):
        monkeypatch.setattr(sys, "argv", words + more)
        with pytest.raises(SystemExit) as ended:
            tables.main()
        assert ended.value.code == 2 and said in capsys.readouterr().err


def test_all_does_not_bring_pytorch(monkeypatch):
    measured = []
    monkeypatch.setattr(tables, "machine_of", lambda tool, peer: MACHINE)
    monkeypatch.setattr(tables, "latency_tables", lambda bench, report, sets, args: measured.append(list(sets)))
    for name in ("axes_tables", "launch_tables"):
        monkeypatch.setattr(tables, name, lambda *rest: None)
    monkeypatch.setattr(tables.integer_tables.Tables, "__init__", lambda *rest: None)
    monkeypatch.setattr(tables.integer_tables.Tables, "print", lambda *rest: None)
    monkeypatch.setattr(tables, "export_tables", lambda bench, report, args: measured.append("exports"))
    words = ["tables.py", "--tool", "t", "--peer", "p", "--models", "m", "--json"]
    for more in ([], ["--set", "all"], ["--set", "a", "c"]):
        monkeypatch.setattr(sys, "argv", words + more)
        tables.main()
    every = [name for name in tables.SETS if name != "c"]
    assert measured == [every, every, ["a", "c"], "exports"]


def test_the_program_needs_no_pytorch_where_everything_is_made(tmp_path, exporter):
    exported(tmp_path, "full", ["resnet18", "lcnet_050"], exporter)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "test" / "clients")}

    def call(*words):
        command = [sys.executable, ROOT / "bench" / "models" / "exports" / "make.py", tmp_path / "exports", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    assert (done := call("--only", "resnet18", "lcnet_050")).returncode == 0, done.stderr
    for words, said in ((["--only", "resnet19"], "resnet19"), (["--form", "odd"], "odd"), (["--jobs", "0"], "--jobs")):
        assert (done := call(*words)).returncode == 2 and said in done.stderr


def test_without_a_registry_the_exporter_is_skipped_by_name(tmp_path):
    for part in ("bench/models/exports/setup.sh", "test/clients/python.bash"):
        (tmp_path / part).parent.mkdir(parents=True)
        shutil.copy(ROOT / part, tmp_path / part)
    script = ("set -euo pipefail; PYTHONPATH=here; exporter=(); . bench/models/exports/setup.sh; "
              'echo "[${exporter[*]}] $PYTHONPATH"')
    environment = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1",
                   "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[] here:{tmp_path}/test/clients\n"  # tables on standard output stay whole
    assert "torch_exports: SKIPPED" in done.stderr
    installed = tmp_path / "build" / "clients" / "torch_exports" / "venv"
    said = (ROOT / "test" / "clients" / "python.bash").read_text()
    packages = said.split("TORCH_PACKAGES=(")[1].split(")")[0].split()
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "installed").write_text(" ".join(packages) + "\n")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.startswith(f"[--exporter {installed}/bin/python]") and done.stderr == ""
