"""Preference data: rows of (prompt, chosen, rejected), of several answers with scores, or of (prompt, completion,
label), to train language models on.
A prompt or an answer is a text, or a list of messages {"role", "content"}, also as JSON in a cell of a table.

docs/preference-data.md says what is read. A row of another form makes the whole file malformed, which raises; a row of
the right form that says nothing, as when both answers are equal, is counted with its reason.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product, takewhile
from os import PathLike
from typing import Any, NamedTuple, TypeAlias, TypeVar

from heedful.core.validation import describe
from heedful.data.files import cell_number, cell_truth, cut_list
from heedful.data.messages import conversation, is_message, messages_in, says_more
from heedful.data.repeats import Answer, answer_of
from heedful.data.row_report import Report
from heedful.data.set_aside import why_aside
from heedful.data.table import read_records

EQUAL = "both answers are equal"
EMPTY = "an answer is empty"
MISSING = "an answer is missing"
NO_BETTER = "no answer has a better score than another"
NO_LABEL = "the label is missing"
NOT_TEXT = "an answer or the prompt holds something other than text"
NOT_ONE = "an answer is not one message of the assistant"
UNREADABLE = "an answer or the prompt looks like messages and cannot be read as such: write JSON lines"
PROMPTS = ("prompt", "instruction", "question")
"""Fields that may have the prompt."""
COMPLETIONS = ("completions", "responses", "answers", "outputs")
"""Fields that may have several answers to a prompt."""
ANSWERS = ("response", "text", "completion", "answer", "content", "output")
"""Fields of one of these that may have its text."""
SCORES = ("score", "overall_score", "rating", "reward")
RANKS = ("rank",)
"""Fields of one of these that may say how good it is: the higher the better, and the lower. With an s they may be lists
beside a list of texts."""
MOST_ANSWERS = 100
"""The most answers in one row."""

FieldAnswer: TypeAlias = tuple[str, Any]
"""An answer as it is in a row, after the name of its field for messages."""


class Prompt(NamedTuple):
    """A prompt as a text and, if it came as a list of messages, that list."""

    text: str
    messages: list[Any] | None = None


class Row(NamedTuple):
    """What all rows have: the place in the file; the ids and the person where the row says them; the prompt.

    `event` and `decision` are the ids of the feedback and its decision in the loop that wrote the row; `answer` tells
    whether another row is the same answer."""

    place: str
    event: str | None
    decision: str | None
    person: str | None
    prompt: Prompt | None
    answer: Answer


class Pair(NamedTuple):
    """A row that says which of two answers is better: what all rows have, then the better and the worse text."""

    row: Row
    chosen: str
    rejected: str


class Labelled(NamedTuple):
    """A row that says of one answer whether it is good: what all rows have, then the text and the label."""

    row: Row
    completion: str
    label: bool


Stated = TypeVar("Stated", Pair, Labelled)


class _Unusable(Exception):
    """A row of the right form from which nothing can be learned, with the reason."""


def read_pairs(path: str | PathLike[str], report: Report, aside: Sequence[str] | None = None) -> Iterator[Pair]:
    """Yield the pairs in the rows of a file of (prompt, chosen, rejected), where `chosen` and `rejected` may be lists
    of answers, or of (prompt, completions with scores or ranks); `report` counts "pairs", and why others are left out.

    `aside`: the fields that say which rows do not count, ["none"] for none; found by their names if it is None.
    Messages with which both answers begin are the prompt, or go on with it, and are taken off the answers. Raise
    ValueError, NAME:LINE: field: expected ..., got ..., for the first row of another form."""
    return _rows(path, report, aside, "pairs", _compared, _pair)


def read_labelled(path: str | PathLike[str], report: Report, aside: Sequence[str] | None = None) -> Iterator[Labelled]:
    """Yield the rows of a file of (prompt, completion, label); `report` counts them as "labels", and why others are
    left out.

    `aside` and errors are those of `read_pairs`."""
    return _rows(path, report, aside, "labels", _labels, _labelled)


def _rows(
    path: str | PathLike[str],
    report: Report,
    aside: Sequence[str] | None,
    what: str,
    statements: Callable[[Mapping[str, Any]], Iterable[tuple[Any, ...]]],
    read: Callable[..., Stated],
) -> Iterator[Stated]:
    """Yield what `read` makes of each of the `statements` of a row, given the place and the row, too."""
    for place, record in read_records(path):
        try:
            if (why := why_aside(record, aside)) is not None:
                raise _Unusable(f"the row says that it does not count, {why}")
            for statement in statements(record):
                report.rows[what] += 1
                try:
                    row = read(place, record, *statement)
                except _Unusable as error:
                    report.drop(str(error), place)
                else:
                    report.used[what] += 1
                    yield row
        except _Unusable as error:
            report.rows[what] += 1
            report.drop(str(error), place)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None


def _labels(record: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the one (answer, label) of a row; raise ValueError for another form."""
    if "completion" not in record or "label" not in record:
        raise ValueError(f"columns: expected prompt, completion, label, got {cut_list(list(record)) or 'none'}")
    return [(record["completion"], record["label"])]


