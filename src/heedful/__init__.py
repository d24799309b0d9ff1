"""Online preference learning: show something, take the reaction, do better next time, and prove it.

>>> from heedful import PreferencePerceptron, Ranking, Session
>>> session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
>>> session.propose([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
array([0, 1, 2])
>>> session.learn([1, 2, 0])
>>> session.propose([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
array([1, 2, 0])
"""

from importlib import import_module
from typing import Any

from heedful.fold import Round, Session, copied, play, replay, trace
from heedful.spaces import Assignment, Ranking

__version__ = "0.1.0"

__all__ = ["Assignment", "Ranking", "Round", "Session", "copied", "play", "replay", "trace"]

_LATER = {
    "Path": "heedful.spaces_structured",
    "Subset": "heedful.spaces_structured",
    "Loop": "heedful.loop",
    "Settings": "heedful.loop.settings",
    "Encoding": "heedful.features",
    "TEXTS": "heedful.features",
    "infer": "heedful.features",
    "vectors": "heedful.features",
}


def __getattr__(name: str) -> Any:
    """The learners, by class name, `team_draft`, and what a loop needs: imported when first named."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    return getattr(import_module("heedful.learners"), name)
