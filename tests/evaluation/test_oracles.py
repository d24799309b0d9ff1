"""Sequences, evidence and weighted values are those of other people's packages: `ville` and `vw-estimators`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ville
from estimators.bandits import cs, ips

from heedful.evaluation.confidence import log_win_evidence, win_share_limits
from heedful.evaluation.interleaving import LIMITS, Match, split_evidence
from heedful.evaluation.off_policy import Estimate, estimate, value
from heedful.evaluation.ratio import ratio
from heedful.evaluation.unbounded import limits
from heedful.io.bandit_log import evaluate_table
from loops import small_loop
from written import placed

ALPHAS = (0.01, 0.05, 0.2)
STREAMS = {
    "clicks": lambda rng: (rng.random(400) < 0.05).astype(float),
    "coins": lambda rng: (rng.random(400) < 0.5).astype(float),
    "wins": lambda rng: (rng.random(400) < 0.97).astype(float),
    "grades": lambda rng: rng.integers(0, 5, 400) / 4.0,
    "steady": lambda rng: np.clip(0.7 + 0.02 * rng.standard_normal(400), 0.0, 1.0),
}
each_stream = pytest.mark.parametrize("stream", STREAMS)


def draws(stream: str) -> Any:
    return STREAMS[stream](np.random.default_rng(len(stream)))


# ---------------------------------------------------------------------------- sequences


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("stream", ["clicks", "coins", "wins"])
def test_shares_have_the_beta_binomial_sequence(stream: str, alpha: float) -> None:
    x = draws(stream)
    wins = x.cumsum()
    low, high = win_share_limits(wins, np.arange(1.0, x.size + 1.0) - wins, alpha)
    oracle = ville.BernoulliCS(alpha).fit(x)
    np.testing.assert_allclose(np.maximum.accumulate(low), oracle.lower_, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(np.minimum.accumulate(high), oracle.upper_, rtol=0.0, atol=1e-9)


@each_stream
def test_bets_on_means_end_where_theirs_do(stream: str) -> None:
    """Theirs bet by the variance alone, ours by the distance to the candidate, too: other bets, the same mean, and
    intervals as wide, and never much wider."""
    x = draws(stream)
    oracle = ville.BettingCS(alpha=0.05).fit(x)
    for n in (1, 10, 50, 100, 200, 400):
        _, low, high = ratio(x[:n], np.ones(n))
        theirs = oracle.lower_[n - 1], oracle.upper_[n - 1]
        assert max(low, theirs[0]) < min(high, theirs[1])
        assert n < 50 or high - low <= 1.15 * (theirs[1] - theirs[0])


# ---------------------------------------------------------------------------- evidence


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("stream", ["clicks", "coins", "wins"])
def test_evidence_against_a_share_is_the_beta_binomial_e_value(stream: str, p: float) -> None:
    x = draws(stream)
    oracle = ville.BernoulliTest(p).fit(x)
    wins = x.cumsum()
    found = log_win_evidence(wins, np.arange(1.0, x.size + 1.0) - wins, np.asarray(p))
    np.testing.assert_allclose(found, oracle.log_e_values_, rtol=1e-9, atol=1e-9)
    for n in (1, 7, 60):  # of sides that a coin splits
        wins = int(x[:n].sum())
        assert split_evidence(n - wins, wins, p) == pytest.approx(math.exp(oracle.log_e_values_[n - 1]), rel=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.75])
def test_a_match_combines_the_e_values_of_people_by_product_and_of_bets_by_mean(share: float) -> None:
    rng = np.random.default_rng(2)
    match, people = Match(0.05), 25
    state, net = match.init(), np.zeros((people, LIMITS.size))
    for _ in range(400):
        who, x = int(rng.integers(people)), float(rng.choice([0.5, 1.0, 0.0], p=[0.5, share / 2, (1.0 - share) / 2]))
        state = match.update(state, who, x)
        net[who] += np.where(np.abs(net[who]) < LIMITS, np.sign(x - 0.5), 0.0)
    assert len(state) == people
    sides = [
        ville.evalues.combine(ville.evalues.combine(1.0 + sign * net / (2.0 * LIMITS), "product", axis=0), "mean")
        for sign in (-1.0, 1.0)
    ]
    found = match.verdict(state)
    assert found.e_value == pytest.approx(float(ville.evalues.combine(np.array([max(sides), 0.0]), "mean")), rel=1e-12)
    assert (found.verdict != "undecided") == (float(ville.evalues.e_to_p(found.e_value)) <= 0.05)
    assert found.verdict == {0.3: "a", 0.5: "undecided", 0.75: "b"}[share]


# ---------------------------------------------------------------------------- weighted values


def logged(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """(probabilities of one of five actions under the target, and under the log, rewards) of n decisions."""
    rng = np.random.default_rng(seed)
    mu, pi = rng.dirichlet(np.full(5, 2.0)), rng.dirichlet(np.full(5, 2.0))
    action = rng.choice(5, n, p=mu)
    return pi[action], mu[action], (rng.random(n) < 0.1 + 0.15 * action).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_means_are_those_of_inverse_propensities(seed: int) -> None:
    target, mu, rewards = logged(700, seed)
    theirs = ips.Estimator()
    for p, q, r in zip(mu.tolist(), target.tolist(), rewards.tolist()):
        theirs.add_example(p, r, q)
    weights = (target / mu)[:, None]
    assert value(weights, rewards[:, None]) == pytest.approx(theirs.get(), rel=1e-12)
    found = estimate(weights, rewards[:, None])
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(theirs.get(), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_intervals_of_weighted_means_are_about_as_wide_as_theirs(seed: int) -> None:
    """Both bet on the same two means, of w r and of w (1 - r); they bet otherwise. Wherever one rejects, so does the
    other, nearly."""
    target, mu, rewards = logged(2000, seed)
    w, interval = target / mu, cs.Interval()
    for p, q, r in zip(mu.tolist(), target.tolist(), rewards.tolist()):
        interval.add_example(p, r, q)
    low, high = interval.get(0.05)
    ours = limits(w * rewards, w * (1.0 - rewards), None, 0.05)
    assert max(low, ours[0]) < (w * rewards).mean() < min(high, ours[1])
    assert ours[1] - ours[0] < 1.25 * (high - low)


@pytest.mark.slow
def test_a_table_and_a_loop_have_the_same_weighted_means(tmp_path: Path) -> None:
    """A column of a table, and the value of lists of a loop that records what others showed."""
    target, mu, rewards = logged(400, 7)
    theirs, table = ips.Estimator(), []
    for p, q, r in zip(mu.tolist(), target.tolist(), rewards.tolist()):
        theirs.add_example(p, r, q)
        table.append({"action": f"{p:.6f}", "probability": p, "reward": r, "other": q})
    found = evaluate_table(placed(table), targets=["other"]).learners[1].values[0]
    assert found.value == pytest.approx(theirs.get(), rel=1e-12)

    rng, of_loop = np.random.default_rng(8), ips.Estimator()
    chances = rng.dirichlet(np.full(4, 3.0))
    names = [f"i{j}" for j in range(4)]
    with small_loop(tmp_path / "l", "perceptron", n_items=4, k=1) as loop:
        start = loop.version
        for t in range(700):
            item, clicked = int(rng.choice(4, p=chances)), bool(rng.random() < 0.4)
            prior = [float(j == t % 4) for j in range(4)]  # what the frozen learner ranks first
            p = float(chances[item])
            loop.record(names, [names[item]], id=f"d{t}", prior=prior, probability=p)
            loop.feedback(f"d{t}", id=f"e{t}", clicks=[names[item]] if clicked else [])
            of_loop.add_example(p, float(clicked), float(item == t % 4))
        values = loop.evaluate(f"perceptron@{start}").learners[1].values
    [frozen] = [each for each in values if each.measure == "reward"]
    assert frozen.value == pytest.approx(of_loop.get(), rel=1e-12)
    assert math.isfinite(frozen.value)