def _labelled(place: str, record: Mapping[str, Any], answer: object, label: Any) -> Labelled:
    prompt, completion = _prompt_of(record), _answer("completion", answer)
    if prompt is None and isinstance(completion, list):
        turns = [i for i, message in enumerate(completion, 1) if message["role"] == "user"]
        prompt, [completion] = _continued(None, completion[: max(turns, default=0)], [completion])
    if label is None:
        raise _Unusable(NO_LABEL)
    if (good := cell_truth(label)) is None:
        raise ValueError(f"label: expected true or false, got {describe(label)}")
    text = _not_empty(_answer_text(completion))
    return Labelled(_row(place, record, prompt, [text], good), text, good)


def _compared(record: Mapping[str, Any]) -> Iterator[tuple[FieldAnswer, FieldAnswer]]:
    """Yield (better, worse) for each pair in a row; raise _Unusable if there is none, ValueError for another form."""
    if "chosen" in record and "rejected" in record:
        chosen, rejected = (_several(name, record[name]) for name in ("chosen", "rejected"))
        yield from product(chosen, rejected)
        return
    field = next((name for name in COMPLETIONS if name in record), None)
    if field is None:
        columns = cut_list(list(record)) or "none"
        raise ValueError(f"columns: expected prompt, chosen, rejected, or completions with scores, got {columns}")
    scored = [pair for pair in _scored(field, record) if pair[0] is not None]
    scored.sort(key=lambda pair: pair[0], reverse=True)
    pairs = [(one[1], two[1]) for one, two in combinations(scored, 2) if one[0] > two[0]]
    if not pairs:
        raise _Unusable(NO_BETTER)
    yield from pairs


def _several(field: str, value: object) -> list[FieldAnswer]:
    """Return the answers in a field: those of a list of answers, otherwise the one that it is."""
    if isinstance(value, list) and value and all(isinstance(answer, str | list) for answer in value):
        return [(f"{field}[{i}]", answer) for i, answer in enumerate(_check_count(field, value))]
    return [(field, value)]


def _check_count(field: str, answers: list[Any]) -> list[Any]:
    if len(answers) > MOST_ANSWERS:
        raise ValueError(f"{field}: expected at most {MOST_ANSWERS} answers, got {len(answers):,}")
    return answers


def _scored(field: str, record: Mapping[str, Any]) -> list[tuple[Any, FieldAnswer]]:
    """Return (score, answer) of each answer in a `field`: objects with a score or rank, or texts and a list."""
    answers = record[field]
    if not isinstance(answers, list):
        raise ValueError(f"{field}: expected a list of answers, got {describe(answers)}")
    scores = list[tuple[Any, FieldAnswer]]()
    marks = next((name for name in (*SCORES, *RANKS) if record.get(f"{name}s") is not None), None)
    if not all(isinstance(answer, Mapping) and "role" not in answer for answer in _check_count(field, answers)):
        numbers = record.get(f"{marks}s")
        if not isinstance(numbers, list) or len(numbers) != len(answers):
            shape = len(numbers) if isinstance(numbers, list) else "none" if numbers is None else describe(numbers)
            raise ValueError(f"{marks or 'score'}s: expected a score for each of {len(answers)} {field}, got {shape}")
        for i, (answer, number) in enumerate(zip(answers, numbers)):
            scores.append((_score(f"{marks}s[{i}]", number, marks in RANKS), (f"{field}[{i}]", answer)))
        return scores
    for i, answer in enumerate(answers):
        text, mark = (next((name for name in names if name in answer), None) for names in (ANSWERS, (*SCORES, *RANKS)))
        if text is None or mark is None:
            fields = cut_list(list(answer)) or "nothing"
            raise ValueError(f"{field}[{i}]: expected a text and a score or rank, got {fields}")
        score = _score(f"{field}[{i}].{mark}", answer[mark], mark in RANKS)
        scores.append((score, (f"{field}[{i}].{text}", answer[text])))
    return scores


def _score(field: str, value: object, turned: bool) -> float | None:
    """Return a score, or a rank as one (`turned`: 1 is the best); None for none."""
    if value is None or value == "":
        return None
    number = cell_number(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"{field}: expected a number, got {describe(value)}")
    return -number if turned else number


