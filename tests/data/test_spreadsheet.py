"""Texts that a spreadsheet would run."""

from __future__ import annotations

import pytest

from heedful.data.spreadsheet import plain_cell, text_of


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'=1", "''-1"])
def test_what_begins_as_a_formula_stays_a_text(text: str) -> None:
    assert plain_cell(text) == f"'{text}"
    assert text_of(f"{plain_cell(text)}") == text


@pytest.mark.parametrize("text", ["", "a=b", "1", " =1", "Ärger", "'", "'a", "''"])
def test_all_else_is_as_it_was(text: str) -> None:
    assert plain_cell(text) == text
    assert text_of(text) == text


def test_numbers_stay_numbers() -> None:
    assert [plain_cell(value) for value in ("=1", -0.5, -3, None)] == ["'=1", -0.5, -3, None]
