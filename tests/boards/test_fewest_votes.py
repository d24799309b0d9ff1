"""The proof that fewer votes do not turn the first place: each bound against what it bounds, and the answer against all
sets of votes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import heedful.boards.fewest_votes as fewest_votes
from budget import FACTOR
from drawn_votes import draw_votes
from heedful.boards.bradley_terry import Cells, Fit, count_cells, fit
from heedful.boards.fewest_votes import Moves, Node, Race, fill, find_fewest
from heedful.boards.influence import find_influence
from heedful.boards.tie_models import (
    MOST_FOURTH,
    MOST_THIRD,
    TieModel,
    terms,
    third_derivatives,
)

MODELS: tuple[TieModel, ...] = ("half", "constant", "odds", "threshold")


def board(n: int, count: int, seed: int, model: TieModel, spread: float = 0.5, covariates: int = 0) -> Cells:
    rng = np.random.default_rng([n, count, seed])
    truth = spread * rng.standard_normal(n)
    a, b, outcome = draw_votes(truth, count, model, rng)
    if covariates:
        return Cells(a, b, outcome, np.ones(count), rng.standard_normal((count, covariates)))
    return count_cells(n, a, b, outcome, np.ones(count, np.int64))[0]


def race_of(n: int, cells: Cells, model: TieModel) -> tuple[Race, Fit]:
    found = fit(n, cells, model)
    order = (-found.scores).argsort()
    return Race(n, cells, found, int(order[0]), int(order[1])), found


# ---------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("model", MODELS)
def test_third_derivatives_are_the_slope_of_the_second_and_within_their_bounds(model: TieModel) -> None:
    eta, outcome = (each.ravel() for each in np.meshgrid(np.linspace(-8.0, 8.0, 641), np.arange(3)))
    step = 1e-4
    for tie in (0.05, 0.4, 1.5, 4.0):
        third, parts = third_derivatives(model, eta, tie, outcome)
        up, down = (terms(model, eta + side * step, tie, outcome).eta_eta for side in (1, -1))
        assert third == pytest.approx(-(up - down) / (2.0 * step), abs=1e-6)
        assert (np.abs(third) <= MOST_THIRD * parts + 1e-12).all()
        further = third_derivatives(model, eta + 1e-4, tie, outcome)[0]
        assert (np.abs(further - third) <= MOST_FOURTH * parts * 1e-4 + 1e-12).all()


def test_the_bounds_of_derivatives_are_reached_by_the_logistic_function() -> None:
    eta = np.linspace(-4.0, 4.0, 80_001)
    third = np.abs(third_derivatives("half", eta, 0.0, np.full(eta.size, 2))[0])
    assert third.max() == pytest.approx(MOST_THIRD, rel=1e-6)
    assert (np.abs(np.diff(third)) / np.diff(eta)).max() == pytest.approx(MOST_FOURTH, rel=1e-3)


# ---------------------------------------------------------------------------- bounds


def set_within(race: Race, at: Any, moves: Moves, rng: np.random.Generator) -> Any:
    """A random set of votes to which `moves` lead."""
    down = draw(moves.down, int(rng.integers(moves.back, moves.most_back + 1)), rng)
    most = int(down.sum() + moves.room)
    rare = draw(np.where(race.rare, moves.up, 0.0), int(rng.integers(0, min(moves.most_rare, most) + 1)), rng)
    often = draw(np.where(race.rare, 0.0, moves.up), int(rng.integers(0, most - rare.sum() + 1)), rng)
    return at.x - down + rare + often


def draw(cap: Any, count: int, rng: np.random.Generator) -> Any:
    """`count` of the votes `cap` of each cell, at random from few cells, so that they pull in one direction."""
    out = np.zeros(cap.size)
    cells = rng.permutation(np.flatnonzero(cap))[: rng.integers(1, 8)]
    for k in cells:
        out[k] = min(cap[k], count - out.sum())
    return out


@pytest.mark.parametrize("model", MODELS)
def test_no_set_of_a_board_is_below_the_bound_or_out_of_the_box(model: TieModel) -> None:
    assert check_bounds(model, False, 0, boards=1)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("apart", "covariates"), [(False, 0), (True, 0), (False, 1)])
def test_no_set_is_below_the_bound_or_out_of_the_box(model: TieModel, apart: bool, covariates: int) -> None:
    """With covariates votes between others are never left out."""
    assert check_bounds(model, apart, covariates, boards=2 * min(FACTOR, 3)) > 3


def check_bounds(model: TieModel, apart: bool, covariates: int, boards: int) -> int:
    """Check sets of votes of so many boards against their bounds, and return how many bounds there were."""
    rng = np.random.default_rng(7)
    finite = 0
    for seed in range(boards):
        n, count = 5, 300
        cells = board(n, count, seed, model, covariates=covariates)
        race, _ = race_of(n, cells, model)
        most = float(rng.integers(3, 8 if covariates else 16))
        high = np.minimum(np.where(race.helpful | (not apart), race.weight, 0.0), most)
        best = race.level(most, Node(np.zeros_like(high), high, 0.0), race.start)
        assert best is not None
        race.apart = apart
        race.rare = (best.b < 0.6 * best.b[best.x > 0.0].min()) & (best.x == 0.0) & (high > 0.0)
        for at in (best, level_at(race, draw(high, int(most), rng))):
            room = most - float(at.x.sum())
            for back, rare in ((0.0, 2.0), (2.0, 3.0), (most, most)):
                moves = Moves(high - at.x, at.x, 0.0, min(back, float(at.x.sum())), room, 0.0, rare)
                bound, box = race.bound(at, moves), race.box(at, moves)
                if box is None:
                    assert bound == -np.inf
                    continue
                finite += 1
                sets = [set_within(race, at, moves, rng) for _ in range(15)]
                if back == most:  # then any set will do, so also the ones with the greatest and the least b
                    sets += [fill(high, at.b, most), fill(high, at.b.max() + 1.0 - at.b, most)]
                for x in sets:
                    there = level_at(race, x)
                    assert there.value >= bound - 1e-9
                    assert (np.abs(race.lines @ (there.phi - at.phi)) <= box.lines + 1e-9).all()
    return finite


@pytest.mark.parametrize("model", MODELS)
def test_with_phi_the_lead_changes_to_second_order_alone_and_as_the_curvature_says(model: TieModel) -> None:
    race, found = race_of(5, board(5, 300, 1, model), model)
    at = level_at(race, fill(race.weight, race.along + 0.6, 9.0))
    left = race.weight - at.x
    y = -at.inverse @ ((left * at.got.eta_eta * race.along) @ race.A)
    assert at.v == pytest.approx(race.along + race.A @ y)

    def lead(phi: Any) -> float:
        got = terms(model, race.A @ phi, found.tie, race.outcome)
        return float((left * got.eta) @ at.v - (race.prior * y) @ phi)

    assert lead(at.phi) == pytest.approx(at.value, abs=1e-9)
    rng = np.random.default_rng(2)
    for _ in range(5):
        d = 1e-3 * rng.standard_normal(at.phi.size)
        up, down = lead(at.phi + d), lead(at.phi - d)
        assert up - down == pytest.approx(0.0, abs=1e-6)
        assert up + down - 2.0 * lead(at.phi) == pytest.approx(d @ race.curvature(at) @ d, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_a_vote_between_two_others_is_never_worth_more_than_its_price(model: TieModel) -> None:
    """And a vote with one of the two that speaks against the challenger never lowers D, however few votes are left."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        race, _ = race_of(6, board(6, 120, seed, model, spread=1.0), model)
        none = np.zeros_like(race.weight)
        price = race._price(level_at(race, none), Moves(none, none, 0.0, 0.0, 0.0, 0.0, 0.0))
        for _ in range(10):
            some = rng.binomial(race.weight.astype(int), rng.random())
            between = level_at(race, np.where(race.between, some, 0.0)).b[race.between]
            assert (between <= price + 1e-9).all()
            any_left = level_at(race, np.where(race.helpful, 0.0, some)).b
            assert (any_left[~race.helpful & ~race.between] <= 1e-9).all()


