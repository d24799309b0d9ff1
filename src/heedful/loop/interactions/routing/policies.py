"""Policies that are no learners, to compare learners of routes with: always one model, always the cheapest, the loop's
own learner with another cost weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.routing.model import RouteModel
from heedful.loop.interactions.routing.table import check_weight, models_of
from heedful.loop.model import Context, View
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest

Array = npt.NDArray[np.float64]

ALWAYS, CHEAPEST, COST_WEIGHT = "always:", "cheapest", "cost-weight:"
POLICIES = (f"{ALWAYS}MODEL", CHEAPEST, f"{COST_WEIGHT}W")
"""How policies are written."""
FEW = 8
"""From how many models on `evaluate` names them no more by itself."""


def is_policy(spec: str) -> bool:
    return spec == CHEAPEST or spec.startswith((ALWAYS, COST_WEIGHT))


def policies_of(models: Sequence[str]) -> list[str]:
    """Return the policies that evaluations compare with by themselves, in a loop of these `models`."""
    return [CHEAPEST, *(f"{ALWAYS}{name}" for name in models)]


def make_policy(spec: str, learner: Any, manifest: Manifest) -> RouteModel:
    """Return the policy that `spec` names, in a loop with this `learner` and `manifest`. Raise ValueError if there is
    no such model, or the cost weight makes no sense."""
    if spec == CHEAPEST:
        return FixedRoute(learner, manifest, None)
    name, models = spec.partition(":")[2], models_of(manifest.encoding)
    if spec.startswith(ALWAYS):
        if name not in models:
            expected = ", ".join(models[:8])
            raise ValueError(f"learner: {ALWAYS}MODEL: expected one of {expected}, got {describe(name)}")
        column = manifest.candidate_names.index(f"{manifest.encoding.identifier}={name}")
        return FixedRoute(learner, manifest, column)
    try:
        weight = check_weight(f"learner: {COST_WEIGHT[:-1]}", float(name))
    except ValueError:
        raise ValueError(f"learner: {COST_WEIGHT}W: expected a number from 0 to 1000, got {name!r}") from None
    model = RouteModel(learner, manifest)
    model.costs = model.costs._replace(weight=weight)
    return model


class FixedRoute(RouteModel):
    """A policy that learns nothing, to compare with: always one model, or always the cheapest."""

    def __init__(self, learner: Any, manifest: Manifest, column: int | None) -> None:
        super().__init__(learner, manifest)
        self._column = column

    def order(self, view: View[Any], x: Floats) -> Ints:
        if self._column is not None:
            return np.flatnonzero(x[:, self._column] == 1.0)
        return np.argsort(self.costs.price(x), kind="stable")

    def margins(self, view: View[Any], x: Floats) -> Array:
        """Return NaN for each of m candidates `x` (m,): nothing is predicted."""
        return np.full(len(x), np.nan)

    def effective(self, view: View[Any]) -> Array:
        return np.zeros(0)

    def teach(self, context: Context, feedback: FeedbackRecord, extra: Floats, version: int) -> bool:
        return False
