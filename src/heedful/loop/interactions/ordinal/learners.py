"""Learners of grades by name, for loops: `ordinal-logistic:n_ranks=5` for grades from 1 to 5.

In simulations the number of grades comes from the data; a loop begins without data, so its learner has to say it."""

from __future__ import annotations

import re
from typing import Any

from heedful.core.validation import check_count
from heedful.learners.registry import UnknownLearner, learner_class
from heedful.loop.interactions.named import loop_learner, named_interaction
from heedful.spaces.ordinal import MOST_RANKS, Ranks

DEFAULT = "ordinal-logistic"
"""The learner of a loop of grades if none is named."""
_RANKS = re.compile(r"[:,]\s*n_ranks\s*=")


def is_grading(cls: type) -> bool:
    """Return whether a learner of this class predicts grades, so that its interaction is ordinal."""
    return named_interaction(cls) == "ordinal"


def spec_with_grades(spec: str, grades: int) -> str:
    """Return `spec` with the number of grades as its parameter n_ranks. Raise ValueError if it has one already."""
    if _RANKS.search(spec):
        raise ValueError(f"learner: expected one that does not say n_ranks itself, got {spec}")
    return f"{spec}{',' if '=' in spec else ':'}n_ranks={grades}"


def spec_of_option(learner: str | None, grades: int) -> str:
    """Return the learner of a loop that is made with the option --grades; `learner` is the one that was named.

    Raise ValueError if it predicts no grades, or there cannot be so many grades."""
    from heedful.learners.ordinal.ordinal_logistic import MOST_GRADES

    spec = learner or DEFAULT
    check_count("--grades", grades, least=2, most=MOST_RANKS)
    if learner is None and grades > MOST_GRADES:
        expected = f"at most {MOST_GRADES} with {DEFAULT}, or another learner with it, such as --learner prank"
        raise ValueError(f"--grades: expected {expected}, got {grades}")
    if not is_grading(learner_class(spec)):
        expected = f"a --learner that predicts grades with it, such as {DEFAULT}"
        raise ValueError(f"--grades: expected {expected}, got {spec}")
    return spec_with_grades(spec, grades)


def complete_spec(spec: str, grades: int) -> str:
    """Return `spec`, a learner's name with parameters, with the number of grades `grades` added as n_ranks if the
    learner needs it and `spec` gives none. Return `spec` as it is if there is no learner of that name."""
    try:
        cls: Any = learner_class(spec)
    except UnknownLearner:  # it is refused where it is made
        return spec
    says = "n_ranks" not in cls._fields or "n_ranks" in cls._field_defaults or _RANKS.search(spec)
    return spec if says else spec_with_grades(spec, grades)


def grader(spec: str, n_names: int, shrink: float, grades: int | None = None, products: int = 0) -> Any:
    """Return the learner of grades that `spec` names, over `n_names` features, and one more, a constant 1, if it has no
    thresholds.

    - `shrink`: if above 0, each person gets an offset of their own
    - `grades`: the number of grades; None if `spec` gives it
    - `products`: the number of features, before the last one, that are products of two others

    Raise ValueError if the learner does not fit, or if it has no weights and thresholds and `shrink` is above 0."""
    if grades is None and complete_spec(spec, 5) != spec:
        expected = "expected n_ranks, how many grades there are"
        raise ValueError(
            f"learner: {expected}, got {spec}; write {spec_with_grades(spec, 5)}, or with as many as there are"
        )
    # Features are centred, and grades are not: what has no thresholds gets one that is always 1.
    size = n_names + (not hasattr(learner_class(spec), "thresholds"))
    space = None if grades is None else Ranks(grades)
    learner = loop_learner(spec, size, space, "ordinal", f"that predicts grades, such as {DEFAULT}", products)
    if not isinstance(getattr(learner, "space", None), Ranks):
        raise ValueError(f"learner: expected one whose space is Ranks(n_ranks), the grades it predicts, got {spec}")
    if shrink > 0.0 and not hasattr(learner, "learn_offset"):
        expected = f"expected 0 for {spec}, or a learner whose people have offsets of their own, such as {DEFAULT}"
        raise ValueError(f"shrink: {expected}, got {shrink:g}")
    return learner
