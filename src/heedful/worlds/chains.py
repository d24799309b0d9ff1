"""Query chains: what clicks over a chain of queries say about its first ranking; the user study of [J15] section 3.2.

The feedback of a chain: its first ranking, with everything that was clicked in the whole chain put on top, in the
order of the first clicks. The study asked whether that is indeed better, in DCG@10 by judged relevance, and whether it
still is where the rankings were degraded on purpose; `study` asks the same of any chains, its Figure 1 in numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, finite_array
from heedful.jit.kernel import Floats, Ints, top
from heedful.worlds.answers import move_to_front
from heedful.worlds.clicks import PositionBiased, attraction
from heedful.worlds.queries import StreamState
from heedful.worlds.users import utility

Array = npt.NDArray[np.float64]

K = 10
"""Positions that count, and that are degraded."""
CONDITIONS = ("normal", "swapped", "reversed")
"""The rankings as they were; the top two swapped; the top ten in reverse order."""


class QueryChain(Protocol):
    """A query chain, such as `data.trec.Chain`: grades (m,), negative where junk or unjudged; per query the documents
    shown, best first, and the documents clicked, in order."""

    @property
    def grades(self) -> Ints: ...
    @property
    def rankings(self) -> tuple[Ints, ...]: ...
    @property
    def clicks(self) -> tuple[Ints, ...]: ...


# ---------------------------------------------------------------------------- the study


class Study(NamedTuple):
    """DCG@10(ybar) - DCG@10(y) of each chain (n,), in their order, and what Figure 1 says of it.

    Shares of the chains whose difference is above, at and below 0; of those at 0 the share with ybar = y; the p-value
    of the two-sided sign test of better against worse. NaN where nothing is counted. `same` (n,): where ybar = y.
    """

    differences: Array
    better: float
    equal: float
    worse: float
    unchanged: float
    p: float
    same: npt.NDArray[np.bool_]


def first_ranking(rankings: Sequence[Ints]) -> Ints:
    """y: the first ranking of the chain in which anything was shown."""
    return next((ranking for ranking in rankings if ranking.size), np.empty(0, np.int64))


def chain_feedback(y: Ints, clicks: Sequence[Ints]) -> Ints:
    """ybar: what was clicked in the chain, in the order of the first clicks, without repetition, then the rest of y."""
    order = dict.fromkeys(int(j) for part in (*clicks, y) for j in part)
    return np.array([*order], np.int64)


def degrade(ranking: Ints, condition: str) -> Ints:
    """The ranking as it is shown under one of the CONDITIONS; below the top ten nothing moves."""
    if condition not in CONDITIONS:
        raise ValueError(f"condition: expected {', '.join(CONDITIONS)}, got {condition!r}")
    head = {"normal": ranking[:K], "swapped": np.append(ranking[:2][::-1], ranking[2:K]), "reversed": ranking[:K][::-1]}
    return np.append(head[condition], ranking[K:]).astype(np.int64)


def study(
    chains: Iterable[QueryChain],
    condition: str = "normal",
    *,
    clicks: Any = "documents",
    clicked_only: bool = True,
    seed: int = 0,
) -> Study:
    """The study of [J15] section 3.2 on these chains, their rankings shown under one of the CONDITIONS.

    What is clicked where a ranking was degraded is not on record. `clicks` says what stands in for it: "documents", the
    documents that were clicked, wherever they now stand, as if position did not matter; "positions", the ranks that
    were clicked, whatever now stands there, as if nothing else mattered; or a person who clicks (`worlds.clicks`, say
    that of `fit_clicks`), on every ranking of the chain. Under "normal" the first two are what was clicked.

    Chains in which nothing was shown are left out, and those in which nothing was clicked if `clicked_only`.
    """
    if not (isinstance(clicks, str) and clicks in ("documents", "positions")) and not hasattr(clicks, "rank"):
        raise ValueError(f"clicks: expected documents, positions or a person who clicks, got {clicks!r}")
    check_count("seed", seed, least=0, most=2**128)
    rng = np.random.default_rng(seed)
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
            hits = [person.rank(K, r, _relevant(chain.grades), 0.0, ranking, rng) for ranking in rankings]
        y = first_ranking(rankings)
        if y.size == 0 or (clicked_only and not any(hit.size for hit in hits)):
            continue
        y_bar = chain_feedback(y, hits)
        differences.append(utility(r, y_bar, K) - utility(r, y, K))
        unchanged.append(np.array_equal(y_bar, y))
    return _summarise(np.array(differences), np.array(unchanged, np.bool_))


def _summarise(differences: Array, unchanged: npt.NDArray[Any]) -> Study:
    from scipy.stats import binomtest

    sign = np.where(np.abs(differences) < 1e-9, 0.0, np.sign(differences))  # sums in another order round otherwise
    n = max(sign.size, 1)
    better, worse = int((sign > 0).sum()), int((sign < 0).sum())
    same = unchanged[sign == 0]
    p = float(binomtest(better, better + worse).pvalue) if better + worse else float("nan")
    unchanged_share = float(same.mean()) if same.size else float("nan")
    equal = sign.size - better - worse
    return Study(differences, better / n, equal / n, worse / n, unchanged_share, p, unchanged)


def _relevant(grades: Ints) -> Array:
    """Labels (m,): 1.0 where the grade is above 0, else 0.0. How relevant hardly moved the clicks of the track."""
    return (grades > 0).astype(np.float64)


def fit_clicks(chains: Iterable[QueryChain]) -> PositionBiased:
    """The position-biased person who makes these clicks most likely: eta, noise and `highest` on a grid.

    Labels are 1 for what is relevant at all, and 0. The first 100 of each ranking count.
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
        looked = np.arange(1.0, deepest + 1.0) ** -float(eta)
        for noise in np.arange(0.02, 0.99, 0.02):
            for highest in np.arange(1.0, 8.1, 0.25):
                attractive = np.array([noise, attraction(1.0, float(highest), float(noise))])
                P = np.clip(np.outer(attractive, looked), 1e-9, 1.0 - 1e-9)
                likelihood = float((clicked * np.log(P) + (shown - clicked) * np.log1p(-P)).sum())
                if likelihood > likeliest:
                    best = PositionBiased(round(float(eta), 1), round(float(noise), 2), True, float(highest))
                    likeliest = likelihood
    return best


