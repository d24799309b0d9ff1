"""What utilities are like before anything is answered: hyperparameters by the evidence of the answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.preferences.answers import Answers
from heedful.preferences.ep import WIDENING
from heedful.preferences.kernels import kernel_for
from heedful.preferences.people import Apart, infer_apart, people_of
from heedful.preferences.posterior import Posterior
from heedful.preferences.sites import Sites, root

Array = npt.NDArray[np.float64]

AMPLITUDE, APART = 1.5, 0.7
"""Before anything is known: the median of the amplitude, and the standard deviation of its logarithm."""

SHARES, LENGTHS = (0.5, 0.8, 0.95), (0.5, 1.0, 2.0)
"""What features may explain, besides nothing; length-scales, in median distances."""

TRIED, NEAR = 1_500, 150
"""Rows that hyperparameters are chosen by, and one person's items, at most."""

QUICK, AGAIN = WIDENING - 1, 5
"""Sweeps of EP at a time where it has to be quick: fewer than those after which it tries whether sites may widen; and
how many times so many."""

KAPPA0 = 1.0
"""The prior on m counts as so many people."""


class Chosen(NamedTuple):
    """Hyperparameters, by the evidence of the answers: the standard deviation of utilities; the share of the variance
    that features explain, and their length-scale in median distances, both 0 where there are none."""

    amplitude: float = AMPLITUDE
    explained: float = 0.0
    lengthscale: float = 0.0


def covariance(X: Array, chosen: Chosen) -> Array:
    """K (n x n) of items with features X (n x d): the explained share by an RBF of these, the rest each item's own."""
    n = len(X)
    own = chosen.amplitude**2 * np.eye(n)
    if X.shape[1] == 0 or chosen.explained == 0.0:
        return own
    kernel = kernel_for(X, "median", chosen.amplitude)
    kernel = kernel._replace(lengthscale=kernel.lengthscale * chosen.lengthscale)
    return chosen.explained * kernel.over(X) + (1.0 - chosen.explained) * own


def chosen_rows(rows: Answers, at: Any) -> Answers:
    """The rows at these places, in that order."""
    return Answers(*(column[at] for column in rows))


def choose(X: Array, users: int, rows: Answers, width: float, lapse: float, start: Chosen | None = None) -> Chosen:
    """The hyperparameters for items with features X (n x d) and the answers of `users` people, with noise as given; of
    many, as if S were K, and m anything likely. From `start`, the amplitude alone."""
    from scipy.optimize import minimize_scalar

    rows, users = some_of(rows, users)
    met, at = np.unique(rows.pairs, return_inverse=True)
    rows = rows._replace(pairs=at.reshape(-1, 2))
    worth_of = _Worth(rows, users, width if rows.equal.any() else 0.0, lapse)

    def worth(chosen: Chosen) -> float:
        evidence = worth_of(covariance(X, chosen)[np.ix_(met, met)])
        return evidence - 0.5 * float(np.log(chosen.amplitude / AMPLITUDE) / APART) ** 2

    def loud(chosen: Chosen) -> Chosen:
        """With the likeliest amplitude, .1 to 30."""
        got = minimize_scalar(
            lambda log: -worth(chosen._replace(amplitude=float(np.exp(log)))),
            bounds=np.log([0.1, 30.0]), method="bounded", options={"xatol": 0.03},
        )  # fmt: skip
        return chosen._replace(amplitude=float(np.exp(got.x)))

    best = loud(Chosen() if start is None else start)
    if X.shape[1] and start is None:
        tried = [best._replace(explained=share, lengthscale=of) for share in SHARES for of in LENGTHS]
        best = loud(max([best, *tried], key=worth))
    return best


def likeliest_spread(cov: Array, users: int, rows: Answers, width: float, lapse: float, around: float = 1.0) -> float:
    """By which factor utilities lie further apart than N(m, cov (n x n)) has it, by the evidence of the answers of
    `users` people: the likeliest, with a log-normal prior `around` a median, from a tenth of the lesser of 1 and
    `around` to ten times the greater. Of one person m is 0."""
    from scipy.optimize import minimize_scalar

    if not rows.size:
        return around
    rows, users = some_of(rows, users)
    met, at = np.unique(rows.pairs, return_inverse=True)
    worth = _Worth(rows._replace(pairs=at.reshape(-1, 2)), users, width if rows.equal.any() else 0.0, lapse)
    among = cov[np.ix_(met, met)]
    got = minimize_scalar(
        lambda log: 0.5 * float((log - np.log(around)) / APART) ** 2 - worth(np.exp(2.0 * log) * among),
        bounds=np.log([0.1 * min(around, 1.0), 10.0 * max(around, 1.0)]), method="bounded", options={"xatol": 0.03},
    )  # fmt: skip
    return float(np.exp(got.x))


