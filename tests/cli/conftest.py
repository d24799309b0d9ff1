"""Small data and learners that the tests of the command line write themselves; and MQ2008, where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from films import shared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def letor_file(tmp_path: Path) -> Path:
    """Fifteen queries of 3 to 8 documents with 4 features, small integers; the first has no relevant document."""
    rng = np.random.default_rng(3)
    lines = []
    for q in range(15):
        for _ in range(rng.integers(3, 9)):
            x = rng.integers(-3, 4, 4)
            grade = 0 if q == 0 else int(np.clip(x[0] - x[1] + rng.integers(-1, 2), 0, 2))
            lines.append(f"{grade} qid:{q} " + " ".join(f"{i}:{value}" for i, value in enumerate(x, 1)))
    file = tmp_path / "tiny.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture
def items_file(tmp_path: Path) -> Path:
    """Thirty items with three numeric columns."""
    rng = np.random.default_rng(4)
    rows = [f"thing {i}," + ",".join(f"{value:.3f}" for value in rng.standard_normal(3)) for i in range(30)]
    file = tmp_path / "items.csv"
    file.write_text("name,size,price,age\n" + "\n".join(rows) + "\n")
    return file


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    """Learners of one's own: one that cannot be compiled, one that breaks, one that is not a learner."""
    file = tmp_path / "own.py"
    file.write_text(
        "from typing import Any, NamedTuple\n"
        "import numpy as np\n"
        "class State(NamedTuple):\n"
        "    seen: dict\n"
        "class Odd(NamedTuple):\n"
        "    n_features: int\n"
        "    space: Any\n"
        "    start: int = 0\n"
        "    def init(self, rng): return State({})\n"
        "    def propose(self, state, x, rng): return np.roll(np.arange(len(x)), self.start)\n"
        "    def update(self, state, x, y, feedback): return state\n"
        "class Breaks(Odd):\n"
        "    def update(self, state, x, y, feedback): raise RuntimeError('out of ideas')\n"
        "class Half(NamedTuple):\n"
        "    def init(self, rng): return 0\n"
    )
    return file


@pytest.fixture(scope="session")
def mq2008() -> Path:
    return shared("letor4-mq2008")
