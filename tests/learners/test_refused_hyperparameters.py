"""Hyperparameters that make no sense are refused by their name; NaN is, too (`heedful.core.conformance`)."""

from typing import Any

import numpy as np
import pytest

from heedful.learners.coactive.baselines import FixedOrder, RandomOrder
from heedful.learners.coactive.dueling import DuelingBandit
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.perturbed import PerturbedPerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.ranking_svm import RankingSVM
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, MulticlassPerceptron, PRank, WidrowHoff
from heedful.learners.preference.collaborative_gp import CollaborativeGP
from heedful.learners.preference.preference_gp import HierarchicalGP, PreferenceGP
from heedful.learners.ratings.alb import ALB
from heedful.learners.ratings.baselines import ItemMean, PairMean, RandomItem, UserGreedy
from heedful.learners.ratings.bmf import BMF
from heedful.learners.ratings.nmf_bandit import NMFBandit
from heedful.learners.ratings.pts import PTS
from heedful.spaces.assignment import Assignment
from heedful.spaces.comparison import Choice
from heedful.spaces.ranking import Ranking, WithBaseScore
from heedful.spaces.slate import Slate

RNG = np.random.default_rng(0)
INF, NAN = float("inf"), float("nan")
NOT_COUNTS = [0, -1, 2.5, True, "3", None, NAN]
NOT_POSITIVE = [0.0, -1.0, INF, NAN, True, "1", None]
COACTIVE: list[Any] = [
    PreferencePerceptron(3, Ranking()),
    ExponentiatedPerceptron(3, Ranking(), 1.0),
    ConvexPerceptron(3, Ranking(), 1.0),
    SecondOrderPerceptron(3, Ranking()),
    DuelingBandit(3, Ranking()),
]
PERTURBED: list[Any] = [Posterior(2, Ranking(3)), PerturbedPerceptron(2, Ranking(3))]
RANKERS = [*COACTIVE, *PERTURBED, FixedOrder(2, Ranking(2)), RandomOrder(2, Ranking(2)), RankingSVM(2, Ranking(2))]
RATINGS: list[Any] = [ALB(), BMF(), PTS(), NMFBandit(), RandomItem(), UserGreedy(), ItemMean(), PairMean()]
GAUSSIAN: list[Any] = [PreferenceGP(Choice(3)), HierarchicalGP(Choice(3)), CollaborativeGP(Choice(3), D=4)]
ORDINAL: list[Any] = [cls(3, 5) for cls in (PRank, MulticlassPerceptron, WidrowHoff, ConstantRank, OrdinalLogistic)]

