"""Labels of scikit-learn estimators as ranks: the distinct labels, their order, and the rank of each row."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import type_of_target

from heedful.core.validation import describe
from heedful.jit.kernel import Ints

Labels = npt.NDArray[Any]

MOST_NAMED = 10
"""How many labels a warning names at most."""


def distinct(y: object, name: str = "y") -> tuple[Labels, Ints]:
    """Return the distinct labels among n labels y (n,), sorted, and for each row the index of its label among them
    (n,).

    Raise ValueError, with `name` as the name of the argument, if y does not contain class labels.
    """
    try:
        y = np.asarray(y)
        with np.errstate(invalid="ignore"):  # NaN gets an error below, not a warning here
            kind = type_of_target(y)
        labels, inverse = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:  # labels that cannot be compared, NaN, rows of several lengths
        raise ValueError(f"{name}: expected labels of classes, got {describe(y)}: {error}") from None
    if kind not in ("binary", "multiclass"):
        hint = ", grades like 3.5 as whole numbers or texts" if kind == "continuous" else ""
        raise ValueError(f"{name}: expected labels of classes{hint}. Unknown label type: {kind}")
    return labels, inverse.astype(np.int64, copy=False)


def category_order(y: object) -> list[Any] | None:
    """Return the categories of y, lowest first, if it is an ordered pandas Categorical or a polars Enum; else None."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return list(getattr(dtype, "categories", ())) or None
    return None


def scale(labels: Labels, classes: object, order: object, before: Labels | None) -> Labels:
    """Return all labels, lowest first: `before` if given, else `order`, else `classes`, else `labels`.

    The last two are as they sort, texts that are numbers as numbers.

    `labels`: the labels that occur in y, sorted; `before`: the labels of earlier calls, lowest first; `order`: the
    estimator's parameter; `classes`: the argument of `partial_fit`. Raise ValueError, naming the argument, if there are
    fewer than two labels, or if `classes` and the result are not the same labels.
    """
    if classes is not None:
        classes, _ = distinct(classes, "classes")
    if before is None and order is None:
        before = sort_numbers(labels if classes is None else classes)
        if before.size < 2:
            name, count = ("y" if classes is None else "classes"), "one class" if before.size else "no class"
            raise ValueError(
                f"{name}: expected labels of two classes or more, got {count}, {describe(before.tolist())}"
            )
    elif before is None:
        before = np.array(order)
        if before.dtype.kind in "US" and isinstance(order, list | tuple) and not all(isinstance(x, str) for x in order):
            raise ValueError(f"order: expected labels of one kind, got {describe(order)}")
        if before.ndim != 1 or not 2 <= before.size == len(set(before.tolist())):
            raise ValueError(f"order: expected two distinct labels or more, lowest first, got {describe(order)}")
        distinct(before, "order")  # raises for invalid labels, such as NaN
    if classes is not None and set(classes.tolist()) != set(before.tolist()):
        raise ValueError(f"classes: expected the labels {describe(before.tolist())}, got {describe(classes.tolist())}")
    return before


def sort_numbers(labels: Labels) -> Labels:
    """Return sorted `labels` (k,), lowest first: texts that are k different numbers are sorted as these, others stay as
    they are."""
    values = _values(labels)
    return labels if values is None else labels[np.argsort(values)]


def _values(labels: Labels) -> list[float] | None:
    """Return the numbers that the texts `labels` are, all of them different; None if they are not."""
    try:
        values = [float(label) for label in labels.tolist() if isinstance(label, str)]
    except ValueError:
        return None
    return values if len(set(values)) == labels.size and all(map(math.isfinite, values)) else None


def is_alphabetical(labels: Labels) -> bool:
    """Return whether the order of `labels` (k,), which nobody gave, is that of the alphabet and makes a difference:
    they are three texts or more, and no numbers."""
    texts = all(isinstance(label, str) for label in labels.tolist())
    return texts and labels.size > 2 and _values(labels) is None


def warn_of_alphabet(labels: Labels, level: int) -> None:
    """Warn that `labels`, texts, are taken to be in the order of the alphabet, and say how another is given.

    `level` is the number of calls from here to the user's line, as `stacklevel` counts them."""
    shown = labels.tolist()[:MOST_NAMED]
    more = f", and {labels.size - len(shown):,} more" if labels.size > len(shown) else ""
    order = f"order=[{', '.join(json.dumps(label, ensure_ascii=False) for label in shown)}{', ...' if more else ''}]"
    warnings.warn(
        f"y: expected to be told the order of texts, got none: by the alphabet it is {', '.join(shown)}{more}, lowest "
        f"first. The right one is given by {order} with the labels, lowest first, by an ordered Categorical, or by "
        "numbers in place of texts",
        UserWarning,
        stacklevel=level + 1,
    )


def ranks_of(labels: Labels, classes: Labels) -> Ints:
    """Return the rank of each of n `labels` (n,), from 1 for the first of `classes`.

    Raise ValueError for a label that is not in `classes`.
    """
    ranks = {label: r for r, label in enumerate(classes.tolist(), 1)}
    for label in labels.tolist():
        if label not in ranks:
            raise ValueError(f"y: expected one of the classes {describe(classes.tolist())}, got {label!r}")
    return np.array([ranks[label] for label in labels.tolist()], np.int64)


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Context manager that restores all attributes of `estimator` if its block raises an error or is interrupted.

    This includes attributes that scikit-learn's own checks set first.
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
