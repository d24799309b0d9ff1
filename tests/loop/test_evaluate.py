"""What a log says about learners: values by hand, orders that are turned around win nothing, refusals in words."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful.loop.evaluate as evaluating
from heedful import Loop
from heedful.loop import growing
from heedful.loop.interactions import telling
from heedful.loop.interactions.telling import value_texts
from heedful.loop.packing import LoggedDecision
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, Value
from heedful.server.pages.evaluation_view import verdict
from kinds import Kind, each_kind, teach
from loops import small_loop

NAMES = [f"i{j}" for j in range(12)]


def value(loop: Loop, learner: str = "", measure: str = "swapped pairs") -> Value:
    """Of a learner, the loop's own without one."""
    return named(loop.evaluate(*([learner] if learner else [])).learners[-1], measure)


def named(found: LearnerEvaluation, measure: str) -> Value:
    """The value of a learner by the measure of this name."""
    [value] = [each for each in found.values if each.measure == measure]
    return value


def search(loop: Loop, t: int, click: Callable[[int, int], bool], people: int = 20) -> list[str]:
    """One decision of the loop, answered by clicks on what `click(place, item)` says; what was clicked."""
    prior = [float((7 * j + 3 * t) % 12) for j in range(12)]
    shown = loop.decide(NAMES, id=f"d{t}", person=f"p{t % people}", prior=prior).shown
    clicked = [name for place, name in enumerate(shown) if click(place, int(name[1:]))]
    loop.feedback(f"d{t}", id=f"e{t}", clicks=clicked)
    return clicked


def live(loop: Loop, n: int, click: Callable[[int, int], bool], people: int) -> list[tuple[LoggedDecision, list[str]]]:
    """`n` decisions of the loop as those of `search`, which are answered after the last; each with what was clicked."""
    answers = []
    for t in range(n):
        prior = [float((7 * j + 3 * t) % 12) for j in range(12)]
        shown = loop.decide(NAMES, id=f"d{t}", person=f"p{t % people}", prior=prior, show=loop.settings.k).shown
        clicks = [name for place, name in enumerate(shown) if click(place, int(name[1:]))]
        answers.append({"decision": f"d{t}", "clicks": clicks})
    loop.feedback_many(answers)
    known = [loop.projection.find_decision(f"d{t}") for t in range(n)]
    return [(each, answer["clicks"]) for each, answer in zip(known, answers) if each is not None]


# ---------------------------------------------------------------------------- swapped pairs


def test_a_pair_is_learned_with_the_probability_with_which_it_was_swapped(tmp_path: Path) -> None:
    """As each decision says it, whatever the learner that is evaluated would swap."""
    with small_loop(tmp_path / "l", "posterior", k=4, control=0.0, exploration=0.5) as loop:
        for t in range(20):
            search(loop, t, lambda place, item: item % 3 == place % 3)
        assert loop.evaluate("posterior:swap=0.1").learners[1].weights == loop.evaluate().learners[0].weights
        assert loop.evaluate().learners[0].weights == loop.weights


def test_swapped_pairs_by_hand(tmp_path: Path) -> None:
    """Neighbours that might have changed places, one clicked and the other not, weigh .5 / P each; every person counts
    alike. The ranker is frozen before the first answer: it has the caller's order."""
    rng = np.random.default_rng(0)
    with small_loop(tmp_path / "l", "posterior:swap=0.2", k=4, control=0.2) as loop:
        start, right, whole, n = loop.version, *np.zeros((3, 7))
        for t in range(150):
            clicked = search(loop, t, lambda place, item: rng.random() < 0.6 / (1 + place), 7)
            known = loop.projection.find_decision(f"d{t}")
            record = known.record
            first = record.proposal.get("start", -1) if record.arm == "learned" else -1
            if first < 0:
                continue
            for pair, swapped in enumerate(record.proposal["swapped"]):
                upper, lower = (known.names[j] for j in record.shown[first + 2 * pair : first + 2 * pair + 2])
                if (upper in clicked) != (lower in clicked):
                    winner, loser = (upper, lower) if upper in clicked else (lower, upper)
                    weight = 0.5 / (0.2 if swapped else 0.8)
                    asked = [(7 * int(name[1:]) + 3 * t) % 12 for name in (winner, loser)]
                    right[t % 7] += weight * (asked[0] > asked[1])
                    whole[t % 7] += weight
                    n[t % 7] += 1
        found = value(loop, f"perceptron@{start}")
        assert (found.comparisons, found.people) == (n.sum(), 7)
        assert found.value == pytest.approx((right / n).sum() / (whole / n).sum())
        assert found.low <= found.value <= found.high