# ---------------------------------------------------------------------------- a world


class ChainStream(NamedTuple):
    """Chains in random order; rounds beyond the last begin again. Made by `chain_stream`.

    X (rows x N) holds the documents of chain q in rows offsets[q]:offsets[q+1], with their relevance r (rows,); those
    clicked, clicked[starts[q]:starts[q+1]], in the order of the first clicks; best DCG@10 (Q,). The person clicks the
    same documents wherever they stand. Utility is DCG@10 by judged relevance, which no w need express.
    """

    X: Floats
    r: Array
    offsets: Ints
    clicked: Ints
    starts: Ints
    best: Array

    def init(self, rng: np.random.Generator) -> StreamState:
        return StreamState(rng.permutation(self.best.size), 0)

    def over(self, state: StreamState, t: int) -> bool:
        return False

    def context(self, state: StreamState, t: int, rng: np.random.Generator) -> Floats:
        q = state.order[t % state.order.size]
        return self.X[self.offsets[q] : self.offsets[q + 1]]

    def respond(self, state: StreamState, x: Floats, shown: Ints, rng: np.random.Generator) -> Ints:
        q = state.order[state.t % state.order.size]
        hits = self.clicked[self.starts[q] : self.starts[q + 1]]
        return move_to_front(hits, hits.size, shown, x.shape[0])

    def regret(self, state: StreamState, x: Floats, shown: Ints) -> float:
        q = state.order[state.t % state.order.size]
        u = utility(self.r[self.offsets[q] : self.offsets[q + 1]], shown, K)
        return self.best[q] - u  # type: ignore[no-any-return]

    def advance(self, state: StreamState, x: Floats, shown: Ints, feedback: Ints) -> StreamState:
        return StreamState(state.order, state.t + 1)


def chain_stream(chains: Iterable[QueryChain], features: Sequence[Floats], *, shuffle: int = 0) -> ChainStream:
    """The world of the chains in which something was clicked, `features` (m x N) of the documents of each chain.

    The documents of every chain are shuffled, by the seed `shuffle`: they come in the order of their ranks.
    ValueError where features and chains do not fit together, or nothing was clicked.
    """
    check_count("shuffle", shuffle, least=0)
    rng = np.random.default_rng(shuffle)
    X, r, clicked, best = [], [], [], []
    n_features = features[0].shape[1] if len(features) and np.ndim(features[0]) == 2 else 1
    for chain, rows in zip(chains, features, strict=True):
        rows = finite_array("features", rows, 2, n_features)
        m = chain.grades.size
        if rows.shape[0] != m:
            raise ValueError(f"features: expected a row for each of the {m} documents, got {rows.shape[0]}")
        hits = chain_feedback(np.empty(0, np.int64), chain.clicks)
        if hits.size:
            order = rng.permutation(m)
            X.append(rows[order].astype(np.float64))
            r.append(np.maximum(chain.grades[order], 0) * 1.25)
            clicked.append(np.argsort(order)[hits])
            best.append(utility(r[-1], top(r[-1], m), K))
    if not X:
        raise ValueError("chains: expected at least one with a click, got none")
    offsets, starts = (np.cumsum([0, *map(len, parts)]).astype(np.int64) for parts in (X, clicked))
    return ChainStream(
        np.concatenate(X), np.concatenate(r), offsets, np.concatenate(clicked).astype(np.int64), starts, np.array(best)
    )
