"""Counts, shares and levels in words: nothing uncertain is rounded to nothing or to all."""

from __future__ import annotations

import pytest

from heedful.core.wording import count, percent, share, share_of


@pytest.mark.parametrize(
    ("p", "told"),
    [
        (0.0, "< 1 %"), (1e-9, "< 1 %"), (0.005, "< 1 %"), (0.0051, "1 %"), (0.42, "42 %"), (0.994, "99 %"),
        (0.9951, "> 99 %"), (0.99999, "> 99 %"), (1.0, "100 %"), (1.0 - 1e-13, "100 %"),
    ],
)  # fmt: skip
def test_a_probability_is_rounded_neither_to_0_nor_to_100(p: float, told: str) -> None:
    assert share(p) == told


def test_a_share_of_counts_is_0_only_where_there_is_none() -> None:
    told = [share_of(*each) for each in ((0, 0), (0, 9), (1, 1000), (1, 3), (999, 1000), (9, 9))]
    assert told == ["0 %", "0 %", "< 1 %", "33 %", "> 99 %", "100 %"]


@pytest.mark.parametrize(
    ("part", "told"),
    [(0.0, "0 %"), (0.9, "90 %"), (0.9995, "100 %"), (0.1234, "12.3 %"), (1.0, "100 %"), (12.0, "1200 %")],
)
def test_a_level_has_three_figures_and_no_power_of_ten(part: float, told: str) -> None:
    assert percent(part) == told


def test_a_level_may_have_other_figures_and_a_sign() -> None:
    assert (percent(1.0, 2), percent(0.256, 2), percent(0.999999, 6)) == ("100 %", "26 %", "99.9999 %")
    assert [percent(part, sign=True) for part in (0.0, 0.5, -0.0123, 1.0)] == ["+0 %", "+50 %", "-1.23 %", "+100 %"]


def test_a_count_has_its_noun_in_the_right_number() -> None:
    told = [count(1, "list"), count(0, "list"), count(2000, "list"), count(1, "person", "people")]
    assert told == ["1 list", "0 lists", "2,000 lists", "1 person"]
    assert count(3, "person", "people") == "3 people"
