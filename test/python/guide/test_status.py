# SPDX-License-Identifier: Apache-2.0
"""README.md's table of what works says of each chapter of the guide what its snippets and modules say."""
import importlib
from pathlib import Path

import pytest
from pyflame_rt._core.absent import _MODULES
from test_guide_table import rows

README = Path(__file__).parents[3] / "README.md"
# What snippets wait for, by the word that the table has for it.
WORDS = {"PyTorch import": "PyTorch", "batching": "batching", "partition": "partitions", "pruning": "pruning",
         "quantization": "`Quantizer`", "serving": "server", "streaming": "streaming", "training": "distillation"}


def table():
    """{chapter: (what works, what does not yet)}; a row may be of several chapters, by the beginnings of their names."""
    lines = README.read_text(encoding="utf-8").split("\n## What works\n")[1].split("\n## ")[0].splitlines()
    found = {}
    for line in lines:
        if line.startswith("|") and not line.startswith(("|---", "| chapter")):
            chapters, works, absent = (cell.strip() for cell in line.strip("|").split("|"))
            found.update({chapter: (works, absent) for chapter in chapters.split("; ")})
    return found


def row_of(heading):
    chapter = heading.split(" / ")[0]
    of = [row for name, row in table().items() if chapter.startswith(name)]
    assert len(of) == 1, f"{len(of)} rows of README.md's table are of '{chapter}'"
    return of[0]


@pytest.mark.parametrize("number, heading, tests, part", list(rows()))
def test_a_snippet_that_waits_stands_under_what_is_not_there_yet(number, heading, tests, part):
    works, absent = row_of(heading)
    if part:
        assert WORDS[part] in absent
    else:
        assert works


def test_a_chapter_that_is_there_as_a_whole_has_no_snippet_that_waits():
    waiting = {heading.split(" / ")[0] for _, heading, _, part in rows() if part}
    for name, (works, absent) in table().items():
        if works == "all":
            assert not absent and not any(chapter.startswith(name) for chapter in waiting)


@pytest.mark.parametrize("module", sorted(_MODULES))
def test_a_module_that_is_not_there_stands_in_the_table(module):
    with pytest.raises(ImportError, match="not in this version"):
        importlib.import_module(f"pyflame_rt.{module}").anything
    part = "training" if module == "distillation" else module
    assert any(WORDS[part] in absent for _, absent in table().values())
