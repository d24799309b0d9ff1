"""A scorer for ordered labels, for grid searches and cross-validation in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.estimators.labels import distinct, is_alphabetical, ranks_of, sort_numbers, warn_of_alphabet


def neg_rank_loss(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the mean of |predicted rank - true rank| over n rows of N features X (n, N) with true labels y (n,).

    Use it as `scoring=neg_rank_loss` in a search or a cross-validation. It works for any fitted classifier whose
    `classes_` are the labels, lowest first, and for pipelines that end in one. Labels may be texts, which
    scikit-learn's own "neg_mean_absolute_error" cannot handle: those that are numbers are in their order, and others in
    that of the alphabet, which is warned of, unless the estimator was given their order. Raise ValueError for a label
    that the estimator does not know.
    """
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    classes = estimator.classes_ if hasattr(last, "_assumed") else sort_numbers(estimator.classes_)
    if getattr(last, "_assumed", is_alphabetical(classes)):
        warn_of_alphabet(classes, 2)
    shown, true = (distinct(labels) for labels in (estimator.predict(X), y))
    ranks = [ranks_of(labels, classes)[inverse] for labels, inverse in (shown, true)]
    if ranks[0].shape != ranks[1].shape:
        raise ValueError(f"y: expected as many labels as X has rows, {ranks[0].shape}, got {ranks[1].shape}")
    return -float(np.abs(ranks[0] - ranks[1]).mean())
