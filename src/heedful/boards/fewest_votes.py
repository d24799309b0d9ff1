"""The fewest votes without which another model is first, with a proof that fewer do not do.

Let f be the penalised log-likelihood of the votes that are left when x_k votes of each cell k are left out. It is
concave, so a challenger is at least level with the leader exactly if, at the maximum phi of f among scores that are
equal for these two, the derivative of f along (leader - challenger) / 2 is not positive. Call it D(x). As derivatives
along the hyperplane are 0 there, it is also the derivative along v = (leader - challenger) / 2 + y for any y within it:

    D(x) = sum_k (w_k - x_k) b_k(phi) - prior,    b_k = d/dv log P(vote of cell k).

Take a set x0, its phi0, and the y for which D does not change with phi to first order. Then those votes are best left
out that have the greatest b_k, and with x = x0 + z and phi = phi0 + d

    D(x) >= D(x0) - sum_k (z_k b_k + |z_k| beta_k) - |d|' |M| |d| / 2 - (a term of third order in d),

where M is the second derivative of D by phi, and beta_k by how much b_k changes. Each vote moved brings d further by a
Newton step at most, more by what the Hessian changes: |d| <= w = (I - L)^-1 S |z|, with L from third derivatives within
a box. If the box contains w for all z that are allowed, Newton's map with the Hessian at x0 takes {|d| <= w} into
itself, so phi is in it (Brouwer). All terms are so much per vote moved, so the worst z is found by sorting.

Votes between two others move phi far and matter little. Without covariates they are left out of the box. A set of them
is then left out after the votes of these two that may lower D. On this way D falls by b_k a vote, now with the y of the
phi at hand: that v is the potential of a network whose conductances are the votes left times their variances, with the
leader and the challenger 1 apart and the prior to the ground. Variances of votes with either are the same functions, as
their scores are. So by the maximum principle potentials of others differ by no more than the extremes, 0 among them, of
(conductance of votes with the leader - with the challenger) / (2 x both), which the numbers of votes bound. Votes of
the two that speak for the challenger come last, and raise D, if anything.

`prove` looks at all sets with so many votes. Sets that the bound does not decide are taken in slices, by how many votes
they have of cells whose b_k is small, and by how many of x0 they put back, and then in two halves of the range of one
x_k (branch and bound); a single set is decided by its D. A set that does better on the way is the answer. So what comes
out is right, but for rounding, or not known. The file is long because the bound stands next to what it is proved with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import TYPICAL_SD, Cells, Fit
from heedful.boards.tie_models import MOST_FOURTH, MOST_THIRD, Terms, terms, third_derivatives

Array = npt.NDArray[np.float64]

WAYS = ((12, False), (24, True), (600, True), (200, False))
"""How a set is looked for in turn: (how many bounds are computed for all challengers that are left, whether votes
between others are left out of the box), on boards of up to CELLS cells."""
LOOKS = 12
"""At least so many are for each challenger; with many cells 4."""
CELLS = 400
"""With more cells, fewer bounds are computed."""
MOST_CELLS = 1_500
"""The greatest number of cells of boards that are looked at."""
ROUNDS = 5
"""How often the least number that is proved is sought by halving, if the answer is not proved."""
FAR = 6.0
"""Boxes wider than this, in logits, prove nothing."""
TOLERANCE = 1e-9
"""D counts as 0 up to this, for each vote."""
RARE = 0.6
"""Cells whose b_k is below this fraction of that of the votes left out rarely belong to a best set."""


class Fewest(NamedTuple):
    """The fewest votes found without which `challenger` is level with the leader: `x` of each cell (K,); fewer than
    `at_least` votes do not put anybody there."""

    challenger: int
    x: Array
    at_least: int


class Node(NamedTuple):
    """Sets of votes: from `low` to `high` of each cell (K,), and at least `rare` of rare cells in all."""

    low: Array
    high: Array
    rare: float


class Moves(NamedTuple):
    """By what sets differ from another one: up to `up` votes more and `down` fewer of each cell (K,); from `back` to
    `most_back` fewer in all, and at most `room` more than fewer; from `rare` to `most_rare` more of rare cells."""

    up: Array
    down: Array
    back: float
    most_back: float
    room: float
    rare: float
    most_rare: float


class Level(NamedTuple):
    """The fit in which leader and challenger have the same score, without `x` votes of each cell (K,)."""

    x: Array
    phi: Array
    value: float
    """D(x), in votes"""
    got: Terms
    b: Array
    """by how much leaving out one vote of each cell lowers D (K,)"""
    v: Array
    """how fast the difference of each cell changes along v (K,)"""
    inverse: Array
    """of the negated Hessian (P, P)"""


class Box(NamedTuple):
    """How far phi moves at most."""

    lines: Array
    """each line (m,)"""
    eta: Array
    """the difference of each cell (K,)"""
    step: Array
    """each line by one vote of each cell (m, K)"""


class Race:
    """The leader and one challenger on a board of n models, both with one score.

    The P parameters phi are the scores of the n - 1 and the coefficients of covariates. Boxes bound m lines: the
    difference of each pair that met, and then each parameter.
    """

    def __init__(self, n: int, cells: Cells, found: Fit, leader: int, challenger: int) -> None:
        """`found` is the fit to `cells`; its model of ties, tie parameter and standard deviation of scores are kept."""
        self.n, self.weight, self.outcome, self.model, self.tie = n, cells.weight, cells.outcome, found.model, found.tie
        place = np.arange(n) - (np.arange(n) > challenger)
        place[challenger] = place[leader]
        K, q = cells.z.shape
        P = n - 1 + q
        self.A = _differences(place[cells.first], place[cells.second], P)
        self.A[:, n - 1 :] = cells.z
        half = np.zeros(n)
        half[leader], half[challenger] = 0.5, -0.5
        self.along = half[cells.first] - half[cells.second]
        self.prior = np.full(P, TYPICAL_SD**-2)
        self.prior[: n - 1] = found.sd**-2
        self.prior[place[leader]] *= 2.0
        scores = np.delete(found.scores, challenger)
        scores[place[leader]] = 0.5 * (found.scores[leader] + found.scores[challenger])
        self.start = np.concatenate([scores, found.gamma])
        met = np.sort(np.column_stack([place[cells.first], place[cells.second]]), axis=1)
        pairs, pair = np.unique(met, axis=0, return_inverse=True)
        self.lines = np.concatenate([_differences(pairs[:, 0], pairs[:, 1], P), np.eye(P)])
        self.parameters = slice(len(pairs), len(self.lines))
        self.moved = np.zeros((K, len(self.lines)))  # how far a cell's eta moves with the lines
        self.moved[np.arange(K), pair.ravel()] = 1.0
        self.moved[:, len(self.lines) - q :] = np.abs(cells.z)
        self.looks = 0  # how many bounds may yet be computed
        self.rare = np.zeros(K, bool)  # cells by how many of whose votes sets are divided
        self.apart = False  # whether votes between others are left out of boxes
        leads, follows = ((cells.first == k) | (cells.second == k) for k in (leader, challenger))
        self.between = ~leads & ~follows
        won = np.sign(self.along) * (cells.outcome - 1)  # 1 where the leader won, or the challenger lost
        self.helpful = (leads | follows) & (won >= 0)
        self.sides = (leads & ~follows, follows & ~leads)
        self.other = np.where((cells.first == leader) | (cells.first == challenger), cells.second, cells.first)
        # the variance of a vote is one function of the difference, or a sum of two, by the outcome for these two
        mine = np.where(follows, -won, won)
        self.shares = [cells.outcome != 1] if found.model == "constant" else [mine < 2]
        if found.model == "threshold":
            self.shares = [mine >= 0, mine <= 0]
        self.separable = not q

    def level(self, most: float, node: Node, start: Array) -> Level | None:
        """Return a set of at most `most` votes within `node` that lowers D the most as far as its own b tell; None if
        there is no maximum. Fits begin from `start` (P,)."""
        x, phi, at = node.low, start, None
        for _ in range(30):
            found = self._maximum(self.weight - x, phi)
            if found is None:
                return None
            phi = found
            at = self._level(x, phi)
            x = node.low + fill(node.high - node.low, at.b, most - float(node.low.sum()))
            if (x == at.x).all():
                break
        return at

    def _maximum(self, left: Array, phi: Array) -> Array | None:
        """Return the phi of greatest likelihood for `left` votes of each cell (K,); None if it is not found."""

        def value(at: Array) -> float:
            return float(left @ self._terms(at).log - 0.5 * self.prior @ (at * at))

        now = value(phi)
        for _ in range(60):
            got = self._terms(phi)
            H = self._hessian(got, left)
            step = np.linalg.solve(H, (left * got.eta) @ self.A - self.prior * phi)
            for _ in range(30):
                new = phi + step
                then = value(new)
                if then >= now - 1e-12 * (1.0 + abs(now)):
                    break
                step = 0.5 * step
            else:
                return None
            phi, now = new, then
            if np.abs(step).max() < 1e-10:
                return phi
        return None

    def _level(self, x: Array, phi: Array) -> Level:
        got, left = self._terms(phi), self.weight - x
        inverse: Array = np.linalg.inv(self._hessian(got, left)).astype(np.float64)
        y = -inverse @ ((left * got.eta_eta * self.along) @ self.A)
        v = self.along + self.A @ y
        b = got.eta * v
        return Level(x, phi, float(left @ b - (self.prior * y) @ phi), got, b, v, inverse)

    def _terms(self, phi: Array) -> Terms:
        return terms(self.model, self.A @ phi, self.tie, self.outcome)

    def _spread(self, values: Array) -> Array:
        """Return the sum over cells of a a' `values` (P, P), where a is the cell's row of A."""
        out: Array = (self.A * values[:, None]).T @ self.A
        return out

    def _hessian(self, got: Terms, left: Array) -> Array:
        out: Array = self._spread(left * got.eta_eta) + np.diag(self.prior)
        return out

    # ------------------------------------------------------------------------ bounds

    def _most(self, moves: Moves, value: Array) -> Array:
        """Return the greatest sum of `value` (m, K), not negative, over the votes that `moves` may move (m,)."""
        often, rare = np.where(self.rare, 0.0, moves.up), np.where(self.rare, moves.up, 0.0)
        count = moves.most_back + moves.room
        more = _greatest(often, value, count - moves.rare) + _greatest(rare, value, moves.most_rare)
        if rare.any():
            more = np.minimum(more, _greatest(moves.up, value, count))
        out: Array = more + _greatest(moves.down, value, moves.most_back)
        return out

    def curvature(self, at: Level) -> Array:
        """Return the second derivative of D by phi (P, P), with v as it is."""
        here, _ = third_derivatives(self.model, self.A @ at.phi, self.tie, self.outcome)
        return self._spread((self.weight - at.x) * at.v * here)

    def _thirds(self, at: Level, eta: Array) -> tuple[Array, Array]:
        """Return (the greatest size of the third derivative of each cell's log-likelihood within `eta` of phi, that of
        the fourth), each (K,)."""
        here, parts = third_derivatives(self.model, self.A @ at.phi, self.tie, self.outcome)
        fourth = MOST_FOURTH * parts
        return np.minimum(MOST_THIRD * parts, np.abs(here) + fourth * eta), fourth

    def box(self, at: Level, moves: Moves) -> Box | None:
        """Return a box that phi does not leave on the way to any set that `moves` lead to; None if none is found."""
        got, left = at.got, self.weight - at.x
        reach = np.abs(self.lines @ at.inverse @ self.A.T)
        wide = np.zeros(len(self.lines))
        for _ in range(100):
            if wide.max() > FAR:
                return None
            eta = self.moved @ wide
            third, _ = self._thirds(at, eta)
            slope = np.minimum(np.abs(got.eta) + got.eta_eta * eta + 0.5 * third * eta * eta, 1.0)
            L = (reach * (0.5 * left * third * eta)) @ self.moved
            try:
                grow = np.linalg.inv(np.eye(len(L)) - L)
            except np.linalg.LinAlgError:
                return None
            if grow.min() < -1e-12 or grow.diagonal().min() < 1.0 - 1e-9:  # L is no contraction
                return None
            step = grow @ (reach * slope)
            new = self._most(moves, step)
            if (new <= wide).all():
                return Box(wide, eta, step)
            wide = np.maximum(wide, 1.08 * new)
        return None

    def _price(self, at: Level, moves: Moves) -> float:
        """Return by how much a vote between two others lowers D at most, after any of `moves` of other votes."""
        high, low, count = [0.0], [0.0], moves.most_back + moves.room
        often, rare = np.where(self.rare, 0.0, moves.up), np.where(self.rare, moves.up, 0.0)
        for share in self.shares:
            most, least = [], []
            for side in self.sides:
                cells = np.flatnonzero(side & share)
                now, put, out, few = (
                    np.bincount(self.other[cells], each[cells], self.n)
                    for each in (self.weight - at.x, moves.down, often, rare)
                )
                more = np.minimum(out, count - moves.rare) + np.minimum(few, moves.most_rare)
                most.append(now + np.minimum(put, moves.most_back))
                least.append(now - np.minimum(more, count))
            for a, b, ends in ((most, least, high), (least, most, low)):
                both = a[0] + b[1]
                ends += ((a[0] - b[1])[both > 0.0] / both[both > 0.0]).tolist()
        return 0.5 * (max(high) - min(low))

    def bound(self, at: Level, moves: Moves) -> float:
        """Return a lower bound of D over all sets that `moves` lead to, -inf if none is found."""
        self.looks -= 1
        near = moves._replace(up=np.where(self.helpful, moves.up, 0.0)) if self.apart else moves
        box = self.box(at, near)
        if box is None:
            return -np.inf
        left, size = self.weight - at.x, np.abs(at.v)
        third, fourth = self._thirds(at, box.eta)
        per_line = (left * fourth * size * box.eta * box.eta / 6.0) @ self.moved
        per_line[self.parameters] += 0.5 * np.abs(self.curvature(at)) @ box.lines[self.parameters]
        beta = size * (at.got.eta_eta * box.eta + 0.5 * third * box.eta * box.eta) + per_line @ box.step
        more = at.b + beta
        if self.apart:  # all other votes of the two keep the leader ahead
            more = np.where(self.helpful, more, np.where(self.between, self._price(at, near), 0.0))
        return at.value - self._best_exchange(moves, more, beta - at.b)

    def _best_exchange(self, moves: Moves, more: Array, fewer: Array) -> float:
        """Return the greatest sum of `more` (K,) over votes left out and `fewer` over votes put back; -inf if `moves`
        lead nowhere."""
        taken = fill(np.where(self.rare, moves.up, 0.0), more - more.min() + 1.0, moves.rare)
        room = moves.room - float(taken.sum())
        low = max(moves.back, -room)
        if low > moves.most_back:
            return -np.inf
        counts_more, sums_more = _sums(moves.up - taken, np.maximum(more, 0.0))
        counts, sums = _sums(moves.down, fewer)
        # the sum is piecewise linear in the number put back
        ends = np.clip(np.concatenate([[low, moves.most_back], counts_more - room, counts]), low, moves.most_back)
        total = np.interp(ends + room, counts_more, sums_more) + np.interp(ends, counts, sums)
        return float(total.max() + taken @ more)

    def narrow(self, at: Level, node: Node, most: float, zero: float) -> Node | None:
        """Return the part of `node` in which D may be `zero` or less with at most `most` votes; None if there is none.

        `at` is a set within `node`.
        """
        up, down = node.high - at.x, at.x - node.low
        room, back = most - float(at.x.sum()), float(down.sum())
        had = float(at.x[self.rare].sum())
        least, last = max(node.rare - had, 0.0), float(np.minimum(most, up[self.rare].sum()))
        while True:
            rare = last
            while self.looks > 0:  # slices by how many votes more of rare cells
                if self.bound(at, Moves(up, down, 0.0, back, room, least, rare)) > zero:
                    if rare >= last:
                        return None
                    least, rare = rare + 1.0, last
                elif rare > least:
                    rare = least + (rare - least) // 8
                else:
                    break
            few = back
            while few and self.looks > 0:  # slices by how many votes are put back
                if self.bound(at, Moves(up, down, few // 2 + 1.0, few, room, least, last)) <= zero:
                    break
                few //= 2
            if few == back or self.looks <= 0:
                in_all = had + least - float(down[self.rare].sum())
                return Node(at.x - down, at.x + up, max(node.rare, in_all))
            back, up, down = few, np.minimum(up, few + room), np.minimum(down, few)


def prove(race: Race, most: int, looks: int, apart: bool) -> tuple[Level | None, bool]:
    """Look for a set of at most `most` votes without which the challenger is level.

    Return (the set, or None if none was found; whether that is proved). About `looks` bounds are computed at most.
    `apart`: votes between others are left out of boxes.
    """
    race.looks, race.rare, race.apart = looks, np.zeros(race.weight.size, bool), apart
    zero = TOLERANCE * float(race.weight.sum())
    none = np.zeros_like(race.weight)
    first = Node(none, np.minimum(race.weight, most), 0.0)
    parts = [(first, race.start)]
    while parts:
        node, start = parts.pop()
        if node.low.sum() > most:
            continue
        if race.looks <= 0:
            break
        at = race.level(most, node._replace(high=np.where(race.helpful, node.high, 0.0)) if apart else node, start)
        if at is None:
            break
        if at.value <= zero:
            return at, True
        if node is first and at.x.any():
            race.rare = (at.x == 0.0) & (at.b < RARE * at.b[at.x > 0.0].min()) & (race.helpful | (not apart))
        rest = race.narrow(at, node, most, zero)
        if rest is None:
            continue
        width = np.where(race.helpful, rest.high - rest.low, 0.0) if apart else rest.high - rest.low
        if not width.any():
            if apart:
                break
            continue
        reach = np.abs(race.lines @ at.inverse @ race.A.T).max(axis=0) * np.abs(at.got.eta)
        k = int((width * reach).argmax()) if reach[width > 0.0].any() else int(width.argmax())
        middle = (rest.low[k] + rest.high[k]) // 2
        high, low = rest.high.copy(), rest.low.copy()
        high[k], low[k] = middle, middle + 1.0
        halves = [(rest._replace(high=high), at.phi), (rest._replace(low=low), at.phi)]
        parts += halves if at.x[k] > middle else halves[::-1]
    else:
        return None, True
    return None, False


def find_fewest(n: int, cells: Cells, found: Fit, leader: int, challengers: list[int]) -> Fewest | None:
    """Return the fewest votes that put one of `challengers` level with `leader`, as far as they are found; None if no
    set is found, or there are too many cells.

    `found` is the fit of n models to `cells`. If `at_least` is their number, no smaller set does it.
    """
    if cells.weight.size > MOST_CELLS:
        return None
    races = [Race(n, cells, found, leader, each) for each in challengers]
    best: Level | None = None
    whose, most = challengers[0], int(cells.weight.sum())
    for challenger, race in zip(challengers, races):
        got = find_set(race, most - 1)
        if got is not None:
            best, whose, most = got, challenger, int(got.x.sum())
    if best is None:
        return None
    scale = min(1.0, CELLS / cells.weight.size)
    least = max(int(scale * LOOKS), 4)
    unproved = list(zip(challengers, races))
    for looks, apart in WAYS:
        some = max(int(scale * looks / max(len(unproved), 1)), least)
        for challenger, race in list(unproved):
            if apart and not race.separable:
                continue
            got, proved = prove(race, most - 1, some, apart)
            while got is not None:
                best, whose, most = got, challenger, int(got.x.sum())
                got, proved = prove(race, most - 1, some, apart)
            if proved:
                unproved.remove((challenger, race))
    at_least, high = (1 if unproved else most), most
    for _ in range(ROUNDS if unproved else 0):
        middle = (at_least + high) // 2
        if all(_is_proved(race, middle - 1, least) for _, race in unproved):
            at_least = middle
        else:
            high = middle
    return Fewest(whose, best.x, at_least)


def _is_proved(race: Race, most: int, looks: int) -> bool:
    """Return whether few looks prove that no set of at most `most` votes puts the challenger level."""
    ways = (False, True) if race.separable else (False,)
    return any(prove(race, most, looks, apart) == (None, True) for apart in ways)


def find_set(race: Race, most: int) -> Level | None:
    """Return a set of votes without which the challenger is level, of the least size up to `most` that is found by
    halving; None if there is none."""
    zero = TOLERANCE * float(race.weight.sum())
    none = np.zeros_like(race.weight)
    low, high, best, start = 0, most + 1, None, race.start
    step = 1
    while high - low > 1:
        count = min(low + step, (low + high) // 2) if best is None else (low + high) // 2
        at = race.level(count, Node(none, np.minimum(race.weight, count), 0.0), start)
        if at is None:
            return best
        start = at.phi
        if at.value <= zero:
            high, best = int(at.x.sum()), at
        else:
            low, step = count, 4 * step
    return best


def fill(cap: Array, value: Array, count: float) -> Array:
    """Return how many of `cap` (K,) of each cell are among the `count` with the greatest positive `value` (K,)."""
    order = (-value).argsort(kind="stable")
    return take_first(cap, order[value[order] > 0.0], count)


def take_first(cap: Array, order: npt.NDArray[np.int64], count: float) -> Array:
    """Return how many of `cap` (K,) of each cell are among the first `count`, if cells are emptied in this `order`."""
    out = np.zeros(cap.size)
    out[order] = np.clip(count - (np.cumsum(cap[order]) - cap[order]), 0.0, cap[order])
    return out


def _differences(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], P: int) -> Array:
    """Return rows (m, P) with 1 at `first` and -1 at `second`, 0 where they are the same."""
    out, rows = np.zeros((first.size, P)), np.arange(first.size)
    np.add.at(out, (rows, first), 1.0)
    np.add.at(out, (rows, second), -1.0)
    return out


def _greatest(cap: Array, value: Array, count: float) -> Array:
    """Return for each row of `value` (m, K), not negative, the greatest sum of `count`, `cap` (K,) of each."""
    some = np.flatnonzero(cap)
    cap, value = cap[some], value[:, some]
    order = (-value).argsort(axis=1)
    caps = cap[order]
    before = np.cumsum(caps, axis=1) - caps
    out: Array = (np.clip(count - before, 0.0, caps) * np.take_along_axis(value, order, axis=1)).sum(axis=1)
    return out


def _sums(cap: Array, value: Array) -> tuple[Array, Array]:
    """Return (0 and the counts, 0 and the sums) of the greatest `value` (K,), `cap` (K,) of each."""
    order = (-value).argsort(kind="stable")
    caps = cap[order]
    return np.concatenate([[0.0], np.cumsum(caps)]), np.concatenate([[0.0], np.cumsum(caps * value[order])])
