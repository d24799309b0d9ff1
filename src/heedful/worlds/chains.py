"""Query chains: feedback on the first ranking of a search session from all its clicks ([J15] section 3.2).

A chain is the queries of one session, each with its ranking and clicks. Its feedback is the first ranking with all
documents that were clicked anywhere in the chain moved to the top, in the order of their first clicks. The user study
of the paper measured whether this ranking is better than the one shown, in DCG@10 by judged relevance, also where the
rankings were degraded on purpose. `study` measures the same for any chains (Figure 1 in numbers).

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints
from heedful.worlds.clicks import Cascade, PositionBiased, attraction
from heedful.worlds.users import utility

Array = npt.NDArray[np.float64]

K = 10
"""the number of positions that count in DCG, and that are degraded"""
CONDITIONS = ("normal", "swapped", "reversed")
"""conditions of the study: the rankings as they were; the top two swapped; the top ten in reverse order"""


class QueryChain(Protocol):
    """A query chain: the successive queries of one search session, with the rankings shown and their clicks, over m
    documents in all; `data.trec.Chain` is one.

    `grades` (m,) are the judged relevance of the documents, negative where junk or unjudged. For each query of the
    chain, `rankings` has the documents shown, best first, and `clicks` the documents clicked, in order (both indices of
    documents).
    """

    @property
    def grades(self) -> Ints: ...
    @property
    def rankings(self) -> tuple[Ints, ...]: ...
    @property
    def clicks(self) -> tuple[Ints, ...]: ...


# ---------------------------------------------------------------------------- the study


class Study(NamedTuple):
    """The result of `study` on n query chains: is the feedback ybar (the clicked documents moved to the top) better
    than the ranking y that was shown ([J15] Figure 1)? `heedful.diagnostics.sign_test` counts and tests the
    differences.

    - `differences` (n,): DCG@10(ybar) - DCG@10(y) of each chain; sums in another order round otherwise.
    - `same` (n,): for each chain, whether ybar = y.
    """

    differences: Array
    same: npt.NDArray[np.bool_]


def first_ranking(rankings: Sequence[Ints]) -> Ints:
    """Return the first of the `rankings` of a chain that is not empty (document indices, best first); an empty array if
    all are."""
    return next((ranking for ranking in rankings if ranking.size), np.empty(0, np.int64))


def chain_feedback(y: Ints, clicks: Sequence[Ints]) -> Ints:
    """Return the feedback of a chain: the documents in `clicks`, a sequence of arrays for its queries, in the order of
    their first clicks, then the rest of the ranking `y`."""
    order = dict.fromkeys(int(j) for part in (*clicks, y) for j in part)
    return np.array([*order], np.int64)


def degrade(ranking: Ints, condition: str) -> Ints:
    """Return a copy of `ranking` (indices of documents, best first), changed as `condition` says: "normal", not at all;
    "swapped", the first two documents change places; "reversed", the first ten are in reverse order. Raise ValueError
    for another `condition`."""
    if condition not in CONDITIONS:
        raise ValueError(f"condition: expected {', '.join(CONDITIONS)}, got {condition!r}")
    head = {"normal": ranking[:K], "swapped": np.append(ranking[:2][::-1], ranking[2:K]), "reversed": ranking[:K][::-1]}
    return np.append(head[condition], ranking[K:]).astype(np.int64)


def study(
    chains: Iterable[QueryChain],
    condition: str = "normal",
    *,
    clicks: str | PositionBiased | Cascade = "documents",
    clicked_only: bool = True,
) -> Study:
    """Compare the feedback of query chains, their clicked documents moved to the top, with the ranking shown, by DCG@10
    of judged relevance ([J15] section 3.2).

    Rankings are first degraded by `condition`, one of the CONDITIONS ("normal": as they were). What people would click
    then is not in the data, so `clicks` says which clicks to take: "documents", the documents that were clicked, at
    whatever position (no position bias); "positions", the positions that were clicked, whatever document is there
    (nothing but position bias); or a simulated person of `worlds.clicks`, such as the one from `fit_clicks`, who clicks
    in every ranking. Under "normal", the first two are the recorded clicks.

    Chains in which nothing was shown are left out; with `clicked_only`, also those without a click. Raise ValueError,
    naming the argument, for other values of condition and clicks.
    """
    if not (isinstance(clicks, str) and clicks in ("documents", "positions")) and not hasattr(clicks, "rank"):
        raise ValueError(f"clicks: expected documents, positions or a person who clicks, got {clicks!r}")
    rng = np.random.default_rng(0)
    differences, unchanged = [], []
    for chain in chains:
        r = np.maximum(chain.grades, 0) * 1.25  # grades up to 4 as relevance up to 5
        rankings = [degrade(ranking, condition) for ranking in chain.rankings]
        hits = list(chain.clicks)
        if clicks == "positions":
            hits = [
                now[np.flatnonzero(before == j)]
                for before, now, hit in zip(chain.rankings, rankings, chain.clicks)
                for j in hit
            ]
        elif not isinstance(clicks, str):
            person = clicks._replace(clicks_only=True)
            relevant = (chain.grades > 0).astype(np.float64)  # higher grades hardly changed the clicks in the data
            hits = [person.rank(K, r, relevant, 0.0, ranking, rng) for ranking in rankings]
        y = first_ranking(rankings)
        if y.size == 0 or (clicked_only and not any(hit.size for hit in hits)):
            continue
        y_bar = chain_feedback(y, hits)
        differences.append(utility(r, y_bar, K) - utility(r, y, K))
        unchanged.append(np.array_equal(y_bar, y))
    return Study(np.array(differences, np.float64), np.array(unchanged, np.bool_))


def fit_clicks(chains: Iterable[QueryChain]) -> PositionBiased:
    """Return the simulated person with position bias who most likely made the clicks of `chains`: the maximum
    likelihood fit of the fields `eta`, `noise` and `highest` of `PositionBiased`, over a grid.

    Documents count as relevant (label 1) if their grade is above 0. The first 100 positions of each ranking count.
    Raise ValueError if there is no click.
    """
    deepest = 100
    shown, clicked = np.zeros((2, deepest)), np.zeros((2, deepest))  # results by relevance and position
    for chain in chains:
        for ranking, hits in zip(chain.rankings, chain.clicks):
            for i, j in enumerate(ranking[:deepest]):
                relevant = int(chain.grades[j] > 0)
                shown[relevant, i] += 1.0
                clicked[relevant, i] += j in hits
    if not clicked.any():
        raise ValueError("chains: expected at least one click, got none")
    best, likeliest = PositionBiased(), -np.inf
    for eta in np.arange(0.0, 3.01, 0.1):
        examination = np.arange(1.0, deepest + 1.0) ** -float(eta)
        for noise in np.arange(0.02, 0.99, 0.02):
            for highest in np.arange(1.0, 8.1, 0.25):
                attractive = np.array([noise, attraction(1.0, float(highest), float(noise))])
                P = np.clip(np.outer(attractive, examination), 1e-9, 1.0 - 1e-9)
                likelihood = float((clicked * np.log(P) + (shown - clicked) * np.log1p(-P)).sum())
                if likelihood > likeliest:
                    best = PositionBiased(round(float(eta), 1), round(float(noise), 2), True, float(highest))
                    likeliest = likelihood
    return best
