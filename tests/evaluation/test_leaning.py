"""Evidence that values lean to one side, about many questions at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from heedful.evaluation.leaning import BETS, SHARES, log_evidence, sure


def test_evidence_is_the_mean_capital_of_the_bets() -> None:
    """Of two sequences, value for value as the docstring says."""
    values = np.array([[1.0, -0.5], [0.25, 0.0], [-1.0, -1.0]])
    up, down = log_evidence(values)
    for j in range(2):
        for sign, got in ((1.0, up), (-1.0, down)):
            capital = [np.prod([1.0 + bet * sign * x for x in values[:, j]]) for bet in BETS]
            assert got[j] == pytest.approx(np.log(np.dot(SHARES, capital)))
    assert [list(each) for each in log_evidence(np.zeros((0, 2)))] == [[0.0, 0.0], [0.0, 0.0]]


def test_the_evidence_has_a_mean_of_one_where_nothing_leans() -> None:
    """Over all 2^8 sequences of signs, exactly; where they lean downwards, it is less than one."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8))).T
    up, down = log_evidence(signs)
    assert np.exp(up).mean() == pytest.approx(1.0)
    assert np.exp(down).mean() == pytest.approx(1.0)
    fewer = 0.4 ** (signs > 0).sum(axis=0) * 0.6 ** (signs < 0).sum(axis=0)
    assert fewer.sum() == pytest.approx(1.0)
    assert np.exp(up) @ fewer < 1.0 < np.exp(down) @ fewer


@pytest.mark.parametrize("values", [[[1.5]], [[np.nan]], [1.0], [[-1.0001]]])
def test_values_out_of_range_are_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="values: expected numbers from -1 to 1"):
        log_evidence(np.array(values))


def brute(evidence: list[float], alpha: float) -> list[bool]:
    """The closed test, group by group."""
    m = len(evidence)
    groups = [group for size in range(1, m + 1) for group in itertools.combinations(range(m), size)]
    return [all(np.mean([evidence[j] for j in g]) >= 1.0 / alpha for g in groups if i in g) for i in range(m)]


def test_sure_is_the_closed_test() -> None:
    rng = np.random.default_rng(3)
    answered = 0
    for _ in range(200):
        evidence = np.exp(rng.normal(2.0, 3.0, size=rng.integers(1, 8)))
        got = sure(np.log(evidence), 0.1).tolist()
        assert got == brute(evidence.tolist(), 0.1)
        answered += sum(got)
    assert answered > 50


def test_bonferroni_s_limit_suffices_and_less_does_where_others_are_sure() -> None:
    assert sure(np.log([20.0 * 4, 1e-9, 1e-9, 1e-9]), 0.05).tolist() == [True, False, False, False]
    assert sure(np.log([19.9 * 4, 1e-9, 1e-9, 1e-9]), 0.05).tolist() == [False] * 4
    assert sure(np.log([1e9, 1e9, 1e9, 20.1]), 0.05).tolist() == [True] * 4
    assert sure(np.array([1e6, -1e6]), 0.05).tolist() == [True, False]  # without overflow
    with pytest.raises(ValueError, match="alpha"):
        sure(np.zeros(2), 0.0)


@pytest.mark.slow
def test_nothing_is_ever_said_too_often_of_many_questions_at_any_time() -> None:
    """600 runs of 10 questions, half of which depend on each other, looked at after every value."""
    rng, alpha = np.random.default_rng(5), 0.1
    false = 0
    for _ in range(600):
        signs = rng.choice([-1.0, 1.0], size=(60, 10))
        signs[:, 5:] = signs[:, :1] * rng.choice([-1.0, 1.0], size=5)
        said = False
        for n in range(4, 61, 4):
            up, down = log_evidence(signs[:n])
            said = said or bool(sure(np.concatenate([up, down]), alpha).any())
        false += said
    assert false / 600 <= alpha
