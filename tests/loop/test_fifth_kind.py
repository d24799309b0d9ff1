"""A kind of feedback of one's own, `fifth.py:BestWorst`, does all that the built-in kinds do, and changes none of their
files: in Python, from the command line; over HTTP it is one of all kinds."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import heedful

from heedful import Loop, Settings, infer
from heedful.data.jsonl import Line
from heedful.experiments.trials import make_trial
from heedful.io import export_lines, import_lines
from heedful.learners.registry import learner_class
from heedful.testing import check_learner
from kinds import FIFTH
from loops import rows

BestWorst: Any = learner_class(FIFTH)
fifth: Any = sys.modules[BestWorst.__module__]
"""The module as the loop knows it: heedful imports it from its file."""
ITEMS = rows(20, 3)
NAMES = [row["id"] for row in ITEMS]
X = {row["id"]: np.array([row["f0"], row["f1"], row["f2"]]) for row in ITEMS}


def best_worst_loop(path: str | Path, **given: Any) -> Loop:
    """A loop of the fifth kind over `ITEMS`."""
    encoding = infer(ITEMS, identifier="id", kinds={f"f{i}": "number" for i in range(3)})
    return Loop.create(path, encoding=encoding, items=ITEMS, learner=FIFTH, settings=Settings(**given))


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    with best_worst_loop(tmp_path / "loop") as loop:
        yield loop


def encoded(loop: Loop, decision: str) -> dict[str, Any]:
    """The features of a decision's candidates, by name."""
    known = loop.projection.find_decision(decision)
    return dict(zip(known.names, loop.projection.requests.context(known).x))


class Person:
    """Somebody whose utilities are x @ w: best and worst are drawn by the maximum-difference model."""

    def __init__(self, w: Any, seed: int) -> None:
        self.w, self._rng = np.array(w, float), np.random.default_rng(seed)

    def answer(self, shown: list[str] | tuple[str, ...], x: dict[str, Any] = X) -> dict[str, str]:
        u = np.array([x[name] @ self.w for name in shown])
        pairs = [(i, j) for i in range(len(u)) for j in range(len(u)) if i != j]
        p = np.exp([u[i] - u[j] for i, j in pairs])
        best, worst = pairs[self._rng.choice(len(pairs), p=p / p.sum())]
        return {"best": shown[best], "worst": shown[worst]}


def taught(loop: Loop, n: int, person: str | None = None, seed: int = 0) -> None:
    """n decisions d0, d1, ... with an answer e0, e1, ... each."""
    somebody = Person([1.0, -2.0, 0.5], seed)
    for i in range(n):
        decision = loop.decide(id=f"{person or ''}d{i}", person=person)
        answer = loop.feedback(decision.id, id=f"{person or ''}e{i}", **somebody.answer(decision.shown))
        assert (answer.status, answer.learned) == ("applied", True)


# ---------------------------------------------------------------------------- the learner


def test_the_learner_keeps_every_promise() -> None:
    assert [(each.kept, each.where) for each in check_learner(*make_trial(FIFTH))] == [(True, "")] * 11


