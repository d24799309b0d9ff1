"""Leaderboard of an arena: scores of models from votes about pairs of answers, with intervals, places and diagnostics.

`leaderboard` fits the Bradley-Terry model of `bradley_terry`, whose work grows with the number of pairs that met and
not with the number of votes. Scores are on the Elo scale: 400 / ln 10 points are one logit. docs/arena.md says what the
figures mean. The file is long because `Leaderboard` answers each question about a board with a method of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.bradley_terry import MOST_DENSE, Cells, Fit, count_cells, fit
from heedful.boards.data_quality import Remark, both_bad, side_remarks
from heedful.boards.elo import MIDDLE, anchor_of, relative
from heedful.boards.influence import Influence, find_influence
from heedful.boards.random_voters import RandomVoters, find_random_voters
from heedful.boards.score_posterior import DRAWS, ParameterPosterior, infer_scores
from heedful.boards.standing import alike, board_groups, board_matrix, board_rows, places_of, runs
from heedful.boards.tastes import effective_people
from heedful.boards.tie_models import TIE_MODELS, TieModel, probabilities
from heedful.core.validation import check_between, check_flag, describe, names_of
from heedful.core.wording import count, percent
from heedful.data.choices import LoadedPairs, read_choices
from heedful.data.comparisons import join_names
from heedful.data.files import cut_list
from heedful.data.frames import Frame
from heedful.data.votes import Votes, is_arena, votes_of
from heedful.inference.comparison_table import connected_parts
from heedful.inference.estimation import MOST_ITEMS, MOST_ITEMS_OF_MANY
from heedful.inference.gp.mixture import Mixture, interval, mixture
from heedful.inference.gp.posterior import Posterior
from heedful.jit.kernel import Ints
from heedful.results.answers import plain
from heedful.results.board import Board

Array = npt.NDArray[np.float64]

POINTS = 400.0 / math.log(10.0)
"""Elo points of a logit, 173.7."""
LEVEL = 0.9
"""The probability with which intervals hold."""
FEW_PEOPLE = 50.0
"""With fewer people, in effect, a note says that intervals are wider for it."""
TIES = ("auto", *TIE_MODELS, "half")
"""Values of the argument `ties`."""


class Effect(NamedTuple):
    """How many points an answer gains by a covariate: `points` for `unit` more of it, with a 90 % interval `low`,
    `high`.

    `unit` is one standard deviation of the difference between the two answers; for the side shown, `name` is "side",
    `unit` is 1, and the points are what the answer shown first gains.
    """

    name: str
    points: float
    low: float
    high: float
    unit: float


class PairCounts(NamedTuple):
    """Votes about r pairs of models, a < b: `first` and `second` have the models' numbers, `first_won`, `second_won`
    and `ties` how many votes, each (r,).
    """

    first: Ints
    second: Ints
    first_won: Ints
    second_won: Ints
    ties: Ints


class Leaderboard(NamedTuple):
    """Scores of n models with 90 % intervals and places, from votes about pairs of their answers.

    Arrays are by number of the model, but for `order`. `to_dict` has everything as JSON.
    """

    file: str
    """path of the votes, or "votes" if they were not read from a file"""
    read: str
    """in words, which columns were read"""
    board: Board
    """the models with their scores and places, best first; places and P(best) are those within a part"""
    models: tuple[str, ...]
    score: Array
    """(n,) points on the Elo scale; a difference of 400 points is odds of 10 to 1 where a choice has to be made"""
    score_sd: Array
    """(n,) standard deviation of the score"""
    order: Ints
    """(n,) numbers of the models, best first"""
    clusters: int
    """number of people whose votes were taken together for the intervals; 0 if each vote counts as independent"""
    pairs: PairCounts
    tie_model: TieModel
    """how ties come about, as in `tie_models`; "half" if there are none"""
    tie: float
    """parameter of ties"""
    tied: int
    """number of ties"""
    bad: int
    """how many of the ties are because both answers were called bad"""
    anchor: tuple[int, float] | None
    """number of the model with a fixed score, and this score; None if the average has 1,000"""
    side: Effect | None
    """what the answer shown first gains; None if it was not asked for"""
    effects: tuple[Effect, ...]
    """effects of covariates; scores are at equal covariates"""
    categories: tuple[tuple[str, Leaderboard], ...]
    """(name, board) of each category, most votes first; none if not asked for"""
    random: RandomVoters | None
    """people who vote at random; None without people, or with too few of them"""
    influence: Influence | None
    """how few votes would turn the first place; None if it was not asked for"""
    left_out: dict[str, int]
    """how many votes were left out, by reason"""
    remarks: tuple[Remark, ...]
    posterior: Posterior | Mixture | None
    """of the scores less their average, in points; None with more than 2,000 models"""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the models, best first."""
        return self.board.items

    @property
    def title(self) -> str:
        """In words, what it is a leaderboard of."""
        return f"leaderboard of {count(len(self.models), 'model')} from {count(self.board.answers, 'vote')}"

    def by_number(self, field: str) -> npt.NDArray[Any]:
        """Return a field of the rows of `board`, such as "score_low", (n,) by number of the model."""
        values = np.array(self.board.fields()[field])
        return values[self.order.argsort()]

    @property
    def wins(self) -> Ints:
        """Matrix (n, n): how often the model of the row won against that of the column."""
        out = np.zeros((len(self.models),) * 2, np.int64)
        out[self.pairs.first, self.pairs.second] = self.pairs.first_won
        out[self.pairs.second, self.pairs.first] = self.pairs.second_won
        return out

    @property
    def ties(self) -> Ints:
        """Symmetric matrix (n, n): how many votes called the models of row and column equally good."""
        out = np.zeros((len(self.models),) * 2, np.int64)
        out[self.pairs.first, self.pairs.second] = self.pairs.ties
        out[self.pairs.second, self.pairs.first] = self.pairs.ties
        return out

    def beats(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Return P(a wins against b in the next vote that is no tie); with more than 2,000 models the uncertainty of
        scores is left aside.

        `a`, `b`: numbers of models, in arrays of one shape, which the result has.
        """
        a, b = np.asarray(a), np.asarray(b)
        out: Array = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        parts = [] if self.posterior is None else self.posterior.components()
        gaps: list[tuple[float, Array, Array]] = [(weight, *part.gap(a, b)) for weight, part in parts]
        for weight, gap, var in gaps or [(1.0, self.score[a] - self.score[b], np.zeros(out.shape))]:
            # the mean of a logistic function over a normal distribution (MacKay, Neural Computation 1992)
            flat = np.asarray(gap / POINTS / np.sqrt(1.0 + math.pi / 8.0 * var / POINTS**2), np.float64)
            win, _, loss = probabilities(self.tie_model, flat, self.tie)
            out += weight * win / (win + loss)
        return out

    def told_apart(self, a: int, b: int) -> bool:
        """Return whether the model with the number `a` is better than that with `b` with probability `sure`."""
        if self.posterior is not None:
            return bool(self.posterior.better(a, b) >= self.board.sure)
        return not any(self.models[a] in group and self.models[b] in group for group in self.board.alike)

    def fields(self) -> dict[str, list[Any]]:
        """Return `Board.fields` with the field `category`, which is "" on the board of all votes: the rows of this
        board, then those of each category."""
        parts = [("", self), *self.categories]
        table = {name: [*values] for name, values in self.board.fields().items()}
        for _, part in self.categories:
            for name, values in part.board.fields().items():
                table[name] += values
        return table | {"category": [name for name, part in parts for _ in part.models]}

    def to_frame(self, package: str = "pandas") -> Frame:
        """Return the board as `Board.to_frame` does."""
        return self.board.to_frame(package)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole board as a dictionary that JSON can hold, the one that `heedful rank --json` prints."""
        return {
            "file": self.file,
            "read": self.read,
            "model": "arena",
            "items": len(self.models),
            **plain(self.board),
            "clusters": self.clusters,
            "ties": {"model": self.tie_model, "parameter": self.tie, "votes": self.tied, "both_bad": self.bad},
            "anchor": None if self.anchor is None else {"item": self.models[self.anchor[0]], "score": self.anchor[1]},
            "side": plain(self.side),
            "effects": plain(self.effects),
            "categories": {name: board.to_dict() for name, board in self.categories},
            "random": plain(self.random),
            "influence": self._influence(),
            "left_out": self.left_out,
            "remarks": plain(self.remarks),
            "matrix": board_matrix(self.items, self.order, self.wins, self.ties, self._beats),
        }

    def _influence(self) -> dict[str, Any] | None:
        if self.influence is None:
            return None
        names = ("lost", "tied", "won")
        told = [
            {"first": self.models[a], "second": self.models[b], "outcome": names[outcome], "votes": count}
            for a, b, outcome, count in self.influence.left_out
        ]
        first, second = self.models[self.influence.first], self.models[self.influence.second]
        named = {"first": first, "second": second, "left_out": told}
        return {**self.influence._asdict(), **named}

    def _beats(self) -> Array:
        return self.beats(*np.broadcast_arrays(self.order[:, None], self.order[None, :]))

    def __repr__(self) -> str:
        """One line: how many models and votes, from where, and the best three."""
        first = ", ".join(f"{place} {name!r:.60}" for place, name in enumerate(self.items[:3], 1))
        more = ", ..." if len(self.models) > 3 else ""
        votes = count(self.board.answers, "vote")
        return f"<Leaderboard of {len(self.models)} models, {votes} from {self.file}: {first}{more}>"

    def _repr_html_(self) -> str:
        return self.board.as_html(f"{self.file}: {self.title}", [each.message for each in self.remarks])


MANY_VOTES = 50_000
"""With more votes about pairs than this, a table is ranked as an arena."""


def why_arena(loaded: LoadedPairs) -> str | None:
    """Return why a table of pairs is ranked as an arena (by `leaderboard`), in words; None if `rank` ranks it.

    It is one if its columns are model_a, model_b and winner, if it has more than MANY_VOTES votes, or more items than
    `rank` takes.
    """
    pairs = loaded.pairs
    if is_arena(loaded):
        return f"columns {loaded.roles['first'][0]}, {loaded.roles['second'][0]}, {loaded.roles['answer'][0]}"
    if pairs.times.sum() > MANY_VOTES:
        return f"more than {MANY_VOTES:,} answers"
    most = MOST_ITEMS if len(pairs.people) == 1 else MOST_ITEMS_OF_MANY
    return f"more than {most:,} items" if len(pairs.items) > most else None


def leaderboard(
    votes: str | PathLike[str] | Sequence[Mapping[str, Any]] | Frame | LoadedPairs | Votes,
    *,
    adjust: Sequence[str] = (),
    side: bool = False,
    by: str | None = None,
    without: Sequence[str] = (),
    ties: str = "auto",
    sure: float = 0.9,
    anchor: tuple[str, float] | None = None,
    influence: bool = True,
    columns: Mapping[str, Sequence[str] | str] | None = None,
    words: Mapping[str, str] | None = None,
    name: str = "votes",
) -> Leaderboard:
    """Rank models from votes about pairs of their answers: scores on the Elo scale, places, and how sure both are.

    `votes`: the path of a table (CSV, JSON lines, Parquet) of pairs, such as model_a, model_b and winner, with the
    person as `judge` or `evaluation_session_id`; or a data frame, a list of rows, or what `open_pairs` or `votes_of`
    read, which `name` then calls. `columns` and `words` are as in `open_choices`.

    `adjust`: covariates of the answers, as in `votes_of`: scores are those at equal covariates. `side`: adjust for
    which answer was shown first, too. `by`: a column of categories, each of which gets a board of its own. `without`:
    people whose votes are left out. `ties`: how ties come about (`tie_models`): "threshold", "odds", "constant" or
    "half"; "auto" takes the likeliest of the first three. `sure`: the probability with which two models are told apart,
    0.5 to 0.999. `anchor`: a model and its score; without it the average model has 1,000. `influence`: also look how
    few votes would turn the first place.

    Every vote counts the same, however many a person gave. Raise ValueError, naming the argument or the place in the
    file, for input that cannot be used; FileNotFoundError if the file is missing.
    """
    check_between("sure", sure, 0.5, 0.999)
    check_flag("side", side)
    check_flag("influence", influence)
    if ties not in TIES:
        raise ValueError(f"ties: expected one of {', '.join(TIES)}, got {describe(ties)}")
    adjust, without = names_of("adjust", adjust), names_of("without", without)
    if isinstance(votes, Votes):
        if adjust or by is not None or without or columns or words:
            raise ValueError("votes: expected adjust, by, without, columns and words with what is read, got read votes")
    else:
        loaded = votes if isinstance(votes, LoadedPairs) else read_choices("votes", votes, columns, words)
        name = str(votes) if isinstance(votes, str | PathLike) else name
        if not isinstance(loaded, LoadedPairs):
            raise ValueError(f"{name}: expected votes about pairs, such as model_a, model_b and winner, got orders")
        votes = votes_of(loaded, adjust=adjust, by=by, without=without)
    if side and not votes.sided:
        raise ValueError(f"side: expected votes that say which answer was shown first, got {votes.summary}")
    anchor_of(anchor, votes.models)
    sure = float(sure)
    whole = _board(votes, name, side, ties, sure, anchor, influence)
    if not votes.categories:
        return whole
    size = np.bincount(votes.category, votes.times, len(votes.categories))
    parts = []
    for k in (-size).argsort(kind="stable").tolist():
        if size[k]:
            part = votes.where(votes.category == k)._replace(left_out={})
            present = {votes.models[i] for i in np.unique([part.first, part.second]).tolist()}
            there = anchor if anchor is not None and anchor[0] in present else None
            parts.append((votes.categories[k], _board(part, name, side, ties, sure, there, False)))
    return whole._replace(categories=tuple(parts))


def _board(
    votes: Votes,
    name: str,
    side: bool,
    ties: str,
    sure: float,
    anchor: tuple[str, float] | None,
    influence: bool,
) -> Leaderboard:
    """Return the board of the models that occur in `votes`."""
    met, at = np.unique(np.concatenate([votes.first, votes.second]), return_inverse=True)
    first, second = at[: votes.first.size], at[votes.first.size :]
    models = tuple(votes.models[i] for i in met.tolist())
    n = len(models)
    counted, cell = count_cells(n, first, second, votes.outcome, votes.times)
    found, cells, cell, units = _fitted(votes, n, counted, cell, side, ties)
    people = None if votes.people in ((), ("",)) else (votes.person, cell, votes.times.astype(np.float64))
    off = infer_scores(n, cells, found, people)
    fixed = anchor_of(anchor, models)
    scores = _points(n, off, fixed)
    part = _parts(n, counted) if scores.posterior is not None else np.zeros(n, np.int64)
    order = np.lexsort((-scores.mean.round(6), part))  # what differs by rounding is equal
    place, low, high = (np.empty(n, np.int64) for _ in range(3))
    best = np.empty(n)
    better: list[float | None] = [None] * (n - 1)
    level = list[tuple[int, int]]()
    for p in range(int(part.max(initial=0)) + 1):
        there = np.flatnonzero(part[order] == p)
        each, before = order[there], int(there[0])
        place[each] = np.arange(1, each.size + 1)
        best[each], ends = places_of(scores.draws[:, each])
        low[each], high[each] = ends.T
        better[before : before + each.size - 1], runs_of_it = _apart(
            scores.mean, scores.draws, scores.posterior, each, sure
        )
        level += [(start + before, end + before) for start, end in runs_of_it]
    effects = _effects(n, votes, found.tied, off, units, side)
    tied = counted.outcome == 1
    unfit = np.flatnonzero(np.bincount(votes.person, minlength=1) > 0).size
    suspects = find_random_voters(cells, found, people, votes.people) if people is not None else None
    turned = find_influence(cells, found, int(order[0])) if influence else None
    rows = board_rows(
        models,
        order,
        better,
        sure,
        place=place,
        best=best,
        place_low=low,
        place_high=high,
        score=scores.score,
        score_low=scores.low,
        score_high=scores.high,
        votes=np.bincount(np.concatenate([counted.first, counted.second]), np.tile(counted.weight, 2), n).astype(
            np.int64
        ),
    )
    return Leaderboard(
        file=name,
        read=votes.summary,
        board=Board(
            person=None,
            people=0 if people is None else unfit,
            answers=votes.total,
            sure=sure,
            ranking=rows,
            alike=board_groups(rows, level),
        ),
        models=models,
        score=scores.score,
        score_sd=scores.sd,
        order=order,
        clusters=off.clusters,
        pairs=_pair_counts(n, counted),
        tie_model=found.model,
        tie=found.tie,
        tied=int(counted.weight[tied].sum()),
        bad=int(votes.times[votes.bad].sum()),
        anchor=fixed,
        side=effects[-1] if side else None,
        effects=tuple(effects[: len(effects) - side]),
        categories=(),
        random=suspects,
        influence=turned,
        left_out=votes.left_out,
        remarks=tuple(_remarks(models, counted, votes, off, people, suspects, [models[i] for i in order], part[order])),
        posterior=scores.posterior,
    )


# ---------------------------------------------------------------------------- parts


def _fitted(
    votes: Votes, n: int, counted: Cells, cell: Ints, side: bool, ties: str
) -> tuple[Fit, Cells, Ints, list[float]]:
    """Return (fit, the cells that it is of, the cell of each row of votes (p,), units of the covariates)."""
    fits: list[Fit] = []
    for model in TIE_MODELS if ties == "auto" else (ties,):
        fits.append(fit(n, counted, model))  # type: ignore[arg-type]
        if not fits[-1].tied:  # ties alone are as likely under each
            break
    found = max(fits, key=lambda each: each.log)
    k = len(votes.covariates)
    if not side and not k:
        return found, counted, cell, []
    if k:  # every row is a cell of its own
        units = [float(u) or 1.0 for u in _spread(votes.differences, votes.times)]
        z = votes.differences / units
        pair = (counted.first[cell], counted.second[cell], counted.outcome[cell], votes.times.astype(np.float64))
        cells, cell = Cells(*pair, z), np.arange(cell.size)
    else:
        units, cells = [], counted
    if side:
        cells = cells._replace(z=np.column_stack([cells.z, np.ones(cells.first.size)]))
        units = [*units, 1.0]
    q = cells.z.shape[1]
    again = fit(n, cells, found.model, sd=found.sd, start=found._replace(gamma=np.zeros(q), H=None))
    return again, cells, cell, units


def _spread(values: Array, times: Ints) -> Array:
    total = times.sum()
    mean = times @ values / total
    out: Array = np.sqrt(times @ (values - mean) ** 2 / total)
    return out


class _Points(NamedTuple):
    """Scores of n models in points, and how sure they are: `score` with its 90 % interval `low`, `high`, and `sd`, each
    (n,) and less the average or the anchor's; `mean` (n,) less the average; `draws` (d, n) of these; and their
    `posterior`, None with so many models that there are draws alone.
    """

    score: Array
    low: Array
    high: Array
    sd: Array
    mean: Array
    draws: Array
    posterior: Posterior | Mixture | None


def _points(n: int, off: ParameterPosterior, fixed: tuple[int, float] | None) -> _Points:
    """Return the scores of n models in points; `fixed` is the number of the anchor and its score."""
    at = MIDDLE if fixed is None else fixed[1]
    mean = POINTS * (off.mean[:n] - off.mean[:n].mean())
    score = at + mean - (0.0 if fixed is None else mean[fixed[0]])
    if off.gaussians is None:
        error = POINTS * off.errors[:, :n]  # type: ignore[index]
        error = error - error.mean(axis=1, keepdims=True)
        shown = error if fixed is None else error - error[:, fixed[0], None]
        sd = np.sqrt((shown * shown).mean(axis=0))
        bar = interval(np.ones(1), np.zeros((1, n)), sd[None], LEVEL)[1]
        return _Points(score, score - bar, score + bar, sd, mean, mean + error, None)
    parts = [(weight, _centred(part, n)) for weight, part in off.gaussians.components()]
    posterior = mixture([weight for weight, _ in parts], [part for _, part in parts])
    means, sds = (np.stack(each) for each in zip(*(relative(part, fixed) for _, part in parts)))
    low, high = interval(np.array([weight for weight, _ in parts]), means, sds, LEVEL)
    _, sd = relative(posterior.whole(), fixed)
    draws = posterior.draws(10_000 if n <= 200 else 2_000)
    return _Points(score, at + low, at + high, sd, mean, draws, posterior)


def _centred(part: Posterior, n: int) -> Posterior:
    """Return the distribution of n scores less their average, in points."""
    mean, cov = POINTS * part.mean[:n], POINTS * POINTS * part.cov[:n, :n]
    cov = cov - cov.mean(axis=0)
    return Posterior(mean - mean.mean(), cov - cov.mean(axis=1, keepdims=True))


def _apart(
    mean: Array, draws: Array, posterior: Posterior | Mixture | None, order: Ints, sure: float
) -> tuple[list[float], tuple[tuple[int, int], ...]]:
    """Return (P(the model at a place is better than the next), n - 1 of them; runs that cannot be told apart), from the
    `draws` of scores (d, n) where there is no `posterior`."""
    if posterior is not None:
        return posterior.better(order[:-1], order[1:]).tolist(), alike(posterior, order, sure)
    from scipy.special import ndtr, ndtri

    means, error = mean[order], np.ascontiguousarray((draws - mean)[:, order].T)
    d = error.shape[1]
    square = np.einsum("ij,ij->i", error, error) / d
    least = float(ndtri(sure))

    def variance(above: slice, below: slice) -> Array:
        both = error[above] @ error[below].T
        out: Array = square[above, None] + square[None, below] - 2.0 * both / d
        return np.maximum(out, 1e-24)

    block: tuple[int, int, int, Any] = (0, 0, 0, None)  # first row, first and last place of its columns

    def last_better(start: int, place: int) -> int:
        nonlocal block
        if place >= block[2]:  # with 64 places at once, most of the work is one product of matrices
            end = min(place + 64, order.size)
            gap = means[start:end, None] - means[None, place:end]
            block = start, place, end, gap >= least * np.sqrt(variance(slice(start, end), slice(place, end)))
        low, first, _, better = block
        [found] = np.nonzero(better[start - low : place - low, place - first])
        return start + int(found[-1]) if found.size else -1

    both = np.einsum("ij,ij->i", error[:-1], error[1:]) / d
    sd = np.sqrt(np.maximum(square[:-1] + square[1:] - 2.0 * both, 1e-24))
    return ndtr((means[:-1] - means[1:]) / sd).tolist(), runs(order.size, last_better)


def _parts(n: int, cells: Cells) -> Ints:
    """Return the part of each of n models (n,), from 0, those with most votes first: models of two parts never met, not
    even by way of others."""
    label = connected_parts(n, cells.first, cells.second)
    votes = np.bincount(label[cells.first], cells.weight)
    rank = np.empty(votes.size, np.int64)
    rank[(-votes).argsort(kind="stable")] = np.arange(votes.size)
    return np.asarray(rank[label], np.int64)


def _effects(n: int, votes: Votes, tied: bool, off: ParameterPosterior, units: list[float], side: bool) -> list[Effect]:
    names = [*votes.covariates, *(["side"] if side else [])]
    if not names:
        return []
    at = slice(n + tied, None)
    if off.gaussians is not None:
        parts = off.gaussians.components()
        weights = np.array([weight for weight, _ in parts])
        means = np.stack([part.mean[at] for _, part in parts])
        sds = np.sqrt(np.stack([np.maximum(part.cov.diagonal()[at], 0.0) for _, part in parts]))
    else:
        weights, means = np.ones(1), off.mean[None, at]
        sds = np.sqrt((off.errors[:, at] ** 2).mean(axis=0))[None]  # type: ignore[index]
    low, high = interval(weights, means, sds, LEVEL)
    of_all = (POINTS * np.stack([off.mean[at], low, high])).T.tolist()
    return [Effect(name, at, low, high, unit) for name, (at, low, high), unit in zip(names, of_all, units)]


def _pair_counts(n: int, cells: Cells) -> PairCounts:
    low, high = np.minimum(cells.first, cells.second), np.maximum(cells.first, cells.second)
    key, at = np.unique(low * n + high, return_inverse=True)
    won = np.where(cells.first < cells.second, cells.outcome, 2 - cells.outcome)
    counts = [np.bincount(at, cells.weight * (won == k), key.size).astype(np.int64) for k in (2, 0, 1)]
    return PairCounts(key // n, key % n, counts[0], counts[1], counts[2])


# ---------------------------------------------------------------------------- remarks


def _remarks(
    models: tuple[str, ...],
    cells: Cells,
    votes: Votes,
    off: ParameterPosterior,
    people: tuple[Ints, Ints, Array] | None,
    suspects: RandomVoters | None,
    ordered: Sequence[str],
    part: Ints,
) -> list[Remark]:
    """Return what is to be said of a board; `ordered` are its models as they stand on it, with the `part` (n,) of
    each."""
    out = []
    n = len(models)
    if (parts := int(part.max(initial=0)) + 1) > 1:
        names = [cut_list([name for name, p in zip(ordered, part.tolist()) if p == k], 4) for k in range(min(parts, 4))]
        told = f"Models fall into {parts:,} parts that never met, not even by way of others: {'; '.join(names)}"
        told += "; ..." if parts > len(names) else ""
        told += ". Places and P(best) are those within a part; how the parts stand to each other is a guess."
        out.append(Remark("parted", told))
    bad = int(votes.times[votes.bad].sum())
    if bad:
        out.append(both_bad(bad))
    for why, gone in votes.left_out.items():
        said = f"{count(gone, 'row' if why.startswith('rows') else 'vote')} left out"
        out.append(Remark("left_out", f"{said}: {why.removeprefix('rows that ')}."))
    if (cells.outcome == 1).all():
        told = "Every vote is a tie: scores are equal, and how many points apart models could still be is hardly known"
        out.append(Remark("all_ties", f"{told}, however many ties there are."))
    elif people is not None and (alike := effective_people(people)) < FEW_PEOPLE:
        if off.clusters:
            told = f"The votes are worth those of {count(round(alike), 'person', 'people')} who vote equally often"
            told += ": intervals are wider for it, as others may prefer other models."
        else:
            told = "Only 1 person voted: intervals are about this person alone, not about what others would say."
        out.append(Remark("few_people", told))
    if votes.sided:
        out += _sides(votes)
    if n > MOST_DENSE:
        out.append(Remark("draws", f"With more than {MOST_DENSE:,} models, intervals come from {DRAWS} draws."))
    if suspects is not None and suspects.found:
        who_found = [each.person for each in suspects.found]
        one = len(who_found) == 1
        told = f"{len(who_found):,} of {count(suspects.tested, 'person', 'people')} {'does' if one else 'do'} not vote "
        told += "as the board predicts"
        told += f": {join_names(who_found)}. Of those named at most {percent(suspects.rate)} are named by chance."
        out.append(Remark("random", told, tuple(who_found)))
    return out


def _sides(votes: Votes) -> list[Remark]:
    """Return warnings about people who took the answer shown first, or the other, more often than chance allows; votes
    without a name are those of many, of whom none is told of alone."""
    chosen, p = votes.times * (votes.outcome != 1), len(votes.people)
    first, all_of = (np.bincount(votes.person, chosen * won, p).astype(np.int64) for won in (votes.outcome == 2, 1))
    return [each for each in side_remarks(votes.people, first, all_of) if each.people != ("",)]
