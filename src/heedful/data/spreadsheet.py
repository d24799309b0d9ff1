"""Texts in a CSV that people open in a spreadsheet."""

from __future__ import annotations

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula, which it runs."""


def plain_cell(text: str) -> str:
    """A text as a cell that stays a text: behind an apostrophe where it begins as a formula does."""
    return f"'{text}" if text.startswith(FORMULAS) else text
