"""Selection of hyperparameters by prediction: part of each person's answers is held out and predicted from the rest.

The evidence (`log_evidence`), which [H12] uses, is reported but is a poor guide: mean-field posteriors favour small,
smooth functions, and the evidence falls where predictions improve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count
from heedful.inference.collaborative.cp import fit
from heedful.inference.collaborative.cp_fit import CPFit
from heedful.inference.collaborative.distances import half_median
from heedful.inference.collaborative.user_covariance import features, user_covariance
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.pairwise import Index, PairRows, take_rows

Array = npt.NDArray[np.float64]
T = TypeVar("T")

HELD = 0.2
"""The share of each person's answers that is held out."""


class CPHyperparameters(NamedTuple):
    """Hyperparameters of the collaborative models of [H12]: CP and, with features of people, CPU.

    `lengthscale`: of the items' features, in standard deviations (0 without features). `amplitude`: standard deviation
    of a shared function. `rho`: the fraction of the covariance of people's weights that their features explain (0: CP).
    """

    lengthscale: float
    amplitude: float
    rho: float


class FittedModel(Protocol):
    """A `PreferenceModel` with an evidence: what `tune` can compare."""

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the answers, in nats."""

    def gap(self, user: Index, a: Index, b: Index, /) -> tuple[Array, Array]: ...
    def predict_proba(self, user: Index, a: Index, b: Index, /) -> Array: ...


class Trial(NamedTuple, Generic[T]):
    """The result of one candidate in `tune`: `choice`, the candidate, with averages over answers, in nats.

    `log_probability`: mean log probability of a held-out answer. `error`: the fraction of held-out answers that are
    predicted wrongly; a predicted probability of exactly one half counts as half an error. `log_evidence`: the log
    evidence of the answers that the candidate was fitted to, divided by their number.
    """

    choice: T
    log_probability: float
    error: float
    log_evidence: float


def tune(
    candidates: Sequence[T],
    fitted: Callable[[T, PairRows], FittedModel],
    rows: PairRows,
    *,
    folds: int = 1,
) -> list[Trial[T]]:
    """Compare candidate hyperparameters by the prediction of held-out answers; return the results, best first.

    `fitted(candidate, part)` fits a candidate to part of `rows`; the fit then predicts the held-out rows. A fifth of
    each person's answers is held out, rounded down, but at least one of two; ties are never held out. `folds`: the
    number of random splits, the same for all candidates. Raise ValueError if an argument is invalid, or if nothing can
    be held out.
    """
    check_count("folds", folds)
    check_count("candidates", len(candidates))
    scores = np.zeros((len(candidates), folds, 3))
    for k in range(folds):
        out = _holdout_mask(rows, np.random.default_rng([0, k]))
        training = take_rows(rows, ~out)
        if not out.any():
            raise ValueError("rows: expected at least two answers of somebody, to hold one back, got none")
        user, (a, b), times = rows.user[out], rows.pairs[out].T, rows.times[out]
        for i, candidate in enumerate(candidates):
            model = fitted(candidate, training)
            p = model.predict_proba(user, a, b)
            wrong = np.where(p == 0.5, 0.5, p < 0.5)
            log_p = np.log(np.maximum(p, 1e-300))
            scores[i, k] = (
                float(times @ log_p) / times.sum(), float(times @ wrong) / times.sum(),
                model.log_evidence / max(training.times.sum(), 1.0),
            )  # fmt: skip
    trials = [Trial(c, *map(float, s)) for c, s in zip(candidates, scores.mean(axis=1))]
    return sorted(trials, key=lambda t: -t.log_probability)


def _holdout_mask(rows: PairRows, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return a mask (p,) of the share HELD of each person's rows, at least one of two, drawn with `rng`; ties stay."""
    draw = np.where(rows.equal, 2.0, rng.random(rows.size))
    order = np.lexsort((draw, rows.user))
    have = np.bincount(rows.user)
    place = np.empty(rows.size, np.int64)
    place[order] = np.arange(rows.size) - np.repeat(np.cumsum(have) - have, have)
    most = np.maximum(np.floor(HELD * have), np.where(have > 1, 1, 0)).astype(np.int64)
    return (place < most[rows.user]) & ~rows.equal  # type: ignore[no-any-return]


class ModelSelection(NamedTuple):
    """The fit to all answers with the best hyperparameters, these hyperparameters, and the results of
    all candidates.
    """

    fit: CPFit
    choice: CPHyperparameters
    trials: tuple[Trial[CPHyperparameters], ...]


def tune_cp(
    X: npt.ArrayLike,
    rows: PairRows,
    users: int,
    *,
    Z: npt.ArrayLike | None = None,
    D: int = 20,
    stretches: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    amplitudes: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    rhos: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    pseudo: int | None = None,
    folds: int = 1,
) -> ModelSelection:
    """Fit the collaborative model CP of [H12] with the length-scale, amplitude and rho (`CPHyperparameters`) that
    predict held-out answers best.

    `X` (n x d): d features of the n items, d = 0 without; `rows`: answers of U = `users` people; `Z` (U x q): their q
    features, None without. Candidate length-scales are `stretches` times `half_median(X)`; they are combined with all
    `amplitudes`, first without people's features; then `rhos` are tried with the best of these, and rho may stay 0.
    `D` is that of `cp.fit`, `pseudo` that of `user_covariance`, `folds` that of `tune`.
    """
    X = features("X", X)
    unit = half_median(X) if X.shape[1] else 0.0
    scales = [unit * s for s in stretches] if X.shape[1] else [0.0]

    def fit_part(choice: CPHyperparameters, part: PairRows) -> CPFit:
        K = kernel_for(X, choice.lengthscale or "median", choice.amplitude).over(X)
        people = user_covariance(Z, rho=choice.rho, pseudo=pseudo) if Z is not None and choice.rho > 0.0 else None
        return fit(K, users, part, D=D, user_cov=people)

    def compare(choices: list[CPHyperparameters]) -> list[Trial[CPHyperparameters]]:
        return tune(choices, fit_part, rows, folds=folds)

    trials = compare([CPHyperparameters(s, float(a), 0.0) for s in scales for a in amplitudes])
    best = trials[0]
    if Z is not None:
        mixed = compare([best.choice._replace(rho=float(r)) for r in rhos if r > 0.0])
        best = max(best, mixed[0], key=lambda t: t.log_probability)
        trials += mixed
    return ModelSelection(fit_part(best.choice, rows), best.choice, tuple(trials))
