"""The answers of a study, with the names of people and items, and the ids of its questions and answers.

A person's questions are numbered 0, 1, ...; each is a decision of the loop, and the answer is feedback on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from heedful.boards.data_quality import Remark, left_out, sides
from heedful.data.comparisons import ComparisonTable, comparison_of, tabulate
from heedful.loop import Loop
from heedful.loop.interactions.forms import read_answer
from heedful.loop.packing import LoggedDecision

OWN = "you"
"""The name of the person who answers on the study's own page, unless the page is opened with another name."""
_EVENT = re.compile(r"ask-[0-9]+\.([0-9]+)-")


class StudyAnswer(NamedTuple):
    """One answer of a participant in a study: who compared which items, and what they said.

    - `time`: when it was given, in microseconds since 1970.
    - `person`: the name of the participant.
    - `segment`: the group of participants that the person belongs to (see `segment_of`).
    - `shown`: the names of the items that were shown, the one on the left first.
    - `answer`: "first", "second", "equal", "both_bad" or "cannot_judge"; if more than two items were shown, the name
      of the best one.
    """

    time: int
    person: str
    segment: str
    shown: tuple[str, ...]
    answer: str
    prompt: str = ""
    """the id of the prompt that the items answered, if the study is an arena of models"""


def decision_id(person: str, number: int) -> str:
    """Return the id of the decision that asks `person` their question `number`, counted from 0.

    A decision is a record in the loop's log: which items were shown, and to whom.
    """
    return f"ask-{number}-{person}"


def event_id(person: str, number: int, attempt: int) -> str:
    """Return the id of the feedback event that holds the answer of `person` to their question `number`, counted from 0.

    A person who takes an answer back may answer the same question again: `attempt` is 0 for the first answer, 1 for the
    second, and so on.
    """
    return f"ask-{number}.{attempt}-{person}"


def attempt_of(event: str) -> int | None:
    """Return the number of the attempt in the id `event` of a feedback event: 0 for a person's first answer to a
    question, 1 for the answer that they gave after they had taken the first one back, and so on.

    Return None if the id was not made by `event_id`, so the feedback did not come from a study page.
    """
    match = _EVENT.match(event)
    return None if match is None else int(match[1])


def segment_of(person: str) -> str:
    """Return the segment (a named group of participants) that a `person` belongs to.

    Participants who come by a link are named SEGMENT/RANDOM, and their segment is SEGMENT. Any other name is a segment
    of its own.
    """
    head, slash, _ = person.rpartition("/")
    return head if slash else person


def study_answers(loop: Loop) -> Iterator[StudyAnswer]:
    """Yield the answers given in the study `loop`, in the order of its log. Questions that were skipped, and answers
    that were taken back, are left out."""
    projection = loop.projection
    for event, decision, feedback in projection.lessons():
        places, person = decision.record.shown, decision.person or ""
        shown = tuple([decision.names[j] for j in places])
        said = read_answer(projection.interaction.forms, feedback, places)
        if said.stated and said.best and said.best[0] in places:
            best = places.index(said.best[0])
            answer = ("first", "second")[best] if len(shown) == 2 else shown[best]
        elif feedback.form == "choice" and feedback.text:
            answer = feedback.text
        elif said.best == () and not said.picked:
            if attempt_of(event.id) is not None:
                continue  # the question was skipped
            answer = "cannot_judge"
        else:
            continue
        yield StudyAnswer(event.time, person, segment_of(person), shown, answer, prompt_of(decision) or "")


def prompt_of(decision: LoggedDecision) -> str | None:
    """Return the id of the prompt that a question is about; None if it is about none."""
    prompt = (decision.record.context or {}).get("prompt")
    return prompt if isinstance(prompt, str) else None


def choices_of(loop: Loop, people: Collection[str] | None = None, without: Collection[str] = ()) -> ComparisonTable:
    """Return the answers given in the study `loop` as a table of comparisons between the items that are in the study
    now.

    If `people` (names of participants) is given, only their answers are in it; those of people in `without` are not.
    """
    answers = (
        answer
        for answer in study_answers(loop)
        if (people is None or answer.person in people) and answer.person not in without
    )
    return tabulate((comparison_of(answer.person, answer.shown, answer.answer) for answer in answers), loop.items)


def habits(loop: Loop, people: Collection[str] | None = None, without: Collection[str] = ()) -> list[Remark]:
    """Return a warning on each person who chose the item on one side, left or right, more often than chance explains.

    `loop` is that of a study; the last two arguments are those of `choices_of`."""
    return sides(choices_of(loop, people, without))


def what_changes(without: Sequence[str], before: str, after: str) -> str:
    """Return a sentence on whether the first place changes as the answers of the people `without` are left out: from
    the item `before` to the item `after`."""
    return left_out(without, before, after).message
