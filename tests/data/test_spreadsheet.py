"""Texts that a spreadsheet would run."""

from __future__ import annotations

import pytest

from heedful.data.spreadsheet import plain_cell


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_what_begins_as_a_formula_stays_a_text(text: str) -> None:
    assert plain_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=b", "1", "'=1", " =1", "Ärger"])
def test_all_else_is_as_it_was(text: str) -> None:
    assert plain_cell(text) == text