def test_a_log_without_swaps_cannot_tell_and_says_what_would(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.0) as loop:
        for t in range(40):
            search(loop, t, lambda place, item: place == 2)
        mine, other = loop.evaluate("posterior:swap=0").learners
        assert [each.values[0].value for each in (mine, other)] == [None, None]
        assert "shown in either order at random" in mine.values[0].refused
        assert "heedful init --learner posterior" in mine.values[0].remedy
        # The lists of another learner are not in a log that shows one list of each kind, with certainty.
        assert named(mine, "list value").mean_weight == pytest.approx(1.0)
        lists = named(other, "list value")
        assert lists.value is None
        assert "is not in the log" in lists.refused
        assert "heedful init --sampled 0.01" in lists.remedy


# ---------------------------------------------------------------------------- lists


def test_a_learner_that_draws_its_lists_is_referred_to_an_experiment(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "posterior", k=4) as loop:
        for t in range(40):
            search(loop, t, lambda place, item: place == 1)
        found = value(loop, "dueling-bandit", "list value")
        assert found.value is None
        assert found.refused == "it draws what it shows and does not say how likely"
        assert "heedful experiment NAME --start LEARNER --share 0.2" in found.remedy
        loop.start_experiment("dueling-bandit", share=0.2)  # as the remedy says
        assert loop.experiment().learner == "dueling-bandit"


def test_a_list_with_a_probability_next_to_0_does_not_hinder_the_others(tmp_path: Path) -> None:
    """It is in the caller's order, which the frozen learner shows, too, and no learner that was taught."""
    rng = np.random.default_rng(0)
    with small_loop(tmp_path / "l", "perceptron", n_items=2, k=2) as loop:
        start = loop.version
        for t in range(200):
            rare = t == 150
            shown = ["i0", "i1"] if rare or rng.random() < 0.5 else ["i1", "i0"]
            loop.record(["i0", "i1"], shown, id=f"d{t}", prior=[2.0, 1.0], probability=1e-320 if rare else 0.5)
            loop.feedback(f"d{t}", id=f"e{t}", better=["i1", "i0"])
        own, frozen = (named(each, "list value") for each in loop.evaluate(f"perceptron@{start}").learners)
    assert frozen.refused.startswith("a logged probability is next to 0")
    assert own.refused == ""
    assert own.low is not None


# ---------------------------------------------------------------------------- all kinds


@each_kind
def test_an_evaluation_is_of_the_answers_that_count(kind: Kind, tmp_path: Path) -> None:
    """What was undone or forgotten is not in it, and nothing is changed by it."""
    with kind.make(tmp_path / "loop") as loop:
        teach(kind, loop, range(14))
        before = loop.version
        found = loop.evaluate(*([] if kind.own else [kind.other]))
        own = found.learners[0]
        assert (own.learner, own.lessons, own.weights) == (loop.manifest.learner, 14, loop.weights)
        assert {len(each.values) for each in found.learners} == {len(found.measures)}
        for one in [one for each in found.learners for one in each.values]:
            assert (one.value is None) == bool(one.refused)
            if one.value is not None and one.low is not None and one.high is not None:
                assert one.low <= one.value <= one.high
        assert loop.version == before
        loop.undo("e3")
        loop.forget("p1")
        less = loop.evaluate().learners[0]
        assert less.weights == loop.weights
        assert less.lessons == 14 - 1 - 5
        assert less.values[0].comparisons <= own.values[0].comparisons
        assert less.values[0].people <= 2


@each_kind
def test_a_frozen_learner_is_the_model_of_its_version(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "loop") as loop:
        teach(kind, loop, range(6))
        version, weights = loop.version, loop.weights
        teach(kind, loop, range(6, 12))
        found = loop.evaluate(f"{kind.own or loop.manifest.learner}@{version}")
        assert found.learners[1].weights == weights
        assert found.after == version
        assert found.learners[1].lessons == 6
        assert all(one.comparisons <= 6 * 4 for each in found.learners for one in each.values)


