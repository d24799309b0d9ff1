"""Files and folders that may not be read: every command says that, and none that there is no such thing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import heedful

from heedful import Loop
from heedful.core.serialization import read_arrays
from heedful.data.letor import load_letor
from heedful.data.movielens import load_movielens
from heedful.data.rating_files import open_ratings
from heedful.learners.registry import learner_class
from heedful.studies.outputs import read_outputs
from heedful.studies.reading import read_material
from locked import lock
from loops import small_loop

DENIED = os.strerror(13)


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind and a loop in it, which may not be entered."""
    folder = tmp_path / "locked"
    (folder / "inside").mkdir(parents=True)
    small_loop(folder / "a.heedful", control=0.0).close()
    for name in ("a.csv", "a.json", "a.jsonl", "a.py", "ratings.dat", "u.data", "a.safetensors"):
        (folder / name).write_text("a,b\n1,2\n")
    lock(folder, monkeypatch)
    return folder


COMMANDS = (
    "report {}/a.heedful", "decide {}/a.heedful", "export {}/a.heedful {}/out.jsonl", "doctor {}/a.heedful",
    "import {}/a.heedful {}/a.jsonl", "validate {}/a.jsonl", "import {}/none {}/a.csv",
    "evaluate {}/a.csv", "evaluate {}/a.heedful", "rank {}/a.csv", "rank {}",
    "compare {}/a.csv", "compare {}/inside", "compare {} --models", "init {}/new {}/a.csv", "serve {}/inside",
    "serve {}", "keys list --folder {}/inside", "figure jair2015/fig2 --data {}",
    "figure jair2015/fig2 --data {}/inside", "simulate letor {}/a.csv --learner {}/a.py:Mine",
    "simulate letor {}/a.csv --plot {}/inside/a.png", "simulate ratings {}/a.csv", "simulate movielens {}",
    "simulate movielens {}/inside",
)  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_says_that_a_path_may_not_be_read(locked: Path, line: str) -> None:
    got = heedful(line, *[locked] * line.count("{}"))
    assert got.code in (1, 2)
    assert DENIED in got.err
    assert str(locked) in got.err


READERS: dict[str, Callable[[Path], object]] = {
    "a snapshot": lambda folder: read_arrays(folder / "a.safetensors"),
    "a loop": lambda folder: Loop.open(folder / "a.heedful"),
    "a learner": lambda folder: learner_class(f"{folder}/a.py:Mine"),
    "outputs": lambda folder: read_outputs(folder / "inside"),
    "outputs that it holds": read_outputs,
    "things to compare": lambda folder: read_material(folder / "a.csv"),
    "ratings": lambda folder: open_ratings(folder / "ratings.dat"),
    "a folder of ratings": open_ratings,
    "films": load_movielens,
    "films in it": lambda folder: load_movielens(folder / "inside"),
    "queries": lambda folder: load_letor(folder / "a.csv"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_path_that_may_not_be_read_is_not_called_missing(locked: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(PermissionError):
        read(locked)
