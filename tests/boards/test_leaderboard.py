"""Leaderboards of arenas: scores, intervals, places, covariates, sides, categories, against oracles of their own."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit
from scipy.stats import norm

from heedful.boards import bradley_terry, tastes
from heedful.boards import leaderboard as board_module
from heedful.boards.bradley_terry import Cells, count_cells, fit
from heedful.boards.leaderboard import POINTS, Leaderboard, leaderboard
from heedful.boards.score_posterior import infer_scores
from heedful.boards.sentences import influence as influence_told
from heedful.boards.tie_models import TIE_MODELS, TieModel, initial_tie, probabilities, terms

SAID = {2: "model_a", 1: "tie", 0: "model_b"}


def votes(n: int, count: int, seed: int, *, ties: TieModel | None = None, people: int = 0, **more: float) -> Any:
    """Rows of votes about n models, and the true scores in logits, less their mean."""
    rng = np.random.default_rng(seed)
    truth = 0.8 * rng.standard_normal(n)
    a = rng.integers(n, size=count)
    b = (a + rng.integers(1, n, size=count)) % n
    x = rng.standard_normal((count, 2))
    eta = truth[a] - truth[b] + more.get("side", 0.0) + more.get("effect", 0.0) * (x[:, 0] - x[:, 1])
    u = rng.random(count)
    win, tie, _ = probabilities(ties or "half", eta, initial_tie(ties, 0.3) if ties else 0.0)
    outcome = np.where(u < win, 2, np.where(u < win + tie, 1, 0))
    rows = [
        {"model_a": f"m{i}", "model_b": f"m{j}", "winner": SAID[o], "length_a": p, "length_b": q}
        for i, j, o, (p, q) in zip(a.tolist(), b.tolist(), outcome.tolist(), x.tolist())
    ]
    if people:
        for row, who in zip(rows, rng.integers(people, size=count).tolist()):
            row["judge"] = f"p{who}"
    return rows, truth - truth.mean()


def numbers(rows: list[dict[str, Any]], board: Leaderboard) -> tuple[Any, Any, Any]:
    at = {name: i for i, name in enumerate(board.models)}
    said = {word: outcome for outcome, word in SAID.items()}
    return tuple(
        np.array(column)
        for column in zip(*((at[row["model_a"]], at[row["model_b"]], said[row["winner"]]) for row in rows))
    )


def sd_of(rows: list[dict[str, Any]], board: Leaderboard) -> float:
    """The standard deviation of scores that the fit found, in logits."""
    first, second, outcome = numbers(rows, board)
    cells, _ = count_cells(len(board.models), first, second, outcome, np.ones(len(rows), np.int64))
    return fit(len(board.models), cells, board.tie_model).sd


# ---------------------------------------------------------------------------- scores


def test_three_wins_of_four_are_the_logit_of_three_quarters() -> None:
    cells = Cells(np.array([0, 1]), np.array([1, 0]), np.array([2, 2]), np.array([3_000.0, 1_000.0]), np.empty((2, 0)))
    found = fit(2, cells, "half", sd=20.0)
    assert found.scores[0] - found.scores[1] == pytest.approx(math.log(3.0), abs=1e-3)
    posterior = infer_scores(2, cells, found, None).gaussians
    assert posterior is not None
    cov = posterior.cov
    # the variance of a logit is 1 / (n p (1 - p))
    assert cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1] == pytest.approx(1.0 / (4_000 * 0.75 * 0.25), rel=0.01)


def test_scores_are_those_of_a_logistic_bradley_terry() -> None:
    rows, _ = votes(6, 800, 1)
    board = leaderboard(rows)
    first, second, outcome = numbers(rows, board)
    sd = sd_of(rows, board)

    def loss(u: Any) -> Any:
        return np.logaddexp(0.0, -np.where(outcome == 2, 1, -1) * (u[first] - u[second])).sum() + u @ u / (2 * sd * sd)

    want = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-6}).x
    assert board.score - 1000.0 == pytest.approx(POINTS * (want - want.mean()), abs=0.02)
    assert board.score.mean() == pytest.approx(1000.0)
    assert [board.models[i] for i in (-want).argsort()] == list(board.items)


@pytest.mark.slow
@pytest.mark.parametrize("people", [0, 60])
def test_intervals_are_those_of_the_curvature_or_of_the_sandwich_of_many_people(
    people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tastes, "MANY_PEOPLE", 50)
    rows, _ = votes(5, 2_500, 2, people=people)
    board = leaderboard(rows)
    assert board.clusters == people
    first, second, outcome = numbers(rows, board)
    sd, n = sd_of(rows, board), 5
    u = (board.score - 1000.0) / POINTS
    X = np.zeros((len(rows), n))
    X[np.arange(len(rows)), first], X[np.arange(len(rows)), second] = 1.0, -1.0
    p = 1.0 / (1.0 + np.exp(-(X @ u)))
    s = X * (0.5 * outcome - p)[:, None]
    if people:
        who = np.array([int(row["judge"][1:]) for row in rows])
        s = np.array([s[who == k].sum(axis=0) for k in range(people)]) * math.sqrt(people / (people - 1))
    bread = np.linalg.inv(X.T @ ((p * (1 - p))[:, None] * X) + np.eye(n) / sd**2)
    cov = bread @ (s.T @ s + np.eye(n) / sd**2) @ bread if people else bread
    centre = np.eye(n) - 1.0 / n
    half = 1.6448536 * POINTS * np.sqrt((centre @ cov @ centre).diagonal())
    assert board.by_number("score_high") - board.score == pytest.approx(half, rel=1e-3)
    assert board.score - board.by_number("score_low") == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize("model", TIE_MODELS)
def test_each_model_of_ties_is_recognised_and_recovered(model: TieModel) -> None:
    """From the votes that it expects."""
    truth, tie = np.array([0.9, 0.3, -0.2, -1.0]), initial_tie(model, 0.25)
    pairs = np.array(list(itertools.permutations(range(4), 2)))
    chances = probabilities(model, truth[pairs[:, 0]] - truth[pairs[:, 1]], tie)
    assert sum(chances) == pytest.approx(1.0)
    cells = Cells(
        np.tile(pairs[:, 0], 3),
        np.tile(pairs[:, 1], 3),
        np.repeat([2, 1, 0], len(pairs)),
        1e6 * np.concatenate(chances),
        np.empty((3 * len(pairs), 0)),
    )
    found = {each: fit(4, cells, each) for each in TIE_MODELS}
    assert max(found, key=lambda each: found[each].log) == model
    assert found[model].scores == pytest.approx(truth - truth.mean(), abs=1e-3)
    assert found[model].tie == pytest.approx(tie, abs=1e-3)


@pytest.mark.parametrize("model", [*TIE_MODELS, "half"])
@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_derivatives_are_those_of_the_likelihood(model: TieModel, outcome: int) -> None:
    eta, tie, h = np.array([-3.0, -0.5, 0.0, 0.7, 2.0]), 0.7, 1e-5
    said = np.full(eta.size, outcome)
    here = terms(model, eta, tie, said)
    up, down = terms(model, eta + h, tie, said), terms(model, eta - h, tie, said)
    assert here.eta == pytest.approx((up.log - down.log) / (2 * h), abs=1e-6)
    assert here.eta_eta == pytest.approx(-(up.eta - down.eta) / (2 * h), abs=1e-6)
    if model != "half":
        assert here.eta_tie == pytest.approx(-(up.tie - down.tie) / (2 * h), abs=1e-6)
        up, down = terms(model, eta, tie + h, said), terms(model, eta, tie - h, said)
        assert here.tie == pytest.approx((up.log - down.log) / (2 * h), abs=1e-6)
        assert here.tie_tie == pytest.approx(-(up.tie - down.tie) / (2 * h), abs=1e-6)


@pytest.mark.parametrize("model", [*TIE_MODELS, "half"])
def test_each_of_many_votes_has_the_derivatives_that_it_has_alone(model: TieModel) -> None:
    rng = np.random.default_rng(0)
    eta, outcome = 3.0 * rng.standard_normal(40_001), rng.integers(3, size=40_001)
    many = np.stack(terms(model, eta, 0.7, outcome))
    some = np.array([0, 1, 16_383, 16_384, 20_000, 32_767, 32_768, 40_000])
    alone = np.column_stack([np.concatenate(terms(model, eta[[i]], 0.7, outcome[[i]])) for i in some])
    np.testing.assert_allclose(many[:, some], alone, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_names_and_sides_swapped_give_the_mirrored_board(seed: int, tied: bool) -> None:
    """The votes that decide the first place are not looked for: they have tests of their own, and take long."""
    rows, _ = votes(4, 60, seed, ties="threshold" if tied else None)
    swap = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    turned = [
        {"model_a": f"x{row['model_b']}", "model_b": f"x{row['model_a']}", "winner": swap[row["winner"]]}
        for row in rows
    ]
    one, two = (leaderboard(each, influence=False) for each in (rows, turned))
    at = [two.models.index(f"x{name}") for name in one.models]
    assert one.score == pytest.approx(two.score[at], abs=1e-4)
    turned_rows = {row.item: row for row in two.board.ranking}
    for row in one.board.ranking:
        other = turned_rows[f"x{row.item}"]
        assert (row.score_low, row.score_high) == pytest.approx((other.score_low, other.score_high), abs=1e-4)
        assert row.votes == other.votes
    assert (one.wins == two.wins[np.ix_(at, at)]).all()
    assert (one.ties == two.ties[np.ix_(at, at)]).all()
    lost = [{**row, "winner": swap[row["winner"]]} for row in rows]  # who won, lost: the board upside down
    down = leaderboard(lost, influence=False)
    at = [down.models.index(name) for name in one.models]
    assert one.score - 1000.0 == pytest.approx(1000.0 - down.score[at], abs=1e-4)


def test_many_models_are_fitted_sparsely_with_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = votes(12, 3_000, 3, ties="odds", people=80, side=0.2)
    want = leaderboard(rows, side=True)
    monkeypatch.setattr(bradley_terry, "MOST_DENSE", 5)
    monkeypatch.setattr(board_module, "MOST_DENSE", 5)
    got = leaderboard(rows, side=True)
    assert got.score == pytest.approx(want.score, abs=2.0)  # their spread is estimated another way
    assert got.score_sd == pytest.approx(want.score_sd, rel=0.2)
    assert got.side is not None
    assert want.side is not None
    assert got.side.points == pytest.approx(want.side.points, abs=0.5)
    assert got.posterior is None
    assert {each.kind for each in got.remarks} >= {"draws"}
    assert abs(got.by_number("place_low") - want.by_number("place_low")).max() <= 1


# ---------------------------------------------------------------------------- covariates, sides, categories


@pytest.mark.slow
def test_scores_at_equal_length_and_the_side_shown() -> None:
    rows, _ = votes(4, 1_500, 5, side=0.4, effect=0.5)
    board = leaderboard(rows, adjust=["length"], side=True)
    first, second, outcome = numbers(rows, board)
    x = np.array([row["length_a"] - row["length_b"] for row in rows])
    unit, sd = x.std(), sd_of(rows, board)

    def loss(v: Any) -> Any:
        eta = v[first] - v[second] + v[4] * x / unit + v[5]
        prior = v[:4] @ v[:4] / (2 * sd * sd) + v[4:] @ v[4:] / (2 * 8 / math.pi)
        return np.logaddexp(0.0, -np.where(outcome == 2, 1, -1) * eta).sum() + prior

    want = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-6}).x
    [length] = board.effects
    assert (length.name, length.unit) == ("length", pytest.approx(unit))
    assert length.points == pytest.approx(POINTS * want[4], abs=0.5)  # a mean, not a mode
    assert board.side is not None
    assert board.side.points == pytest.approx(POINTS * want[5], abs=0.5)
    assert length.low < POINTS * 0.5 * unit < length.high
    assert board.side.low < POINTS * 0.4 < board.side.high
    assert board.score - 1000.0 == pytest.approx(POINTS * (want[:4] - want[:4].mean()), abs=0.5)


@pytest.mark.slow
def test_votes_that_all_go_to_the_longer_answer_give_a_finite_effect() -> None:
    pairs = [(0, 1), (1, 2), (2, 0)] * 8
    rows = [
        {"model_a": f"m{a}", "model_b": f"m{b}", "winner": "model_a" if k % 2 else "model_b", "length_a": k % 2}
        | {"length_b": 1 - k % 2}
        for k, (a, b) in enumerate(pairs)
    ]
    [length] = leaderboard(rows, adjust=["length"]).effects
    # a coefficient g with the prior N(0, 8 / pi), in units of a standard deviation, and 24 votes of P = 1 / (1 + e^-g)
    g = np.linspace(-10.0, 40.0, 100_001)
    log = -24 * np.logaddexp(0.0, -g) - g * g / (2 * 8 / math.pi)
    density = np.exp(log - log.max())
    mean = (density @ g) / density.sum()
    assert length.points == pytest.approx(POINTS * mean, rel=0.1)
    assert 0.0 < length.low < length.points < length.high < POINTS * 10.0


@pytest.mark.slow
def test_covariates_in_objects_are_added_up() -> None:
    rows, _ = votes(3, 300, 6, effect=0.5)
    want = leaderboard(rows, adjust=["length"])
    for row in rows:
        one, two = row.pop("length_a"), row.pop("length_b")
        row["meta"] = {"sum_a_tokens": {"x": one - 1.0, "y": 1.0}, "sum_b_tokens": two, "turns": 3}
    got = leaderboard(rows, adjust=["meta"])
    assert got.effects[0].name == "meta.sum_tokens"
    assert got.effects[0].points == pytest.approx(want.effects[0].points)
    assert leaderboard(rows, adjust=["meta.sum_tokens"]).effects == got.effects
    with pytest.raises(ValueError, match="adjust: expected one of sum_tokens in meta, got 'bold'"):
        leaderboard(rows, adjust=["meta.bold"])
    with pytest.raises(ValueError, match="adjust: expected columns such as length_a and length_b, got 'length'"):
        leaderboard(rows, adjust=["length"])


def test_a_board_for_each_category() -> None:
    rows, _ = votes(4, 400, 7)
    for i, row in enumerate(rows):
        row["tag"] = ("code", "maths", "code", "")[i % 4]
    board = leaderboard(rows, by="tag")
    assert [(name, part.board.answers) for name, part in board.categories] == [
        ("code", 200),
        ("(none)", 100),
        ("maths", 100),
    ]
    alone = leaderboard([row for row in rows if row["tag"] == "code"])
    code = board.categories[0][1]
    at = [alone.models.index(name) for name in code.models]
    assert code.score == pytest.approx(alone.score[at], abs=1e-6)
    assert board.board.answers == 400


def test_votes_that_say_nothing_are_counted_with_the_reason() -> None:
    rows, _ = votes(3, 60, 8, people=3)
    rows[0]["winner"], rows[1]["length_a"], rows[2]["winner"] = "unsure", None, "both_bad"
    rows[0]["judge"], rows[1]["judge"] = "p0", "p1"
    board = leaderboard(rows, adjust=["length"], without=["p2"])
    assert board.left_out["could not be judged"] == 1
    assert set(board.left_out) == {"could not be judged", "of people left out", "without length"}
    assert board.board.answers == 60 - sum(board.left_out.values())
    assert "1 vote left out: could not be judged." in {each.message for each in board.remarks}


def test_an_anchor_has_its_score_and_the_others_their_distance_to_it() -> None:
    rows, _ = votes(4, 400, 9)
    free, fixed = leaderboard(rows), leaderboard(rows, anchor=("m2", 1500.0))
    i = fixed.models.index("m2")
    assert (fixed.score[i], fixed.by_number("score_low")[i], fixed.by_number("score_high")[i]) == (
        1500.0,
        1500.0,
        1500.0,
    )
    assert fixed.score - free.score == pytest.approx(1500.0 - free.score[i])
    assert free.posterior is not None
    cov = free.posterior.cov
    want = np.sqrt(np.maximum(cov.diagonal() + cov[i, i] - 2 * cov[i], 0.0))
    assert fixed.score_sd == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sure": 0.4}, "sure: expected a number from 0.5 to 0.999"),
        ({"ties": "never"}, "ties: expected one of auto, threshold, odds, constant, half"),
        ({"anchor": ("nobody", 1.0)}, "anchor: expected one of 'm"),
        ({"by": "tag"}, "by: expected one of the columns"),
        ({"without": ["x"]}, "without: expected votes that name people"),
        ({"adjust": ["tag"]}, "adjust: expected one of length"),
        ({"adjust": "length"}, "adjust: expected a list of names, got 'length'"),
        ({"without": "p22"}, "without: expected a list of names, got 'p22'"),
        ({"without": [22]}, "without: expected a list of names, got "),
        ({"side": "yes"}, "side: expected True or False, got 'yes'"),
        ({"anchor": {"m1": 1000}}, r"anchor: expected an item and its score, such as \('name', 1000\), got "),
        ({"anchor": 5}, r"anchor: expected an item and its score, such as \('name', 1000\), got 5"),
        ({"anchor": "m1=1000"}, r"anchor: expected an item and its score, such as \('name', 1000\), got 'm1=1000'"),
    ],
)
def test_arguments_that_are_wrong_are_named(given: dict[str, Any], message: str) -> None:
    rows, _ = votes(3, 30, 10)
    with pytest.raises(ValueError, match=f"^{message}"):
        leaderboard(rows, **given)


def test_places_come_from_the_joint_distribution() -> None:
    """Two models that met only each other and a common third are told apart by their difference."""
    rows, truth = votes(8, 4_000, 11)
    board = leaderboard(rows)
    assert (board.by_number("place_low") <= board.by_number("place")).all()
    assert (board.by_number("place") <= board.by_number("place_high")).all()
    assert board.by_number("best").sum() == pytest.approx(1.0)
    assert sorted(board.by_number("place").tolist()) == list(range(1, 9))
    assert board.posterior is not None
    draws = np.random.default_rng(0).multivariate_normal(board.score, board.posterior.cov, 20_000)
    place = (-draws).argsort(axis=1).argsort(axis=1) + 1
    for i in range(8):
        low, high = np.quantile(place[:, i], [0.05, 0.95], method="inverted_cdf")
        assert abs(board.by_number("place_low")[i] - low) <= 1
        assert abs(board.by_number("place_high")[i] - high) <= 1
    assert truth.size == 8


def test_runs_from_draws_are_those_of_each_pair_of_draws() -> None:
    """More places than are compared at once."""
    rng = np.random.default_rng(3)
    points = rng.normal(0.0, 3.0, 150)
    draws = points + rng.standard_normal((400, 150)) @ np.diag(rng.uniform(0.2, 2.0, 150))
    order = (-points).argsort()
    better, runs = board_module._apart(points, draws, None, order, 0.9)

    def probability(a: int, b: int) -> float:
        gap = (draws[:, a] - points[a]) - (draws[:, b] - points[b])
        return 0.5 * math.erfc(-(points[a] - points[b]) / math.sqrt(2.0 * (gap @ gap) / 400))

    assert better == pytest.approx([probability(a, b) for a, b in itertools.pairwise(order.tolist())])
    sure = np.array([[a != b and probability(a, b) >= 0.9 for b in order.tolist()] for a in order.tolist()])
    level = {(i, j) for i in range(150) for j in range(i + 1, 150) if not np.triu(sure[i : j + 1, i : j + 1], 1).any()}
    assert set(runs) == {(i, j) for i, j in level if not any((k, m) != (i, j) and k <= i and j <= m for k, m in level)}
    assert len(runs) > 10


# ---------------------------------------------------------------------------- ties, against a fit of another kind


def chances(model: str, eta: Any, t: float) -> tuple[Any, Any, Any]:
    """P(win), P(tie), P(loss) by the papers: Rao and Kupper 1967, Eq. 2.1 with theta = exp(t); Davidson 1970, Eq. 2.4
    with nu = exp(t); and ties that come about whoever meets."""
    a, b = np.exp(eta / 2.0), np.exp(-eta / 2.0)  # worths of the two, up to a common factor
    if model == "threshold":
        theta = np.exp(t)
        win, loss = a / (a + theta * b), b / (b + theta * a)
        return win, (theta**2 - 1.0) * a * b / ((a + theta * b) * (b + theta * a)), loss
    if model == "odds":
        nu = np.exp(t)
        total = a + b + nu * np.sqrt(a * b)
        return a / total, nu * np.sqrt(a * b) / total, b / total
    share = 1.0 / (1.0 + np.exp(-t))
    return (1.0 - share) * a / (a + b), share + 0.0 * eta, (1.0 - share) * b / (a + b)


@pytest.mark.parametrize("people", [0, 70])
@pytest.mark.parametrize("model", TIE_MODELS)
def test_scores_with_ties_are_those_of_the_likelihood_and_so_are_their_errors(
    model: TieModel, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tastes, "MANY_PEOPLE", 50)
    rows, _ = votes(5, 1_500, 21, ties=model, people=people)
    board = leaderboard(rows, ties=model)
    assert board.tie_model == model
    assert board.tied == sum(row["winner"] == "tie" for row in rows)
    first, second, outcome = numbers(rows, board)
    cells, _ = count_cells(5, first, second, outcome, np.ones(len(rows), np.int64))
    sd = fit(5, cells, model).sd

    def each(v: Any) -> Any:  # log-likelihood of every vote
        win, tie, loss = chances(model, v[first] - v[second], v[5])
        return np.log(np.where(outcome == 2, win, np.where(outcome == 1, tie, loss)))

    start = np.array([*np.zeros(5), initial_tie(model, 0.3)])
    v = minimize(
        lambda v: v[:5] @ v[:5] / (2 * sd * sd) - each(v).sum(),
        start,
        method="L-BFGS-B",
        bounds=[(-4.0, 4.0)] * 5 + [(1e-3 if model == "threshold" else -4.0, 4.0)],
        options={"gtol": 1e-5, "ftol": 1e-15},
    ).x
    assert board.score - 1000.0 == pytest.approx(POINTS * (v[:5] - v[:5].mean()), abs=0.05)
    assert board.tie == pytest.approx(v[5], abs=1e-3)
    # the curvature, and the sandwich of people, with derivatives by differences
    h, units = 1e-4, np.eye(6)
    s = np.stack([(each(v + h * e) - each(v - h * e)) / (2 * h) for e in units], axis=1)
    H = -np.array(
        [
            [
                (each(v + h * (e + f)) - each(v + h * (e - f)) - each(v - h * (e - f)) + each(v - h * (e + f))).sum()
                / (4 * h * h)
                for f in units
            ]
            for e in units
        ]
    )
    prior = np.diag([1 / sd**2] * 5 + [0.0])
    if people:
        who = np.array([int(row["judge"][1:]) for row in rows])
        count = len(set(who.tolist()))
        s = np.array([s[who == k].sum(axis=0) for k in sorted(set(who.tolist()))]) * math.sqrt(count / (count - 1))
    bread = np.linalg.inv(H + prior)
    cov = (bread @ (s.T @ s + prior) @ bread if people else bread)[:5, :5]
    centre = np.eye(5) - 0.2
    assert board.score_sd == pytest.approx(POINTS * np.sqrt((centre @ cov @ centre).diagonal()), rel=2e-3)


@pytest.mark.slow
def test_the_likeliest_model_of_ties_is_taken() -> None:
    for model in TIE_MODELS:
        rows, _ = votes(6, 30_000, 22, ties=model)
        assert leaderboard(rows, influence=False).tie_model == model


def test_ties_alone_say_that_all_are_alike() -> None:
    board = leaderboard([{"model_a": "x", "model_b": "y", "winner": "tie"}] * 5)
    assert board.score.tolist() == [1000.0, 1000.0]
    assert board.tied == board.board.answers == 5
    assert board.board.alike == (("x", "y"),)
    assert np.isfinite(board.score_sd).all()
    one = leaderboard([{"model_a": "x", "model_b": "y", "winner": "both_bad"}])
    assert (one.board.answers, one.bad, one.tied) == (1, 1, 1)


@pytest.mark.slow
def test_half_a_win_for_both_counts_no_ties_apart() -> None:
    rows, _ = votes(4, 800, 23, ties="odds")
    board = leaderboard(rows, ties="half")
    assert (board.tie_model, board.tie) == ("half", 0.0)
    doubled = [{**row, "winner": said} for row in rows for said in
               (("model_a", "model_b") if row["winner"] == "tie" else (row["winner"],) * 2)]  # fmt: skip
    first, second, outcome = numbers(doubled, board)
    sd = sd_of(rows, leaderboard(rows, ties="half"))
    cells, _ = count_cells(4, first, second, outcome, np.ones(len(doubled), np.int64))
    want = fit(4, cells._replace(weight=cells.weight / 2.0), "half", sd=sd).scores
    assert board.score - 1000.0 == pytest.approx(POINTS * (want - want.mean()), abs=0.5)


def test_what_both_bad_means_is_said_and_flagged() -> None:
    rows, _ = votes(3, 200, 24, ties="threshold")
    tied = [i for i, row in enumerate(rows) if row["winner"] == "tie"]
    for i, word in zip(tied, ("both_bad", "tie (bothbad)", "bothbad", "Both Bad", "both-bad")):
        rows[i]["winner"] = word
    board = leaderboard(rows)
    assert (board.tied, board.bad) == (len(tied), 5)
    assert board.to_dict()["ties"]["both_bad"] == 5
    assert "5 ties are 'both bad': counted as equally good." in {each.message for each in board.remarks}
    plain, _ = votes(3, 200, 24, ties="threshold")
    assert leaderboard(plain).score == pytest.approx(board.score)


# ---------------------------------------------------------------------------- ties alone


def all_tied(count: int, people: int = 0) -> list[dict[str, Any]]:
    who = [{"judge": f"p{i}"} for i in range(people)] or [{}]
    return [{"model_a": "x", "model_b": "y", "winner": "tie", "times": count, **each} for each in who]


def half_width(rows: list[dict[str, Any]], **more: Any) -> float:
    board = leaderboard(rows, **more)
    assert board.score == pytest.approx(1000.0)
    assert board.by_number("score_high") - board.score == pytest.approx(board.score - board.by_number("score_low"))
    return float(board.by_number("score_high")[0] - board.score[0])


def test_intervals_of_ties_alone_do_not_narrow_as_ties_become_many() -> None:
    """The likelihood of ties alone grows with the tie parameter for ever, so they do not bound the scale of scores."""
    widths = [half_width(all_tied(count)) for count in (1, 10, 100, 10_000, 1_000_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-2] == pytest.approx(widths[-1], rel=1e-3)
    assert widths[0] < 2.0 * widths[-1]
    wins = [{"model_a": a, "model_b": b, "winner": "model_a"} for a, b in ("xy", "yx")]
    assert half_width(2 * wins) < widths[-1]  # two wins each say more


def exact_half_width(log: Any) -> float:
    """Half of the 90 % interval of the score of one of two models, in points, by numerical integration; `log` is the
    log-likelihood of their gap. The spread of scores is log-normal around a unit of utility, by a factor e."""
    gap, log_sd = np.linspace(-60.0, 60.0, 6_001), np.linspace(-4.0, 4.0, 161)
    sd = math.sqrt(8.0 / math.pi) * np.exp(log_sd)[:, None] * math.sqrt(2.0)
    prior = norm.pdf(log_sd) @ (norm.pdf(gap / sd) / sd)
    share = np.exp(log(gap)) * prior
    return float(0.5 * POINTS * np.interp(0.95, np.cumsum(share) / share.sum(), gap))


@pytest.mark.parametrize("model", TIE_MODELS)
def test_intervals_of_ties_alone_are_those_of_the_posterior(model: TieModel) -> None:
    """With the tie parameter at Jeffreys' estimate of the share, 10.5 / 11."""
    tie = initial_tie(model, 10.5 / 11.0)
    want = exact_half_width(lambda gap: 10.0 * np.log(np.maximum(probabilities(model, gap, tie)[1], 1e-300)))
    assert half_width(all_tied(10), ties=model) == pytest.approx(want, rel=0.05)
    assert half_width(all_tied(1, people=10), ties=model) == pytest.approx(want, rel=0.05)


