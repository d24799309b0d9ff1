"""A grading loop from outside: what is predicted and shown, what grades teach, what is refused, what is measured."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings, infer
from heedful.io import import_lines
from heedful.loop.cluster_robust import paired_difference
from heedful.loop.simulation import Simulation
from heedful.results.answers import plain
from loops import bits, diverged, lines_of, rows, small_loop, values

K = 5
DIRECTED = ["prank:n_ranks=5", "ordinal-logistic:n_ranks=5"]


def graded(loop: Loop, shown: Any, strict: float = 0.0) -> dict[str, int]:
    """The grades of somebody who likes f0 and not f1."""
    found = {}
    for name in shown:
        x = loop.projection.catalogue.features([loop.projection.catalogue.current[name]])[0]
        found[name] = int(np.clip(round(3.0 + x[0] - x[1] - strict), 1, K))
    return found


def taught(loop: Loop, n: int, seed: int = 0) -> None:
    """n decisions for five people, each asking for more than the one before her, and what they grade."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        names = [f"i{j}" for j in rng.permutation(12)[:6]]
        d = loop.decide(names, person=f"p{t % 5}", id=f"d{t}", show=3)
        answer = loop.feedback(d.id, id=f"e{t}", grade=graded(loop, d.shown, 0.5 * (t % 5)))
        assert (answer.status, answer.learned) == ("applied", True)


# ---------------------------------------------------------------------------- deciding


def test_one_candidate_and_one_shown(folder: Path) -> None:
    """One thing to grade is a list of one; k = 1 shows a single item, the highest."""
    with small_loop(folder / "l", "prank:n_ranks=3", control=0.0) as loop:
        assert loop.decide(["i4"]).predicted == (3,)
        loop.feedback(loop.decide(["i4"], id="d").id, grade={"i4": 1})
        assert loop.decide(["i4"]).predicted == (1,)
    with small_loop(folder / "one", "prank:n_ranks=3", control=0.0, k=1) as loop:
        d = loop.decide(["i4", "i5"])
        assert (d.shown, d.predicted) == (("i4",), (3,))
        with pytest.raises(ValueError, match="show: expected 1"):
            loop.decide(["i4", "i5"], show=2)


def test_of_what_was_not_kept_the_grades_are_those_of_what_was_shown(folder: Path) -> None:
    with small_loop(folder / "l", "prank:n_ranks=5", control=0.0, keep_unshown=False) as loop:
        taught(loop, 20)
        d = loop.decide(rows(12, 4), id="d", show=3)
        assert d.predicted == tuple(list(values(loop.predict(rows(12, 4))).values())[:3])
        assert loop.decide(rows(12, 4), id="d", show=3) == d


# ---------------------------------------------------------------------------- grades, and what is none


def test_whole_numbers_however_they_are_written(folder: Path) -> None:
    with small_loop(folder / "l", "prank:n_ranks=5") as loop:
        loop.decide(["i0", "i1"], id="d")
        assert loop.feedback("d", id="e", grade={"i0": 4}).status == "applied"
        assert loop.feedback("d", id="e", grade={"i0": 4.0}).status == "duplicate"
        assert loop.feedback("d", id="e", grade={"i0": 5}).status == "rejected"


# ---------------------------------------------------------------------------- taking back, starting again


def test_lines_hold_whole_numbers(folder: Path) -> None:
    with small_loop(folder / "l", "ordinal-logistic:n_ranks=5", shrink=2.0) as loop:
        taught(loop, 10)
        lines = [line.record for line in lines_of(loop)]
    assert next(line["predicted"] for line in lines if line["kind"] == "decision") == [3, 3, 3]
    assert {type(grade) for line in lines for grade in line.get("grade", {}).values()} == {int}


# ---------------------------------------------------------------------------- looking back


