"""Evaluations of logs of five sorts, whose truth is known: intervals that hold, refusals, mean weights, and replays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from budget import FACTOR
from heedful import Loop, Settings
from heedful.io import import_lines
from logged import ALPHA, DOWN, ITEMS, LOGS, RISING, SOUND, live, look, truths
from loops import lines_of, small_loop

RUNS = 4 * min(FACTOR, 5)
each_sound = pytest.mark.parametrize("name", SOUND)


@pytest.mark.slow
@each_sound
def test_intervals_miss_no_more_often_than_stated(name: str, tmp_path: Path) -> None:
    """`bench/intervals.py` does it a thousand times."""
    found = [look(name, seed, tmp_path / f"l{seed}", (150, 300)) for seed in range(RUNS)]
    for key in truths(name):
        missed = [each.missed[key] for each in found if key in each.missed]
        assert sum(missed) <= RUNS * ALPHA + 3.0 * math.sqrt(RUNS * ALPHA * (1.0 - ALPHA))
        if name != "posterior" or key[0] == "swapped pairs":
            assert missed, "some log tells it"


def test_a_deterministic_log_gives_no_number_and_says_why(tmp_path: Path) -> None:
    own, other = look("deterministic", 0, tmp_path / "l", (200,)).last.learners
    assert [each.value for each in other.values] == [None, None, None]
    assert [(each.low, each.high, each.difference) for each in other.values] == [(None, None, None)] * 3
    pairs, clicks, lists = other.values
    assert pairs.refused == "no answer prefers one of two neighbours that were shown in either order at random"
    assert "heedful init --learner posterior" in pairs.remedy
    assert (clicks.refused[:35], clicks.remedy) == ("the first two places have 0 clicks ", pairs.remedy)
    assert lists.refused == "100 % of what it would show is not in the log"
    assert "heedful init --sampled 0.01" in lists.remedy
    assert own.values[2].value is not None, "what was shown is known"


@pytest.mark.slow
@each_sound
def test_mean_weights_are_1_within_four_standard_errors(name: str, tmp_path: Path) -> None:
    found = look(name, 1, tmp_path / "l", (400,)).last.learners[1]
    told = [value for value in found.values if value.mean_weight is not None]
    assert bool(told) == (name != "posterior")
    for value in told:
        assert value.warning == ""
        # weights are 0 or w, so sum w^2 / sum w = w, and their mean square is w times their mean
        n, mean = value.comparisons, value.mean_weight or 0.0
        error = (
            math.sqrt((n * mean / value.effective - 1.0) * mean * mean / n) if value.measure == "list value" else 0.1
        )
        assert abs(mean - 1.0) <= 4.0 * error


@pytest.mark.slow
def test_wrong_probabilities_get_no_number(tmp_path: Path) -> None:
    small = look("chances said too small", 0, tmp_path / "a", (200,)).last.learners[1].values[2]
    assert (small.value, small.low, small.high, small.verdict) == (None, None, None, "")
    assert small.refused.startswith("the mean weight is ")
    assert small.refused.endswith(
        ", not 1: logged probabilities are wrong, or some lists were answered more often than others"
    )
    large = look("chances said too large", 0, tmp_path / "b", (200,)).last.learners[1].values[2]
    assert large.value is None
    assert "is not in the log" in large.refused


@pytest.mark.slow
def test_a_mean_weight_a_little_short_of_1_is_told_loudly(tmp_path: Path) -> None:
    """One of two items, each claimed to be shown in 55 of 100 cases: nine tenths of the weight is there."""
    rng = np.random.default_rng(0)
    with small_loop(tmp_path / "l", "perceptron", n_items=2, k=1) as loop:
        start = loop.version
        for t in range(2500):
            item = t % 2
            loop.record(["i0", "i1"], [f"i{item}"], id=f"d{t}", prior=[1.0, 0.0], probability=0.55)
            loop.feedback(f"d{t}", id=f"e{t}", clicks=[f"i{item}"] if rng.random() < 0.5 else [])
        values = loop.evaluate(f"perceptron@{start}").learners[1].values
    [found] = [each for each in values if each.measure == "reward"]
    assert found.mean_weight == pytest.approx(1.0 / 1.1)
    assert found.unsupported == pytest.approx(1.0 - (found.mean_weight or 0.0))
    lacks = f"{100.0 * found.unsupported:.0f} % of what it would show is not in the log"
    assert found.warning.startswith(
        f"the mean weight is {found.mean_weight:.3g}, not 1: {lacks}, or logged probabilities"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "Plackett-Luce", "a learning loop"])
def test_weights_come_from_the_log_bit_for_bit(name: str, tmp_path: Path) -> None:
    """By hand from the exported lines; after the loop was opened again; and in a copy made of the lines."""
    log = LOGS[name]
    settings = {"k": 3, "shrink": 0.0} | log.settings
    with small_loop(tmp_path / "l", log.learner, n_items=3, **settings) as loop:
        live(loop, name, np.random.default_rng(3), 0, 400, np.zeros(500, int))
        found = loop.evaluate(DOWN)
        lines = lines_of(loop)
        encoding = loop.manifest.encoding
    own = None if log.learner == "posterior" else log.learner
    with Loop.open(tmp_path / "l", learner=own) as again:
        assert again.evaluate(DOWN) == found
    with Loop.create(tmp_path / "copy", encoding=encoding, learner=log.learner, settings=Settings(**settings)) as copy:
        assert {each.status for each in import_lines(copy, lines)} <= {"applied", "duplicate"}
        assert copy.evaluate(DOWN).learners == found.learners
    best = [ITEMS[j] for j in RISING]
    shown = [line.record for line in lines if line.record["kind"] == "decision"]
    weights = np.array([(line["shown"] == best) / line["probability"] for line in shown])
    value = next(each for each in found.learners[1].values if each.measure == "list value")
    assert value.comparisons == len(shown) == 400
    assert value.mean_weight == weights.mean()
    assert value.effective == weights.sum() ** 2 / (weights**2).sum()
