"""`heedful check`: findings in words and as JSON, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import done, heedful, refusal

from heedful.core import conformance
from heedful.core.conformance import CheckResult
from heedful.learners.coactive.perceptron import ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.ratings.baselines import ItemMean
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking
from heedful.spaces.slate import Slate
from heedful.worlds.instances import InstanceStream
from heedful.worlds.queries import QueryStream, feature_bounds
from heedful.worlds.ratings import Replay
from heedful.worlds.users import Noisy

GOOD, BAD = CheckResult("keeps its word", True, "", "40 rounds"), CheckResult("is [quick]", False, "round 3: slow", "")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands in for the promises: says `findings`, and keeps what it was given."""
    box: dict[str, Any] = {"findings": [GOOD]}

    def promises(learner: Any, world: Any) -> Iterator[CheckResult]:
        box.update(learner=learner, world=world)
        yield from box["findings"]

    monkeypatch.setattr(conformance, "check_learner", promises)
    return box


def test_kept_promises(found: dict[str, Any]) -> None:
    got = done("check perceptron:batch=3")
    assert [line.rstrip() for line in got.out.splitlines()] == ["✓ keeps its word", "  40 rounds", "", "All 1 kept."]
    assert found["learner"] == PreferencePerceptron(6, Ranking(5), 3)
    assert isinstance(found["world"], QueryStream)
    assert found["world"].user == Noisy(5)
    assert found["world"].X.shape == (320, 6)
    assert len(found["world"].offsets) == 41


@pytest.mark.parametrize(("spec", "k"), [("prank", 5), ("widrow-hoff:eta=0.1,n_ranks=3", 3)])
def test_a_learner_of_grades_meets_instances(found: dict[str, Any], spec: str, k: int) -> None:
    assert heedful(f"check {spec}").code == 0
    assert found["learner"].space == Ranks(k)
    assert isinstance(found["world"], InstanceStream)
    assert found["world"].X.shape == (40, 6)
    assert set(found["world"].ranks.tolist()) == set(range(1, k + 1))


def test_arrays_of_ratings_that_do_not_grow_are_noticed(tmp_path: Path) -> None:
    """Compiled they would be written beyond their ends."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "ratings.md").read_text()
    [source] = [block.split("```")[0] for block in page.split("```python\n") if "class State" in block]
    grown = "grow(state.count, size, 0.0), grow(state.total, size, 0.0)\n        for"
    assert grown in source
    file = tmp_path / "fixed_of_mine.py"
    file.write_text(source.replace(grown, "state.count, state.total\n        for"))
    got = heedful("check {}:Hopeful --json", file)
    assert got.code == 1
    [broken] = [row["where"] for row in got.json if row["kept"] is False]
    assert "out of bounds for axis 0 with size 64" in broken
    assert "compiled equals interpreted, bit for bit" in [row["promise"] for row in got.json if row["kept"] is None]


def test_a_learner_of_ratings_meets_users_who_rate_two_at_a_time(found: dict[str, Any]) -> None:
    assert heedful("check item-mean:prior=2").code == 0
    assert found["learner"] == ItemMean(Slate(2, 1.0, 5.0), 2.0)
    assert isinstance(found["world"], Replay)
    assert (found["world"].starts.size, found["world"].repeats) == (81, False)


def test_a_broken_promise_says_where_and_ends_with_1(found: dict[str, Any]) -> None:
    found["findings"] = [GOOD, BAD]
    got = heedful("check perceptron")
    assert (got.code, got.err) == (1, "")
    lines = [line.rstrip() for line in got.out.splitlines()]
    assert lines == [
        "✓ keeps its word",
        "  40 rounds",
        "✗ is [quick]",
        "  round 3: slow",
        "",
        "1 of 2 promises broken.",
    ]


def test_what_fails_by_the_same_cause_is_not_counted(found: dict[str, Any]) -> None:
    open_ = CheckResult("is small", None, "it cannot be told before this is mended: is [quick]", "")
    found["findings"] = [GOOD, BAD, open_]
    got = heedful("check perceptron")
    assert (got.code, got.err) == (1, "")
    assert [line.rstrip() for line in got.out.splitlines()][4:] == [
        "? is small",
        "  it cannot be told before this is mended: is [quick]",
        "",
        "1 of 3 promises broken, 1 cannot be told before that is mended.",
    ]
    assert [row["kept"] for row in heedful("check perceptron --json").json] == [True, False, None]


def test_as_json(found: dict[str, Any]) -> None:
    found["findings"] = [GOOD, BAD]
    got = heedful("check perceptron --json")
    assert (got.code, got.err) == (1, "")
    assert got.json == [
        {"promise": "keeps its word", "kept": True, "where": "", "evidence": "40 rounds"},
        {"promise": "is [quick]", "kept": False, "where": "round 3: slow", "evidence": ""},
    ]


def test_what_the_data_give_a_learner(found: dict[str, Any]) -> None:
    heedful("check exponentiated")
    world = found["world"]
    assert found["learner"] == ExponentiatedPerceptron(
        6, Ranking(5), feature_bounds(world.X, world.offsets, Ranking(5))[1]
    )


def test_the_promises_themselves_on_one_that_breaks_some(tmp_path: Path) -> None:
    (tmp_path / "sly.py").write_text(
        "from typing import Any, NamedTuple\n"
        "import numpy as np\n"
        "class Sly(NamedTuple):\n"
        "    n_features: int\n"
        "    space: Any\n"
        "    @property\n"
        "    def must_interpret(self): return True\n"
        "    def init(self, rng): return np.zeros(self.n_features)\n"
        "    def propose(self, state, x, rng):\n"
        "        state[0] += 1.0  # it must not\n"
        "        return self.space.argmax(state, x)\n"
        "    def update(self, state, x, y, feedback): return state\n"
    )
    got = heedful("check {}:Sly --json", tmp_path / "sly.py")
    assert got.code == 1
    broken = [finding["promise"] for finding in got.json if finding["kept"] is False]
    assert broken == ["learner and state are named tuples of numbers and arrays, one type a field"]  # a bare array
    assert all(bool(finding["where"]) != bool(finding["kept"]) for finding in got.json)


def test_what_is_not_a_learner_is_bad_input(own_file: Path) -> None:
    got = heedful("check {}:Half", own_file)
    told = f"{own_file}: Half: expected a NamedTuple with init, propose and update, but it has no propose and no update"
    assert (got.code, got.out, got.err) == (2, "", f"heedful: {told}\n")


OWN_CORRECTOR = """
from math import isfinite
from typing import Any, NamedTuple
import numpy as np
class State(NamedTuple):
    w: Any
