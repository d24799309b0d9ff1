"""Options of `heedful init` that belong to one kind of feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from heedful.features import Encoding


class LoopOption(NamedTuple):
    """An option of the command `heedful init` that only loops of one kind of feedback have."""

    name: str
    """the name of its value in `Interaction.choose`: "cost_weight\""""
    help: str
    """the text for it in `--help`"""
    takes: type = bool
    """the type of its value; bool for a flag"""
    metavar: str | None = None
    """the name of the value in `--help`: "LOW..HIGH"; None for a flag"""
    default: str | None = None
    """the text in `--help` on what holds if the option is not given; None for no text"""

    @property
    def flag(self) -> str:
        """the option as people write it: "--cost-weight\""""
        return f"--{self.name.replace('_', '-')}"


class KindChoice(NamedTuple):
    """The learner and the settings of a new loop that follow from the options of `heedful init` for one kind of
    feedback."""

    learner: str | None
    """the name of the learner; None for the default of the settings"""
    settings: Mapping[str, Any] = {}  # nobody writes to it
    """fields of `Settings`, by name"""
    context: Encoding | None = None
    """the encoding of requests; None if the options say nothing of it"""
