"""Feedback learned many pieces at a time: its training examples become columns of numbers, from which a compiled loop
learns.

The model is that of learning one piece after the other, bit for bit. The columns are made of what is read from the log
or was just written to it, and stay in memory if they are not too many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from heedful.core.fold import coerce, copy_arrays, count_numbers
from heedful.jit.kernel import Ints
from heedful.loop import records
from heedful.loop.catalogue import Catalogue
from heedful.loop.fold import Fold
from heedful.loop.history import History
from heedful.loop.interactions.columns import Columns, Encoded, Lessons, in_columns
from heedful.loop.log import Event, Retractions
from heedful.loop.model import Answered, LoopModel
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord

LEAST = 40_000
"""The fewest training examples for which compiled code is loaded, which takes most of a second, of a learner whose
update takes as long as a perceptron's; of others fewer, by their `lesson_cost`."""
COMPILING = 5
"""How many times as many there have to be where that code is not on disk yet: to compile it takes some or many
seconds."""
MANY = 16_384
"""How many training examples wait, at most, to be learned together."""
NUMBERS = 4_000_000
"""The most numbers that the candidates of those have, about."""
KEPT = 8_000_000
"""The most numbers that `Kept` has, 64 MB: those of 600,000 ratings."""
PAGE = 500
"""How many events are read from the log at a time, of those that are in no column."""


class NotCompiled(Exception):
    """Raised if compiled code cannot learn something, with the reason. The model may have learned a part of it, and has
    to be made again, one piece of feedback after the other."""


class Run(NamedTuple):
    """k pieces of feedback, in order, that are learned in one go: n training examples, and which of them."""

    lessons: Lessons
    """the n training examples"""
    at: Ints
    """which of them are learned, in order (k,)"""
    seqs: Ints
    """the sequence numbers of the k pieces of feedback (k,)"""
    who: Ints
    """the person of each example, as an index in `names` (n,), -1 for nobody in particular; (0,) if `Columns.people` is
    False"""
    names: list[str]
    """the names of people"""


def are_many(lessons: int, learner: Any) -> bool:
    """Return whether so many `lessons` are worth loading compiled code of the `learner`."""
    return lessons > 0 and lessons * float(getattr(learner, "lesson_cost", 1.0)) >= LEAST


