"""The fewest votes without which another model is first, with a proof that fewer do not do.

Let f be the penalised log-likelihood of the votes that are left when x_k votes of each cell k are left out. It is
concave, so a challenger is at least level with the leader exactly if, at the maximum phi of f among scores that are
equal for these two, the derivative of f along (leader - challenger) / 2 is not positive. Call it D(x). As derivatives
along the hyperplane are 0 there, it is also the derivative along v = (leader - challenger) / 2 + y for any y within it:

    D(x) = sum_k (w_k - x_k) b_k(phi) - prior,    b_k = d/dv log P(vote of cell k).

Take a set x0, its phi0, and the y for which D does not change with phi to first order. Then those votes are best left
out that have the greatest b_k, and with x = x0 + z and phi = phi0 + d

    D(x) >= D(x0) - sum_k (z_k b_k + |z_k| beta_k) - |d|' |M| |d| / 2 - (a term of third order in d),

where M is the second derivative of D by phi, and beta_k by how much b_k changes on the way. Each vote moved brings d
further by a Newton step at most, more by what the Hessian changes: |d| <= (I - L)^-1 S |z|, with L from third
derivatives within a box. If the box contains what follows from it for all z that are allowed, it contains all phi on
the way, since phi moves continuously. All terms are so many per vote moved that the worst z is found by sorting.

`prove` looks at all sets with so many votes. Sets that the bound does not decide are taken in slices (by how many votes
they have of cells whose b_k is small, and how many of x0 they put back) and in two halves of the range of one x_k
(branch and bound); a single set is decided by its D. If another set does better, that is the answer, so what comes out
is right or "not known".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.bradley_terry import Cells, Fit
from heedful.inference.tie_models import (
    LEAST_WIDTH,
    MOST_FOURTH,
    MOST_THIRD,
    Terms,
    Thirds,
    terms,
    third_derivatives,
)

Array = npt.NDArray[np.float64]

FAR = 6.0
"""Boxes wider than this, in logits, prove nothing."""
TOLERANCE = 1e-9
"""D counts as 0 up to this, for each vote."""
RARE = 0.6
"""Cells whose b_k is below this fraction of that of the votes left out rarely belong to a best set."""


class Node(NamedTuple):
    """Sets of votes: from `low` to `high` of each cell (K,), and from `least` to `most` of rare cells in all."""

    low: Array
    high: Array
    least: float
    most: float


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
    v_eta: Array
    """how fast the difference of each cell changes along v (K,)"""
    v_tie: float
    """how fast the tie parameter does"""
    inverse: Array
    """of the negated Hessian (P, P)"""


class Box(NamedTuple):
    """How far phi moves at most."""

    lines: Array
    """each line (m,)"""
    eta: Array
    """the difference of each cell (K,)"""
    tie: float
    step: Array
    """each line by one vote of each cell (m, K)"""


class Race:
    """The leader and one challenger on a board of n models, both with one score.

    The P parameters phi are the scores of the n - 1, the tie parameter if there is one, and the coefficients of
    covariates. Boxes bound m lines: the difference of each pair that met, and then each parameter.
    """

    def __init__(self, n: int, cells: Cells, found: Fit, leader: int, challenger: int) -> None:
        """`found` is the fit to `cells`, whose model of ties and standard deviation of scores are kept."""
        self.weight, self.outcome, self.model = cells.weight, cells.outcome, found.model
        place = np.arange(n) - (np.arange(n) > challenger)
        place[challenger] = place[leader]
        K, q = cells.z.shape
        tied = found.tied and found.model != "constant"  # there the scores do not depend on it
        P = n - 1 + tied + q
        self.tie_at = n - 1 if tied else None
        self.fixed_tie = found.tie
        self.A = _differences(place[cells.first], place[cells.second], P)
        self.A[:, P - q :] = cells.z
        half = np.zeros(n)
        half[leader], half[challenger] = 0.5, -0.5
        self.along = half[cells.first] - half[cells.second]
        self.prior = np.zeros(P)
        self.prior[: n - 1] = 1.0 / found.sd**2
        self.prior[place[leader]] *= 2.0
        scores = np.delete(found.scores, challenger)
        scores[place[leader]] = 0.5 * (found.scores[leader] + found.scores[challenger])
        self.start = np.concatenate([scores, np.full(int(tied), found.tie), found.gamma])
        met = np.sort(np.column_stack([place[cells.first], place[cells.second]]), axis=1)
        pairs, pair = np.unique(met, axis=0, return_inverse=True)
        self.lines = np.concatenate([_differences(pairs[:, 0], pairs[:, 1], P), np.eye(P)])
        self.parameters = slice(len(pairs), len(self.lines))
        self.moved = np.zeros((K, len(self.lines)))  # how far a cell's eta and tie move with the lines
        self.moved[np.arange(K), pair.ravel()] = 1.0
        self.moved[:, len(self.lines) - q :] = np.abs(cells.z)
        if self.tie_at is not None:
            self.moved[:, len(pairs) + self.tie_at] = 1.0
        self.rare = np.zeros(K, bool)
        self.plain = not tied and not q
        counts = (cells.outcome != 1) | (found.model == "half")
        with_leader, with_challenger = (
            ((cells.first == k) | (cells.second == k)) & counts for k in (leader, challenger)
        )
        won = np.where(self.along >= 0.0, 1, -1) * (cells.outcome - 1)
        self.helpful = (with_leader | with_challenger) & (won >= 0)
        both = with_leader & with_challenger
        other = np.where(self.A > 0, 1, 0)
        self.with_leader, self.with_challenger = with_leader & ~both, with_challenger & ~both
        self.others = np.where((cells.first == leader) | (cells.first == challenger), cells.second, cells.first)
        self.neither = counts & ~with_leader & ~with_challenger
        self.n = n

    def price(self, at: Level, up: Array, down: Array, most_rare: float) -> float:
        """Return by how much a vote between two others lowers D at most, anywhere that moves lead to."""
        rich, poor = self.helpful & ~self.rare, self.helpful & self.rare
        left = self.weight - at.x

        def total(mask: Array, each: Array) -> Array:
            return np.bincount(self.others[mask], each[mask], self.n)

        most, least = [], []
        for mask in (self.with_leader, self.with_challenger):
            now = total(mask, left)
            most.append(now + total(mask & rich, down) + total(mask & poor, down))
            least.append(now - total(mask & rich, up) - np.minimum(total(mask & poor, up), most_rare))
        met = most[0] + most[1] > 0
        high = ((most[0] - least[1]) / np.maximum(most[0] + least[1], 1e-9))[met]
        low = ((least[0] - most[1]) / np.maximum(least[0] + most[1], 1e-9))[met]
        return 0.5 * float(high.max(initial=0.0) - low.min(initial=0.0))

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
            slope = self._along(left * got.eta, left * got.tie) - self.prior * phi
            try:
                step = np.linalg.solve(self._hessian(got, left), slope)
            except np.linalg.LinAlgError:
                return None
            for _ in range(30):
                new = phi + step
                if self.model != "threshold" or self._tie(new) > LEAST_WIDTH:
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
        inverse = np.linalg.inv(self._hessian(got, left))
        y = -inverse @ self._along(left * got.eta_eta * self.along, left * got.eta_tie * self.along)
        v_eta = self.along + self.A @ y
        v_tie = 0.0 if self.tie_at is None else float(y[self.tie_at])
        b = got.eta * v_eta + got.tie * v_tie
        return Level(x, phi, float(left @ b - (self.prior * y) @ phi), got, b, v_eta, v_tie, inverse)

    def _tie(self, phi: Array) -> float:
        return self.fixed_tie if self.tie_at is None else float(phi[self.tie_at])

    def _terms(self, phi: Array) -> Terms:
        return terms(self.model, self.A @ phi, self._tie(phi), self.outcome)

    def _thirds(self, phi: Array, less: float = 0.0) -> Thirds:
        """Return third derivatives at phi, with the tie parameter `less`."""
        return third_derivatives(self.model, self.A @ phi, self._tie(phi) - less, self.outcome)

    def _most_third(self, here: Thirds, both: Array) -> Array:
        """Return a bound of third derivatives, `own` apart, within `both` (K,) of `here`."""
        now = np.max(np.abs(here[:4]), axis=0)
        bound: Array = np.minimum(MOST_THIRD, now / here.parts + MOST_FOURTH * both) * here.parts
        return bound

    def _along(self, eta: Array, tie: Array) -> Array:
        """Return the sum over cells of a eta + e tie (P,): a is the cell's row of A, e the unit vector of the tie."""
        out = eta @ self.A
        if self.tie_at is not None:
            out[self.tie_at] += tie.sum()
        return out

    def _spread(self, ee: Array, et: Array, tt: Array) -> Array:
        """Return the sum over cells of a a' ee + (a e' + e a') et + e e' tt (P, P)."""
        out: Array = (self.A * ee[:, None]).T @ self.A
        if self.tie_at is not None:
            across = et @ self.A
            out[self.tie_at] += across
            out[:, self.tie_at] += across
            out[self.tie_at, self.tie_at] += tt.sum()
        return out

    def _hessian(self, got: Terms, left: Array) -> Array:
        return self._spread(left * got.eta_eta, left * got.eta_tie, left * got.tie_tie) + np.diag(self.prior)

    # ------------------------------------------------------------------------ bounds

    def _most(self, moves: Moves, value: Array) -> Array:
        """Return the greatest sum of `value` (m, K), not negative, over the votes that `moves` may move (m,)."""
        often = ~self.rare
        return (
            _greatest(moves.up[often], value[:, often], moves.most_back + moves.room)
            + _greatest(moves.up[self.rare], value[:, self.rare], moves.most_rare)
            + _greatest(moves.down, value, moves.most_back)
        )

    def box(self, at: Level, moves: Moves) -> Box | None:
        """Return a box that phi does not leave on the way to any set that `moves` lead to; None if none is found."""
        got, left = at.got, self.weight - at.x
        across = self.lines @ at.inverse
        reach = np.abs(across @ self.A.T)
        reach_tie = np.zeros((len(across), 1)) if self.tie_at is None else np.abs(across[:, [self.tie_at]])
        here = self._thirds(at.phi)
        wide = np.zeros(len(self.lines))
        for _ in range(100):
            both = self.moved @ wide
            tie = 0.0 if self.tie_at is None else float(wide[self.parameters][self.tie_at])
            eta = both - tie
            if wide.max() > FAR or (self.model == "threshold" and self._tie(at.phi) - tie <= LEAST_WIDTH):
                return None
            third, own = self._most_third(here, both), self._thirds(at.phi, tie).own
            rest, rest_tie = 0.5 * third * both * both, 0.5 * own * tie * tie
            slope_eta = np.minimum(np.abs(got.eta) + got.eta_eta * eta + np.abs(got.eta_tie) * tie + rest, 1.0)
            slope_tie = np.abs(got.tie) + np.abs(got.eta_tie) * eta + got.tie_tie * tie + rest + rest_tie
            L = ((reach + reach_tie) * (0.5 * left * third * both)) @ self.moved
            if self.tie_at is not None:
                L[:, len(L) - len(at.phi) + self.tie_at] += reach_tie[:, 0] * float(0.5 * left @ own * tie)
            grow = np.linalg.inv(np.eye(len(L)) - L)
            if grow.min() < -1e-12:  # L is no contraction
                return None
            step = grow @ (reach * slope_eta + reach_tie * slope_tie)
            new = self._most(moves, step)
            if (new <= wide).all():
                return Box(wide, eta, tie, step)
            wide = np.maximum(wide, 1.02 * new)
        return None

    def bound(self, at: Level, moves: Moves) -> float:
        """Return a lower bound of D over all sets that `moves` lead to, -inf if none is found."""
        moves_all = moves
        if self.plain:
            moves = moves._replace(up=np.where(self.helpful, moves.up, 0.0))
            price = self.price(at, moves.up, moves.down, moves.most_rare)
        box = self.box(at, moves)
        if box is None:
            return -np.inf
        left, got, both = self.weight - at.x, at.got, box.eta + box.tie
        here, edge = self._thirds(at.phi), self._thirds(at.phi, box.tie)
        third = self._most_third(here, both)
        size = np.abs(at.v_eta) + abs(at.v_tie)
        M = self._spread(
            left * (at.v_eta * here.eta3 + at.v_tie * here.eta2_tie),
            left * (at.v_eta * here.eta2_tie + at.v_tie * here.eta_tie2),
            left * (at.v_eta * here.eta_tie2 + at.v_tie * (here.tie3 + here.own)),
        )
        per_line = (left * MOST_FOURTH * here.parts * size * both * both / 6.0) @ self.moved
        per_line[self.parameters] += 0.5 * np.abs(M) @ box.lines[self.parameters]
        if self.tie_at is not None:
            own = float(left @ edge.own_fourth) * abs(at.v_tie) * box.tie**2 / 6.0
            per_line[self.parameters][self.tie_at] += own
        beta = np.abs(at.v_eta * got.eta_eta + at.v_tie * got.eta_tie) * box.eta
        beta += np.abs(at.v_eta * got.eta_tie + at.v_tie * got.tie_tie) * box.tie
        beta += 0.5 * third * size * both * both + 0.5 * edge.own * abs(at.v_tie) * box.tie**2
        beta += per_line @ box.step
        if self.plain:
            more = np.where(self.helpful, at.b + beta, np.where(self.neither, price, 0.0))
            return at.value - self._best_exchange(moves_all, more, beta - at.b)
        return at.value - self._best_exchange(moves, at.b + beta, beta - at.b)

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
        room = most - float(at.x.sum())
        least, last = node.least, min(node.most, float(up[self.rare].sum()))
        back = float(down.sum())
        while True:
            rare = least
            while True:  # slices by how many votes of rare cells
                if self.bound(at, Moves(up, down, 0.0, back, room, least, rare)) > zero:
                    if rare >= last:
                        return None
                    least, rare = rare + 1.0, min(last, 2.0 * rare + 1.0)
                elif rare > least:
                    rare = float((rare + least) // 2)
                else:
                    break
            few = back
            while few and self.bound(at, Moves(up, down, few // 2 + 1.0, few, room, least, last)) > zero:
                few //= 2
            if few == back:
                return Node(at.x - down, at.x + up, least, last)
            back, up, down = few, np.minimum(up, few + room), np.minimum(down, few)


def prove(race: Race, most: int, nodes: int, mode=True) -> tuple[Level | None, bool, int]:
    """Look for a set of at most `most` votes without which the challenger is level.

    Return (the set, or None if none was found; whether that is proved; how many of `nodes` are left). No more than
    `nodes` parts of all sets are looked at.
    """
    zero = TOLERANCE * float(race.weight.sum())
    none = np.zeros_like(race.weight)
    first = Node(none, np.minimum(race.weight, most), 0.0, float(most))
    race.rare = none > 0.0
    race.plain = mode
    parts = [(first, race.start)]
    while parts:
        node, start = parts.pop()
        if node.low.sum() > most:
            continue
        if nodes == 0:
            return None, False, 0
        nodes -= 1
        inner = node._replace(high=np.where(race.helpful, node.high, node.low)) if race.plain else node
        at = race.level(most, inner, start)
        if at is None:
            return None, False, nodes
        if at.value <= zero:
            return at, True, nodes
        if node is first and at.x.any():
            race.rare = (at.x == 0.0) & (at.b < RARE * at.b[at.x > 0.0].min())
            if race.plain:
                race.rare &= race.helpful
        rest = race.narrow(at, node, most, zero)
        if rest is None or (rest.low == rest.high).all():
            continue
        reach = np.abs(race.lines @ at.inverse @ race.A.T).max(axis=0) * np.abs(at.got.eta)
        width = rest.high - rest.low
        if race.plain:
            if not width[race.helpful].any():
                return None, False, nodes
            width = np.where(race.helpful, width, 0.0)
        k = int((width * reach).argmax())
        middle = (rest.low[k] + rest.high[k]) // 2
        high, low = rest.high.copy(), rest.low.copy()
        high[k], low[k] = middle, middle + 1.0
        halves = [(rest._replace(high=high), at.phi), (rest._replace(low=low), at.phi)]
        parts += halves if at.x[k] > middle else halves[::-1]
    return None, True, nodes


def find_set(race: Race, most: int) -> Level | None:
    """Return a set of votes without which the challenger is level, of the least size up to `most` that is found by
    halving; None if there is none."""
    zero = TOLERANCE * float(race.weight.sum())
    none = np.zeros_like(race.weight)
    low, high, best, start = 0, most + 1, None, race.start
    step = 1
    while high - low > 1:
        count = min(low + step, (low + high) // 2) if best is None else (low + high) // 2
        at = race.level(count, Node(none, np.minimum(race.weight, count), 0.0, count), start)
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
    order = order[value[order] > 0.0]
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
