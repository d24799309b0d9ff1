"""Compare two rankers in the same lists: team-draft interleaving, credits for clicks, and verdicts at any time.

Two rankers, A and B, draft one list together, as two captains pick their teams (Radlinski, Kurup & Joachims, CIKM
2008). People see the list and click. The side whose items get more clicks wins the session: X = 1 if B wins, 0 if A
does, 1/2 for a tie or no click. `Match` collects sessions and says which side people prefer; `plan` estimates in
advance how long that takes. A side is a fixed ranker, or a learner that is compared as a whole; a new version of it is
a new match.

**What a team draft cannot see.** For A = abcd and B = bcda and people who click on c alone, either side has c in its
team half of the time, so the draft does not prefer B, which ranks c higher. `position_credit` does; show it as well.

Items are numbers; sides and teams are 0 (A) and 1 (B); slots count from 0 and ranks from 1. The file is long because
drafts, credits, verdicts and plans are about one and the same list, and share its model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.confidence import check_alpha, log_win_evidence, win_share_limits

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pick = tuple[int, int]
"""an item number, and the side that picks it: 0 (A) or 1 (B)"""


# ---------------------------------------------------------------------------- the list


class Draft(NamedTuple):
    """A list that the rankings of sides A and B drafted together, with what is needed to credit clicks on it."""

    items: tuple[int, ...]
    """the items of the list, best first"""
    teams: tuple[int, ...]
    """the side that picked each item: 0 (A) or 1 (B)"""
    coins: tuple[int, ...]
    """the side that picked first in each round of two picks: 0 (A) or 1 (B)"""
    probability: float
    """the probability that a draft of these two rankings shows exactly this list, whichever side picked which item"""


def interleave(
    a: Sequence[int], b: Sequence[int], size: int, rng: np.random.Generator, opening: int | None = None
) -> Draft:
    """Draft a list of `size` items (or of all, if there are fewer) from two rankings of item numbers, `a` and `b`.

    In each round a coin, drawn with `rng`, decides which side picks first. Each side then picks its best item that is
    not yet in the list; if it has none left, the other side picks instead. A round takes one number from `rng`, so with
    a generator in the same state a longer draft continues a shorter one.

    The second page of a list is drafted from the rankings without the items of the first page, with the same generator.
    If the first page ended in the middle of a round, `opening` is the side (0 or 1) that has a pick left in it, which
    comes first. Both pages together are then the draft of one long list. Raise ValueError if a ranking has an item
    twice."""
    for name, ranking in (("a", a), ("b", b)):
        if len(set(ranking)) < len(ranking):
            raise ValueError(f"{name}: expected each item once, got one twice")
    picks = _open(a, b, size, opening)
    coins: list[int] = []
    probability = 1.0
    while orders := _round(a, b, frozenset(item for item, _ in picks), size - len(picks)):
        coins.append(int(rng.random() < 0.5))
        picks += orders[coins[-1]]
        # After a round the length of the list does not depend on the coin, so probabilities of rounds multiply.
        probability *= 1.0 if _items(orders[0]) == _items(orders[1]) else 0.5
    return Draft(_items(picks), tuple(team for _, team in picks), tuple(coins), probability)


def draft_probability(a: Sequence[int], b: Sequence[int], items: Sequence[int], opening: int | None = None) -> float:
    """Return the probability that a team draft of as many items from the rankings `a` and `b` (item numbers, best
    first) is exactly the list `items`.

    `opening` is the side that picks alone first, as in `interleave`; None if there is none.
    """
    drafted = _items(_open(a, b, len(items), opening))
    probability = float(drafted == tuple(items[: len(drafted)]))
    while orders := _round(a, b, frozenset(drafted), len(items) - len(drafted)):
        lists = [_items(picks) for picks in orders]
        segment = tuple(items[len(drafted) : len(drafted) + len(lists[0])])
        probability *= sum(draft == segment for draft in lists) / 2.0
        if probability == 0.0:
            return 0.0
        drafted += segment
    return probability if len(drafted) == len(items) else 0.0


def slot_probabilities(
    a: Sequence[int], b: Sequence[int], size: int, opening: int | None = None
) -> dict[tuple[int, int], float]:
    """Return the probability that a team draft has an item in a slot: {(item, slot from 0): probability}.

    The draft is of `size` items from the rankings `a` and `b` (item numbers, best first). `opening` is the side that
    picks alone first, as in `interleave`; None if there is none.

    What comes after a round depends only on the set of items in the list. Such a set is the top of `a` and the top of
    `b`, so there are at most `size` + 1 sets of each size, and the sum over all coins takes polynomial time."""
    first = _items(_open(a, b, size, opening))
    probabilities: dict[tuple[int, int], float] = {(item, slot): 1.0 for slot, item in enumerate(first)}
    lists: dict[frozenset[int], float] = {frozenset(first): 1.0}
    while lists:
        longer: dict[frozenset[int], float] = {}
        for drafted, probability in lists.items():
            for picks in _round(a, b, drafted, size - len(drafted)):
                for slot, item in enumerate(_items(picks), len(drafted)):
                    probabilities[item, slot] = probabilities.get((item, slot), 0.0) + probability / 2.0
                after = drafted | set(_items(picks))
                longer[after] = longer.get(after, 0.0) + probability / 2.0
        lists = longer
    return probabilities


def _round(a: Sequence[int], b: Sequence[int], drafted: frozenset[int], room: int) -> list[list[Pick]]:
    """Return [picks if A picks first, picks if B does] of a round, at most `room`; [] if there is no room, or no item
    left."""
    orders = []
    for order in ((0, 1), (1, 0)):
        picks: list[Pick] = []
        for side in order:
            picks += _best(a, b, side, drafted.union(_items(picks)))
        orders.append(picks[:room])
    return orders if orders[0] else []


def _best(a: Sequence[int], b: Sequence[int], side: int, drafted: frozenset[int]) -> list[Pick]:
    """Return [the next pick of `side`] if the items `drafted` are in the list; [] if no item is left."""
    available = ((item, team) for team in (side, 1 - side) for item in (a, b)[team] if item not in drafted)
    return [pick for pick in (next(available, None),) if pick]


def _open(a: Sequence[int], b: Sequence[int], size: int, opening: int | None) -> list[Pick]:
    """Return [the pick with which the list begins] if the side `opening` has one left of a round before;
    otherwise []."""
    return [] if opening is None or size < 1 else _best(a, b, opening, frozenset())


def _items(picks: Sequence[Pick]) -> tuple[int, ...]:
    return tuple(item for item, _ in picks)


# ---------------------------------------------------------------------------- credits


def session_outcome(teams: Sequence[int], credit: Mapping[int, float]) -> float:
    """Return the outcome of a session in which a drafted list was shown: 1 if the items that side B picked have more
    credit than those of side A, 0 if they have less, else 1/2.

    `teams` is the side that picked each item of the list (`Draft.teams`), `credit` what an answer says for items, {slot
    from 0: credit}: 1 for a click. Slots that are not in it have none. Raise ValueError for a slot that the list does
    not have.
    """
    _check_slots(credit, len(teams))
    sides = [0.0, 0.0]
    for slot, value in credit.items():
        sides[teams[slot]] += value
    return 0.5 if sides[0] == sides[1] else float(sides[1] > sides[0])


def position_credit(
    ranks: tuple[Sequence[int], Sequence[int]],
    places: Sequence[float],
    credit: Mapping[int, float],
) -> float:
    """Return how much better B ranks the items with credit than A: the sum of credit (1 / rank in B - 1 / rank in A) /
    P.

    The sum is over the items of the list that was shown.
    - `ranks`: their ranks, from 1, in A and in B, in the order shown
    - `places`: P, the probability that a draft of A and B has the item in the slot where it was shown
      (`slot_probabilities`)
    - `credit`: what an answer says for items, {slot from 0: credit}: 1 for a click

    The mean over sessions weights answers as if each item had been in each slot that a draft can show it in. Raise
    ValueError for a slot that the list does not have."""
    _check_slots(credit, len(places))
    a, b = ranks
    return sum((value * (1.0 / b[slot] - 1.0 / a[slot]) / places[slot] for slot, value in credit.items()), 0.0)


def _check_slots(credit: Mapping[int, float], size: int) -> None:
    for slot in credit:
        if not 0 <= slot < size:
            raise ValueError(f"credit: expected slots of a list of {size} items, got {slot}")


# ---------------------------------------------------------------------------- the verdict

LIMITS: Ints = np.array([2, 4, 8, 16])
"""The limits (J,) at which a person's wins minus losses stop counting, one for each bet. Low limits find large
differences early.
"""
MOST = 700.0
"""The log of the largest e-value that is returned."""


class Person(NamedTuple):
    """What a `Match` of rankers A and B stores of one person."""

    sessions: int
    """the number of the person's sessions"""
    wins: int
    """how many of them B won"""
    losses: int
    """how many of them A won"""
    net: Ints
    """wins minus losses, for each of LIMITS (J,); the count stays where it is once it reaches plus or minus the
    limit"""