def test_ties_alone_as_half_wins_narrow_as_wins_do() -> None:
    """100 ties are then 50 wins each."""
    want = exact_half_width(lambda gap: 50.0 * (log_expit(gap) + log_expit(-gap)))
    assert half_width(all_tied(100), ties="half") == pytest.approx(want, rel=0.1)


def test_ties_alone_by_many_people_and_about_many_models_are_said_to_tell_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = list(itertools.combinations("abcdefghij", 2))
    rows = [{"model_a": a, "model_b": b, "winner": "tie", "judge": f"p{a}{b}"} for a, b in pairs]
    board = leaderboard(rows)
    assert [each.kind for each in board.remarks] == ["all_ties"]
    assert board.board.alike == (board.items,)
    assert (board.by_number("place_low") == 1).all()
    assert (board.by_number("place_high") == 10).all()
    monkeypatch.setattr(bradley_terry, "MOST_DENSE", 5)
    monkeypatch.setattr(board_module, "MOST_DENSE", 5)
    drawn = leaderboard(rows)
    assert drawn.score_sd == pytest.approx(board.score_sd, rel=0.3)  # of 400 draws, for one spread of scores


def test_the_first_win_among_ties_leaves_a_board_that_is_as_unsure() -> None:
    board = leaderboard([*all_tied(50), {"model_a": "x", "model_b": "y", "winner": "model_a", "times": 1}])
    assert board.items == ("x", "y")
    assert board.by_number("score_high")[0] - board.by_number("score_low")[0] > 2.0 * half_width(all_tied(50))


