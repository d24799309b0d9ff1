"""The space of assignments of people to slots for coactive learners, with its features phi(x, y) and the exact argmax
of w . phi(x, y)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, finite_array, indices
from heedful.jit.kernel import Floats, Ints, add_rows, kernel, scores

Array = npt.NDArray[np.float64]


class Assignment(NamedTuple):
    """The space of assignments of people to slots, one person to each slot.

    A context x (m x slots x N) has N features for each of m people in each of the `slots` slots, m >= slots. An object
    y (slots,) is an assignment: y[s] is the index of the person in slot s, and no person has two slots. phi(x, y) =
    sum_s x[y[s], s]. The argmax of w . phi(x, y) is exact: the linear assignment problem, solved by shortest augmenting
    paths.
    """

    slots: int

    def phi(self, x: Floats, y: Ints) -> Array:
        out = np.zeros(x.shape[2])
        self.add_objects(out, x, y, y, 1.0, 0.0)
        return out

    def argmax(self, w: Array, x: Floats) -> Ints:
        m, slots, n = x.shape
        return best_assignment(scores(x.reshape(m * slots, n), w).reshape(m, slots))

    def add_difference(self, out: Array, x: Floats, ybar: Ints, y: Ints, scale: float) -> None:
        self.add_objects(out, x, ybar, y, scale, -scale)

    def step_towards(self, y: Ints, best: Ints) -> Ints:
        """Return a copy of the assignment `y` (slots,) that is one step closer to the assignment `best` (slots,).

        Entry s of either is the index of the person in slot s. The first slot in which the two differ gets the person
        of `best`; if that person had another slot in y, the two people change places.
        """
        out = y.copy()
        for s in range(y.size):
            if y[s] != best[s]:
                for i in range(y.size):
                    if y[i] == best[s]:
                        out[i] = y[s]
                out[s] = best[s]
                break
        return out

    def add_objects(self, out: Array, x: Floats, a: Ints, b: Ints, of_a: float, of_b: float) -> None:
        """Add of_a phi(x, a) + of_b phi(x, b) to `out` (N,) in place; `of_a` and `of_b` are the factors of two
        assignments.

        `x` (m x slots x N): the N features of each of m people in each slot; `a`, `b` (slots,): the assignments, whose
        entry s is the index of the person in slot s.
        """
        m, slots, n = x.shape
        coef = np.zeros(m * slots)
        for slot in range(slots):
            coef[a[slot] * slots + slot] += of_a
            coef[b[slot] * slots + slot] += of_b
        add_rows(out, x.reshape(m * slots, n), coef, 1.0)

    def check(self) -> None:
        check_count("slots", self.slots)

    def check_context(self, x: object, n_features: int) -> Floats:
        array = finite_array("x", x, 3, n_features)
        if array.shape[1] != self.slots or array.shape[0] < self.slots:
            raise ValueError(
                f"x: expected shape (m, {self.slots}, {n_features}) with m >= {self.slots}, got {array.shape}"
            )
        return array

    def check_object(self, name: str, x: Floats, y: object) -> Ints:
        people = indices(name, y, x.shape[0], "a person for every slot")
        if people.size != self.slots:
            raise ValueError(f"{name}: expected {self.slots} people, one a slot, got {people.size}")
        return people


@kernel
def best_assignment(benefit: Array) -> Ints:
    """Return the assignment of greatest total benefit: the index of the person of each slot, (slots,).

    `benefit` is (m, slots) for m people. The Hungarian method with potentials: slot after slot, the shortest augmenting
    path by reduced costs, in O(m slots^2) time. Raise ValueError if a benefit is not finite or there are fewer people
    than slots.
    """
    m, slots = benefit.shape
    u, v = np.zeros(slots + 1), np.zeros(m + 1)  # potentials; slot 0 and person 0 are dummies
    holder = np.zeros(m + 1, np.int64)  # the slot each person holds, 0 for none
    way = np.zeros(m + 1, np.int64)
    for slot in range(1, slots + 1):
        holder[0] = slot
        j = 0
        least = np.full(m + 1, np.inf)
        used = np.zeros(m + 1, np.bool_)
        while True:
            used[j] = True
            i, delta, nearest = holder[j], np.inf, 0
            for p in range(1, m + 1):
                if not used[p]:
                    reduced = -benefit[p - 1, i - 1] - u[i] - v[p]
                    if reduced < least[p]:
                        least[p], way[p] = reduced, j
                    if least[p] < delta:
                        delta, nearest = least[p], p
            if nearest == 0:  # no person can be reached
                raise ValueError("assignment: expected finite benefits and at least as many people as slots")
            for p in range(m + 1):
                if used[p]:
                    u[holder[p]] += delta
                    v[p] -= delta
                else:
                    least[p] -= delta
            j = nearest
            if holder[j] == 0:
                break
        while j != 0:
            holder[j] = holder[way[j]]
            j = way[j]
    out = np.empty(slots, np.int64)
    for p in range(1, m + 1):
        if holder[p] > 0:
            out[holder[p] - 1] = p - 1
    return out
