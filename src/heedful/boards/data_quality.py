"""Warnings about answers, in words: contradictions, cycles, always choosing one side, items that were
never compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.wording import count, spelling
from heedful.data.comparisons import Comparison, ComparisonTable, join_names
from heedful.data.files import cut_list
from heedful.inference.comparison_table import connected_parts, shortest_cycle, win_counts
from heedful.inference.estimation import Estimate
from heedful.inference.gp.hyperparameters import RANDOM
from heedful.inference.gp.response_noise import PRIOR

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RARE = 1e-3
"""The significance level, over all people together, at which a person's preference for one side is reported."""

MAJORITY = 0.05
"""The one-sided significance level at which more than half of the answers about a pair count as a majority."""

ENOUGH, LITTLE = 20, 1.0
"""With a single person: if there are at least ENOUGH answers, and the model explains them better than coin tosses by
less than LITTLE in log evidence, they are called random.
"""

SETTLED = 1e-3
FEW = 5
"""The greatest number of people, pairs or groups that a warning names; it gives only the number of the others."""


class Remark(NamedTuple):
    """A warning about the answers behind a ranking of items.

    `kind`: a code such as "contradiction" or "side"; `message`: the text to show; `people`, `items`: the names that it
    is about.
    """

    kind: str
    message: str
    people: tuple[str, ...] = ()
    items: tuple[str, ...] = ()


def remarks(found: Estimate, X: Array | None = None, person: int | None = None) -> list[Remark]:
    """Return all warnings about the answers and items of an estimate `found`.

    `X` (n, d): d features of the n items, to find items that have the same. With `person` (a number), warnings about
    people are restricted to this person, and the check for cycles of majorities is left out.
    """
    choices = found.choices
    of_all = win_counts(choices)
    people = sides(choices, person) + _random_answers(found, person) + _contradictions(choices, person)
    out = [*_uncompared_items(choices, of_all), *_separate_parts(choices, of_all), *_similar_items(choices, X), *people]
    out += [*([] if person is not None else _majority_cycle(choices, of_all)), *_uninformative_answers(choices)]
    moved = found.belief.sites.moved
    if moved > SETTLED:
        told = f"Figures are rough: they did not settle, and the last step still moved them by {moved:.1g}"
        out.append(Remark("unsettled", f"{told}."))
    return out


# ---------------------------------------------------------------------------- items


def _uncompared_items(choices: ComparisonTable, of_all: Array) -> list[Remark]:
    items = [choices.items[i] for i in np.flatnonzero((of_all + of_all.T).sum(axis=1) == 0.0).tolist()]
    if not items:
        return []
    where = "it stands" if len(items) == 1 else "they stand"
    told = f"Never compared with anything, so where {where} is a guess: {join_names(items)}."
    return [Remark("unasked", told, (), tuple(items))]


def _separate_parts(choices: ComparisonTable, of_all: Array) -> list[Remark]:
    asked = np.flatnonzero((of_all + of_all.T).sum(axis=1) > 0.0)
    part = connected_parts(asked.size, *np.nonzero((of_all + of_all.T)[np.ix_(asked, asked)]))
    if part.size == 0 or part.max() == 0:
        return []
    several = [[choices.items[i] for i in asked[part == k].tolist()] for k in range(int(part.max()) + 1)]
    told = "; ".join(join_names(items, 3) for items in several[:FEW])
    more = f"; and {len(several) - FEW} parts more" if len(several) > FEW else ""
    parted = f"Items fall into {len(several)} parts that were never compared, not even by way of others: {told}{more}"
    return [Remark("parted", f"{parted}. How the parts stand to each other is a guess.")]


def _similar_items(choices: ComparisonTable, X: Array | None) -> list[Remark]:
    out = []
    names: dict[str, list[str]] = {}
    for item in choices.items:
        names.setdefault(spelling(item), []).append(item)
    for same in names.values():
        if len(same) > 1:
            told = f"{' and '.join(map(repr, same))} differ in case, spaces or the code of a letter: two items, or one?"
            out.append(Remark("spelt", told, (), tuple(same)))
    if X is not None and X.shape[1]:
        rows: dict[bytes, list[str]] = {}
        for item, x in zip(choices.items, X + 0.0):
            rows.setdefault(x.tobytes(), []).append(item)
        same_rows = [same for same in rows.values() if len(same) > 1]
        for same in same_rows[:FEW]:
            told = f"{join_names(same)} have the same features: only answers about them can tell them apart."
            out.append(Remark("alike", told, (), tuple(same)))
        if len(same_rows) > FEW:
            out.append(Remark("alike", f"So have {len(same_rows) - FEW} other groups of items."))
    return out


