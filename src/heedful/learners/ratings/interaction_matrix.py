"""The sparse user x item matrix of ratings: for every rated pair the number of ratings and their sum.

This is all that most rating learners keep of the past. A pair is a position in arrays that grow; the pairs of a user,
and those of an item, are linked lists, the newest first. Users and items are indices from 0.
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
    """The sparse matrix of ratings: arrays with one element for each rated pair of a user and an item, and linked lists
    of each user's and each item's pairs.

    The first `used` elements of the arrays (P,) hold the pairs, of the indices `user` and `item`.
    """

    user: Ints
    item: Ints
    count: Array  # type: ignore[assignment]  # hides the method of tuples
    """the number of ratings of each pair, as the sum of their weights"""
    total: Array
    """the sum of the ratings of each pair, each times its weight"""
    after_user: Ints
    """for each pair the position of the next older pair of the same user, -1 after the last"""
    after_item: Ints
    """for each pair the position of the next older pair of the same item, -1 after the last"""
    of_user: Ints
    """the position of the newest pair of each of U users (U,), -1 where there is none"""
    of_item: Ints
    """the position of the newest pair of each of M items (M,), -1 where there is none"""
    used: int


@noinline
@kernel
def empty_matrix(users: int, items: int) -> InteractionMatrix:
    """Return a matrix without ratings, with room for `users` users and `items` items; it grows when more come."""
    n = 64
    of_user, of_item = np.full(users, -1), np.full(items, -1)
    return InteractionMatrix(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
        np.full(n, -1), np.full(n, -1), of_user, of_item, 0,
    )  # fmt: skip


@noinline
@kernel
def grow(a: A, size: int, fill: float) -> A:
    """Return the array `a` (n,) if it has at least `size` elements, else a copy of length 2 `size`; its new elements
    are `fill`."""
    if a.size >= size:
        return a
    out = np.empty(2 * size, a.dtype)
    for i in range(out.size):  # not slices: compiled, an assignment of one to another takes a second to compile
        out[i] = a[i] if i < a.size else fill
    return out


@noinline
@kernel
def with_room(pairs: InteractionMatrix, user: int, item: int) -> InteractionMatrix:
    """Return the matrix `pairs` with room for the user and the item of these indices and for one more pair; arrays that
    are long enough are shared with `pairs`."""
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
    """Return the position in the arrays of `pairs` of the pair of the user and the item with these indices, or -1 if
    the user never rated the item."""
    if user >= pairs.of_user.size or item >= pairs.of_item.size:
        return -1
    p, q = pairs.of_user[user], pairs.of_item[item]
    while p >= 0 and q >= 0:  # the shorter of the two lists is enough
        if pairs.item[p] == item:
            return int(p)
        if pairs.user[q] == user:
            return int(q)
        p, q = pairs.after_user[p], pairs.after_item[q]
    return -1


@noinline
@kernel
def with_pair(pairs: InteractionMatrix, user: int, item: int) -> InteractionMatrix:
    """Return the matrix with one more pair, of a `user` and an `item` that have none, without a rating yet.

    The arrays of `pairs` are written in place; those that are full are replaced by longer copies, so use only the
    matrix that is returned.
    """
    pairs = with_room(pairs, user, item)
    p = pairs.used
    pairs.user[p], pairs.item[p] = user, item
    pairs.after_user[p], pairs.after_item[p] = pairs.of_user[user], pairs.of_item[item]
    pairs.of_user[user] = pairs.of_item[item] = p
    return InteractionMatrix(
        pairs.user, pairs.item, pairs.count, pairs.total, pairs.after_user, pairs.after_item,
        pairs.of_user, pairs.of_item, p + 1,
    )  # fmt: skip


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
def unlink(newest: Ints, after: Ints, owner: int, p: int) -> None:
    """Remove the pair at position `p` from the linked list of the user or item with index `owner`, in place.

    `newest` has the position of the newest pair of each user or item, `after` the next older one of each pair.
    """
    if newest[owner] == p:
        newest[owner] = after[p]
    else:
        q = newest[owner]
        while after[q] != p:
            q = after[q]
        after[q] = after[p]
    after[p] = -1


@noinline
@kernel
def remove_pair(pairs: InteractionMatrix, p: int) -> None:
    """Remove the pair at position `p` from the matrix `pairs`, in place, as if this user had never rated this item.

    Its position stays empty, so that other arrays with an entry for each pair stay valid.
    """
    unlink(pairs.of_user, pairs.after_user, pairs.user[p], p)
    unlink(pairs.of_item, pairs.after_item, pairs.item[p], p)
    pairs.user[p] = pairs.item[p] = 0
    pairs.count[p] = pairs.total[p] = 0.0


@noinline
@kernel
def remove_item(pairs: InteractionMatrix, item: int) -> None:
    """Remove all ratings of the item with index `item` from the matrix `pairs`, in place."""
    while item < pairs.of_item.size and pairs.of_item[item] >= 0:
        remove_pair(pairs, pairs.of_item[item])


def items_of(pairs: InteractionMatrix, user: int) -> Ints:
    """Return the indices of the items that the user with index `user` rated in `pairs` (n,), the newest first."""
    return pairs.item[pairs_of(pairs.of_user, pairs.after_user, user)]


def users_of(pairs: InteractionMatrix, item: int) -> Ints:
    """Return the indices of the users who rated the item with index `item` in `pairs` (n,), the newest first."""
    return pairs.user[pairs_of(pairs.of_item, pairs.after_item, item)]


def pairs_of(newest: Ints, after: Ints, owner: int) -> Ints:
    """Return the positions (n,) of the n pairs of the user (or item) with index `owner`, the newest first."""
    places = []
    p = newest[owner] if 0 <= owner < newest.size else -1
    while p >= 0:
        places.append(int(p))
        p = after[p]
    return np.array(places, np.int64)
