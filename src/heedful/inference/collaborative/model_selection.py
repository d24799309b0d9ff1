"""Hyper-parameters by what they foretell: some answers of everybody are held back, and told from the others.

The evidence (`log_evidence`) is there too, as [H12] has it, but is no guide: mean-field posteriors favour functions
that are small and smooth, and it goes down where what is foretold goes up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.distances import half_median
from heedful.inference.collaborative.fitted import Fitted
from heedful.inference.collaborative.sparse_cells import part_of
from heedful.inference.collaborative.user_covariance import crowd, features
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.posterior import Posterior
from heedful.inference.pairwise import PairRows

Array = npt.NDArray[np.float64]
T = TypeVar("T")


class Choice(NamedTuple):
    """Hyper-parameters of CP and CPU: length-scale of the items' features in standard deviations (0 where they have
    none), standard deviation of a function, and the share rho of what people's features say (0: CP)."""

    lengthscale: float
    amplitude: float
    rho: float


class Trial(NamedTuple):
    """A candidate: the mean log probability of the answers held back, in nats; the share that were called less likely
    than not, half of those that were a coin; the mean log evidence of the rest, an answer."""

    choice: Any
    log_probability: float
    error: float
    log_evidence: float


def tune(
    candidates: Sequence[T],
    fitted: Callable[[T, PairRows], Any],
    rows: PairRows,
    *,
    held: float = 0.2,
    folds: int = 1,
    seed: int = 0,
) -> list[Trial]:
    """Candidates, the best first: `fit_part` of each and of a part of the rows foretells the rest.

    `held`: the share of each person's answers held back; `folds`: how often, each time others, drawn with `seed`, all
    candidates alike. Who answered once stays. Equally good answers are not held back.
    """
    if not is_number(held, int, float) or not 0.0 < held < 1.0:
        raise ValueError(f"held: expected a share between 0 and 1, got {describe(held)}")
    check_count("folds", folds)
    check_count("candidates", len(candidates))
    scores = np.zeros((len(candidates), folds, 3))
    for k in range(folds):
        out = _holdout_mask(rows, held, np.random.default_rng([seed, k]))
        kept = part_of(rows, ~out)
        if not out.any():
            raise ValueError("rows: expected at least two answers of somebody, to hold one back, got none")
        user, (a, b), times = rows.user[out], rows.pairs[out].T, rows.times[out]
        for i, candidate in enumerate(candidates):
            model = fitted(candidate, kept)
            p = model.predict_proba(user, a, b)
            wrong = np.where(p == 0.5, 0.5, p < 0.5)
            each = np.log(np.maximum(p, 1e-300))
            scores[i, k] = (
                float(times @ each) / times.sum(), float(times @ wrong) / times.sum(),
                model.log_evidence / max(kept.times.sum(), 1.0),
            )  # fmt: skip
    tried = [Trial(c, *map(float, s)) for c, s in zip(candidates, scores.mean(axis=1))]
    return sorted(tried, key=lambda t: -t.log_probability)


def _holdout_mask(rows: PairRows, share: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which rows are held back: of each person the share, rounded down, of those that are not equally good."""
    draw = np.where(rows.equal, 2.0, rng.random(rows.size))
    order = np.lexsort((draw, rows.user))
    have = np.bincount(rows.user)
    place = np.empty(rows.size, np.int64)
    place[order] = np.arange(rows.size) - np.repeat(np.cumsum(have) - have, have)
    most = np.maximum(np.floor(share * have), np.where(have > 1, 1, 0)).astype(np.int64)
    return (place < most[rows.user]) & ~rows.equal  # type: ignore[no-any-return]


class Tuned(NamedTuple):
    """The fit of all answers with the best choice, and all that were tried, in turn."""

    fit: Fitted
    choice: Choice
    tried: tuple[Trial, ...]

    def gap(self, user: Any, a: Any, b: Any) -> tuple[Array, Array]:
        """As `Fitted.gap`."""
        return self.fit.gap(user, a, b)

    def predict_proba(self, user: Any, a: Any, b: Any) -> Array:
        """As `Fitted.predict_proba`."""
        return self.fit.predict_proba(user, a, b)

    def posterior(self, user: int) -> Posterior:
        return self.fit.posterior(user)

    @property
    def log_evidence(self) -> float:
        return self.fit.log_evidence


def tune_cp(
    X: Any,
    rows: PairRows,
    users: int,
    *,
    Z: Any = None,
    D: int = 20,
    stretches: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    amplitudes: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    rhos: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    pseudo: int | None = None,
    held: float = 0.2,
    folds: int = 1,
    seed: int = 0,
    width: Any = 0.0,
    lapse: Any = 0.0,
) -> Tuned:
    """CP, or CPU where people have features Z (U x q), with the length-scale, the amplitude and rho that foretell best.

    X (n x d), d = 0 where items have no features; length-scales are `stretches` of `half_median`. First length-scale
    and amplitude are chosen together, without people's features, then rho, which may stay 0; `pseudo` as of `crowd`.
    """
    X = features("X", X)
    unit = half_median(X) if X.shape[1] else 0.0
    scales = [unit * s for s in stretches] if X.shape[1] else [0.0]

    def fit_part(choice: Choice, part: PairRows) -> Fitted:
        K = kernel_for(X, choice.lengthscale or "median", choice.amplitude).over(X)
        people = crowd(Z, rho=choice.rho, pseudo=pseudo, seed=seed) if choice.rho > 0.0 else None
        return fit(K, users, part, D=D, crowd=people, width=width, lapse=lapse)

    def compare(choices: list[Choice]) -> list[Trial]:
        return tune(choices, fit_part, rows, held=held, folds=folds, seed=seed)

    tried = compare([Choice(s, float(a), 0.0) for s in scales for a in amplitudes])
    best = tried[0]
    if Z is not None:
        mixed = compare([best.choice._replace(rho=float(r)) for r in rhos if r > 0.0])
        best = max(best, mixed[0], key=lambda t: t.log_probability)
        tried += mixed
    return Tuned(fit_part(best.choice, rows), best.choice, tuple(tried))
