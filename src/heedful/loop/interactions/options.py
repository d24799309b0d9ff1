"""Options of one kind of loop, for a command line and before there is a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class LoopOption(NamedTuple):
    """An option of `heedful init` that only loops of one kind have."""

    name: str
    help: str
    takes: type = bool
    """the type of its value; bool for a flag"""
    metavar: str | None = None
    default: str | None = None
    """what holds without it, in words"""


class KindChoice(NamedTuple):
    """The result of the options of a kind."""

    learner: str | None
    """the learner; None for the default of the settings"""
    settings: Mapping[str, Any] = {}  # nobody writes to it
    """fields of `Settings`, by name"""
