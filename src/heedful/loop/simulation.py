"""The true utility of simulated people, stored with a loop, so that its regret can be compared with the theorems'
bounds.

A file `simulation.json` in the loop's folder holds what the simulated people want: utility weights w* by feature, and
the alpha of their answers. A loop that real people teach has no such file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.evaluation.answers import Answer
from heedful.evaluation.expected import list_gain
from heedful.jit.kernel import top
from heedful.loop.history import History
from heedful.loop.interactions.protocol import Step
from heedful.loop.packing import LoggedDecision
from heedful.loop.snapshots import read_own
from heedful.results.report import At, MeasuredRegret
from heedful.spaces.ranking import Ranking
from heedful.storage import Address, place_of
from heedful.worlds.queries import feature_bounds
from heedful.worlds.users import utility

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FILE = "simulation.json"
LARGEST = 2**26
"""The most bytes that `simulation.json` may have."""
POINTS = 100
"""The most points of a regret curve."""


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The true utility of the simulated people who teach a loop: a weight for each feature. Kept in its
    simulation.json."""

    weights: dict[str, float]
    """w*: the utility weight of each feature, by the feature's name in the loop; 0 for features that are not named"""
    alpha: float | None = None
    """the alpha of alpha-informative answers: every answer gains at least this share, above 0 and up to 1, of the
    utility that could be gained; None if the people promise no such share"""

    def write(self, folder: str | Path) -> Path:
        """Write this to `simulation.json` in the loop's `folder` and return the file's path. Raise OSError if it cannot
        be written."""
        path = Path(folder) / FILE
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        return path

    @classmethod
    def read(cls, folder: str | Path | Address) -> Simulation | None:
        """Return what `simulation.json` in the loop's `folder` holds; None if there is no such file, as of a loop in a
        database.

        Raise ValueError if it makes no sense."""
        try:
            found = msgspec.json.decode(read_own(place_of(folder), FILE, most=LARGEST), type=cls)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueError(f"{FILE}: expected weights by feature, and alpha, got: {error}") from None
        if found.alpha is not None and not 0.0 < found.alpha <= 1.0:
            raise ValueError(f"{FILE}: alpha: expected a number above 0, at most 1, got {found.alpha}")
        return found


class SimulatedAnswer(NamedTuple):
    """A piece of feedback of a simulated person, with the decision that it answers."""

    step: Step
    """the feedback and the decision"""
    answer: Answer | None
    """what it says; None if nothing was learned from it, or feedback of this kind corrects no list"""


class _Round(NamedTuple):
    """One learned list that was answered: its regret, the `gain` in utility of the first answer, and the bounds `R`
    (Euclidean norm) and `S` (sup norm) of the feature vectors of all lists of its candidates, of which the theorems'
    bounds are made."""

    version: int  # of the model that made it
    answers: list[int]  # their sequence numbers
    regret: float
    gain: float  # of the first answer; -inf where that is no better list
    R: float  # bounds of |phi|, Euclidean and sup norm, over all lists of these candidates
    S: float
    prior: bool


