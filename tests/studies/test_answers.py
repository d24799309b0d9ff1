"""Answers of a study by name."""

from __future__ import annotations

import pytest

from heedful.data.orders import Answered
from heedful.studies.answers import Said, _answered


@pytest.mark.parametrize(
    ("shown", "answer", "wanted"),
    [
        (("a", "b"), "second", Answered("ann", (("b",), ("a",)), 1, "a")),
        (("a", "first"), "first", Answered("ann", (("a",), ("first",)), 1, "a")),
        (("a", "first", "b"), "first", Answered("ann", (("first",), ("a", "b")))),
        (("a", "b", "second"), "second", Answered("ann", (("second",), ("a", "b")))),
    ],
)
def test_a_side_is_one_of_two(shown: tuple[str, ...], answer: str, wanted: Answered) -> None:
    """In more than two, first and second are items of that name."""
    assert _answered(Said(0, "ann", "ann", shown, answer)) == wanted
