"""Leaderboards of few votes, of a model that wins nearly all, and of few people, against numerical integration and
simulated boards whose truth is known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit
from scipy.stats import norm

from heedful.boards.leaderboard import POINTS, Leaderboard, leaderboard
from heedful.boards.ranking import rank
from heedful.boards.sentences import influence as influence_told
from heedful.boards.tie_models import probabilities

LOGIT = math.sqrt(8.0 / math.pi)
"""A unit of utility in logits, where matches are nearly equal."""


def wins(*pairs: str, times: int = 1) -> list[dict[str, Any]]:
    """Votes `times` each; "xy" is a win of x over y."""
    return [{"model_a": a, "model_b": b, "winner": "model_a", "times": times} for a, b in pairs]


def both(rows: list[dict[str, Any]]) -> tuple[Any, Leaderboard]:
    """What is said of the same answers as winner and loser, and as votes of an arena."""
    plain = [{"winner": row["model_a"], "loser": row["model_b"], "times": row["times"]} for row in rows]
    return rank(plain), leaderboard(rows)


@pytest.mark.parametrize(
    "rows",
    [
        wins("ab", "ac", "bc"),
        wins("ab"),
        wins("ab", times=5),
        [*wins("ab", times=4), *wins("ba")],
        [*wins("ab", "bc", "cd", times=3), *wins("ba", "dc", "ac")],
    ],
)
def test_both_ways_to_write_the_same_answers_say_the_same(rows: list[dict[str, Any]]) -> None:
    plain, board = both(rows)
    assert board.items == plain.items
    assert board.board.fields()["better_than_next"][:-1] == pytest.approx(
        plain.board.fields()["better_than_next"][:-1], abs=0.03
    )
    assert board.board.alike == plain.board.alike
    assert board.board.fields()["best"] == pytest.approx(plain.board.fields()["best"], abs=0.03)


def test_three_votes_do_not_tell_three_models_apart() -> None:
    board = leaderboard(wins("ab", "ac", "bc"))
    assert board.items == ("a", "b", "c")
    assert board.board.alike in ((("a", "b"), ("b", "c")), (("a", "b", "c"),))
    assert max(board.board.fields()["better_than_next"][:-1]) < 0.85


def gap_posterior(won: int, lost: int) -> tuple[Any, Any]:
    """Gaps of two models on a grid, in logits, and their exact posterior probabilities: the spread of scores is
    log-normal around a unit of utility, by a factor e."""
    gap = np.linspace(-60.0, 60.0, 6_001)
    log_sd = np.linspace(-4.0, 4.0, 161)
    sd = LOGIT * np.exp(log_sd)[:, None] * math.sqrt(2.0)
    prior = norm.pdf(log_sd) @ (norm.pdf(gap / sd) / sd)
    density = np.exp(won * log_expit(gap) + lost * log_expit(-gap)) * prior
    return gap, density / density.sum()


@pytest.mark.parametrize(("won", "lost"), [(1, 0), (20, 0), (19, 1), (3, 2), (100, 0)])
def test_intervals_of_two_models_are_those_of_the_exact_posterior(won: int, lost: int) -> None:
    board = leaderboard([*wins("ab", times=won), *(wins("ba", times=lost) if lost else [])])
    gap, share = gap_posterior(won, lost)
    low, high = np.interp([0.05, 0.95], np.cumsum(share), gap)
    a = board.models.index("a")
    # a score less the average is half a gap
    assert board.by_number("score_low")[a] == pytest.approx(
        1000.0 + 0.5 * POINTS * low, abs=0.05 * POINTS * (high - low)
    )
    assert board.by_number("score_high")[a] == pytest.approx(
        1000.0 + 0.5 * POINTS * high, abs=0.05 * POINTS * (high - low)
    )
    assert board.board.ranking[0].better_than_next == pytest.approx(share[gap > 0.0].sum(), abs=0.02)
    mean = float(share @ gap)
    assert board.score[a] == pytest.approx(1000.0 + 0.5 * POINTS * mean, abs=0.05 * POINTS * (high - low))
    assert float(board.beats(a, 1 - a)) == pytest.approx(float(share @ expit(gap)), abs=0.04)


@pytest.mark.parametrize(("won", "times"), [("ab", 1), ("ab", 30), ("bc", 4)])
def test_intervals_of_three_models_are_those_of_the_exact_posterior(won: str, times: int) -> None:
    """By draws from the prior, weighted by their likelihood: every pair once, and one of them more often."""
    rows = [*wins("ab", "ac", "bc"), *wins(won, times=times)]
    board = leaderboard(rows, influence=False)
    rng = np.random.default_rng(7)
    scores = LOGIT * np.exp(rng.standard_normal((60_000, 1))) * rng.standard_normal((60_000, 3))
    log = sum(row["times"] * log_expit(scores[:, "abc".index(row["model_a"])] - scores[:, "abc".index(row["model_b"])])
              for row in rows)  # fmt: skip
    share = np.exp(log) / np.exp(log).sum()
    assert 1.0 / (share @ share) > 2_000.0  # draws in effect
    points = 1000.0 + POINTS * (scores - scores.mean(axis=1, keepdims=True))
    for i, name in enumerate(board.models):
        at = points[:, "abc".index(name)]
        order = at.argsort()
        low, high = np.interp([0.05, 0.95], np.cumsum(share[order]), at[order])
        assert board.by_number("score_low")[i] == pytest.approx(low, abs=0.1 * (high - low))
        assert board.by_number("score_high")[i] == pytest.approx(high, abs=0.1 * (high - low))
        assert board.score[i] == pytest.approx(share @ at, abs=0.06 * (high - low))


def simulated(people: int, activity: Any, rng: np.random.Generator) -> tuple[list[dict[str, Any]], Any]:
    """Votes about four models by people whose scores differ by N(0, .8^2), and the mean scores."""
    n = 4
    truth = rng.standard_normal(n)
    tastes = 0.8 * rng.standard_normal((people, n))
    who = rng.choice(people, 600, p=activity / activity.sum())
    a = rng.integers(n, size=who.size)
    b = (a + rng.integers(1, n, size=who.size)) % n
    eta = truth[a] - truth[b] + tastes[who, a] - tastes[who, b]
    won = rng.random(who.size) < expit(eta)
    rows = [
        {"model_a": f"m{i}", "model_b": f"m{j}", "winner": "model_a" if w else "model_b", "judge": f"p{u}"}
        for i, j, w, u in zip(a.tolist(), b.tolist(), won.tolist(), who.tolist())
    ]
    return rows, truth - truth.mean()


@pytest.mark.parametrize("activity", ["equal", "unequal"])
def test_intervals_of_few_people_allow_for_tastes(activity: str) -> None:
    """Their widths are about what the scores are off: with independent votes they were a third of it."""
    rng = np.random.default_rng(5)
    each = np.ones(8) if activity == "equal" else 1.0 / np.arange(1, 9)
    inside = []
    for _ in range(12):
        rows, truth = simulated(8, each, rng)
        board = leaderboard(rows, influence=False)
        at = [int(name[1:]) for name in board.models]
        want = 1000.0 + POINTS * truth[at] * 0.9  # people who differ look as if scores were nearer
        inside.append(((board.by_number("score_low") <= want) & (want <= board.by_number("score_high"))).mean())
        assert board.clusters == 8
        assert ["intervals are wider" in each.message for each in board.remarks] == [True]
    assert np.mean(inside) > 0.75


def test_one_person_is_said_to_speak_for_themselves() -> None:
    rows = [{**row, "judge": "p"} for row in wins("ab", "bc", "ac", times=3)]
    board = leaderboard(rows)
    assert board.clusters == 0
    [remark] = board.remarks
    assert remark.message.startswith("Only 1 person voted: intervals are about this person alone")
    nobody = leaderboard(wins("ab", "bc", "ac", times=3))
    assert board.score_sd == pytest.approx(nobody.score_sd)


def test_agreement_of_people_leaves_intervals_as_they_are() -> None:
    """Ten people who draw from the same chances are as ten who are not named."""
    rng = np.random.default_rng(6)
    rows = []
    for a, b in itertools.permutations("abcd", 2):
        for k in range(100):
            won = "model_a" if rng.random() < expit(0.5 * (ord(b) - ord(a))) else "model_b"
            rows.append({"model_a": a, "model_b": b, "winner": won, "judge": f"p{k % 10}"})
    named = leaderboard(rows, influence=False)
    nameless = leaderboard([{k: v for k, v in row.items() if k != "judge"} for row in rows], influence=False)
    assert (named.score_sd >= nameless.score_sd * (1.0 - 1e-9)).all()
    assert (named.score_sd < 1.5 * nameless.score_sd).all()


def test_the_sentence_on_the_votes_that_decide_is_true_of_the_board_without_them() -> None:
    """Without a's win over b the two have both won against c alone: they are level, and the place was open before."""
    rows = wins("ab", "ac", "bc")
    assert influence_told(leaderboard(rows)) == [
        "Whether a or b is better cannot be told, so the first place is open. Without 1 vote of 3 b would be first, or "
        "level with a: 1 win of a over b."
    ]
    without = leaderboard(rows[1:])
    assert without.board.ranking[0].better_than_next == pytest.approx(0.5)
    clear = [*wins("ab", "ac", times=30), *wins("ba", "ca", "bc", "cb", times=10)]
    [told] = influence_told(leaderboard(clear))
    assert told.startswith("Without ")


@pytest.mark.parametrize("ties", ["threshold", "odds", "constant"])
def test_few_votes_with_ties_leave_much_open(ties: str) -> None:
    """Exactly so by integration over the gap, with the fitted tie parameter."""
    tie = {"model_a": "a", "model_b": "b", "winner": "tie", "times": 3}
    board = leaderboard([*wins("ab"), tie], ties=ties)
    gap = np.linspace(-60.0, 60.0, 6_001)
    win, equal, _ = probabilities(board.tie_model, gap, board.tie)
    sd = LOGIT * np.exp(np.linspace(-4.0, 4.0, 161))[:, None] * math.sqrt(2.0)
    share = win * equal**3 * (norm.pdf(np.linspace(-4.0, 4.0, 161)) @ (norm.pdf(gap / sd) / sd))
    share /= share.sum()
    assert board.items == ("a", "b")
    assert board.board.ranking[0].better_than_next == pytest.approx(share[gap > 0.0].sum(), abs=0.05)
    assert board.score[0] - board.score[1] == pytest.approx(POINTS * (share @ gap), abs=0.4 * POINTS * (share @ gap))