def kernel_of(model: LoopModel, columns: Columns, run: Run) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return (function, arguments): compiled code that lets `model` learn the training examples in `run`, and what to
    call it with."""
    from heedful.jit.cache import kernel_for

    args = arguments(model, columns, run)
    return kernel_for(columns.learn, *args), args


def arguments(model: LoopModel, columns: Columns, run: Run) -> tuple[Any, ...]:
    """Return the arguments of the kernel that lets `model` learn the training examples in `run`."""
    rest = columns.rest
    if columns.people:
        rest = (run.who, model.known(run.names), run.seqs)  # type: ignore[attr-defined]  # as `Columns.people` says
    return coerce(model.learner), coerce(model.shared), run.lessons, run.at, *rest


def prepare(history: History, lessons: int, say: Callable[[str], object]) -> None:
    """Compile the code by which the loop learns, so that it is on disk, if that is worth while for about so many
    `lessons`; nothing is learned. `say` is called with a sentence if that takes time."""
    model = history.fresh()
    if not are_many(lessons // COMPILING, model.learner):
        return
    if (columns := history.interaction.columns(model)) is not None:
        with suppress(Exception):  # of numba; who learns says so
            if not is_compiled(model, columns):
                say("the code that learns is compiled, some ten seconds, once on this machine")
            kernel_of(model, columns, no_run(columns))


def is_compiled(model: LoopModel, columns: Columns) -> bool:
    """Return whether the code by which `model` learns from its `columns` is in memory or on disk."""
    from heedful.jit.cache import is_cached

    return is_cached(*arguments(model, columns, no_run(columns)), kernel=columns.learn)


def no_run(columns: Columns) -> Run:
    """Return a run without training examples, with arrays of the right types."""
    nothing = np.zeros(0, np.int64)
    return Run(in_columns([], columns), nothing, nothing, nothing, [])


class Kept:
    """Training examples of a stretch of a loop's log as columns, in memory: to make the model again after an undo, only
    what came since is read from the log."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all of it."""
        self.begin(0)

    def begin(self, after: int) -> None:
        """Keep nothing, and begin after event `after`."""
        self.after = self.up_to = after
        """the sequence numbers after which the stretch begins, and with which it ends"""
        self._undone, self._spans, self._failed = set[int](), set[tuple[int, int]](), set[int]()
        self._steps: list[Run | list[int]] = []
        self._idle: list[int] = []
        self._items = set[int]()  # events of items, which no rollback leaves out
        self._size = 0

    def fits(self, after: int, retractions: Retractions, failed: Collection[int]) -> bool:
        """Return whether all is there that has to be learned after event `after`."""
        return (
            self.after <= after <= self.up_to
            and all(seq in retractions for seq in self._undone)
            and self._spans <= set(retractions.spans)
            and self._failed <= set(failed)
        )

    def without(self, retractions: Retractions, failed: Collection[int]) -> None:
        """Remember that what is kept from here on lacks what `retractions` leave out and the learner `failed` on."""
        self._undone |= {seq for seq in retractions.undone if seq > self.up_to}
        self._spans |= {span for span in retractions.spans if span[1] > self.up_to}
        self._failed |= {seq for seq in failed if seq > self.up_to}

    def add(self, step: Run | int) -> bool:
        """Keep what is learned next: training examples, or the sequence number of an event that is learned by itself.
        Return False, and keep nothing, if that would be too much."""
        if isinstance(step, Run):
            self._size += count_numbers(step)
            if self._size > KEPT:
                return False
            self._steps.append(step)
        elif self._steps and isinstance(self._steps[-1], list):
            self._steps[-1].append(step)
        else:
            self._steps.append([step])
        self.up_to = int(step.seqs[-1]) if isinstance(step, Run) else step
        return True

    def add_item(self, seq: int) -> bool:
        """Do what `add` does, with the event of an item."""
        self._items.add(seq)
        return self.add(seq)

    def idle(self, seq: int) -> None:
        """Keep that there is nothing to learn in the feedback with the sequence number `seq`."""
        self._idle.append(seq)

    def learn(self, history: History, batch: Batch, after: int, up_to: int, retractions: Retractions) -> int:
        """Let `batch` learn what is kept after event `after` up to `up_to`, without what `retractions` leave out;
        return the sequence number up to which it has learned."""
        gone, end = {*retractions.undone, *batch.fold.failed}, min(self.up_to, up_to)
        self._idle = [seq for seq in self._idle if seq <= self.up_to]  # what comes after is read again

        def counts(seqs: Ints) -> Any:
            """Return which events count (k,)."""
            left = ~np.isin(seqs, np.fromiter(gone, np.int64))
            for to, back in retractions.spans:
                left &= ~((seqs > to) & (seqs < back))
            return (seqs > after) & (seqs <= end) & (left | np.isin(seqs, np.fromiter(self._items, np.int64)))

        batch.fold.count(int(counts(np.array(self._idle, np.int64)).sum()), 0, 0)
        for step in self._steps:
            seqs = step.seqs if isinstance(step, Run) else np.array(step, np.int64)
            there = counts(seqs)
            if not there.any():
                continue
            if isinstance(step, Run):
                batch.run(step._replace(at=step.at[there], seqs=seqs[there]))
            elif not batch.events(history, seqs[there].tolist()):
                break
        return max(after, end)

    def drop(self, person: str) -> None:
        """Drop the training examples of a `person`; what they are of is not in the log any more."""
        if self._idle or any(isinstance(step, Run) and not step.who.size for step in self._steps):
            self.forget()  # nobody knows whose these are
        for j, step in enumerate(self._steps):
            if isinstance(step, Run) and person in step.names:
                theirs = step.names.index(person)
                left = step.who[step.at] != theirs
                names = ["" if name == person else name for name in step.names]
                self._steps[j] = step._replace(at=step.at[left], seqs=step.seqs[left], names=names)


