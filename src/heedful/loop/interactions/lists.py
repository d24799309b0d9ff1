"""Lists of what has features: made by score, or left to the caller's order, with what is unknown in its place.

For the kinds whose candidates come with their features; shown first is what is believed to be best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.doors import describe
from heedful.loop.interactions.protocol import Proposal, Question
from heedful.loop.model import Person, order_shown
from heedful.loop.settings import Settings


def check_show(show: Any, settings: Settings) -> None:
    """ValueError where a loop with k = 1 is asked for another number of items."""
    if settings.k == 1 and show != 1:
        raise ValueError(f"show: wanted 1, as a loop with k = 1 shows a single item, got {describe(show)}")


def propose_list(
    model: Any, shared: Any, own: Person | None, asked: Question, settings: Settings, rng: Any
) -> Proposal:
    """The list that a model makes, or the caller's order in the control, and how likely just that was to be shown."""
    request, control = asked.request, asked.control
    m, strangers = len(request.x), request.strangers
    there = m if strangers is None else m + len(strangers.names)
    size = 1 if settings.k == 1 and there else min(request.show or there, there)
    ours = theirs = None if strangers is None else strangers.places(m, size, own=False)
    if strangers is not None:
        theirs = strangers.places(m, size, own=True)
        size = sum(j < 0 for j in (theirs if control else ours) or ())
    order = (-request.x[:, -1]).argsort(kind="stable")[:size] if request.prior else np.arange(size)
    y = model.propose(shared, own, request.x, rng) if size else None
    shown = order if control or not size else order_shown(y)[:size]
    probability = _probability(model, y, request.x, shown, order, shared, own, settings.control, ours == theirs)
    kept = None
    if request.features is not None and not settings.keep_unshown and size < m:
        kept = sorted(shown.tolist())  # in the caller's order: sums come out the same, bit for bit
    return Proposal(
        shown=shown,
        probability=probability,
        carried={} if control or not size else model.described(y),
        unknown=() if strangers is None else strangers.told((theirs if control else ours) or ()),
        kept=kept,
        of=0 if kept is None else m,
    )


def _probability(
    model: Any, y: Any, x: Any, shown: Any, order: Any, shared: Any, own: Person | None, control: float, alike: bool
) -> float | None:
    """Of showing this list: by the control, by the learner, with its swaps. None where the learner cannot say.
    `alike` is whether what is unknown stands in the same places in lists of both."""
    depth, chance_of, undrawn = (getattr(model.learner, name, None) for name in ("depth", "chance", "order"))
    if not alike and shown is order:  # no list of the learner is like that
        return control
    if not shown.size:  # nothing is random
        return 1.0
    if not isinstance(y, tuple):
        chance = float(np.array_equal(shown, y[: shown.size]))
    elif shown is not order and depth is not None and shown.size >= depth(y[0].size):
        chance = y.probability  # type: ignore[attr-defined]  # of all that was drawn: the proposal knows it
    elif chance_of is not None:
        learned = model.order(shared, own, x) if undrawn is None else undrawn(y)
        chance = float(chance_of(learned, shown))
    else:
        return None
    same = alike and (shown is order or shown.tolist() == order.tolist())
    return control * float(same) + (1.0 - control) * chance
