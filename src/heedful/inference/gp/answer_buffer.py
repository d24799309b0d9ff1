"""A buffer of past comparisons in order of arrival, each with its site, the Gaussian factor that stands for it in
expectation propagation (EP): the memory of a learner from comparisons.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import extend_posterior
from heedful.inference.gp.posterior import LowRankPosterior, Posterior, product
from heedful.inference.gp.sites import Sites, make_table
from heedful.inference.pairwise import PairRows, Selection
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

ROOM = 16


class AnswerBuffer(NamedTuple):
    """Comparisons of all people, in the first `n` rows of arrays that grow by doubling.

    `user`, `pairs`, `equal` and `group` are as in `PairRows`, `tau` and `nu` as in `Sites`; the tie `width` and the
    `lapse` rate that are assumed of a person are the same in all rows of the person.
    """

    user: Ints
    pairs: Ints
    equal: npt.NDArray[np.bool_]
    group: Ints
    tau: Array
    nu: Array
    width: Array
    lapse: Array
    n: int

    @property
    def grows(self) -> bool:
        """True: the arrays of this buffer get longer as answers arrive."""
        return True

    def own(self) -> AnswerBuffer:
        """Return a copy that shares no array with this buffer."""
        columns: Any = (part.copy() for part in self[:-1])
        return self._replace(**dict(zip(self._fields, columns)))

    def of(self, user: int) -> Ints:
        """Return the indices of the rows of person `user`, rising."""
        return np.flatnonzero(self.user[: self.n] == user)

    def rows(self, which: Selection) -> PairRows:
        """Return a copy of the rows selected by `which`, with `times` 1."""
        user = self.user[which]
        return PairRows(user, self.pairs[which], self.equal[which], np.ones(user.size), self.group[which])

    def sites(self, which: Selection) -> Sites:
        """Return the sites of the rows selected by `which`."""
        return Sites(self.tau[which], self.nu[which])


def empty_buffer() -> AnswerBuffer:
    """Return a buffer without rows, with capacity for 16 rows."""
    integers, real = np.zeros(ROOM, np.int64), np.zeros(ROOM)
    pairs = np.zeros((ROOM, 2), np.int64)
    return AnswerBuffer(
        integers, pairs, np.zeros(ROOM, bool), integers.copy(), real, real.copy(), real.copy(), real.copy(), 0
    )


def append_answer(
    buffer: AnswerBuffer, user: int, pairs: Ints, equal: bool | npt.NDArray[np.bool_], width: float, lapse: float
) -> AnswerBuffer:
    """Append one answer of person `user` in r rows, and return the buffer, which may be overwritten. Sites of the rows
    start at 0; if r > 1, they get a common group number."""
    n, r = buffer.n, len(pairs)
    while n + r > buffer.user.size:
        buffer = double_capacity(buffer)
    new = slice(n, n + r)
    buffer.user[new], buffer.pairs[new], buffer.equal[new] = user, pairs, equal
    buffer.group[new] = n if r > 1 else -1
    buffer.tau[new], buffer.nu[new], buffer.width[new], buffer.lapse[new] = 0.0, 0.0, width, lapse
    return buffer._replace(n=n + r)


def double_capacity(buffer: AnswerBuffer) -> AnswerBuffer:
    """Return a copy of the buffer with twice the capacity."""
    columns: Any = (np.concatenate([part, np.zeros_like(part)]) for part in buffer[:-1])
    return buffer._replace(**dict(zip(buffer._fields, columns)))


def drop_rows(buffer: AnswerBuffer, dropped: Ints) -> AnswerBuffer:
    """Return a new buffer without the rows with indices `dropped`.

    `dropped` may contain some rows of an answer; the others still share their noise. Group numbers, which mark the rows
    of one answer, become what they were if the dropped rows had never come.
    """
    remaining = np.delete(np.arange(buffer.n), dropped)
    out = empty_buffer()
    while out.user.size < remaining.size:
        out = double_capacity(out)
    for part, old in zip(out[:-1], buffer[:-1]):
        part[: remaining.size] = old[remaining]
    grouped = np.flatnonzero(out.group[: remaining.size] >= 0)
    _, first, which = np.unique(out.group[grouped], return_index=True, return_inverse=True)
    out.group[grouped] = grouped[first][which]  # as if the dropped rows had never come
    return out._replace(n=remaining.size)


def rows_about(buffer: AnswerBuffer, item: int) -> Ints:
    """Return the indices, rising, of all rows in `buffer` of the answers in which the item with number
    `item` occurs.
    """
    rows, group = (buffer.pairs[: buffer.n] == item).any(axis=1), buffer.group[: buffer.n]
    return np.flatnonzero(rows | ((group >= 0) & np.isin(group, group[rows])))


def order_comparisons(shown: Ints, order: Ints) -> Ints:
    """Return the r pairs (r x 2) of item numbers, winner first, of an answer that ranks some or all of k items shown.

    `shown` (k,): item numbers; `order`: positions in `shown`, best first. Each ranked item beats the next, and the last
    beats every item that is not ranked.
    """
    named = shown[order]
    rest = np.delete(shown, order)
    chain = np.stack([named[:-1], named[1:]], axis=1)
    return np.concatenate([chain, np.stack([np.full(rest.size, named[-1]), rest], axis=1)])


def tie_comparisons(shown: Ints) -> Ints:
    """Return all r pairs (r x 2) of the k item numbers `shown` (k,), for an answer that they are equally good."""
    return np.array(list(combinations(shown.tolist(), 2)), np.int64)


def item_posterior(cov: Array, mean: Array, buffer: AnswerBuffer, user: int, items: Ints) -> Posterior:
    """Return the posterior over the utilities of i distinct `items` (i,) of person `user`, from their sites in
    `buffer`.

    `mean` (n,), `cov` (n x n): the person's prior over all n items.
    """
    compared, T, r = natural_parameters(mean, buffer, user)
    every = items.size == len(cov) and bool((items == np.arange(items.size)).all())
    return extend_posterior(
        cov if every else cov[np.ix_(items, items)],
        mean[items],
        cov[np.ix_(items, compared)],
        cov[np.ix_(compared, compared)],
        T,
        r,
    )


def low_rank_posterior(cov: Array, mean: Array, buffer: AnswerBuffer, user: int, items: Ints) -> LowRankPosterior:
    """Return the same for `items` in rising order, without forming a matrix over them."""
    compared, T, r = natural_parameters(mean, buffer, user)
    across = cov[np.ix_(items, compared)]
    hold = np.linalg.solve(np.eye(compared.size) + T @ cov[np.ix_(compared, compared)], np.column_stack([T, r]))
    pull = 0.5 * (hold[:, :-1] + hold[:, :-1].T)
    left = np.ascontiguousarray(product(pull, across).T)
    return LowRankPosterior(mean[items] + np.vecdot(across, hold[:, -1]), cov, items, left, across)


def natural_parameters(mean: Array, buffer: AnswerBuffer, user: int) -> tuple[Ints, Array, Array]:
    """Return what the answers of person `user` in `buffer` say about utilities: (items (q,), T (q x q), r (q,)).

    `items` are the numbers of the q items that occur in these answers, rising. With d the utilities of these items less
    their prior means, the product of the answers' sites (Gaussian factors) is exp(-d' T d / 2 + r' d). `mean` (n,) are
    the prior means of all n items.
    """
    answers = buffer.of(user)
    compared, inverse = np.unique(buffer.pairs[answers], return_inverse=True)
    rows = buffer.rows(answers)._replace(pairs=inverse.reshape(-1, 2), user=np.zeros(answers.size, np.int64))
    [T], [h] = make_table(rows, 1, compared.size).natural(buffer.tau[answers], buffer.nu[answers])
    return compared, T, h - T @ mean[compared]