def level_at(race: Race, x: Any) -> Any:
    found = race.level(float(x.sum()), Node(x, x, 0.0), race.start)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_what_a_range_of_sets_is_narrowed_to_keeps_every_set_that_does(apart: bool) -> None:
    """Whatever value of D is asked for, and whichever votes are left out already, rare ones among them."""
    rng = np.random.default_rng(5)
    kept = cut = 0
    for seed in range(64 if FACTOR > 1 else 24):
        model = MODELS[seed % 4]
        race, _ = race_of(5, board(5, 1_000, seed, model), model)
        race.apart = apart
        allowed = race.helpful | (not apart)
        b = level_at(race, np.zeros_like(race.weight)).b
        race.rare = allowed & (b > 0.25)  # so that the sets with a low D have many of them
        most = float(rng.integers(4, 10))
        low = draw(np.where(allowed, race.weight, 0.0), int(rng.integers(0, 3)), rng)
        high = np.where(allowed, np.minimum(low + rng.integers(0, 4, low.size), race.weight), 0.0)
        some, room = high - low, most - low.sum()
        best = low + fill(some, b, room)
        sets = [low + draw(some, int(rng.integers(0, room + 1)), rng) for _ in range(10)]
        sets += [best - draw(best - low, int(rng.integers(0, room + 1)), rng) for _ in range(10)]
        values = [level_at(race, x).value for x in sets]
        rare = float(min(x[race.rare].sum() for x in sets))
        node = Node(low, high, rare)
        at = level_at(race, sets[int(np.argsort(values)[rng.integers(10, len(sets))])])
        for zero in np.quantile(values, [0.0, 0.1, 0.25, 0.4]).tolist():
            race.looks = 200
            rest = race.narrow(at, node, most, zero - 1e-9)
            for x, value in zip(sets, values):
                if value < zero - 1e-9:
                    kept += 1
                    assert rest is not None
                    assert ((rest.low <= x) & (x <= rest.high)).all()
                    assert x[race.rare].sum() >= rest.rare
            cut += rest is None or rest.rare > rare or (rest.high - rest.low).sum() < (high - low).sum()
    assert kept > 200
    assert cut >= 2