@each_kind
def test_a_restarted_learner_is_the_model_of_a_log_that_begins_there(kind: Kind, tmp_path: Path) -> None:
    """Its answers, and those that it is compared on, are those after the version, or from the date on."""
    with kind.make(tmp_path / "l") as loop:
        teach(kind, loop, range(6))
        version = loop.version
        time.sleep(1.0 - time.time() % 1.0)  # the next answer comes in another second
        teach(kind, loop, range(6, 7))
        [last] = loop.lessons(1)
        teach(kind, loop, range(7, 12))
        spec = kind.own or loop.manifest.learner
        at = datetime.fromtimestamp(last.time // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = loop.evaluate(f"{spec}@{version}..", f"{spec}@{at}..")
        by_version, by_date = found.learners[1:]
        assert found.after == version
        assert (by_version.lessons, by_date.lessons) == (6, 6)
        assert by_version.weights == by_date.weights
        model = loop.projection.interaction.candidate(spec)
        for event, decision, feedback in loop.projection.steps([model]):
            if event.seq > version:
                loop.projection.teach(model, event, decision, feedback)
        ended = np.asarray(model.effective(model.view()), float).tolist()
        assert list(by_version.weights.values()) == ended
        for one, other in zip(by_version.values, by_date.values):
            assert one._replace(measure="") == other._replace(measure="")
        assert all(one.comparisons <= 6 * 4 for each in found.learners for one in each.values)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("nobody", "learner: expected"),
        ("perceptron@soon", "learner: expected NAME@VERSION, with the number of an event, NAME@VERSION.. or"),
        ("perceptron@soon..", r"NAME@DATE.., got perceptron@soon\.\."),
        ("", "learner: expected its name, such as posterior:swap=0"),
        (["perceptron"], r"learner: expected its name, such as posterior:swap=0, got \['perceptron'\]"),
        ("perceptron@14", "learner: expected a version from 0 to 13, got 'perceptron@14'"),
        ("perceptron@14..", "learner: expected a version from 0 to 13, got 'perceptron@14..'"),
        (f"perceptron@{'9' * 5000}", "learner: expected a version from 0 to 13, got 'perceptron@999"),
        ("perceptron@٣", "learner: expected NAME@VERSION"),
    ],
)
def test_a_wrong_learner_is_refused_by_name(tmp_path: Path, spec: Any, told: str) -> None:
    with small_loop(tmp_path / "l") as loop, pytest.raises(ValueError, match=told):
        loop.evaluate(spec)


