"""The models of comparisons of [H12] and ours, by the names that the curves of a figure use: `cp`, `cp:D=5`,
`tuned`.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.baselines import fit_birlutiu, fit_single
from heedful.inference.collaborative.cp import fit as fit_cp
from heedful.inference.collaborative.distances import half_median, standardise
from heedful.inference.collaborative.joint_gp import fit_joint, tune_joint
from heedful.inference.collaborative.model_selection import FittedModel, tune, tune_cp
from heedful.inference.collaborative.user_covariance import user_covariance
from heedful.inference.gp.hierarchical import HierarchicalFit, Population
from heedful.inference.gp.hierarchical import fit as fit_hierarchical
from heedful.inference.gp.kernels import kernel_for
from heedful.inference.gp.posterior import PreferenceModel, user_gap
from heedful.inference.pairwise import Index, PairRows

Array = npt.NDArray[np.float64]
PSEUDO, FEW = 25, 15
"""Numbers of pseudo-inputs of the sparse approximation FITC: PSEUDO over people and over pairs ([H12] section 6.1), FEW
over the pairs of fewer than ten items."""
FEW_PEOPLE = 40
"""the number of people on whom models are tuned with --quick"""
COUNTS = (1.0, 3.0, 10.0, 30.0)
"""numbers of people that the prior of the hierarchical model may count as, of which tuning chooses one"""


class Problem(NamedTuple):
    """Everything that a model may know about U people and n items besides the answers."""

    features: Array
    """(n x d) d features of each item"""
    people: Array
    """(U x q) q standardised features of each person"""
    seed: int
    """the seed of random choices"""
    tuned: Mapping[str, Any]
    """the hyperparameters that were tuned on other people, by name of the model"""
    cache: dict[Any, Any]
    """a cache that all fits of one run share"""

    def covariance(self, times: float = 1.0) -> Array:
        """Return the kernel matrix K (n x n) of the items, whose length-scale is `times` that of the paper's released
        code."""
        return kernel_for(self.features, times * half_median(self.features)).over(self.features)


Fit = Callable[[Problem, PairRows, Any], FittedModel]
"""A function that fits a model: from a problem, the answers, and the earlier fit of this model to fewer answers (None
at first) to the fitted model."""


@dataclass(frozen=True)
class HierarchicalModel(PreferenceModel):
    """A fitted hierarchical Gaussian process model of people's choices, `fit`, with the methods of the other models."""

    fit: HierarchicalFit

    @property
    def log_evidence(self) -> float:
        """The log evidence of all answers, in nats."""
        return float(self.fit.people.log_evidence.sum())

    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        people = self.fit.people  # of so few items, all at once
        return user_gap(people.mean, people.cov, user, a, b)


@cache
def model(name: str) -> Fit:
    """Return the function that fits the model `name`: the name of one of the models of [H12] or ours, such as `cp`,
    with parameters after a colon, such as `cp:D=5`. Raise ValueError for an unknown name.
    """
    kind, _, text = name.partition(":")
    if kind not in _MODELS:
        raise ValueError(f"model: expected one of {', '.join(_MODELS)}, got {name!r}")
    parameters = {key: float(value) for key, value in (part.split("=") for part in text.split(",") if part)}
    return lambda problem, rows, earlier: _MODELS[kind](problem, rows, earlier, **parameters)


# ---------------------------------------------------------------------------- of the paper
# CP and CPU are fitted afresh after every question, as published: from where an earlier fit ended they stay near what
# it pruned, and err more (Sushi, 1,000 people, ten BALD questions: .171, afresh .157).


def _cp(problem: Problem, rows: PairRows, earlier: object, D: float = 20, times: float = 1.0) -> FittedModel:
    return fit_cp(problem.covariance(times), len(problem.people), rows, D=int(D))


