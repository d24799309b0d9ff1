"""Query chains, [J15] section 3.2: against the pseudo-code, by hand, and the world that they make."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.diagnostics import sign_test
from heedful.worlds.chains import (
    CONDITIONS,
    chain_feedback,
    degrade,
    first_ranking,
    fit_clicks,
    study,
)
from heedful.worlds.clicks import Cascade, PositionBiased

SEEDS = st.integers(0, 2**32 - 1)


class Chain(NamedTuple):
    grades: Any
    rankings: Any
    clicks: Any


def chains(seed: int, n: int, relevant: float = 0.0) -> list[Chain]:
    """Chains of one to three queries with up to 14 results each; clicks at random, the likelier the relevant."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        grades = rng.choice([-2, -1, 0, 0, 1, 2, 4], 16)
        rankings = [rng.permutation(16)[: rng.integers(0, 15)] for _ in range(rng.integers(1, 4))]
        clicks = []
        for ranking in rankings:
            hit = rng.random(ranking.size) < 0.1 + relevant * (grades[ranking] > 0)
            clicks.append(rng.permutation(ranking[hit]))
        made.append(Chain(grades, tuple(rankings), tuple(clicks)))
    return made


@given(SEEDS)
def test_feedback_and_differences(seed: int) -> None:
    """Those of the pseudo-code, chain by chain."""
    made = chains(seed, 6)
    wanted = []
    for chain in made:
        y = first_ranking(chain.rankings)
        if y.size == 0:
            assert all(ranking.size == 0 for ranking in chain.rankings)
            continue
        y_bar = naive.chain_feedback(chain.rankings, chain.clicks)
        assert chain_feedback(y, chain.clicks).tolist() == y_bar
        r = [max(int(g), 0) / 4 * 5 for g in chain.grades]
        wanted.append(naive.dcg_at_10(r, y_bar) - naive.dcg_at_10(r, y.tolist()))
    got = study(made, clicked_only=False)
    assert not got.differences[got.same].any()
    assert got.differences == pytest.approx(wanted, abs=1e-12)


def test_by_hand() -> None:
    """Shown 0 1 2, then 3 0; clicked 2, then 3 and 2 again. ybar = 2 3 0 1; grades 0 0 2 4 of the four."""
    chain = Chain(
        np.array([0, -2, 2, 4]),
        (np.array([], int), np.array([0, 1, 2]), np.array([3, 0, 2])),
        (np.array([], int), np.array([2]), np.array([3, 2])),
    )
    y = first_ranking(chain.rankings)
    assert y.tolist() == [0, 1, 2]
    assert chain_feedback(y, chain.clicks).tolist() == [2, 3, 0, 1]
    third = 1.0 / np.log2(3.0)
    [d] = study([chain]).differences
    assert d == pytest.approx(2.5 + 5.0 * third - 2.5 / 2.0)
    # reversed: y = 2 1 0, and ybar the same where documents are clicked, for the clicked keep their order
    [d] = study([chain], "reversed").differences
    assert d == pytest.approx(5.0 * third)
    # positions: the third of 2 1 0, then the first and third of 2 0 3: ybar = 0 2 3 1
    [d] = study([chain], "reversed", clicks="positions").differences
    assert d == pytest.approx(2.5 * third + 5.0 / 2.0 - 2.5)


def test_the_sign_test_and_what_is_unchanged() -> None:
    """Ten better, one worse: p = 2 (1 + 11) / 2^11. Of the two at 0, one was clicked on top, the other tied."""
    better = Chain(np.array([0, 1]), (np.array([0, 1]),), (np.array([1]),))
    worse = Chain(np.array([1, 0]), (np.array([0, 1]),), (np.array([1]),))
    top = Chain(np.array([1, 0]), (np.array([0, 1]),), (np.array([0]),))
    tied = Chain(np.array([1, 1]), (np.array([0, 1]),), (np.array([1]),))
    nothing = Chain(np.array([1, 1]), (np.array([0, 1]),), (np.array([], int),))
    got = study([*[better] * 10, worse, top, tied, nothing])
    assert got.differences.size == 13
    assert sign_test(got.differences) == pytest.approx((10, 2, 1, 2 * 12 / 2**11))
    assert got.same.tolist() == [False] * 11 + [True, False]
    assert study([top, nothing], clicked_only=False).same.all()
    assert study([nothing]).differences.size == 0


def test_degraded_rankings() -> None:
    ranking = np.arange(12) * 3
    assert degrade(ranking, "normal").tolist() == ranking.tolist()
    assert degrade(ranking, "swapped").tolist() == [3, 0, *range(6, 36, 3)]
    assert degrade(ranking, "reversed").tolist() == [*range(27, -1, -3), 30, 33]
    for condition in CONDITIONS:
        assert degrade(ranking[:0], condition).tolist() == []
        assert degrade(ranking[:1], condition).tolist() == [0]
    with pytest.raises(ValueError, match="condition: expected normal, swapped, reversed, got 'upside'"):
        degrade(ranking, "upside")
    with pytest.raises(ValueError, match="clicks: expected documents, positions or a person who clicks, got 'ranks'"):
        study([], clicks="ranks")


def test_simulated_people_click_what_they_are_shown() -> None:
    """Who looks at the top alone, and clicks it, agrees with everything: y comes back."""
    made = [chain for chain in chains(1, 40) if len(chain.rankings) == 1]
    content = study(made, "reversed", clicks=PositionBiased(100.0, 1.0))
    assert sign_test(content.differences).equal == content.differences.size
    assert content.same.all()
    # who clicks all that is relevant and nothing else makes no ranking worse, however degraded
    for condition in CONDITIONS:
        gains = study(made, condition, clicks=Cascade(0.0, 0.0, highest=1.0)).differences
        assert (gains < -1e-9).mean() <= 0.1  # grades 1, 2 and 4 tie for a user who clicks everything relevant
        assert (gains > 1e-9).mean() > 0.5


@pytest.mark.slow
def test_fitted_finds_who_clicked() -> None:
    """A person's own clicks on 600 chains give the person back."""
    person, rng = PositionBiased(1.0, 0.2, True, 1.5), np.random.default_rng(0)
    made = []
    for chain in chains(2, 600):
        relevant = (chain.grades > 0) * 1.0
        hits = [person.rank(10, relevant, relevant, 0.0, ranking, rng) for ranking in chain.rankings]
        made.append(chain._replace(clicks=tuple(hits)))
    found = fit_clicks(made)
    assert found.eta == pytest.approx(1.0, abs=0.11)
    assert found.noise == pytest.approx(0.2, abs=0.03)
    assert found.highest == pytest.approx(1.5, abs=0.26)
    with pytest.raises(ValueError, match="chains: expected at least one click, got none"):
        fit_clicks([])