def test_a_wrong_alpha_is_refused_by_name(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l") as loop, pytest.raises(ValueError, match=r"alpha: expected"):
        loop.evaluate(alpha=1.5)


QUICK: dict[str, Any] = {"control": 0.0, "durable": "feedback", "shrink": 0.0}


def clicked_lists(path: Path, one_by_one: bool = False) -> Evaluation:
    """Of every third list the first item is clicked, of the others the first three; in one answer or one by one."""
    answers = []
    with small_loop(path, "posterior:swap=0.5", k=4, **QUICK) as loop:
        for t in range(75):
            shown = loop.decide(person=f"p{t}", id=f"d{t}", show=4).shown
            clicks = list(shown[: 1 if t % 3 == 0 else 3])
            for some in [[each] for each in clicks] if one_by_one else [clicks]:
                answers.append({"decision": f"d{t}", "clicks": some})
        loop.feedback_many(answers)
        return loop.evaluate()


def test_examination_counts_all_clicks(tmp_path: Path) -> None:
    """Two of three people click the second place for each who clicks the first, which everybody does."""
    found = clicked_lists(tmp_path / "l").position_bias
    first = found[0]
    assert (first.place, first.low < first.ratio < first.high) == (1, True)
    # in half of the lists, chance allowing, the first two might have changed places
    assert first.ratio == pytest.approx(2.0 / 3.0, abs=0.15)


def test_clicks_that_come_one_by_one_count_as_those_that_come_together(tmp_path: Path) -> None:
    together, apart = clicked_lists(tmp_path / "a"), clicked_lists(tmp_path / "b", one_by_one=True)
    assert together.position_bias == apart.position_bias
    assert together.position_bias is not None


def test_places_that_are_clicked_one_by_one_are_all_clicked(tmp_path: Path) -> None:
    """Item-position and cascade values are of all that would have been chosen, not of what was chosen first; and it is
    said what the values rest on."""
    values = []
    for one_by_one in (False, True):
        answers = []
        with small_loop(
            tmp_path / f"{one_by_one}", "perceptron", n_items=3, k=3, sampled=1.0, temperature=0.3, **QUICK
        ) as loop:
            start = loop.version
            for t in range(75):
                shown = loop.decide(NAMES[:3], id=f"d{t}", person=f"p{t}", show=3).shown
                clicks = list(shown[: 1 + t % 3])
                for some in [[each] for each in clicks] if one_by_one else [clicks]:
                    answers.append({"decision": f"d{t}", "clicks": some})
            loop.feedback_many(answers)
            found = loop.evaluate(f"perceptron@{start}")
        frozen = [named(found.learners[1], name) for name in ("item-position value", "cascade value")]
        values.append([(each.value, each.low, each.high, each.effective) for each in frozen])
        bases = [str(each[0]) for each in telling.evaluation(found) if str(each[0]).startswith("It rests on")]
        assert [base.split(",")[0] for base in bases].count("It rests on 75 lists from 75 people") >= 2
    assert values[0] == values[1]
    assert values[0][0][0] > 0.5  # two of three places are clicked; first clicks alone would be one of three


def test_examination_weighted_clicks_by_hand(tmp_path: Path) -> None:
    """Each click weighs 1 / (how much its place is looked at), and counts 1 / log2(1 + rank) of the rank that a learner
    gives to the item among those shown as far down as that is known; here to the second place."""
    rng, people = np.random.default_rng(5), 9
    chances = (0.9, 0.6, 0.05)
    with small_loop(tmp_path / "l", "posterior:swap=0.5", k=3, **QUICK | {"control": 0.1}) as loop:
        start, upper, lower, n = loop.version, np.zeros(people), np.zeros(people), np.zeros(people)
        clicks = np.zeros((people, 2))
        gains = np.zeros((people, 2))
        for t, (known, clicked) in enumerate(live(loop, 260, lambda place, _: rng.random() < chances[place], people)):
            record, who = known.record, t % people
            n[who] += 1
            names = [known.names[j] for j in record.shown]
            asked = {name: (7 * int(name[1:]) + 3 * t) % 12 for name in names}  # the frozen learner's order
            swapped = record.arm == "learned" and record.proposal["start"] == 0
            for place in (0, 1):
                if names[place] in clicked:
                    upper[who] += swapped and place == 0
                    lower[who] += swapped and place == 1
                    clicks[who, place] += 1
                    ahead = asked[names[place]] > asked[names[1 - place]]
                    gains[who, place] += 1.0 if ahead else 1.0 / np.log2(3.0)
        found = loop.evaluate(f"perceptron@{start}")
    ratio = (lower / n).sum() / (upper / n).sum()
    assert found.position_bias[0].ratio == pytest.approx(ratio)
    looked = np.array([1.0, ratio])
    j = [each.name for each in found.measures].index("examination-weighted clicks")
    value = found.learners[1].values[j]
    total = (clicks / n[:, None]).sum(axis=0) / looked
    assert value.value == pytest.approx(((gains / n[:, None]).sum(axis=0) / looked).sum() / total.sum())
    assert (value.comparisons, value.people) == (clicks.sum(), people)
    assert value.low < value.value < value.high
    assert "second measure" in found.measures[j].about
    assert j == 1  # next to the main one


def test_examination_that_is_not_known_is_refused_with_what_it_takes(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", k=4, **QUICK) as loop:
        live(loop, 40, lambda place, item: place == 1, 10)
        value = loop.evaluate().learners[0].values[1]
    assert (value.measure, value.value) == ("examination-weighted clicks", None)
    assert "it takes 100" in value.refused
    assert "heedful init --learner posterior" in value.remedy


def test_how_many_decisions_it_would_take_to_tell(tmp_path: Path) -> None:
    """An interval is as wide as 1 over the root of the number of decisions: it leaves 0 out when it is as wide, on the
    side of 0, as the difference is large."""
    rng = np.random.default_rng(6)
    with small_loop(tmp_path / "l", "posterior:swap=0.5", k=4, **QUICK) as loop:
        start = loop.version
        live(loop, 150, lambda place, item: rng.random() < (0.7 if item < 4 else 0.3), 150)
        own, frozen = loop.evaluate(f"perceptron@{start}").learners
    assert {each.decisions_needed for each in own.values} == {None}
    found = [each for each in frozen.values if each.difference]
    assert found
    for each in found:
        gap = each.difference - each.difference_low if each.difference > 0 else each.difference_high - each.difference
        assert each.decisions_needed == int(np.ceil(150 * (gap / each.difference) ** 2))
        assert (each.decisions_needed > 150) == (each.verdict == "cannot be told")


def two_measures(first: Value, second: Value) -> Evaluation:
    """An evaluation of two learners by a first measure, which does not tell them apart, and by a second."""
    measures = tuple(Measure(each.measure, "", "", "") for each in (first, second))
    own = [each._replace(difference=None, verdict="", decisions_needed=None) for each in (first, second)]
    learners = [LearnerEvaluation(name, 0, {}, tuple(found)) for name, found in (("a", own), ("b", (first, second)))]
    return Evaluation(tuple(learners), measures, 0.05, 0, decisions=1000)


def test_what_the_first_measure_cannot_tell_the_second_may_and_both_say_how_many_decisions_it_takes() -> None:
    value = Value("pairs", 0.5, 0.4, 0.6, 900, 90, 900.0, 0.01, -0.05, 0.07, "cannot be told", "", "")
    second = value._replace(measure="clicks", difference=0.1, difference_low=0.05, difference_high=0.15)
    needs = value._replace(decisions_needed=36_000), second._replace(verdict="better", decisions_needed=250)
    found = two_measures(*needs)
    kind, sentence = verdict(found, found.learners[1])
    assert kind == "open"
    assert sentence.startswith("It cannot be told yet whether b is better than a: the difference in pairs is")
    assert sentence.endswith("By clicks it is better.")
    told = [part.text for part in telling.evaluation(found) if isinstance(part, telling.Line)]
    for n in ("36,000", "250"):
        says = "To tell the difference, if it stays as it was measured, takes about this many decisions: "
        assert any(line.endswith(f"{says}{n} for b (answered so far: 1,000).") for line in told)
    assert [telling.needed(found, j) in line for j, line in enumerate([told[1], told[3]])] == [True, True]


@pytest.mark.slow
def test_what_is_collected_of_a_decision_takes_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all decisions of a log, for nobody in particular, who would be a person each; apart from reading it."""
    taken = []
    was = evaluating._Clicks.found

    def found(self: evaluating._Clicks, remedy: str) -> Any:
        kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, growing.__file__)])
        taken.append(sum(trace.size for trace in kept.traces))
        return was(self, remedy)

    monkeypatch.setattr(evaluating._Clicks, "found", found)
    monkeypatch.setattr(growing, "MORE", 64)
    rng = np.random.default_rng(0)
    with small_loop(tmp_path / "l", "posterior", k=4, control=0.0) as loop:
        for n in (400, 800):
            for t in range(n - 400, n):
                shown = loop.decide(NAMES, id=f"d{t}").shown
                loop.feedback(f"d{t}", id=f"e{t}", clicks=[name for name in shown if rng.random() < 0.3])
            tracemalloc.start()
            found_values = loop.evaluate("perceptron").learners[0].values
            tracemalloc.stop()
            assert min(each.comparisons for each in found_values) > 0.4 * n
    assert (taken[1] - taken[0]) / 400 < 270  # with objects for people, lists and pairs it would be 470


def test_what_rounding_leaves_of_a_difference_is_shown_as_none() -> None:
    value = Value("swapped pairs", 0.5, 0.0, 1.0, 2, 1, 2.0, 2.2e-16, -1.0, 1.0, "cannot be told", "", "")
    assert value_texts(value, share=True) == ("50 %", "0 % to 100 %", "+0 % (-100 % to +100 %)")
    assert value_texts(value, share=False)[2] == "+0.00 (-1.00 to +1.00)"
    small = value._replace(difference=-1e-9)
    assert value_texts(small, share=True)[2].startswith("-1e-07 %")


def test_small_values_keep_their_digits() -> None:
    cost = Value("cost", 0.0004, 0.0, 0.01234, 20, 5, 20.0, -0.00006, -0.012, 0.0001, "cannot be told", "", "")
    assert value_texts(cost, share=False) == ("0.000400", "0.00 to 0.0123", "-6.00e-05 (-0.0120 to +0.000100)")
    large = cost._replace(value=12.3456, low=1.0, high=1234.5)
    assert value_texts(large, share=False)[:2] == ("12.3", "1.00 to 1,234")


@pytest.mark.parametrize(
    ("measure", "share"),
    [
        (Measure("thumbs", "", "", ""), True),
        (Measure("squared error", "", "", "", more_is_better=False), False),
        (Measure("value", "", "", "", -1.0, 1.0), False),
    ],
)
def test_shares_are_percentages_and_errors_are_not(measure: Measure, share: bool) -> None:
    assert measure.is_share is share
