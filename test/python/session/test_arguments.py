# SPDX-License-Identifier: Apache-2.0
"""Arguments in the forms that a person tries first."""
import io
import os
import pickle
import tempfile

import numpy as np
import pytest

import pyflame_rt
import pyflame_rt.onnxruntime

IMAGE = np.zeros((1, 1, 8, 8), np.float32)
CPU = "CPUExecutionProvider"


def runs(session):
    (probabilities,) = session.run(None, {"image": IMAGE})
    return session.get_providers() == [CPU] and probabilities.shape == (1, 10)


@pytest.mark.parametrize("providers", [
    CPU, None, [], [CPU], (CPU,), [(CPU, None)], [(CPU, {})], [[CPU, {}]], {CPU: {}}, iter([CPU])])
def test_providers(digits, providers):
    assert runs(pyflame_rt.InferenceSession(digits, providers=providers))


@pytest.mark.parametrize("word", ["cpu", "CPU", "Cpu", "CPUProvider", "cpuexecutionprovider"])
def test_words_for_a_provider(digits, word):
    assert runs(pyflame_rt.InferenceSession(digits, providers=word))
    assert runs(pyflame_rt.InferenceSession(digits, providers=[word], provider_options={CPU: {}}))
    with pytest.raises(pyflame_rt.PyFlameRTError, match="no_such_key"):
        pyflame_rt.InferenceSession(digits, providers=[CPU], provider_options={word: {"no_such_key": 1}})
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="listed twice"):
        pyflame_rt.InferenceSession(digits, providers=[CPU, CPU.lower(), word])
    assert pyflame_rt.onnxruntime.InferenceSession(digits, providers=[word]).get_providers() == [CPU]


def test_a_provider_that_is_not_there_has_a_nearest(digits):
    with pytest.raises(pyflame_rt.NotFoundError, match="did you mean 'cpu'"):
        pyflame_rt.InferenceSession(digits, providers="cpy")
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="not among the providers"):
        pyflame_rt.InferenceSession(digits, providers=[CPU], provider_options={"null": {}})


def test_provider_options(digits):
    for options in (None, [None], [{}], {CPU: None}, {}):
        assert runs(pyflame_rt.InferenceSession(digits, providers=CPU, provider_options=options))
    assert runs(pickle.loads(pickle.dumps(pyflame_rt.InferenceSession(digits, providers=CPU))))


def test_a_dict_of_providers_keeps_their_options(digits):
    with pytest.raises(pyflame_rt.PyFlameRTError, match="no_such_key"):
        pyflame_rt.InferenceSession(digits, providers={CPU: {"no_such_key": 1}})


@pytest.mark.parametrize("providers", [[None], [7], [(CPU, 3)], [(CPU, {}, {})]])
def test_what_names_no_provider(digits, providers):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="names, as 'CPUExecutionProvider', or"):
        pyflame_rt.InferenceSession(digits, providers=providers)


def test_a_list_in_the_place_of_options(digits):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="SessionOptions, got list; providers are named by"):
        pyflame_rt.InferenceSession(digits, [CPU])


def test_open_files(digits, tmp_path):
    with open(digits, "rb") as file:
        assert runs(pyflame_rt.InferenceSession(file)) and not file.closed
        file.seek(0)
        assert [n.op for n in pyflame_rt.load_model(file).nodes] == [n.op for n in pyflame_rt.load_model(digits).nodes]
        file.seek(0)
        assert pyflame_rt.import_module.ONNXImporter().import_model(file).success
        file.seek(0)
        data = file.read()
    assert runs(pyflame_rt.InferenceSession(io.BytesIO(data)))
    assert runs(pyflame_rt.from_onnx(io.BytesIO(data)))
    with tempfile.NamedTemporaryFile() as file:  # written, not flushed
        file.write(data)
        file.seek(0)
        assert runs(pyflame_rt.InferenceSession(file))
    with open(tmp_path / "two", "wb") as file:
        file.write(b"a header" + data)
    with open(tmp_path / "two", "rb") as file:  # from where it stands
        assert file.read(8) == b"a header" and runs(pyflame_rt.InferenceSession(file))
    with open(digits, "rb", buffering=0) as file:
        assert runs(pickle.loads(pickle.dumps(pyflame_rt.InferenceSession(file))))


def test_files_beside_an_open_file(tmp_path):
    graph = pyflame_rt.Graph()
    graph.add_input("x", [None, 3])
    graph.add_initializer("w", np.arange(3, dtype=np.float32))
    graph.add_node("", "Add", ["x", "w"], ["y"])
    graph.add_output("y")
    onnx = pytest.importorskip("onnx")
    graph.save(tmp_path / "m.onnx")
    onnx.save(onnx.load(str(tmp_path / "m.onnx")), str(tmp_path / "apart.onnx"), save_as_external_data=True,
              size_threshold=0, location="weights")
    assert (tmp_path / "weights").exists()
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        with open("apart.onnx", "rb") as file:
            session = pyflame_rt.InferenceSession(file)
    finally:
        os.chdir(before)
    assert session.run(None, {"x": np.zeros((1, 3), np.float32)})[0].tolist() == [[0, 1, 2]]
    assert pickle.loads(pickle.dumps(session)).get_providers() == [CPU]


