"""Lists that are drawn at random around what was learned: how often, with which probability, and what they tell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings
from heedful.testing import check_kind
from kinds import KINDS
from loops import as_often_as_said, bits, bits_from_scratch, choice_loop, lines_of, rating_loop, small_loop
from naive import plackett_luce

SPECS = ("posterior", "perceptron", "ordinal-logistic:n_ranks=5", "multiclass:n_ranks=5")


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
def test_every_list_is_shown_as_often_as_its_probability_says(tmp_path: Path, spec: str) -> None:
    """All three arms together, of four candidates; the probabilities of all lists sum to 1."""
    with small_loop(tmp_path / "l", spec, control=0.2, sampled=0.5, temperature=0.7, k=4) as loop:
        n, names, prior = 1500, [f"i{j}" for j in range(4)], [1.0, 4.0, 2.0, 3.0]
        made = [loop.decide(names, id=f"d{t}", prior=prior, show=3) for t in range(n)]
        arms = Counter(d.arm for d in made)
        assert abs(arms["sampled"] / n - 0.5) < 0.04
        assert abs(arms["control"] / n - 0.2) < 0.04
        assert len(as_often_as_said(made, 0.97)) >= 20  # of 24, some of which are rare


def test_the_probability_is_that_of_all_arms_by_hand(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", "perceptron", control=0.1, sampled=0.3, temperature=2.0) as loop:
        names, prior = [f"i{j}" for j in range(5)], [3.0, 1.0, 2.0, 5.0, 4.0]
        ranking = ["i3", "i4", "i0", "i2", "i1"]
        for t in range(60):
            d = loop.decide(names, id=f"d{t}", prior=prior, show=2)
            around = plackett_luce(tuple(ranking.index(name) for name in d.shown), 5, 2.0)
            best = float(d.shown == ("i3", "i4"))  # the caller's order and the learner's: nothing was learned yet
            assert d.probability == pytest.approx(0.1 * best + 0.3 * around + 0.6 * best)
            record = loop.projection.find_decision(d.id)
            if d.arm == "sampled":
                assert [ranking[r] for r in record.record.proposal["ranks"]] == list(d.shown)


def test_without_a_share_nothing_is_drawn_otherwise(tmp_path: Path) -> None:
    """The bits of all decisions are those of a loop that does not know of it."""
    with (
        small_loop(tmp_path / "a", "posterior") as one,
        small_loop(tmp_path / "b", "posterior", temperature=5.0) as two,
    ):
        for t in range(40):
            pair = [loop.decide(id=f"d{t}", person=f"p{t % 3}") for loop in (one, two)]
            assert pair[0] == pair[1]
            for loop in (one, two):
                loop.feedback(f"d{t}", id=f"e{t}", clicks=[pair[0].shown[t % 4]])
        assert bits(one) == bits(two)


@pytest.mark.parametrize("spec", SPECS)
def test_the_fold_and_exports_take_such_lists(folder: Path, spec: str) -> None:
    kind = KINDS[2 * ("n_ranks" in spec)]
    shrink = 0.0 if "multiclass" in spec else 2.0  # it has no one direction that a person could have an offset along
    case = kind.case(spec, sampled=0.5, shrink=shrink)
    [check] = [each for each in check_kind(case) if each.__name__.startswith("exported")]
    check(folder)
    with Loop.open(folder / "a") as loop:
        assert bits(loop) == bits_from_scratch(loop)
        arms = {line.record["arm"] for line in lines_of(loop, "decision")}
        assert "sampled" in arms


@pytest.mark.slow
def test_a_learner_without_swaps_is_evaluated_by_such_lists(tmp_path: Path) -> None:
    """Clicks by place alone say nothing of any learner; those by taste find the one that has it."""
    rng = np.random.default_rng(0)
    prior = [float(j < 4) + 0.01 * j for j in range(12)]
    for taste in (False, True):
        with small_loop(tmp_path / f"l{taste}", "perceptron", control=0.0, sampled=1.0, temperature=3.0, k=6) as loop:
            start = loop.version
            for t in range(500):
                names = rng.permutation(12)
                d = loop.decide(
                    [f"i{j}" for j in names], id=f"d{t}", person=f"p{t % 250}", prior=[prior[j] for j in names]
                )
                liked = [
                    (0.8 if not taste or int(name[1:]) < 4 else 0.1) / (1 + i) ** 0.5 for i, name in enumerate(d.shown)
                ]
                loop.feedback(d.id, id=f"e{t}", clicks=[name for name, p in zip(d.shown, liked) if rng.random() < p])
            found, _, lists = loop.evaluate(f"posterior:swap=0@{start}").learners[1].values[:3]
            assert lists.refused.startswith("100 % of what it would show is not in the log")
            assert lists.remedy.startswith("Whole lists are seldom the same")  # more draws would not help
            assert found.comparisons > 500
            assert (found.low > 0.6) if taste else (found.low < 0.5 < found.high)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sampled": -0.1}, "sampled: expected"),
        ({"sampled": 0.8, "control": 0.3}, "sampled: expected"),
        ({"temperature": 0.0}, "temperature: expected"),
        ({"temperature": float("nan")}, "temperature: expected"),
        ({"sampled": "half"}, "sampled: expected"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Settings(**settings)


def test_kinds_that_show_no_such_lists_say_so(tmp_path: Path) -> None:
    for make in (rating_loop, choice_loop):
        with pytest.raises(ValueError, match=r"sampled: expected 0 in a loop of .*, got 0.1"):
            make(tmp_path / make.__name__, sampled=0.1)
    assert {kind.name for kind in KINDS} >= {"coactive", "ordinal", "rating", "comparison"}