def _pair(place: str, record: Mapping[str, Any], better_one: FieldAnswer, worse_one: FieldAnswer) -> Pair:
    prompt = _prompt_of(record)
    chosen, rejected = (_answer(*answer) for answer in (better_one, worse_one))
    if isinstance(chosen, list) and isinstance(rejected, list):
        same = [a for a, _ in takewhile(lambda both: both[0] == both[1], zip(chosen, rejected))]
        if len(same) == len(chosen) == len(rejected):
            raise _Unusable(EQUAL)
        prompt, [chosen, rejected] = _continued(prompt, same, [chosen, rejected])
    better, worse = _not_empty(_answer_text(chosen)), _not_empty(_answer_text(rejected))
    if better == worse:
        raise _Unusable(EQUAL)
    return Pair(_row(place, record, prompt, sorted([better, worse]), better), better, worse)


def _continued(
    prompt: Prompt | None, same: list[Any], answers: Sequence[list[Any]]
) -> tuple[Prompt | None, list[list[Any]]]:
    """Return the prompt, and `answers` without their beginning `same`, which repeats, is or continues the prompt."""
    left = [answer[len(same) :] for answer in answers]
    messages = [] if prompt is None else prompt.messages or [{"role": "user", "content": prompt.text}]
    if messages and messages[0] in same:
        conversation = same
    else:
        repeated = max((k for k in range(len(same) + 1) if messages[len(messages) - k :] == same[:k]), default=0)
        conversation = [*messages, *same[repeated:]]
    return (prompt if conversation == messages else Prompt(_spoken(conversation), conversation)), left


def _row(place: str, record: Mapping[str, Any], prompt: Prompt | None, texts: Sequence[str], statement: object) -> Row:
    """Return what all rows have. `texts` are the answers that the row is about, `statement` is what it says of them."""
    event, decision, person = (_name(record, field) for field in ("event", "decision", "person"))
    subject = [None if prompt is None else prompt.text, *texts]
    answer = answer_of(record, subject, statement, certain=event is not None)
    if answer.fields.id is not None:
        answer = answer._replace(id=_name(record, answer.fields.id))
    return Row(place, event, decision, person, prompt, answer)


def _name(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{field}: expected a text or a whole number, got {describe(value)}")
    name = str(value).strip()
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise ValueError(f"{field}: expected 1 to 200 printable characters, got {describe(value)}")
    return name


def _prompt_of(record: Mapping[str, Any]) -> Prompt | None:
    value = next((record[name] for name in PROMPTS if record.get(name) is not None), None)
    if value is None:
        return None
    answer = _answer("prompt", value)
    if isinstance(answer, str):
        return Prompt(answer) if answer.strip() else None
    return Prompt(_spoken(answer), answer) if answer else None


def _answer(field: str, value: object) -> str | list[Any]:
    """Return a text or a list of messages as it is. Raise ValueError for anything else, _Unusable if it is missing."""
    if value is None:
        raise _Unusable(MISSING)
    if isinstance(value, str):
        try:
            messages = messages_in(value)
        except ValueError:
            raise _Unusable(UNREADABLE) from None
        if messages is None:
            return value
        value = messages
    if not isinstance(value, list):
        raise ValueError(f"{field}: expected a text, or a list of messages, got {describe(value)}")
    for i, message in enumerate(value):
        if not is_message(message):
            raise ValueError(f'{field}[{i}]: expected a message, {{"role", "content"}}, got {describe(message)}')
        _content(field, i, message["content"])
    return value


def _content(field: str, i: int, content: object) -> str:
    """Return the text of a message: its content, or the texts of its parts. Raise as `_answer` does."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"{field}[{i}].content: expected a text, or a list of parts, got {describe(content)}")
    texts = []
    for part in content:
        if not isinstance(part, Mapping):
            raise ValueError(f"{field}[{i}].content: expected parts that are objects, got {describe(part)}")
        if not isinstance(part.get("text"), str):
            raise _Unusable(NOT_TEXT)
        texts.append(part["text"])
    return "\n\n".join(texts)


def _spoken(messages: Sequence[Mapping[str, Any]]) -> str:
    return conversation(messages, [_content("prompt", i, each["content"]) for i, each in enumerate(messages)])


def _answer_text(answer: str | list[Any]) -> str:
    """Return an answer as a text: itself, or the content of its message. Raise _Unusable if it is no text."""
    if isinstance(answer, str):
        return answer
    if any(map(says_more, answer)):
        raise _Unusable(NOT_TEXT)
    if [message["role"] for message in answer] not in ([], ["assistant"]):
        raise _Unusable(NOT_ONE)
    return "".join(_content("answer", i, message["content"]) for i, message in enumerate(answer))


def _not_empty(text: str) -> str:
    if not text.strip():
        raise _Unusable(EMPTY)
    return text
