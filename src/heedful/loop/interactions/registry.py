"""Which interaction a loop has: found in this folder by name, or the class that a learner of one's own names."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from heedful.learners.registry import learner_class
from heedful.loop import interactions as package
from heedful.loop.interactions.named import UNSAID, named_interaction
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.settings import Manifest, Settings
from heedful.loop.versions import version_of


def interaction_of(manifest: Manifest, learner: Any) -> Any:
    """The interaction of a loop founded so, with this learner. LookupError where the learner names one that there is
    not."""
    return interaction_class(type(learner))(manifest, learner)


def interaction_class(cls: type) -> Any:
    """The interaction that a learner's class names. LookupError where there is no such one."""
    own = getattr(cls, "interaction", None)
    if isinstance(own, type):
        return own
    name, known = named_interaction(cls), interactions()
    if name not in known:
        raise LookupError(f"interaction: expected {', '.join(sorted(known))}, got {name}")
    return known[name]


def interaction_type(spec: str, settings: Settings) -> Any:
    """The interaction of a loop with these settings and the learner that `spec` names: that which a setting makes, else
    the learner's. ValueError where there is no such learner, or it names an interaction that there is not."""
    if (made := interaction_made_by(settings)) is not None:
        return made
    try:
        return interaction_class(learner_class(spec))
    except LookupError as error:
        raise ValueError(f"learner: {spec}: {error}") from None


def interaction_made_by(settings: Settings) -> Any:
    """The interaction that one of the settings makes, whatever the learner; None where it is the learner's to say.
    ValueError where two of them do."""
    made = [each for each in interactions().values() if each.setting and getattr(settings, each.setting) is not None]
    if len(made) > 1:
        name = made[0].setting
        raise ValueError(f"{name}: expected none in {made[1].loop}, got {getattr(settings, name)}")
    return made[0] if made else None


def default_learner(settings: Settings) -> str:
    """The learner of a loop with these settings, where none is named."""
    kind: Any = interaction_made_by(settings) or interactions()[UNSAID]
    return str(kind.default_learner)


def learner_version(learner: Any) -> str:
    """The version of the fold of this learner: what the model declares, then what the learner does."""
    return version_of(interaction_class(type(learner)).model_type.version, learner)


@cache
def interactions() -> dict[str, Any]:
    """The interactions of this folder, by name; found by looking, not listed."""
    modules = [import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)]
    classes: list[Any] = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return {each.name: each for each in classes if Interaction in each.__mro__[1:]}