def test_between_two_models_that_are_level_no_vote_decides() -> None:
    board = leaderboard([{"model_a": a, "model_b": b, "winner": "model_a"} for a, b in ("xy", "yx")])
    assert board.influence is not None
    assert board.influence.votes == 0
    assert influence_told(board) == ["x and y are level: no vote decides which is first."]


def test_who_always_takes_one_side_is_named_on_a_leaderboard_as_in_a_ranking() -> None:
    """29 of 29 times the first answer, among ten others whose votes are by what they see."""
    rows, _ = votes(4, 400, 3, people=10)
    rows += [row | {"judge": "lefty", "winner": "model_a"} for row in rows[:29]]
    found = [each for each in leaderboard(rows, influence=False).remarks if each.kind == "side"]
    assert [each.people for each in found] == [("lefty",)]
    assert found[0].message.startswith("'lefty' took the first of the two in 29 of 29 answers; by chance that happens ")
    nobody = [{name: value for name, value in row.items() if name != "judge"} for row in rows]
    assert not [each for each in leaderboard(nobody, influence=False).remarks if each.kind == "side"]
    tied = [row | ({"winner": "tie"} if row.get("judge") == "lefty" else {}) for row in rows]
    assert not [each for each in leaderboard(tied, influence=False).remarks if each.kind == "side"]
    one = [row | {"winner": "model_b"} for row in rows]
    [told] = [each for each in leaderboard(one, influence=False).remarks if each.kind == "side"]
    assert told.message.startswith("All 429 answers are the second of the two.")
