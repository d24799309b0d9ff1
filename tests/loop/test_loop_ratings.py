"""A loop of ratings from outside: what is shown and expected, what ratings teach, what is refused, what is measured."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from heedful import Loop
from heedful.io import import_lines
from heedful.loop.interactions.rating.prediction_report import Picked
from heedful.loop.interactions.rating.texts import pick_sentences
from heedful.loop.interactions.telling import unordered
from heedful.loop.log import Event, now
from heedful.loop.pending import PendingEvent
from heedful.results.answers import plain
from loops import as_often_as_said, bits, lines_of, rating_loop, specs

RATERS = specs("rating")
SURE = ["bmf", "item-mean"]
"""Learners that draw nothing, with and without a state that grows."""
SAYS = [spec for spec in RATERS if spec != "random-item"]
"""Learners that say what they expect."""


def liking(name: str, person: int) -> float:
    """What person 0, 1, ... gives an item: half of them like the even ones."""
    j = int(name[1:])
    return float(np.clip(3.0 + (1.5 if (j + person) % 2 else -1.5) + 0.25 * (j % 3), 1.0, 5.0))


def taught(loop: Loop, n: int, people: int = 5) -> None:
    """n decisions, and a rating of all that was shown."""
    for t in range(n):
        d = loop.decide(person=f"p{t % people}", id=f"d{t}", repeats=True)
        answer = loop.feedback(d.id, id=f"e{t}", rating={name: liking(name, t % people) for name in d.shown})
        assert (answer.status, answer.learned) == ("applied", True)


# ---------------------------------------------------------------------------- from nothing


def test_bmf_is_what_learns_where_nobody_says(folder: Path) -> None:
    with rating_loop(folder / "l") as loop:
        assert (loop.manifest.learner, loop.manifest.encoding.size) == ("bmf", 0)
        assert (loop.facts.get("ratings"), loop.facts.get("grades"), loop.weights) == ([1.0, 5.0], None, {})


@pytest.mark.parametrize("spec", SURE)
def test_ratings_change_what_is_expected_and_shown(folder: Path, spec: str) -> None:
    with rating_loop(folder / "l", spec, control=0.0) as loop:
        for t in range(12):
            loop.decide([f"i{t}"], person="p", id=f"d{t}")
            loop.feedback(f"d{t}", rating={f"i{t}": 5.0 if t in (3, 7, 11) else 2.0})
        d = loop.decide(person="q", show=3)
        assert set(d.shown) == {"i3", "i7", "i11"}
        assert d.predicted is not None
        assert d.predicted == pytest.approx([loop.predict(person="q")[name].value for name in d.shown], rel=1e-5)
        assert set(loop.rank(person="q")[:3]) == set(d.shown)
        assert list(loop.predict(person="q")) == list(loop.rank(person="q"))
        assert all(1.0 <= rating <= 5.0 for rating in d.predicted)


@pytest.mark.parametrize("spec", SURE)
def test_the_model_is_compared_with_what_is_most_popular(folder: Path, spec: str) -> None:
    """In lists of the control, of what was rated: by hand, from what was told and given, in the order it came."""
    with rating_loop(folder / "l", spec, control=0.5) as loop:
        assert loop.report().prediction.details["picked"] is None  # type: ignore[union-attr]
        said: list[tuple[str, float]] = []
        found: list[tuple[float, float, float]] = []
        for t in range(80):
            d = loop.decide(person=f"p{t % 7}", id=f"d{t}", repeats=True)
            among = list(d.shown)[: 1 + t % 3]
            given = {name: liking(name, t % 7) for name in among}
            if d.arm == "control" and len(given) > 1:
                overall = np.mean([value for _, value in said]) if said else 3.0
                mean = {}
                for name in among:
                    own = [value for item, value in said if item == name]
                    mean[name] = (sum(own) + overall) / (len(own) + 1)
                told = dict(zip(d.shown, d.predicted))
                best = [[n for n in among if by[n] == max(by[m] for m in among)] for by in (told, mean)]
                first = [float(np.mean([given[n] for n in names])) for names in best]
                found.append((first[0], first[1], float(np.mean(list(given.values())))))
            for name in among:  # one after the other, as they are learned
                said.append((name, given[name]))
            loop.feedback(d.id, rating=given)
        found_picked = loop.report().prediction.details["picked"]  # type: ignore[union-attr]
        picked = Picked(**found_picked)
        assert picked.lists == len(found) > 10
        assert picked[1:4] == pytest.approx(np.mean(found, axis=0), abs=1e-9)
        if spec == "item-mean":  # it is what it is compared with
            assert (picked.learned, picked.difference) == (picked.popular, None)
            assert "better than the most popular cannot be said yet." in pick_sentences(found_picked)
        else:
            assert picked.difference["by"] == pytest.approx(picked.learned - picked.popular)
            assert picked.difference["people"] == 7


# ---------------------------------------------------------------------------- what is shown


def test_what_was_consumed_is_not_shown_again_unless_it_is_said(folder: Path) -> None:
    with rating_loop(folder / "l", n_items=4) as loop:
        loop.record(loop.items, loop.items, id="d", person="p")
        loop.feedback("d", rating=dict.fromkeys(loop.items, 3))
        before = loop.projection.log.counts(), bits(loop)
        wanted = "candidates: expected one that p has not consumed, got 4 that were; repeats shows them again"
        with pytest.raises(ValueError, match=wanted):
            loop.decide(person="p")
        with pytest.raises(ValueError, match="got 1 that were"):
            loop.decide(["i1"], person="p")
        assert (loop.projection.log.counts(), bits(loop)) == before
        assert len(loop.decide(person="p", repeats=True, show=4).shown) == 4


def test_how_many_are_shown(folder: Path) -> None:
    """As many as the request says, else as the loop does; fewer where fewer are left. What was not shown is not
    kept."""
    with rating_loop(folder / "l", control=0.0) as loop:
        assert len(loop.decide(person="p").shown) == 3
        d = loop.decide([f"i{j}" for j in range(8)], person="p", show=5, id="d")
        assert len(d.shown) == 5
        known = loop.projection.find_decision("d")
        assert (known.names, known.record.of, len(known.record.items)) == (d.shown, 8, 5)
        assert loop.decide([f"i{j}" for j in range(8)], person="p", id="d") == d


@pytest.mark.slow
@pytest.mark.parametrize("spec", SURE)
def test_the_probability_of_showing_is_what_it_says(folder: Path, spec: str) -> None:
    """The control is drawn: any two of four, in order, one in twelve; the learner shows one list for certain."""
    with rating_loop(folder / "l", spec, n_items=4, k=2, control=0.5) as loop:
        told = as_often_as_said(loop.decide(person="p", id=f"d{t}") for t in range(600))
        assert sorted(told.values()) == pytest.approx([*[0.5 / 12] * 11, 0.5 + 0.5 / 12])


@pytest.mark.slow
def test_where_the_learner_draws_its_probability_is_not_known(folder: Path) -> None:
    with rating_loop(folder / "l", "pts", control=0.2) as loop:
        assert loop.decide(person="p").probability is None
    with rating_loop(folder / "t", "bmf:sampled=true,width=0.5", control=0.2) as loop:
        assert loop.decide(person="p").probability is None
    with rating_loop(folder / "r", "random-item", n_items=4, k=2, control=0.2) as loop:
        assert loop.decide(person="p").probability == pytest.approx(1 / 12)
    with rating_loop(folder / "c", "pts", n_items=4, k=2, control=1.0) as loop:
        assert loop.decide(person="p").probability == pytest.approx(1 / 12)


def test_the_control_keeps_the_callers_score_where_there_is_one(folder: Path) -> None:
    with rating_loop(folder / "l", control=0.5) as loop:
        taught(loop, 10)
        arms = set()
        for t in range(30):
            prior = {"i4": 9.0, "i2": 8.0, "i9": 7.5, "i0": 0.0}
            d = loop.decide(list(prior), person="new", prior=prior, id=f"c{t}", show=2)
            arms.add(d.arm)
            if d.arm == "control":
                assert d.shown == ("i4", "i2")
            assert d.probability is not None
            assert d.predicted == pytest.approx(
                [loop.predict([name], person="new")[name].value for name in d.shown], rel=1e-5
            )
        assert arms == {"control", "learned"}


# ---------------------------------------------------------------------------- items go and come back


@pytest.mark.parametrize("spec", SURE)
def test_an_item_that_is_withdrawn_takes_with_it_what_was_rated(folder: Path, spec: str) -> None:
    """At its place in the log; what is said of it afterwards counts for nothing, put back it begins anew."""
    with rating_loop(folder / "l", spec, n_items=4, k=4) as loop:
        taught(loop, 8)
        loop.decide(person="new", id="late")
        assert loop.withdraw("i1")
        model = loop.projection.model
        if spec == "item-mean":
            assert (model.shared.learned.counts[1], model.shared.learned.totals[1]) == (0.0, 0.0)
        assert model.shared.said.by_item.size[1] == 0
        assert loop.verify() == []
        assert "i1" not in loop.decide(person="q", show=4).shown
        with pytest.raises(LookupError, match=r"expected items on offer, .*, got 'i1'"):
            loop.decide(["i1"], person="q", strict=True)
        before = bits(loop)
        answer = loop.feedback("late", rating={"i1": 4})
        assert (answer.status, answer.learned) == ("applied", False)
        assert bits(loop) == before
        assert loop.feedback("late", rating={"i1": 4, "i2": 4}).learned
        assert loop.verify() == []
        loop.put_items([{"id": "i1", "title": "again"}])
        loop.decide(["i1"], person="p0", id="back")  # who had consumed it
        assert loop.feedback("back", rating={"i1": 2}).learned
        assert loop.verify() == []
        loop.undo("e3")
        assert loop.verify() == []
        kept, version = bits(loop), loop.version
        loop.snapshot()
    with Loop.open(folder / "l") as loop:
        assert (bits(loop), loop.version, loop.notes) == (kept, version, [])


def test_an_item_event_is_a_version_of_the_model(folder: Path) -> None:
    with rating_loop(folder / "l", n_items=2) as loop:
        assert loop.version == 3
        loop.withdraw("i0")
        assert loop.version == 4
        d = loop.decide(person="p")
        assert d.version == 4
        with Loop.open(folder / "l") as other:
            assert other.version == 4
            other.put_items([{"id": "z"}])
            loop.projection.catch_up()
            assert loop.version == other.version == 6


# ---------------------------------------------------------------------------- taking back, starting again


def test_what_did_not_change_is_not_copied_for_readers(folder: Path) -> None:
    with rating_loop(folder / "l") as loop:
        taught(loop, 5)
        published = loop.projection.published.shared
        loop.decide(person="new")
        assert loop.projection.published.shared is published


def test_what_is_expected_lies_within_the_range_as_it_is_told(folder: Path) -> None:
    """Six digits are told, and the range may have more: rounded, a prediction would lie beyond it."""
    with rating_loop(folder / "l", "item-mean", n_items=2, ratings=(0.0, 0.12345678), control=0.0) as loop:
        for t in range(3):
            loop.decide(["i0"], id=f"d{t}")
            loop.feedback(f"d{t}", id=f"e{t}", rating={"i0": 0.12345678})
        assert loop.decide(["i0"], id="d").predicted == (0.12345678,)
        with pytest.raises(ValueError, match=r"expected a number from 0 to 0\.123457, got 0\.12345679"):
            loop.feedback("d", rating={"i0": 0.12345679})  # what came is told so that one sees it
        lines = lines_of(loop)
    with Loop.create(folder / "b", learner="item-mean", settings=loop.settings) as other:
        assert {each.status for each in import_lines(other, lines)} == {"applied"}


# ---------------------------------------------------------------------------- looking back


@pytest.mark.slow
@pytest.mark.parametrize("spec", RATERS)
def test_why_says_what_was_known(folder: Path, spec: str) -> None:
    with rating_loop(folder / "l", spec, n_items=5, control=0.0) as loop:
        for t in range(10):
            loop.record(["i0", "i1", "i2"], ["i0", "i1", "i2"], id=f"d{t}", person=f"p{t % 2}")
            loop.feedback(f"d{t}", id=f"e{t}", rating={"i0": 4, "i1": 2} if t % 2 else {"i0": 5})
        d = loop.decide(["i0"], person="p1", id="why", repeats=True)
        loop.feedback("why", id="after", rating={"i0": 1})  # it was not known then
        told = loop.why("why", budget=0.0)
        known = dict(told.prediction)
        expected, _ = known.pop("expected"), known.pop("spread")
        assert (told.item, told.next) == ("i0", None)
        assert known == {
            "ratings_of_item": 10.0, "mean_of_item": 4.5,
            "ratings_by_person": 10.0, "mean_by_person": 3.0,
            "own_ratings": 5.0, "own_mean": 4.0,
        }  # fmt: skip
        if spec == "random-item":
            assert (d.predicted, expected, told.events) == (None, None, ())
            return
        assert d.predicted == pytest.approx((expected,), rel=1e-5)
        assert told.score == expected
        assert "after" not in {moved.event for moved in told.events}


def test_why_says_from_which_ratings_it_comes(folder: Path) -> None:
    """The mean of 5, 4 and 3 with one of the overall mean: without one rating it would be so much lower."""
    with rating_loop(folder / "l", "item-mean:prior=0", n_items=3, control=0.0) as loop:
        for t, rating in enumerate((5, 4, 3)):
            loop.decide(["i0"], person=f"p{t}", id=f"d{t}")
            loop.feedback(f"d{t}", id=f"e{t}", rating={"i0": rating})
        loop.decide(["i1"], person="p0", id="d3")
        loop.feedback("d3", id="e3", rating={"i1": 1})
        loop.decide(["i0"], person="new", id="why")
        told = loop.why("why")
        assert (told.score, told.prediction["expected"]) == (4.0, 4.0)
        assert (told.prediction["ratings_of_item"], told.prediction["mean_of_item"]) == (3.0, 4.0)
        assert (told.prediction["ratings_by_person"], told.prediction["own_mean"]) == (0.0, None)
        assert {moved.event: moved.by for moved in told.events} == {"e0": 0.5, "e2": -0.5}
        loop.decide(["i0"], person="p0", id="again", repeats=True)
        known = loop.why("again").prediction
        assert [known[name] for name in ("ratings_by_person", "own_ratings", "own_mean")] == [2.0, 1.0, 5.0]
        loop.undo("e2")
        loop.decide(["i0"], person="new", id="then")
        assert loop.why("then").score == 4.5
        assert loop.why("why").score == 4.0  # as it was
        loop.withdraw("i0")
        assert (loop.why("why").score, loop.why("then").score) == (4.0, 4.5)


@pytest.mark.parametrize("spec", SAYS)
def test_another_learner_is_asked_before_it_learns(folder: Path, spec: str) -> None:
    """Round for round with the learner's own functions."""
    from heedful.loop.interactions.rating.learners import rater
    from heedful.spaces.slate import SlateContext, SlateRatings

    with rating_loop(folder / "l", "item-mean") as loop:
        taught(loop, 30)
        learner = rater(spec, 3, (1.0, 5.0))
        state = learner.init(np.random.default_rng(np.random.SeedSequence(0).spawn(3)[2]))
        off = []
        for t in range(30):
            known = loop.projection.find_decision(f"d{t}")
            items = np.array([int(name[1:]) for name in known.names])
            ratings = np.array([liking(name, t % 5) for name in known.names])
            order = items.argsort()
            expected = learner.ratings(state, SlateContext(t % 5, items[order]))
            off += np.abs((np.clip(expected, 1, 5) if t else 3.0) - ratings[order]).tolist()
            state = learner.update(state, SlateContext(t % 5, np.sort(items)), items, SlateRatings(items, ratings))
        found = loop.evaluate(spec).learners[-1]
        error, pairs = found.values
        assert (found.lessons, error.comparisons) == (30, 90)
        assert error.value == pytest.approx(np.mean(off))  # as all answered as often
        assert 0.0 <= pairs.value <= 1.0


