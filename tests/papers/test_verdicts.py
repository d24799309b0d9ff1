"""The three verdicts by their definition: how often each is given where a claim is true, is false, or is neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful.papers import claims, sweeps
from heedful.papers.choice_claims import even, near, one_as_good, wins
from heedful.papers.figure import FAILS, HOLDS, OPEN, Check
from heedful.papers.statistics import Part, all_hold, one_holds, paired_t_test
from papers.invented import ran

TRIED = 200
ERRORS = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / TRIED)
"""What a level of 5 % may come to in so many trials."""
FEW, MANY = 3, 20


def shares(judge: Callable[[np.random.Generator], str]) -> dict[str, float]:
    """How often each verdict is given over independent trials."""
    found = Counter(judge(np.random.default_rng([seed, 5])) for seed in range(TRIED))
    return {verdict: found[verdict] / TRIED for verdict in (HOLDS, FAILS, OPEN)}


def ending(values: Any) -> Any:
    """A line whose runs end with these values."""
    return ran(np.asarray(values)[:, None])


def judged(check: Check, mean: float, runs: int, spread: float = 1.0) -> dict[str, float]:
    """A check of a against b, which differ by `mean` with this scatter, and have scatter of their own in common."""

    def one(rng: np.random.Generator) -> str:
        common = 10.0 + rng.standard_normal(runs)
        lines = {"a": ending(common + mean + spread * rng.standard_normal(runs)), "b": ending(common)}
        return check({"p": lines}).conclusion

    return shares(one)


LOWER, ALIKE = claims.lower("p", "a", "b"), claims.alike("p", "a", "b", 0.1)  # of b's 10: within 1


@pytest.mark.parametrize("runs", [2, FEW, MANY])
def test_lower_errs_at_its_level_and_says_where_it_cannot_tell(runs: int) -> None:
    at_the_margin = judged(LOWER, 0.0, runs)
    assert at_the_margin[HOLDS] <= ERRORS / 2.0 + 0.02
    assert at_the_margin[FAILS] <= ERRORS / 2.0 + 0.02
    assert at_the_margin[OPEN] >= 1.0 - ERRORS
    assert judged(LOWER, -0.5, runs)[FAILS] <= ERRORS
    assert judged(LOWER, 0.5, runs)[HOLDS] <= ERRORS


def test_lower_finds_what_is_there() -> None:
    assert judged(LOWER, -2.0, MANY)[HOLDS] > 0.99
    assert judged(LOWER, 2.0, MANY)[FAILS] > 0.99


@pytest.mark.parametrize("runs", [2, FEW, MANY])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_alike_errs_at_its_level_on_either_side(side: float, runs: int) -> None:
    at_the_margin = judged(ALIKE, side, runs, 0.2)
    assert at_the_margin[HOLDS] <= ERRORS
    assert at_the_margin[FAILS] <= ERRORS
    assert judged(ALIKE, 1.2 * side, runs, 0.5)[HOLDS] <= ERRORS
    assert judged(ALIKE, 0.8 * side, runs, 0.5)[FAILS] <= ERRORS


def test_alike_is_no_absence_of_a_difference() -> None:
    """Where the scatter is large there is no significant difference, and no equality either."""
    assert judged(ALIKE, 0.0, MANY, 0.2)[HOLDS] > 0.99
    assert judged(ALIKE, 0.0, FEW, 2.0)[OPEN] > 0.9
    assert judged(ALIKE, 3.0, MANY, 0.2)[FAILS] > 0.99
    assert judged(ALIKE, -3.0, MANY, 0.2)[FAILS] > 0.99


def parts(rng: np.random.Generator, means: tuple[float, ...], runs: int) -> list[Part]:
    """That each of these is below 0."""
    return [Part(paired_t_test(mean + rng.standard_normal(runs), np.zeros(runs)), high=0.0) for mean in means]


@pytest.mark.parametrize("runs", [FEW, MANY])
def test_a_claim_of_many_parts_errs_at_its_level(runs: int) -> None:
    """True but at the margin in every part, it is not found false more often than one of a single part is; and with one
    part at the margin, the others plainly true, it is not found true more often."""
    edge = shares(lambda rng: all_hold(parts(rng, (0.0,) * 8, runs)))
    assert edge[FAILS] <= ERRORS
    assert edge[HOLDS] <= ERRORS
    assert shares(lambda rng: all_hold(parts(rng, (0.0, -50.0, -50.0, -50.0), runs)))[HOLDS] <= ERRORS
    assert shares(lambda rng: one_holds(parts(rng, (0.0,) * 8, runs)))[HOLDS] <= ERRORS
    assert shares(lambda rng: one_holds(parts(rng, (0.0, 50.0, 50.0, 50.0), runs)))[FAILS] <= ERRORS


def test_a_claim_of_many_parts_finds_what_is_there() -> None:
    rng = np.random.default_rng(0)
    assert all_hold(parts(rng, (-5.0, -6.0), MANY)) == HOLDS
    assert all_hold(parts(rng, (-5.0, 6.0, 0.0), MANY)) == FAILS
    assert all_hold(parts(rng, (-5.0, 0.0), FEW)) == OPEN
    assert one_holds(parts(rng, (5.0, -6.0, 0.0), MANY)) == HOLDS
    assert one_holds(parts(rng, (5.0, 6.0), MANY)) == FAILS
    assert one_holds(parts(rng, (5.0, 0.0), FEW)) == OPEN
    with pytest.raises(ValueError, match="low"):
        one_holds([Part(paired_t_test(np.ones(3), np.zeros(3)), -1.0, 1.0)])


# ---------------------------------------------------------------------------- what used to be said


def pairs_of(p: float, runs: int) -> Any:
    """Differences (runs,) with mean -1 and this two-sided p."""
    from scipy.optimize import brentq
    from scipy.stats import ttest_1samp

    z = np.random.default_rng(4).standard_normal(runs)
    z -= z.mean()
    return brentq(lambda scale: ttest_1samp(scale * z - 1.0, 0.0).pvalue - p, 1e-6, 1e6) * z - 1.0


def test_a_p_of_a_fifteenth_with_three_pairs_tells_nothing() -> None:
    found = LOWER({"p": {"a": ending(10.0 + pairs_of(0.07, 3)), "b": ending([10.0] * 3)}})
    assert found.conclusion == OPEN
    assert "p = 0.07, 3 pairs" in found.words
    assert LOWER({"p": {"a": ending(10.0 + pairs_of(0.04, 3)), "b": ending([10.0] * 3)}}).conclusion == HOLDS
    assert LOWER({"p": {"a": ending(10.0 - pairs_of(0.04, 3)), "b": ending([10.0] * 3)}}).conclusion == FAILS


def test_as_good_is_not_that_two_pairs_differ_little() -> None:
    lines = {"a": ending(0.2 + 0.02 * pairs_of(0.87, 2)), "b": ending([0.2] * 2)}
    for check in (even("p", "a", "b"), one_as_good("p", ("a",), "b")):
        assert check({"p": lines}).conclusion == OPEN


def test_about_as_good_is_two_sided_and_as_good_is_not() -> None:
    """Margins: an error of .01 either way, or above."""
    scatter = 1e-4 * np.arange(5.0)
    for apart, wanted, at_least in ((0.005, HOLDS, HOLDS), (0.02, FAILS, FAILS), (-0.02, FAILS, HOLDS)):
        outcome = {"p": {"a": ending(0.2 + apart + scatter), "b": ending([0.2] * 5)}}
        assert even("p", "a", "b")(outcome).conclusion == wanted
        assert one_as_good("p", ("a",), "b")(outcome).conclusion == at_least
    lines = {"a": ending(0.3 + scatter), "c": ending(0.2 + scatter), "b": ending([0.2] * 5)}
    assert one_as_good("p", ("a", "c"), "b")({"p": lines}).conclusion == HOLDS


def test_a_cell_is_reproduced_where_it_is_the_paper_s() -> None:
    """Give or take .02: .138 for .401 is another number, whichever is the better one."""
    scatter = np.array([-0.002, 0.0, 0.002, 0.001, -0.001])
    for mean, wanted in ((0.401, HOLDS), (0.41, HOLDS), (0.138, FAILS), (0.43, FAILS)):
        assert near("p", "BO", 0.401)({"p": {"BO": ending(mean + scatter)}}).conclusion == wanted
    assert near("p", "BO", 0.401)({"p": {"BO": ending([0.401 - 0.03, 0.401 + 0.03])}}).conclusion == OPEN
    assert near("p", "BO", 0.401)({"p": {"BO": ending([0.401])}}).conclusion == OPEN


def test_the_best_of_a_sweep_is_not_the_luckiest() -> None:
    """Nine values, all alike: whichever is named the best beforehand cannot be told; nor is another one better."""
    values = tuple(10.0**power for power in range(-4, 5))

    def one(rng: np.random.Generator, ends: Any) -> str:
        lines = {f"{value:g}": ending(10.0 + end + rng.standard_normal(MANY)) for value, end in zip(values, ends)}
        return sweeps.best_value("p", values, 1.0)({"p": lines | {"other": ending(np.ones(MANY))}}).conclusion

    alike = shares(lambda rng: one(rng, np.ones(9)))
    assert alike[HOLDS] <= ERRORS
    assert alike[FAILS] <= ERRORS
    low, high = np.ones(9), np.ones(9)
    low[4], high[4] = -2.0, 4.0
    assert shares(lambda rng: one(rng, low))[HOLDS] > 0.9
    assert shares(lambda rng: one(rng, high))[FAILS] > 0.99
    # one other is as good: it cannot be told which
    low[5] = -2.0
    assert shares(lambda rng: one(rng, low))[HOLDS] <= ERRORS


def test_always_better_is_not_undone_by_one_case_of_many_by_chance() -> None:
    """Fifteen cases, in truth all a little better: a false alarm in any of them at 5 % would be one in two."""
    panels = [f"set {i}" for i in range(15)]

    def one(rng: np.random.Generator, mean: float) -> str:
        outcome = {
            key: {"m-B": ending(mean + rng.standard_normal(MANY)), "m-R": ending(np.zeros(MANY))} for key in panels
        }
        return wins(panels, ("m",), "B", "R", 0, 15)(outcome).conclusion

    assert shares(lambda rng: one(rng, -1e-6))[FAILS] <= ERRORS
    assert shares(lambda rng: one(rng, 0.0))[HOLDS] <= ERRORS
    assert one(np.random.default_rng(1), -3.0) == HOLDS
    assert one(np.random.default_rng(1), 3.0) == FAILS
    assert one(np.random.default_rng(1), -0.3) == OPEN
