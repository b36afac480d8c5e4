# SPDX-License-Identifier: Apache-2.0
"""Runs onnxruntime_test_python.py of a checkout of ONNX Runtime, ``onnxruntime_suite.py CHECKOUT``, and holds what fails to
onnxruntime_suite.txt: a test that fails and is not listed there is an error, and so is one that is listed and passes.
"""
import contextlib
import importlib
import os
import re
import shutil
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

LEAST = 60  # tests that have to pass
LISTED = Path(__file__).resolve().with_name("onnxruntime_suite.txt")
MODULE = "onnxruntime_test_python"


class Result(unittest.TestResult):
    """What became of each test, by its name: "" where it passed."""

    def __init__(self):
        super().__init__()
        self.ends = {}

    def _end(self, test, how):
        name = getattr(test, "test_case", test)._testMethodName
        self.ends[name] = self.ends.get(name) or how

    def addSuccess(self, test):
        self._end(test, "")

    def addSkip(self, test, reason):
        self._end(test, f"skipped: {reason}")

    def addFailure(self, test, fault):
        self._end(test, f"{fault[0].__name__}: {fault[1]}")

    addError = addFailure

    def addSubTest(self, test, subtest, fault):
        if fault is not None:
            self.addFailure(subtest, fault)


def listed():
    """The tests that fail, with the reasons, in lines as "name: reason"."""
    out = {}
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            assert reason and name not in out, f"{LISTED.name}: {line!r} is no name that is new with its reason"
            out[name] = reason
    return out


def copied(tests, data, work):
    """The models that the tests name, with the files beside them, where tests may write."""
    names = set(re.findall(r'get_name\("([^"]+)"\)', (tests / f"{MODULE}.py").read_text(encoding="utf-8")))
    (work / "testdata").mkdir()
    for name in sorted(names):
        target = work / "testdata" / name
        target.parent.mkdir(exist_ok=True)
        for beside in (data / name).parent.glob(Path(name).stem + ".*"):
            shutil.copy(beside, target.with_name(beside.name))
    if not any((work / "testdata").iterdir()):
        sys.exit(f"onnxruntime_suite: '{data}' has none of the models that {MODULE}.py names; give a whole checkout")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tests = Path(sys.argv[1]).resolve() / "onnxruntime" / "test" / "python"
    if not (tests / f"{MODULE}.py").is_file():
        sys.exit(f"onnxruntime_suite: '{tests / MODULE}.py' is not there; give the folder of a checkout of ONNX Runtime")
    with tempfile.TemporaryDirectory() as folder:
        copied(tests, tests.parent / "testdata", Path(folder))
        os.chdir(folder)
        sys.path.insert(0, str(tests))
        warnings.simplefilter("ignore")
        module = importlib.import_module(MODULE)
        suite, result = unittest.defaultTestLoader.loadTestsFromModule(module), Result()
        with open("log", "w", encoding="utf-8") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            suite.run(result)
        os.chdir("/")
    known, ends = listed(), result.ends
    passed = [name for name, how in ends.items() if not how]
    faults = [f"{name} fails: {how}" for name, how in ends.items() if how and name not in known]
    faults += [f"{name} passes, but is listed: {reason}" for name, reason in known.items() if ends.get(name) == ""]
    for name in known.keys() - ends.keys():
        print(f"{name} is listed, and this checkout has no such test")
    if len(passed) < LEAST:
        faults.append(f"only {len(passed)} pass; {LEAST} have to")
    for fault in faults:
        print("FAILED:", fault)
    import onnxruntime
    print(f"{MODULE} by {onnxruntime.__name__}: {len(passed)} of {len(ends)} pass, {len(ends) - len(passed)} fail")
    sys.exit(bool(faults))


main()
