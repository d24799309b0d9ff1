"""Preference data: rows of (prompt, chosen, rejected), or of (prompt, completion, label), to train language models on.
A prompt or an answer is a text, or a list of messages {"role", "content"}.

docs/preference-data.md says what is read. A row of another form makes the whole file malformed, which raises; a row of
the right form that says nothing, as when both answers are equal, is counted with its reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from os import PathLike
from typing import Any, NamedTuple

from heedful.data.files import cut_list, cut_repr
from heedful.data.repeats import Answer, answer_of
from heedful.data.row_report import Report
from heedful.data.set_aside import why_aside
from heedful.data.table import read_records

EQUAL = "both answers are equal"
EMPTY = "an answer is empty"
MISSING = "an answer is missing"
NO_LABEL = "the label is missing"
NOT_TEXT = "an answer or the prompt holds something other than text"
LABELS: Mapping[object, bool] = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
"""What a label may be; texts in any case, as in CSV."""

Message = Mapping[str, Any]


class Prompt(NamedTuple):
    """A prompt as a text and, if it came as a list of messages, that list."""

    text: str
    messages: list[Any] | None = None


class Row(NamedTuple):
    """What all rows have: `at`, the place in the file; the ids and the person where the row says them; the prompt.

    `event` and `decision` are the ids of the feedback and its decision in the loop that wrote the row; `answer` tells
    whether another row is the same answer."""

    at: str
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


class _Unusable(Exception):
    """A row of the right form from which nothing can be learned, with the reason."""


def read_pairs(path: str | PathLike[str], report: Report) -> Iterator[Pair]:
    """Yield the rows of a file of (prompt, chosen, rejected); `report` counts them as "pairs", and why others are left
    out.

    Messages with which both answers begin are the prompt, or part of it, and are taken off the answers. Raise
    ValueError, NAME:LINE: field: expected ..., got ..., for the first row of another form."""
    for at, record in read_records(path):
        report.rows["pairs"] += 1
        try:
            _refuse_aside(record)
            if "chosen" not in record or "rejected" not in record:
                raise ValueError(f"columns: expected prompt, chosen, rejected, got {cut_list(list(record)) or 'none'}")
            pair = _pair(at, record)
        except _Unusable as error:
            report.drop(str(error), at)
        except ValueError as error:
            raise ValueError(f"{at}: {error}") from None
        else:
            report.used["pairs"] += 1
            yield pair


def read_labelled(path: str | PathLike[str], report: Report) -> Iterator[Labelled]:
    """Yield the rows of a file of (prompt, completion, label); `report` counts them as "labels", and why others are
    left out.

    Errors are those of `read_pairs`."""
    for at, record in read_records(path):
        report.rows["labels"] += 1
        try:
            _refuse_aside(record)
            if "completion" not in record or "label" not in record:
                raise ValueError(f"columns: expected prompt, completion, label, got {cut_list(list(record)) or 'none'}")
            prompt = _prompt(record.get("prompt"))
            completion = _answer("completion", record["completion"])
            label = record["label"]
            if label is None:
                raise _Unusable(NO_LABEL)
            label = label.lower() if isinstance(label, str) else label
            if isinstance(label, list | dict) or label not in LABELS:
                raise ValueError(f"label: expected true or false, got {cut_repr(record['label'])}")
            text = _not_empty(_said(completion))
            told = Labelled(_row(at, record, prompt, [text], LABELS[label]), text, LABELS[label])
        except _Unusable as error:
            report.drop(str(error), at)
        except ValueError as error:
            raise ValueError(f"{at}: {error}") from None
        else:
            report.used["labels"] += 1
            yield told


def _refuse_aside(record: Mapping[str, Any]) -> None:
    if (why := why_aside(record)) is not None:
        raise _Unusable(f"the row says that it does not count, {why}")


def _pair(at: str, record: Mapping[str, Any]) -> Pair:
    prompt = _prompt(record.get("prompt"))
    chosen, rejected = (_answer(name, record[name]) for name in ("chosen", "rejected"))
    if isinstance(chosen, list) and isinstance(rejected, list):
        same = [a for a, _ in takewhile(lambda both: _same(*both), zip(chosen, rejected))]
        if len(same) == len(chosen) == len(rejected):
            raise _Unusable(EQUAL)
        chosen, rejected = chosen[len(same) :], rejected[len(same) :]
        if prompt is None and same:
            prompt = Prompt(_spoken(same), same)
    better, worse = _not_empty(_said(chosen)), _not_empty(_said(rejected))
    if better == worse:
        raise _Unusable(EQUAL)
    return Pair(_row(at, record, prompt, sorted([better, worse]), better), better, worse)


def _row(at: str, record: Mapping[str, Any], prompt: Prompt | None, texts: Sequence[str], said: object) -> Row:
    """Return what all rows have. `texts` are the answers that the row is about, `said` is what it says of them."""
    event, decision, person = (_name(record, field) for field in ("event", "decision", "person"))
    asked = [None if prompt is None else prompt.text, *texts]
    answer = answer_of(record, asked, said, own=event is not None)
    if answer.fields.id is not None:
        answer = answer._replace(id=_name(record, answer.fields.id))
    return Row(at, event, decision, person, prompt, answer)


def _name(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{field}: expected a text or a whole number, got {cut_repr(value)}")
    name = str(value).strip()
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise ValueError(f"{field}: expected 1 to 200 printable characters, got {cut_repr(value)}")
    return name


def _prompt(value: object) -> Prompt | None:
    if value is None:
        return None
    found = _answer("prompt", value)
    if isinstance(found, str):
        return Prompt(found) if found.strip() else None
    return Prompt(_spoken(found), found) if found else None


def _answer(field: str, value: object) -> str | list[Any]:
    """Return a text or a list of messages as it is. Raise ValueError for anything else, _Unusable if it is missing."""
    if value is None:
        raise _Unusable(MISSING)
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError(f"{field}: expected a text, or a list of messages, got {cut_repr(value)}")
    for i, message in enumerate(value):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or "content" not in message:
            raise ValueError(f'{field}[{i}]: expected a message, {{"role", "content"}}, got {cut_repr(message)}')
        _content(field, i, message["content"])
    return value


def _content(field: str, i: int, content: object) -> str:
    """Return the text of a message: its content, or the texts of its parts. Raise as `_answer` does."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"{field}[{i}].content: expected a text, or a list of parts, got {cut_repr(content)}")
    texts = []
    for part in content:
        if not isinstance(part, Mapping):
            raise ValueError(f"{field}[{i}].content: expected parts that are objects, got {cut_repr(part)}")
        if not isinstance(part.get("text"), str):
            raise _Unusable(NOT_TEXT)
        texts.append(part["text"])
    return "\n\n".join(texts)


def _same(a: Message, b: Message) -> bool:
    return bool(a["role"] == b["role"] and a["content"] == b["content"])


def _spoken(messages: Sequence[Message]) -> str:
    """Return a conversation as one text: each message after its role, but a single message of a user as it is."""
    if len(messages) == 1 and messages[0]["role"] == "user":
        return _content("prompt", 0, messages[0]["content"])
    return "\n\n".join(f"{each['role']}: {_content('prompt', i, each['content'])}" for i, each in enumerate(messages))


def _said(answer: str | list[Any]) -> str:
    """Return an answer as one text; if it has messages of others than the assistant, each stands after its role."""
    if isinstance(answer, str):
        return answer
    if all(each["role"] == "assistant" for each in answer):
        return "\n\n".join(_content("answer", i, each["content"]) for i, each in enumerate(answer))
    return _spoken(answer)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise _Unusable(EMPTY)
    return text
