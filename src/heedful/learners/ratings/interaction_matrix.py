"""The sparse user x item matrix of ratings: for every rated pair the number of ratings and their sum.

This is all that most rating learners keep of the past. A pair is a place in arrays that grow; the pairs of a user, and
those of an item, are linked lists, the newest first. Users and items are numbers from 0.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.jit.kernel import Ints, kernel, noinline

Array = npt.NDArray[np.float64]
A = TypeVar("A", Ints, Array)


@declare(grows=True)
class InteractionMatrix(NamedTuple):
    """The rated pairs of a user and an item: the first `used` places of arrays (P,), and the heads of the lists
    of users (U,) and items (M,)."""

    user: Ints
    item: Ints
    count: Array  # type: ignore[assignment]  # hides the method of tuples
    """the number of its ratings"""
    total: Array
    """the sum of its ratings"""
    after_user: Ints
    """the next older pair of the same user, -1 after the last"""
    after_item: Ints
    """the next older pair of the same item, -1 after the last"""
    of_user: Ints
    """the newest pair of each user, -1 where there is none"""
    of_item: Ints
    """the newest pair of each item, -1 where there is none"""
    used: int


@noinline
@kernel
def empty_matrix(users: int, items: int) -> InteractionMatrix:
    """Return a matrix without ratings, with room for `users` and `items`; both grow."""
    n = 64
    of_user, of_item = np.full(users, -1), np.full(items, -1)
    return InteractionMatrix(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
        np.full(n, -1), np.full(n, -1), of_user, of_item, 0,
    )  # fmt: skip


@noinline
@kernel
def grow(a: A, size: int, fill: float) -> A:
    """Return the array a (n,) where it has at least `size` places, else a copy of length 2 `size` padded with
    `fill`."""
    if a.size >= size:
        return a
    out = np.empty(2 * size, a.dtype)
    for i in range(out.size):  # not slices: compiled, an assignment of one to another takes a second to compile
        out[i] = a[i] if i < a.size else fill
    return out


@noinline
@kernel
def with_room(pairs: InteractionMatrix, user: int, item: int) -> InteractionMatrix:
    """Return the matrix with room for this user, this item and one more pair."""
    size = pairs.used + 1
    return InteractionMatrix(
        grow(pairs.user, size, 0), grow(pairs.item, size, 0),
        grow(pairs.count, size, 0.0), grow(pairs.total, size, 0.0),
        grow(pairs.after_user, size, -1), grow(pairs.after_item, size, -1),
        grow(pairs.of_user, user + 1, -1), grow(pairs.of_item, item + 1, -1),
        pairs.used,
    )  # fmt: skip


@kernel
def place_of(pairs: InteractionMatrix, user: int, item: int) -> int:
    """Return the place of the pair in the arrays; -1 where this user never rated this item."""
    if user >= pairs.of_user.size:
        return -1
    p = pairs.of_user[user]
    while p >= 0 and pairs.item[p] != item:
        p = pairs.after_user[p]
    return int(p)


@noinline
@kernel
def add_rating(pairs: InteractionMatrix, user: int, item: int, rating: float, weight: float = 1.0) -> InteractionMatrix:
    """Add a rating of `item` by `user`, counted `weight` times; returns the updated matrix.

    Writes to the arrays of `pairs` in place. Those that are full are replaced by longer copies, so use what is
    returned.
    """
    p = place_of(pairs, user, item)
    if p < 0:
        pairs = with_room(pairs, user, item)
        p = pairs.used
        pairs.user[p], pairs.item[p] = user, item
        pairs.after_user[p], pairs.after_item[p] = pairs.of_user[user], pairs.of_item[item]
        pairs.of_user[user] = pairs.of_item[item] = p
        pairs = InteractionMatrix(
            pairs.user, pairs.item, pairs.count, pairs.total, pairs.after_user, pairs.after_item,
            pairs.of_user, pairs.of_item, p + 1,
        )  # fmt: skip
    pairs.count[p] += weight
    pairs.total[p] += weight * rating
    return pairs


# ---------------------------------------------------------------------------- removing ratings


@kernel
def unlink(newest: Ints, after: Ints, one: int, p: int) -> None:
    """Remove the place p from the linked list of `one`, in place."""
    if newest[one] == p:
        newest[one] = after[p]
    else:
        q = newest[one]
        while after[q] != p:
            q = after[q]
        after[q] = after[p]
    after[p] = -1


@noinline
@kernel
def remove_pair(pairs: InteractionMatrix, p: int) -> None:
    """Remove a pair, in place, as if this user had never rated this item. Its place stays empty, so that
    other arrays by place stay valid."""
    unlink(pairs.of_user, pairs.after_user, pairs.user[p], p)
    unlink(pairs.of_item, pairs.after_item, pairs.item[p], p)
    pairs.user[p] = pairs.item[p] = 0
    pairs.count[p] = pairs.total[p] = 0.0


@noinline
@kernel
def remove_rating(pairs: InteractionMatrix, user: int, item: int, rating: float, weight: float = 1.0) -> None:
    """Remove one rating, in place, and the pair with its last rating. Nothing happens where there is no such pair."""
    p = place_of(pairs, user, item)
    if p >= 0:
        pairs.count[p] -= weight
        pairs.total[p] -= weight * rating
        if pairs.count[p] <= 1e-9 * weight:  # sums of weights such as .1 have rounding errors
            remove_pair(pairs, p)


@noinline
@kernel
def remove_item(pairs: InteractionMatrix, item: int) -> None:
    """Remove all ratings of an item, in place."""
    while item < pairs.of_item.size and pairs.of_item[item] >= 0:
        remove_pair(pairs, pairs.of_item[item])


def items_of(pairs: InteractionMatrix, user: int) -> Ints:
    """Return the items that a user rated (n,), the newest first."""
    return pairs.item[_places(pairs.of_user, pairs.after_user, user)]


def users_of(pairs: InteractionMatrix, item: int) -> Ints:
    """Return the users who rated an item (n,), the newest first."""
    return pairs.user[_places(pairs.of_item, pairs.after_item, item)]


def _places(newest: Ints, after: Ints, one: int) -> Ints:
    """Return the places of the list of `one`, the newest first."""
    places = []
    p = newest[one] if one < newest.size else -1
    while p >= 0:
        places.append(int(p))
        p = after[p]
    return np.array(places, np.int64)
