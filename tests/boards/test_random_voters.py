"""People who vote at random are found; honest ones, also with tastes of their own, are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.boards.leaderboard import Leaderboard, leaderboard


def votes(people: int, each: int, seed: int, *, own: float = 0.0, random: int = 0, against: int = 0) -> Any:
    """Votes of so many people about 12 models; the first `random` of them toss coins, the next `against` mean the
    opposite, and the others have scores of their own around those of all."""
    rng = np.random.default_rng(seed)
    n = 12
    truth = np.linspace(-1.5, 1.5, n)
    rows = []
    for who in range(people):
        mine = truth + own * rng.standard_normal(n)
        mine = 0.0 * mine if who < random else -mine if who < random + against else mine
        a = rng.integers(n, size=each)
        b = (a + rng.integers(1, n, size=each)) % n
        won = rng.random(each) < 1.0 / (1.0 + np.exp(mine[b] - mine[a]))
        rows += [
            {"model_a": f"m{i}", "model_b": f"m{j}", "winner": "model_a" if w else "model_b", "judge": f"p{who}"}
            for i, j, w in zip(a.tolist(), b.tolist(), won.tolist())
        ]
    return rows


def found(board: Leaderboard) -> dict[str, bool]:
    assert board.random is not None
    return {each.person: each.against for each in board.random.found}


def test_coin_tossers_and_contrarians_are_found_and_nobody_else() -> None:
    board = leaderboard(votes(100, 200, 1, own=0.3, random=5, against=2), influence=False)
    got = found(board)
    assert set(got) == {f"p{k}" for k in range(7)}
    assert {who for who, against in got.items() if against} == {"p5", "p6"}
    assert board.random is not None
    assert board.random.tested == 100
    assert board.random.rate == 0.05
    for each in board.random.found:
        assert each.votes == 200
        assert 0.0 <= each.agreed < each.expected < 1.0
        assert each.p < 0.05
    [remark] = [each for each in board.remarks if each.kind == "random"]
    assert set(remark.people) == set(got)
    assert remark.message.startswith("7 of 100 people do not vote as the board predicts")


@pytest.mark.slow
@pytest.mark.parametrize("own", [0.0, 0.8])
def test_where_all_are_honest_hardly_anybody_is_named(own: float) -> None:
    """P(anyone is named) is at most 5 %, also if people have tastes of their own: 40 boards, so 2 of them, and more
    than 6 with a probability below 2 %."""
    named = sum(bool(found(leaderboard(votes(50, 40, 100 + k, own=own), influence=False))) for k in range(40))
    assert named <= 6


def test_the_spread_of_tastes_is_estimated() -> None:
    board = leaderboard(votes(400, 60, 3, own=0.6), influence=False)
    assert board.random is not None
    # scores of everybody are spread less than those of one person: the board's are fitted to all, on a flatter scale
    assert board.random.taste == pytest.approx(0.6, abs=0.15)
    same = leaderboard(votes(400, 60, 4), influence=False)
    assert same.random is not None
    assert same.random.taste < 0.25


@pytest.mark.slow
def test_among_those_named_few_are_honest() -> None:
    """The false-discovery rate over boards with coin tossers."""
    wrong = right = 0
    for seed in range(12):
        got = found(leaderboard(votes(60, 200, 200 + seed, own=0.4, random=6), influence=False))
        wrong += sum(int(who[1:]) >= 6 for who in got)
        right += sum(int(who[1:]) < 6 for who in got)
    assert right >= 12 * 6 * 0.8
    assert wrong <= 0.1 * (wrong + right)


def test_without_people_or_with_few_nobody_is_judged() -> None:
    rows = votes(19, 30, 5, random=3)
    assert leaderboard(rows).random is None
    assert leaderboard([{**row, "judge": "one"} for row in rows]).random is None
    bare = [{name: value for name, value in row.items() if name != "judge"} for row in rows]
    assert leaderboard(bare).random is None
