"""Files of others: the same answer twice counts once, answers that look alike are as many as there are, and the same
file again changes nothing; nothing is learned of an answer whose decision is another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from brought import brought as brought_files
from brought import taken
from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import as_lines
from heedful.data.row_report import Report
from heedful.io import Outcome, import_lines, rehearse
from heedful.io.bandit_log import evaluate_table
from heedful.io.formats import FORMATS
from loops import bits, rating_loop, small_loop
from written import placed, write_lines

Rows = Sequence[Mapping[str, Any]]
SHORT, LONG = "Restart the router.", "Perhaps you might possibly consider to restart it, maybe."
FOR: dict[str, Any] = {"prompt": "The wifi is gone.", "chosen": SHORT, "rejected": LONG}
AGAINST = FOR | {"chosen": LONG, "rejected": SHORT}
UP: dict[str, Any] = {"prompt": "The wifi is gone.", "completion": SHORT, "label": True}


def texts(path: Path) -> Loop:
    return Loop.create(path, encoding=TEXTS, settings=Settings(k=2, control=0.0))


def choices(path: Path) -> Loop:
    items = [{"id": "a", "text": SHORT}, {"id": "b", "text": LONG}]
    return Loop.create(path, items=items, settings=Settings(choices="best", control=0.0))


def brought(loop: Loop, name: str, rows: Rows, path: Path, **options: str) -> tuple[list[Outcome], Report]:
    return brought_files(loop, name, write_lines(path, rows), **options)


def told(outcomes: Sequence[Outcome]) -> Counter[str]:
    return Counter(each.status for each in outcomes if each.kind == "feedback")


def given(loop: Loop) -> Counter[str]:
    """How often each text was preferred, or which label was given, by what the log holds."""
    write = FORMATS["preference-data"].write
    assert write is not None
    return Counter(str(row["chosen"]) for _, row in write(loop, Report(), {"without-prompt": "yes"}))


@pytest.mark.parametrize("make", [texts, choices])
def test_five_votes_on_one_pair_are_five(tmp_path: Path, make: Any) -> None:
    rows = [FOR] * 4 + [AGAINST]
    with make(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "preference-data", rows, tmp_path / "votes.jsonl")
        assert (told(outcomes), report.used["pairs"]) == ({"applied": 5}, 5)
        assert given(loop) == {SHORT: 4, LONG: 1}
        head, model = loop.projection.log.last(), bits(loop)
        for again in (rows, rows[::-1], rows[:2]):
            assert told(brought(loop, "preference-data", again, tmp_path / "again.jsonl")[0]).keys() == {"duplicate"}
        assert (loop.projection.log.last(), bits(loop)) == (head, model)
        more, _ = brought(loop, "preference-data", [*rows, FOR, AGAINST], tmp_path / "votes.jsonl")
        assert told(more) == {"duplicate": 5, "applied": 2}  # the file grew by two
        assert given(loop) == {SHORT: 5, LONG: 2}


def test_ten_thumbs_on_one_answer_are_ten(tmp_path: Path) -> None:
    rows = [UP] * 9 + [UP | {"label": False}]
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "unpaired", rows, tmp_path / "thumbs.jsonl")
        assert (told(outcomes), report.used["labels"]) == ({"applied": 10}, 10)
        assert told(brought(loop, "unpaired", rows, tmp_path / "thumbs.jsonl")[0]) == {"duplicate": 10}
        write = FORMATS["unpaired"].write
        assert write is not None
        rows_out = [row for _, row in write(loop, Report(), {"without-prompt": "yes"})]
        assert Counter(row["label"] for row in rows_out) == {True: 9, False: 1}


def test_a_person_says_the_same_of_one_question_once(tmp_path: Path) -> None:
    rows = [FOR | {"person": who} for who in ("ann", "ann", "bob")]
    with texts(tmp_path / "a.heedful") as loop:
        brought(loop, "preference-data", rows, tmp_path / "votes.jsonl")
        assert given(loop) == {SHORT: 2}


@pytest.mark.parametrize("name", ["preference-data", "unpaired"])
def test_an_annotation_counts_once_and_its_newest_version(tmp_path: Path, name: str) -> None:
    old, new = (FOR, AGAINST) if name == "preference-data" else (UP, UP | {"label": False})
    first = [old | {"annotation_id": i, "updated_at": f"2026-05-01T10:00:0{i}Z"} for i in range(4)]
    later = [new | {"annotation_id": i, "updated_at": f"2026-05-02T10:00:0{i}Z"} for i in range(3)]
    for k, rows in enumerate((first + later, later + first, first + first + later + later)):
        with texts(tmp_path / f"{k}.heedful") as loop:
            outcomes, report = brought(loop, name, rows, tmp_path / "rows.jsonl")
            assert told(outcomes) == {"applied": 4}
            assert report.dropped == {
                "the same answer stands elsewhere in the file, by its annotation_id": len(rows) - 4
            }
            assert report.used.total() + report.dropped.total() == report.rows.total() == len(rows)
            write = FORMATS[name].write
            assert write is not None
            said = [row.get("chosen", row.get("label")) for _, row in write(loop, Report(), {})]
            assert Counter(said) == {new.get("chosen", new.get("label")): 3, old.get("chosen", old.get("label")): 1}
            assert told(brought(loop, name, rows, tmp_path / "rows.jsonl")[0]) == {"duplicate": 4}


def test_an_id_of_prompts_keeps_no_answer_out(tmp_path: Path) -> None:
    rows = [each | {"id": "p1"} for each in (FOR, FOR, AGAINST)] + [FOR | {"id": "p2"}]
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, _ = brought(loop, "preference-data", rows, tmp_path / "rows.jsonl")
        assert told(outcomes) == {"applied": 4}
        assert given(loop) == {SHORT: 3, LONG: 1}
        assert told(brought(loop, "preference-data", rows, tmp_path / "rows.jsonl")[0]) == {"duplicate": 4}
        more = [*rows, AGAINST | {"id": "p2"}]
        assert told(brought(loop, "preference-data", more, tmp_path / "rows.jsonl")[0]) == {
            "duplicate": 4,
            "applied": 1,
        }


def test_a_score_of_langfuse_counts_once_and_its_newest_version(tmp_path: Path) -> None:
    about = {"name": "n", "source": "ANNOTATION", "dataType": "NUMERIC", "timestamp": "2026-06-15T11:00:00Z"}
    old = [
        about
        | {"id": f"s{i}", "value": 1, "updatedAt": "2026-06-15T11:00:00Z", "subject": {"kind": "trace", "id": "t"}}
        for i in range(3)
    ]
    new = old[0] | {"value": 5, "updatedAt": "2026-06-16T11:00:00Z"}
    for k, rows in enumerate(([*old, new], [new, *old], [new, *old, new])):
        with rating_loop(tmp_path / f"{k}.heedful") as loop:
            loop.decide(["i0", "i1"], id="t", person="ann")
            outcomes, report = brought(loop, "langfuse", rows, tmp_path / "scores.jsonl", score__n="1..5")
            assert told(outcomes) == {"applied": 3}
            assert report.dropped == {"the same answer stands elsewhere in the file, by its id": len(rows) - 3}
            found = sorted(value for each in loop.lessons() for value in each.values)
            assert found == [1, 1, 5]


def impressions() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {"event_id": i, "action": "ab"[i % 2], "probability": 0.5, "reward": int(rng.random() < 0.3)} for i in range(60)
    ]


def test_an_impression_that_stands_twice_in_a_log_counts_once() -> None:
    rows = impressions()
    once = evaluate_table(placed(rows))
    assert evaluate_table(placed(rows + rows)).learners == once.learners
    bought = [row | {"reward": 1 - row["reward"], "updated_at": "2026-05-02T00:00:00Z"} for row in rows[:9]]
    dated = [row | {"updated_at": "2026-05-01T00:00:00Z"} for row in rows]
    for both, left in ((bought + dated, bought + dated[9:]), (dated + bought, dated[9:] + bought)):
        found = evaluate_table(placed(both))
        assert found.learners == evaluate_table(placed(left)).learners
        assert found.first == "the log as it is, less 9 rows that repeat an impression, by its event_id"
    bare = [{key: row[key] for key in ("action", "probability", "reward")} for row in rows]
    twice = evaluate_table(placed(bare + bare)).learners[0].values[0]
    assert twice.high - twice.low < once.learners[0].values[0].high - once.learners[0].values[0].low


# ---------------------------------------------------------------------------- ids that come again


def day(n: int, shown: Sequence[Sequence[str]], prefix: str) -> list[dict[str, Any]]:
    return [
        line
        for i, names in enumerate(shown)
        for line in (
            {"kind": "decision", "id": f"{i}", "person": f"day {n}", "candidates": list(names), "shown": list(names)},
            {"kind": "feedback", "id": f"{prefix}{i}", "decision": f"{i}", "clicks": [names[1]]},
        )
    ]


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("turned", [False, True])
def test_an_answer_is_not_joined_to_another_decision_of_the_same_id(tmp_path: Path, size: int, turned: bool) -> None:
    first = day(1, [("i0", "i1", "i2"), ("i1", "i2", "i0"), ("i2", "i0", "i1")], "f")
    second = day(2, [("i1", "i0", "i2"), ("i2", "i1", "i0"), ("i0", "i1", "i2")], "g")
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        assert {each.status for each in taken(loop, first)} == {"applied"}
        head, model = loop.projection.log.last(), bits(loop)
        if turned:  # all lists before all answers
            second.sort(key=lambda line: line["kind"])
        lines = list(as_lines(second))
        with rehearse(loop.path) as dry_loop:
            dry = Counter((each.kind, each.status) for each in import_lines(dry_loop, lines, batch=size))
        outcomes = list(import_lines(loop, lines, batch=size))
        assert {each.status for each in outcomes} == {"rejected"}
        assert dry == Counter((each.kind, each.status) for each in outcomes)
        [why, *_] = [each.reason for each in outcomes if each.kind == "feedback" and each.id == "g0"]
        assert why == "decision 0 of this file was rejected, so its answer is not joined to the decision 0 in the log"
        assert (loop.projection.log.last(), bits(loop)) == (head, model)
        good = day(2, [("i0", "i1", "i2")], "h")
        good[0]["person"] = "day 1"
        assert [each.status for each in taken(loop, good)] == ["duplicate", "applied"]


@pytest.mark.parametrize("prefix", ["f", "g"])
def test_the_same_lists_on_another_day_are_others(tmp_path: Path, prefix: str) -> None:
    def dated(n: int, prefix: str) -> list[dict[str, Any]]:
        lines = day(n, [("i0", "i1", "i2")] * 3, prefix)
        times = [f"2026-07-0{n}T08:00:{i:02}Z" for i in range(len(lines))]
        return [
            {**line, "time": time, **({"person": None} if "person" in line else {})} for line, time in zip(lines, times)
        ]

    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        assert {each.status for each in taken(loop, dated(1, "f"))} == {"applied"}
        head, model = loop.projection.log.last(), bits(loop)
        assert {each.status for each in taken(loop, dated(1, "f"))} == {"duplicate"}
        outcomes = taken(loop, dated(2, prefix))
        assert Counter((each.kind, each.status) for each in outcomes) == {
            ("decision", "rejected"): 3,
            ("feedback", "rejected"): 3,
        }
        why = {each.id: each.reason for each in outcomes}
        assert why["0"] == "decision 0 is in the log already, with other content: another time"
        assert why[f"{prefix}0"] == (
            "decision 0 of this file was rejected, so its answer is not joined to the decision 0 in the log"
        )
        assert (loop.projection.log.last(), bits(loop)) == (head, model)
        undated = [{key: value for key, value in line.items() if key != "time"} for line in dated(1, "f")]
        assert {each.status for each in taken(loop, undated)} == {"duplicate"}  # they do not say when
        rounded = [line | {"time": line["time"].replace("Z", ".4Z")} for line in dated(1, "f")]
        assert {each.status for each in taken(loop, rounded)} == {"duplicate"}


def test_an_answer_is_named_whose_list_may_be_one_of_another_day(tmp_path: Path) -> None:
    """Lists that are alike, of nobody and of no time, are one: what is known is that they had an answer before."""
    bare = [
        {key: value for key, value in line.items() if key not in ("time", "person")}
        for line in day(1, [("i0", "i1", "i2")] * 3, "f")
    ]
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        assert {each.status for each in taken(loop, bare[:-1])} == {"applied"}
        assert {each.reason for each in taken(loop, bare)} == {None}  # the rest of a file that was stopped
        second = [line | {"id": f"g{line['id']}"} if line["kind"] == "feedback" else line for line in bare]
        outcomes = taken(loop, second)
        assert Counter((each.kind, each.status) for each in outcomes) == {
            ("decision", "duplicate"): 3,
            ("feedback", "applied"): 3,
        }
        told = [each.reason for each in outcomes if each.kind == "feedback"]
        assert told[0] == (
            "decision 0 had an answer before, and its line says neither whose it is nor when it was shown: is this "
            "answer about another one of this id? Then give it another"
        )
        assert all(told)


def test_a_list_for_another_request_is_another_one(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        one, answer = day(1, [("i0", "i1", "i2")], "f")
        taken(loop, [one | {"context": {"query": "pen"}, "probability": 0.5}, answer])
        for other, field in (
            ({"context": {"query": "ink"}}, "another context"),
            ({"probability": 0.25}, "another probability"),
            ({"person": "day 2"}, "another person"),
            ({"candidates": ["i0", "i1", "i2", "i3"]}, "other candidates"),
            ({"shown": ["i1", "i0", "i2"]}, "another list"),
        ):
            outcomes = taken(loop, [one | other, answer | {"id": "g"}])
            assert [each.status for each in outcomes] == ["rejected", "rejected"]
            assert outcomes[0].reason == f"decision 0 is in the log already, with other content: {field}"
        assert [each.status for each in taken(loop, [one, answer])] == ["duplicate", "duplicate"]


@pytest.mark.parametrize("make", [texts, choices])
def test_rows_that_are_numbered_anew_are_not_those_of_before(tmp_path: Path, make: Any) -> None:
    first = [FOR | {"id": i, "prompt": f"The wifi is gone, {i}."} for i in range(3)]
    second = [FOR | {"id": i, "prompt": f"No sound, {i}.", "chosen": f"Turn it up, {i}."} for i in range(3)]
    with make(tmp_path / "a.heedful") as loop:
        assert told(brought(loop, "preference-data", first, tmp_path / "a.jsonl")[0]) == {"applied": 3}
        lessons = loop.lessons()
        outcomes, _ = brought(loop, "preference-data", second, tmp_path / "b.jsonl")
        assert told(outcomes) == {"rejected": 3}
        assert loop.lessons() == lessons
        assert told(brought(loop, "preference-data", first, tmp_path / "a.jsonl")[0]) == {"duplicate": 3}


def test_thumbs_that_are_numbered_anew_are_not_those_of_before(tmp_path: Path) -> None:
    first = [UP | {"id": i} for i in range(3)]
    second = [UP | {"id": i, "completion": f"Turn it up, {i}."} for i in range(3)]
    for i, keeps in enumerate((True, False)):
        settings = Settings(k=1, control=0.0, store_text=keeps)
        with Loop.create(tmp_path / f"{i}.heedful", encoding=TEXTS, settings=settings) as loop:
            assert told(brought(loop, "unpaired", first, tmp_path / "a.jsonl")[0]) == {"applied": 3}
            assert told(brought(loop, "unpaired", second, tmp_path / "b.jsonl")[0]) == {"rejected": 3}
            assert told(brought(loop, "unpaired", first, tmp_path / "a.jsonl")[0]) == {"duplicate": 3}


def test_an_answer_from_before_its_list_is_named(tmp_path: Path) -> None:
    shown, answer = day(1, [("i0", "i1", "i2")], "f")
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        taken(loop, [shown | {"time": "2026-07-02T08:00:00Z"}])
        [early] = taken(loop, [answer | {"time": "2026-07-01T08:00:00Z"}])
        assert (early.status, early.reason) == (
            "applied",
            "given at 2026-07-01T08:00:00Z, before decision 0 was shown, at 2026-07-02T08:00:00Z: is it about another "
            "one of this id?",
        )
        [late] = taken(loop, [answer | {"id": "g", "time": "2026-07-02T08:00:09Z"}])
        assert (late.status, late.reason) == ("applied", None)


def test_a_list_that_is_recorded_again_at_another_time_is_another_one(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        names = ["i0", "i1", "i2"]
        first = loop.record(names, names, id="1", time="2026-07-01T08:00:00Z")
        assert loop.record(names, names, id="1", time="2026-07-01T08:00:00.9Z") == first
        assert loop.record(names, names, id="1") == first
        with pytest.raises(ValueError, match=r"^id: expected a new one, got '1', which was used for another decision"):
            loop.record(names, names, id="1", time="2026-07-02T08:00:00Z")


def test_an_answer_to_a_list_without_a_time_is_not_early(tmp_path: Path) -> None:
    shown, answer = day(1, [("i0", "i1", "i2")], "f")
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        outcomes = taken(loop, [shown, answer | {"time": "2026-07-01T08:00:00Z"}])
        assert [(each.status, each.reason) for each in outcomes] == [("applied", None), ("applied", None)]
