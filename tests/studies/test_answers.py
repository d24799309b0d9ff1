"""Answers of a study by name."""

from __future__ import annotations

import pytest

from heedful.data.comparisons import Comparison, comparison_of


@pytest.mark.parametrize(
    ("shown", "answer", "wanted"),
    [
        (("a", "b"), "second", Comparison("ann", (("b",), ("a",)), 1, "a")),
        (("a", "first"), "first", Comparison("ann", (("a",), ("first",)), 1, "a")),
        (("a", "first", "b"), "first", Comparison("ann", (("first",), ("a", "b")))),
        (("a", "b", "second"), "second", Comparison("ann", (("second",), ("a", "b")))),
    ],
)
def test_a_side_is_one_of_two(shown: tuple[str, ...], answer: str, wanted: Comparison[str]) -> None:
    """In more than two, first and second are items of that name."""
    assert comparison_of("ann", shown, answer) == wanted
