"""How good feedback was, and what the theorems of [J15] promise: by hand, on streams, and where a hypothesis fails."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import naive
from heedful.core.fold import copy_arrays, play, trace
from heedful.diagnostics import (
    Bound,
    Facts,
    Utilities,
    alphas,
    bounds,
    gains,
    regrets,
    sign_test,
    slacks,
    strict_alpha,
    true_utilities,
)
from heedful.learners.coactive.baselines import RandomOrder
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.assignment import Assignment
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.worlds.items import item_pool
from heedful.worlds.queries import feature_bounds, query_stream, synthetic_queries
from heedful.worlds.users import Better, ExpectedAlpha, Noisy, StrictAlpha

N, T = 5, 400
KNOWN = Utilities(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.5, 4.0, 3.0]), np.array([4.0, 2.0, 4.0, 3.0]))


# ---------------------------------------------------------------------------- feedback


def test_four_rounds_by_hand() -> None:
    """Gains 1, -1/2, 2, 0 of regrets 4, 1, 2, 0."""
    assert gains(KNOWN).tolist() == [1.0, -0.5, 2.0, 0.0]
    assert regrets(KNOWN).tolist() == [4.0, 1.0, 2.0, 0.0]
    assert alphas(KNOWN)[:3].tolist() == [0.25, -0.5, 1.0]
    assert np.isnan(alphas(KNOWN)[3])
    assert slacks(KNOWN, 0.5).tolist() == [1.0, 1.0, -1.0, 0.0]  # Eq. 6
    assert strict_alpha(KNOWN) == -0.5
    assert sign_test(gains(KNOWN))[:3] == (2, 1, 1)


def test_the_strict_alpha_is_the_greatest_that_every_round_reaches() -> None:
    """Eq. 5: at that alpha no slack is positive, just above it one is. Content where nothing is to gain, it is 1."""
    known = Utilities(np.zeros(3), np.array([1.0, 3.0, 0.0]), np.array([2.0, 4.0, 0.0]))
    assert strict_alpha(known) == 0.5
    assert (slacks(known, 0.5) <= 0.0).all()
    assert (slacks(known, 0.501) > 0.0).any()
    assert strict_alpha(Utilities(np.ones(2), np.ones(2), np.ones(2))) == 1.0
    assert strict_alpha(Utilities(np.ones(1), np.zeros(1), np.ones(1))) == 0.0  # worse, where nothing was to gain


def test_what_only_rounding_makes_is_no_difference() -> None:
    known = Utilities(np.array([0.3]), np.array([0.1 + 0.2]), np.array([0.1 + 0.2]))
    assert known.feedback[0] != known.shown[0]
    assert gains(known)[0] == regrets(known)[0] == 0.0
    assert sign_test(gains(known)).equal == 1


@pytest.mark.parametrize("space", [Ranking(5), Ranking(1), Assignment(2)], ids=repr)
def test_utilities_of_a_log(space: Any) -> None:
    """w* . phi(x, .) of what was shown, of the feedback, and of the best of all objects, one by one."""
    objects = naive.Assignments(2) if isinstance(space, Assignment) else naive.Rankings(space.k)
    rng = np.random.default_rng(0)
    w_star, log = rng.standard_normal(3), []
    for _ in range(8):
        x = rng.standard_normal((4, 2, 3) if isinstance(space, Assignment) else (4, 3))
        y, ybar = (np.array(objects.objects(x)[int(rng.integers(len(objects.objects(x))))]) for _ in range(2))
        log.append((x, y, ybar))
    known = true_utilities(log, space, w_star)
    for t, (x, y, ybar) in enumerate(log):
        assert known.shown[t] == pytest.approx(w_star @ objects.phi(x, y.tolist()))
        assert known.feedback[t] == pytest.approx(w_star @ objects.phi(x, ybar.tolist()))
        assert known.best[t] == pytest.approx(max(w_star @ objects.phi(x, z) for z in objects.objects(x)))
    assert true_utilities([], space, w_star).shown.size == 0


def test_with_the_caller_s_score_the_best_is_that_of_the_utilities() -> None:
    """`WithBaseScore` shows the argmax of w* + e_N, which is not the object of greatest w* . phi."""
    x, w_star = np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([1.0, 0.0])
    known = true_utilities([(x, np.array([1]), np.array([0]))], WithBaseScore(Ranking(1)), w_star)
    assert (known.shown[0], known.feedback[0], known.best[0]) == (0.0, 1.0, 1.0)
    assert strict_alpha(known) == 1.0


def test_a_log_has_the_regret_of_its_world() -> None:
    """Queries and a pool that runs dry: regret by the log is regret by the world; strict users are strict."""
    world, w_star = synthetic_queries(50, 8, N, noise=0.0, user=StrictAlpha(0.6), seed=2)
    X = np.random.default_rng(3).standard_normal((60, N))
    pool = item_pool(X, w_star, StrictAlpha(0.6))
    for world_, space in ((world, Ranking(5)), (pool, Ranking(1))):
        learner = PreferencePerceptron(N, space)
        log = [copy_arrays(played) for played, _ in play(learner, world_, 100, 0)]
        known = true_utilities(log, space, w_star)
        assert regrets(known) == pytest.approx(trace(learner, world_, 100, 0, interpreted=True), abs=1e-12)
        assert strict_alpha(known) >= 0.6 - 1e-9
        assert sign_test(gains(known)).worse == 0


# ---------------------------------------------------------------------------- the sign test


@pytest.mark.parametrize(("better", "worse"), [(0, 1), (1, 0), (6, 1), (3, 3), (10, 2), (2, 10), (5, 0), (48, 8)])
def test_the_sign_test_is_the_binomial_test(better: int, worse: int) -> None:
    """Section 3.2, term by term; ties count for neither side. 60 % better, 10 % worse of 80 queries: p < 0.0001."""
    found = sign_test([0.5] * better + [0.0] * 9 + [-0.1] * worse)
    assert found[:3] == (better, 9, worse)
    assert found.p == pytest.approx(naive.sign_test_p(better, worse))
    if (better, worse) == (48, 8):
        assert found.p < 1e-4


def test_the_sign_test_by_hand() -> None:
    """Five of five: 2 / 32. Nothing but ties decides nothing, and rounding is a tie."""
    assert sign_test([1.0, 2.0, 0.1, 3.0, 9.0]).p == pytest.approx(2.0 / 32.0)
    assert sign_test([0.0, 1e-13, -1e-14]) == (0, 3, 0, 1.0)
    assert sign_test([]) == (0, 0, 0, 1.0)


# ---------------------------------------------------------------------------- bounds by hand


def values(learner: Any, facts: Facts, which: int = 0) -> Any:
    bound = bounds(learner, facts)[which]
    assert bound.holds, bound.lacking
    return bound.values


def test_bounds_by_hand() -> None:
    """R = 3, |w*| = 5, |w*|_1 = 7, S = 2, alpha = 1/2, four rounds whose slacks have the means 1, 0, 1, 1/2.

    Theorem 8 with the G that its first term lost in Eq. 19.
    """
    facts = Facts(np.array([3.0, -4.0]), 3.0, 2.0, 0.5, np.array([1.0, -1.0, 3.0, -1.0]))
    mean, clipped, squares = np.array([1, 0, 1, 0.5]), np.array([1, 0.5, 4 / 3, 1]), np.array([1, 0.5, 10 / 3, 2.5])
    t, ball = np.arange(1, 5), 100.0  # D2 = (2 . 5)^2
    assert values(PreferencePerceptron(2, Ranking()), facts) == pytest.approx(2 * mean + 60 / np.sqrt(t))
    assert values(PreferencePerceptron(2, Ranking(), 9), facts) == pytest.approx(2 * mean + 180 / np.sqrt(t))
    wanted = 2 * mean + 2 * 7 * (2 * math.log(4) * 2 * 2 + 2 * t / 2) / t  # T = 4
    assert values(ExponentiatedPerceptron(2, Ranking(), 2.0, 4), facts) == pytest.approx(wanted)
    unsigned = ExponentiatedPerceptron(2, Ranking(), 2.0, 4, signed=False)
    wanted = 2 * mean + 2 * 7 * (2 * math.log(2) * 2 * 2 + 2 * t / 2) / t  # N = 2: nothing is doubled
    assert values(unsigned, facts._replace(w_star=np.abs(facts.w_star))) == pytest.approx(wanted)
    [negative] = bounds(unsigned, facts)
    assert negative.lacking == ("no weight of w* is negative",)
    assert np.isnan(negative.values).all()
    rest = ball / (2 * np.sqrt(t)) + ball / t + 36 / np.sqrt(t)
    convex = ConvexPerceptron(2, Ranking(), 5.0)
    assert values(convex, facts, 0) == pytest.approx(2 * (2 * clipped + rest))
    assert values(convex, facts, 1) == pytest.approx(90 * 2 * (2 * clipped + rest))  # G = 6 M = 90
    second = SecondOrderPerceptron(2, Ranking(), gamma=0.01, epsilon=2.0, radius=5.0)
    known = facts._replace(margins=np.zeros(4))  # G = 2 M (1 + 2 / alpha) = 150
    noise = 150 * (0.01 * squares / (2 * 0.25) + 2 * clipped / 0.5)
    rest = 150 * 2 * (2 * ball / t + 2 / (2 * t * 0.01) * np.log(4 * 9 * t * 0.01 / 2 + 1))
    assert values(second, known) == pytest.approx(noise + rest)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_without_slack_they_are_the_learners_own(alpha: float) -> None:
    w_star, t = np.array([0.6, -0.2, 0.0]), np.arange(1.0, 31.0)
    facts = Facts(w_star, 2.0, 1.5, alpha, np.zeros(30))
    for learner in (
        PreferencePerceptron(3, Ranking()),
        PreferencePerceptron(3, Ranking(), batch=4),
        ExponentiatedPerceptron(3, Ranking(), bound=1.5, horizon=30),
        ConvexPerceptron(3, Ranking(), radius=0.7),
    ):
        assert values(learner, facts) == pytest.approx(learner.regret_bound(t, alpha, w_star, 2.0, 1.5))


def test_theorem_1_is_least_at_alpha_1() -> None:
    """alpha cancels: what it says is mean gain <= 2 R |w*| / sqrt T."""
    r, gain = regrets(KNOWN), gains(KNOWN)

    def right(alpha: float) -> float:
        facts = Facts(np.array([3.0, 4.0]), 1.0, 1.0, alpha, slacks(KNOWN, alpha))
        return float(values(PreferencePerceptron(2, Ranking()), facts)[-1])

    for alpha in (0.1, 0.5, 1.0):
        assert right(alpha) == pytest.approx(r.mean() + (2 * 5 / 2 - gain.mean()) / alpha)
    assert right(0.1) > right(0.5) > right(1.0)


# ---------------------------------------------------------------------------- hypotheses


def test_theorems_by_name() -> None:
    def names(learner: Any, expected: bool = False) -> list[tuple[str, str]]:
        facts = Facts(np.ones(N), 1.0, 1.0, 1.0, np.zeros(3), expected)
        return [(bound.theorem, bound.measure) for bound in bounds(learner, facts)]

    assert names(PreferencePerceptron(N, Ranking())) == [("Theorem 1", "REG")]
    assert names(PreferencePerceptron(N, Ranking()), True) == [("Corollary 2", "REG")]
    assert names(PreferencePerceptron(N, Ranking(), 2)) == [("Lemma 4", "REG")]
    assert names(PreferencePerceptron(N, Ranking(), 2), True) == [("Lemma 4, in expectation", "REG")]
    assert names(ExponentiatedPerceptron(N, Ranking(), 1.0)) == [("Theorem 5", "REG")]
    assert names(ConvexPerceptron(N, Ranking(), 9.0)) == [("Theorem 6", "REG"), ("Theorem 6", "CREG")]
    assert names(SecondOrderPerceptron(N, Ranking()), True) == [("Theorem 8, in expectation", "CREG")]
    assert names(Posterior(N, Ranking())) == names(RandomOrder(N, Ranking())) == []


class Greedy(Ranking):
    """A space whose argmax is not exact, and says so."""

    approximate = True


FACTS = Facts(np.array([3.0, 4.0]), 1.0, 2.0, 0.5, np.zeros(4), margins=np.zeros(4))
PERCEPTRON = PreferencePerceptron(2, Ranking())
EXPONENTIATED = ExponentiatedPerceptron(2, Ranking(), bound=2.0, horizon=4)
CONVEX = ConvexPerceptron(2, Ranking(), radius=5.0)
SECOND = SecondOrderPerceptron(2, Ranking(), gamma=0.04, radius=5.0)  # lambda / G = 2 / (2 . 5 . 5)


@pytest.mark.parametrize(
    ("learner", "facts", "lacking"),
    [
        (PERCEPTRON, FACTS._replace(alpha=1.5), "alpha is above 0 and at most 1"),
        (PERCEPTRON, FACTS._replace(R=math.inf), "R and S are known"),
        (
            PERCEPTRON._replace(space=WithBaseScore(Ranking())),
            FACTS,
            "what is shown is the exact argmax of w . phi(x, .)",
        ),
        (PERCEPTRON._replace(space=Greedy()), FACTS, "what is shown is the exact argmax of w . phi(x, .)"),
        (
            EXPONENTIATED._replace(horizon=0),
            FACTS,
            "the rate is fixed for a horizon (the variable rate has no guarantee)",
        ),
        (
            EXPONENTIATED._replace(bound=1.9),
            FACTS,
            "the learner's bound is at least S, so that |phi(x, y)|_inf <= bound",
        ),
        (CONVEX._replace(radius=4.9), FACTS, "w* is in the ball: |w*| = 5, radius 4.9"),
        (SECOND._replace(radius=4.9), FACTS, "w* is in the ball: |w*| = 5, radius 4.9"),
        (SECOND._replace(gamma=0.041), FACTS, "gamma is at most lambda / G = 0.04"),
        (SECOND, FACTS._replace(margins=np.array([0, 0, 5.1, 0])), "-w_t . D_t is at most 2 alpha M in every round"),
        (SECOND, FACTS._replace(margins=np.empty(0)), "-w_t . D_t is at most 2 alpha M in every round (not known)"),
        (SECOND, FACTS._replace(expected=True), "each answer is alpha-informative, not only their mean"),
    ],
)
def test_no_bound_where_a_hypothesis_fails_and_it_says_which(learner: Any, facts: Facts, lacking: str) -> None:
    for good in (PERCEPTRON, EXPONENTIATED, CONVEX, SECOND):
        assert all(bound.holds and np.isfinite(bound.values).all() for bound in bounds(good, FACTS))
    for bound in bounds(learner, facts):
        assert bound.lacking == (lacking,)
        assert not bound.holds
        assert np.isnan(bound.values).all()


@pytest.mark.parametrize("alpha", [0.0, -0.5, math.nan])
def test_an_alpha_that_nothing_can_be_divided_by_has_no_bound(alpha: float) -> None:
    for learner in (PERCEPTRON, EXPONENTIATED, CONVEX, SECOND):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = bounds(learner, FACTS._replace(alpha=alpha))
        for bound in found:
            assert "alpha is above 0 and at most 1" in bound.lacking
            assert np.isnan(bound.values).all()


def test_a_person_who_wants_nothing_has_every_bound() -> None:
    """w* = 0: the quadratic loss is 0, and any gamma will do."""
    for learner in (PERCEPTRON, EXPONENTIATED, CONVEX, SECOND):
        margins = np.full(4, -1.0)
        for bound in bounds(learner, FACTS._replace(w_star=np.zeros(2), margins=margins)):
            assert bound.lacking == ()
            assert np.isfinite(bound.values).all()


def test_at_alpha_1_a_ball_as_large_as_w_needs_no_margins() -> None:
    """|w_t . D_t| <= 2 R |w_t| <= 2 R |w*| = 2 M."""
    facts = FACTS._replace(alpha=1.0, margins=np.empty(0))
    assert bounds(SECOND._replace(gamma=1.0 / 15.0), facts)[0].holds  # gamma = 1 / (3 M)
    assert not bounds(SECOND._replace(gamma=1.0 / 15.0, radius=5.1), facts)[0].holds


# ---------------------------------------------------------------------------- on streams


def stream(user: Any) -> tuple[Any, Any, float, float]:
    """Queries with features scaled so that R is 1/2, where the bounds say something; |w*| = 1."""
    made, w_star = synthetic_queries(100, 10, N, noise=0.5, user=user, seed=1)
    R, _ = feature_bounds(made.X, made.offsets, Ranking())
    world = query_stream(made.X * (0.5 / R), made.labels, made.offsets, w_star, user, shuffle=2)
    return world, w_star, *feature_bounds(world.X, world.offsets, Ranking())


def rounds(learner: Any, world: Any, w_star: Any, seed: int) -> tuple[Utilities, Any]:
    """The utilities of a run and its margins -w_t . D_t."""
    log, margins, w = [], [], np.zeros(N)
    for played, state in play(learner, world, T, seed):
        phi = [learner.space.phi(played.x, y) for y in (played.y, played.feedback)]
        margins.append(float(w @ (phi[0] - phi[1])))
        log.append(copy_arrays(played))
        w = learner.weights(state).copy()
    return true_utilities(log, learner.space, w_star), np.array(margins)


def measured(bound: Bound, known: Utilities, M: float) -> Any:
    """REG_t, Eq. 4, or CREG_t, Eq. 15."""
    r = regrets(known)
    loss = r if bound.measure == "REG" else (-r - M) ** 2 - M**2
    return np.cumsum(loss) / np.arange(1, r.size + 1)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
@pytest.mark.parametrize("user", [StrictAlpha(0.5), Noisy(5)], ids=repr)
def test_what_is_promised_is_kept(user: Any, alpha: float) -> None:
    """At any alpha, with the slacks that belong to it, after every round; the hypotheses measured, not assumed."""
    world, w_star, R, S = stream(user)
    M = R * float(np.linalg.norm(w_star))
    drawn = 0
    for learner in (
        PreferencePerceptron(N, Ranking()),
        PreferencePerceptron(N, Ranking(), batch=7),
        ExponentiatedPerceptron(N, Ranking(), bound=S, horizon=T),
        ConvexPerceptron(N, Ranking(), radius=1.0),
        SecondOrderPerceptron(N, Ranking(), gamma=1.0 / (M * (1.0 + 2.0 / alpha)), radius=1.0),
    ):
        known, margins = rounds(learner, world, w_star, 3)
        assert (margins >= -1e-12).all()  # w_t . D_t <= 0
        for bound in bounds(learner, Facts(w_star, R, S, alpha, slacks(known, alpha), margins=margins)):
            if bound.holds:
                drawn += 1
                assert (measured(bound, known, M) <= bound.values).all(), bound.theorem
    assert drawn >= 5


def test_corollary_2_on_expected_feedback() -> None:
    """Eq. 7 without slack: the mean regret over people who draw their answers stays below the right side of Eq. 12,
    though single answers are worse than what was shown."""
    world, w_star, R, S = stream(ExpectedAlpha(alpha=0.3, strict=0.5))
    learner = PreferencePerceptron(N, Ranking())
    [bound] = bounds(learner, Facts(w_star, R, S, 0.3, np.zeros(T), expected=True))
    runs = [rounds(learner, world, w_star, seed)[0] for seed in range(4)]
    mean = np.mean([np.cumsum(regrets(known)) for known in runs], axis=0) / np.arange(1, T + 1)
    assert (mean <= bound.values).all()
    assert sum(sign_test(gains(known)).worse for known in runs) > 0
    assert max(slacks(known, 0.3).max() for known in runs) > 0.1


# ---------------------------------------------------------------------------- inside the proof of Theorem 8


def round_of_theorem_8(gain: float, r: float, margin: float, alpha: float, G: float, M: float) -> float:
    """Right minus left side of Eq. 28 with signed gain: c(-r) - c(0) <= G (x - gamma/2 x^2), gamma = 2/G,
    x = (margin + gain + xi+) / alpha; c(theta) = (theta - M)^2."""
    clipped = max(0.0, alpha * r - gain)
    x = (margin + gain + clipped) / alpha
    return G * x - x**2 - ((-r - M) ** 2 - M**2)


def test_how_steep_the_loss_may_be() -> None:
    """With G = 2M (1 + 2/alpha) every round obeys Eq. 28, as long as the margin is at most 2 alpha M. With G = 6M, the
    slope on [-2M, 0], not: the proof takes it at -max(gain, alpha r)/alpha. At alpha = 1 they are the same."""
    M, rng = 1.0, np.random.default_rng(0)
    for alpha in (0.2, 0.5, 1.0):
        G = 2.0 * M * (1.0 + 2.0 / alpha)
        r = rng.uniform(0.0, 2.0 * M, 20_000)
        gain = np.minimum(rng.uniform(-2.0 * M, 2.0 * M, r.size), r)
        margin = rng.uniform(0.0, 2.0 * alpha * M, r.size)
        found = [round_of_theorem_8(*each, alpha, G, M) for each in zip(gain, r, margin)]
        assert min(found) >= -1e-12
    assert round_of_theorem_8(2.0, 2.0, 0.0, 0.2, 6.0, 1.0) < 0.0
    assert round_of_theorem_8(2.0, 2.0, 0.0, 0.2, 22.0, 1.0) > 0.0
    assert round_of_theorem_8(0.0, 0.0, 25.0, 0.5, 10.0, 1.0) < 0.0  # a margin that is too great
    assert 2.0 * M * (1.0 + 2.0) == 6.0 * M


def test_better_feedback_has_an_alpha() -> None:
    """A person who picks a better rated item or is content: no answer is worse, much of the regret is gained, and the
    sign test sees it: p = 2 / 2^n for n of n."""
    rng = np.random.default_rng(4)
    X, w_star = rng.standard_normal((300, N)), rng.standard_normal(N)
    learner = PreferencePerceptron(N, Ranking(1))
    log = [copy_arrays(played) for played, _ in play(learner, item_pool(X, w_star, Better()), 100, 0)]
    known = true_utilities(log, Ranking(1), w_star)
    found = sign_test(gains(known))
    assert gains(known).sum() > 0.1 * regrets(known).sum()
    assert found.better > 10
    assert found.worse == 0
    assert found.p == pytest.approx(2.0 / 2.0**found.better)
