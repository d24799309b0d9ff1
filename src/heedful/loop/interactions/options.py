"""Options of `heedful init` that belong to one kind of feedback."""

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
    """what holds if the option is not given, in words"""


class KindChoice(NamedTuple):
    """The learner and settings that the options of `heedful init` for one kind of feedback stand for."""

    learner: str | None
    """the name of the learner; None for the default of the settings"""
    settings: Mapping[str, Any] = {}  # nobody writes to it
    """fields of `Settings`, by name"""
