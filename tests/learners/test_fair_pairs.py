"""Fair pairs: the pairs of 3PR, the formula, exact chances, and fairness in exact expectation over all that can happen.

3PR is Raman, Joachims, Shivaswamy & Schnabel, Stable Coactive Learning via Perturbation, ICML 2013.
"""

from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import candidates

import naive
from budget import FACTOR, examples
from coins import Draws
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays, play, trace
from heedful.learners.coactive.fair_pairs import FairPairs, PerturbedRanking, fair_pairs, swap_probability
from heedful.learners.coactive.pairwise_logistic import PairwiseLogistic
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import query_stream, synthetic_queries

N = 4
SEEDS = st.integers(0, 2**32 - 1)
RNG = np.random.default_rng(0)


def clicks_on(rng: np.random.Generator, m: int) -> np.ndarray:
    """Any of the candidates, in any order, perhaps more than k, perhaps none."""
    return rng.permutation(m)[: int(rng.integers(0, m + 1))]


# ---------------------------------------------------------------------------- against the pseudo-code


@examples(100)
@given(SEEDS, st.integers(1, 12), st.sampled_from([2, 3, 5]), st.sampled_from([0.1, 0.5]))
def test_the_pairs_are_those_of_3pr(seed: int, m: int, k: int, swap: float) -> None:
    """With the same coins the same order, start and swaps; of a pair the one clicked alone wins. Where the lower one
    does, 3PR swaps the two in its ybar, and its D is the sum over these pairs of the gain in discount times the
    difference; we let the upper one win too."""
    rng = np.random.default_rng(seed)
    x, coins = candidates(rng, (m, N)), rng.random(20).tolist()
    draws = iter(coins)
    oracle = naive.PerturbedPreferencePerceptron(N, naive.Rankings(k), swap, 2 * k)
    learner = FairPairs(N, Ranking(k), swap=swap)
    shown, start, swapped = oracle.propose(x, lambda: next(draws))
    y = learner.propose(learner.init(rng), x, Draws(*coins))
    assert y.shown.tolist() == shown
    if m > 1:
        assert y.start == start
        assert y.swapped.tolist() == swapped
        clicks = clicks_on(rng, m).tolist()
        clicked = np.isin(np.arange(m), clicks)
        better, worse, weights = fair_pairs(y.shown, y.start, y.swapped, clicked, swap)
        pairs = oracle.fair_pairs(shown, start, clicks)
        assert list(zip(better.tolist(), worse.tolist())) == [(a, b) for a, b, _ in pairs]
        turned = [swapped[(shown.index(a) - start) // 2] for a, _, _ in pairs]
        assert weights == pytest.approx([0.5 / (swap if t else 1.0 - swap) for t in turned])
        D = np.zeros(N)
        for a, b, below in pairs:
            if below:
                i, j = shown.index(b), shown.index(a)
                gain = (1.0 / np.log2(i + 2)) * (i < k) - (1.0 / np.log2(j + 2)) * (j < k)
                D += gain * (x[a].astype(float) - x[b].astype(float))
        assert oracle.D(x, shown, oracle.y_bar(shown, start, clicks)) == pytest.approx(D, abs=1e-12)


@pytest.mark.parametrize("k", [5, 2, 1])
@pytest.mark.parametrize(("swap", "implied"), [(0.25, 0.3), (0.5, 0.0), (0.1, 1.0), (0.0, 0.3)])
@pytest.mark.parametrize("seed", range(3))
def test_formula(k: int, swap: float, implied: float, seed: int) -> None:
    """Round for round: the order under the weights of the formula, and then the weights."""
    rng = np.random.default_rng(seed)
    learner = FairPairs(N, Ranking(k), 0.2, swap, implied)
    oracle = naive.FairPairs(N, naive.Rankings(k), 0.2, swap, implied)
    state, taught = learner.init(rng), 0
    for t in range(80):
        x = candidates(rng, (int(rng.integers(1, 9)), N))
        y = learner.propose(state, x, rng)
        ybar = clicks_on(rng, len(x))
        before = oracle.w.copy()
        D = learner.direction(state, x, y, ybar)
        wanted = oracle.direction(x, y.shown.tolist(), y.start, y.swapped.tolist(), ybar.tolist())
        assert D == pytest.approx(wanted, abs=1e-9), t
        state = learner.update(state, x, y, ybar)
        oracle.update(x, y.shown.tolist(), y.start, y.swapped.tolist(), ybar.tolist())
        assert state.w == pytest.approx(oracle.w, rel=1e-9, abs=1e-11), t
        taught += not np.array_equal(before, oracle.w)
    assert state.t == 80
    assert learner.weights(state) is state.w
    assert taught > 20


def test_by_hand() -> None:
    """k = 2, documents 0..4 with one feature each, w = 0, so sigma = 1/2. Coins: .7 starts at the first; of the two
    pairs (0, 1), (2, 3) the second is swapped: shown 0 1 3 2 4. P = 1/2 3/4 1/4. Clicked: 1 and 3.

    1 beats 0 as the lower of a pair that stood, weight .5 / .75; 3 beats 2 as the upper of one swapped, .5 / .25. The
    pairs implied: 1 and 3 beat 0, which was passed over down to 3; document 2 comes after the deepest.
    """
    learner = FairPairs(5, Ranking(2), rate=0.1, swap=0.25, implied=0.5)
    state, x = learner.init(RNG), np.eye(5)
    y = learner.propose(state, x, Draws(0.7, 0.25, 0.2499))
    assert y.shown.tolist() == [0, 1, 3, 2, 4]
    assert (y.start, y.swapped.tolist()) == (0, [False, True])
    assert y.probability == pytest.approx(0.5 * 0.75 * 0.25)
    D = learner.direction(state, x, y, np.array([1, 3]))
    fair = 0.5 * np.array([-2 / 3, 2 / 3, -2.0, 2.0, 0.0])
    implied = 0.5 * np.array([-2.0, 1.0, 0.0, 1.0, 0.0])
    assert D == pytest.approx(fair + 0.5 * implied)
    assert learner._replace(implied=0.0).direction(state, x, y, np.array([1, 3])) == pytest.approx(fair)
    assert learner.update(state, x, y, np.array([1, 3])).w == pytest.approx(0.1 * np.sign(fair + 0.5 * implied))


# ---------------------------------------------------------------------------- proposals and their probabilities


@pytest.mark.parametrize("m", range(1, 8))
@pytest.mark.parametrize("swap", [0.5, 0.2])
@pytest.mark.parametrize("k", [2, 5])
def test_the_probability_of_an_order_is_exact(m: int, swap: float, k: int) -> None:
    """Summed over every coin there can be, an order turns up as often as it says; together once."""
    learner = FairPairs(1, Ranking(k), swap=swap)
    state, x = learner.init(RNG), np.arange(m, 0.0, -1.0)[:, None]
    came: dict[tuple[int, ...], float] = defaultdict(float)
    said: dict[tuple[int, ...], float] = {}
    for start in (0, 1):
        pairs = max(0, (min(m, 2 * k) - start) // 2)
        for swaps in product([False, True], repeat=pairs):
            coins = Draws(0.25 if start else 0.75, *(0.0 if s else 1.0 for s in swaps))
            y = learner.propose(state, x, coins)
            share = np.prod([swap if s else 1.0 - swap for s in swaps])
            came[tuple(y.shown.tolist())] += 0.5 * share
            assert said.setdefault(tuple(y.shown.tolist()), y.probability) == y.probability
            assert (y.start, y.swapped.tolist()) == ((start, list(swaps)) if m > 1 else (-1, []))
            for i, j in enumerate(y.shown):
                assert abs(i - j) <= 1  # neighbours alone change places
                assert j == i or i < 2 * k
    assert said == pytest.approx(came, abs=1e-15)
    assert sum(came.values()) == pytest.approx(1.0)
    assert len(said) == (1 if m == 1 else 2 ** (min(m, 2 * k) // 2) + 2 ** ((min(m, 2 * k) - 1) // 2) - 1)


def test_chance_by_hand() -> None:
    """Five deep, swap 1/4: pairs at 0 or at 1, two of each. All stood: either start; one swapped: this start alone."""
    assert swap_probability(np.array([False, False]), 0, 5, 0.25) == 0.5 * 0.75**2 + 0.5 * 0.75**2
    assert swap_probability(np.array([False, False]), 0, 4, 0.25) == 0.5 * 0.75**2 + 0.5 * 0.75
    assert swap_probability(np.array([False]), 1, 4, 0.25) == 0.5 * 0.75 + 0.5 * 0.75**2
    assert swap_probability(np.array([False, True]), 1, 5, 0.25) == 0.5 * 0.75 * 0.25
    assert swap_probability(np.zeros(0, bool), 1, 2, 0.25) == 0.5 + 0.5 * 0.75


def test_far_positions_stay() -> None:
    """k = 3, twenty documents: the first six may move, and each of them does; the rest never."""
    learner, x = FairPairs(1, Ranking(3), swap=0.5), np.arange(20, 0.0, -1.0)[:, None]
    state, rng = learner.init(RNG), np.random.default_rng(1)
    moved = np.zeros(20, int)
    starts = []
    for _ in range(400):
        y = learner.propose(state, x, rng)
        moved += y.shown != np.arange(20)
        starts.append(y.start)
    assert moved[6:].tolist() == [0] * 14
    assert moved[:6].min() > 60
    assert 150 < sum(starts) < 250


def test_an_item_alone_and_swap_0_are_shown_as_they_are() -> None:
    for learner, m, shown in [
        (FairPairs(1, Ranking(1)), 4, [0]),
        (FairPairs(1, Ranking(3)), 1, [0]),
        (FairPairs(1, Ranking(3), swap=0.0), 4, [0, 1, 2, 3]),
    ]:
        y = learner.propose(learner.init(RNG), np.arange(m, 0.0, -1.0)[:, None], Draws())
        assert (y.shown.tolist(), y.start, y.swapped.tolist(), y.probability) == (shown, -1, [], 1.0)


# ---------------------------------------------------------------------------- fairness, in exact expectation

M = 4


def pools(relevance: Any, shown: list[int], user: str) -> Any:
    """Every set of clicks on what was shown, with its probability: position bias with eta = 1, or a cascade."""
    if user == "position":
        for clicked in product([0, 1], repeat=M):
            chances = [relevance[j] / (i + 1.0) for i, j in enumerate(shown)]
            yield (
                np.prod([c if hit else 1.0 - c for c, hit in zip(chances, clicked)]),
                [j for j, hit in zip(shown, clicked) if hit],
            )
        return
    stop = 0.7

    def down(i: int, share: float, clicks: list[int]) -> Any:
        if i == M:
            yield share, clicks
            return
        r = relevance[shown[i]]
        yield from down(i + 1, share * (1.0 - r), clicks)
        yield share * r * stop, [*clicks, shown[i]]
        yield from down(i + 1, share * r * (1.0 - stop), [*clicks, shown[i]])

    yield from down(0, 1.0, [])


def expected(learner: Any, relevance: Any, user: str, explicit: bool = False) -> np.ndarray:
    """E of the direction at equal scores, per document, over starts, swaps and clicks."""
    state, x, total, mass = learner.init(RNG), np.eye(M), np.zeros(M), 0.0
    for start in (0, 1):
        for swaps in product([False, True], repeat=(M - start) // 2):
            y = learner.propose(state, x, Draws(0.25 if start else 0.75, *(0.0 if s else 1.0 for s in swaps)))
            share = 0.5 * np.prod([learner.swap if s else 1.0 - learner.swap for s in swaps])
            for chance_of, clicks in pools(relevance, y.shown.tolist(), user):
                given = y._replace(start=-1) if explicit else y
                total += share * chance_of * learner.direction(state, x, given, np.array(clicks, np.int64))
                mass += share * chance_of
    assert mass == pytest.approx(1.0)
    return total


@pytest.mark.parametrize("swap", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("user", ["position", "cascade"])
@pytest.mark.parametrize("k", [2, 4])
def test_equally_relevant_documents_are_taught_nothing(swap: float, user: str, k: int) -> None:
    """Exactly, over all that can happen; and the very same clicks at face value teach a lot."""
    learner = FairPairs(M, Ranking(k), swap=swap, implied=0.0)
    assert expected(learner, [0.4] * M, user) == pytest.approx(np.zeros(M), abs=1e-15)
    biased = expected(learner._replace(implied=1.0), [0.4] * M, user)
    face = expected(learner, [0.4] * M, user, explicit=True)
    assert biased == pytest.approx(face, abs=1e-15)
    assert np.abs(face).max() > 0.02
    if k == 4:  # where k is short, clicks below it turn the order instead
        assert face[0] > 0.02
        assert face[3] < -0.02


@pytest.mark.parametrize("swap", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("relevance", [[0.2, 0.9, 0.5, 0.4], [0.1, 0.3, 0.5, 0.9], [0.9, 0.5, 0.3, 0.0]])
def test_what_neighbours_are_taught_in_closed_form(swap: float, relevance: list[float]) -> None:
    """Of neighbours a, b at positions looked at with e > e': a wins alone with e r_a (1 - e' r_b) or, the other way
    round, e' r_a (1 - e r_b), so it gains .5 (e + e') (r_a - r_b), in half of the rounds, times sigma(0)."""
    learner = FairPairs(M, Ranking(4), swap=swap, implied=0.0)
    wanted = np.zeros(M)
    for i in range(M - 1):
        gain = 0.5 * 0.5 * 0.5 * (1.0 / (i + 1) + 1.0 / (i + 2)) * (relevance[i] - relevance[i + 1])
        wanted[i] += gain
        wanted[i + 1] -= gain
    assert expected(learner, relevance, "position") == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("best", range(M))
@pytest.mark.parametrize("user", ["position", "cascade"])
def test_the_one_that_is_better_is_taught_upwards_wherever_it_stands(best: int, user: str) -> None:
    for sign in (1.0, -1.0):
        relevance = [0.4 + 0.2 * sign * (j == best) for j in range(M)]
        for k in (2, 4):
            taught = sign * expected(FairPairs(M, Ranking(k), swap=0.25, implied=0.0), relevance, user)
            assert taught[best] > 0.005, (sign, k)
            assert taught[best] == taught.max()


# ---------------------------------------------------------------------------- clicks, corrections, nothing


@examples(60)
@given(SEEDS, st.sampled_from([1, 2, 5]))
def test_a_proposal_that_was_not_perturbed_is_corrected_at_face_value(seed: int, k: int) -> None:
    """start = -1: all implied pairs, as PairwiseLogistic, whatever the swaps were."""
    rng = np.random.default_rng(seed)
    x = candidates(rng, (int(rng.integers(2, 9)), N))
    learner, plain = FairPairs(N, Ranking(k)), PairwiseLogistic(N, Ranking(k))
    state, other = learner.init(rng), plain.init(rng)
    state.w[:] = other.w[:] = rng.standard_normal(N)
    y = learner.propose(state, x, rng)._replace(start=-1)
    ybar = rng.permutation(len(x))
    assert learner.direction(state, x, y, ybar).tobytes() == plain.direction(other, x, y.shown, ybar).tobytes()
    assert learner.update(state, x, y, ybar).w.tobytes() == plain.update(other, x, y.shown, ybar).w.tobytes()


def test_swap_0_is_pairwise_logistic() -> None:
    world, _ = synthetic_queries(30, 8, N, noise=1.0, user=PositionBiased(1.0, 0.1, True))
    plain = trace(PairwiseLogistic(N, Ranking(3)), world, 200, 1, interpreted=True)
    assert trace(FairPairs(N, Ranking(3), swap=0.0), world, 200, 1, interpreted=True).tobytes() == plain.tobytes()


def test_nobody_clicked_and_everybody_clicked_teach_nothing() -> None:
    """No click says nothing (as implied_pairs has it), and only the first k count as clicked."""
    learner, x = FairPairs(4, Ranking(4)), np.eye(4)
    state = learner.init(RNG)
    y = learner.propose(state, x, Draws(0.7, 0.9, 0.1))
    for clicks in ([], [2, 0, 3, 1]):
        assert learner._replace(implied=0.0).direction(state, x, y, np.array(clicks, np.int64)).tolist() == [0.0] * 4
    assert learner.direction(state, x, y, np.zeros(0, np.int64)).tolist() == [0.0] * 4
    two = FairPairs(4, Ranking(2), implied=0.0)
    first = two.direction(state, x, y, np.array([0, 2]))
    assert first.tobytes() == two.direction(state, x, y, np.array([0, 2, 1, 3])).tobytes()
    assert np.count_nonzero(first) == 4


@examples(20)
@given(SEEDS, st.sampled_from([Ranking(3), WithBaseScore(Ranking(2)), Ranking(1)]))
def test_update_is_a_step_along_the_direction(seed: int, space: Any) -> None:
    rng = np.random.default_rng(seed)
    learner = FairPairs(N, space)
    state = learner.init(rng)
    for _ in range(10):
        x = candidates(rng, (int(rng.integers(1, 8)), N))
        y = learner.propose(state, x, rng)
        clicks = clicks_on(rng, len(x))
        before = copy_arrays(state)
        D = learner.direction(state, x, y, clicks)
        assert identical(state, before)
        stepped = learner.step(copy_arrays(state), D)
        state = learner.update(state, x, y, clicks)
        assert stepped.w.tobytes() == state.w.tobytes()
        assert stepped.total.tobytes() == state.total.tobytes()
        assert stepped.t == state.t


BIASED = PositionBiased(1.0, 0.1, True)
EACH_ONCE = [
    (BIASED, Ranking(3)),
    (Cascade(0.7, 0.1, True), WithBaseScore(Ranking(5))),
    (Cascade(), WithBaseScore(Ranking(5))),
]
THE_OTHERS = [(BIASED, WithBaseScore(Ranking(5))), (Cascade(0.7, 0.1, True), Ranking(3)), (Cascade(), Ranking(3))]


@pytest.mark.slow
@pytest.mark.parametrize(("user", "space"), EACH_ONCE + (THE_OTHERS if FACTOR > 1 else []))
def test_compiled_it_learns_the_same_from_clicks(user: Any, space: Any) -> None:
    """Also with fewer than k clicks, with none, and on lists shorter than k."""
    rng = np.random.default_rng(3)
    offsets = np.unique(np.concatenate([[0], np.cumsum(rng.integers(1, 9, 30))]))
    X = rng.integers(-1, 2, (int(offsets[-1]), N)).astype(float)
    world = query_stream(X, rng.integers(0, 5, len(X)), offsets, rng.standard_normal(N), user, k=3)
    learner = FairPairs(N, space)
    assert trace(learner, world, 300, 2).tobytes() == trace(learner, world, 300, 2, interpreted=True).tobytes()


@pytest.mark.slow
def test_under_strong_bias_it_learns_a_better_order_than_face_value_and_than_the_caller() -> None:
    """The caller's score is mediocre, and what stands first is clicked: at face value that confirms the caller."""
    seen: dict[str, list[float]] = defaultdict(list)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300 * 10, 8))
        u = X[:, 0] + X[:, 1]
        X[:, 7] = 0.5 * u + rng.standard_normal(len(u))
        labels = np.clip(np.round(2.0 + u), 0.0, 4.0)
        w_star = np.eye(8)[0] + np.eye(8)[1]
        offsets = np.arange(0, len(u) + 1, 10)
        world = query_stream(X, labels, offsets, w_star, PositionBiased(2.5, 0.1, True), k=3)
        space = WithBaseScore(Ranking(3))
        for learner in (FairPairs(8, space, swap=0.5), PairwiseLogistic(8, space)):
            *_, (_, state) = play(learner, world, 2500, seed)
            seen[type(learner).__name__].append(regret(world, space, state.w))
        seen["caller"].append(regret(world, space, np.zeros(8)))
    assert np.mean(seen["FairPairs"]) < 0.6 * np.mean(seen["PairwiseLogistic"]) < 0.4 * np.mean(seen["caller"])


def regret(world: Any, space: Any, w: np.ndarray) -> float:
    """What the learned order, as it is, gives up of the best utility, over the queries."""
    total = 0.0
    for q in range(world.offsets.size - 1):
        rows = slice(world.offsets[q], world.offsets[q + 1])
        order = space.argmax(w, world.X[rows])
        total += world.best[q] - naive.utility(world.utilities[rows], order.tolist(), world.k)
    return total / (world.offsets.size - 1)


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (FairPairs(0, Ranking(3)), "n_features: expected a whole number, 1 or more, got 0"),
        (FairPairs(2, Ranking(3), rate=0.0), "rate: expected a finite number above 0, from 1e-50 to 1e50, got 0.0"),
        (FairPairs(2, Ranking(3), swap=0.6), "swap: expected 0, or a number from 0.001 to 0.5, got 0.6"),
        (FairPairs(2, Ranking(3), swap=1e-9), "swap: expected 0, or a number from 0.001 to 0.5, got 1e-09"),
        (FairPairs(2, Ranking(3), swap=-0.1), "swap: expected 0, or a number from 0.001 to 0.5, got -0.1"),
        (FairPairs(2, Ranking(3), swap=float("nan")), "swap: expected 0, or a number from 0.001 to 0.5, got nan"),
        (FairPairs(2, Ranking(3), swap=False), "swap: expected 0, or a number from 0.001 to 0.5, got False"),
        (FairPairs(2, Ranking(3), implied=1.5), "implied: expected a number from 0 to 1, got 1.5"),
        (FairPairs(2, Ranking(3), implied=-0.1), "implied: expected a number from 0 to 1, got -0.1"),
        (FairPairs(2, Ranking(3), implied="1"), "implied: expected a number from 0 to 1, got '1'"),  # type: ignore[arg-type]
        (FairPairs(2, Ranking(0)), "k: expected a whole number, 1 to 1024, got 0"),
        (
            FairPairs(2, Assignment(3)),
            "space: expected a Ranking, whose neighbours can be swapped, got Assignment(slots=3)",
        ),
    ],
)
def test_hyperparameters_are_refused_by_name(learner: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        learner.init(RNG)
    assert str(error.value) == told
    for good in (
        FairPairs(1, Ranking(1)),
        FairPairs(2, WithBaseScore(Ranking(2)), swap=0.001, implied=0),
        FairPairs(1, Ranking(2)),
    ):
        assert good.init(RNG).w.tolist() == [0.0] * good.n_features


def test_what_is_logged_is_what_the_docstring_says() -> None:
    assert PerturbedRanking._fields == ("shown", "start", "swapped", "swap", "probability")


@pytest.mark.parametrize("swap", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("m", [1, 2, 3, 9, 10, 11, 30])
def test_a_person_who_sees_all_that_was_drawn_sees_it_with_the_proposals_own_probability(m: int, swap: float) -> None:
    """Bit for bit what `chance` says: a loop need not reckon it again."""
    learner = FairPairs(2, Ranking(5), swap=swap)
    x = np.random.default_rng(m).standard_normal((m, 2))
    state = learner.init(np.random.default_rng(0))
    state.w[:] = [1.0, -0.5]
    for draw in range(50):
        y = learner.propose(state, x, np.random.default_rng(draw))
        for size in range(learner.depth(m), m + 1):
            assert learner.chance(learner.order(y), y.shown[:size]) == y.probability
    assert learner.depth(m) == min(m, 10)
