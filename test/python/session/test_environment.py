# SPDX-License-Identifier: Apache-2.0
"""The environment, provider states and services."""
import contextlib
import ctypes.util
import io
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import ROOT
from custom_models import build, doubled, none_stay_registered
from pyflame_rt import Environment
from pyflame_rt._core import library

BUILD = Path(library.path).resolve().parents[1]
DIGITS = ROOT / "samples/digits/digits.onnx"
SAMPLES, FAULTS = BUILD / "test/plugins/samples", BUILD / "test/plugins/fault/lib"


def run_python(program, *args):
    """The output of a program of its own: options of the environment are for the first call alone."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, args)], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ------------------------------------------------------------------ what there is


def test_there_is_one():
    assert Environment.instance() is Environment.instance() and Environment.has_instance()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=r"Environment.instance\(\)"):
        Environment()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="there is one already"):
        Environment.instance(num_threads=2)


def test_further_options():
    out = run_python("""
        import numpy as np
        import pyflame_rt
        from pyflame_rt import Environment

        def fault(call):
            try:
                call()
            except pyflame_rt.PyFlameRTError as raised:
                return str(raised)
        print("'nosuch'" in fault(lambda: Environment.instance(extra={"nosuch": "1"})), Environment.has_instance())
        print("memory_pressure" in fault(lambda: Environment.instance(extra={"memory_pressure": "perhaps"})))
        Environment.instance(extra={"memory_limit": 1 << 20, "memory_idle_s": "1", "memory_pressure": "watch"})
        print(fault(lambda: pyflame_rt.InferenceSession(MODEL).run(None, FEED(1))))
        print("1048576" in fault(lambda: pyflame_rt.InferenceSession(MODEL).run(None, FEED(50_000))))
        """.replace("MODEL", repr(str(DIGITS))).replace("FEED(", "(lambda n: {'image': np.zeros((n, 1, 8, 8), 'f')})("))
    assert out == "True False\nTrue\nNone\nTrue\n"


def test_threads_of_a_plugin():
    out = run_python("""
        import numpy as np
        import pyflame_rt
        from pyflame_rt import Environment

        try:
            Environment.instance(executor="nobody")
        except pyflame_rt.NotFoundError as raised:
            print("libpyflamert_executor_nobody.so" in str(raised), Environment.has_instance())
        feed = {"image": np.ones((40, 1, 8, 8), "f")}
        there = "TBB" == "True"
        if there:
            Environment.instance(executor="tbb")
        print(*pyflame_rt.InferenceSession(MODEL).run(None, feed)[0].argmax(1)[:2])
        """.replace("MODEL", repr(str(DIGITS))).replace(
        "TBB", str(any(one.kind == "executor" for one in Environment.instance().plugins()))))
    session = pyflame_rt.InferenceSession(DIGITS)
    expected = session.run(None, {"image": np.ones((40, 1, 8, 8), "f")})[0].argmax(1)[:2]
    assert out == f"True False\n{expected[0]} {expected[1]}\n"


def test_plugins_and_providers():
    env = Environment.instance()
    env.refresh_plugins()
    found = {plugin.name: plugin for plugin in env.plugins()}
    cpu = found["CPUExecutionProvider"]
    assert (cpu.kind, cpu.loaded, cpu.reason, cpu.version) == ("provider", True, "", pyflame_rt.__version__)
    assert Path(cpu.path).name == "libpyflamert_provider_cpu.so" and cpu.abi_major > 0
    assert any(plugin.kind == "import" and plugin.loaded for plugin in found.values())
    providers = {provider.name: provider for provider in env.providers()}
    assert providers["CPUExecutionProvider"].devices == ["cpu"] and providers["CPUExecutionProvider"].path == cpu.path
    assert [one.name for one in env.providers() if one.available] == pyflame_rt.get_available_providers()
    assert "CPUExecutionProvider" in repr(env)


def test_kernels_and_operators():
    env = Environment.instance()
    convs = [kernel for kernel in env.kernels("CPUExecutionProvider") if kernel.op == "Conv"]
    assert convs and all(kernel.domain == "" and kernel.types and kernel.since >= 1 for kernel in convs)
    relu = [operator for operator in Environment.operators() if (operator.op, operator.domain) == ("Relu", "")]
    assert relu and relu[-1].until == 0 and relu[-1].runs_in == "provider"
    for call in (env.kernels, env.provider_options):
        with pytest.raises(pyflame_rt.NotFoundError, match="NoSuchExecutionProvider"):
            call("NoSuchExecutionProvider")


@pytest.mark.usefixtures(none_stay_registered.__name__)
def test_custom_operators_are_listed():
    build("Listed", doubled)
    found = [one for one in Environment.instance().custom_operators() if one.op == "Listed"]
    assert [(one.domain, one.since) for one in found] == [("custom", 1)]


# ------------------------------------------------------------------ log lines


def test_log_lines_go_to_a_logger(digits, capfd):
    lines, env = [], Environment.instance()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called"):
        env.set_logger("stderr")
    env.set_logger(lambda level, message: lines.append((level, message)))
    try:
        session = pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(log_level="debug"))
        session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    finally:
        env.set_logger(None)
    assert lines and {level for level, _ in lines} <= {"debug", "info"} and all(text for _, text in lines)
    assert capfd.readouterr().err == ""
    before = len(lines)
    pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(log_level="debug"))
    assert len(lines) == before and "info: session of graph" in capfd.readouterr().err


def test_log_lines_go_to_what_stderr_is_then(digits, capfd):
    options = pyflame_rt.SessionOptions(log_level="info")
    with contextlib.redirect_stderr(io.StringIO()) as caught:
        pyflame_rt.InferenceSession(digits, options)
    assert caught.getvalue().startswith("pyflame_rt info: session of graph 'digits'")
    assert capfd.readouterr().err == ""
    pyflame_rt.InferenceSession(digits, options)
    assert capfd.readouterr().err.startswith("pyflame_rt info: session of graph 'digits'")
    closed = io.StringIO()
    closed.close()
    for none in (closed, None):
        with contextlib.redirect_stderr(none):
            pyflame_rt.InferenceSession(digits, options)


def test_log_lines_as_the_interpreter_ends(digits):
    program = ("import atexit, sys, pyflame_rt\n"
               "atexit.register(lambda: pyflame_rt.InferenceSession(sys.argv[1], options))\n"
               "options = pyflame_rt.SessionOptions(log_level='info')\n"
               "session = pyflame_rt.InferenceSession(sys.argv[1], options)\n")
    ran = subprocess.run([sys.executable, "-c", program, digits], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and ran.stderr.count("pyflame_rt info: session of graph") == 2, ran.stderr


def test_a_logger_that_raises_loses_its_line_alone(digits):
    count, env = [], Environment.instance()

    def logger(level, message):
        count.append(level)
        raise KeyboardInterrupt
    env.set_logger(logger)
    try:
        for _ in range(2):
            pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(log_level="info"))
    finally:
        env.set_logger(None)
    assert count == ["info", "info"]


def test_options_are_for_the_first_call(digits):
    out = run_python("""
        import sys
        import pyflame_rt
        from pyflame_rt import Environment, InferenceSession
        assert not Environment.has_instance()
        env = Environment.instance(plugin_path=sys.argv[2], log_level="debug", num_threads=1)
        assert Environment.has_instance()
        lines = []
        env.set_logger(lambda level, text: lines.append(text))  # and left so until the end
        with InferenceSession(sys.argv[1]) as session:
            print(len(lines) > 0)
        print([plugin.name for plugin in env.plugins() if plugin.kind == "service"])
        """, digits, SAMPLES)
    assert out == f"True\n{['Heartbeat'] if SAMPLES.exists() else []}\n"


def test_wrong_options_make_no_environment():
    out = run_python("""
        from pyflame_rt import Environment, InvalidArgumentError
        try:
            Environment.instance(log_level="loud")
        except InvalidArgumentError as fault:
            print("loud" in str(fault), Environment.has_instance())
        """)
    assert out == "True False\n"


# ------------------------------------------------------------------ what became of providers


def test_states_of_a_session_that_never_failed(digits):
    with pyflame_rt.InferenceSession(digits) as session:
        assert [(s.name, s.condition, s.reason, s.code, s.failures) for s in session.provider_states()] == [
            ("CPUExecutionProvider", "active", "", 0, 0)]
    with pytest.raises(pyflame_rt.PyFlameRTError, match="closed"):
        session.provider_states()


@pytest.mark.skipif(not FAULTS.exists(), reason="the library is not that of a build with tests")
def test_states_say_who_failed_and_why(digits):
    out = run_python("""
        import sys
        import numpy as np
        import pyflame_rt
        env = pyflame_rt.Environment.instance(plugin_path=sys.argv[2], log_level="off")
        options = env.provider_options("FaultExecutionProvider")
        print([(one.key, one.type) for one in options if one.key == "provider.fault.stage"], bool(options[0].doc))
        graph = pyflame_rt.Graph()
        graph.add_input("x", [2])
        graph.add_node("neg", "Neg", ["x"], ["y"])
        graph.add_output("y")
        session = pyflame_rt.InferenceSession(
            graph, providers=[("FaultExecutionProvider", {"stage": "run"}), "CPUExecutionProvider"])
        print([(s.name, s.condition, s.failures) for s in session.provider_states()])
        print(session.run(None, {"x": np.array([1, -2], np.float32)})[0].tolist())
        for s in session.provider_states():
            print(s.name, s.condition, s.failures, s.code, "injected fault in run" in s.reason)
        """, digits, FAULTS)
    assert out.splitlines() == [
        "[('provider.fault.stage', 'string')] True",
        "[('FaultExecutionProvider', 'active', 0), ('CPUExecutionProvider', 'active', 0)]",
        "[-1.0, 2.0]", "FaultExecutionProvider failed 1 11 True", "CPUExecutionProvider active 0 0 False"]


# ------------------------------------------------------------------ services

PROGRAM = """
    import sys, time
    from pathlib import Path
    from pyflame_rt import Environment, Service
    Environment.instance(plugin_path=sys.argv[2])
    model, folder = sys.argv[1], Path(sys.argv[3])
    def beats(file, count):
        for _ in range(3000):
            if file.exists() and len(file.read_text().splitlines()) >= count:
                return file.read_text()
            time.sleep(0.01)
    """


def run_services(program, digits, folder):
    if not SAMPLES.exists():
        pytest.skip("the library is not that of a build with tests")
    return run_python(textwrap.dedent(PROGRAM) + textwrap.dedent(program), digits, SAMPLES, folder)


def test_a_service_runs_to_the_end_of_its_block(digits, tmp_path):
    out = run_services("""
        file = folder / "beats"
        with Service("heartbeat", {"interval_ms": 5, "model": model, "file": file}) as service:
            print(service.running, service.address == str(file), service)
            print("beat 2 ok" in beats(file, 3))
        print(service.running, repr(service.address), service)
        count = len(file.read_text().splitlines())
        time.sleep(0.05)
        print(len(file.read_text().splitlines()) == count)
        service.stop()  # again
        """, digits, tmp_path)
    assert out.splitlines() == [f"True True Service('heartbeat', {tmp_path}/beats)", "True",
                                "False '' Service('heartbeat', stopped)", "True"]


def test_a_service_is_asked_and_tells_of_events(digits, tmp_path):
    out = run_services("""
        import threading
        import pyflame_rt
        heard, fractions, enough = [], [], threading.Event()
        def hear(name, text):
            heard.append((name, text, service.ask("stats").text if started else ""))
            if len(heard) > 3:
                enough.set()
            raise ValueError("is lost")
        started = False
        with Service("heartbeat", {"interval_ms": 1}, on_event=hear, progress=fractions.append) as service:
            started = True
            print(enough.wait(30), heard[0][:1], heard[-1][2].startswith("beats "))
            print(service.ask("interval", "5").text == "", fractions[-1])
            for verb, request in (("dance", ""), ("interval", "never")):
                try:
                    service.ask(verb, request)
                except pyflame_rt.PyFlameRTError as fault:
                    print(type(fault).__name__)
        count = len(heard)
        time.sleep(0.03)
        print(len(heard) == count)
        try:
            service.ask("stats")
        except pyflame_rt.InvalidArgumentError as fault:
            print(fault)
        """, digits, tmp_path)
    assert out.splitlines() == ["True ('beat',) True", "True 1.0", "UnsupportedError", "InvalidArgumentError", "True",
                                "asking service 'heartbeat': it was stopped"]


def test_a_service_is_checked_without_being_started(digits, tmp_path):
    out = run_services("""
        import pyflame_rt
        print([(one.key, one.type, one.default_value) for one in Service.options("heartbeat")])
        Service.check("heartbeat", {"interval_ms": 5, "file": folder / "beats", "model": model})
        for options in ({"intervall_ms": 5}, {"interval_ms": "soon"}, {"model": folder / "nowhere.onnx"}):
            try:
                Service.check("heartbeat", options)
            except pyflame_rt.PyFlameRTError as fault:
                print(type(fault).__name__)
        def never(fraction):
            return False
        def raises(fraction):
            raise KeyError("from progress")
        for progress in (never, raises):
            try:
                Service("heartbeat", progress=progress)
            except Exception as fault:
                print(type(fault).__name__)
        time.sleep(0.03)
        print((folder / "beats").exists())
        """, digits, tmp_path)
    assert out.splitlines() == ["[('interval_ms', 'int', '1000'), ('model', 'string', ''), ('file', 'string', '')]",
                                "InvalidArgumentError", "InvalidArgumentError", "NotFoundError", "CancelledError",
                                "KeyError", "False"]


def test_a_service_ends_with_the_process(digits, tmp_path):
    run_services("""
        Service("Heartbeat", {"interval_ms": 1, "file": folder / "beats"})
        beats(folder / "beats", 2)
        """, digits, tmp_path)
    count = len((tmp_path / "beats").read_text().splitlines())
    time.sleep(0.05)
    assert count >= 2 and len((tmp_path / "beats").read_text().splitlines()) == count


def test_what_a_service_refuses(digits, tmp_path):
    out = run_services("""
        import pyflame_rt
        for name, options in (("nobody", {}), ("heartbeat", {"color": "red"}), ("heartbeat", {"interval_ms": 0})):
            try:
                Service(name, options)
            except pyflame_rt.PyFlameRTError as fault:
                print(type(fault).__name__, fault)
        """, digits, tmp_path).splitlines()
    assert len(out) == 3
    assert out[0].startswith("NotFoundError") and "nobody" in out[0] and "heartbeat" in out[0].lower()
    assert out[1].startswith("InvalidArgumentError") and "there is no option 'color'" in out[1]
    assert out[2].startswith("InvalidArgumentError") and "interval_ms is '0'" in out[2]


def test_another_library_is_named():
    program = "import pyflame_rt"
    other = ctypes.util.find_library("m")
    ran = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYFLAME_RT_LIBRARY": other},
                         capture_output=True, text=True, timeout=120)
    assert ran.returncode == 1 and f"{other} is another library, without pfrt_get_api" in ran.stderr
