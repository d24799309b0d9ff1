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

    `who` (u,): the people; `items` (u x q): the items that each compared; `at` (p,): indices of the comparisons in the
    table of all; `table`: the comparisons, with people and items renumbered. A person with fewer than q items has item
    0 as padding, which has no effect.
    """

    who: Ints
    items: Ints
    there: npt.NDArray[np.bool_]
    """(u x q) True for items of the person, False for padding"""
    at: Ints
    table: Table

    def prior(self, mean: Array, cov: Array) -> tuple[Array, Array]:
        """Return means (u x q) and covariances (u x q x q) of the q items that each of u people compared.

        `mean` (n,), `cov` (n x n): of all n items. Padding has mean 0, variance 1 and no covariances.
        """
        own = cov[self.items[:, :, None], self.items[:, None, :]]
        both = self.there[:, :, None] & self.there[:, None, :]
        return np.where(self.there, mean[self.items], 0.0), np.where(both, own, np.eye(self.items.shape[1]))

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

        `mean` (u x q), `cov` (u x q x q): priors over these items; `sites`: tau and nu, (p,) each, of the p rows of all
        people, where the sites start; `width`, `lapse` (U,): tie width and lapse rate of all U people; `tolerance`,
        `sweeps` as in `infer_users`.
        """
        (tau, nu), who = sites, self.who
        return infer_users(
            cov, mean, who.size, self.table, Sites(tau[self.at], nu[self.at]),
            width=width[who], lapse=lapse[who], tolerance=tolerance, sweeps=sweeps,
        )  # fmt: skip

    def split(self, most: int) -> list[UserBatch]:
        """Return the same people in batches of at most `most` people each."""
        if self.who.size <= most:
            return [self]
        rows, out = self.table.rows, []
        for low in range(0, self.who.size, most):
            here = slice(low, low + most)
            own = np.flatnonzero((rows.user >= low) & (rows.user < low + most))
            part = take_rows(rows, own)
            part = part._replace(user=part.user - low)
            who, q = self.who[here], self.items.shape[1]
            out.append(UserBatch(who, self.items[here], self.there[here], self.at[own], make_table(part, who.size, q)))
        return out


class PerUserPosteriors(NamedTuple):
    """Posteriors of U people over n items, each stored over only the items that the person compared.

    The prior N(prior_mean (n,), prior_cov (n x n)) is common; `parts` are batches of people, `inferred` their
    posteriors, and `place` (U x 2) the batch of each person and the position in it, -1 without answers. `sites` are the
    Gaussian factors of the p comparisons, `cavities` mean and variance, (p,) each, of the difference that each is about
    given everything else, and `log_evidence` (U,) is log P(answers) of each person.
    """

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
        few, many, K = self.parts[part], self.inferred[part], self.prior_cov
        there = few.there[i]
        met = few.items[i][there]
        T, r = many.T[i][np.ix_(there, there)], many.r[i][there]
        return extend_posterior(K, self.prior_mean, K[:, met], K[np.ix_(met, met)], T, r)

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
    who, starts = np.unique(rows.user[order], return_index=True)
    own = np.split(order, starts[1:])
    met = [np.unique(rows.pairs[at], return_inverse=True) for at in own] if rows.size else []
    most = max((items.size for items, _ in met), default=0)
    sizes = np.array([min(-(-items.size // STEP) * STEP, most) for items, _ in met], np.int64)
    parts = []
    for q in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == q)
        items, there = np.zeros((chosen.size, q), np.int64), np.zeros((chosen.size, q), bool)
        for i, k in enumerate(chosen.tolist()):
            items[i, : met[k][0].size], there[i, : met[k][0].size] = met[k][0], True
        at = np.concatenate([own[k] for k in chosen])
        pairs = np.concatenate([met[k][1].reshape(-1, 2) for k in chosen])
        user = np.repeat(np.arange(chosen.size), [own[k].size for k in chosen])
        local = PairRows(user, pairs, rows.equal[at], rows.times[at], rows.group[at])
        parts.append(UserBatch(who[chosen], items, there, at, make_table(local, chosen.size, q)))
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
    """Infer the posteriors over n items of U = `users` people by expectation propagation (EP), each over only the items
    that they compared.

    `cov` (n x n), `mean` (n,): the common prior; `rows`: all comparisons; `parts`: the people in batches, made from
    these rows by `batches_of_users`; `width` (U,): how much better an item must be perceived by each person not to tie;
    `lapse` (U,): the probability of a random answer. `sites`: where an earlier run ended, on the first of these rows.
    Sweeps end when no site (Gaussian factor of a comparison) moves by more than the fraction `tolerance`, or after
    `sweeps`. Raise ValueError if there are ties and the width is 0.
    """
    p = rows.size
    (tau, nu), m, v = initial_sites(sites, p), np.zeros(p), np.zeros(p)
    evidence, place, done, moved = np.zeros(users), np.full((users, 2), -1), 0, 0.0
    inferred = []
    for k, few in enumerate(parts):
        many = few.infer(*few.prior(mean, cov), (tau, nu), width, lapse, tolerance, sweeps)
        tau[few.at], nu[few.at] = many.sites.tau, many.sites.nu
        m[few.at], v[few.at] = many.cavities
        evidence[few.who] = many.log_evidence
        place[few.who, 0], place[few.who, 1] = k, np.arange(few.who.size)
        done, moved = max(done, many.sites.sweeps), max(moved, many.sites.moved)
        inferred.append(many)
    return PerUserPosteriors(mean, cov, parts, tuple(inferred), Sites(tau, nu, done, moved), evidence, (m, v), place)


def pull_sums(people: PerUserPosteriors) -> tuple[Array, Array]:
    """Return two sums over people u that an EM step of the population needs: sum a_u (n,), and sum (a_u a_u' - W_u) (n
    x n).

    The posterior of person u over n items is N(m + S a_u, S - S W_u S), where N(m, S) is the prior of all people; this
    defines the vector a_u (n,) and the matrix W_u (n x n).
    """
    n = people.prior_mean.size
    a, A = np.zeros(n), np.zeros((n, n))
    for few, many in zip(people.parts, people.inferred):
        _, own = few.prior(people.prior_mean, people.prior_cov)
        both = np.concatenate([many.T, many.r[:, :, None]], axis=2)
        hold = np.linalg.solve(np.eye(own.shape[-1]) + many.T @ own, both)
        pull = hold[:, :, -1]
        spread = pull[:, :, None] * pull[:, None, :] - hold[:, :, :-1]
        there, items = few.there, few.items
        np.add.at(a, items[there], pull[there])
        pairs = there[:, :, None] & there[:, None, :]
        at = (items[:, :, None] * n + items[:, None, :])[pairs]
        A += np.bincount(at, spread[pairs], n * n).reshape(n, n)
    return a, 0.5 * (A + A.T)
