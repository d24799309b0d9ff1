"""Scores as of chess: their odds are those of the model, in the middle; who is anchored stands where told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from heedful.boards.elo import scores
from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.comparison_table import answer_counts
from heedful.inference.gp.mixture import mixture
from heedful.inference.gp.posterior import Posterior


def elo(a: float, b: float) -> float:
    """P(a wins) by Elo's formula."""
    return float(1.0 / (1.0 + 10.0 ** ((b - a) / 400.0)))


@pytest.mark.parametrize("d", np.linspace(-1.5, 1.5, 31).tolist())
def test_the_odds_of_scores_are_those_of_the_model(d: float) -> None:
    got = scores(Posterior(np.array([d, 0.0]), np.zeros((2, 2))))
    assert elo(*got.score.tolist()) == pytest.approx(float(ndtr(d)), abs=0.02)
    assert got.score.mean() == pytest.approx(1000.0)
    assert got.low.tolist() == got.score.tolist() == got.high.tolist()


def test_in_the_middle_they_have_the_same_slope() -> None:
    got = scores(Posterior(np.array([1e-4, 0.0]), np.zeros((2, 2)))).score
    assert (elo(*got.tolist()) - 0.5) / 1e-4 == pytest.approx(1.0 / np.sqrt(2.0 * np.pi), rel=1e-4)


COV = np.array([[0.5, 0.1, 0.0], [0.1, 0.2, 0.05], [0.0, 0.05, 0.9]])
MEAN = np.array([0.4, -0.3, 1.1])


def test_intervals_hold_nine_of_ten() -> None:
    posterior = mixture([0.7, 0.3], [Posterior(MEAN, COV), Posterior(MEAN + np.array([0.1, 0.0, 0.0]), 1.2 * COV)])
    draws = posterior.draws(200_000)
    got = scores(posterior)
    points = got.score.std() / posterior.mean.std()
    centred = 1000.0 + points * (
        draws - draws.mean(axis=1, keepdims=True) - posterior.mean.mean() + posterior.mean.mean()
    )
    inside = ((centred >= got.low) & (centred <= got.high)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.01)


def test_who_is_anchored_stands_where_told() -> None:
    posterior = Posterior(MEAN, COV)
    free, got = scores(posterior), scores(posterior, (1, 1200.0))
    assert (got.low[1], got.score[1], got.high[1]) == (1200.0, 1200.0, 1200.0)
    np.testing.assert_allclose(np.diff(got.score), np.diff(free.score))
    draws = posterior.draws(200_000)
    points = free.score.std() / MEAN.std()
    against = 1200.0 + points * (draws - draws[:, [1]])
    inside = ((against >= got.low) & (against <= got.high)).mean(axis=0)
    np.testing.assert_allclose(inside[[0, 2]], 0.9, atol=0.01)


def test_votes_are_the_answers_that_judge_an_item() -> None:
    choices = tabulate(
        [
            Comparison("p", (("a",), ("b",)), 3),
            Comparison("q", (("b", "c"),), 2),
            Comparison("q", (("a",), ("b", "c"))),
            Comparison("q", (("a", "c"),), 9, judged=False),
        ],
        "abcd",
    )
    assert answer_counts(choices).tolist() == [4, 6, 3, 0]
