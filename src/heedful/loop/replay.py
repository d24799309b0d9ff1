"""A model made again from the log: the one function of which every model of a loop is the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heedful.loop import segments
from heedful.loop.fold import Fold
from heedful.loop.history import History
from heedful.loop.model import LoopModel, Moves

Start = Callable[[LoopModel], tuple[int, Moves]]
"""Loads a stored state into a model that has learned nothing, and returns (the sequence number up to which it has
learned, how much feedback it is made of)."""


def from_nothing(model: LoopModel) -> tuple[int, Moves]:
    """Leave `model` as it is: it has learned nothing."""
    return 0, Moves()


def replay(
    history: History,
    head: int,
    failed: Mapping[int, str] | None = None,
    start: Start = from_nothing,
    sealed: bool = True,
) -> Fold:
    """Return a new model that has learned all feedback in the log up to sequence number `head`, in order, with its
    counts and what the learner failed on.

    It begins from the state that `start` loads, and leaves out the feedback in `failed`. What is in sealed segments is
    read from these, unless `sealed` is False: the model is the same. Events after `head`, which other processes append
    meanwhile, are left for later.
    """
    while True:
        fold = Fold(history, failed)
        position, fold.moves = start(fold.model)
        if sealed:
            position = segments.learn(history, fold, position, head)
        if not fold.broken:
            for lesson in history.steps([fold.model], position, head):
                fold.learn(history, *lesson)
                if fold.broken:
                    break
        if not fold.broken:
            return fold
        failed = fold.failed  # it may have stopped half-way: once more, without that lesson
