"""The answers of a study with the names of items and people, and the ids of questions and answers."""

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
    """An answer of a study, with the items that were shown, the left one first."""

    time: int
    """microseconds since 1970"""
    person: str
    segment: str
    shown: tuple[str, ...]
    answer: str
    """first, second, equal or cannot_judge; of more than two items, the name of the best one"""


def decision_id(person: str, number: int) -> str:
    """Return the id of the decision behind a person's question `number`, from 0."""
    return f"ask-{number}-{person}"


def event_id(person: str, number: int, attempt: int) -> str:
    """Return the id of a person's answer to their question `number`. An answer that was taken back may be given again,
    as the next `attempt`, from 0."""
    return f"ask-{number}.{attempt}-{person}"


def attempt_of(event: str) -> int | None:
    """Return the attempt in the id of an answer; None if the answer does not come from a page of a study."""
    match = _EVENT.match(event)
    return None if match is None else int(match[1])


def segment_of(person: str) -> str:
    """Return the segment of a person: SEGMENT of a participant SEGMENT/RANDOM, and the whole name of anyone else."""
    head, slash, _ = person.rpartition("/")
    return head if slash else person


def study_answers(loop: Loop) -> Iterator[StudyAnswer]:
    """Yield the answers of a study in the order of the log, without those that were undone and questions that were
    skipped."""
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
    """Return the answers of a study, or only those of `people`, as comparisons of the items on offer."""
    answers = (each for each in study_answers(loop) if people is None or each.person in people)
    return tabulate((comparison_of(each.person, each.shown, each.answer) for each in answers), loop.items)


def habits(loop: Loop, people: Collection[str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Return messages about people who chose one side more often than chance allows, each with the people's names."""
    return [(each.message, each.people) for each in sides(choices_of(loop, people))]