def _majority_cycle(choices: ComparisonTable, of_all: Array) -> list[Remark]:
    """Return a warning if majorities form a cycle (a over b over c over a) and each is significant at level MAJORITY.

    `of_all` (n, n): how often, of n items, that of the row was placed above that of the column. The test counts people,
    each by what they said more often of a pair; of answers without a name it counts each.
    """
    from scipy.special import bdtrc

    voted = np.zeros_like(of_all)
    for u, answers in _by_person(choices, None).items():
        items, won = _wins_of(answers, 0.5)
        own = np.where(won + won.T > 0.0, (1.0 + np.sign(won - won.T)) / 2.0, 0.0)
        voted[np.ix_(items, items)] += own if choices.people[u] else won
    met = of_all + of_all.T
    fewer, thrown = np.ceil(voted) - 1.0, np.ceil(voted + voted.T).astype(np.int64)
    beyond = bdtrc(np.maximum(fewer, 0.0), np.maximum(thrown, 1), 0.5) < MAJORITY
    way = shortest_cycle((of_all > of_all.T) & beyond)
    if not way:
        return []
    shares = [
        f"{choices.items[a]!r} over {choices.items[b]!r} ({of_all[a, b]:,.10g} of {met[a, b]:,.10g})"
        for a, b in zip(way, [*way[1:], way[0]])
    ]
    told = f"Majorities go round: {', '.join(shares)}. No order agrees with all of them."
    return [Remark("majorities", told, (), tuple(choices.items[i] for i in way))]


# ---------------------------------------------------------------------------- people


def both_bad(ties: int) -> Remark:
    """Return the remark on so many `ties` in which both items were called bad."""
    return Remark(
        "both_bad", f"{'1 tie is' if ties == 1 else f'{ties:,} ties are'} 'both bad': counted as equally good."
    )


def left_out(names: Sequence[str], before: str, after: str) -> Remark:
    """Return the remark that the answers of the people `names` are left out, and whether that changes the first place.

    `before` is the first item with their answers, `after` the first without them."""
    told = f"With and without them {after} is first"
    told = told if before == after else f"With them {before} is first, without them {after}"
    return Remark(
        "left out",
        f"Left out: {cut_list(list(names), FEW)}. {told}.",
        tuple(names),
        tuple(dict.fromkeys((before, after))),
    )


def sides(choices: ComparisonTable, person: int | None = None) -> list[Remark]:
    """Return warnings about people who choose the left or the right item more often than chance allows.

    Only choices between two items count whose sides are recorded, and no ties. With `person` (a number), people other
    than this one are not reported. If all answers of all people are the same side, one warning says so instead.
    """
    people = len(choices.people)
    firsts, sided = np.zeros(people, np.int64), np.zeros(people, np.int64)
    for each in choices.comparisons:
        if each.judged and each.first is not None and len(each.tiers) == 2:
            sided[each.person] += each.times
            firsts[each.person] += each.times * (each.tiers[0] == (each.first,))
    return side_remarks(choices.people, firsts, sided, person)


def side_remarks(people: Sequence[str], firsts: Ints, sided: Ints, person: int | None = None) -> list[Remark]:
    """Return warnings about those of p `people` who took the first of two more often, or less often, than chance
    allows: `firsts` (p,) of `sided` (p,) times; the last argument and what is said of all are those of `sides`."""
    chance = _two_sided_p(firsts, sided)
    odd = [u for u in np.flatnonzero(chance < RARE / max(len(people), 1)).tolist() if person in (None, u)]
    whole, all_first = int(sided.sum()), int(firsts.sum())
    if all_first in (0, whole) and float(_two_sided_p(all_first, whole)) < RARE:
        side = "first" if all_first else "second"
        told = f"All {whole:,} answers are the {side} of the two. Was the better one always written {side}? Then"
        told += " columns called winner and loser would say so; otherwise nobody looked."
        return [Remark("side", told)]
    out = []
    for u in odd[:FEW]:
        side, times = ("first", firsts[u]) if 2 * firsts[u] > sided[u] else ("second", sided[u] - firsts[u])
        often = f"{_subject(people, u)} took the {side} of the two in {times:,} of {sided[u]:,} answers"
        rare = f"once in {1.0 / chance[u]:,.0f}" if chance[u] > 1e-12 else "practically never"
        told = f"{often}; by chance that happens {rare}. Where sides are drawn at random, that is a habit and no taste."
        out.append(Remark("side", told, (people[u],)))
    if len(odd) > FEW:
        out.append(Remark("side", f"So do {len(odd) - FEW} others.", tuple(people[u] for u in odd[FEW:])))
    return out


def _two_sided_p(k: Ints | int, n: Ints | int) -> Array:
    """Return the two-sided p-values of `k` heads in `n` tosses of a fair coin (binomial test), 1 for no toss."""
    from scipy.special import bdtr

    return np.minimum(1.0, 2.0 * np.asarray(bdtr(np.minimum(k, n - k), n, 0.5), np.float64))


