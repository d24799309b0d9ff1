"""Learners as scikit-learn estimators, e.g. `from heedful.estimators import PRankClassifier`; they need the extra
`sklearn`.

scikit-learn is imported when the first estimator is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from heedful.core.extras import lacking

if TYPE_CHECKING:
    from heedful.estimators.ordinal import OrdinalLogisticClassifier, PRankClassifier
    from heedful.estimators.preferences import PreferenceGPClassifier
    from heedful.estimators.ranking import CoactiveRanker
    from heedful.estimators.scoring import neg_rank_loss

__all__ = [
    "CoactiveRanker",
    "OrdinalLogisticClassifier",
    "PRankClassifier",
    "PreferenceGPClassifier",
    "neg_rank_loss",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import an estimator when it is first used. ModuleNotFoundError, saying what to install, where scikit-learn is
        missing; AttributeError for other names."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            import_module("sklearn")
        except ModuleNotFoundError as error:
            if error.name != "sklearn":
                raise
            raise ModuleNotFoundError(lacking(name, "scikit-learn", "sklearn"), name="sklearn") from None
        apart = {"CoactiveRanker": "ranking", "PreferenceGPClassifier": "preferences", "neg_rank_loss": "scoring"}
        family = apart.get(name, "ordinal")
        return getattr(import_module(f"heedful.estimators.{family}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
