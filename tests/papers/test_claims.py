"""Each way of judging a sentence, on curves whose answer is known: where it holds, where not, where nobody can tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from heedful.papers import choice_claims, claims, growth, sweeps
from heedful.papers.figure import CUMULATIVE, FAILS, HOLDS, OPEN, QUADRATIC, Claim, Figure, verdicts
from heedful.papers.statistics import log_spaced, paired_t_test, reach, welch_t_test
from papers.invented import ran

rng = np.random.default_rng(0)
T = 400
t = np.arange(1.0, T + 1)
NOISE = rng.standard_normal((6, 1)) * 0.01


def lines(**regrets: Any) -> dict[str, dict[str, Any]]:
    """The outcome with one panel p of these lines (each T, or runs x T), every run shifted a little, and alike."""
    return {"p": {name: ran(np.asarray(r) + NOISE, label=name) for name, r in regrets.items()}}


def scattered(mean: Any, spread: float = 5.0) -> Any:
    """Six runs (6 x T) that scatter too much for anything to be said of them, evenly around their mean."""
    return np.asarray(mean) + spread * np.array([[1.0], [-1.0], [2.0], [-2.0], [0.5], [-0.5]]) * np.ones(T)


def test_paired_is_the_paired_t_test() -> None:
    a, b = rng.standard_normal(9), rng.standard_normal(9)
    found, wanted = paired_t_test(a, b), ttest_rel(a, b)
    assert found.t == pytest.approx(wanted.statistic)
    assert found.p == pytest.approx(wanted.pvalue)
    assert found.difference == pytest.approx((a - b).mean())
    assert found.stderr == pytest.approx((a - b).std(ddof=1) / 3.0)
    interval = wanted.confidence_interval(0.95)
    assert reach(found) == pytest.approx((interval.high - interval.low) / 2.0)


def test_apart_is_the_test_of_welch() -> None:
    a, b = rng.standard_normal(9), 3.0 * rng.standard_normal(14)
    found, wanted = welch_t_test(a, b), ttest_ind(a, b, equal_var=False)
    assert (found.t, found.p, found.freedom) == pytest.approx((wanted.statistic, wanted.pvalue, wanted.df))
    interval = wanted.confidence_interval(0.95)
    assert reach(found) == pytest.approx((interval.high - interval.low) / 2.0)
    assert found.pairs == 9


def test_paired_without_scatter_or_with_one_pair() -> None:
    assert paired_t_test(np.ones(3), np.zeros(3))[:4] == (1.0, 0.0, math.inf, 0.0)
    assert paired_t_test(np.zeros(3), np.ones(3)).t == -math.inf
    assert paired_t_test(np.ones(3), np.ones(3))[:4] == (0.0, 0.0, 0.0, 1.0)
    alone = paired_t_test(np.ones(1), np.zeros(1))
    assert (alone.difference, alone.pairs) == (1.0, 1)
    assert math.isnan(alone.p)
    assert reach(alone) == math.inf


def test_of_one_run_nothing_can_be_told() -> None:
    outcome = {"p": {"a": ran(np.ones(T)), "b": ran(np.full(T, 2.0))}}
    for check in (claims.lower("p", "a", "b"), claims.lower("p", "b", "a"), claims.alike("p", "a", "a", 0.5)):
        verdict = check(outcome)
        assert verdict.conclusion == OPEN
        assert "1 pair" in verdict.words
        assert "nan" not in verdict.words


def test_lower_needs_a_difference_that_scatter_does_not_explain() -> None:
    assert claims.lower("p", "a", "b")(lines(a=1 / t, b=2 / t)).conclusion == HOLDS
    assert claims.lower("p", "b", "a")(lines(a=1 / t, b=2 / t)).conclusion == FAILS
    assert claims.lower("p", "a", "b")(lines(a=1 / t, b=1 / t)).conclusion == FAILS  # the same in every run
    loose = rng.standard_normal((6, T)) * 5.0
    assert claims.lower("p", "a", "b")(lines(a=1.0 + loose, b=1.0 + 1e-6 - loose)).conclusion == OPEN


def test_lower_in_another_measure() -> None:
    """Few large regrets cost more than many small ones where the loss is quadratic, and M is small."""
    rare = np.where(t % 10 == 0, 10.0, 0.0)  # mean 1
    outcome = {"p": {"rare": ran([rare] * 3), "even": ran([np.full(T, 1.2)] * 3)}}
    assert claims.lower("p", "rare", "even")(outcome).conclusion == HOLDS
    assert claims.lower("p", "even", "rare", QUADRATIC)(outcome).conclusion == HOLDS


def test_in_order_wants_every_step() -> None:
    outcome = lines(a=3 / t, b=2 / t, c=1 / t, d=scattered(1 / t, 0.1))
    assert claims.falls_in_order("p", ("a", "b", "c"))(outcome).conclusion == HOLDS
    assert claims.falls_in_order("p", ("a", "c", "b"))(outcome).conclusion == FAILS
    assert claims.falls_in_order("p", ("a", "b", "c", "d"))(outcome).conclusion == OPEN


def test_most_of_the_range_is_half_of_a_logarithmic_scale() -> None:
    early, late = np.where(t <= 10, 1.0, 2.0), np.where(t <= 10, 2.0, 1.0)
    outcome = lines(early=early, late=late, loose=scattered(1.0))
    marks = log_spaced(T)
    under = np.mean([early[:m].mean() < late[:m].mean() for m in marks])
    wanted = HOLDS if under > 0.5 else FAILS
    assert claims.lower_mostly("p", "early", "late")(outcome).conclusion == wanted
    assert claims.lower_mostly("p", "early", "late", 1, 10)(outcome).conclusion == HOLDS
    assert claims.lower_mostly("p", "late", "early", 1, 10)(outcome).conclusion == FAILS
    assert claims.lower_mostly("p", "late", "early", 100)(outcome).conclusion == HOLDS
    assert claims.lower_mostly("p", "loose", "early")(outcome).conclusion == OPEN


def test_rounds_on_a_logarithmic_scale() -> None:
    marks = log_spaced(7840)
    assert (marks[0], marks[-1]) == (1, 7840)
    assert (np.diff(marks) > 0).all()
    assert log_spaced(1).tolist() == [1]
    assert log_spaced(3).tolist() == [1, 2, 3]


def test_alike_is_the_whole_interval_within_the_room() -> None:
    outcome = lines(a=np.full(T, 1.04), b=np.full(T, 1.0), c=np.full(T, 1.06), d=np.full(T, 0.94))
    assert claims.alike("p", "a", "b", 0.05)(outcome).conclusion == HOLDS
    assert claims.alike("p", "c", "b", 0.05)(outcome).conclusion == FAILS
    assert claims.alike("p", "d", "b", 0.05)(outcome).conclusion == FAILS  # also where it is the lower one
    assert claims.alike("p", "a", "b", 0.05)(lines(a=scattered(1.0), b=np.full(T, 1.0))).conclusion == OPEN


def test_factors() -> None:
    outcome = lines(a=4.0 / t, b=1.0 / t)
    plain = {"p": {k: ran(r.regrets - NOISE) for k, r in outcome["p"].items()}}
    assert claims.within_factor("p", "a", "b", 5.0)(plain).conclusion == HOLDS
    assert claims.within_factor("p", "a", "b", 3.0)(plain).conclusion == FAILS
    assert claims.within_factor("p", "a", "b", 3.0)(lines(a=scattered(4.0), b=np.ones(T))).conclusion == OPEN


def test_closer_compares_ratios_of_other_runs() -> None:
    both = {"near": lines(a=2 / t, b=1 / t)["p"], "far": lines(a=3 / t, b=1 / t)["p"]}
    assert claims.closer("near", "far", "a", "b")(both).conclusion == HOLDS
    assert claims.closer("far", "near", "a", "b")(both).conclusion == FAILS
    loose = both | {"far": {"a": ran(scattered(30.0)), "b": ran(scattered(10.0)[::-1])}}
    assert claims.closer("near", "far", "a", "b")(loose).conclusion == OPEN


def test_matched_early_counts_rounds() -> None:
    fast = np.where(t <= 4, 1.0, 0.0)
    slow = np.full(T, 0.8)  # average of fast: 1, 1, 1, 1, 0.8, 0.67 after 6
    outcome = {"p": {"fast": ran([fast] * 2), "slow": ran([slow] * 2)}}
    assert "first after 5 as low" in claims.matched_early("p", "fast", "slow")(outcome).words
    assert claims.matched_early("p", "fast", "slow")(outcome).conclusion == FAILS  # 4 rounds
    assert claims.matched_early("p", "fast", "slow", 0.015)(outcome).conclusion == HOLDS  # 6
    assert claims.matched_early("p", "fast", "slow", 1.0, 6)(outcome).conclusion == HOLDS
    assert claims.matched_early("p", "fast", "slow", 1.0, 4)(outcome).conclusion == FAILS
    never = claims.matched_early("p", "slow", "fast", 1.0)(outcome)
    assert never.conclusion == FAILS
    assert "never as low" in never.words
    loose = {"p": {"fast": ran(scattered(0.5)), "slow": ran(np.full((6, T), 0.8))}}
    assert claims.matched_early("p", "fast", "slow")(loose).conclusion == OPEN


def test_cheaper() -> None:
    outcome = {"p": {"a": ran([t] * 3, seconds=1.0), "b": ran([t] * 3, seconds=10.0)}}
    assert claims.cheaper("p", "a", "b", 0.11)(outcome).conclusion == HOLDS
    assert claims.cheaper("p", "a", "b", 0.05)(outcome).conclusion == FAILS
    outcome["p"]["b"] = outcome["p"]["b"]._replace(seconds=np.array([1.0, 90.0, 20.0]))
    assert claims.cheaper("p", "a", "b", 0.11)(outcome).conclusion == OPEN


def test_reduced_to_half() -> None:
    outcome = lines(a=1.0 / t, b=np.full(T, 1.0))
    outcome["p"]["c"] = ran(scattered(1.0 / t))
    assert growth.regret_halves("p", ("a",), 100)(outcome).conclusion == HOLDS
    assert growth.regret_halves("p", ("a", "b"), 100)(outcome).conclusion == FAILS
    assert growth.regret_halves("p", ("a",), 1)(outcome).conclusion == FAILS
    assert growth.regret_halves("p", ("a", "c"), 100)(outcome).conclusion == OPEN


def test_vanishing_and_stuck() -> None:
    curves = {"root": t**-0.75, "floor": 0.05 + 1.0 / t, "high": 0.5 + 1.0 / t}
    outcome = {"p": {name: ran([curve] * 2) for name, curve in curves.items()} | {"loose": ran(scattered(1.0))}}
    assert growth.vanishing("p", ("root",))(outcome).conclusion == HOLDS
    assert growth.vanishing("p", ("root", "floor"))(outcome).conclusion == FAILS
    assert growth.stuck("p", ("floor", "high"))(outcome).conclusion == HOLDS
    assert growth.stuck("p", ("root",))(outcome).conclusion == FAILS
    assert growth.stuck("p", ("floor", "loose"))(outcome).conclusion == OPEN


@pytest.mark.parametrize(("regrets", "conclusion"), [(1.0 / t, HOLDS), (1.0 / np.sqrt(t), FAILS), (np.ones(T), FAILS)])
def test_logarithmic(regrets: Any, conclusion: str) -> None:
    outcome = {"p": {"a": ran([regrets, regrets * 1.01])}}
    assert growth.logarithmic("p", "a", CUMULATIVE)(outcome).conclusion == conclusion
    assert growth.faster_than_log("p", "a", CUMULATIVE)(outcome).conclusion == {HOLDS: FAILS, FAILS: HOLDS}[conclusion]
    loose = {"p": {"a": ran(scattered(regrets))}}
    assert growth.logarithmic("p", "a", CUMULATIVE)(loose).conclusion == OPEN


def test_bounded_is_of_what_is_drawn() -> None:
    drawn = np.cumsum(1.0 / t) / t
    above = {"p": {"a": ran([1.0 / t] * 3, bound=drawn), "b": ran([1.0 / t] * 3, bound=0.99 * drawn)}}
    assert growth.within_bound("p", ("a",))(above).conclusion == HOLDS
    assert growth.within_bound("p", ("a", "b"))(above).conclusion == FAILS
    alone = {"p": {"a": ran(1.0 / t, bound=drawn), "b": ran(1.0 / t, bound=0.99 * drawn)}}
    assert growth.within_bound("p", ("a",))(alone).conclusion == HOLDS
    assert growth.within_bound("p", ("b",))(alone).conclusion == FAILS
    expected = {"p": {"a": ran(scattered(1.0), bound=np.full(T, 1.1))}}
    assert growth.within_bound("p", ("a",))(expected).conclusion == OPEN
    without = {"p": {"a": ran(1.0 / t)._replace(theorem="Theorem 8", lacking="gamma is too large")}}
    verdict = growth.within_bound("p", ("a",))(without)
    assert verdict.conclusion == OPEN
    assert "gamma is too large" in verdict.words


def sweep(*ends: float, spread: float = 0.0) -> dict[str, dict[str, Any]]:
    loose = np.random.default_rng(3).standard_normal((len(ends), 6, 1)) * spread
    panel = {f"gamma = {i}": ran(np.full(T, end) + NOISE + loose[i]) for i, end in enumerate(ends)}
    return {"p": panel | {"convex": ran(np.full(T, 9.0))}}


VALUES = (0.01, 0.1, 1.0, 10.0, 100.0)


def test_the_best_value_is_lower_than_every_other() -> None:
    good = sweep(9.0, 1.5, 1.0, 1.9, 9.0)
    assert sweeps.best_value("p", VALUES, 1.0)(good).conclusion == HOLDS
    assert sweeps.best_value("p", VALUES, 0.1)(good).conclusion == FAILS
    close = sweep(9.0, 1.001, 1.0, 1.9, 9.0, spread=0.1)
    for value in (0.1, 1.0):
        verdict = sweeps.best_value("p", VALUES, value)(close)
        assert verdict.conclusion == OPEN
        assert verdict.paired is not None
        assert verdict.paired.p > 0.05
    assert sweeps.best_value("p", VALUES, 10.0)(close).conclusion == FAILS


def test_good_values_and_how_wide_they_are() -> None:
    good = sweep(9.0, 1.5, 1.0, 1.9, 9.0)
    assert sweeps.good_ranges(good, "p", VALUES) == ([0.1, 1.0, 10.0], [0.1, 1.0, 10.0])
    assert sweeps.good_values("p", VALUES)(good).conclusion == HOLDS
    assert sweeps.good_values("p", VALUES)(sweep(9.0, 3.0, 1.0, 1.9, 9.0)).conclusion == FAILS
    assert sweeps.good_values("p", VALUES)(sweep(1.1, 1.1, 1.0, 1.9, 9.0)).conclusion == FAILS
    gap = sweep(1.1, 9.0, 1.0, 1.9, 9.0)
    assert sweeps.good_ranges(gap, "p", VALUES)[0] == [1.0, 10.0]
    both = {"wide": good["p"], "narrow": gap["p"]}
    assert sweeps.broader("wide", "narrow", VALUES)(both).conclusion == HOLDS
    assert sweeps.broader("narrow", "wide", VALUES)(both).conclusion == FAILS
    assert sweeps.broader("wide", "wide", VALUES)(both).conclusion == FAILS


def test_what_is_near_twice_the_least_may_be_good_or_not() -> None:
    edge = sweep(9.0, 1.98, 1.0, 1.9, 9.0, spread=0.1)
    assert sweeps.good_ranges(edge, "p", VALUES) == ([1.0], [0.1, 1.0, 10.0])
    assert sweeps.good_values("p", VALUES)(edge).conclusion == OPEN
    narrow = sweep(9.0, 3.0, 1.0, 1.5, 9.0)
    both = {"edge": edge["p"], "narrow": narrow["p"]}
    assert sweeps.broader("edge", "narrow", VALUES)(both).conclusion == OPEN
    assert "from 1 to 1, perhaps from 0.1 to 10" in sweeps.broader("edge", "narrow", VALUES)(both).words


def test_the_lower_bound_is_met_exactly() -> None:
    lengths = np.array([1.0, 4.0, 9.0])
    met = ran(2.0 / np.sqrt(lengths))._replace(marks=lengths)
    assert growth.lower_bound_met("p", ("a",))({"p": {"a": met}}).conclusion == HOLDS
    off = met._replace(regrets=met.regrets * 1.001)
    assert growth.lower_bound_met("p", ("a",))({"p": {"a": off}}).conclusion == FAILS


def test_within_a_factor_in_another_measure() -> None:
    """Regrets of 1 and 2 with M = 1 are 3 and 8 in the quadratic loss: less than half, where the average is not."""
    outcome = lines(a=np.full(T, 1.0), b=np.full(T, 2.0))
    assert claims.within_factor("p", "a", "b", 0.45, QUADRATIC)(outcome).conclusion == HOLDS
    assert claims.within_factor("p", "a", "b", 0.45)(outcome).conclusion == FAILS


def test_the_standard_error_falls() -> None:
    settling = ran(1.0 + rng.standard_normal((9, T)))
    drifting = ran(np.outer(rng.standard_normal(9), t))
    level = ran(1.0 + np.random.default_rng(1).standard_normal((9, 1)) * np.where(t > 5, 1.0 + 1e-3 * rng.random(T), 1))
    outcome = {"p": {"a": settling, "b": drifting, "c": level}}
    assert growth.steadier("p", ("a",))(outcome).conclusion == HOLDS
    assert growth.steadier("p", ("b", "a"))(outcome).conclusion == FAILS
    even = {"p": {"c": ran(np.random.default_rng(1).standard_normal((9, 20)) @ np.kron(np.eye(2), np.ones((10, 10))))}}
    assert growth.steadier("p", ("c",))(even).conclusion == OPEN


def test_what_holds_only_where_contexts_return_does_not_hold() -> None:
    """a is the lower one in every round but the first hundred, which are all that is judged."""
    outcome = lines(a=np.where(t <= 100, 2.0, 0.1), b=np.ones(T))
    claim = Claim("a is lower.", ("p",), claims.lower("p", "a", "b"))
    figure = Figure("f", "p", "t", (), (claim,))
    assert [verdict.conclusion for verdict in verdicts(figure, outcome)] == [HOLDS]
    outcome["p"] = {label: one._replace(once=100) for label, one in outcome["p"].items()}
    assert [verdict.conclusion for verdict in verdicts(figure, outcome)] == [FAILS]


# Runs of three curves: the step from a to b is large and scatters, that from b to c is small and hardly does.
LARGE = np.array([[1.5], [-1.5], [1.0], [-1.0], [0.5], [-0.5]])


def test_the_difference_that_is_named_is_the_least_certain_one_and_not_the_smallest() -> None:
    """The words name it and give its test: the one that is nearest to failing, in standard errors."""
    p = {
        "a": ran(4.0 + LARGE * np.ones(T), label="a"),
        "b": ran(2.0 + 0.001 * LARGE * np.ones(T), label="b"),
        "c": ran(1.9 - 0.001 * LARGE * np.ones(T), label="c"),
    }
    told = claims.falls_in_order("p", ("a", "b", "c"))({"p": p})
    expected = paired_t_test(p["b"].regrets[:, 0], p["a"].regrets[:, 0])
    assert expected.difference == pytest.approx(-2.0)  # where the other one is -0.1
    assert told.paired == pytest.approx(expected)
    assert "; the least certain, b less a: difference -2 ± " in told.words
    assert "smallest" not in told.words
    alone = claims.falls_in_order("p", ("b", "c"))({"p": p})
    assert "; c less b: difference -0.1 ± " in alone.words


def test_each_claim_of_several_parts_names_the_one_it_tests() -> None:
    early = np.where(t <= 10, 8.0, 2.0)
    steep, flat = np.where(t > 300, 0.01, early), np.where(t > 300, 1.7, early)
    p = lines(steep=steep, flat=flat)
    told = growth.vanishing("p", ("steep", "flat"))(p).words
    assert "; the least certain, flat against a tenth of the first: difference " in told
    told = growth.stuck("p", ("steep", "flat"))(p).words
    assert "0.8 of the second less the last, the least certain, steep: difference " in told
    told = growth.regret_halves("p", ("steep", "flat"), 100)(p).words
    assert "; against half, the least certain, " in told
    assert "the highest" not in told
    rated: Any = {
        "p": {name: ran([[r], [r + 0.25], [r + 0.5]], label=name) for name, r in (("a", 1.0), ("b", 5.0), ("c", 2.0))}
    }
    told = choice_claims.lower_than_all("p", ("a",), ("b", "c"))(rated).words
    assert "the least certain, a less c" in told
    told = choice_claims.lower_than_all("p", ("a",), ("b",), choice_claims.IN_SECONDS)(rated).words
    assert told == "a 1.25 s, b 5.25 s; a less b: difference -4 ± 0, p < 0.0001, 3 pairs"
