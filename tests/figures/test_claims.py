"""Each way of judging a sentence, on curves whose answer is known: where it holds, and a near miss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from figures.invented import ran
from heedful.figures import claims, sweeps
from heedful.figures.figure import CUMULATIVE, QUADRATIC
from heedful.figures.statistics import log_spaced, paired, reach

rng = np.random.default_rng(0)
T = 400
t = np.arange(1.0, T + 1)
NOISE = rng.standard_normal((6, 1)) * 0.01


def lines(**regrets: Any) -> dict[str, dict[str, Any]]:
    """The outcome with one panel p of these lines (each T, or runs x T), every run shifted a little, and alike."""
    return {"p": {name: ran(np.asarray(r) + NOISE, label=name) for name, r in regrets.items()}}


def test_paired_is_the_paired_t_test() -> None:
    a, b = rng.standard_normal(9), rng.standard_normal(9)
    found, wanted = paired(a, b), ttest_rel(a, b)
    assert found.t == pytest.approx(wanted.statistic)
    assert found.p == pytest.approx(wanted.pvalue)
    assert found.difference == pytest.approx((a - b).mean())
    assert found.stderr == pytest.approx((a - b).std(ddof=1) / 3.0)
    interval = wanted.confidence_interval(0.95)
    assert reach(found) == pytest.approx((interval.high - interval.low) / 2.0)


def test_paired_without_scatter_or_with_one_pair() -> None:
    assert paired(np.ones(3), np.zeros(3))[:4] == (1.0, 0.0, math.inf, 0.0)
    assert paired(np.zeros(3), np.ones(3)).t == -math.inf
    assert paired(np.ones(3), np.ones(3))[:4] == (0.0, 0.0, 0.0, 1.0)
    alone = paired(np.ones(1), np.zeros(1))
    assert (alone.difference, alone.pairs) == (1.0, 1)
    assert math.isnan(alone.p)
    assert reach(alone) == math.inf


def test_one_run_is_never_significant() -> None:
    outcome = {"p": {"a": ran(np.zeros(T)), "b": ran(np.ones(T))}}
    assert claims.lower("p", "a", "b")(outcome).holds is False
    assert claims.alike("p", "a", "a", 0.5)(outcome).holds is False


def test_lower_needs_a_difference_that_scatter_does_not_explain() -> None:
    assert claims.lower("p", "a", "b")(lines(a=1 / t, b=2 / t)).holds
    assert not claims.lower("p", "b", "a")(lines(a=1 / t, b=2 / t)).holds
    assert not claims.lower("p", "a", "b")(lines(a=1 / t, b=1 / t)).holds
    loose = rng.standard_normal((6, T)) * 5.0
    assert not claims.lower("p", "a", "b")(lines(a=1.0 + loose, b=1.0 + 1e-6 - loose)).holds


def test_lower_in_another_measure() -> None:
    """Few large regrets cost more than many small ones where the loss is quadratic, and M is small."""
    rare = np.where(t % 10 == 0, 10.0, 0.0)  # mean 1
    outcome = {"p": {"rare": ran([rare] * 3), "even": ran([np.full(T, 1.2)] * 3)}}
    assert claims.lower("p", "rare", "even")(outcome).holds
    assert claims.lower("p", "even", "rare", QUADRATIC)(outcome).holds


def test_in_order_wants_every_step() -> None:
    outcome = lines(a=3 / t, b=2 / t, c=1 / t, d=1 / t)
    assert claims.falls_in_order("p", ("a", "b", "c"))(outcome).holds
    assert not claims.falls_in_order("p", ("a", "c", "b"))(outcome).holds
    assert not claims.falls_in_order("p", ("a", "b", "c", "d"))(outcome).holds


def test_most_of_the_range_is_half_of_a_logarithmic_scale() -> None:
    early, late = np.where(t <= 10, 1.0, 2.0), np.where(t <= 10, 2.0, 1.0)
    outcome = lines(early=early, late=late)
    marks = log_spaced(T)
    below = np.mean([early[:m].mean() < late[:m].mean() for m in marks])
    assert (below > 0.5) == claims.lower_mostly("p", "early", "late")(outcome).holds
    assert claims.lower_mostly("p", "early", "late", 1, 10)(outcome).holds
    assert not claims.lower_mostly("p", "late", "early", 1, 10)(outcome).holds
    assert claims.lower_mostly("p", "late", "early", 100)(outcome).holds


def test_rounds_on_a_logarithmic_scale() -> None:
    marks = log_spaced(7840)
    assert (marks[0], marks[-1]) == (1, 7840)
    assert (np.diff(marks) > 0).all()
    assert log_spaced(1).tolist() == [1]
    assert log_spaced(3).tolist() == [1, 2, 3]


def test_alike_is_the_whole_interval_within_the_room() -> None:
    outcome = lines(a=np.full(T, 1.04), b=np.full(T, 1.0), c=np.full(T, 1.06))
    assert claims.alike("p", "a", "b", 0.05)(outcome).holds
    assert not claims.alike("p", "c", "b", 0.05)(outcome).holds
    scattered = np.full((6, T), 1.0) + rng.choice([-1.0, 1.0], (6, 1))
    assert not claims.alike("p", "a", "b", 0.05)(lines(a=scattered, b=np.full(T, 1.0))).holds


def test_factors() -> None:
    outcome = lines(a=4.0 / t, b=1.0 / t)
    assert claims.within_factor("p", "a", "b", 5.0)(
        {"p": {k: ran(r.regrets - NOISE) for k, r in outcome["p"].items()}}
    ).holds
    assert not claims.within_factor("p", "a", "b", 3.0)(outcome).holds
    both = {"near": lines(a=2 / t, b=1 / t)["p"], "far": lines(a=3 / t, b=1 / t)["p"]}
    assert claims.closer("near", "far", "a", "b")(both).holds
    assert not claims.closer("far", "near", "a", "b")(both).holds


def test_matched_early_counts_rounds() -> None:
    fast = np.where(t <= 4, 1.0, 0.0)
    slow = np.full(T, 0.8)  # average of fast: 1, 1, 1, 1, 0.8 after 5
    outcome = {"p": {"fast": ran([fast] * 2), "slow": ran([slow] * 2)}}
    assert "after 5 " in claims.matched_early("p", "fast", "slow")(outcome).found
    assert not claims.matched_early("p", "fast", "slow")(outcome).holds
    assert claims.matched_early("p", "fast", "slow", 0.0125)(outcome).holds
    never = claims.matched_early("p", "slow", "fast", 1.0)(outcome)
    assert not never.holds
    assert "never matched" in never.found


def test_cheaper() -> None:
    outcome = {"p": {"a": ran(t, seconds=1.0), "b": ran(t, seconds=10.0)}}
    assert claims.cheaper("p", "a", "b")(outcome).holds
    assert not claims.cheaper("p", "a", "b", 0.05)(outcome).holds


def test_reduced_to_half() -> None:
    outcome = lines(a=1.0 / t, b=np.full(T, 1.0))
    assert claims.reduced("p", ("a",), 100)(outcome).holds
    assert not claims.reduced("p", ("a", "b"), 100)(outcome).holds
    assert not claims.reduced("p", ("a",), 1)(outcome).holds


def test_vanishing_and_stuck() -> None:
    outcome = {"p": {"root": ran(t**-0.75), "floor": ran(0.05 + 1.0 / t), "high": ran(0.5 + 1.0 / t)}}
    assert claims.vanishing("p", ("root",))(outcome).holds
    assert not claims.vanishing("p", ("root", "floor"))(outcome).holds
    assert claims.stuck("p", ("floor", "high"))(outcome).holds
    assert not claims.stuck("p", ("root",))(outcome).holds


@pytest.mark.parametrize(("regrets", "holds"), [(1.0 / t, True), (1.0 / np.sqrt(t), False), (np.ones(T), False)])
def test_logarithmic(regrets: Any, holds: bool) -> None:
    outcome = {"p": {"a": ran(regrets)}}
    assert claims.logarithmic("p", "a", CUMULATIVE)(outcome).holds is holds
    assert claims.slower_than_log("p", "a", CUMULATIVE)(outcome).holds is not holds


def test_bounded_is_of_what_is_drawn() -> None:
    above = {
        "p": {"a": ran(1.0 / t, bound=np.cumsum(1.0 / t) / t), "b": ran(1.0 / t, bound=0.99 * np.cumsum(1.0 / t) / t)}
    }
    assert claims.bounded("p", ("a",))(above).holds
    assert not claims.bounded("p", ("a", "b"))(above).holds
    without = {"p": {"a": ran(1.0 / t)._replace(theorem="Theorem 8", lacking="gamma is too large")}}
    verdict = claims.bounded("p", ("a",))(without)
    assert verdict.holds is None
    assert "gamma is too large" in verdict.found


def sweep(*ends: float) -> dict[str, dict[str, Any]]:
    panel = {f"gamma = {i}": ran(np.full(T, end) + NOISE) for i, end in enumerate(ends)}
    return {"p": panel | {"convex": ran(np.full(T, 9.0))}}


def test_sweeps() -> None:
    values = (0.01, 0.1, 1.0, 10.0, 100.0)
    good = sweep(9.0, 1.5, 1.0, 1.9, 9.0)
    assert sweeps.best_value("p", values, 1.0)(good).holds
    assert not sweeps.best_value("p", values, 0.1)(good).holds
    assert sweeps.good_range(good, "p", values) == [0.1, 1.0, 10.0]
    assert sweeps.good_values("p", values)(good).holds
    assert not sweeps.good_values("p", values)(sweep(9.0, 3.0, 1.0, 1.9, 9.0)).holds
    assert not sweeps.good_values("p", values)(sweep(1.1, 1.1, 1.0, 1.9, 9.0)).holds
    gap = sweep(1.1, 9.0, 1.0, 1.9, 9.0)
    assert sweeps.good_range(gap, "p", values) == [1.0, 10.0]
    both = {"wide": good["p"], "narrow": gap["p"]}
    assert sweeps.broader("wide", "narrow", values)(both).holds
    assert not sweeps.broader("narrow", "wide", values)(both).holds


def test_the_lower_bound_is_met_exactly() -> None:
    lengths = np.array([1.0, 4.0, 9.0])
    met = ran(2.0 / np.sqrt(lengths))._replace(marks=lengths)
    assert claims.lower_bound_met("p", ("a",))({"p": {"a": met}}).holds
    off = met._replace(regrets=met.regrets * 1.001)
    assert not claims.lower_bound_met("p", ("a",))({"p": {"a": off}}).holds


def test_matched_within_a_number_of_rounds() -> None:
    """a = 1/t has b's 0.05 on average after some hundred rounds: 1/t sums to about 5 + ln 20."""
    outcome = lines(a=1 / t, b=np.full(T, 0.05))
    [first] = np.flatnonzero((1 / t).cumsum() / t <= 0.05)[:1] + 1
    assert claims.matched_early("p", "a", "b", share=1.0, most=first)(outcome).holds
    assert not claims.matched_early("p", "a", "b", share=1.0, most=first - 1)(outcome).holds


def test_within_a_factor_in_another_measure() -> None:
    """Regrets of 1 and 2 with M = 1 are 3 and 8 in the quadratic loss: less than half, where the average is not."""
    outcome = lines(a=np.full(T, 1.0), b=np.full(T, 2.0))
    assert claims.within_factor("p", "a", "b", 0.45, QUADRATIC)(outcome).holds
    assert not claims.within_factor("p", "a", "b", 0.45)(outcome).holds


def test_the_standard_error_falls() -> None:
    settling = {"p": {"a": ran(1.0 + rng.standard_normal((6, T)))}}
    assert claims.steadier("p", ("a",))(settling).holds
    drifting = {"p": {"a": ran(np.outer(rng.standard_normal(6), t)), "b": settling["p"]["a"]}}
    assert not claims.steadier("p", ("b", "a"))(drifting).holds