MatchState = dict[Hashable, Person]
"""State of a `Match`: what is stored of each person."""


class Verdict(NamedTuple):
    """The result of a `Match` of rankers A and B so far, with the evidence for it."""

    verdict: Literal["a", "b", "undecided"]
    """the ranker that people prefer: "a" or "b"; "undecided" until the evidence suffices"""
    e_value: float
    """evidence that people prefer one side; a match is decided once it reaches 1 / alpha"""
    share: float
    """share of B among the sessions that one side won; 1/2 if there are none"""
    low: float
    """the lower end of a confidence sequence for that share, provided it is the same in all sessions"""
    high: float
    """the upper end of it"""
    sessions: int
    """the number of sessions, ties included"""
    people: int
    """the number of people who had a session"""
    largest: float
    """the share of all sessions that the person with the most sessions has"""


class Match(NamedTuple):
    """A test of which of two rankers, A and B, people prefer; it is wrong with probability at most `alpha`, however
    often one looks.

    A person counts as one bounded bet. Let N be B's wins minus losses in their sessions, stopped at plus or minus j. A
    bet on B multiplies its capital by 1 + N / (2 j) for each person, between 1/2 and 3/2; a bet on A by 1 - N / (2 j).
    Capitals are products over people, averaged over the j of `LIMITS`. The verdict is "b" or "a" once the capital of
    that bet reaches 2 / alpha; the e-value is half of the larger capital.

    *Validity.* Suppose that, given all earlier sessions, no session is won by B more often than by A. Then N, stopped
    or not, has no upward drift. A session changes one factor of each product, so the products, and their mean, are
    supermartingales from 1. By Ville's inequality this capital ever reaches 2 / alpha with probability at most alpha /
    2. So a worse B ever gets the verdict "b" with probability at most alpha / 2, and equal sides get any verdict with
    at most alpha.

    *No one decides alone.* n people multiply a capital by (3/2)^n at most. A verdict takes log(2 / alpha) / log(3/2)
    people, which is 10 at alpha = .05, however many sessions each of them has.

    *Why not the mean of one e-process for each person?* One person with enough sessions decides it, as e-values have no
    bound; people with few sessions each do not, as a mean does not multiply their evidence (`bench/proof.py`).

    *Different tastes.* If tastes differ, a session is not fair given the person's earlier ones, and the guarantee does
    not cover tastes that balance. Factors still have mean 1 if tastes are symmetric about 1/2, and verdicts were no
    more frequent in simulations. If tastes are not symmetric, many mild ones outweigh few strong ones.
    """

    alpha: float = 0.05

    @property
    def least_people(self) -> int:
        """The number of people below which there can be no verdict."""
        return math.ceil(math.log(2.0 / self.alpha) / math.log(1.5))

    def init(self) -> MatchState:
        """Return the state of a match of rankers A and B before any session. Raise ValueError unless 0 < alpha < 1."""
        check_alpha(self.alpha)
        return {}

    def update(self, state: MatchState, person: Hashable, x: float) -> MatchState:
        """Return `state`, changed in place, after a session of `person` in which rankers A and B were compared, with
        outcome `x`: 1 if B won, 0 if A did, 1/2 for a tie.

        Raise ValueError for another `x`; the state is then unchanged.
        """
        if x not in (0.0, 0.5, 1.0):
            raise ValueError(f"x: expected 0, 1/2 or 1, got {x}")
        old = state.get(person, Person(0, 0, 0, np.zeros_like(LIMITS)))
        net = _step_net_wins(old.net, np.sign(x - 0.5))
        state[person] = Person(old.sessions + 1, old.wins + int(x == 1.0), old.losses + int(x == 0.0), net)
        return state

    def verdict(self, state: MatchState) -> Verdict:
        """Return which of the rankers A and B people prefer, if that is decided, from all sessions so far. The
        guarantee is for the first verdict that is decided; later sessions may undo it.
        """
        everybody = list(state.values())
        sessions = [person.sessions for person in everybody]
        wins, losses = sum(person.wins for person in everybody), sum(person.losses for person in everybody)
        nets = np.array([person.net for person in everybody], np.int64).reshape(-1, LIMITS.size)
        capital = _log_capital(_log_factors(nets).sum(axis=1))
        evidence, side = float(capital.max()) - math.log(2.0), int(capital.argmax())
        low, high = win_share_limits(np.array(float(wins)), np.array(float(losses)), self.alpha)
        return Verdict(
            ("a", "b")[side] if evidence >= -math.log(self.alpha) else "undecided",
            math.exp(min(evidence, MOST)),
            wins / (wins + losses) if wins + losses else 0.5,
            float(low),
            float(high),
            sum(sessions),
            len(sessions),
            max(sessions, default=0) / max(sum(sessions), 1),
        )


