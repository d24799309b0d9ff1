"""The kinds of feedback, one module each: all that a loop does otherwise for one kind than for another.

protocol     what a loop asks of an interaction
forms        of feedback: how each is read, written and described
card         how an interaction speaks of itself
coactive     a better object than the one shown: clicks, an order, an edit, a thumb
ordinal      grades from 1 to k
rating       numbers for items
comparison   which of two, or of several, is better

A learner names its interaction, in its docstring (`Interaction: ordinal.`) by the `name` of a class in this folder, or
as a class attribute `interaction`, which is the class itself: so a kind of one's own changes no file of heedful's.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from heedful.learners.registry import about
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.settings import Founding

UNSAID = "coactive"
"""The interaction of a learner that names none."""


def interaction_of(founding: Founding, learner: Any) -> Any:
    """The interaction of a loop founded so, with this learner. LookupError where the learner names one that there is
    not."""
    return interaction_class(type(learner))(founding, learner)


def interaction_class(cls: type) -> Any:
    """The interaction that a learner's class names. LookupError where there is no such one."""
    own = getattr(cls, "interaction", None)
    if isinstance(own, type):
        return own
    name, known = about(cls).interaction or UNSAID, interactions()
    if name not in known:
        raise LookupError(f"interaction: wanted {', '.join(sorted(known))}, got {name}")
    return known[name]


@cache
def interactions() -> dict[str, Any]:
    """The interactions of this folder, by name; found by looking, not listed."""
    modules = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    classes: list[Any] = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return {each.name: each for each in classes if Interaction in each.__mro__[1:]}
