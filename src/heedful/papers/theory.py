"""Theoretical bounds on the regret of a learner in a figure, where the theorem's hypotheses hold; otherwise the one
that fails.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.fold import play
from heedful.diagnostics import Bound, Facts, bounds, slacks, true_utilities
from heedful.experiments.setting import Setting
from heedful.papers.figure import AVERAGE, QUADRATIC, Measure
from heedful.worlds.users import ExpectedAlpha, StrictAlpha

Array = npt.NDArray[np.float64]


SLACK_ROUNDS = 784
"""the number of rounds that `with_slack` plays, interpreted: one pass through the queries"""


class Guarantee(NamedTuple):
    """A theoretical bound on regret, or the reason why there is none."""

    theorem: str
    """the name of the theorem; "" for none"""
    marks: Array
    """(n,) the rounds at which the bound is given"""
    values: Array
    """(n,) the bound at these rounds, the mean over runs"""
    lacking: str = ""
    """why there is no bound, in words; "" if there is one"""


NONE = Guarantee("", np.empty(0), np.empty(0))


def guaranteed_regret(learner: Any, user: object, setting: Setting, measure: Measure, marks: Array) -> Guarantee:
    """Return the theoretical bound on the regret of `learner`, as the quantity `measure`, at the rounds `marks` (n,),
    taught by the simulated person `user` in `setting` (the environments and what they share), for alpha-informative
    feedback without slack.

    It is empty, with the reason, if the person's feedback is not alpha-informative or no theorem covers the learner.
    """
    if not isinstance(user, StrictAlpha | ExpectedAlpha):
        return NONE
    T, total, by_weights, theorem = int(marks[-1]), np.zeros(marks.size), dict[bytes, Array](), ""
    for scene in setting.scenes:
        facts = Facts(scene.w_star, setting.R, setting.S, user.alpha, np.zeros(T), isinstance(user, ExpectedAlpha))
        key = scene.w_star.tobytes()
        if key not in by_weights:
            bound = _of(learner, facts, measure)
            if bound is None:
                return NONE
            if not bound.holds:
                return NONE._replace(theorem=bound.theorem, lacking="; ".join(bound.lacking))
            theorem, by_weights[key] = bound.theorem, bound.values[marks.astype(int) - 1]
        total += by_weights[key]
    rounds = 1.0 if measure == AVERAGE else marks  # what adds up is bounded by t times the average's bound
    return Guarantee(theorem, marks, total / len(setting.scenes) * rounds)


def with_slack(learner: Any, setting: Setting, measure: Measure, marks: Array, alpha: float, runs: int) -> Guarantee:
    """Return the theoretical bound on the regret of `learner`, as the quantity `measure`, for any feedback: it includes
    the slacks, by which answers gain less than `alpha` times the regret, as measured.

    For that, the first `runs` runs of `setting` (the environments and what they share) are played again. Only rounds in
    `marks` up to 784 have a bound.
    """
    marks = marks[marks <= SLACK_ROUNDS]
    values, theorem = np.zeros(marks.size), ""
    for scene in setting.scenes[:runs]:
        facts = Facts(scene.w_star, setting.R, setting.S, alpha, np.zeros(int(marks[-1])))
        bound = _of(learner, facts, measure)
        if bound is None:
            return NONE
        if not bound.holds:
            return NONE._replace(theorem=bound.theorem, lacking="; ".join(bound.lacking))
        log = (played for played, _ in play(learner, scene.world, int(marks[-1]), scene.draw))
        xi = slacks(true_utilities(log, setting.space, scene.w_star), alpha)
        slackened = _of(learner, facts._replace(slack=xi), measure) or bound
        theorem = slackened.theorem
        values += slackened.values[marks.astype(int) - 1] / runs
    rounds = 1.0 if measure == AVERAGE else marks
    return Guarantee(f"{theorem} with the slack measured at alpha = {alpha:g}", marks, values * rounds)


def _of(learner: Any, facts: Facts, measure: Measure) -> Bound | None:
    expected = "CREG" if measure == QUADRATIC else "REG"
    return next((bound for bound in bounds(learner, facts) if bound.measure == expected), None)
