# SPDX-License-Identifier: Apache-2.0
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import BOOL, DOUBLE, FLOAT, INT64, ROOT, STRING, node, onnx_model, port
from pyflame_rt._core import abi, library as lib
from pyflame_rt._core.options import NativeOptions

A = np.array([[1, 2, 3]], np.float32)
B = np.array([[10, 20, 30]], np.float32)


def test_path_pathlike_and_bytes_are_models(tmp_path, add_model):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    for source in (str(file), file, add_model, bytearray(add_model), memoryview(add_model)):
        session = pyflame_rt.InferenceSession(source)
        assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    assert pyflame_rt.from_onnx(str(file)).run(["y"], {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]


def test_describes_itself(digits):
    session = pyflame_rt.InferenceSession(digits)
    (inp,), (out,) = session.get_inputs(), session.get_outputs()
    assert (inp.name, inp.shape, inp.type, inp.dim_names) == ("image", [None, 1, 8, 8], "tensor(float32)",
                                                              ["batch", "", "", ""])
    assert (out.name, out.shape, out.type) == ("probabilities", [None, 10], "tensor(float32)")
    assert session.get_modelmeta().graph_name == "digits"
    assert session.get_modelmeta().format == "onnx"
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "CPUExecutionProvider" in pyflame_rt.get_available_providers()
    assert repr(session) == (f"InferenceSession({digits!r}: image: [batch, 1, 8, 8] tensor(float32) -> "
                             "probabilities: [batch, 10] tensor(float32))")
    assert "<td>probabilities</td><td>[batch, 10]</td>" in session._repr_html_()


def test_reads_the_digits_right(digits):
    data = (ROOT / "samples" / "digits" / "digits_test.bin").read_bytes()
    rows = np.frombuffer(data, np.uint8, offset=20).reshape(-1, 65)
    images = (rows[:, 1:] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    found = pyflame_rt.InferenceSession(digits).run(None, {"image": images})[0].argmax(axis=1)
    assert (found == rows[:, 0]).sum() == 291


def test_outputs_in_the_order_asked_for():
    model = onnx_model([node("Neg", ["x"], ["n"]), node("Abs", ["x"], ["a"])], [port("x", FLOAT, [2])],
                       [port("n", FLOAT, [2]), port("a", FLOAT, [2])])
    session = pyflame_rt.InferenceSession(model)
    x = np.array([-1, 2], np.float32)
    both = session.run(None, {"x": x})
    assert [o.tolist() for o in both] == [[1, -2], [1, 2]]
    assert [o.tolist() for o in session.run(["a", "n"], {"x": x})] == [[1, 2], [1, -2]]
    assert [o.tolist() for o in session.run(["a"], {"x": x})] == [[1, 2]]
    assert [o.tolist() for o in session.run([], {"x": x})] == [[1, -2], [1, 2]]


def test_outputs_belong_to_the_caller(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    first = session.run(None, {"a": A, "b": B})[0]
    second = session.run(None, {"a": B, "b": B})[0]
    del session
    gc.collect()
    assert first.tolist() == [[11, 22, 33]] and second.tolist() == [[20, 40, 60]]
    first[:] = 0
    assert second.tolist() == [[20, 40, 60]]


@pytest.mark.parametrize("a", [
    np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2],
    np.arange(6, dtype=np.float32)[::-1].reshape(2, 3),
    np.arange(6, dtype=">f4").reshape(2, 3),
    np.arange(6, dtype=np.float32).reshape(2, 3).tolist(),
    pyflame_rt.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3)),
], ids=["fortran", "strided", "reversed", "big-endian", "list", "tensor"])
def test_arrays_of_any_layout(add_model, a):
    session = pyflame_rt.InferenceSession(add_model)
    out = session.run(None, {"a": a, "b": np.ones((2, 3), np.float32)})[0]
    assert out.tolist() == (np.asarray(a, np.float32) + 1).tolist()


