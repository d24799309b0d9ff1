"""Figure 1 of both papers: how often clicks over a query chain give a better ranking than the one shown."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from heedful.figures.figure import Check, Claim, Line, Outcome, Panel, Verdict
from heedful.figures.panels import CHAINS, distribution

Array = npt.NDArray[np.float64]

CONDITIONS = ("normal", "swapped", "reversed")
ALL = "all"


def chains_panel() -> Panel:
    """The distribution functions: a line a condition, and all of them together."""
    lines = tuple(Line(condition, (condition,), "clicks") for condition in (*CONDITIONS, ALL))
    return distribution(CHAINS, "utility differences", lines)


def _share(outcome: Outcome, label: str, sign: int) -> float:
    return float(np.mean(np.sign(_rounded(outcome, label)) == sign))


def _rounded(outcome: Outcome, label: str) -> Array:
    differences = outcome[CHAINS][label].regrets.ravel()
    return np.where(np.abs(differences) < 1e-9, 0.0, differences)  # a sum in another order


def _sign_test(better: int, worse: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(better, better + worse).pvalue) if better + worse else math.nan


def mostly_better(labels: tuple[str, ...]) -> Check:
    """In each of these conditions more chains are better than worse, by the sign test."""

    def check(outcome: Outcome) -> Verdict:
        holds, told = True, []
        for label in labels:
            signs = np.sign(_rounded(outcome, label))
            better, worse = int((signs > 0).sum()), int((signs < 0).sum())
            p = _sign_test(better, worse)
            holds = holds and better > worse and p < 0.05
            told.append(f"{label}: {better} better, {worse} worse of {signs.size}, p = {p:.2g}")
        return Verdict(holds, "; ".join(told))

    return check


def about_as_often(label: str, better: float, worse: float, room: float = 0.1) -> Check:
    """The shares of better and of worse chains are those of the paper, give or take `room`."""

    def check(outcome: Outcome) -> Verdict:
        b, w = _share(outcome, label, 1), _share(outcome, label, -1)
        holds = abs(b - better) <= room and abs(w - worse) <= room
        return Verdict(
            holds, f"better {b:.0%} (paper {better:.0%}), worse {w:.0%} (paper {worse:.0%}), equal {1 - b - w:.0%}"
        )

    return check


def unchanged_as_often(label: str, share: float, room: float = 0.1) -> Check:
    """Of the chains where nothing was gained or lost, in as many as in the paper the clicks changed nothing."""

    def check(outcome: Outcome) -> Verdict:
        same = outcome[CHAINS][label].M[_rounded(outcome, label) == 0.0]
        found = float(same.mean()) if same.size else math.nan
        return Verdict(abs(found - share) <= room, f"{found:.0%} of {same.size} (paper {share:.0%})")

    return check


STUDY = (
    Claim(
        "Over all conditions the feedback is better on about 60 % of the queries and worse on about 10 %.",
        (CHAINS,),
        about_as_often(ALL, 0.6, 0.1),
    ),
    Claim("More are better than worse, significantly (binomial sign test).", (CHAINS,), mostly_better((ALL,))),
    Claim(
        "That is so whatever the quality of the ranking shown: as it was, top two swapped, reversed.",
        (CHAINS,),
        mostly_better(CONDITIONS),
    ),
    Claim(
        "Where nothing is gained or lost, 88 % of the time it is because the clicks change nothing.",
        (CHAINS,),
        unchanged_as_often(ALL, 0.88),
    ),
)
