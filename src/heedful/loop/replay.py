"""A model made again from the log: the one function of which every model of a loop is the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heedful.loop.batch import Batch, Kept, NotCompiled
from heedful.loop.fold import Fold
from heedful.loop.history import History
from heedful.loop.model import LoopModel, Moves

Start = Callable[[LoopModel], tuple[int, Moves]]
"""Loads a stored state into a model that has learned nothing, and returns (the sequence number up to which it has
learned, how much feedback it is made of)."""


FOLDS: set[object] = set()
"""One object for each `replay` that is under way in this process, for the metrics of a server."""


def from_nothing(model: LoopModel) -> tuple[int, Moves]:
    """Leave `model` as it is: it has learned nothing."""
    return 0, Moves()


def replay(
    history: History,
    head: int,
    failed: Mapping[int, str] | None = None,
    start: Start = from_nothing,
    batched: bool = True,
    kept: Kept | None = None,
) -> Fold:
    """Return a new model that has learned all feedback in the log up to sequence number `head`, in order, with its
    counts and what the learner failed on.

    It begins from the state that `start` loads, and leaves out the feedback in `failed`. Much feedback is learned in
    batches, compiled, unless `batched` is False: the model is the same. What is in `kept`, if it is given, is not read
    from the log, and it keeps the rest. Events after `head`, which other processes append meanwhile, are left for
    later.
    """
    FOLDS.add(this := object())
    try:
        while True:
            fold = Fold(history, failed)
            position, fold.moves = start(fold.model)
            try:
                learn(history, fold, position, head, batched, kept)
            except NotCompiled as error:
                history.note(str(error))
                batched = False
                continue
            if not fold.broken:
                return fold
            failed = fold.failed  # it may have stopped half-way: once more, without that lesson
    finally:
        FOLDS.discard(this)


def learn(history: History, fold: Fold, position: int, head: int, batched: bool, kept: Kept | None) -> None:
    """Let `fold`, which has learned all up to event `position`, learn the feedback after it up to `head`, as `replay`
    says; if the learner fails on some, learning ends there. Raise NotCompiled if batches cannot be learned."""
    batch = Batch.begin(history, fold, history.log.count("feedback", position, head)) if batched else None
    if batch is not None:
        if kept is not None:
            retractions = history.log.retractions(head)
            if kept.fits(position, retractions, fold.failed):
                position = kept.learn(history, batch, position, head, retractions)
            else:
                kept.begin(position)
            kept.without(retractions, fold.failed)
            batch.kept = kept if position == kept.up_to else None  # else it ends later, or not all of it is kept
        if position < head and not fold.broken:
            batch.read(history, position, head)
        if batch.kept is not None and not fold.broken:
            batch.kept.up_to = head
        batch.check()
        return
    for lesson in history.steps([fold.model], position, head):
        fold.learn(history, *lesson)
        if fold.broken:
            return
