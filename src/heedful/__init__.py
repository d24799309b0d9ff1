"""Online preference learning: show something, take the reaction, do better next time, and prove it.

A `Session` runs one learner in memory: `propose` returns what to show, `learn` takes the better answer. A `Loop` is
the same with a log on disk. Here three items with two features each are ranked, and the person corrects the order:

>>> from heedful import PreferencePerceptron, Ranking, Session
>>> session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
>>> session.propose([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
array([0, 1, 2])
>>> session.learn([1, 2, 0])
>>> session.propose([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
array([1, 2, 0])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

# The public names, for type checkers. At run time each is imported when it is first used (`__getattr__`).
if TYPE_CHECKING:
    from heedful.boards.leaderboard import Leaderboard, leaderboard
    from heedful.boards.ranking import PreferenceRanking, rank
    from heedful.core.fold import Learner, Round, World, copy_arrays, play, replay, trace
    from heedful.core.session import Session
    from heedful.core.space import Space
    from heedful.features import TEXTS, Encoding, declare, infer, vectors
    from heedful.learners.coactive.baselines import FixedOrder, RandomOrder
    from heedful.learners.coactive.dueling import DuelingBandit, team_draft
    from heedful.learners.coactive.online_convex import OnlineConvex
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
    from heedful.loop import Loop
    from heedful.loop.settings import Settings
    from heedful.spaces.assignment import Assignment
    from heedful.spaces.ranking import Ranking
    from heedful.spaces.structured import Subset

__all__ = [
    "ALB",
    "BMF",
    "PTS",
    "TEXTS",
    "Assignment",
    "CollaborativeGP",
    "ConstantRank",
    "ConvexPerceptron",
    "DuelingBandit",
    "Encoding",
    "ExponentiatedPerceptron",
    "FixedOrder",
    "HierarchicalGP",
    "ItemMean",
    "Leaderboard",
    "Learner",
    "Loop",
    "MulticlassPerceptron",
    "NMFBandit",
    "OnlineConvex",
    "OrdinalLogistic",
    "PRank",
    "PairMean",
    "PerturbedPerceptron",
    "Posterior",
    "PreferenceGP",
    "PreferencePerceptron",
    "PreferenceRanking",
    "RandomItem",
    "RandomOrder",
    "Ranking",
    "RankingSVM",
    "Round",
    "SecondOrderPerceptron",
    "Session",
    "Settings",
    "Space",
    "Subset",
    "UserGreedy",
    "WidrowHoff",
    "World",
    "copy_arrays",
    "declare",
    "infer",
    "leaderboard",
    "play",
    "rank",
    "replay",
    "team_draft",
    "trace",
    "vectors",
]

_WHERE = {
    "TEXTS": "heedful.features",
    "Encoding": "heedful.features",
    "declare": "heedful.features",
    "infer": "heedful.features",
    "vectors": "heedful.features",
    "Learner": "heedful.core.fold",
    "Round": "heedful.core.fold",
    "Session": "heedful.core.session",
    "World": "heedful.core.fold",
    "Space": "heedful.core.space",
    "copy_arrays": "heedful.core.fold",
    "play": "heedful.core.fold",
    "replay": "heedful.core.fold",
    "trace": "heedful.core.fold",
    "Loop": "heedful.loop",
    "Settings": "heedful.loop.settings",
    "Leaderboard": "heedful.boards.leaderboard",
    "leaderboard": "heedful.boards.leaderboard",
    "PreferenceRanking": "heedful.boards.ranking",
    "rank": "heedful.boards.ranking",
    "Assignment": "heedful.spaces.assignment",
    "Ranking": "heedful.spaces.ranking",
    "Subset": "heedful.spaces.structured",
}
"""The module of each public name that is no learner; learners are found by searching heedful/learners."""


if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        """Import the public `name` when it is first used. Raise AttributeError if there is no such name."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_WHERE.get(name, "heedful.learners")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, for `dir(heedful)` and tab completion."""
    return [*(name for name in globals() if name.startswith("__")), *__all__]