GRADES = "a whole number, 2 to 1000"
SWAPS = "0, or a number from 0.001 to 0.5"
REFUSED: list[tuple[list[Any], str, list[Any], str]] = [
    (RANKERS, "n_features", NOT_COUNTS, ""),
    ([RankingSVM(2, Ranking(2))], "capacity", [1], ""),
    ([RankingSVM(2, Ranking(2))], "squared", [1, "no"], ""),
    (COACTIVE[:1], "batch", NOT_COUNTS, ""),
    (COACTIVE[1:2], "horizon", NOT_COUNTS[1:], ""),
    (COACTIVE[1:2], "signed", [0, 1, None, "yes"], ""),
    (COACTIVE[1:2], "bound", NOT_POSITIVE, ""),
    (COACTIVE[2:4], "radius", NOT_POSITIVE, ""),
    (COACTIVE[3:4], "epsilon", NOT_POSITIVE, ""),
    # where 1 / epsilon or the way back to the ball is longer than floating numbers resolve, A^-1 is lost
    (COACTIVE[3:4], "epsilon", [1e-50, 9e-7], "a number from 1e-6 to 1e50"),
    (COACTIVE[3:4], "radius", [1e-50, 9e-7], "a number from 1e-6 to 1e50"),
    (COACTIVE[3:], "gamma", NOT_POSITIVE, ""),
    (COACTIVE[4:], "delta", NOT_POSITIVE, ""),
    (PERTURBED[:1], "prior", NOT_POSITIVE, "a finite number above 0, from 1e-50 to 1e50"),
    (PERTURBED[:1], "swap", [0.6, 1e-9, -0.1, NAN, False], SWAPS),
    (PERTURBED[:1], "products", [2], "a whole number, 0 to 1"),
    (PERTURBED[1:], "swap", [0.0, 0.6, True], "a number from 0.001 to 0.5"),
    (PERTURBED, "space", [Assignment(3), 3], "a Ranking, whose neighbours can be swapped"),
    (COACTIVE[4:], "space", [Assignment(2)], "a Ranking"),
    (ORDINAL, "n_features", [0, True], "a whole number, 1 or more"),
    (ORDINAL[:4], "n_ranks", [1, 1001, 2.5], GRADES),
    (ORDINAL[4:], "n_ranks", [1, 101, 2.5], "a whole number, 2 to 100"),
    (ORDINAL[4:], "prior", NOT_POSITIVE, "a finite number above 0, from 1e-50 to 1e50"),
    (ORDINAL[2:3], "eta", [0.0, NAN], "a finite number above 0, from 1e-50 to 1e50"),
    (RATINGS, "space", [3, None, Slate], "a slate, such as Slate(5)"),
    (RATINGS[:4], "n_factors", [0, 1001], "a whole number, 1 to 1000"),
    (RATINGS[:1], "penalty", [0.0], ""),
    ([RATINGS[0], RATINGS[2]], "spread", [0.0, -1.0], "a finite number above 0"),
    ([RATINGS[0], RATINGS[2]], "sigma", [0.0, NAN], "a finite number above 0"),
    (RATINGS[:1], "delta", [1.0, 0.0, True], ""),
    (RATINGS[:1], "s", [-1.0, INF], ""),
    (RATINGS[:1], "switching", [-1.0, NAN], ""),
    (RATINGS[:1], "n_users", [0], ""),
    (RATINGS[:1], "n_items", [2**40], ""),
    (RATINGS[1:2], "width", [-1.0], "a number from 0 to 1e6"),
    (RATINGS[1:2], "growth", [NAN], "a number from 0 to 1e6"),
    (RATINGS[1:2], "gamma", [0.4], "a number from 0.5 to 1"),
    (RATINGS[1:2], "sampled", [1], "True or False"),
    (RATINGS[1:2], "automatic", [0.5], "True or False"),
    (RATINGS[2:3], "n_particles", [0], "a whole number"),
    (RATINGS[2:3], "resample", [1.5], "a number from 0 to 1"),
    (RATINGS[3:4], "theta", [-0.1], "a number from 0 to 1e50"),
    *[(RATINGS[3:4], field, [0], "a whole number") for field in ("explored", "every", "sweeps")],
    (RATINGS[6:], "prior", [-1.0, NAN, True], "a number from 0 to 1e50"),
    (GAUSSIAN, "space", [None], "a choice among items"),
    (GAUSSIAN, "amplitude", [0.0], ""),
    (GAUSSIAN[:2], "amplitude", [1e4], "a number above 0, at most 1000"),
    (GAUSSIAN[2:], "amplitude", [101], "at most 100"),
    (GAUSSIAN, "width", [-1.0], "a number from 0"),
    (GAUSSIAN[:2], "width", [1e4], "a number from 0 to 1000"),
    (GAUSSIAN[:2], "width", [0], "1e-06 or more where 'equally good' is on offer"),
    ([each._replace(amplitude=1e3) for each in GAUSSIAN[:2]], "width", [9e-4], "0.001 or more where 'equally good'"),
    (GAUSSIAN[2:], "width", [31], "at most 30"),
    (GAUSSIAN, "lapse", [1.0], "a number from 0 to 0.99"),
    (GAUSSIAN, "lengthscale", [NAN], ""),
    (GAUSSIAN, "rule", ["best"], ""),
    (GAUSSIAN, "every", [0], ""),
    (GAUSSIAN[:2], "learn_noise", [1], "True or False"),
    (GAUSSIAN[1:2], "nu0", [-0.5], "a number, 0 or more"),
    (GAUSSIAN[1:2], "kappa0", [-0.5], "a number, 0 or more"),
    (GAUSSIAN[2:], "D", [0], ""),
]


@pytest.mark.parametrize(
    ("learner", "field", "value", "expected"),
    [(learner, field, value, text) for some, field, values, text in REFUSED for learner in some for value in values],
)
def test_what_makes_no_sense_is_refused_by_name(learner: Any, field: str, value: Any, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        learner._replace(**{field: value}).init(RNG)
    assert str(caught.value).startswith(f"{field}: expected {expected}")
    assert f", got {value!r}" in str(caught.value)


@pytest.mark.parametrize("learner", RANKERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(("space", "field"), [(Ranking(0), "k"), (Ranking(1025), "k"), (Assignment(0), "slots")])
def test_unsuitable_spaces_are_refused_by_name(learner: Any, space: Any, field: str) -> None:
    if isinstance(learner, DuelingBandit | Posterior | PerturbedPerceptron) and isinstance(space, Assignment):
        field = "space"
    with pytest.raises(ValueError, match=f"^{field}: expected "):
        learner._replace(space=space).init(RNG)


@pytest.mark.parametrize(
    "learner", [Posterior(1, Ranking(1)), Posterior(2, WithBaseScore(Ranking(2)), swap=0.001, prior=1e-50)]
)
def test_the_least_is_taken(learner: Any) -> None:
    assert learner.weights(learner.init(RNG)).tolist() == [0.0] * learner.n_features


def test_the_size_of_a_slate_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^size: expected"):
        ALB(Slate(0)).init(RNG)