def test_pairs_in_order_are_those_that_one_answer_rates_differently(folder: Path) -> None:
    with rating_loop(folder / "l", "item-mean", n_items=3, control=0.0) as loop:
        for t, ratings in enumerate(({"i0": 5, "i1": 1, "i2": 1}, {"i0": 4, "i1": 2, "i2": 3})):
            loop.record(["i0", "i1", "i2"], ["i0", "i1", "i2"], id=f"d{t}", person=f"p{t}")
            loop.feedback(f"d{t}", rating=ratings)
        found, random = loop.evaluate("random-item").learners
        # At first all are alike: two pairs count half. Then 0 before 1 and 2 is right twice, 1 and 2 are alike.
        assert (found.values[1].comparisons, found.values[1].people) == (5, 2)
        assert found.values[1].value == pytest.approx((1.0 / 2.0 + 2.5 / 3.0) / 2.0)  # each of two people counts alike
        assert [value.value for value in random.values] == [None, None]
        assert random.values[0].refused == "it predicts nothing of the sort"


def test_the_report_by_hand(folder: Path) -> None:
    """item-mean, which is the baseline, too: 3 in the middle, then with one of the overall mean."""
    with rating_loop(folder / "l", "item-mean", n_items=2, k=2, control=0.0) as loop:
        assert plain(loop.report())["prediction"] == {
            "measure": "mean |predicted - given|",
            "lower_is_better": True,
            "compared_with": "the item's mean so far",
            "answers": 0,
            "score": None,
            "baseline": None,
            "difference": None,
            "unsaid": "no rating was given to what was shown so far",
            "series": [],
            "details": {"mean": None, "picked": None},
        }
        for t, ratings in enumerate([{"i0": 5, "i1": 1}, {"i0": 4, "i1": 2}]):
            loop.decide(person=f"p{t}", id=f"d{t}")
            loop.feedback(f"d{t}", id=f"e{t}", rating=ratings)
        loop.decide(person="p2", id="d2")
        loop.feedback("d2", none=True)
        # Nothing is known at first: the middle. Then (5 + 3) / 2 and (1 + 3) / 2.
        assert loop.projection.find_decision("d0").record.predicted == (3.0, 3.0)  # type: ignore[union-attr]
        assert loop.projection.find_decision("d1").record.predicted == (4.0, 2.0)  # type: ignore[union-attr]
        found = loop.report()
        assert (found.prediction.answers, found.prediction.details["mean"]) == (4, 3.0)
        assert found.prediction.score == (2 + 2 + 0 + 0) / 4
        # The baseline learned nothing of a piece of feedback before it was compared with all of it, as the model did.
        assert found.prediction.baseline == found.prediction.score
        assert found.prediction.difference is None
        assert found.prediction.unsaid == "both were equally far off in every rating: chance cannot be told"
        [span] = found.prediction.series
        assert (span.answers, span.score) == (4, 1.0)
        assert (found.learned.shown, found.learned.answered, found.learned.mean) == (3, 2, 3.0)
        assert found.unsaid == (
            "nothing is left to the caller's score or chance, as control is 0: there is nothing to compare with"
        )
        assert (found.feedback.given, found.feedback.empty) == (3, 1)
        loop.undo("e0")
        found = loop.report()
        assert found.prediction.answers == 2
        assert found.feedback.undone == 1


