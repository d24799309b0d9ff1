"""What somebody may say of a new loop of one kind, on a command line and before there is a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class LoopOption(NamedTuple):
    """An option of `heedful init` that only loops of one kind have."""

    name: str
    help: str
    takes: type = bool
    """what its value is; bool for a flag"""
    metavar: str | None = None
    default: str | None = None
    """what holds where it is not given, in words"""


class Chosen(NamedTuple):
    """What options come to."""

    learner: str | None
    """None for the default of the settings"""
    settings: Mapping[str, Any] = {}  # nobody writes to it
    """fields of `Settings`, by name"""
