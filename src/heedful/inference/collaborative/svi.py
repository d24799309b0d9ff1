"""The collaborative model CP for many people, by stochastic variational inference: answers are processed in batches of
people, and the functions that people share take natural-gradient steps.

The posterior of a function is its prior times Gaussian factors (sites) of its values at pairs of items, as in `cp`. For
each batch, the weights of its people are computed with the functions fixed; then the sites of each function move
towards those of the batch, scaled up as if all people were like it. A batch is visited once a pass and only the weights
of its people are kept, so memory holds the answers and U x D weights of U people and D functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.cp_fit import CollaborativeFit, Functions
from heedful.inference.collaborative.priors import ItemPrior
from heedful.inference.collaborative.sparse_cells import Cells, SiteSums, cells, group_lists, number_pairs
from heedful.inference.collaborative.vb_product import coordinate_ascent
from heedful.inference.gp.ep import Likelihood, likelihood_of, moments
from heedful.inference.gp.sites import matched_sites, root
from heedful.inference.pairwise import PairRows, take_rows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

INNER = 5
"""The number of rounds in which the weights of a batch are computed."""

FIRST = 1000
"""The greatest number of people to whom the first functions are fitted."""


@dataclass(frozen=True)
class StreamingFit(CollaborativeFit):
    """The result of `fit_streaming`: a fit of the collaborative model CP in batches of people, which a later
    `fit_streaming` can continue.

    `functions`, `mw` and `vw` are as in `CollaborativeFit`.
    """

    items: ItemPrior
    """prior of the functions at the P pairs of items that occur in answers"""
    sites: tuple[Array, Array]
    """precisions, and precisions times means, (D x P) each, of the sites that define the posterior of
    the D functions
    """
    steps: int
    """the number of natural-gradient steps so far"""


def fit_streaming(
    K: Array,
    users: int,
    rows: PairRows,
    *,
    D: int = 20,
    batch: int = 2000,
    passes: int = 1,
    slower: float = 0.6,
    width: float = 0.0,
    lapse: float = 0.0,
    seed: int = 0,
    start: StreamingFit | None = None,
) -> StreamingFit:
    """Fit the collaborative model CP of [H12] to the answers `rows` of U = `users` people in batches of people.

    `K` (n x n): covariance over n items of each of `D` functions that people share. People are shuffled with `seed` and
    come `batch` at a time, `passes` times. `cp.fit` fits at most FIRST (1000) people of the first batch, as step 1;
    step t then moves the functions by the fraction t^-slower, 0.5 < slower <= 1. `start`: an earlier fit of the same
    people, or of the first of them, to continue from; then `cp.fit` is not run. `width`, `lapse`: of all people, as in
    `infer_users`. Raise ValueError, naming the argument, if one is invalid.
    """
    for name, value in (("D", D), ("batch", batch), ("passes", passes), ("users", users)):
        check_count(name, value)
    if not is_number(slower, int, float) or not 0.5 < slower <= 1.0:
        raise ValueError(f"slower: expected a number above 0.5, at most 1, got {describe(slower)}")
    keys, _ = number_pairs(rows, len(K), None if start is None else (start.items.first, start.items.second))
    of = keys // len(K), keys % len(K)
    items = ItemPrior(root(K), *of)
    P = of[0].size
    mw, vw = np.zeros((users, D)), np.ones((users, D))
    parts = list(_batches(rows, users, batch, seed))
    if start is None:
        comparisons = take_rows(parts[0][1], parts[0][1].user < FIRST)
        people_of_sample = min(parts[0][0].size, FIRST)
        first = fit(K, people_of_sample, comparisons, D=D, width=width, lapse=lapse, cycles=20)
        n = len(K)
        places = np.searchsorted(of[0] * n + of[1], first.cells.first * n + first.cells.second)
        tau, nu = np.zeros((D, P)), np.zeros((D, P))
        tau[:, places], nu[:, places] = (x * (users / people_of_sample) for x in first.messages.to_h2)
        steps = 1
    else:
        had = len(start.mw)
        if start.mw.shape[1] != D or had > users:
            raise ValueError(f"start: expected at most {users} people and D {D}, got {had} and {start.mw.shape[1]}")
        mw[:had], vw[:had], steps = start.mw, start.vw, start.steps
        tau, nu = (np.pad(x, ((0, 0), (0, P - x.shape[1]))) for x in start.sites)
    mh, vh = (np.ascontiguousarray(x.T) for x in items.tilted(tau, nu)[:2])
    for k in range(passes):
        for people, comparisons in parts:
            mw[people], vw[people], sums_of_people = user_weights(
                cells(comparisons, people.size, len(K), of),
                mh,
                vh,
                comparisons,
                width,
                lapse,
                mw[people] if k or start else None,
            )
            steps += 1
            share = float(steps) ** -slower
            _step(items, (tau, nu), (mh, vh), sums_of_people, mw[people], vw[people], users / people.size, share)
    mean, cov, _ = items.utilities(tau, nu)
    return StreamingFit(Functions(mean, cov, None), mw, vw, items, (tau, nu), steps)


def user_weights(
    of: Cells,
    mh: Array,
    vh: Array,
    rows: PairRows,
    width: float = 0.0,
    lapse: float = 0.0,
    start: Array | None = None,
    rounds: int = INNER,
) -> tuple[Array, Array, SiteSums]:
    """Compute the weights of U people with D functions fixed at means `mh` and variances `vh` (P x D) at P pairs of
    items.

    Return means and variances of the weights, (U x D) each, and the sites of the preferences g. `of`: the table of the
    answers `rows`; `width`, `lapse`: of all people; `start` (U x D): means to begin from, 0 if None. Messages of the
    likelihood of the answers and of the product of weights and functions alternate for `rounds`.
    """
    U, D = of.U, mh.shape[1]
    full_likelihood = likelihood_of(rows, np.full(U, width), np.full(U, lapse))
    mw, vw = np.zeros((U, D)) if start is None else start.copy(), np.ones((U, D))
    R = of.user.size
    t, n = np.zeros(R + 1), np.zeros(R + 1)
    pair, sign, times = np.append(of.pair, 0), np.append(of.sign, 1.0), np.append(of.times, 0.0)
    for people, answers in group_lists(of.user, U):
        indices, part = answers.ravel(), pair[answers]
        M, V = mh.take(part, axis=0), vh.take(part, axis=0)
        S = M * M + V
        likelihood, y, often = _likelihood_of_rows(full_likelihood, indices, R), sign[answers], times[answers]
        w, c, t1, n1 = mw[people], vw[people], t[answers], n[answers]
        one, zeros = np.ones_like(w), np.zeros_like(w)
        m, v = np.zeros_like(t1), np.ones_like(t1)
        for _ in range(rounds):
            spread = (V @ (w * w)[:, :, None] + S @ c[:, :, None])[:, :, 0]
            left = 1.0 - spread * t1
            sound = left > 0.0  # elsewhere the message to the answer stays as it was, as in `cp`
            left = np.where(sound, left, 1.0)
            m = np.where(sound, ((M @ w[:, :, None])[:, :, 0] - spread * n1) / left, m)
            v = np.where(sound, spread / left, v)
            _, slope, bend = (x.reshape(m.shape) for x in moments(likelihood, (y * m).ravel(), v.ravel()))
            t1, n1 = matched_sites(m, v, y * slope, np.maximum(bend, 0.0))
            T, N = often * t1, (often * n1)[:, None]
            cross = (M * T[:, :, None]).transpose(0, 2, 1) @ M
            w, c = coordinate_ascent(cross, (T[:, None] @ V)[:, 0], (N @ M)[:, 0], w, one, zeros)
        mw[people], vw[people] = w, c
        t[indices], n[indices] = t1.ravel(), n1.ravel()
    return mw, vw, of.site_sums(t[:-1], n[:-1])


def _likelihood_of_rows(of: Likelihood, rows: Ints, R: int) -> Likelihood:
    """Return the likelihood of the answers `rows`, perhaps repeated; index R (padding) gets unused values."""
    tied, lapsing = np.zeros(R + 1, bool), np.full(R + 1, -1)
    tied[of.tied], lapsing[of.lapsing] = True, np.arange(of.lapsing.size)
    which = lapsing[rows]
    [lapsing_rows] = (which >= 0).nonzero()
    width, noise = np.append(of.width, 0.0)[rows], np.append(of.noise, 1.0)[rows]
    return Likelihood(
        width,
        noise,
        tied[rows].nonzero()[0],
        lapsing_rows,
        of.lapse[which[lapsing_rows]],
        of.kinds[which[lapsing_rows]],
    )


def _step(
    items: ItemPrior,
    sites: tuple[Array, Array],
    h: tuple[Array, Array],
    batch_sums: SiteSums,
    mw: Array,
    vw: Array,
    scale: float,
    share: float,
) -> None:
    """Move the posterior of D functions, in place, by `share` towards what a batch, 1 / scale of all people, says."""
    (tau, nu), (mh, vh) = sites, h
    P, D = mh.shape
    cross, spread, pull = np.zeros((D, P, D)), np.zeros((P, D)), np.zeros((P, D))
    for pairs, between, *sums in batch_sums.by_pair(mw, vw):
        cross[:, pairs] = between.transpose(1, 0, 2)  # all pairs of one function together
        spread[pairs], pull[pairs] = sums
    for d in range(D):
        row = cross[d]
        precision = row[:, d]
        others = np.einsum("pd,pd->p", row, mh) - precision * mh[:, d]
        tau[d] += share * (scale * (precision + spread[:, d]) - tau[d])
        nu[d] += share * (scale * (pull[:, d] - others) - nu[d])
        m, v = items.marginals(tau[d : d + 1], nu[d : d + 1])
        mh[:, d], vh[:, d] = m[0], v[0]


def _batches(rows: PairRows, users: int, size: int, seed: int) -> Iterator[tuple[Ints, PairRows]]:
    """Yield batches of people in an order drawn with `seed`: their numbers, and their rows with people from 0."""
    order = np.random.default_rng(seed).permutation(users)
    place = np.empty(users, np.int64)
    place[order] = np.arange(users)
    positions = place[rows.user]
    by = np.argsort(positions, kind="stable")
    ends = np.searchsorted(positions[by], np.arange(0, users + size, size))
    for lo, hi, k in zip(ends[:-1], ends[1:], range(0, users, size)):
        part = by[lo:hi]
        yield order[k : k + size], take_rows(rows, part)._replace(user=positions[part] - k)
