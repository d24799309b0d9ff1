"""Dueling bandit gradient descent, with rankings compared by team-draft interleaving: a baseline of [J15] 6.2.6.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import RankingSpace
from heedful.core.validation import check_count, check_positive
from heedful.jit.kernel import Floats, Ints, kernel, squared_norm
from heedful.spaces.ranking import check_ranking

Array = npt.NDArray[np.float64]


@kernel
def team_draft(first: Ints, second: Ints, size: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Interleave two rankings by team draft (Radlinski, Kurup & Joachims, 2008); return (the list, the team of each
    entry).

    `first` and `second` are candidate indices, best first; they are teams 0 and 1. The team with fewer entries in the
    list drafts next; a coin, from `rng`, decides if both have equally many. It drafts its best candidate that is not in
    the list yet. The list ends at `size` entries, or when neither team has a candidate left.
    """
    m = 0
    for j in first:
        m = max(m, j + 1)
    for j in second:
        m = max(m, j + 1)
    drafted = np.zeros(m, np.bool_)
    size = min(size, first.size + second.size)
    out, teams = np.empty(size, np.int64), np.empty(size, np.int64)
    count = np.zeros(2, np.int64)
    position = np.zeros(2, np.int64)  # the next position of each team in its ranking
    filled = 0
    while filled < size:
        while position[0] < first.size and drafted[first[position[0]]]:
            position[0] += 1
        while position[1] < second.size and drafted[second[position[1]]]:
            position[1] += 1
        if position[0] == first.size and position[1] == second.size:
            break
        team = 0
        if count[1] < count[0] or (count[0] == count[1] and rng.random() < 0.5):
            team = 1
        if position[team] == (first.size if team == 0 else second.size):
            team = 1 - team
        j = first[position[0]] if team == 0 else second[position[1]]
        drafted[j] = True
        out[filled], teams[filled] = j, team
        count[team] += 1
        filled += 1
    return out[:filled], teams[:filled]


class Duel(NamedTuple):
    """A proposal of `DuelingBandit`: two rankings interleaved into one list of n candidates, with what `update` needs,
    for N features."""

    shown: Ints
    """the interleaved list: candidate indices (n,)"""
    teams: Ints
    """the ranking that each entry is from (n,): 0 for that of the weights w, 1 for that of w + gamma u"""
    u: Array
    """the random direction u of length 1, (N,) for N features"""


class DuelingState(NamedTuple):
    """The state of `DuelingBandit` for N features."""

    w: Array
    """the utility weights (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, partial=True, lesson_cost=1)
class DuelingBandit(NamedTuple):
    """Dueling bandit gradient descent: Yue & Joachims 2009, as [J15] section 6.2.6 runs it. Interaction: coactive.

    Interleaves the rankings of the weights w of `n_features` features and of w' = w + gamma u, for a random direction u
    of length 1, by team draft. The first k of the feedback are the clicked candidates, k being the positions that
    `space` counts; where w' gets more of the clicks than w, w += delta u. With k = 1 it shows the best item of each,
    the same twice where they agree; the item in the feedback wins, and both items are a tie. A list of one candidate
    compares nothing. Starting from w = 0, only `delta` / `gamma` matters.
    """

    n_features: int
    space: RankingSpace
    gamma: float = 1.0
    delta: float = 0.1

    def init(self, rng: np.random.Generator) -> DuelingState:
        check_count("n_features", self.n_features)
        check_positive("gamma", self.gamma)
        check_positive("delta", self.delta)
        check_ranking(self.space, "whose objects can be interleaved")
        return DuelingState(np.zeros(self.n_features), 0)

    def propose(self, state: DuelingState, x: Floats, rng: np.random.Generator) -> Duel:
        u = rng.standard_normal(self.n_features)
        u *= 1.0 / math.sqrt(squared_norm(u))
        first = self.space.argmax(state.w, x)
        second = self.space.argmax(state.w + self.gamma * u, x)
        shown, teams = team_draft(first, second, x.shape[0], rng)
        if self.space.positions() == 1 and shown.size == 1:  # both choose this item
            shown, teams = np.append(shown, shown), np.append(teams, 1 - teams)
        return Duel(shown, teams, u)

    def update(self, state: DuelingState, x: Floats, y: Duel, feedback: Ints) -> DuelingState:
        lead = 0
        clicks = (
            min(max(self.space.positions(), 2), feedback.size) if y.shown.size > 1 else 0
        )  # one entry: both chose it
        for i in range(clicks):
            for j in range(y.shown.size):
                if y.shown[j] == feedback[i]:
                    lead += 1 if y.teams[j] == 1 else -1
        if lead > 0:
            state.w[:] += self.delta * y.u
        return DuelingState(state.w, state.t + 1)

    def weights(self, state: DuelingState) -> Array:
        return state.w
