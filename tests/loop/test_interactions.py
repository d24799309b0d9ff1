"""What a loop asks of an interaction, the same for all kinds: tests/test_loop*.py hold each to what it says."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.features.encoding import UNSEEN
from heedful.loop.interactions.coactive.model import Model
from heedful.loop.interactions.comparison.model import ChoiceModel
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.interactions.rating.model import RatingModel
from heedful.loop.interactions.registry import interaction_of, interaction_type
from heedful.loop.interactions.routing.model import RouteModel
from heedful.loop.settings import Manifest, Settings, built_learner

KINDS: dict[str, tuple[str, Settings, type]] = {
    "coactive": ("posterior", Settings(k=2), Model),
    "ordinal": ("prank:n_ranks=4", Settings(k=2), GradingModel),
    "rating": ("bmf", Settings(ratings=(1.0, 5.0)), RatingModel),
    "pairwise": ("hierarchical-gp", Settings(choices="best"), ChoiceModel),
    "routing": ("posterior:swap=0", Settings(cost_weight=0.1), RouteModel),
}


def founded(kind: str) -> tuple[Manifest, Any]:
    spec, settings, _ = KINDS[kind]
    kind = interaction_type(spec, settings)
    rows = [{"id": "a", "cost": 1.0}, {"id": "b", "cost": 2.0}]
    arranged = (UNSEEN, None, ()) if kind.arrange is None else kind.arrange(rows, "id", None)
    manifest = Manifest.of(spec, *arranged, settings)
    return manifest, built_learner(manifest)


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_or_a_setting_names_the_interaction(kind: str) -> None:
    interaction = interaction_of(*founded(kind))
    assert interaction.name == kind
    model = interaction.fresh()
    assert type(model) is KINDS[kind][2]
    assert model.people == {}


def test_a_learner_that_names_none_is_coactive() -> None:
    manifest, learner = founded("coactive")
    plain = type("Plain", (type(learner),), {"__doc__": "Nothing is said."})
    assert interaction_of(manifest, plain(*learner)).name == "coactive"


def test_a_learner_may_bring_its_interaction_along() -> None:
    """Whatever its docstring says: a kind that heedful does not know has no name in it."""

    class Own:
        def __init__(self, manifest: Manifest, learner: Any) -> None:
            self.given = manifest, learner

    manifest, learner = founded("coactive")
    brings = type("Brings", (type(learner),), {"interaction": Own, "__doc__": "Interaction: ordinal."})(*learner)
    found = interaction_of(manifest, brings)
    assert type(found) is Own
    assert found.given == (manifest, brings)


def test_an_interaction_that_nobody_has_is_refused_by_name() -> None:
    manifest, learner = founded("coactive")
    strange = type("Strange", (type(learner),), {"__doc__": "Interaction: telepathic."})
    with pytest.raises(LookupError, match="expected coactive, one, ordinal, pairwise, rating, routing, got telepathic"):
        interaction_of(manifest, strange(*learner))


@pytest.mark.parametrize("kind", KINDS)
def test_every_gap_in_the_words_of_a_kind_is_filled(kind: str) -> None:
    interaction = interaction_of(*founded(kind))
    words = interaction.words
    for text in (words.question, words.badge, words.introduction, *words.notes):
        assert "{" not in interaction.fill(text).replace('{"cost_weight": ...}', "")