def _random_answers(found: Estimate, person: int | None) -> list[Remark]:
    """Return warnings about people who probably answer at random; if the table has only one person, a warning if all
    their answers look random. With `person` (a number), only about this person."""
    from scipy.special import logit

    choices, random = found.choices, found.belief.noise.random
    if len(choices.people) == 1:
        # The spread of utilities is the most probable one and may be near 0, so the model fits no worse than coins do
        more = logit(PRIOR.random) - logit(random[0])
        if more > LITTLE or choices.answers < ENOUGH:
            return []
        told = "Coins would explain the answers as well: hardly a preference is in them, or nobody looked."
        return [Remark("random", told)]
    odd = np.flatnonzero(random > RANDOM)
    odd = odd[np.argsort(-random[odd], kind="stable")] if person is None else odd[odd == person]
    if not odd.size:
        return []
    who = ", ".join(f"{choices.people[u]!r} ({random[u]:.2f})" for u in odd[:FEW].tolist())
    more = f" and {odd.size - FEW} more" if odd.size > FEW else ""
    told = f"Seem to answer at random (with this probability): {who}{more}."
    return [Remark("random", told, tuple(choices.people[u] for u in odd.tolist()))]


def _contradictions(choices: ComparisonTable, person: int | None) -> list[Remark]:
    """Return warnings about people who contradict themselves: a over b and b over a, or a cycle of choices."""
    both, rounds, example = [], [], ""
    # Without names many people may well differ, which orders of more than two items would make a contradiction.
    nobody = choices.people == ("",) and any(sum(map(len, each.tiers)) > 2 for each in choices.comparisons)
    for u, answers in ({} if nobody else _by_person(choices, person)).items():
        if len(answers) < 2:
            continue
        items, won = _wins_of(answers)
        clash = np.argwhere(np.triu((won > 0.0) & (won.T > 0.0)))
        if clash.size:
            both.append(u)
            i, j = clash[0].tolist()
            a, b = items[i], items[j]
            who = _subject(choices.people, u)
            example = example or (
                f"{who} put {choices.items[a]!r} over {choices.items[b]!r} {_times(won[i, j])}, and "
                f"below {_times(won[j, i])}"
            )
        elif way := shortest_cycle(won > won.T):
            rounds.append(u)
            names = [repr(choices.items[items[i]]) for i in way]
            example = example or f"{_subject(choices.people, u)} went round: {' over '.join([*names, names[0]])}"
    if not both and not rounds:
        return []
    people = tuple(choices.people[u] for u in [*both, *rounds])
    if len(choices.people) == 1 or person is not None:
        return [Remark("contradiction", f"Answers contradict each other: {example}. Close calls do.", people)]
    told = f"{len(people):,} of {len(choices.people):,} people contradict themselves, such as: {example}."
    return [Remark("contradiction", f"{told} Close calls do.", people)]


def _by_person(choices: ComparisonTable, person: int | None) -> dict[int, list[Comparison[int]]]:
    """Return the answers of everybody, or of `person` alone, by the number of who gave them."""
    answers: dict[int, list[Comparison[int]]] = {}
    for each in choices.comparisons:
        if each.judged and person in (None, each.person):
            answers.setdefault(each.person, []).append(each)
    return answers


def _wins_of(answers: Sequence[Comparison[int]], tie: float = 0.0) -> tuple[list[int], Array]:
    """Return the numbers of the k items in `answers`, and how often the item of the row was placed above that of the
    column (k, k); an answer that all are equally good adds `tie` to both directions."""
    items = sorted({item for each in answers for tier in each.tiers for item in tier})
    place = {item: i for i, item in enumerate(items)}
    local = [each._replace(tiers=tuple(tuple(place[item] for item in tier) for tier in each.tiers)) for each in answers]
    return items, win_counts(ComparisonTable(tuple(map(str, items)), ("",), tuple(local)), tie)


def _uninformative_answers(choices: ComparisonTable) -> list[Remark]:
    """Return warnings about answers "cannot judge", and about tables in which over 90 % of the answers are ties."""
    unsure = sum(each.times for each in choices.comparisons if not each.judged)
    equal = sum(each.times for each in choices.comparisons if each.judged and len(each.tiers) == 1)
    out = []
    if unsure:
        say = "says" if unsure == 1 else "say"
        told = f"{unsure:,} of {count(choices.answers, 'answer')} {say} that one cannot judge: no order follows."
        out.append(Remark("unsure", told))
    if equal >= 10 and equal > 0.9 * (choices.answers - unsure):
        pairs = all(len(each.tiers[0]) == 2 for each in choices.comparisons if each.judged and len(each.tiers) == 1)
        which = "both" if pairs else "all shown"
        told = (
            f"{equal:,} of {choices.answers - unsure:,} answers are that {which} are equally good: little to rank by."
        )
        out.append(Remark("equal", told))
    return out


# ---------------------------------------------------------------------------- words


def _subject(people: Sequence[str], u: int) -> str:
    return repr(people[u]) if people[u] else "Somebody"


def _times(count: float) -> str:
    n = math.floor(count)
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")
