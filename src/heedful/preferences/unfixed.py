"""What answers say where a fold has fixed what it does not know: how far utilities lie apart, the mean of the people,
and how close is "equally good". For saying how sure something is, not for the next question.

A fold takes the spread of utilities as given, and the mean of the people as what EM has made of the same answers: of
one person, or a few, who answered little, it is far too sure then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.kernel import Ints
from heedful.preferences.answers import Answers
from heedful.preferences.ep import infer
from heedful.preferences.evidence import chosen_rows, likeliest_spread, mean_of, told_of_mean
from heedful.preferences.people import Apart, infer_apart, people_of
from heedful.preferences.posterior import Posterior
from heedful.preferences.stopping import Seen

Array = npt.NDArray[np.float64]

FEW = 10
"""Of so many people at most the spread is chosen by the evidence; of more, what they are like says it."""

ROUNDS = 3
"""How often the mean of the people and their sites are put right in turn."""


def of_one(cov: Array, rows: Answers, width: float, lapse: float, around: float = 1.0) -> tuple[Posterior, Seen]:
    """What is believed of a person of whom all that is known are these answers, and from what; utilities are N(0, cov
    (n x n)) but for their spread, a factor with a log-normal prior `around` a median."""
    width = width if rows.equal.any() else 0.0
    rows = rows._replace(user=np.zeros(rows.size, np.int64))
    c = likeliest_spread(cov, 1, rows, width, lapse, around)
    got = infer(c * c * cov, np.zeros(len(cov)), rows, width=width, lapse=lapse)
    return got.posterior, Seen(rows, got.sites, width, lapse)


def of_several(
    cov: Array,
    users: int,
    rows: Answers,
    whose: Ints,
    width: Array,
    lapse: Array,
    around: float = 1.0,
    *,
    pooled: bool = True,
) -> tuple[Posterior, Seen | None]:
    """What is believed of the mean of the utilities of some people, `whose` numbers (k,) of `users`, whose utilities
    are N(m, cov (n x n)) but for their spread, as of `of_one`; width, lapse (users,). `pooled`: m is the same for all,
    and known from the answers alone; else it is 0. Of one person also from what."""
    width = width if rows.equal.any() else np.zeros(users)
    noise = float(width.max(initial=0.0)), float(np.median(lapse))
    c = likeliest_spread(cov, users, rows, *noise, around) if users <= FEW else 1.0
    cov = c * c * cov
    if whose.size == 1:  # what the others say is what is known before; so it is the prior of their own answers
        [own], mean = whose, Posterior(np.zeros(len(cov)), np.zeros_like(cov))
        if pooled:
            mean = _mean(cov, users, chosen_rows(rows, rows.user != own), width, lapse)[1]
        of = chosen_rows(rows, rows.user == own)
        of = of._replace(user=np.zeros(of.size, np.int64))
        w, z = float(width[own]), float(lapse[own])
        got = infer(cov + mean.cov, mean.mean, of, width=w, lapse=z)
        return got.posterior, Seen(of, got.sites, w, z)
    people, mean = _mean(cov, users, rows, width, lapse, ROUNDS if pooled else 0)
    pull, narrow = _sums(people, whose)
    spread, K = cov @ narrow, whose.size
    found = people.prior_mean + cov @ pull / K
    own_cov = (cov - spread @ cov / K) / K
    if pooled:
        told = mean.cov - (spread @ mean.cov) / K  # (I - S W) V (I - S W)'
        own_cov += told - told @ spread.T / K
    return Posterior(found, 0.5 * (own_cov + own_cov.T)), None


def _mean(
    cov: Array, users: int, rows: Answers, width: Array, lapse: Array, rounds: int = ROUNDS
) -> tuple[Apart, Posterior]:
    """Everybody's posteriors, given the likeliest mean of the people; and what is known of that."""
    parts, sites, mean = people_of(rows, users), None, Posterior(np.zeros(len(cov)), cov)
    for _ in range(max(rounds, 1)):
        people = infer_apart(
            cov, mean.mean, users, rows, parts, sites, width=width, lapse=lapse, tolerance=1e-6, sweeps=100
        )  # fmt: skip
        sites = people.sites
        if rounds:
            mean = mean_of(cov, *told_of_mean(people))
    return people, mean


def _sums(people: Apart, whose: Ints) -> tuple[Array, Array]:
    """The sums of a_u (n,) and W_u (n x n) over these people, whose posteriors are N(m + S a_u, S - S W_u S)."""
    n = people.prior_mean.size
    pull, narrow = np.zeros(n), np.zeros((n, n))
    for part, i in people.place[whose].tolist():
        if part < 0:
            continue
        few, many = people.parts[part], people.inferred[part]
        there = few.there[i]
        met, T, r = few.items[i][there], many.T[i][np.ix_(there, there)], many.r[i][there]
        among = np.ix_(met, met)
        hold = np.linalg.solve(np.eye(met.size) + T @ people.prior_cov[among], np.column_stack([T, r]))
        narrow[among] += hold[:, :-1]
        pull[met] += hold[:, -1]
    return pull, narrow
