"""Ratings as two numbers for every pair of a user and an item that was rated: how often, and the sum.

All that the learners of ratings need of the past: every row of a user, and of an item, is rewritten at once, so the
history is these two numbers. A pair is a place in arrays that grow; those of one user, and those of one item,
are linked, the newest first. Users and items are numbers from 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints, kernel, noinline

Array = npt.NDArray[np.float64]


class InteractionMatrix(NamedTuple):
    """Pairs of a user and an item: the first `used` places of arrays (P,), and where the lists begin (U,), (M,)."""

    user: Ints
    item: Ints
    count: Array  # type: ignore[assignment]  # not that of tuples
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

    @property
    def grows(self) -> bool:
        """Whether its arrays become longer: they do, as users and items arrive."""
        return True


@noinline
@kernel
def empty_matrix(users: int, items: int) -> InteractionMatrix:
    """No ratings; room for so many users and items to begin with."""
    n = 64
    of_user, of_item = np.full(users, -1), np.full(items, -1)
    return InteractionMatrix(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
        np.full(n, -1), np.full(n, -1), of_user, of_item, 0,
    )  # fmt: skip


@noinline
@kernel
def grow(a: Any, size: int, fill: Any) -> Any:
    """The array a (n,) with `fill` behind it up to twice `size`, where it is shorter than `size`; else a itself."""
    if a.size >= size:
        return a
    out = np.empty(2 * size, a.dtype)
    for i in range(out.size):  # not slices: compiled, an assignment of one to another takes a second to compile
        out[i] = a[i] if i < a.size else fill
    return out


@noinline
@kernel
def with_room(pairs: InteractionMatrix, user: int, item: int) -> InteractionMatrix:
    """The pairs, with room for this user, this item and one pair more."""
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
    """Where the pair is; -1 where this user never rated this item."""
    if user >= pairs.of_user.size:
        return -1
    p = pairs.of_user[user]
    while p >= 0 and pairs.item[p] != item:
        p = pairs.after_user[p]
    return int(p)


@noinline
@kernel
def add_rating(pairs: InteractionMatrix, user: int, item: int, rating: float, weight: float = 1.0) -> InteractionMatrix:
    """The pairs with one rating more, which counts for `weight`; owns `pairs`."""
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


# ---------------------------------------------------------------------------- taking ratings out


@kernel
def unlink(newest: Ints, after: Ints, one: int, p: int) -> None:
    """Leave the place p out of the list of `one`, in place."""
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
    """Take a pair out altogether, in place: nothing tells that this user ever rated this item. Its place stays empty,
    so arrays of others by place remain right."""
    unlink(pairs.of_user, pairs.after_user, pairs.user[p], p)
    unlink(pairs.of_item, pairs.after_item, pairs.item[p], p)
    pairs.user[p] = pairs.item[p] = 0
    pairs.count[p] = pairs.total[p] = 0.0


@noinline
@kernel
def remove_rating(pairs: InteractionMatrix, user: int, item: int, rating: float, weight: float = 1.0) -> None:
    """Take one rating out again, in place, and the pair with its last; nothing happens where the pair has none."""
    p = place_of(pairs, user, item)
    if p >= 0:
        pairs.count[p] -= weight
        pairs.total[p] -= weight * rating
        if pairs.count[p] <= 1e-9 * weight:  # weights such as .1 do not add up to the last bit
            remove_pair(pairs, p)


@noinline
@kernel
def remove_item(pairs: InteractionMatrix, item: int) -> None:
    """Take all ratings of an item out, in place."""
    while item < pairs.of_item.size and pairs.of_item[item] >= 0:
        remove_pair(pairs, pairs.of_item[item])


def items_of(pairs: InteractionMatrix, user: int) -> Ints:
    """The items that a user rated, the newest first."""
    return pairs.item[_places(pairs.of_user, pairs.after_user, user)]


def users_of(pairs: InteractionMatrix, item: int) -> Ints:
    """The users who rated an item, the newest first."""
    return pairs.user[_places(pairs.of_item, pairs.after_item, item)]


def _places(newest: Ints, after: Ints, one: int) -> Ints:
    """The places of the list of `one`, the newest first."""
    places = []
    p = newest[one] if one < newest.size else -1
    while p >= 0:
        places.append(int(p))
        p = after[p]
    return np.array(places, np.int64)
