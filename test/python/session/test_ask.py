# SPDX-License-Identifier: Apache-2.0
"""Questions to devices, and counters, with the provider of test/plugins/verbs."""
from pathlib import Path

import pytest

import pyflame_rt
from pyflame_rt import Environment
from pyflame_rt._core import library
from test_environment import run_python

VERBS = Path(library.path).resolve().parents[1] / "test/plugins/verbs/lib"
needs_verbs = pytest.mark.skipif(not VERBS.exists(), reason="the test plug-ins are not built")


def test_who_takes_no_questions():
    with pytest.raises(pyflame_rt.UnsupportedError, match="takes no questions"):
        Environment.instance().ask("null", "selftest")
    with pytest.raises(pyflame_rt.UnsupportedError, match="it has measure"):
        Environment.instance().ask("cpu", "selftest")
    with pytest.raises(pyflame_rt.NotFoundError, match="nobody"):
        Environment.instance().ask("nobody", "selftest")


def test_the_cpu_measures():
    answer = Environment.instance().ask("cpu", "measure", "threads=1 seconds=0.01 only=read L1")
    assert answer.tensors["name"].tolist() == ["read L1"] and answer.tensors["unit"].tolist() == ["GB/s"]
    assert (answer.tensors["median"][0] > 0) == (answer.tensors["threads"][0] == 1)
    assert answer.text.startswith("read L1") and answer.tensors["note"][0] in answer.text


@needs_verbs
def test_answers():
    out = run_python("""
        import sys
        import numpy as np
        import pyflame_rt
        env = pyflame_rt.Environment.instance(plugin_path=sys.argv[1])
        tensors = [np.float32([1, 2]), pyflame_rt.from_numpy(np.int64([[3]])), np.array(["a", "b"])]
        answer = env.ask("verbs", "echo", "hello", tensors)
        print(answer.text, sorted(answer.tensors), answer.tensors["t0"].tolist(), answer.tensors["t1"].tolist(),
              answer.tensors["t2"].tolist())
        print(env.ask("verbs", "who", device="words", options={"build": 3}).text)
        print(ascii(env.ask("verbs", "bytes").text), env.ask("verbs", "answer", "texts").tensors["a"].shape)
        """, VERBS)
    assert out == ("hello. ['t0', 't1', 't2'] [1.0, 2.0] [[3]] ['a', 'b']\nverbs of words, build 3\n"
                   "'\\ufffd\\ufffd\\ufffd' (2,)\n")


@needs_verbs
def test_failures_and_progress():
    out = run_python("""
        import sys
        import pyflame_rt
        env = pyflame_rt.Environment.instance(plugin_path=sys.argv[1])

        def fault(*args, **options):
            try:
                env.ask("verbs", *args, **options)
            except Exception as raised:
                return type(raised).__name__
        heard = []

        def until_half(fraction):
            heard.append(fraction)
            return fraction < 0.5

        def broken(fraction):
            raise KeyError("mine")
        print(fault("dance"), fault(""), fault("throw"), fault("answer", "data"), fault("wait", timeout_ms=10),
              fault("wait", progress=until_half), fault("wait", progress=broken), fault("echo", tensors=[{}]))
        print(heard == sorted(heard), 0 <= heard[0] and heard[-1] <= 1)
        """, VERBS)
    assert out == ("UnsupportedError InvalidArgumentError BackendError BackendError TimeoutError CancelledError KeyError "
                   "InvalidArgumentError\nTrue True\n")


@needs_verbs
def test_counters(add_model, tmp_path):
    model = tmp_path / "add.onnx"
    model.write_bytes(add_model)
    out = run_python("""
        import sys
        import numpy as np
        import pyflame_rt
        pyflame_rt.Environment.instance(plugin_path=sys.argv[1])
        options = pyflame_rt.SessionOptions(optimization_level=pyflame_rt.OptLevel.NONE)
        session = pyflame_rt.InferenceSession(sys.argv[2], options, ["verbs", "cpu"])
        session.run(None, {name: np.zeros((2, 3), np.float32) for name in "ab"})
        steps, counters = session.explain(), session.counters()
        print({c["provider"] for c in counters}, {c["name"] for c in counters}, {c["unit"] for c in counters} == {"cycles", ""})
        print(all(steps[c["first_step"]]["provider"] == c["provider"] and c["step_count"] >= 1 for c in counters))
        """, VERBS, model)
    first, second = out.splitlines()
    assert "VerbsExecutionProvider" in first and "cycles" in first and "steps run" in first and first.endswith("True")
    assert second == "True"
