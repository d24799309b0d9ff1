"""Every import twice changes nothing, whatever the format, also after an undo; every row is used, or counted with its
reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from brought import taken
from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import read_lines
from heedful.data.row_report import Report
from heedful.data.ubi import read_ubi
from heedful.io import Outcome, export_lines, import_lines
from heedful.io.formats import FORMATS
from loops import bits, rating_loop, small_loop
from written import write_lines

AT = "2026-06-15T11:00:00Z"


def texts(path: Path) -> Loop:
    return Loop.create(path, encoding=TEXTS, settings=Settings(k=1, control=0.0))


def choices(path: Path) -> Loop:
    return Loop.create(path, items=[{"id": "t", "text": "Yes 0."}], settings=Settings(choices="best", control=0.0))


def stars(path: Path) -> Loop:
    loop = rating_loop(path)
    for i in range(3):
        loop.decide(["i0", "i1"], id=f"t{i}", person="ann")
    return loop


def items(path: Path) -> Loop:
    return small_loop(path, control=0.0)


PAIRS = [{"prompt": f"Is it {i}?", "chosen": f"Yes {i}.", "rejected": f"Perhaps {i}, maybe!"} for i in range(3)]
PAIRS += [
    PAIRS[0],
    {"chosen": "", "rejected": "x"},
    {"chosen": "x", "rejected": "x"},
    {"chosen": None, "rejected": "x"},
]
LABELS = [{"prompt": "?", "completion": f"Yes {i}.", "label": i < 2} for i in range(3)]
LABELS += [LABELS[0], {"completion": " ", "label": True}, {"completion": "x", "label": None}]


def score(id: str, value: Any, type: str, i: int = 0, **more: Any) -> dict[str, Any]:
    about = {"name": "n", "source": "API", "timestamp": AT, "subject": {"kind": "trace", "id": f"t{i}"}}
    return {"id": id, "value": value, "dataType": type} | about | more


SCORES = [
    score("s0", True, "BOOLEAN"),
    score("s1", "It is here.", "CORRECTION", 1),
    score("s2", 4, "NUMERIC", 2),
    score("s3", "good", "CATEGORICAL"),
    score("s4", "Nice", "TEXT"),
    score("s5", True, "BOOLEAN", source="EVAL"),
    score("s6", True, "BOOLEAN", subject={"kind": "session", "id": "x"}),
    score("s7", "", "CORRECTION"),
    score("s8", True, "BOOLEAN", 9),
]
STARS = [score(f"s{i}", i, "NUMERIC", i % 3) for i in range(7)]
OUTPUTS = [{"id": f"t{i}", "input": "Where?", "output": f"Perhaps it is here {i}!"} for i in range(3)]
QUERIES = [
    {"query_id": f"q{i}", "timestamp": AT, "user_query": "pen", "query_response_hit_ids": ["i0", "i1", "i2"]}
    for i in range(3)
] + [{"timestamp": AT}, {"query_id": "late"}]
EVENTS = [
    {"query_id": f"q{i}", "timestamp": AT, "action_name": action, "event_attributes": {"object": {"object_id": "i1"}}}
    for i, action in [(0, "click"), (0, "click"), (1, "purchase"), (2, "hover"), (2, "odd"), (9, "click")]
]


class Case(NamedTuple):
    """A loop that is made, what is imported, and how many rows of it are used."""

    make: Callable[[Path], Loop]
    rows: Sequence[dict[str, Any]]
    used: int
    options: Mapping[str, str] = {}


CASES = {
    "preference-data": Case(texts, PAIRS, 4),
    "preference-data, choices": Case(choices, PAIRS, 4),
    "unpaired": Case(texts, LABELS, 4),
    "langfuse": Case(texts, SCORES, 3, {"traces": "outputs", "score:n": "3"}),
    "langfuse, ratings": Case(stars, STARS, 5, {"score:n": "1..5"}),
}


def test_every_format_that_is_read_has_a_case() -> None:
    assert {name.partition(",")[0] for name in CASES} == {name for name, each in FORMATS.items() if each.read}


def check_twice(loop: Loop, again: Callable[[], list[Outcome]]) -> None:
    """What `again` imports was imported before: nothing changes, also where one of it is undone first."""
    for undo in (False, True):
        if undo:
            lesson = loop.lessons()[-1]
            assert loop.undo(lesson.event).status == "applied"
        before, model = loop.projection.log.last(), bits(loop)
        outcomes = again()
        assert outcomes
        assert {each.status for each in outcomes} == {"duplicate"}
        assert (loop.projection.log.last(), bits(loop)) == (before, model)
    assert loop.verify() == []


@pytest.mark.parametrize("name", CASES)
def test_a_format_of_others_twice(tmp_path: Path, name: str) -> None:
    case, read = CASES[name], FORMATS[name.partition(",")[0]].read
    assert read is not None
    files = [write_lines(tmp_path / "rows", case.rows)]
    write_lines(tmp_path / "outputs", OUTPUTS)
    options = {name: str(tmp_path / how) if name == "traces" else how for name, how in case.options.items()}
    report = Report()
    with case.make(tmp_path / "a.heedful") as loop:
        outcomes = taken(loop, read(loop, files, report, options))
        assert {each.status for each in outcomes if each.kind != "item"} <= {"applied", "duplicate"}
        assert (report.rows.total(), report.used.total()) == (len(case.rows), case.used)
        assert report.dropped.total() == len(case.rows) - case.used
        assert report.examples.keys() == report.dropped.keys()
        check_twice(loop, lambda: taken(loop, read(loop, files, Report(), options)))
        files += [write_lines(tmp_path / "turned", case.rows[::-1])]
        head = loop.projection.log.last()
        assert {each.status for each in taken(loop, read(loop, files, Report(), options))} == {"duplicate"}
        assert loop.projection.log.last() == head


def test_ubi_twice(tmp_path: Path) -> None:
    files = write_lines(tmp_path / "queries", QUERIES), write_lines(tmp_path / "events", EVENTS)
    report = Report()
    with items(tmp_path / "a.heedful") as loop:
        outcomes = taken(loop, read_ubi(*files, report))
        assert {each.status for each in outcomes} == {"applied"}
        assert report.rows == {"queries": 5, "events": 6}
        assert report.used == {"queries": 3, "events": 2}
        assert report.dropped.total() == 6
        check_twice(loop, lambda: taken(loop, read_ubi(*files, Report())))


@pytest.mark.parametrize("make", [texts, choices, stars, items])
def test_the_lines_of_a_loop_twice(tmp_path: Path, make: Callable[[Path], Loop]) -> None:
    name, rows = {
        texts: ("unpaired", LABELS), choices: ("preference-data", PAIRS), stars: ("langfuse", STARS)
    }.get(make, ("", []))  # fmt: skip
    lines = tmp_path / "lines.jsonl"
    with make(tmp_path / "a.heedful") as loop:
        if name:
            read = FORMATS[name].read
            assert read is not None
            file = write_lines(tmp_path / "rows", rows)
            taken(loop, read(loop, [file], Report(), {"score:n": "1..5"} if make is stars else {}))
        else:
            shown = loop.decide(id="d", person="ann").shown
            loop.feedback("d", id="e", clicks=[shown[1]])
        loop.undo(loop.lessons()[0].event)
        made = write_lines(lines, list(export_lines(loop)))
        model = bits(loop)
    with make(tmp_path / "b.heedful") as other:
        list(import_lines(other, read_lines(made)))
        assert bits(other) == model
        before = other.projection.log.last()
        assert {each.status for each in import_lines(other, read_lines(made))} == {"duplicate"}
        assert (other.projection.log.last(), bits(other)) == (before, model)
