"""The answers of a study, with the names of people and items, and the ids of its questions and answers.

A person's questions are numbered 0, 1, ...; each is a decision of the loop, and the answer is feedback on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from heedful.data.comparisons import ComparisonTable, comparison_of, tabulate
from heedful.inference.data_quality import sides
from heedful.loop import Loop

OWN = "you"
"""The name of the person who answers on the study's own page, unless the page is opened with another name."""
_EVENT = re.compile(r"ask-[0-9]+\.([0-9]+)-")


class StudyAnswer(NamedTuple):
    """One answer of a study: who compared which items, and what they said."""

    time: int
    """microseconds since 1970"""
    person: str
    segment: str
    """the group of the person (`segment_of`)"""
    shown: tuple[str, ...]
    """the names of the items, the one on the left first"""
    answer: str
    """first, second, equal or cannot_judge; if more than two items were shown, the name of the best one"""


def decision_id(person: str, number: int) -> str:
    """Return the id of the decision that is question `number`, from 0, of a person."""
    return f"ask-{number}-{person}"


def event_id(person: str, number: int, attempt: int) -> str:
    """Return the id of the feedback that is a person's answer to their question `number`.

    An answer that was undone may be given again: `attempt`, from 0, counts these.
    """
    return f"ask-{number}.{attempt}-{person}"


def attempt_of(event: str) -> int | None:
    """Return which attempt at a question the feedback with the id `event` was, from 0; None if its id is not a study
    page's.

    An answer that was undone may be given again, as the next attempt."""
    match = _EVENT.match(event)
    return None if match is None else int(match[1])


def segment_of(person: str) -> str:
    """Return the segment, a named group of participants, of a `person`: SEGMENT if the name is SEGMENT/RANDOM, as for
    those who come by a link; otherwise the whole name."""
    head, slash, _ = person.rpartition("/")
    return head if slash else person


def study_answers(loop: Loop) -> Iterator[StudyAnswer]:
    """Yield the answers in a study's `loop` in the order of its log, without skipped questions and undone answers."""
    projection = loop.projection
    for event, decision, feedback in projection.lessons():
        names = decision.names
        shown, person = tuple([names[j] for j in decision.record.shown]), decision.person or ""
        if feedback.form == "choice":
            answer = feedback.text or ("first" if feedback.values[0] == 0.0 else "second")
        elif feedback.form == "none":
            if attempt_of(event.id) is not None:
                continue  # the question was skipped
            answer = "cannot_judge"
        elif feedback.form in ("better", "clicks") and feedback.chosen and feedback.chosen[0] >= 0:
            best = feedback.chosen[0]
            answer = ("first", "second")[decision.record.shown.index(best)] if len(shown) == 2 else names[best]
        else:
            continue
        yield StudyAnswer(event.time, person, segment_of(person), shown, answer)


def choices_of(loop: Loop, people: Collection[str] | None = None) -> ComparisonTable:
    """Return the answers in a study's `loop`, all or only those of `people`, as comparisons between the items on
    offer."""
    answers = (each for each in study_answers(loop) if people is None or each.person in people)
    return tabulate((comparison_of(each.person, each.shown, each.answer) for each in answers), loop.items)


def habits(loop: Loop, people: Collection[str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Return (message, names of people) for each habit in the answers: choosing the left or right item too often for
    chance.

    `loop` is that of a study; only answers of `people` count, if given.
    """
    return [(each.message, each.people) for each in sides(choices_of(loop, people))]