@pytest.mark.parametrize("model, said", [
    (None, "got NoneType"), (7, "got int"), ([1], "got list"), (io.StringIO("x"), "open for text"),
    (np.zeros(3), "got ndarray")])
def test_what_is_no_model(model, said):
    for load in (pyflame_rt.InferenceSession, pyflame_rt.load_model):
        with pytest.raises(TypeError, match=said):
            load(model)


def test_a_text_file(digits):
    with open(digits, errors="replace") as file:
        with pytest.raises(TypeError, match=r"digits.onnx' is open for text.*'rb'"):
            pyflame_rt.InferenceSession(file)


def test_keywords_of_session_options(digits):
    options = pyflame_rt.SessionOptions(num_threads=2, optimization_level=pyflame_rt.OptLevel.ALL, precision="ieee",
                                        extra={"session.fallback": "off"})
    assert (options.num_threads, options.precision, options.device) == (2, "ieee", "cpu")
    assert options.validate() == [] and runs(pyflame_rt.InferenceSession(digits, options))
    assert pickle.loads(pickle.dumps(options)).num_threads == 2
    with pytest.raises(TypeError, match="num_thread"):
        pyflame_rt.SessionOptions(num_thread=2)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=r"skip_passes is a list of names.*\['fuse'\]"):
        pyflame_rt.SessionOptions(skip_passes="fuse")
    made = pyflame_rt.SessionOptions(), pyflame_rt.SessionOptions()
    made[0].extra["a"] = "b"
    assert made[1].extra == {}


def test_none_is_the_default(digits):
    options = pyflame_rt.SessionOptions()
    for name in vars(options):
        setattr(options, name, {} if name == "extra" else [] if name in ("samples", "extra_outputs") else None)
    assert options.validate() == [] and runs(pyflame_rt.InferenceSession(digits, options))


def test_run_options(digits, capfd):
    options = pyflame_rt.RunOptions()
    assert (options.log_level, options.tag, options.timeout_ms, options.num_threads) == (None,) * 4
    assert repr(options) == "RunOptions()"
    options = pyflame_rt.RunOptions(timeout_ms=60000, tag="one", log_level="debug")
    assert repr(options) == "RunOptions(log_level='debug', tag='one', timeout_ms=60000)"
    session = pyflame_rt.InferenceSession(digits)
    session.run(None, {"image": IMAGE}, options)
    assert "run 'one'" in capfd.readouterr().err
    for unset in (None, ""):
        options.log_level = "debug"
        options.cancel()
        options.log_level = unset
        with pytest.raises(pyflame_rt.CancelledError):
            session.run(None, {"image": IMAGE}, options)
        options.reset()
        session.run(None, {"image": IMAGE}, options)
        assert capfd.readouterr().err == "" and options.tag == "one"
    with pytest.raises(TypeError, match="timeout"):
        pyflame_rt.RunOptions(timeout=3)
    for name in ("timeout_ms", "num_threads", "memory_limit", "priority"):
        for wrong in ("x", "", -1, 1.5, True, 2**40 + 1, 2**64 + 1, [3]):
            with pytest.raises(pyflame_rt.InvalidArgumentError, match=f"{name} of a run is .* 0 to 1099511627776"):
                pyflame_rt.RunOptions(**{name: wrong})
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'loud'; give one of debug, info, warning, error, off"):
        pyflame_rt.RunOptions(log_level="loud")
    options.priority, options.num_threads = np.int64(3), 2**40
    session.run(None, {"image": IMAGE}, options)


def test_run_options_are_a_dict_too(digits):
    session, feed = pyflame_rt.InferenceSession(digits), {"image": np.zeros((1, 1, 8, 8), np.float32)}
    wanted = session.run(None, feed)[0].tolist()
    assert session.run(None, feed, {"timeout_ms": 60000, "tag": "one"})[0].tolist() == wanted
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="no option 'timeout'; it has log_level, tag, timeout_ms"):
        session.run(None, feed, {"timeout": 1})
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="RunOptions or a dict of them, got int"):
        session.run(None, feed, 5)
    binding = session.io_binding()
    binding.bind_cpu_input("image", feed["image"])
    binding.bind_output("probabilities")
    session.run_with_iobinding(binding, {"tag": "bound"})
    assert binding.copy_outputs_to_cpu()[0].tolist() == wanted


def test_an_unknown_level_is_told_the_names(digits):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="NONE, BASIC, EXTENDED, ALL"):
        pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(optimization_level="fast"))


def test_absurd_numbers_of_threads_are_refused(digits):
    for number in (4097, 10**9, 2**40):
        with pytest.raises(pyflame_rt.InvalidArgumentError, match="'num_threads' to .* 0 to 4096"):
            pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(num_threads=number))


def test_a_message_of_onnx_is_told_how_it_becomes_bytes():
    class ModelProto:
        def SerializeToString(self):
            return b""

    with pytest.raises(TypeError, match=r"got ModelProto; give its bytes, model.SerializeToString\(\)"):
        pyflame_rt.InferenceSession(ModelProto())