@pytest.mark.parametrize("spec", [*DIRECTED, "widrow-hoff:n_ranks=5,eta=0.05"])
@pytest.mark.parametrize("shrink", [0.0, 2.0])
def test_a_grade_is_explained_by_its_score(folder: Path, spec: str, shrink: float) -> None:
    """The parts sum to the score, so does what moved it; and it lies between the thresholds of the grade told."""
    if shrink and not spec.startswith("ordinal-logistic"):
        shrink = 0.0
    with small_loop(folder / "l", spec, shrink=shrink, control=0.2) as loop:
        taught(loop, 40)
        for t in range(0, 40, 6):
            known = loop.projection.find_decision(f"d{t}")
            told = loop.why(f"d{t}", top=40, budget=0.0)
            assert (told.item, told.place) == (known.names[known.record.shown[0]], 1)
            grade, low, high = (told.prediction[name] for name in ("grade", "score_from", "score_below"))
            assert grade == known.record.predicted[0]
            assert sum(part.counts for part in told.features) == pytest.approx(told.score, abs=1e-9)
            assert sum(part.lead for part in told.features) == pytest.approx(told.lead, abs=1e-9)
            assert sum(moved.by for moved in told.events) == pytest.approx(told.score, abs=1e-9)
            assert low is None or low <= told.score
            assert high is None or told.score < high
            assert (low is None) == (grade == 1)
            assert (high is None) == (grade == K)
        named = {part.name for part in told.features}
        assert ("how much they ask for" in named) == (shrink > 0.0)
        assert ("always 1" in named) == spec.startswith("widrow")


def test_a_learner_without_a_direction_has_no_thresholds(folder: Path) -> None:
    with small_loop(folder / "l", "multiclass:n_ranks=5") as loop:
        taught(loop, 10)
        told = loop.why("d9")
        assert loop.weights == {}
        assert told.prediction == {"grade": told.score, "score_from": None, "score_below": None}
        assert {part.lead for part in told.features} == {None}  # by removal they do not sum to it


def test_an_evaluation_says_how_far_another_learner_would_have_been_off(folder: Path) -> None:
    """Each grade is predicted before it is learned; the loop's own learner is off as its report says, where what was
    told was all there was to predict."""
    with small_loop(folder / "l", "ordinal-logistic:n_ranks=5", control=0.0, shrink=2.0) as loop:
        taught(loop, 60)
        before = bits(loop)
        [own] = loop.evaluate("ordinal-logistic:n_ranks=5").learners
        measured = loop.report().prediction
        assert (own.values[0].comparisons, own.values[0].people, own.lessons) == (180, 5, 60)
        assert own.values[0].value == pytest.approx(measured.score)  # as all answered as often
        assert own.weights == loop.weights
        assert measured.difference.people == 5
        constant = loop.evaluate("constant-rank").learners[-1]
        assert (constant.values[0].comparisons, constant.weights) == (180, {})
        assert constant.values[0].value == pytest.approx(measured.baseline)
        for spec in ("prank", "multiclass", "widrow-hoff:eta=0.1"):
            assert loop.evaluate(spec).learners[-1].values[0].value is not None
        assert bits(loop) == before


# ---------------------------------------------------------------------------- the report


def test_the_report_by_hand(folder: Path) -> None:
    """PRank on one feature; constant: 2 (the middle of three), then the median of all grades before."""
    items = [{"id": "a", "f": 1.0}, {"id": "b", "f": -1.0}]
    encoding = infer(items, identifier="id", kinds={"f": "number"})
    calm = Settings(control=0.0)
    with Loop.create(folder / "l", encoding=encoding, items=items, learner="prank:n_ranks=3", settings=calm) as loop:
        assert plain(loop.report())["prediction"] == {
            "measure": "mean |predicted - given|",
            "lower_is_better": True,
            "compared_with": "the median grade so far",
            "answers": 0,
            "score": None,
            "baseline": None,
            "difference": None,
            "unsaid": "no grade was given to what was predicted so far",
            "series": [],
            "details": {"exact": None},
        }
        told = []
        for t, grades in enumerate([{"a": 1, "b": 3}, {"a": 1, "b": 3}, {"a": 1}]):
            d = loop.decide(["a", "b"], id=f"d{t}", person=f"p{t}")
            told.append(dict(zip(d.shown, d.predicted or ())))
            loop.feedback(d.id, grade=grades)
        loop.decide(["a"], id="d3")
        loop.feedback("d3", none=True)
        # w = 0: all are 3. Learning a: 1 (w = -2, b = 1, 1), then b: 3 (2 >= 1: right). After that all is right.
        assert told == [{"a": 3, "b": 3}, {"a": 1, "b": 3}, {"a": 1, "b": 3}]
        found = loop.report()
        # Constant: 2, 2 | the median of 1, 3 is 1 | of 1, 3, 1, 3 is 1: off by 1, 1, 0, 2, 0.
        assert (found.prediction.answers, found.prediction.score) == (5, 2 / 5)
        assert found.prediction.details == {"exact": 4 / 5}
        assert found.prediction.baseline == 4 / 5
        assert found.prediction.difference.by == pytest.approx(-2 / 5)
        assert found.prediction.difference.people == 3
        [stretch] = found.prediction.series
        assert (stretch.answers, stretch.score, stretch.baseline) == (5, 2 / 5, 4 / 5)
        assert (found.feedback.given, found.feedback.empty, found.feedback.contradictory) == (4, 1, 0)