def _cpu(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    """Fit CPU: CP with features of people, by FITC with PSEUDO pseudo-people, as published."""
    if "people" not in problem.cache:
        problem.cache["people"] = user_covariance(problem.people, pseudo=PSEUDO, seed=problem.seed)
    return fit_cp(problem.covariance(), len(problem.people), rows, user_cov=problem.cache["people"])


def _cp_fitc(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    few = PSEUDO if len(problem.features) >= 10 else FEW
    return fit_cp(problem.covariance(), len(problem.people), rows, D=20, pseudo_pairs=few, seed=problem.seed)


def _single(problem: Problem, rows: PairRows, earlier: Any, times: float = 1.0) -> FittedModel:
    sites = None if earlier is None else earlier.people.sites  # where it ends is the same from anywhere
    return fit_single(problem.covariance(times), len(problem.people), rows, sites=sites)


def _birlutiu(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    """Fit BI, the hierarchical model of Birlutiu et al., with length-scale 1 as in the released code."""
    return fit_birlutiu(kernel_for(problem.features, 1.0).over(problem.features), len(problem.people), rows)


def _joint(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    """Fit BO, a joint Gaussian process over people and items, with a length-scale for each feature, chosen by the
    evidence of other people's answers."""
    K_items, K_users = problem.tuned["bo"].kernels(standardise(problem.features), problem.people)
    return fit_joint(K_items, K_users, rows)


# ---------------------------------------------------------------------------- ours


def _hierarchical(
    problem: Problem, rows: PairRows, earlier: Any, times: float = 1.0, nu0: float | None = None
) -> FittedModel:
    start = earlier.fit if earlier is not None else None
    return HierarchicalModel(
        fit_hierarchical(
            problem.covariance(times),
            len(problem.people),
            rows,
            nu0=nu0,
            start=Population(*start.population) if start else None,
            sites=start.people.sites if start else None,
            steps=100,
            tolerance=1e-3,  # at the 1e-2 of `fit` EM stops on the plateau where it begins in some splits of Election
        )
    )


def _tuned_hierarchical(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    """Fit the hierarchical model whose prior counts as the number of people nu0 that predicted other people's answers
    best."""
    return _hierarchical(problem, rows, earlier, nu0=problem.tuned["hierarchical-tuned"])


def _tune(problem: Problem, rows: PairRows, earlier: object) -> FittedModel:
    """Fit the collaborative Gaussian process (CP) at the length-scale, amplitude and share rho of people's features
    that predicted other people's answers best; rho = 0 ignores features of people."""
    choice = problem.tuned["tuned"]
    K = kernel_for(problem.features, choice.lengthscale, choice.amplitude).over(problem.features)
    people = user_covariance(problem.people, rho=choice.rho, pseudo=PSEUDO) if choice.rho > 0.0 else None
    return fit_cp(K, len(problem.people), rows, D=20, user_cov=people)


def tune_on_others(name: str, features: Array, people: Array, rows: PairRows, few: bool) -> Any:
    """Return the hyperparameters that the model `name` learns from other people before it is fitted, or None for most
    models.

    `features` (n x d) are d features of n items, `people` (U x q) q features of the U other people, `rows` their
    answers. BO, the joint Gaussian process over people and items, uses 25 people, as published. With `few`, models that
    tune for long use fewer people and candidates.
    """
    if name == "bo":
        return tune_joint(features, people, rows, people=8 if few else 25, steps=8 if few else 30)
    if name == "hierarchical-tuned":
        problem = Problem(features, people, 0, {}, {})
        return tune(COUNTS, lambda nu0, part: _hierarchical(problem, part, None, nu0=nu0), rows)[0].choice
    if name == "tuned" and few:
        some = rows.user < FEW_PEOPLE
        columns: list[Any] = [column[some] for column in rows]
        part, few_people = PairRows(*columns), people[:FEW_PEOPLE]
        grid: dict[str, Any] = {"stretches": (1.0, 2.0), "amplitudes": (1.0, 2.0), "rhos": (0.5,)}
        return tune_cp(features, part, len(few_people), Z=few_people, **grid).choice
    if name == "tuned":
        return tune_cp(features, rows, len(people), Z=people, pseudo=PSEUDO).choice
    return None


_MODELS: dict[str, Callable[..., FittedModel]] = {
    "cpu": _cpu,
    "cp": _cp,
    "cp-fitc": _cp_fitc,
    "bi": _birlutiu,
    "bo": _joint,
    "su": _single,
    "hierarchical": _hierarchical,
    "hierarchical-tuned": _tuned_hierarchical,
    "tuned": _tune,
}