class Batch:
    """Lets the model of one fold learn many pieces of feedback at a time, in order."""

    def __init__(self, fold: Fold, columns: Columns) -> None:
        """Let `fold` learn from training examples that are `columns`."""
        self.fold, self.columns = fold, columns
        self._waiting: list[Encoded] = []
        self._seqs: list[int] = []
        self._who: list[int] = []
        self._names: dict[str, int] = {}
        self._numbers = 0
        self.kept: Kept | None = None
        """where the training examples are kept, besides, if they are"""
        self._owns = False  # the arrays of the state, which compiled code writes to
        self._unchecked = False

    @classmethod
    def begin(cls, history: History, fold: Fold, lessons: int) -> Batch | None:
        """Return one for a `fold` that is to learn about so many `lessons`; None if they are too few for that to be
        faster, or cannot be columns."""
        learner = history.learner
        columns = history.interaction.columns(fold.model) if are_many(lessons, learner) else None
        if columns is None or not (are_many(lessons // COMPILING, learner) or is_compiled(fold.model, columns)):
            return None
        return cls(fold, columns)

    # ------------------------------------------------------------------------ from events

    def read(self, history: History, after: int, up_to: int) -> None:
        """Learn the feedback in the log after event `after` up to `up_to`. If the learner fails, learning ends there,
        and the fold is broken."""
        for lesson in history.steps([self], after, up_to):
            self.learn(history, *lesson)
            if self.fold.broken:
                break
        self.flush()

    def learn(self, history: History, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Learn from one piece of feedback, as `Fold.learn` does, but not before `flush`; return whether there is
        anything to learn in it. Raise NotCompiled if compiled code cannot."""
        fold, model = self.fold, self.fold.model
        if event.seq in fold.failed:
            return False
        if model.refusal(feedback.form) is not None:
            self._idle(event)
            return False
        try:
            step = history.step(event, decision, feedback)
            lesson = model.lesson(step.context, feedback, step.extra)
            encoded = None if lesson is None else self.columns.encode(lesson, step.context)
            teaches = encoded is not None and model.teaches(lesson)
        except Exception:  # interpreted, it fails too, and is noted
            return self.alone(history, event, decision, feedback)
        if lesson is None:
            self._idle(event)
            return False
        if encoded is None:
            return self.alone(history, event, decision, feedback)
        self._waiting.append(encoded)
        self._seqs.append(event.seq)
        person, names = encoded.person, self._names
        self._who.append(-1 if person is None else names.setdefault(person, len(names)))
        self._numbers += encoded.x.size
        if len(self._waiting) >= MANY or self._numbers >= NUMBERS:
            self.flush()
        return teaches

    def learn_all(self, history: History, answered: Sequence[Answered]) -> dict[int, bool]:
        """Learn from pieces of feedback, as `learn` does, and flush; return by sequence number whether there was
        anything to learn in each."""
        together = self.columns.together
        lessons = together(answered, history.catalogue.items_at) if together is not None else None
        if lessons is None:
            taught = {lesson[0].seq: self.learn(history, *lesson) for lesson in answered}
            self.flush()
            return taught
        names: dict[str, int] = {}
        people = [decision.person for _, decision, _ in answered]
        who = [-1 if person is None else names.setdefault(person, len(names)) for person in people]
        seqs = [event.seq for event, _, _ in answered]
        self.run(Run(lessons, np.arange(len(seqs)), np.array(seqs, np.int64), np.array(who, np.int64), list(names)))
        return dict.fromkeys(seqs, True)

    def alone(self, history: History, event: Event, decision: LoggedDecision, feedback: FeedbackRecord) -> bool:
        """Learn from one piece of feedback by itself, interpreted; return whether there was anything to learn."""
        self.flush()
        self.check()
        self._keep(event.seq)
        return self.fold.learn(history, event, decision, feedback)

    def _idle(self, event: Event) -> None:
        """Count a piece of feedback with nothing to learn in it."""
        self.fold.count(1, 0, 0)
        if self.kept is not None:
            self.kept.idle(event.seq)

    def _keep(self, step: Run | int) -> None:
        """Keep what is learned next, if it is not too much."""
        if self.kept is not None and not self.kept.add(step):
            self.kept = None

    def on_item(self, event: Event, catalogue: Catalogue) -> str:
        """Do what `LoopModel.on_item` does, after what waits."""
        self.flush()
        if self.kept is not None and not self.kept.add_item(event.seq):
            self.kept = None
        return self.fold.model.on_item(event, catalogue)

    def flush(self) -> None:
        """Learn what waits to be learned."""
        if self._waiting:
            n, who = len(self._waiting), np.array(self._who if self.columns.people else [], np.int64)
            lessons = in_columns(self._waiting, self.columns)
            run = Run(lessons, np.arange(n), np.array(self._seqs, np.int64), who, list(self._names))
            self._waiting, self._seqs, self._who, self._names, self._numbers = [], [], [], {}, 0
            self._keep(run)
            self.run(run)

    # ------------------------------------------------------------------------ from columns

    def run(self, run: Run) -> None:
        """Learn the training examples of `run`."""
        fold = self.fold
        if not self._owns:
            fold.model.replace(copy_arrays(fold.model.shared))
            self._owns = True
        try:
            kernel, args = kernel_of(fold.model, self.columns, run)
            state, learned, moved = kernel(*args)
        except Exception as error:
            told = str(error).splitlines() or [""]
            raise NotCompiled(f"compiled code is not used: {type(error).__name__}: {told[0]}") from error
        fold.model.replace(_owned(state, {_address(array): array for array in _arrays(args[1])}))
        if self.columns.people:
            fold.model.learn_people(run.names, args[5])  # type: ignore[attr-defined]
        fold.count(len(run.at), moved, learned)
        self._unchecked = True

    def events(self, history: History, seqs: list[int]) -> bool:
        """Learn the feedback and the items with the sequence numbers `seqs` one by one, read from the log; return False
        if the learner failed on some."""
        log = history.log
        for start in range(0, len(seqs), PAGE):
            events = sorted(log.many(seqs[start : start + PAGE]), key=lambda event: event.seq)
            decided = {each.seq: each for each in log.many(sorted({event.target or 0 for event in events}))}
            for event in events:
                if event.kind == "item":
                    history.offer(self, event)
                elif (decision := decided.get(event.target or 0)) is not None:
                    self.alone(history, event, history.decision(decision), records.decode_feedback(event.payload))
                    if self.fold.broken:
                        return False
        return True

    def check(self) -> None:
        """Raise NotCompiled if compiled code did not end in finite numbers: interpreted, the learner may fail then."""
        if self._unchecked and not all(np.isfinite(array).all() for array in _arrays(self.fold.model.shared)):
            raise NotCompiled("compiled code is not used: its numbers are not finite")
        self._unchecked = False


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in a state, nested tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, np.ndarray):
        yield value


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _owned(value: Any, owners: dict[int, Any]) -> Any:
    """Return the state `value`, which compiled code returned, with arrays that own their memory.

    An array that went in comes back without; `owners` are those, by address."""
    if isinstance(value, tuple):
        parts = [_owned(part, owners) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, np.ndarray) and value.base is None and not value.flags.owndata:
        owner = owners.get(_address(value))
        same = owner is not None and owner.shape == value.shape and owner.dtype == value.dtype
        return owner if same else value.copy()
    return value
