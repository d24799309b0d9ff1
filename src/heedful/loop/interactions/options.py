"""Options of `heedful init` that belong to one kind of feedback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from heedful.features import Encoding


class LoopOption(NamedTuple):
    """An option of the command `heedful init` that only loops of one kind of feedback have."""

    name: str
    """the name of its value: "cost_weight\""""
    help: str
    """the text for it in `--help`"""
    takes: type = bool
    """the type of its value; bool for a flag"""
    metavar: str | None = None
    """the name of the value in `--help`: "LOW..HIGH"; None for a flag"""
    default: Any = None
    """the value that holds if the option is not given; None for none"""
    setting: str = ""
    """the field of `Settings` that it sets; "" for none"""
    read: Callable[[Any], Any] | None = None
    """a function of the value that returns that of the setting, or raises ValueError, naming the option; None where
    both are the same"""
    learner: Callable[[str | None, Any], str] | None = None
    """a function of (the learner that was named, None if none was; the value) that returns the learner of the loop"""
    context: Callable[[Any], Encoding] | None = None
    """a function of the value that returns the encoding of requests"""

    @property
    def flag(self) -> str:
        """the option as people write it: "--cost-weight\""""
        return f"--{self.name.replace('_', '-')}"