def test_what_was_undone_or_not_predicted_is_not_measured(folder: Path) -> None:
    with small_loop(folder / "l", "prank:n_ranks=5", control=0.0) as loop:
        loop.decide(["i0", "i1", "i2"], id="d0", show=1)
        loop.feedback("d0", id="e0", grade={"i0": 2, "i2": 4})  # one of them was not shown
        loop.record(["i0", "i1"], ["i1", "i0"], id="d1")
        loop.feedback("d1", id="e1", grade={"i0": 2})  # nobody predicted it
        found = loop.report().prediction
        assert found.answers == 1
        loop.undo("e0")
        found = loop.report().prediction
        assert found.answers == 0


def test_contradictory_is_two_or_more_away_by_now(folder: Path) -> None:
    with small_loop(folder / "l", "prank:n_ranks=5", control=0.0) as loop:
        for t, grade in enumerate([1, 4, 5, 5, 5]):  # 4 is one away
            loop.decide(["i0"], id=f"d{t}")
            loop.feedback(f"d{t}", grade={"i0": grade})
        assert values(loop.predict(["i0"])) == {"i0": 5}
        assert loop.report().feedback.contradictory == 1


def test_a_simulated_person_beside_a_grading_loop(folder: Path) -> None:
    with small_loop(folder / "l", "ordinal-logistic:n_ranks=5", control=0.0) as loop:
        Simulation(weights={"f0": 1.0, "f1": -1.0}).write(loop.path)
        taught(loop, 30)
        found = loop.report().simulation
        assert found.regret is not None
        assert found.unbound == "there is no theorem for OrdinalLogistic"


def test_the_interval_of_paired_differences() -> None:
    """Where everybody has one it is that of the t-test; a person's resemble each other, which widens it."""
    from scipy.stats import t

    rng = np.random.default_rng(0)
    d = rng.integers(-2, 2, 40).astype(float)
    found = paired_difference(d, np.arange(40), 4.0)
    half = t.ppf(0.975, 39) * d.std(ddof=1) / np.sqrt(40)
    assert (found.by, found.high - found.by, found.by - found.low) == pytest.approx((d.mean(), half, half))
    assert found.people == 40
    alike = paired_difference(np.repeat(d[:10], 4), np.repeat(np.arange(10), 4), 4.0)
    apart = paired_difference(np.repeat(d[:10], 4), np.arange(40), 4.0)
    assert alike.high - alike.low > 1.5 * (apart.high - apart.low)
    alone = paired_difference(d[:10], np.arange(10), 4.0)  # four of each are as one of each
    assert (alike.low, alike.high) == pytest.approx((alone.low, alone.high))
    assert paired_difference(d, np.zeros(40, np.int64), 4.0) is None
    assert paired_difference(np.zeros(40), np.arange(40), 4.0) is None


# ---------------------------------------------------------------------------- manifest


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_are_a_caveat(folder: Path) -> None:
    """From then on scores are no numbers; what came before is explained as ever. Folding is as it was."""
    with diverged(folder / "l") as loop:
        [told] = loop.caveats
        assert told == loop.overflown
        assert told.startswith("the weights have overflown because eta=1e+20 is too large for these features")
        assert "make the loop again with a smaller eta and import an export of this one into it" in told
        late, early = loop.why("d29", budget=0.0), loop.why("d1", budget=0.0)
        assert (np.isfinite(late.score), np.isfinite(early.score)) == (False, True)
        assert not any(np.isnan(late.events[0].by) and np.isnan(each.by) for each in late.events[1:])
        json.dumps(plain(late), allow_nan=False)
        said = plain(loop.evaluate())["learners"][0]
        assert None in said["weights"].values()
        assert said["lessons"] == 30
        assert loop.verify() == []
    with small_loop(folder / "calm", "widrow-hoff:n_ranks=5,eta=0.05") as calm:
        with Loop.open(folder / "l") as loop:
            lines = lines_of(loop)
        assert {each.status for each in import_lines(calm, lines)} <= {"applied", "duplicate"}
        assert len(calm.lessons()) == 30
        assert calm.caveats == []
        assert all(map(np.isfinite, calm.weights.values()))
