"""Answers without decisions, as in a table: they become the events that their lines would, and the same model."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop
from heedful.data.jsonl import as_lines
from heedful.io import Outcome, import_answers, import_lines
from heedful.loop.records import AnsweredItem
from loops import bits, bits_from_scratch, rating_loop

RATINGS = [AnsweredItem(f"r{n}", f"p{n % 4}", f"i{n % 7}", "rating", 1.0 + n % 5) for n in range(30)]
ODD = [
    AnsweredItem("wide", "p1", "i0", "rating", 9.0),  # out of range: shown, but no feedback
    AnsweredItem("gone", "p1", "i11", "rating", 2.0),  # not on offer
    AnsweredItem("none", "p1", "never", "rating", 2.0),
    AnsweredItem("bad", "a\nb", "i1", "rating", 2.0),
    AnsweredItem("r3", "p2", "i3", "rating", 4.0),  # of another person before
    AnsweredItem("r4", "p0", "i4", "rating", 1.0),  # rated otherwise before
]


def line_by_line(ratings: Iterable[AnsweredItem]) -> Iterator[dict[str, Any]]:
    for id, person, item, form, value in ratings:
        yield {"kind": "decision", "id": id, "person": person, "candidates": [item], "shown": [item]}
        yield {"kind": "feedback", "id": id, "decision": id, form: {item: value}}


def events(loop: Loop) -> list[Any]:
    """What the log has, but for times and versions."""
    log = loop.projection.log
    ids = {event.seq: event.id for event in log.events()}
    return sorted(
        (e.kind, e.id, e.subject or "", ids.get(e.target or 0), e.payload, e.arrays or b"")
        for e in log.events()
        if e.kind != "loop"
    )


def counts(outcomes: Iterable[Outcome]) -> Counter[tuple[str, ...]]:
    return Counter((each.kind, each.id, each.status, str(each.reason)) for each in outcomes)


@pytest.mark.parametrize("brought", [[RATINGS], [RATINGS, ODD], [RATINGS[:12], RATINGS], [ODD, RATINGS, ODD]])
def test_ratings_become_what_their_lines_become(tmp_path: Path, brought: list[list[AnsweredItem]]) -> None:
    with rating_loop(tmp_path / "a") as a, rating_loop(tmp_path / "b") as b:
        for loop in (a, b):
            loop.withdraw("i11")
        for ratings in brought:
            assert counts(import_answers(a, ratings)) == counts(import_lines(b, as_lines(line_by_line(ratings))))
        assert events(a) == events(b)
        assert bits(a) == bits(b) == bits_from_scratch(a)


def test_an_import_that_ends_early_goes_on_where_it_was(tmp_path: Path) -> None:
    with rating_loop(tmp_path / "a") as a, rating_loop(tmp_path / "b") as b:
        assert next(import_answers(a, RATINGS)).status == "applied"  # of the decisions, all of which are written
        assert a.projection.log.count("feedback", 0, a.projection.head) == 0
        list(import_answers(a, RATINGS))
        list(import_answers(b, RATINGS))
        assert events(a) == events(b)
        assert bits(a) == bits(b)


def test_items_that_change_between_two_blocks_are_taken_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.io.BATCH", 10)
    with rating_loop(tmp_path / "l", n_items=1) as loop:
        outcomes = import_answers(loop, [AnsweredItem(f"r{n}", "p", "i0", "rating", 3.0) for n in range(30)])
        found = [next(outcomes) for _ in range(20)]
        [put] = loop.put_items([{"id": "i0", "title": "another film"}]).changed
        found += [next(outcomes) for _ in range(20)]
        loop.withdraw("i0")
        found += outcomes
        assert put == "i0"
        assert [each.status for each in found] == ["applied"] * 40 + ["rejected"] * 20
        versions = {loop.projection.decision(e).record.items for e in loop.projection.log.events(kinds=["decision"])}
        assert len(versions) == 2