# ---------------------------------------------------------------------------- manifest


OWN = '''
"""A learner of somebody's own."""
from typing import Any, NamedTuple
import numpy as np
from heedful.spaces.slate import Slate

class State(NamedTuple):
    n: int

class First(NamedTuple):
    """The first: ours. Interaction: rating."""
    space: Any = Slate()
    def init(self, rng):
        return State(0)
    def propose(self, state, x, rng):
        return x.items[: self.space.size]
    def update(self, state, x, y, feedback):
        if feedback.ratings.max() == 3.0:
            raise ZeroDivisionError("three")
        return State(state.n + feedback.items.size)
    def without_item(self, state, item):
        raise KeyError(item)
'''


def test_a_learner_of_ones_own_that_knows_no_more_than_it_must(folder: Path) -> None:
    """It says nothing of what it expects, and what it raises costs no more than the lesson."""
    (folder / "own.py").write_text(OWN)
    spec = f"{folder / 'own.py'}:First"
    with rating_loop(folder / "l", spec, control=0.0) as loop:
        d = loop.decide(person="p", id="d")
        assert (d.shown, d.predicted, d.probability) == (("i0", "i1", "i2"), None, 1.0)
        assert loop.feedback("d", rating={"i0": 2, "i1": 4}).learned
        answer = loop.feedback("d", rating={"i2": 3})
        assert (answer.status, answer.learned) == ("applied", False)
        assert "ZeroDivisionError" in str(answer.reason)
        loop.withdraw("i0")
        assert any("failed to unlearn it" in note for note in loop.notes)
        assert loop.decide(person="p").shown == ("i2", "i3", "i4")
        assert loop.projection.model.shared.learned.n == 2
        told = loop.why("d")
        assert (told.score, told.features, told.events) == (None, (), ())
        found = loop.report().prediction
        assert (found.score, found.unsaid) == (None, "the learner does not say what it expects")
        assert loop.verify() == []
    with pytest.raises(LookupError, match="name it when opening"):
        Loop.open(folder / "l")
    with Loop.open(folder / "l", learner=spec) as loop:
        assert loop.verify() == []


