"""The sparse user x item matrix of ratings: for every rated pair the number of ratings and their sum.

This is all that most rating learners keep of the past. A pair is a position in arrays that grow; the positions of the
pairs of a user, and those of an item, stand next to each other, the newest first. Users and items are indices from 0.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.jit.kernel import Ints, kernel, noinline

Array = npt.NDArray[np.float64]
A = TypeVar("A", Ints, Array)


class PairLists(NamedTuple):
    """For each of n users, or of n items, the list of its pairs: their positions in an `InteractionMatrix`.

    A list is a stretch of one array, with room for a power of two; it is filled from its end, so that the newest comes
    first. One that is full moves to a stretch twice as long. A linked list would be read at the speed of the memory,
    one pair after the other."""

    end: Ints
    """where in `places` each list ends (n,)"""
    size: Ints
    """how many pairs there are in each list (n,)"""
    places: Ints
    """the lists (p,)"""
    free: Ints
    """where in `places` a stretch of 2^i begins that no list has (62,), -1 if there is none; its first number says
    where the next one begins"""
    used: int
    """how much of `places` lists have, or had"""


@declare(grows=True)
class InteractionMatrix(NamedTuple):
    """The sparse matrix of ratings: arrays with one element for each rated pair of a user and an item, and a list of
    each user's and each item's pairs.

    The first `used` elements of the arrays (P,) hold the pairs, of the indices `user` and `item`.
    """

    user: Ints
    item: Ints
    count: Array  # type: ignore[assignment]  # hides the method of tuples
    """the number of ratings of each pair, as the sum of their weights"""
    total: Array
    """the sum of the ratings of each pair, each times its weight"""
    by_user: PairLists
    """the lists of users"""
    by_item: PairLists
    """the lists of items"""
    used: int


@kernel
def empty_lists(n: int) -> PairLists:
    """Return empty lists of `n` users or items."""
    return PairLists(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(64, np.int64), np.full(62, -1), 0)


@noinline
@kernel
def empty_matrix(users: int, items: int) -> InteractionMatrix:
    """Return a matrix without ratings, with room for `users` users and `items` items; it grows when more come."""
    n = 64
    return InteractionMatrix(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n), empty_lists(users), empty_lists(items),
        0,
    )  # fmt: skip


@kernel
def places_of(lists: PairLists, owner: int) -> Ints:
    """Return the positions (n,) of the n pairs of the user or item with the index `owner`, the newest first: a part of
    `lists`. There are none for an index that was never met, or below 0."""
    if owner < 0 or owner >= lists.size.size:
        return lists.places[:0]
    end = lists.end[owner]
    return lists.places[end - lists.size[owner] : end]


@noinline
@kernel
def grow(a: A, size: int, fill: float, spare: float = 0.25) -> A:
    """Return the array `a` (n,) if it has at least `size` elements, else a copy of length (1 + `spare`) `size`; its new
    elements are `fill`. Whoever keeps the state before a rating copies all of it."""
    if a.size >= size:
        return a
    out = np.empty(size + int(spare * size), a.dtype)
    for i in range(out.size):  # not slices: compiled, an assignment of one to another takes a second to compile
        out[i] = a[i] if i < a.size else fill
    return out


@kernel
def place_of(pairs: InteractionMatrix, user: int, item: int) -> int:
    """Return the position in the arrays of `pairs` of the pair of the user and the item with these indices, or -1 if
    the user never rated the item."""
    mine, theirs = places_of(pairs.by_user, user), places_of(pairs.by_item, item)
    if mine.size <= theirs.size:
        for p in mine:
            if pairs.item[p] == item:
                return int(p)
    else:
        for p in theirs:
            if pairs.user[p] == user:
                return int(p)
    return -1


@noinline
@kernel
def with_place(lists: PairLists, owner: int, p: int) -> PairLists:
    """Return `lists` in which the position `p` comes first in the list of `owner`; their arrays are written in place,
    or replaced by longer ones, and a list that was read before may be somewhere else."""
    end, size = grow(lists.end, owner + 1, 0, 1.0), grow(lists.size, owner + 1, 0, 1.0)
    places, free, used, n = lists.places, lists.free, lists.used, int(size[owner])
    if n & (n - 1) == 0:  # 0 or a power of two: it is full
        had, i, room = end[owner] - n, 0, max(2 * n, 1)
        while 1 << i < room:
            i += 1
        begin = int(free[i])
        if begin >= 0:
            free[i] = places[begin]
        else:
            begin, used = used, used + room
            places = grow(places, used, 0)
        for j in range(n):
            places[begin + n + j] = places[had + j]
        if n > 0:
            places[had], free[i - 1] = free[i - 1], had
        end[owner] = begin + room
    places[end[owner] - n - 1] = p
    size[owner] = n + 1
    return PairLists(end, size, places, free, used)


@noinline
@kernel
def with_pair(pairs: InteractionMatrix, user: int, item: int) -> InteractionMatrix:
    """Return the matrix with one more pair, of a `user` and an `item` that have none, without a rating yet.

    The arrays of `pairs` are written in place; those that are full are replaced by longer copies, so use only the
    matrix that is returned.
    """
    p = pairs.used
    users, items = grow(pairs.user, p + 1, 0), grow(pairs.item, p + 1, 0)
    count, total = grow(pairs.count, p + 1, 0.0), grow(pairs.total, p + 1, 0.0)
    users[p], items[p] = user, item
    return InteractionMatrix(
        users, items, count, total, with_place(pairs.by_user, user, p), with_place(pairs.by_item, item, p), p + 1
    )


@noinline
@kernel
def add_rating(pairs: InteractionMatrix, user: int, item: int, rating: float, weight: float = 1.0) -> InteractionMatrix:
    """Add a rating of `item` by `user`, counted `weight` times; return the updated matrix, as `with_pair` does."""
    p = place_of(pairs, user, item)
    if p < 0:
        pairs = with_pair(pairs, user, item)
        p = pairs.used - 1
    pairs.count[p] += weight
    pairs.total[p] += weight * rating
    return pairs


# ---------------------------------------------------------------------------- removing ratings


@kernel
def drop_place(lists: PairLists, owner: int, p: int) -> None:
    """Remove the position `p` from the list of the user or item with index `owner`, in place."""
    places = places_of(lists, owner)
    i = 0
    while places[i] != p:
        i += 1
    for j in range(i, 0, -1):
        places[j] = places[j - 1]
    lists.size[owner] -= 1


@noinline
@kernel
def remove_pair(pairs: InteractionMatrix, p: int) -> None:
    """Remove the pair at position `p` from the matrix `pairs`, in place, as if this user had never rated this item.

    Its position stays empty, so that other arrays with an entry for each pair stay valid.
    """
    drop_place(pairs.by_user, pairs.user[p], p)
    drop_place(pairs.by_item, pairs.item[p], p)
    pairs.user[p] = pairs.item[p] = 0
    pairs.count[p] = pairs.total[p] = 0.0


@noinline
@kernel
def remove_item(pairs: InteractionMatrix, item: int) -> None:
    """Remove all ratings of the item with index `item` from the matrix `pairs`, in place."""
    while (places := places_of(pairs.by_item, item)).size:
        remove_pair(pairs, places[0])


def items_of(pairs: InteractionMatrix, user: int) -> Ints:
    """Return the indices of the items that the user with index `user` rated in `pairs` (n,), the newest first."""
    return pairs.item[places_of(pairs.by_user, user)]


def users_of(pairs: InteractionMatrix, item: int) -> Ints:
    """Return the indices of the users who rated the item with index `item` in `pairs` (n,), the newest first."""
    return pairs.user[places_of(pairs.by_item, item)]
