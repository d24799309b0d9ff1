"""Expectation propagation (EP) for many people, each over only the items that their answers mention.

This is cheap where each person compares few of many items; the posterior over the other items follows from the prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import UserPosteriors, extend_posterior, infer_users
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.sites import Sites, Table, initial_sites, make_table
from heedful.inference.pairwise import PairRows, take_rows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

STEP = 4
"""People are batched if their numbers of items, rounded up to a multiple of STEP, are equal, so that arrays have one
size.
"""


class UserBatch(NamedTuple):
    """u people who each compared up to q items, with their p comparisons renumbered to these items.

    `people` (u,): their numbers; `items` (u x q): the items that each compared; `indices` (p,): indices of the
    comparisons in the table of all; `table`: the comparisons, with people and items renumbered. A person with fewer
    than q items has item 0 as padding, which has no effect.
    """

    people: Ints
    items: Ints
    present: npt.NDArray[np.bool_]
    """(u x q) True for items of the person, False for padding"""
    indices: Ints
    table: Table

    def prior(self, mean: Array, cov: Array) -> tuple[Array, Array]:
        """Return means (u x q) and covariances (u x q x q) of the q items that each of u people compared.

        `mean` (n,), `cov` (n x n): of all n items. Padding has mean 0, variance 1 and no covariances.
        """
        within = cov[self.items[:, :, None], self.items[:, None, :]]
        both = self.present[:, :, None] & self.present[:, None, :]
        return np.where(self.present, mean[self.items], 0.0), np.where(both, within, np.eye(self.items.shape[1]))

    def infer(
        self,
        mean: Array,
        cov: Array,
        sites: tuple[Array, Array],
        width: Array,
        lapse: Array,
        tolerance: float,
        sweeps: int,
    ) -> UserPosteriors:
        """Run EP (`infer_users`) for the u people of the batch, each over the q items that they compared.

        `mean` (u x q), `cov` (u x q x q): priors over these items; `sites`: tau and nu of the rows of all people;
        `width`, `lapse` (U,): of all people; `tolerance`, `sweeps` as in `infer_users`.
        """
        (tau, nu), people = sites, self.people
        return infer_users(
            cov, mean, people.size, self.table, Sites(tau[self.indices], nu[self.indices]),
            width=width[people], lapse=lapse[people], tolerance=tolerance, sweeps=sweeps,
        )  # fmt: skip

    def split(self, most: int) -> list[UserBatch]:
        """Return the same people in batches of at most `most` people each."""
        if self.people.size <= most:
            return [self]
        rows, out = self.table.rows, []
        for low in range(0, self.people.size, most):
            part_of_batch = slice(low, low + most)
            chosen = np.flatnonzero((rows.user >= low) & (rows.user < low + most))
            part = take_rows(rows, chosen)
            part = part._replace(user=part.user - low)
            people, q = self.people[part_of_batch], self.items.shape[1]
            out.append(
                UserBatch(
                    people,
                    self.items[part_of_batch],
                    self.present[part_of_batch],
                    self.indices[chosen],
                    make_table(part, people.size, q),
                )
            )
        return out


class PerUserPosteriors(NamedTuple):
    """Posteriors of U people over n items, each stored over only the items that the person compared.

    The prior N(prior_mean (n,), prior_cov (n x n)) is common; `parts` are batches of people, `inferred` their
    posteriors. The other fields are as in `UserPosteriors`."""

    prior_mean: Array
    prior_cov: Array
    parts: tuple[UserBatch, ...]
    inferred: tuple[UserPosteriors, ...]
    sites: Sites
    log_evidence: Array
    cavities: tuple[Array, Array]
    place: Ints
    """(U x 2) number of the batch of each person, and the position in it; -1 for a person without answers"""

    def of(self, user: int) -> Posterior:
        """Return the posterior of person `user` over all n items; without answers, the prior."""
        part, i = self.place[user]
        if part < 0:
            return Posterior(self.prior_mean, self.prior_cov)
        batch, posteriors, K = self.parts[part], self.inferred[part], self.prior_cov
        present = batch.present[i]
        compared = batch.items[i][present]
        T, r = posteriors.T[i][np.ix_(present, present)], posteriors.r[i][present]
        return extend_posterior(K, self.prior_mean, K[:, compared], K[np.ix_(compared, compared)], T, r)

    @property
    def mean(self) -> Array:
        """Posterior means (U x n) of n items for U people, computed on access."""
        return np.array([self.of(u).mean for u in range(len(self.place))]).reshape(len(self.place), -1)

    @property
    def cov(self) -> Array:
        """Posterior covariances (U x n x n) of n items for U people, computed on access."""
        n = self.prior_mean.size
        return np.array([self.of(u).cov for u in range(len(self.place))]).reshape(len(self.place), n, n)


def batches_of_users(rows: PairRows, users: int) -> tuple[UserBatch, ...]:
    """Return the people with comparisons in `rows`, in batches of about equally many items; `users`: number of all
    people.
    """
    order = rows.user.argsort(kind="stable")
    people, starts = np.unique(rows.user[order], return_index=True)
    rows_of_people = np.split(order, starts[1:])
    compared = (
        [np.unique(rows.pairs[selection], return_inverse=True) for selection in rows_of_people] if rows.size else []
    )
    most = max((items.size for items, _ in compared), default=0)
    sizes = np.array([min(-(-items.size // STEP) * STEP, most) for items, _ in compared], np.int64)
    parts = []
    for q in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == q)
        items, present = np.zeros((chosen.size, q), np.int64), np.zeros((chosen.size, q), bool)
        for i, k in enumerate(chosen.tolist()):
            items[i, : compared[k][0].size], present[i, : compared[k][0].size] = compared[k][0], True
        chosen_rows = np.concatenate([rows_of_people[k] for k in chosen])
        pairs = np.concatenate([compared[k][1].reshape(-1, 2) for k in chosen])
        user = np.repeat(np.arange(chosen.size), [rows_of_people[k].size for k in chosen])
        local = PairRows(user, pairs, rows.equal[chosen_rows], rows.times[chosen_rows], rows.group[chosen_rows])
        parts.append(UserBatch(people[chosen], items, present, chosen_rows, make_table(local, chosen.size, q)))
    return tuple(parts)


def infer_per_user(
    cov: Array,
    mean: Array,
    users: int,
    rows: PairRows,
    parts: tuple[UserBatch, ...],
    sites: Sites | None = None,
    *,
    width: Array,
    lapse: Array,
    tolerance: float = 1e-9,
    sweeps: int = 500,
) -> PerUserPosteriors:
    """Infer the posteriors over n items of U = `users` people as `infer_users` does, each over only the items that they
    compared; `parts`: the people in batches, made from `rows` by `batches_of_users`."""
    p = rows.size
    (tau, nu), m, v = initial_sites(sites, p), np.zeros(p), np.zeros(p)
    evidence, place, done, moved = np.zeros(users), np.full((users, 2), -1), 0, 0.0
    inferred = []
    for k, batch in enumerate(parts):
        posteriors = batch.infer(*batch.prior(mean, cov), (tau, nu), width, lapse, tolerance, sweeps)
        tau[batch.indices], nu[batch.indices] = posteriors.sites.tau, posteriors.sites.nu
        m[batch.indices], v[batch.indices] = posteriors.cavities
        evidence[batch.people] = posteriors.log_evidence
        place[batch.people, 0], place[batch.people, 1] = k, np.arange(batch.people.size)
        done, moved = max(done, posteriors.sites.sweeps), max(moved, posteriors.sites.moved)
        inferred.append(posteriors)
    return PerUserPosteriors(mean, cov, parts, tuple(inferred), Sites(tau, nu, done, moved), evidence, (m, v), place)


def pull_sums(people: PerUserPosteriors) -> tuple[Array, Array]:
    """Return two sums over people u that an EM step of the population needs: sum a_u (n,), and sum (a_u a_u' - W_u) (n
    x n), where the posterior of person u is N(m + S a_u, S - S W_u S) and N(m, S) the prior of all people.
    """
    n = people.prior_mean.size
    a, A = np.zeros(n), np.zeros((n, n))
    for batch, posteriors in zip(people.parts, people.inferred):
        _, within = batch.prior(people.prior_mean, people.prior_cov)
        both = np.concatenate([posteriors.T, posteriors.r[:, :, None]], axis=2)
        hold = np.linalg.solve(np.eye(within.shape[-1]) + posteriors.T @ within, both)
        pull = hold[:, :, -1]
        spread = pull[:, :, None] * pull[:, None, :] - hold[:, :, :-1]
        present, items = batch.present, batch.items
        np.add.at(a, items[present], pull[present])
        pairs = present[:, :, None] & present[:, None, :]
        places = (items[:, :, None] * n + items[:, None, :])[pairs]
        A += np.bincount(places, spread[pairs], n * n).reshape(n, n)
    return a, 0.5 * (A + A.T)