def _step_net_wins(net: Ints, step: Array | float) -> Ints:
    """Return `net` (..., J), wins minus losses of people, after one more session of each, within J limits."""
    moved: Ints = net + np.where(np.abs(net) < LIMITS, step, 0).astype(np.int64)
    return moved


def _log_factors(net: Ints) -> Array:
    """Return the logs of the factors (2, ..., J) by which people multiply the capitals of the bets on A and on B."""
    share = net / (2.0 * LIMITS)
    return np.stack([np.log1p(-share), np.log1p(share)])


def _log_capital(logs: Array) -> Array:
    """Return the log of the mean over the J limits of capitals whose logs are `logs` (..., J)."""
    capital: Array = np.logaddexp.reduce(logs, axis=-1) - math.log(LIMITS.size)
    return capital


# ---------------------------------------------------------------------------- before the match, and next to it


class Plan(NamedTuple):
    """The result of `plan`: how simulated matches of rankers A and B ended."""

    a: float
    """the share of the runs with the verdict "a\""""
    b: float
    """the share of the runs with the verdict "b\""""
    sessions: int | None
    """median number of sessions until a verdict; None if fewer than half of the runs had one"""


def plan(
    match: Match,
    rng: np.random.Generator,
    *,
    people: int,
    sessions: int = 3000,
    share: float = 0.6,
    ties: float = 0.6,
    spread: float = 0.0,
    runs: int = 1000,
    busy: Array | None = None,
) -> Plan:
    """Simulate `runs` runs of `match`, a comparison of rankers A and B; return how many are decided, and when.

    - `people`, `sessions`: the numbers of people, and of sessions in each run
    - `busy` (people,): how often each person comes; None for equally often
    - `ties`: the probability that a session is a tie
    - `share`: the probability that B wins a session that is no tie
    - `spread`: by how much that is higher for about half of the people, and lower for the others
    - `rng`: draws the people and the outcomes"""
    cumulative = None if busy is None else np.cumsum(busy)
    rates = share + spread * rng.choice([-1.0, 1.0], (runs, people))
    net = np.zeros((runs, people, LIMITS.size), np.int64)
    logs = np.zeros((2, runs, LIMITS.size))
    ended, won, run_index = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.arange(runs)
    for t in range(1, sessions + 1):
        if cumulative is None:
            person = rng.integers(people, size=runs)
        else:
            person = np.searchsorted(cumulative, cumulative[-1] * rng.random(runs), side="right")
        step = np.where(rng.random(runs) < rates[run_index, person], 1, -1) * (rng.random(runs) >= ties)
        before = net[run_index, person]
        net[run_index, person] = after = _step_net_wins(before, step[:, None])
        logs += _log_factors(after) - _log_factors(before)
        capital = _log_capital(logs)
        now = (ended == 0) & (capital.max(axis=0) >= math.log(2.0 / match.alpha))
        ended[now], won[now] = t, capital.argmax(axis=0)[now]
    decided = ended > 0
    median = float(np.median(np.where(decided, ended, np.inf)))
    shares = [float((decided & (won == side)).mean()) for side in (0, 1)]
    return Plan(shares[0], shares[1], int(median) if median < math.inf else None)


def split_evidence(a: int, b: int, expected: float = 0.5) -> float:
    """Return the e-value against the hypothesis that each of a + b things went to side B with probability `expected`.

    `a` and `b` count what went to either side by chance: coins of drafts, or people. Under the hypothesis the e-value
    ever reaches 1 / alpha with probability at most alpha. If it does, believe no verdict: drafts or logs are wrong.
    """
    evidence = log_win_evidence(np.array(float(b)), np.array(float(a)), np.asarray(expected))
    return math.exp(min(float(evidence), MOST))
