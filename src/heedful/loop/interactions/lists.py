"""Lists of candidates with features: ordered by a model's score or left in the caller's order, and the probability of
each.

Candidates that are not on offer ("unknown") keep the positions that the caller's order gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from heedful.core.validation import describe
from heedful.evaluation.answers import credit
from heedful.evaluation.examination import MOST_PLACES
from heedful.evaluation.expected import ListClick
from heedful.evaluation.plackett_luce import draw, place_probabilities, probability, step_probabilities
from heedful.jit.kernel import Floats, Ints, visible
from heedful.loop.interactions.neighbours import random_pairs
from heedful.loop.interactions.protocol import Interaction, LoggedAnswer, M, Proposal, Question, Shares
from heedful.loop.model import View
from heedful.loop.settings import Manifest, Settings

Draws: TypeAlias = tuple[
    Callable[[int], int] | None, Callable[[Ints, Ints], float] | None, Callable[[Any], Ints] | None
]
"""The methods (`depth`, `chance`, `order`) of a learner that shows random lists, None for each that it lacks
(`draws_of`)."""
Predict: TypeAlias = Callable[[View[Any], Floats], Floats | Ints]
"""A function of (the model for a person, the N features of m candidates (m, N)) that returns the predicted answer to
each candidate (m,)."""


def draws_of(learner: object) -> Draws:
    """Return the methods of `learner` that describe how its lists are random, None for each that it lacks.

    - `depth(m)`: the list length from which on a proposal for m candidates states the probability of its list itself
    - `chance(ranking, shown)`: the probability of showing the list `shown`, given the `ranking` (m,) by score
    - `order(y)`: the ranking (m,) before it was randomised into the proposal y"""
    return getattr(learner, "depth", None), getattr(learner, "chance", None), getattr(learner, "order", None)


def order_shown(y: object) -> Ints:
    """Return the indices of the candidates that a learner's proposal `y` shows, best first, as an array of one
    dimension."""
    seen: Ints = visible(y)
    return seen if isinstance(seen, np.ndarray) and seen.ndim else np.atleast_1d(seen)


class ListModel(Protocol):
    """A model that orders candidates by their features: `x` (m, N) holds the N features of each of m candidates."""

    def propose(self, view: View[Any], x: Floats, rng: np.random.Generator, /) -> Any:
        """Return the learner's proposal (a list, perhaps with random parts, which `rng` draws) for the candidates
        `x`."""

    def order(self, view: View[Any], x: Floats, /) -> Ints:
        """Return the indices of the candidates `x` by score, best first (m,), without anything random."""

    def proposal_fields(self, y: Any, /) -> dict[str, Any]:
        """Return what else a learner's proposal `y` holds, apart from the list itself, such as the neighbours swapped,
        by name, as JSON."""


def propose_list(
    view: View[ListModel],
    asked: Question,
    settings: Settings,
    draws: Draws,
    rng: np.random.Generator,
    predict: Predict | None = None,
) -> Proposal:
    """Return the list to show for the request `asked`, with the probability of showing exactly that list.

    `asked.arm` is the policy: the list is made by the model, in the caller's order (control), drawn at random around
    its ranking (sampled), or drafted by two learners in turns (interleaved).

    - `settings`: those of the loop
    - `draws`: the learner's methods that describe its random lists (`draws_of`)
    - `rng`: the random generator of this decision
    - `predict`: returns the predictions that the decision carries; None for no predictions"""
    request, control, shares = asked.request, asked.control, asked.shares(settings)
    m, strangers = len(request.x), request.strangers
    there = m if strangers is None else m + len(strangers.names)
    size = min(request.show or (1 if settings.k == 1 else there), there)
    ours = theirs = None if strangers is None else strangers.places(m, size, own=False)
    if strangers is not None:
        theirs = strangers.places(m, size, own=True)
        size = sum(j < 0 for j in (theirs if control else ours) or ())
    order = (-request.x[:, -1]).argsort(kind="stable")[:size] if request.prior else np.arange(size)
    match = asked.match if size else None
    y = view.model.propose(view, request.x, rng) if size and match is None else None
    shown = order if control or y is None else order_shown(y)[:size]
    carried = {} if control or y is None else view.model.proposal_fields(y)
    if match is not None:
        if asked.arm == "interleaved":
            shown, carried = match.draft(size)
        ranking = match.a
        if asked.arm == "sampled":
            shown, carried = _sample_list(ranking, size, settings.temperature, rng)
        by_caller = np.array_equal(shown, order) if ours == theirs else control
        possible, chance = ours == theirs or not control, match.probability(shown)
        likely = _mix_arms(shares, settings.temperature, ranking, shown, by_caller, possible, chance)
    elif shares.sampled == 0.0 or not size:
        likely = _probability(view, draws, y, request.x, shown, order, shares.control, ours == theirs)
    else:
        ranking = view.model.order(view, request.x)
        if asked.arm == "sampled":
            shown, carried = _sample_list(ranking, size, settings.temperature, rng)
        by_caller = np.array_equal(shown, order) if ours == theirs else control
        chance = float(np.array_equal(shown, ranking[:size])) if draws[1] is None else draws[1](ranking, shown)
        tells = draws[1] is not None or not isinstance(y, tuple) or shares.sampled == 1.0
        possible = ours == theirs or not control
        likely = _mix_arms(shares, settings.temperature, ranking, shown, by_caller, possible, chance) if tells else None
    kept = None
    if request.features is not None and not settings.keep_unshown and size < m:
        kept = sorted(shown.tolist())  # in the caller's order: sums come out the same, bit for bit
    return Proposal(
        shown=shown,
        probability=likely,
        carried=carried,
        predicted=() if predict is None else tuple(predict(view, request.x[shown]).tolist()),
        unknown=() if strangers is None else strangers.to_record((theirs if control else ours) or ()),
        kept=kept,
        of=0 if kept is None else m,
    )


def _sample_list(ranking: Ints, size: int, temperature: float, rng: np.random.Generator) -> tuple[Ints, dict[str, Any]]:
    """Return (a list of `size` candidates drawn at random around a ranking, what the log keeps of the draw).

    `ranking` (m,): the indices of m candidates, best first. The draw is Plackett-Luce over ranks at this `temperature`:
    near 0 it is the ranking itself, at infinity any list."""
    ranks = draw(ranking.size, size, temperature, rng)
    return ranking[ranks], {"ranks": ranks.tolist(), "candidates": ranking.size, "temperature": temperature}


def _probability(
    view: View[ListModel],
    draws: Draws,
    y: Any,
    x: Floats,
    shown: Ints,
    order: Ints,
    control: float,
    alike: bool,
) -> float | None:
    """Return the probability that the loop shows exactly the list `shown`; None if the learner cannot tell.

    With probability `control` the loop shows `order`, the caller's order, otherwise the learner's list. `draws` are
    the learner's methods for random lists (`draws_of`), `y` is its proposal for the m candidates `x` (m, N) of N
    features. `alike` says whether items that are not on offer have the same positions in both lists."""
    depth, chance_of, undrawn = draws
    if not alike and shown is order:  # no list of the learner is like that
        return control
    if not shown.size:  # nothing is random
        return 1.0
    if not isinstance(y, tuple):
        chance = float(np.array_equal(shown, y[: shown.size]))
    elif shown is not order and depth is not None and shown.size >= depth(y[0].size):
        chance = y.probability  # type: ignore[attr-defined]  # of all that was drawn: the proposal knows it
    elif chance_of is not None:
        learned = view.model.order(view, x) if undrawn is None else undrawn(y)
        chance = float(chance_of(learned, shown))
    else:
        return None
    same = alike and (shown is order or shown.tolist() == order.tolist())
    return control * float(same) + (1.0 - control) * chance


def _mix_arms(
    shares: Shares, temperature: float, ranking: Ints, shown: Ints, by_caller: bool, learned: bool, chance: float
) -> float | None:
    """Return the probability of showing the list `shown` in a loop that draws a share of its lists at random; None if
    it is too small for a float.

    - `shares`: the shares of the control (caller's order) and of lists drawn at random, these at this `temperature`
    - `ranking`: the model's order of all m candidates (m,)
    - `by_caller`: whether the control would show this list
    - `learned`: whether the model, or a draw around its ranking, could show it
    - `chance`: the probability that the learner shows it"""
    found = shares.control * by_caller
    if learned:
        rank = np.empty(ranking.size, np.int64)
        rank[ranking] = np.arange(ranking.size)
        found += shares.sampled * probability(rank[shown], ranking.size, temperature)
        found += (1.0 - shares.control - shares.sampled) * chance
    return float(found) or None


def list_chances(interaction: Interaction[Any], said: LoggedAnswer) -> Floats | None:
    """Return the probability (L,) that each of the L models of `said` shows exactly the list that was shown.

    `interaction` is the loop's kind of feedback. A model that draws its lists at random (`draws`) and cannot tell the
    probability has nan. The probability is that of the model's own lists, without those that a loop shows in the
    caller's order for comparison. Return None if the log kept too little of the decision."""
    record, x, _ = said.step.context
    if record.unknown or record.of or not record.shown:
        return None
    shown = np.array(record.shown, np.int64)
    chances = np.empty(len(said.views))
    for j, view in enumerate(said.views):
        order = interaction.order(view, x)
        chance_of = getattr(view.model.learner, "chance", None)
        if not getattr(view.model, "draws", False):
            chances[j] = float(order[: shown.size].tolist() == shown.tolist())
        else:
            chances[j] = np.nan if chance_of is None else chance_of(order, shown)
    return chances


def list_clicks(interaction: Interaction[Any], said: LoggedAnswer) -> Sequence[ListClick] | None:
    """Return the clicks on the items of a list, with what each of the models of `said` ranks before them; None if it
    does not say what of a list was clicked, or if the places that the items had are not known.

    `interaction` is the loop's kind of feedback."""
    record, best, picked = said.step.context.record, said.answer.best, said.answer.picked
    if best is None or (best and not picked) or record.unknown or record.after or len(record.shown) < 2:
        return None
    shown = record.shown[:MOST_PLACES]
    clicked = [place for place, j in enumerate(shown) if j in best]
    if not clicked:
        return ()
    upper, lower = np.zeros((2, len(record.shown)))
    for start, weights in random_pairs(record):
        upper[start : start + 2 * len(weights) : 2] = weights
        lower[start + 1 : start + 1 + 2 * len(weights) : 2] = weights
    rows = np.argsort(shown, kind="stable")  # the items shown in the order of the candidates, as ties go by that
    x = said.step.context.x[np.array(shown)[rows]]
    above = np.zeros((len(shown), len(said.views)), np.int64)
    for j, view in enumerate(said.views):
        before = 0
        for place in rows[interaction.order(view, x)].tolist():
            above[place, j] = before
            before |= 1 << place
    return [ListClick(i, float(upper[i]), float(lower[i]), above[i].tolist()) for i in clicked]


PLACES = 3
"""How many places of a list that was drawn at random are compared with the places of another ranking."""


def place_weights(interaction: Interaction[Any], said: LoggedAnswer) -> tuple[Floats, Floats, Floats] | None:
    """Return weights with which one list drawn at random counts in estimates of how other rankings would do at their
    first three places; None if it does not count.

    What is estimated is how often people would choose the item at a place. The rankings are those that the L models of
    `said` make of the same candidates, without the random swaps of neighbours that some learners make. The three arrays
    returned are:
    - weights by item and place (L, 3): 1 / the probability that the draw puts the item shown at this place there if the
      model's ranking has the same item there, otherwise 0
    - weights by all places so far (L, 3): 1 / the probability of drawing the items shown down to this place if the
      model's ranking has the same items in all of them, otherwise 0
    - whether the answer chose the item shown at each place (3,): 1 or 0

    `interaction` is the loop's kind of feedback. The result is None if the list was not drawn at random, has fewer than
    three items or items that were not on offer, if the log did not keep all candidates, or if the answer does not say
    what it prefers."""
    record, x, _ = said.step.context
    drawn = record.proposal
    if record.arm != "sampled" or record.unknown or record.of or len(record.shown) < PLACES:
        return None
    chosen_by = credit(record.shown, said.answer, interaction.scale)
    if chosen_by is None:
        return None
    shown = np.array(record.shown[:PLACES], np.int64)
    ranks, m, temperature = np.array(drawn["ranks"], np.int64), drawn["candidates"], drawn["temperature"]
    each = place_probabilities(m, temperature)[ranks[:PLACES], np.arange(PLACES)]
    so_far = np.cumprod(step_probabilities(ranks, m, temperature)[:PLACES])
    orders = [interaction.order(view, x)[:PLACES] for view in said.views]
    same = np.array(orders) == shown
    chosen = np.array([float(chosen_by.get(j, 0.0) > 0.0) for j in shown.tolist()])
    return same / each, np.logical_and.accumulate(same, axis=1) / so_far, chosen


class Lists(Interaction[M]):
    """What the kinds of feedback have in common whose decisions are lists of candidates with features."""

    samples_lists = ranks = orders = True

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self._draws = draws_of(learner)

    def check_show(self, show: object) -> None:
        if self.manifest.settings.k == 1 and show != 1:
            raise ValueError(f"show: expected 1, as a loop with k = 1 shows a single item, got {describe(show)}")

    def chances(self, said: LoggedAnswer) -> Floats | None:
        return list_chances(self, said)