def test_read_only_and_empty_arrays(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    frozen = A.copy()
    frozen.flags.writeable = False
    assert session.run(None, {"a": frozen, "b": B})[0].tolist() == [[11, 22, 33]]
    nothing = np.empty((0, 3), np.float32)
    assert session.run(None, {"a": nothing, "b": nothing})[0].shape == (0, 3)


def test_shapes_may_change_from_run_to_run(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    for rows in (1, 4, 2, 4):
        x = np.full((rows, 3), rows, np.float32)
        assert session.run(None, {"a": x, "b": x})[0].tolist() == (2 * x).tolist()


@pytest.mark.parametrize("feeds, error, words", [
    ({"a": A}, pyflame_rt.InputError, ["missing: 'b'", "'a', 'b'"]),
    ({"a": A, "b": B, "c": B}, pyflame_rt.InputError, ["unknown: 'c'"]),
    ({"a": A, "wrong_name": B}, pyflame_rt.InputError, ["missing: 'b'", "unknown: 'wrong_name'"]),
    ({"a": A.astype(np.float64), "b": B}, pyflame_rt.DTypeMismatchError, ["'a'", "float32", "float64"]),
    ({"a": np.zeros((1, 4), np.float32), "b": B}, pyflame_rt.ShapeMismatchError, ["'a'", "[1,4]"]),
    ({"a": np.zeros(3, np.float32), "b": B}, pyflame_rt.ShapeMismatchError, ["'a'"]),
    ({"a": np.array([[1, None, 3]], object), "b": B}, pyflame_rt.DTypeMismatchError, ["'a'", "astype"]),
    ({"a": np.zeros((1, 3), "datetime64[s]"), "b": B}, pyflame_rt.DTypeMismatchError, ["'a'", "datetime64"]),
])
def test_wrong_inputs_say_what_to_do(add_model, feeds, error, words):
    session = pyflame_rt.InferenceSession(add_model)
    with pytest.raises(error) as caught:
        session.run(None, feeds)
    for word in words:
        assert word in str(caught.value)
    assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]


def test_unknown_output(add_model):
    with pytest.raises(pyflame_rt.InputError, match="output 'z' is none of the model's: 'y'"):
        pyflame_rt.InferenceSession(add_model).run(["z"], {"a": A, "b": B})


def test_models_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        pyflame_rt.InferenceSession(str(tmp_path / "nowhere.onnx"))
    assert isinstance(missing.value, pyflame_rt.PyFlameRTError)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\xff" * 100)
    with pytest.raises(pyflame_rt.InvalidModelError):
        pyflame_rt.InferenceSession(str(broken))
    unknown = onnx_model([node("NoSuchOperator", ["x"], ["y"])], [port("x", FLOAT, [1])], [port("y", FLOAT, [1])])
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="NoSuchOperator"):
        pyflame_rt.InferenceSession(unknown)
    with pytest.raises(pyflame_rt.ValidationError) as invalid:
        pyflame_rt.InferenceSession(onnx_model([node("Neg", ["w"], ["y"]), node("Neg", ["v"], ["z"])], [],
                                               [port("y", FLOAT, [1]), port("z", FLOAT, [1])]))
    assert len(invalid.value.faults) >= 2


def test_strings_booleans_and_other_types():
    same = onnx_model([node("Identity", ["s"], ["t"]), node("Not", ["b"], ["c"]), node("Neg", ["d"], ["e"])],
                      [port("s", STRING, ["N"]), port("b", BOOL, ["N"]), port("d", DOUBLE, [])],
                      [port("t", STRING, ["N"]), port("c", BOOL, ["N"]), port("e", DOUBLE, [])])
    session = pyflame_rt.InferenceSession(same)
    for strings in (["a", "", "déjà"], np.array(["a", "", "déjà"]), np.array(["a", "", "déjà"], object)):
        t, c, e = session.run(None, {"s": strings, "b": [True, False, True], "d": 2.5})
        assert t.tolist() == ["a", "", "déjà"] and t.dtype == object
        assert c.tolist() == [False, True, False] and c.dtype == np.bool_
        assert e == -2.5 and e.shape == () and e.dtype == np.float64


def test_sequences():
    model = onnx_model([node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceLength", ["s"], ["n"])],
                       [port("x", FLOAT, ["N"])], [port("n", INT64, [])])
    options = pyflame_rt.SessionOptions()
    options.extra_outputs = ["s"]
    x = np.array([1, 2], np.float32)
    n, s = pyflame_rt.InferenceSession(model, options).run(None, {"x": x})
    assert n == 2 and [part.tolist() for part in s] == [[1, 2], [1, 2]]


def test_options(add_model):
    options = pyflame_rt.SessionOptions()
    assert (options.device, options.num_threads, options.optimization_level) == ("cpu", 0, pyflame_rt.OptLevel.EXTENDED)
    options.num_threads = 2
    options.optimization_level = pyflame_rt.OptLevel.ALL
    options.execution_mode = "parallel"
    assert not options.tune
    options.tune = True
    assert options.validate() == []
    for given in ({"options": options}, {"sess_options": options}):
        session = pyflame_rt.InferenceSession(add_model, providers=["CPUExecutionProvider"], **given)
        assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    options.execution_mode = "sideways"
    assert "sideways" in options.validate()[0]
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="sideways"):
        pyflame_rt.InferenceSession(add_model, options)
    with pytest.raises(AttributeError, match="no option 'num_thread'"):
        options.num_thread = 3
    with pytest.raises(pyflame_rt.NotFoundError, match="NoSuchProvider"):
        pyflame_rt.InferenceSession(add_model, providers=["NoSuchProvider"])


