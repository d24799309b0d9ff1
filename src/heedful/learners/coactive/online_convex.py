"""Turn a rule of online convex optimisation into a coactive learner, for any space ([J15] Algorithm 3).

A rule is a NamedTuple of hyperparameters with two methods: `init(n)` gives the first state, a NamedTuple with the
weights in a field `w` (n,), and `step(state, D)` the state after a round in which the feedback object has features that
differ by D (n,) from those of the object shown. It may overwrite the arrays of the state. It is compiled where numba
can compile it.

>>> Session(OnlineConvex(n_features=4, space=Ranking(5), rule=AdaGrad(rate=0.5)))

[J15]: Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.fold import S
from heedful.core.space import Space
from heedful.core.validation import check_linear, check_positive
from heedful.jit.kernel import Floats, Ints
from heedful.spaces.ranking import difference

Array = npt.NDArray[np.float64]
RuleState: TypeAlias = Any
"""the state of an OnlineConvex learner, which is that of its rule: a NamedTuple with the weights in a field `w` (n,)"""


class Rule(Protocol[S]):
    """A rule of online convex optimisation: a NamedTuple of hyperparameters with two functions of a state S.

    S is a NamedTuple with the n weights in a field `w` (n,).
    """

    def init(self, n: int, /) -> S:
        """Return the state before the first round, for `n` weights. Raise ValueError if a hyperparameter is not
        valid."""

    def step(self, state: S, D: Array, /) -> S:
        """Return the state after a round whose feedback object has the n features of the object shown plus `D` (n,). It
        may overwrite the arrays of `state`."""


class AdaGradState(NamedTuple):
    """The state of `AdaGrad` for n weights."""

    w: Array
    """the weights (n,)"""
    total: Array
    """the sum of D^2 over the rounds so far, for the update directions D (n,)"""


class AdaGrad(NamedTuple):
    """Diagonal AdaGrad (Duchi, Hazan & Singer, 2011) on the linear loss -w . D, with update directions D (n,).

    In every round w_i += rate D_i / sqrt(sum of D_i^2 over the rounds so far), for each of the n weights; `rate` is the
    step size.
    """

    rate: float = 1.0

    def init(self, n: int) -> AdaGradState:
        check_positive("rate", self.rate)
        return AdaGradState(np.zeros(n), np.zeros(n))

    def step(self, state: AdaGradState, D: Array) -> AdaGradState:
        state.total[:] += D * D
        state.w[:] += self.rate * D / np.sqrt(state.total + 1e-20)  # where the total is 0, D is 0 too
        return state


@declare(version=1)
class OnlineConvex(NamedTuple):
    """Online convex optimisation: [J15] Algorithm 3, with a rule of your own. Interaction: coactive.

    Shows the object y of `space` of greatest utility w . phi(x, y), for weights w and joint features phi of
    `n_features` numbers, and gives D = phi(x, ybar) - phi(x, y), the gradient of w . D for the feedback object ybar, to
    `rule`. Where the rule's regret on the losses -w . D_t against every fixed w* of a class is at most B_T after T
    rounds, the average regret is REG_T <= mean xi / alpha + B_T / (alpha T) for w* of that class, since w_t . D_t <= 0.
    Here the feedback is alpha-informative with slacks xi: ybar gains at least alpha times the regret, less xi.
    """

    n_features: int
    space: Space
    rule: Rule[RuleState] = AdaGrad()

    @property
    def must_interpret(self) -> bool:
        """True if the rule says, by an attribute of this name, that numba cannot compile it."""
        return bool(getattr(self.rule, "must_interpret", False))

    def init(self, rng: np.random.Generator) -> RuleState:
        check_linear(self.n_features, self.space)
        if not is_rule(type(self.rule)):
            raise ValueError(f"rule: expected a NamedTuple with init(n) and step(state, D), got {self.rule!r}")
        state = self.rule.init(self.n_features)
        if getattr(getattr(state, "w", None), "shape", None) != (self.n_features,):
            raise ValueError(f"rule: expected a state with weights w of shape ({self.n_features},), got {state!r}")
        return state

    def propose(self, state: RuleState, x: Floats, rng: np.random.Generator) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: RuleState, x: Floats, y: Ints, feedback: Ints) -> RuleState:
        return self.rule.step(state, difference(self.space, self.n_features, x, feedback, y))

    def weights(self, state: RuleState) -> Array:
        w: Array = state.w
        return w


def is_rule(cls: object) -> bool:
    """Return True if `cls` is the class of a rule for `OnlineConvex`: a NamedTuple with `init` and `step` but no
    `propose`."""
    named = isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")
    return (
        named and all(callable(getattr(cls, name, None)) for name in ("init", "step")) and not hasattr(cls, "propose")
    )
