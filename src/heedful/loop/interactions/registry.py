"""Finds the interaction of a loop: a package of this folder, by its name, or a class that the user's own learner
names.

A loop's settings are checked by its interaction, so this stands below the settings and below every interaction, and
says `Any` for a subclass of `heedful.loop.interactions.protocol.Interaction`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from heedful.learners.registry import learner_class
from heedful.loop.interactions.named import UNSAID, named_interaction
from heedful.loop.interactions.settings import KindSettings
from heedful.loop.versions import version_of


def interaction_of(manifest: Any, learner: object) -> Any:
    """Return the interaction, an instance, of a loop with this `manifest` and `learner`.

    A setting of the manifest decides the kind of feedback if there is one, otherwise the learner. Raise LookupError if
    the learner names an interaction that does not exist."""
    made = interaction_made_by(manifest.settings)
    return (made or _shown_alone(interaction_class(type(learner)), manifest.settings))(manifest, learner)


def interaction_class(cls: type) -> Any:
    """Return the subclass of `Interaction` for learners of the class `cls`, which names it in an attribute or its
    docstring.

    Raise LookupError if there is none of that name."""
    own = getattr(cls, "interaction", None)
    if isinstance(own, type):
        return own
    name, known = named_interaction(cls), interactions()
    if name not in known:
        raise LookupError(f"interaction: expected {', '.join(sorted(known))}, got {name}")
    return known[name]


def interaction_type(spec: str | None, settings: KindSettings) -> Any:
    """Return the subclass of `Interaction` for a loop with these `settings` and the learner that `spec` names; None for
    the default of the settings.

    A setting such as `ratings` decides it if there is one, otherwise the learner. Raise ValueError if there is
    no such learner or interaction."""
    if (made := interaction_made_by(settings)) is not None:
        return made
    if spec is None:
        return _shown_alone(interactions()[UNSAID], settings)
    try:
        return _shown_alone(interaction_class(learner_class(spec)), settings)
    except LookupError as error:
        raise ValueError(f"learner: {spec}: {error}") from None


def _shown_alone(kind: Any, settings: KindSettings) -> Any:
    """Return `kind`, or what a loop of lists is whose `settings` say that a single item is shown."""
    return interactions()["one"] if settings.k == 1 and kind is interactions()[UNSAID] else kind


def interaction_made_by(settings: KindSettings) -> Any | None:
    """Return the subclass of `Interaction` that one of the `settings`, such as `ratings`, asks for; None if none of
    them does.

    Raise ValueError if two settings ask for different ones."""
    made = [each for each in interactions().values() if each.setting and getattr(settings, each.setting) is not None]
    if len(made) > 1:
        name = made[0].setting
        raise ValueError(f"{name}: expected none in {made[1].words.loop}, got {getattr(settings, name)}")
    return made[0] if made else None


def default_learner(settings: KindSettings) -> str:
    """Return the name of the learner that a loop with these `settings` has if none is named."""
    learner: str = interaction_type(None, settings).default_learner
    return learner


def learner_version(learner: object, settings: KindSettings | None = None) -> str:
    """Return the version of the code by which a loop with this `learner` and these `settings` turns its log into a
    state, as a text; without settings, a loop whose kind of feedback the learner decides.

    It is made of the version of the model, which belongs to the kind of feedback, and that of the learner. Either
    raises its version when the same log would give another state."""
    kind = interaction_class(type(learner))
    if settings is not None:
        kind = interaction_made_by(settings) or _shown_alone(kind, settings)
    return version_of(kind.model_type.version, learner)


@cache
def interactions() -> dict[str, Any]:
    """Return the subclasses of `Interaction` in this folder, by name."""
    found: dict[str, Any] = {}
    for each in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if each.ispkg:
            module = import_module(f"{__package__}.{each.name}")
            classes: list[Any] = [made for made in vars(module).values() if isinstance(made, type)]
            own = [made for made in classes if made.__module__ == module.__name__ and hasattr(made, "model_type")]
            found |= {made.name: made for made in own}
    return found