def test_run_options(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    run_opts = pyflame_rt.RunOptions()
    run_opts.tag = "inference_run_1"
    run_opts.log_level = "debug"
    run_opts.timeout_ms = 5000
    assert session.run(None, {"a": A, "b": B}, run_opts)[0].tolist() == [[11, 22, 33]]
    run_opts.cancel()
    with pytest.raises(pyflame_rt.CancelledError):
        session.run(None, {"a": A, "b": B}, run_opts)
    run_opts.reset()
    assert session.run(None, {"a": A, "b": B}, run_opts)[0].tolist() == [[11, 22, 33]]
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        run_opts.log_level = "loud"
    with pytest.raises(AttributeError, match="no option 'timeout'"):
        run_opts.timeout = 1


def test_explains(digits):
    session = pyflame_rt.InferenceSession(digits)
    session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    rows = session.explain()
    assert rows[0]["ops"].startswith("Conv") and rows[0]["provider"] == "CPUExecutionProvider" and rows[0]["flops"] > 0


def test_a_closed_session_says_so(add_model):
    with pyflame_rt.InferenceSession(add_model) as session:
        out = session.run(None, {"a": A, "b": B})
    assert out[0].tolist() == [[11, 22, 33]]
    with pytest.raises(pyflame_rt.PyFlameRTError, match="closed"):
        session.run(None, {"a": A, "b": B})


def test_pickles_by_path_and_options(digits, add_model):
    options = pyflame_rt.SessionOptions()
    options.num_threads = 1
    for source, feeds in ((digits, {"image": np.zeros((1, 1, 8, 8), np.float32)}), (add_model, {"a": A, "b": B})):
        session = pyflame_rt.InferenceSession(source, options, ["CPUExecutionProvider"])
        copy = pickle.loads(pickle.dumps(session))
        assert copy.get_session_options().num_threads == 1
        assert np.array_equal(copy.run(None, feeds)[0], session.run(None, feeds)[0])


def test_many_threads_share_a_session(add_model):
    session, faults = pyflame_rt.InferenceSession(add_model), []

    def work(n):
        for rows in range(1, 126):
            x = np.full((rows % 5 + 1, 3), n + rows, np.float32)
            if not np.array_equal(session.run(None, {"a": x, "b": x})[0], 2 * x):
                faults.append((n, rows))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_forked_children_run_a_preloaded_session(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    session.run(None, {"a": A, "b": B})
    for _ in range(100):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]] else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_interpreter_ends_with_live_sessions(add_model, tmp_path):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    program = ("import threading, numpy as np, pyflame_rt\n"
               f"session = pyflame_rt.InferenceSession({str(file)!r})\n"
               "x = np.ones((1000, 3), np.float32)\n"
               "def work():\n    while True: session.run(None, {'a': x, 'b': x})\n"
               "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
               "print(session.run(None, {'a': x, 'b': x})[0].sum())\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1])})
    assert (done.returncode, done.stdout, done.stderr) == (0, "6000.0\n", "")


def test_statistics_count_runs_and_plans(digits):
    session = pyflame_rt.InferenceSession(digits)
    session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    counted = session.statistics()
    assert counted["runs"] == 2 and counted["plans"] == 1 and counted["planning_ns"] > 0 and counted["failures"] == 0


def test_observers_see_what_a_run_does_not_return():
    model = onnx_model([node("Neg", ["x"], ["n"]), node("Exp", ["n"], ["e"]), node("Abs", ["e"], ["y"])],
                       [port("x", FLOAT, ["N"])], [port("y", FLOAT, ["N"])])
    options = pyflame_rt.SessionOptions()
    options.extra_outputs = ["e"]
    session = pyflame_rt.InferenceSession(model, options)
    seen = []
    run_options = pyflame_rt.RunOptions(observer=lambda name, value: seen.append((name, value)))
    x = np.float32([0, 1])
    (y,) = session.run(["y"], {"x": x}, run_options)
    assert [name for name, _ in seen] == ["e"]
    np.testing.assert_array_equal(seen[0][1], y)

    def fault(name, value):
        raise KeyError(name)

    run_options.observer = fault
    with pytest.raises(KeyError, match="e"):
        session.run(["y"], {"x": x}, run_options)
    run_options.observer = None
    session.run(["y"], {"x": x}, run_options)
    assert len(seen) == 1


def test_options_have_a_field_for_every_key():
    """With every field set, no key of the library's schema is left at its default but the list of providers, which is
    an argument of the session's own."""
    options = pyflame_rt.SessionOptions(
        device="wse2", num_threads=3, enable_profiling=True, profile_file_prefix="other", execution_mode="parallel",
        optimization_level=pyflame_rt.OptLevel.ALL, verbose_optimization=True, log_level="error",
        skip_passes=["fusion"], verify=True, precision="auto", max_error=0.5, tune="on", fallback=False,
        enable_mem_reuse=False, enable_mem_pattern=False, halve_batch=False, deterministic="batch",
        cache_dir="folder", tune_budget_s=7, tune_search="model", tune_iterations=7, tune_repeats=7,
        strict_dimension_names=True, assign="priority", node_precision=["a=bf16"], use_env_allocators=False,
        set_denormal_as_zero=True,
        image_max_pixels=7, create_timeout_ms=7, device_reopen_ms=7)
    native = NativeOptions(abi.OPTIONS_SESSION)
    for key, value in options._pairs().items():
        native.set(key, value)
    info = abi.OptionInfo(struct_size=ctypes.sizeof(abi.OptionInfo))
    left = []
    for index in range(lib.options.schema_count(abi.OPTIONS_SESSION)):
        lib.check(lib.options.schema_at(abi.OPTIONS_SESSION, index, ctypes.byref(info)))
        if native.get(lib.read(info.key)) == lib.read(info.default_value):
            left.append(lib.read(info.key))
    assert left == ["providers"]
