"""The statistics of paired runs, in numbers and in words, and the three conclusions that they allow.

One rule for every claim: a claim says where a difference lies. It holds where the 95 % interval of the difference lies
wholly there, does not hold where it lies wholly elsewhere, and cannot be told where the interval reaches into both. So
an inequality is a t-test, and an equality an equivalence test with the margin that the claim names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.experiments.run import standard_error
from heedful.papers.figure import FAILS, HOLDS, OPEN, Conclusion, PairedTest, Verdict

Array = npt.NDArray[np.float64]
Key = TypeVar("Key")

SIGNIFICANT = 0.05


def paired_t_test(a: Array, b: Array) -> PairedTest:
    """Return a paired t-test of the mean of a - b against 0, for `a` and `b` (runs,); the p-value is NaN with one run,
    and 0 or 1 if all differences are equal."""
    d = np.asarray(a - b, np.float64)
    n, mean = d.size, float(d.mean())
    return t_test(mean, float(standard_error(d)) if n > 1 else math.nan, n, n - 1.0)


def welch_t_test(a: Array, b: Array) -> PairedTest:
    """Return Welch's t-test of the difference of the means of `a` and `b`, samples from different runs; `pairs` of the
    result is the size of the smaller sample."""
    n = min(a.size, b.size)
    difference = float(a.mean() - b.mean())
    if n < 2:
        return t_test(difference, math.nan, n, math.nan)
    va, vb = (float(standard_error(x)) ** 2 for x in (a, b))
    weight = va**2 / (a.size - 1) + vb**2 / (b.size - 1)
    return t_test(difference, math.sqrt(va + vb), n, (va + vb) ** 2 / weight if weight else math.inf)


def t_test(difference: float, error: float, pairs: int, freedom: float) -> PairedTest:
    """Return the t-test of a `difference` against 0, given its standard `error`, the number of `pairs` and the degrees
    of `freedom`."""
    if math.isnan(error):
        return PairedTest(difference, math.nan, math.nan, math.nan, pairs, freedom)
    if error == 0.0:
        t = math.copysign(math.inf, difference) if difference else 0.0
        return PairedTest(difference, 0.0, t, 0.0 if difference else 1.0, pairs, freedom)
    from scipy.special import stdtr

    t = difference / error
    return PairedTest(difference, error, t, float(2.0 * stdtr(freedom, -abs(t))), pairs, freedom)


def reach(test: PairedTest, level: float = SIGNIFICANT) -> float:
    """Return half the width of the confidence interval of the difference `test`, at 1 - `level` (95 % for 0.05);
    infinite with one run."""
    if math.isnan(test.stderr):
        return math.inf
    if test.stderr == 0.0:
        return 0.0
    from scipy.special import stdtrit

    return float(-stdtrit(test.freedom, level / 2.0) * test.stderr)


class Part(NamedTuple):
    """A part of a claim: a difference, and the interval (`low`, `high`) in which it lies if the claim is right."""

    test: PairedTest
    """the difference with its test"""
    low: float = -math.inf
    """the lower end of the interval"""
    high: float = math.inf
    """the upper end of the interval"""

    def conclusion(self, tests: int = 1) -> Conclusion:
        """Return the conclusion from the 95 % interval of the difference: the claim holds if the interval lies within
        (low, high), fails if it lies outside, and is open otherwise.

        If the part is one of several `tests` of which any may fail the claim, failing needs the interval of level 0.05
        / tests.
        """
        difference, inner, outer = self.test.difference, reach(self.test), reach(self.test, SIGNIFICANT / tests)
        if self.low < difference - inner and difference + inner < self.high:
            return HOLDS
        return FAILS if difference + outer <= self.low or difference - outer >= self.high else OPEN


def below(a: Array, b: Array) -> Part:
    """Return the part of a claim that `a` is lower than `b` on average, paired by run, (runs,) each."""
    return Part(paired_t_test(a, b), high=0.0)


def all_hold(parts: Sequence[Part]) -> Conclusion:
    """Return the conclusion of a claim whose parts all have to hold: FAILS if one part fails, at the level 0.05 /
    number of parts; HOLDS if all hold; else OPEN."""
    conclusions = [part.conclusion(len(parts)) for part in parts]
    return FAILS if FAILS in conclusions else HOLDS if conclusions == [HOLDS] * len(conclusions) else OPEN


def one_holds(parts: Sequence[Part]) -> Conclusion:
    """Return the conclusion of a claim of which at least one part has to hold: HOLDS if one holds, at the level 0.05 /
    number of parts; FAILS if all fail; else OPEN.

    Raise ValueError for a part that has a `low`."""
    if any(part.low > -math.inf for part in parts):
        raise ValueError("low: expected none in a part of a claim of which one has to hold")
    against = all_hold([Part(part.test, low=part.high) for part in parts])
    return {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}[against]


def verdict_on_all(parts: Mapping[str, Part], words: str = "") -> Verdict:
    """Return the verdict on a claim whose `parts` all have to hold: `words`, followed by what the least certain part is
    and the test of its difference.

    The least certain part is that whose difference has the least distance, in standard errors, to an end of the
    interval that the claim gives; its difference need not be the smallest. The keys of `parts` name their differences,
    such as "a less b"."""
    test, detail = weakest(parts)
    return Verdict(all_hold(list(parts.values())), words + detail, test)


def weakest(parts: Mapping[str, Part]) -> tuple[PairedTest, str]:
    """Return (the test of the least certain of the `parts` of a claim, words that name it and describe the test)."""

    def within(part: Part) -> tuple[float, float]:
        room = min(part.high - part.test.difference, part.test.difference - part.low)
        error = part.test.stderr
        return (room / error if error > 0.0 else math.copysign(math.inf, room), room)

    name = min(parts, key=lambda name: within(parts[name]))
    test = parts[name].test
    return test, f"{'the least certain, ' if len(parts) > 1 else ''}{name}: {describe(test)}"


def lowest(ends: dict[Key, Array], best: Key, names: dict[Key, str], form: str) -> Verdict:
    """Return the verdict on the claim that the curve with the key `best` ends lower than each other curve.

    `ends` has the final values of each curve (runs,) by key, `names` their names in words; `form` is the format of the
    final values in the text.
    """
    parts = {f"{names[best]} less {names[key]}": below(ends[best], end) for key, end in ends.items() if key != best}
    least = min(ends, key=lambda value: ends[value].mean())
    words = f"lowest at {names[least]} with {ends[least].mean():{form}}"
    if best != least:
        words += f"; {names[best]} has {ends[best].mean():{form}}"
    return verdict_on_all(parts, f"{words}; ")


def fact(holds: bool) -> Conclusion:
    """Return the conclusion HOLDS or FAILS from `holds`, for a claim that is computed or counted exactly and needs no
    test.
    """
    return HOLDS if holds else FAILS


def describe(test: PairedTest) -> str:
    """Return the difference, standard error, p-value and number of pairs of the test `test` as text."""
    if math.isnan(test.p):
        return f"difference {test.difference:+.3g}, no test of {test.pairs} pair{'s' * (test.pairs != 1)}"
    p = "p < 0.0001" if test.p < 1e-4 else f"p = {test.p:.2g}"
    return f"difference {test.difference:+.3g} ± {test.stderr:.2g}, {p}, {test.pairs} pairs"


def percentage(part: float, form: str = ".0f") -> str:
    """Return the share `part` as a percentage in the number format `form`: "60 %", with "+.1f" "+54.9 %"."""
    return f"{100.0 * part:{form}} %"


def describe_interval(part: Part, unit: float = 1.0, form: str = "+.3g", after: str = "") -> str:
    """Return the 95 % interval of the difference that a part of a claim is about, in units of `unit`, in the number
    format `form` with `after` after each number, and the p-value of its equivalence test, as text."""
    test, half_width = part.test, reach(part.test)
    pairs = f"{test.pairs} pair{'s' * (test.pairs != 1)}"
    if math.isinf(half_width):
        return f"no interval of {pairs}"
    ends = (test.difference - half_width) / unit, (test.difference + half_width) / unit
    p = equivalence(part)
    words = "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"
    return f"95 % interval {ends[0]:{form}}{after} to {ends[1]:{form}}{after}, {words}, {pairs}"


def equivalence(part: Part) -> float:
    """Return the p-value of the equivalence test that the difference of a part of a claim lies in its (low, high): the
    lowest level at which the confidence interval lies within; 1 if the difference itself does not, NaN with one run."""
    test = part.test
    room = min(part.high - test.difference, test.difference - part.low)
    if math.isnan(test.stderr):
        return math.nan
    if room <= 0.0:
        return 1.0
    if test.stderr == 0.0:
        return 0.0
    from scipy.special import stdtr

    return float(2.0 * stdtr(test.freedom, -room / test.stderr))


def log_spaced(T: int, n: int = 60) -> npt.NDArray[np.int64]:
    """Return at most `n` distinct rounds of 1..T, evenly spaced on a logarithmic scale."""
    return np.unique(np.geomspace(1, T, n).round().astype(np.int64))


def ratio(u: Array, v: Array) -> float:
    """Return the mean of `u` over the mean of `v`, values of runs (runs,); NaN if the latter is 0."""
    return float(u.mean() / v.mean()) if v.mean() else math.nan