def test_predictions_that_are_no_numbers_are_none(folder: Path) -> None:
    """The log can say numbers alone: what it could not read again is not written."""
    said = OWN + "    def ratings(self, state, x):\n        return np.full(x.items.size, np.nan)\n"
    (folder / "own.py").write_text(said)
    spec = f"{folder / 'own.py'}:First"
    with rating_loop(folder / "l", spec, control=0.0) as loop:
        loop.decide(person="p", id="d0")
        assert loop.feedback("d0", rating={"i0": 2}).learned
        d = loop.decide(person="p", id="d1")
        assert (d.shown, d.predicted) == (("i1", "i2", "i3"), None)
        assert loop.feedback("d1", rating={"i1": 2}).learned
        with pytest.raises(ValueError, match="predict: expected a loop that predicts something, got one of"):
            loop.predict(person="p")
    with Loop.open(folder / "l", learner=spec) as loop:
        assert loop.decide(person="p", id="d1").shown == d.shown
        assert (loop.why("d1").prediction["expected"], loop.verify()) == (None, [])  # type: ignore[index]


def test_nothing_is_learned_of_what_is_withdrawn_beside_an_undo(tmp_path: Path) -> None:
    """Where the model is folded anew, too, the answer says what was learned."""
    with rating_loop(tmp_path / "loop", n_items=4) as loop:
        loop.record(["i0", "i1"], ["i0", "i1"], id="d", person="p")
        loop.feedback("d", id="e", rating={"i1": 4})
        loop.withdraw("i0")
        first = loop.projection.log.find("feedback", "e")
        undo = PendingEvent(Event(0, "undo", "u", now(), None, first.seq, 0, "{}"))
        given = [
            loop.feedback_reader.read("d", id, None, {"rating": {item: 3}}) for id, item in (("f", "i0"), ("g", "i1"))
        ]
        answers = loop.projection.submit([undo, *[draft for draft in given if isinstance(draft, PendingEvent)]])
        assert [answer.learned for answer in answers] == [True, False, True]


def test_predictions_that_fall_need_no_reason(folder: Path) -> None:
    with rating_loop(folder / "films") as loop:
        words = loop.projection.interaction.words
    for arm, falls in itertools.product(("learned", "control"), ([4.0, 3.0], [3.0, 3.0], [3.0], [], [None, 3.0])):
        assert unordered(words, arm, falls) == ""
    told = "Predictions do not fall from top to bottom: "
    assert unordered(words, "learned", [3.0, 4.0]).startswith(f"{told}the learner ranks by how good an item may be")
    assert unordered(words, "control", [3.0, 4.0]) == f"{told}it is a control, which ignores what was learned."
