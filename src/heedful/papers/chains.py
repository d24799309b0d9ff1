"""Figure 1 of [C12] and [J15]: how often clicks over a query chain give a better ranking than the one shown.

A query chain is the queries of one search session; several rankings of it are shown, one for each condition (as they
were, or degraded on purpose). Three functions here make checks: functions from the results of a figure to a verdict on
one of the paper's claims.

[C12]: Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012; [J15]: Shivaswamy &
Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.diagnostics import sign_test
from heedful.papers.figure import FAILS, HOLDS, OPEN, Check, Claim, Conclusion, Line, Outcome, Panel, Verdict
from heedful.papers.panels import CHAINS, distribution
from heedful.papers.statistics import SIGNIFICANT, Part, all_hold, paired_t_test, percentage, reach, weakest

Array = npt.NDArray[np.float64]

CONDITIONS = ("normal", "swapped", "reversed")
ALL = "all"
ROOM = 0.1
"""the greatest difference of a share from the paper's, either way, with which they count as equal"""


def chains_panel() -> Panel:
    """Return the plot of [J15] Figure 1: the distribution of the gain in DCG@10 over query chains, one curve for each
    condition under which rankings were shown, and one for all of them.
    """
    lines = tuple(Line(condition, (condition,), "clicks") for condition in (*CONDITIONS, ALL))
    return distribution(CHAINS, "utility differences", lines)


def _signs(outcome: Outcome, label: str) -> Array:
    """Return for the curve labelled `label` 1 where the feedback is better than the ranking shown, -1 where it is
    worse, else 0, as an array (chains x rankings shown).
    """
    differences = outcome[CHAINS][label].regrets
    return np.where(np.abs(differences) < 1e-9, 0.0, np.sign(differences))  # a sum in another order


def mostly_better(labels: tuple[str, ...]) -> Check:
    """Check that in each of the conditions `labels` significantly more query chains are better than worse, by the sign
    test.

    Several rankings of a chain count as one observation: the sign of the number of better less that of worse ones.
    """

    def check(outcome: Outcome) -> Verdict:
        conclusions, words = [], []
        for label in labels:
            net = _signs(outcome, label).sum(axis=1)
            better, worse = int((net > 0).sum()), int((net < 0).sum())
            p = sign_test(net).p
            conclusions.append(_more(better, worse, p, len(labels)))
            words.append(f"{label}: {better} better, {worse} worse of {net.size} chains, p = {p:.2g}")
        conclusion = FAILS if FAILS in conclusions else HOLDS if conclusions == [HOLDS] * len(conclusions) else OPEN
        return Verdict(conclusion, "; ".join(words))

    return check


def _more(better: int, worse: int, p: float, tests: int) -> Conclusion:
    """Return the conclusion on the claim that more chains are better than worse, from their numbers and the two-sided
    p-value `p`; to fail the claim, the p-value is corrected for `tests` of which any may fail it."""
    if better > worse and p < SIGNIFICANT:
        return HOLDS
    return FAILS if worse > better and p < SIGNIFICANT / tests else OPEN


def about_as_often(label: str, better: float, worse: float) -> Check:
    """Check that on the curve `label`, the shares of rankings that are better and that are worse than the one shown
    equal the paper's shares `better` and `worse` (0 to 1), within 0.1 (ROOM) either way. For the test, each query chain
    is one observation."""

    def check(outcome: Outcome) -> Verdict:
        signs = _signs(outcome, label)
        parts, words = dict[str, Part](), []
        for name, sign, paper in (("better", 1, better), ("worse", -1, worse)):
            share = (signs == sign).mean(axis=1)
            parts[name] = Part(paired_t_test(share, np.full(share.size, paper)), -ROOM, ROOM)
            wide = reach(parts[name].test)
            expected = f"paper {percentage(paper)}, expected ±{percentage(ROOM)}"
            words.append(f"{name} {percentage(share.mean())} ± {percentage(wide)} ({expected})")
        listed = f"{', '.join(words)}, equal {percentage((signs == 0).mean())}; 95 % intervals over {len(signs)} chains"
        return Verdict(all_hold(list(parts.values())), listed, weakest(parts)[0])

    return check


def as_often_unchanged(label: str, share: float) -> Check:
    """Check that of the rankings on the curve `label` after whose clicks the DCG was the same, the share `share` (0 to
    1) had clicks that left the ranking itself unchanged, as in the paper, within 0.1 (ROOM) either way.

    For the test, each query chain is one observation, so the share is a ratio of means.
    """

    def check(outcome: Outcome) -> Verdict:
        equal = _signs(outcome, label) == 0
        same = (outcome[CHAINS][label].M.reshape(equal.shape) * equal).sum(axis=1)
        cases = equal.sum(axis=1)
        if not cases.any():
            return Verdict(OPEN, "every ranking gained or lost")
        observed = same.sum() / cases.sum()
        part = Part(
            paired_t_test((same - observed * cases) / cases.mean() + observed, np.full(cases.size, share)), -ROOM, ROOM
        )
        expected = f"paper {percentage(share)}, expected ±{percentage(ROOM)}"
        words = f"{percentage(observed)} ± {percentage(reach(part.test))} of {cases.sum()} ({expected}); "
        return Verdict(part.conclusion(), f"{words}95 % interval over {cases.size} chains", part.test)

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
        as_often_unchanged(ALL, 0.88),
    ),
)
