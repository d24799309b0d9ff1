"""Ranking SVM, trained again from time to time on all corrections: the baseline of [J15] section 6.2.5.

The solver is scikit-learn's liblinear. It is imported when a Ranking SVM is used, and cannot be compiled.

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.extras import lacking
from heedful.core.space import Space
from heedful.core.validation import check_count, check_flag, check_linear
from heedful.jit.kernel import Floats, Ints
from heedful.spaces.ranking import difference

Array = npt.NDArray[np.float64]

FIRST_C = 100.0
FEW = 50
PASSES, EXACT = 10_000, 1e-6
"""When training stops: the number of liblinear's passes over the pairs, and its tolerance."""
TRIAL = 1_000, 1e-4
"""Passes and tolerance in cross-validation: scikit-learn's defaults, since it only counts pairs in the right order."""
FOLDS = 5
GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""the values of C, the weight of the loss against |w|^2/2, that cross-validation tries; the papers give only 100"""


_TURN = threading.Lock()
"""Only one training at a time: liblinear has one random generator in a process, and `warnings` is not thread-safe."""


class RankingSVMState(NamedTuple):
    """The state of `RankingSVM` for N features, with the latest difference vectors as training data."""

    w: Array
    """the utility weights (N,)"""
    pairs: Array
    """the latest difference vectors D, capacity x N, overwritten in turn once all rows are used"""
    n: int
    """the number of difference vectors so far"""
    trained: int
    """the value of `n` at the last training; 0 before the first one"""
    C: float
    """the C of the last training"""
    t: int
    """number of rounds learned from"""


@declare(
    version=1,
    simulation_only="before its first training it shows something random, and a training takes seconds",
    must_interpret=True,
)
class RankingSVM(NamedTuple):
    """Ranking SVM: Joachims 2002, retrained as in [J15] section 6.2.5. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers. w = argmin |w|^2/2 + C sum max(0, 1 - w . D) over the difference vectors D = phi(x, ybar) -
    phi(x, y) of all rounds with a correction ybar, without intercept. It is trained after the first correction, and
    whenever there are at least 10 % more than at the last training (10 n >= 11 n_last); before, proposals come from a
    random w. C = 100 up to 50 difference vectors; beyond, the value for which most held-out D have w . D > 0 in 5-fold
    cross-validation, the smallest where they tie.

    `squared` takes the loss max(0, 1 - w . D)^2 instead, which liblinear solves several times faster and to
    convergence; with the papers' loss and a large C it stops after 10,000 passes, within about 1 % of the least
    objective. It keeps the latest `capacity` difference vectors. It needs scikit-learn, and cannot be compiled.
    """

    n_features: int
    space: Space
    squared: bool = False
    capacity: int = 10_000

    def init(self, rng: np.random.Generator) -> RankingSVMState:
        check_linear(self.n_features, self.space)
        check_flag("squared", self.squared)
        check_count("capacity", self.capacity, least=2)  # cross-validation holds out one and trains on another
        try:
            import sklearn  # noqa: F401
        except ModuleNotFoundError:
            raise ModuleNotFoundError(lacking("RankingSVM", "scikit-learn", "sklearn"), name="sklearn") from None
        N = self.n_features
        return RankingSVMState(np.zeros(N), np.zeros((self.capacity, N)), 0, 0, FIRST_C, 0)

    def propose(self, state: RankingSVMState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w if state.trained else rng.standard_normal(self.n_features), x)

    def update(self, state: RankingSVMState, x: Floats, y: Ints, feedback: Ints) -> RankingSVMState:
        return self.step(state, difference(self.space, self.n_features, x, feedback, y))

    def step(self, state: RankingSVMState, D: Array) -> RankingSVMState:
        """The SVM is trained again if there are enough new vectors; a `D` of zeros only counts the round."""
        if not D.any():
            return state._replace(t=state.t + 1)
        state.pairs[state.n % self.capacity] = D
        state = state._replace(n=state.n + 1, t=state.t + 1)
        if 10 * state.n < 11 * state.trained:
            return state
        pairs = state.pairs[: state.n]
        C = FIRST_C if state.n <= FEW else choose_C(pairs, self.squared)
        state.w[:] = fit_svm(pairs, C, self.squared)
        return state._replace(trained=state.n, C=C)

    def weights(self, state: RankingSVMState) -> Array:
        return state.w


def choose_C(pairs: Array, squared: bool) -> float:
    """Return the C of GRID, the weight of the loss, for which most held-out difference vectors D (rows of `pairs`, n x
    N) have w . D > 0 in 5-fold cross-validation; the smallest where they tie.

    `squared`: whether the loss is squared. Row i is held out in fold i mod 5.
    """
    fold = np.arange(len(pairs)) % FOLDS

    def right(C: float) -> int:
        return sum(
            int(np.sum(pairs[fold == f] @ fit_svm(pairs[fold != f], C, squared, *TRIAL) > 0.0))
            for f in range(min(FOLDS, len(pairs)))
        )

    return max(GRID, key=right)  # the first of equals, which is the smallest


def fit_svm(pairs: Array, C: float, squared: bool, passes: int = PASSES, tolerance: float = EXACT) -> Array:
    """Return the weights w (N,) of an SVM: argmin |w|^2/2 + C sum_i loss(w . D_i), for the rows D_i of `pairs` (n x N),
    n differences of N features.

    The loss of z is max(0, 1 - z), or its square if `squared`. liblinear stops after `passes` passes over the rows or
    at `tolerance`.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if len(pairs) == 1:  # liblinear needs two: the same pair twice, with half the C
        pairs, C = np.repeat(pairs, 2, axis=0), C / 2.0
    sign = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)  # two classes: D of one is -D of the other
    loss = "squared_hinge" if squared else "hinge"
    machine = LinearSVC(
        C=C, loss=loss, dual=not squared, fit_intercept=False, tol=tolerance, max_iter=passes, random_state=0
    )
    with _TURN, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(pairs * sign[:, None], sign)
    return np.asarray(machine.coef_[0], np.float64)
