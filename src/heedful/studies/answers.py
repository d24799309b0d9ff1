"""Answers of a study by name, for export, and the people who gave them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from heedful.data.comparisons import ComparisonTable, comparison_of, tabulate
from heedful.inference.data_quality import sides
from heedful.loop import Loop

OWN = "you"
"""Who answers on the study's own page, unless another name is said."""
_EVENT = re.compile(r"ask-[0-9]+\.([0-9]+)-")


class StudyAnswer(NamedTuple):
    """One answer of a study: the items shown, the left one first, and the answer."""

    time: int
    """in microseconds since 1970"""
    person: str
    segment: str
    shown: tuple[str, ...]
    answer: str
    """first, second, equal, cannot_judge; or the name of what was best"""


def decision_id(who: str, number: int) -> str:
    """Id of the decision behind a person's question `number`."""
    return f"ask-{number}-{who}"


def event_id(who: str, number: int, attempt: int) -> str:
    """Id of the answer to that question, at this attempt: an answer that is taken back may be given again."""
    return f"ask-{number}.{attempt}-{who}"


def attempt_of(event: str) -> int | None:
    """The attempt number in an answer's id; None where the id is not of a study's page."""
    match = _EVENT.match(event)
    return None if match is None else int(match[1])


def segment_of(person: str) -> str:
    """The segment in a participant's name, SEGMENT/RANDOM; for other names, the whole name."""
    head, slash, _ = person.rpartition("/")
    return head if slash else person


def study_answers(loop: Loop) -> Iterator[StudyAnswer]:
    """Yield a study's answers in order, without those undone or skipped."""
    projection = loop.projection
    for event, decision, feedback in projection.lessons():
        names = decision.names
        shown, person = tuple([names[j] for j in decision.record.shown]), decision.person or ""
        if feedback.form == "choice":
            answer = feedback.text or ("first" if feedback.values[0] == 0.0 else "second")
        elif feedback.form == "none":
            if attempt_of(event.id) is not None:
                continue  # no answer there, but that nobody was asked
            answer = "cannot_judge"
        elif feedback.form in ("better", "clicks") and feedback.chosen and feedback.chosen[0] >= 0:
            best = feedback.chosen[0]
            answer = ("first", "second")[decision.record.shown.index(best)] if len(shown) == 2 else names[best]
        else:
            continue
        yield StudyAnswer(event.time, person, segment_of(person), shown, answer)


def choices_of(loop: Loop, people: Collection[str] | None = None) -> ComparisonTable:
    """A study's answers as a table with all items on offer; `people`: only theirs."""
    answers = (each for each in study_answers(loop) if people is None or each.person in people)
    return tabulate((comparison_of(each.person, each.shown, each.answer) for each in answers), loop.items)


def habits(loop: Loop, people: Collection[str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Who chose one side more often than chance allows: messages, each with the people concerned."""
    return [(each.message, each.people) for each in sides(choices_of(loop, people))]