def test_a_step_by_hand() -> None:
    """From w = 0 all twelve pairs of four are as likely, so that the model expects no difference: the gradient is
    x_best - x_worst, and AdaGrad's first step is the rate along its sign."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0], [-1.0, 1.0]])
    learner = BestWorst(2, 0.5)
    state = learner.update(learner.init(np.random.default_rng(0)), x, np.arange(4), np.array([2, 0]))
    assert state.w == pytest.approx([0.5, 0.5])
    assert state.total == pytest.approx([1.0, 9.0])


# ---------------------------------------------------------------------------- in Python


def test_four_are_shown_and_how_likely_just_that_was(tmp_path: Path) -> None:
    """Before anything is learned the first item is the best; it and three of the nineteen others, in any places: each
    such list has the probability 1 / (C(19, 3) 4!)."""
    with best_worst_loop(tmp_path / "l", control=0.0) as loop:
        decision = loop.decide()
        assert len(set(decision.shown)) == 4
        assert NAMES[0] in decision.shown
        assert decision.probability == pytest.approx(1 / (969 * 24))
    with best_worst_loop(tmp_path / "m", control=1.0) as loop:
        decision = loop.decide()
        assert decision.arm == "control"
        assert decision.probability == pytest.approx(1 / (20 * 19 * 18 * 17))


def test_what_is_predicted_is_how_likely_each_is_to_be_the_best(loop: Loop) -> None:
    """By the definition of the maximum-difference model, of what is shown; before anything is learned all are alike."""
    assert loop.decide().predicted == pytest.approx([0.25] * 4)
    taught(loop, 10)
    decision, w = loop.decide(), loop.weights
    x = encoded(loop, decision.id)
    u = [float(x[name] @ list(w.values())) for name in decision.shown]
    odds = [sum(np.exp(a - b) for j, b in enumerate(u) if j != i) for i, a in enumerate(u)]
    assert decision.predicted == pytest.approx([each / sum(odds) for each in odds], abs=1e-5)


def test_the_lead_of_the_first_over_the_second_is_explained(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    taught(loop, 6)
    decision = loop.decide(id="last")
    why, x, w = loop.why("last", budget=0.0), encoded(loop, "last"), list(loop.weights.values())
    assert (why.item, why.next) == decision.shown[:2]
    assert why.lead == pytest.approx(float((x[why.item] - x[str(why.next)]) @ w))
    assert sum(part.lead for part in why.features) == pytest.approx(why.lead)
    assert sum(moved.lead for moved in why.events) == pytest.approx(why.lead)
    monkeypatch.setattr(type(loop.projection.interaction), "item_scores", lambda *_: None)
    blind = loop.why("last")
    assert (blind.score, blind.lead, blind.events_by) == (None, None, "none")


def test_a_line_of_it_holds_the_best_and_the_worst(loop: Loop) -> None:
    taught(loop, 2)
    one = next(line for line in json.loads(json.dumps([*export_lines(loop)])) if line.get("id") == "e0")
    assert one.keys() == {"kind", "id", "decision", "time", "best", "worst"}
    [outcome] = import_lines(loop, [Line(1, {**one, "id": "new", "worst": None}, None)])
    assert outcome.status == "rejected"
    assert outcome.reason == "worst: expected the worst of what was shown, beside the best, got none"


def test_how_it_speaks_of_itself(loop: Loop) -> None:
    interaction = loop.projection.interaction
    assert (interaction.name, interaction.words.loop) == ("best-worst", "a loop of extremes")
    assert list(interaction.forms) == ["best", "none"]
    decision = loop.decide()
    _, example = loop.projection.interaction.example(loop.projection.model, decision.shown)
    assert loop.feedback(decision.id, **example).status == "applied"


# ---------------------------------------------------------------------------- from the command line


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("items.csv").write_text("id,f0,f1,f2\n" + "".join(f"{r['id']},{r['f0']},{r['f1']},{r['f2']}\n" for r in ITEMS))
    own = ("--own", FIFTH)
    got = heedful("init best items.csv --learner {}", FIFTH)
    assert (got.code, got.err) == (0, "")
    got = heedful("decide best --id d0 --person ann {} {}", *own)
    assert got.code == 0
    shown = [word for word in got.out.split() if word in NAMES]
    again = next(line for line in got.out.splitlines() if line.startswith("Next, where somebody"))
    words = shlex.split(again.partition(": ")[2])
    assert words[:5] == ["heedful", "feedback", "best", "d0", "--form"]
    assert json.loads(words[5]) == {"best": shown[0], "worst": shown[-1]}
    got = heedful("feedback best d0 --id e0 --json --form {} {} {}", words[5], *own)
    assert (got.code, got.json["status"], got.json["learned"]) == (0, "applied", True)
    got = heedful("feedback best d0 --form {} {} {}", '{"best":"i0"}', *own)
    assert (got.code, got.err) == (
        2,
        "heedful: worst: expected the worst of what was shown, beside the best, got none\n",
    )
    got = heedful("feedback best d0 --clicks {} {} {}", shown[0], *own)
    assert got.code == 3
    assert "clicks: expected best or none: this loop learns extremes" in got.out
    exported = heedful("export best all.jsonl {} {}", *own)
    assert exported.code == 0
    unknown = heedful("validate all.jsonl")  # nobody says which forms it has
    assert unknown.code == 1
    assert "feedback: expected one of clicks, " in unknown.out
    got = heedful("check {} --json", FIFTH)
    assert (got.code, [each["kept"] for each in got.json]) == (0, [True] * 11)
    assert heedful("learners {}", FIFTH).code == 0
