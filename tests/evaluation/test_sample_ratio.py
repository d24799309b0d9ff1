"""Whether one arm is answered less often: false alarms at all looks together, and what it finds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from heedful.evaluation.sample_ratio import BETS, log_evidence, steps

HOUR = 3600.0


def logs(rng: np.random.Generator, n: int, people: int, control: float, shares: tuple[float, float]) -> tuple[Any, ...]:
    """(shown, answered (nan: never), control arm, person) of n lists, one a minute, answered after some minutes."""
    shown, arm = 60.0 * np.arange(n), rng.random(n) < control
    person = rng.integers(people, size=n)
    habit = rng.random(people)  # people differ, and answer more the longer it goes on
    p = np.where(arm, shares[1], shares[0]) * (0.5 + 0.5 * habit[person]) * (0.7 + 0.3 * np.arange(n) / n)
    after = np.where(rng.random(n) < p, rng.exponential(600.0, n), np.nan)
    return shown, shown + after, arm, person


def looked(log: tuple[Any, ...], control: float, until: float) -> float:
    shown, answered, arm, person = log
    there = shown <= until
    known = np.where(answered <= until, answered, np.nan)
    x, order = steps(shown[there], known[there], arm[there], control, 2.0 * HOUR, until)
    return log_evidence(x, person[there][order])


@pytest.mark.parametrize(("people", "control"), [(1_000_000, 0.3), (40, 0.3), (40, 0.05)])
def test_sound_logs_raise_it_in_at_most_alpha_of_all_at_any_of_ten_looks(people: int, control: float) -> None:
    rng, raised = np.random.default_rng(1), 0
    for _ in range(40):
        log = logs(rng, 400, people, control, (0.6, 0.6))
        raised += max(looked(log, control, 60.0 * until) for until in range(40, 401, 40)) >= math.log(20.0)
    assert raised <= 40 * 0.05 + 3.0 * math.sqrt(40 * 0.05 * 0.95)


@pytest.mark.parametrize("shares", [(0.9, 0.3), (0.3, 0.9)])
def test_a_difference_is_found_in_either_direction(shares: tuple[float, float]) -> None:
    rng = np.random.default_rng(2)
    found = [looked(logs(rng, 600, 100, 0.3, shares), 0.3, 1e9) >= math.log(20.0) for _ in range(20)]
    assert sum(found) == 20


def test_the_capital_is_fair_by_every_assignment_of_arms() -> None:
    """Mean 1 over all arms of six lists of three people, exactly, whichever of them were answered and when."""
    shown, person = np.arange(6.0), np.array([0, 1, 0, 2, 0, 1])
    answered = np.array([1.5, np.nan, 4.0, 3.5, np.nan, 5.5])
    total = Fraction(0)
    for arms in product((False, True), repeat=6):
        x, order = steps(shown, answered, np.array(arms), 0.25, 10.0, 100.0)
        weight = Fraction(1, 4) ** sum(arms) * Fraction(3, 4) ** (6 - sum(arms))
        total += weight * Fraction(math.exp(log_evidence(x, person[order])))
    assert float(total) == pytest.approx(1.0, abs=1e-12)


def test_what_is_neither_answered_nor_old_enough_does_not_count() -> None:
    shown, answered = np.array([0.0, 90.0, 95.0]), np.array([np.nan, 91.0, np.nan])
    x, order = steps(shown, answered, np.array([True, False, True]), 0.5, 50.0, 100.0)
    assert order.tolist() == [0, 1]  # the first at 50, when its time was over; the second at 91
    assert x[0] < 0.0  # a control list without an answer
    assert x[1] < 0.0  # a learned one with an answer
    assert log_evidence(np.zeros(0), np.zeros(0, np.int64)) == 0.0


def test_nobody_decides_alone() -> None:
    """A person multiplies the capital by two at most, however many lists they have."""
    x = np.full(100_000, 0.9)
    assert log_evidence(x, np.zeros(100_000, np.int64)) <= math.log(2.0)
    assert log_evidence(x[:4], np.arange(4)) <= 4.0 * math.log(2.0) < math.log(20.0)
    assert all(0.0 < bet <= 1.0 for bet in BETS)
