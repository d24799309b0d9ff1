"""Simulated people who click in a ranking and do not look at every document: position bias, and the cascade model.

A person who looks at a document of grade `label` clicks it with probability noise + (1 - noise) (2^label - 1) /
(2^highest - 1), where `noise` is the probability for grade 0 and `highest` the grade that is always clicked. Feedback
is an order: the clicked documents from the top down, then the rest as shown. With `clicks_only` it is the clicked
documents alone, possibly none, for learners of clicks (`Posterior`): an order does not say how many
were clicked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_flag
from heedful.jit.kernel import Ints, kernel
from heedful.worlds.answers import move_to_front

Array = npt.NDArray[np.float64]


@kernel
def attraction(label: float, highest: float, noise: float) -> float:
    """Return the probability that a person who looks at a document of grade `label` clicks it, by its DCG gain: noise +
    (1 - noise) (2^label - 1) / (2^highest - 1), at most 1.

    `noise` is the probability for grade 0, `highest` the grade with probability 1.
    """
    # exp is libm's, compiled or not
    gain = (math.exp(label * math.log(2.0)) - 1.0) / (math.exp(highest * math.log(2.0)) - 1.0)
    return noise + (1.0 - noise) * min(max(gain, 0.0), 1.0)


class PositionBiased(NamedTuple):
    """A simulated person with position bias: they look at position i = 1, 2, ... with probability (1/i)^eta, and click
    by relevance what they look at.

    - `eta`: the strength of the bias; 0 means that they look at every position.
    - `noise`: the probability of a click on a document of grade 0 that they look at.
    - `clicks_only`: whether feedback is the clicked documents alone, instead of an order of all documents.
    - `highest`: the grade of a document that is always clicked when looked at.
    """

    eta: float = 1.0
    noise: float = 0.1
    clicks_only: bool = False
    highest: float = 4.0

    def check(self) -> None:
        """Raise ValueError unless eta is from 0 to 100, noise from 0 to 1 and highest from .001 to 100."""
        check_between("eta", self.eta, 0.0, 100.0)
        _check(self)

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        clicked = np.empty(shown.size, np.int64)
        size = 0
        for i in range(shown.size):
            examination = math.exp(-self.eta * math.log(i + 1.0))
            if rng.random() < examination * attraction(labels[shown[i]], self.highest, self.noise):
                clicked[size] = shown[i]
                size += 1
        return clicked[:size] if self.clicks_only else move_to_front(clicked, size, shown, labels.size)


class Cascade(NamedTuple):
    """A simulated person of the cascade model: they look from the top down, click by relevance what they look at, and
    may stop after a click.

    - `stop`: the probability of stopping after a click.
    - `noise`: the probability of a click on a document of grade 0 that they look at.
    - `clicks_only`: whether feedback is the clicked documents alone, instead of an order of all documents.
    - `highest`: the grade of a document that is always clicked when looked at.
    """

    stop: float = 0.7
    noise: float = 0.1
    clicks_only: bool = False
    highest: float = 4.0

    def check(self) -> None:
        """Raise ValueError unless stop and noise are from 0 to 1 and highest is from .001 to 100."""
        check_between("stop", self.stop, 0.0, 1.0)
        _check(self)

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        clicked = np.empty(shown.size, np.int64)
        size = 0
        for i in range(shown.size):
            if rng.random() < attraction(labels[shown[i]], self.highest, self.noise):
                clicked[size] = shown[i]
                size += 1
                if rng.random() < self.stop:
                    break
        return clicked[:size] if self.clicks_only else move_to_front(clicked, size, shown, labels.size)


def _check(user: PositionBiased | Cascade) -> None:
    """Raise ValueError, naming the field, unless the parameters that both classes of simulated people have are valid:
    `noise`, `highest` and `clicks_only`.
    """
    check_between("noise", user.noise, 0.0, 1.0)
    check_between("highest", user.highest, 1e-3, 100.0)
    check_flag("clicks_only", user.clicks_only)
