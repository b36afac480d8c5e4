# SPDX-License-Identifier: Apache-2.0
"""guide_snippets.md names every snippet of the guide once, and the tests that there are."""
import re
from pathlib import Path

FOLDER = Path(__file__).parent
SNIPPETS = 94


def rows():
    """(number, heading, tests, what it waits for)"""
    for line in (FOLDER / "guide_snippets.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].isdigit():
            assert len(cells) == 4, line
            yield int(cells[0]), cells[1], re.findall(r"`([^`]+)`", cells[2]), cells[3]


def guide_tests():
    return {f"{file.name}::{name}" for file in FOLDER.glob("test_guide_*.py") if file.name != Path(__file__).name
            for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE)}


def test_numbers_run_without_holes():
    assert [number for number, *_ in rows()] == list(range(1, SNIPPETS + 1))


def test_every_snippet_has_a_test_or_waits_for_a_part():
    assert [number for number, heading, tests, part in rows() if not heading or not (tests or part)] == []


def test_the_tests_named_are_those_that_there_are():
    named = [test for _, _, tests, _ in rows() for test in tests]
    assert sorted(set(named) - guide_tests()) == []
    assert sorted(guide_tests() - set(named)) == []


def test_tests_that_bear_a_number_stand_in_its_row():
    for number, _, tests, _ in rows():
        for test in tests:
            own = re.search(r"::test_(\d\d)_", test)
            assert own is None or int(own[1]) == number