class Steady(NamedTuple):
    'Adds what was better: an example.'
    n_features: int
    space: Any
    rate: float = 1.0
    @property
    def must_interpret(self): return True
    def init(self, rng):
        if not isfinite(self.rate):
            raise ValueError(f'rate: expected a finite number, got {self.rate}')
        return State(np.zeros(self.n_features))
    def weights(self, state): return state.w
    def propose(self, state, x, rng): return self.space.argmax(state.w, x)
    def update(self, state, x, y, feedback):
        self.space.add_difference(state.w, x, feedback, y, self.rate)
        return state
"""


def test_what_cannot_be_told_and_what_is_not_refused(tmp_path: Path) -> None:
    """A learner that never learns has no weights that tell candidates apart; one that takes NaN as a rate fails."""
    file = tmp_path / "steady_of_mine.py"
    file.write_text(OWN_CORRECTOR)
    got = heedful("check {}:Steady --json", file)
    assert [(row["promise"], row["where"]) for row in got.json if not row["kept"]] == []
    file = tmp_path / "idle_of_mine.py"
    update = "        self.space.add_difference(state.w, x, feedback, y, self.rate)\n"
    file.write_text(OWN_CORRECTOR.replace(update, ""))
    got = heedful("check {}:Steady --json", file)
    told = "it cannot be told: in none of 40 rounds did the weights tell two candidates apart"
    assert [row["where"] for row in got.json if row["kept"] is None] == [told]
    assert got.code == 0
    assert heedful("check {}:Steady", file).out.splitlines()[-1] == "10 of 11 kept, 1 cannot be told."
    file = tmp_path / "careless_of_mine.py"
    file.write_text(OWN_CORRECTOR.replace("if not isfinite(self.rate)", "if False"))
    got = heedful("check {}:Steady --json", file)
    assert got.code == 1
    [where] = [row["where"] for row in got.json if not row["kept"]]
    assert where.startswith("rate: ")
    assert where.endswith("rate=nan) was accepted")


OWN_CHOOSER = """
from typing import Any, NamedTuple
import numpy as np
class State(NamedTuple):
    won: Any  # n_items
class Wins(NamedTuple):
    'Who was chosen most: an example. Interaction: pairwise.'
    space: Any
    @property
    def must_interpret(self): return True
    def init(self, rng): return State(np.zeros(self.space.n_items))
    def propose(self, state, x, rng): return x.pairs[state.won[x.pairs].sum(axis=1).argmax()].copy()
    def update(self, state, x, y, feedback):
        if feedback >= 0:
            state.won[y[feedback]] += 1.0
        return State(state.won)
"""


def test_one_s_own_learner_of_choices(tmp_path: Path) -> None:
    """Interaction: pairwise: every promise is tried on people who choose; what is broken is said."""
    file = tmp_path / "wins_of_mine.py"
    file.write_text(OWN_CHOOSER)
    got = heedful("check {}:Wins --json", file)
    assert [(row["promise"], row["where"]) for row in got.json if not row["kept"]] == []
    assert (got.code, len(got.json)) == (0, 11)
    file = tmp_path / "nobody_of_mine.py"
    file.write_text(OWN_CHOOSER.replace("Interaction: pairwise", "Interaction: psychic"))
    err = refusal("check {}:Wins", file)
    assert "expected one of coactive" in err
    assert "psychic" in err
    file = tmp_path / "keeps_of_mine.py"
    file.write_text(OWN_CHOOSER.replace("].copy()", "]").replace("argmax()]", "argmax():][0]"))
    broken = [row for row in heedful("check {}:Wins --json", file).json if not row["kept"]]
    assert [row["where"].partition(": ")[2] for row in broken] == [
        "the proposal shares memory with the state or the context"
    ]
