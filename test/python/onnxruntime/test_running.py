# SPDX-License-Identifier: Apache-2.0
"""Programs that run models."""
import threading

import numpy as np
import pytest

from ort_models import (ADD, CUMSUM, DIGITS, MATMUL, NEG_ABS, NONZERO, NOT, PICK, ROOT, SEQUENCE, SQUARE, STRINGS, TOPK,
                        floats, open_session, ort, row, state)


def test_all_outputs():
    session = open_session(NEG_ABS)
    for names in (None, []):
        assert [out.tolist() for out in session.run(names, {"x": floats(-1, 2)})] == [[1, -2], [1, 2]]


def test_outputs_by_name_in_the_order_asked_for():
    session = open_session(NEG_ABS)
    assert [out.tolist() for out in session.run(["a", "n"], {"x": floats(-1, 2)})] == [[1, 2], [1, -2]]
    assert [out.tolist() for out in session.run(["a"], {"x": floats(-1, 2)})] == [[1, 2]]


def test_batches_of_any_size():
    session = open_session(ADD)
    for rows in (1, 7, 3):
        x = np.full((rows, 3), rows, np.float32)
        assert np.array_equal(session.run(None, {"a": x, "b": x})[0], 2 * x)


def test_a_classifier_s_accuracy():
    rows = np.frombuffer((ROOT / "samples" / "digits" / "digits_test.bin").read_bytes(), np.uint8,
                         offset=20).reshape(-1, 65)
    images = (rows[:, 1:] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    session = ort.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    found = np.concatenate([session.run(None, {name: images[i:i + 32]})[0].argmax(axis=1)
                            for i in range(0, len(images), 32)])
    assert (found == rows[:, 0]).sum() == 291


def test_a_matrix_product_is_numpy_s():
    session = open_session(MATMUL)
    a, b = np.random.default_rng(1).standard_normal((2, 17, 17)).astype(np.float32)
    np.testing.assert_allclose(session.run(["y"], {"a": a, "b": b})[0], np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_strings():
    session = open_session(STRINGS)
    for strings in (np.array(["a", "", "déjà"]), np.array(["a", "", "déjà"], object)):
        assert session.run(None, {"s": strings})[0].tolist() == ["a", "", "déjà"]


def test_booleans():
    out = open_session(NOT).run(None, {"b": np.array([True, False])})[0]
    assert out.tolist() == [False, True] and out.dtype == np.bool_


def test_a_scalar():
    out = open_session(SQUARE).run(None, {"x": np.array(3.0)})[0]
    assert out.shape == () and out == 9.0 and out.dtype == np.float64


def test_integers():
    session = open_session(CUMSUM)
    out = session.run(None, {"x": np.array([1, 2, 3], np.int64), "axis": np.array(0, np.int64)})[0]
    assert out.tolist() == [1, 3, 6] and out.dtype == np.int64


def test_two_outputs_of_two_types():
    values, indices = open_session(TOPK).run(["values", "indices"],
                                             {"x": floats(5, 9, 7), "k": np.array([2], np.int64)})
    assert values.tolist() == [9, 7] and indices.tolist() == [1, 2]


def test_an_output_whose_size_depends_on_data():
    session = open_session(NONZERO)
    assert session.run(None, {"x": floats(0, 3, 0, 4)})[0].tolist() == [[1, 3]]
    assert session.run(None, {"x": floats(0, 0)})[0].shape == (1, 0)


def test_a_sequence_comes_out_as_a_list():
    parts = open_session(SEQUENCE).run(None, {"a": floats(1, 2), "b": floats(3)})[0]
    assert [part.tolist() for part in parts] == [[1, 2], [3]]


def test_a_list_goes_in_as_a_sequence():
    session = open_session(PICK)
    assert session.run(None, {"s": [floats(1, 2), floats(3)], "i": np.array(1, np.int64)})[0].tolist() == [3]


def test_arrays_that_are_not_row_major():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    out = open_session(ADD).run(None, {"a": x[::2], "b": np.asfortranarray(x[:2])})[0]
    assert out.tolist() == (x[::2] + x[:2]).tolist()


def test_results_do_not_change_with_the_next_run():
    session = open_session(NEG_ABS)
    first = session.run(["n"], {"x": floats(1, 2)})[0]
    session.run(["n"], {"x": floats(3, 4)})
    assert first.tolist() == [-1, -2]


def test_a_run_with_options():
    run_options = ort.RunOptions()
    run_options.log_severity_level = 3
    run_options.log_verbosity_level = 0
    run_options.logid = "the first"
    run_options.only_execute_path_to_fetches = True
    assert run_options.logid == "the first" and run_options.log_severity_level == 3
    assert open_session(NEG_ABS).run(["a"], {"x": floats(-1)}, run_options)[0].tolist() == [1]


def test_a_run_that_is_terminated():
    session, run_options = open_session(NEG_ABS), ort.RunOptions()
    run_options.terminate = True
    with pytest.raises(state.Fail):
        session.run(None, {"x": floats(-1)}, run_options)
    run_options.terminate = False
    assert session.run(["a"], {"x": floats(-1)}, run_options=run_options)[0].tolist() == [1]


def test_a_configuration_entry_of_a_run():
    run_options = ort.RunOptions()
    run_options.add_run_config_entry("disable_synchronize_execution_providers", "0")
    assert run_options.get_run_config_entry("disable_synchronize_execution_providers") == "0"
    with pytest.raises(RuntimeError):
        run_options.get_run_config_entry("memory.enable_memory_arena_shrinkage")
    assert open_session(NEG_ABS).run(["a"], {"x": floats(-1)}, run_options)[0].tolist() == [1]


def test_a_run_that_calls_back():
    session, over, told = open_session(ADD), threading.Event(), []

    def callback(results, user_data, error):
        told.append((results[0].tolist(), user_data, error))
        over.set()

    session.run_async(["y"], {"a": row(1, 2, 3), "b": row(1, 1, 1)}, callback, {"request": 5})
    assert over.wait(60) and told == [([[2, 3, 4]], {"request": 5}, "")]


def test_one_session_in_many_threads():
    session, faults = open_session(ADD), []

    def work(n):
        for rows in range(1, 50):
            x = np.full((rows, 3), n, np.float32)
            if not np.array_equal(session.run(None, {"a": x, "b": x})[0], 2 * x):
                faults.append((n, rows))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