class Truth:
    """Measures the regret of a loop by the true utility of its simulation; give it decisions with `take`, newest
    first."""

    def __init__(self, history: History, simulation: Simulation) -> None:
        """Measure the regret of the loop whose log and model are `history`, by the utility in `simulation`.

        Raise ValueError if `simulation` has weights of features that the loop does not have."""
        names = history.interaction.names
        strange = [name for name in simulation.weights if name not in names]
        if strange:
            raise ValueError(f"{FILE}: weights: expected features of the loop, got {strange[0]!r}")
        self.simulation = simulation
        self.w_star = np.array([simulation.weights.get(name, 0.0) for name in names])
        self._learner, self._settings, self._k = history.learner, history.settings, history.settings.k
        self._rounds: list[_Round] = []
        self._disturbed = "a lesson failed in the learner" if history.failed else ""

    def disturb(self, why: str) -> None:
        """Note that the regret bounds do not apply to this log, because of `why`, unless a reason was noted already."""
        self._disturbed = self._disturbed or why

    def take(self, decision: LoggedDecision, given: Sequence[SimulatedAnswer]) -> None:
        """Add one decision: compute the regret of its list and, for the bound, how much utility the feedback on it
        gained.

        `given` is the feedback on it, in order. Only learned lists that were answered count."""
        record = decision.record
        if record.arm != "learned":
            if any(said.answer is not None for said in given):
                self.disturb("something was learned from lists that the loop did not make")
            return
        if not given or not record.shown:
            return
        step, answer = given[0]
        shown, x = np.array(record.shown, np.int64), step.context.x
        u = x @ self.w_star
        positions = min(self._k, shown.size)
        regret = utility(u, top(u, positions), positions) - utility(u, shown, positions)
        gain = 0.0 if answer is None else -math.inf
        if (
            answer is not None
            and not (answer.values or answer.pairs or answer.verdict)
            and all(abs(weight) == 1.0 for weight in answer.weights.values())  # a step of the learner's own length
        ):
            gain = list_gain(record.shown, answer, lambda items: step.rows(items) @ self.w_star, self._k)
        R, S = feature_bounds(x, np.array([0, len(x)]), Ranking(positions))
        seqs = [said.step.event.seq for said in given]
        self._rounds.append(_Round(decision.version, seqs, regret, gain, R, S, bool(record.prior)))

    def regret(self, whole: bool) -> MeasuredRegret:
        """Return the regret over the decisions given to `take`, and its bound.

        `whole` says whether they go back to the beginning of the log; otherwise there is no bound."""
        rounds = self._rounds[::-1]
        if not rounds:
            return MeasuredRegret(0, None, None, "no learned list was answered so far", ())
        t = np.arange(1, len(rounds) + 1)
        average = np.cumsum([each.regret for each in rounds]) / t
        marks = np.unique(np.geomspace(1, t.size, min(POINTS, t.size)).round().astype(np.int64))
        unbound = self._unbound(rounds, whole)
        bounds: Any = None
        if not unbound:
            R, S = max(each.R for each in rounds), max(each.S for each in rounds)
            bounds = self._learner.regret_bound(marks.astype(np.float64), self.simulation.alpha, self.w_star, R, S)
            if not np.isfinite(bounds).all():
                bounds, unbound = None, "the theorem takes other parameters of the learner, for this person"
        limits = [None] * marks.size if bounds is None else bounds.tolist()
        curve = tuple([At(int(n), float(average[n - 1]), limit) for n, limit in zip(marks, limits)])
        return MeasuredRegret(len(rounds), float(average[-1]), limits[-1], unbound, curve)

    def _unbound(self, rounds: list[_Round], whole: bool) -> str:
        """Return the first hypothesis of Theorems 1, 5 and 6 of Shivaswamy & Joachims 2015 ([J15]) that `rounds`
        violate, in words.

        No bound on the regret holds for them then; "" if all hypotheses hold. `whole` says whether the rounds begin
        with the loop's first."""
        alpha = self.simulation.alpha
        if not hasattr(self._learner, "regret_bound"):
            return f"there is no theorem for {type(self._learner).__name__}"
        if alpha is None:
            return "the simulated person does not promise to gain a share of what could be gained"
        if not whole:
            return "older lists were not looked at, and a bound counts from the first"
        if self._settings.shrink > 0.0:
            return "people have offsets of their own"
        if any(each.prior for each in rounds):
            return "lists came with the caller's own score"
        if self._disturbed:
            return self._disturbed
        if any(len(each.answers) > 1 for each in rounds):
            return "a list was answered more than once"
        if any(later.version < before.answers[0] for before, later in pairwise(rounds)):
            return "a list was made before the one before it was answered"
        # Rounding: phi and w* are sums of many products.
        if any(each.gain < alpha * each.regret - 1e-9 * (1.0 + each.R) for each in rounds):
            return "not every answer gains its share: somebody else answered, too"
        return ""