# ---------------------------------------------------------------------------- answers


def scores_of(n: int, cells: Cells, weight: Any, model: TieModel, tie: float, sd: float) -> Any:
    """The scores of the greatest penalised likelihood, by a general method."""
    a, b, outcome = cells.first, cells.second, cells.outcome

    def value(u: Any) -> float:
        eta = u[a] - u[b]
        if model == "threshold":
            both = np.log(np.maximum(1.0 - expit(eta - tie) - expit(-eta - tie), 1e-300))
            log = np.where(outcome == 2, log_expit(eta - tie), np.where(outcome == 0, log_expit(-eta - tie), both))
        elif model == "odds":
            total = np.logaddexp(np.logaddexp(0.5 * eta, -0.5 * eta), tie)
            log = np.where(outcome == 2, 0.5 * eta, np.where(outcome == 0, -0.5 * eta, tie)) - total
        elif model == "constant":
            log = np.where(outcome == 2, log_expit(eta), np.where(outcome == 0, log_expit(-eta), 0.0))
        else:
            log = 0.5 * outcome * log_expit(eta) + (1.0 - 0.5 * outcome) * log_expit(-eta)
        return float(-(weight @ log) + 0.5 * (u @ u) / sd**2)

    return minimize(value, np.zeros(n), method="BFGS", options={"gtol": 1e-7}).x


@pytest.mark.slow
@pytest.mark.parametrize("model", ["constant", "odds", "threshold"])
@pytest.mark.parametrize("seed", range(4 if FACTOR > 1 else 1))
def test_on_small_boards_with_ties_it_is_the_least_of_all_sets(model: TieModel, seed: int) -> None:
    n = 3
    cells = board(n, 20, seed, model, spread=0.1)
    found = fit(n, cells, model)
    got = find_influence(cells, found)
    assert got is not None
    assert got.votes is not None
    assert got.exact
    most = [int(w) for w in cells.weight]
    leader, turned = got.first, []
    for size in range(got.votes + 1):
        for taken in itertools.product(*(range(min(w, size) + 1) for w in most)):
            if sum(taken) == size:
                u = scores_of(n, cells, cells.weight - np.array(taken), model, found.tie, found.sd)
                if np.delete(u, leader).max() >= u[leader] - 1e-5:
                    turned.append(size)
        if turned:
            break
    assert turned
    assert turned[0] == got.votes