class _Worth:
    """The log evidence of some answers by what utilities are like before, from where it last ended."""

    def __init__(self, rows: Answers, users: int, width: float, lapse: float) -> None:
        self.rows, self.users, self.noise = rows, users, (np.full(users, width), np.full(users, lapse))
        self.people = people_of(rows, users)
        self.mean: Array = np.zeros(int(rows.pairs.max()) + 1)
        self.sites: Sites | None = None

    def __call__(self, K: Array) -> float:
        width, lapse = self.noise
        for step in range(1 if self.users == 1 else 3):
            for _ in range(AGAIN):
                got = infer_apart(
                    K, self.mean, self.users, self.rows, self.people, self.sites,
                    width=width, lapse=lapse, tolerance=1e-3, sweeps=QUICK,
                )  # fmt: skip
                self.sites = got.sites
                if got.sites.moved <= 1e-3:
                    break
            if self.users == 1:
                return float(got.log_evidence.sum())
            A, b = told_of_mean(got)
            if step < 2:
                self.mean = mean_of(K, A, b).mean
        # m integrated out: the answers say exp(-m' A m / 2 + b' m) of it, and this they say at self.mean
        L, m = root(K), self.mean
        inner = KAPPA0 * np.eye(L.shape[1]) + L.T @ A @ L
        pull = L.T @ b
        whole = 0.5 * float(pull @ np.linalg.solve(inner, pull)) - 0.5 * float(np.linalg.slogdet(inner / KAPPA0)[1])
        return float(got.log_evidence.sum() - (b - 0.5 * (A @ m)) @ m) + whole


def some_of(rows: Answers, users: int) -> tuple[Answers, int]:
    """Rows that are quick to try: of many some whole answers, people at random where there are several, numbered anew;
    of one person's about many items those about NEAR of them that were much compared with one another."""
    if users == 1 and (near := _near(rows)) is not None:
        rows = chosen_rows(rows, near)
    if rows.size > TRIED:
        order = np.random.default_rng(0).permutation
        unit = rows.user if users > 1 else _units(rows)
        each, size = np.unique(unit, return_counts=True)
        mixed = order(each.size)
        kept = mixed[np.cumsum(size[mixed]) <= TRIED]
        rows = chosen_rows(rows, np.isin(unit, each[kept if kept.size else mixed[:1]]))
    if users == 1:
        return rows, 1
    people, user = np.unique(rows.user, return_inverse=True)
    return rows._replace(user=user), people.size


def _units(rows: Answers) -> Any:
    """Numbers of whole answers (p,)."""
    return np.where(rows.group < 0, rows.group.max(initial=-1) + 1 + np.arange(rows.size), rows.group)


def _near(rows: Answers) -> Any:
    """Whether a row is of an answer about NEAR items that hang together (p,); None where there are no more items, or no
    such answer."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    met, at = np.unique(rows.pairs, return_inverse=True)
    if met.size <= NEAR:
        return None
    a, b = at.reshape(-1, 2).T
    graph = coo_array((np.ones(a.size), (a, b)), shape=(met.size, met.size)).tocsr()
    chosen = np.zeros(met.size, bool)
    for start in np.argsort(-np.bincount(at.ravel()), kind="stable"):
        left = NEAR - int(chosen.sum())
        if left > 0 and not chosen[start]:
            chosen[breadth_first_order(graph, start, directed=False, return_predecessors=False)[:left]] = True
    out, unit = chosen[a] & chosen[b], _units(rows)
    out = ~np.isin(unit, unit[~out])
    return out if out.any() else None


# ---------------------------------------------------------------------------- the mean of many people


def told_of_mean(people: Apart) -> tuple[Array, Array]:
    """What people's answers say of m of N(m, S), exp(-m' A m / 2 + b' m): A = sum (S + T^-1)^-1 (n x n), b (n,)."""
    n = people.prior_mean.size
    A, b = np.zeros(n * n), np.zeros(n)
    for few, many in zip(people.parts, people.inferred):
        TC = many.T @ many.cov
        mean, _ = few.prior(people.prior_mean, people.prior_cov)
        h = many.r + (many.T @ mean[:, :, None])[:, :, 0]
        at = few.items[:, :, None] * n + few.items[:, None, :]
        A += np.bincount(at.ravel(), (many.T - TC @ many.T).ravel(), n * n)
        b += np.bincount(few.items.ravel(), (h - (TC @ h[:, :, None])[:, :, 0]).ravel(), n)
    return A.reshape(n, n), b


def mean_of(S: Array, precision: Array, pull: Array) -> Posterior:
    """m of N(m, S), with the prior N(0, S / KAPPA0), after answers that say exp(-m' precision m / 2 + pull' m)."""
    L = root(S)
    cov = L @ np.linalg.solve(KAPPA0 * np.eye(L.shape[1]) + L.T @ precision @ L, L.T)
    cov = 0.5 * (cov + cov.T)
    return Posterior(cov @ pull, cov)
