"""The fold of a loop of ratings: who has which number, what is consumed, what weighs; by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful import Loop, Settings, infer
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.core.validation import check_range
from heedful.loop.interactions.rating.learners import check_table, rater
from heedful.loop.interactions.rating.model import RatingModel
from heedful.loop.interactions.rating.slate import WatchedGenerator, _places
from heedful.loop.model import Context
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.spaces.slate import Slate
from loops import plain_manifest

ACTIONS = {"look": (3.0, 0.25), "buy": (5.0, 1.0), "hide": (1.0, 2.0)}
MANIFEST = plain_manifest(ratings=(1.0, 5.0), actions=ACTIONS)
NONE = np.zeros((0, 0))


def model(spec: str = "item-mean:prior=0") -> RatingModel:
    return RatingModel(rater(spec, 3, (1.0, 5.0)), MANIFEST)


def told(m: RatingModel, shown: list[int], person: str | None = "p", version: int = 1, **said: Any) -> bool:
    """One piece of feedback on items by their numbers: `rating`s by item, or `actions`."""
    context = Context(DecisionRecord(shown=tuple(range(len(shown)))), np.array(shown), person)
    [(form, given)] = said.items()
    chosen = [shown.index(item) for item in given]
    if form == "rating":
        feedback = FeedbackRecord("rating", chosen, [float(rating) for rating in given.values()])
    else:
        feedback = FeedbackRecord("actions", chosen, done=[list(names) for names in given.values()])
    return m.teach(context, feedback, NONE, version)


def consumed(m: RatingModel, person: str) -> set[int]:
    return set(m.consumed_items(m.view(person)).tolist())


def test_what_was_not_said_teaches_nothing() -> None:
    m = model()
    before = copy_arrays(m.shared)
    context = Context(DecisionRecord(shown=(0,)), np.array([3]), "p")
    assert not m.teach(context, FeedbackRecord("none"), NONE, 1)
    m.withdraw(3)
    m.put(3, np.zeros(0))
    m.withdraw(4)
    assert not told(m, [4], rating={4: 2})
    assert (m.people, m.shared.users) == ({}, 0)
    assert identical(m.shared.learned.pairs, before.learned.pairs)


def test_an_item_that_is_gone_is_left_out_of_a_lesson_about_others_too() -> None:
    one, other = model("bmf"), model("bmf")
    for m in (one, other):
        told(m, [3, 4, 5], person="q", rating={3: 4, 5: 2})
        m.withdraw(4)
    assert told(one, [4, 5, 3], rating={4: 1, 5: 5})
    assert told(other, [5, 3], rating={5: 5})
    assert identical(one.shared, other.shared)


def test_before_anything_is_known_the_middle_is_expected() -> None:
    m = model("bmf")
    assert m.ratings(m.view(), np.array([2, 0])).tolist() == [3.0, 3.0]  # type: ignore[union-attr]
    assert model("random-item").ratings(m.view(), np.array([0])) is None


def test_who_draws_nothing_shows_it_for_certain() -> None:
    rng = WatchedGenerator(np.random.default_rng(0))
    rater("bmf", 3, (1.0, 5.0)).propose(model("bmf").shared.learned, model().offer(model().view(), np.arange(4)), rng)
    assert not rng.drawn
    assert 0.0 <= rng.random() < 1.0
    assert rng.drawn


@pytest.mark.parametrize("y", [[3], [0, 0], [], [9, 1]])
def test_a_learner_that_shows_what_is_not_on_offer_is_found(y: list[int]) -> None:
    with pytest.raises(ValueError, match="expected items on offer, each once"):
        _places(np.array([0, 1, 7]), np.array(y, np.int64))
    assert _places(np.array([0, 1, 7]), np.array([7, 0])).tolist() == [2, 0]


@pytest.mark.parametrize(
    "given", [None, 5, (1,), (1, 2, 3), (5, 1), (1, 1), ("1", 5), (0, np.inf), (np.nan, 1), (True, 5)]
)
def test_what_is_no_range_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="ratings: expected the lowest and the highest"):
        check_range("ratings", given)
    assert check_range("ratings", [0, 1]) == (0.0, 1.0)


def test_actions_are_read_once_and_for_all() -> None:
    """What is written in the log is read as it was meant."""
    table = check_table({"a": 2, "b": [5, 0.5]}, {}, 1.0, 5.0)
    assert table == {"a": (2.0, 1.0), "b": (5.0, 0.5)}
    assert check_table({name: list(told) for name, told in table.items()}, {}, 1.0, 5.0) == table
    assert check_table({"x": 1}, {"x": 1}, 0.0, 10.0)["view"] == (5.5, 0.1)
    for given, told in (({"a": 9}, "actions: a"), ({"a\n": 1}, "actions: expected a text"), ({}, "actions: expected")):
        with pytest.raises(ValueError, match=re.escape(told)):
            check_table(given, {"x": 1}, 1.0, 5.0)


class ChoiceAnswer(NamedTuple):
    """ChoiceAnswer: what was shown, for a test. Interaction: rating."""

    space: Any = Slate()

    def init(self, rng: Any) -> Any:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)

    def propose(self, state: Any, x: Any, rng: Any) -> Any:
        return x.items[:1]

    def update(self, state: Any, x: Any, y: Any, feedback: Any) -> Any:
        return x.items.copy(), np.array(y), feedback.items.copy()


def test_the_learner_hears_what_was_shown_and_is_still_there() -> None:
    """On offer, rising; as shown, best first; and what was rated, in that order."""
    m = RatingModel(ChoiceAnswer(Slate(3, 1.0, 5.0)), MANIFEST)
    told(m, [8, 2, 5, 1], rating={5: 1, 8: 2})
    assert [part.tolist() for part in m.shared.learned] == [[1, 2, 5, 8], [8, 2, 5, 1], [8, 5]]
    m.withdraw(2)
    told(m, [8, 2, 5, 1], rating={2: 1, 1: 2})
    assert [part.tolist() for part in m.shared.learned] == [[1, 5, 8], [8, 5, 1], [1]]


def test_what_is_known_of_items_tells_what_a_new_one_is_worth(tmp_path: Path) -> None:
    """People like long films. A film that comes later is expected by its length, also after a restart, and by the
    length that it has now; the explanation has a part for each feature."""
    films = [{"id": f"film-{j}", "minutes": 80 + 3 * j, "hue": j % 4} for j in range(24)]
    settings = Settings(ratings=(1, 5), k=4, control=0.0)
    with Loop.create(tmp_path / "films.heedful", encoding=infer(films), items=films, settings=settings) as loop:
        for t in range(40):
            shown = loop.decide(person=f"p{t % 8}", id=f"d{t}").shown
            loop.feedback(f"d{t}", id=f"f{t}", rating={name: 1 + 4 * int(name[5:]) / 23 for name in shown})
        loop.put_items([{"id": "short", "minutes": 80, "hue": 1}, {"id": "long", "minutes": 149, "hue": 1}])
        before = {name: each.value for name, each in loop.predict(["short", "long"], person="new").items()}
        assert before["short"] < 2.0
        assert before["long"] > 4.0
        loop.decide(["long"], person="new", id="one")
        parts = {part.name: part.counts for part in loop.why("one", budget=0.0).features}
        assert parts["minutes"] > 1.0 > abs(parts["hue"])
        assert sum(parts.values()) == pytest.approx(before["long"], abs=1e-6)
        loop.put_items([{"id": "short", "minutes": 149, "hue": 1}])
        changed = loop.predict(["short", "long"], person="new")
        assert changed["short"] == changed["long"]
    with Loop.open(tmp_path / "films.heedful") as loop:
        assert loop.predict(["short", "long"], person="new") == changed
        assert not loop.verify()
        loop.undo("f3")
        assert not loop.verify()