@pytest.mark.parametrize(
    ("model", "n", "count"), [*((model, 10, 3_000) for model in MODELS), ("half", 4, 300), (MODELS[-1], 10, 100_000)]
)
def test_close_races_are_decided_exactly_and_no_near_set_does_better(model: TieModel, n: int, count: int) -> None:
    cells = next(
        cells
        for seed in range(40)
        for cells in [board(n, count, seed, model)]
        for found in [fit(n, cells, model)]
        if 0.02 < np.diff(np.sort(-found.scores))[0] * np.sqrt(count / n) < 2.0
    )
    found = fit(n, cells, model)
    got = find_influence(cells, found)
    assert got is not None
    assert got.votes
    assert got.exact
    # no exchange of votes makes a set of one vote less do
    race = Race(n, cells, found, got.first, got.second)
    most = float(got.votes - 1)
    at = race.level(most, Node(np.zeros_like(race.weight), race.weight, 0.0), race.start)
    assert at is not None
    assert at.value > 0.0
    rng = np.random.default_rng(1)
    for _ in range(30):
        back = draw(at.x, int(rng.integers(1, most + 1)) if most else 0, rng)
        x = at.x - back + draw(race.weight - at.x, int(back.sum()), rng)
        assert level_at(race, x).value > 0.0


def test_what_is_not_proved_is_said_and_what_is_proved_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    n, cells = 5, board(5, 1_000, 1, "half", spread=0.2)
    found = fit(n, cells, "half")
    order = (-found.scores).argsort().tolist()
    whole = find_fewest(n, cells, found, order[0], order[1:])
    assert whole is not None
    assert whole.at_least == whole.x.sum()
    monkeypatch.setattr(fewest_votes, "WAYS", ((1, False),))
    monkeypatch.setattr(fewest_votes, "FAR", 0.12)
    some = find_fewest(n, cells, found, order[0], order[1:])
    assert some is not None
    assert 1 <= some.at_least < some.x.sum() == whole.x.sum()
    monkeypatch.setattr(fewest_votes, "MOST_CELLS", 10)
    assert find_fewest(n, cells, found, order[0], order[1:]) is None


@pytest.mark.slow
def test_with_covariates_it_is_the_least_of_all_single_votes_and_pairs() -> None:
    checked = 0
    for seed in range(30 if FACTOR > 1 else 12):
        cells = board(4, 40, seed, "half", spread=0.2, covariates=1)
        found = fit(4, cells, "half")
        got = find_influence(cells, found)
        assert got is not None
        if got.votes not in (1, 2):
            continue
        checked += 1
        assert got.exact
        least = 3
        for size in range(1, got.votes + 1):
            for some in itertools.combinations(range(40), size):
                weight = np.ones(40)
                weight[list(some)] = 0.0
                again = fit(4, cells._replace(weight=weight), "half", sd=found.sd, start=found)
                if np.delete(again.scores, got.first).max() >= again.scores[got.first] - 1e-7:
                    least = min(least, size)
        assert least == got.votes
    assert checked >= (3 if FACTOR > 1 else 1)


def test_covariates_that_say_the_same_share_the_effect_and_break_nothing() -> None:
    for seed in (7, 32, 33):
        rng = np.random.default_rng(seed)
        a = rng.integers(4, size=28)
        b = (a + rng.integers(1, 4, size=28)) % 4
        outcome = rng.choice([0, 2], size=28)
        z = rng.choice([-1.0, 0.0, 1.0], size=(28, 1))
        cells = Cells(a, b, outcome, np.ones(28), np.column_stack([z, z]))
        found = fit(4, cells, "half")
        assert found.gamma[0] == pytest.approx(found.gamma[1], abs=1e-9)
        got = find_influence(cells, found)
        assert got is not None
        assert got.votes is not None
        assert 1 <= got.at_least <= got.votes
