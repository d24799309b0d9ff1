"""Preference data out of a loop and into one: what counts, twice the same, and every way a file can be wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import Line
from heedful.data.row_report import ALREADY, Report
from heedful.features import infer
from heedful.io import Outcome, import_lines
from heedful.io.formats import FORMATS, check_options, find_format
from loops import bits

DRAFTS = [{"id": "long", "text": "Dear customer, we would like to inform you."}, {"id": "short", "text": "It is here!"}]
ASKED = {"prompt": "Tell them that it arrived."}


def texts(path: Path, **settings: Any) -> Loop:
    return Loop.create(path, encoding=TEXTS, settings=Settings(**({"k": 1, "control": 0.0} | settings)))


def drafts(path: Path) -> Loop:
    """A loop of drafts in which everything happened that a row can come of, or cannot."""
    loop = texts(path, k=2, exploration=0.0)
    loop.decide(DRAFTS, id="d1", person="ann", context=ASKED, show=1)
    loop.feedback("d1", id="edit", edit="It has arrived.")
    loop.feedback("d1", id="undone", edit="It has arrived!")
    loop.feedback("d1", id="up", thumb="up")
    loop.feedback("d1", id="better", better="short")
    loop.undo("undone")
    loop.decide(DRAFTS, id="d2", person="bob", context=ASKED, show=1)
    loop.feedback("d2", id="bobs", edit="Bob's.")
    loop.decide(DRAFTS, id="d3", show=1)
    loop.feedback("d3", id="unasked", edit="It has come.")
    loop.decide(DRAFTS, id="d4", context={"messages": [{"role": "user", "content": "Tell them."}]}, show=2)
    loop.feedback("d4", id="down", thumb="down", item="short")
    loop.feedback("d4", id="both", thumb="down")
    loop.feedback("d4", id="same", edit=DRAFTS[0]["text"], item="long")
    return loop


def written(loop: Loop, name: str, **options: str) -> tuple[list[Mapping[str, Any]], Report]:
    write, report = FORMATS[name].write, Report()
    assert write is not None
    return [row for _, row in write(loop, report, {each.replace("_", "-"): v for each, v in options.items()})], report


def lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def brought(loop: Loop, name: str, *files: Path, **options: str) -> tuple[list[Outcome], Report]:
    read, report = FORMATS[name].read, Report()
    assert read is not None
    records = read(loop, files, report, options)
    return list(import_lines(loop, (Line(i, each, None) for i, each in enumerate(records, 1)))), report


def statuses(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for each in outcomes:
        found[each.kind, each.status] = found.get((each.kind, each.status), 0) + 1
    return found


# ---------------------------------------------------------------------------- out


def test_pairs_are_what_counts_with_the_events_they_are_from(tmp_path: Path) -> None:
    with drafts(tmp_path / "a.heedful") as loop:
        rows, report = written(loop, "preference-data")
        assert [row["event"] for row in rows] == ["edit", "better", "bobs"]
        draft = DRAFTS[0]["text"]
        assert rows[0] == {"prompt": ASKED["prompt"], "chosen": "It has arrived.", "rejected": draft} | {
            "id": "edit",
            "event": "edit",
            "decision": "d1",
        }
        assert (rows[1]["chosen"], rows[1]["rejected"]) == (DRAFTS[1]["text"], draft)
        assert report.rows["feedback"] == 9 == report.used["feedback"] + report.dropped.total()
        assert dict(report.dropped) == {
            "undone or rolled back": 1,
            "compares no two answers": 3,
            "the decision has no prompt": 1,
            "both answers are equal": 1,
        }
        assert report.examples["both answers are equal"] == "feedback same"
        loop.forget("bob")
        assert [row["event"] for row in written(loop, "preference-data")[0]] == ["edit", "better"]
        version = loop.projection.log.find("feedback", "edit")
        assert version is not None
        loop.rollback(version.seq)
        assert [row["event"] for row in written(loop, "preference-data")[0]] == ["edit"]
        assert len(written(loop, "preference-data", without_prompt="yes")[0]) == 1


def test_thumbs_are_rows_with_labels(tmp_path: Path) -> None:
    with drafts(tmp_path / "a.heedful") as loop:
        rows, report = written(loop, "unpaired")
        assert [(row["event"], row["label"]) for row in rows] == [("up", True), ("down", False)]
        assert rows[0]["completion"] == DRAFTS[0]["text"]
        assert rows[1]["prompt"] == [{"role": "user", "content": "Tell them."}]
        assert rows[1]["completion"] == [{"role": "assistant", "content": DRAFTS[1]["text"]}]
        assert dict(report.dropped) == {
            "no thumb": 5,
            "undone or rolled back": 1,
            "a thumb on a list of several answers": 1,
        }


def test_what_the_log_has_not_kept_is_counted(tmp_path: Path) -> None:
    with texts(tmp_path / "a.heedful", store_text=False) as loop:
        loop.decide(DRAFTS, id="d1", context=ASKED)
        loop.feedback("d1", id="e1", edit="It has arrived.")
        loop.feedback("d1", id="e2", thumb="up")
        assert written(loop, "preference-data")[1].dropped == {
            "this loop keeps no texts": 1,
            "compares no two answers": 1,
        }
        assert written(loop, "unpaired")[1].dropped == {"this loop keeps no texts": 1, "no thumb": 1}


def test_choices_and_items_of_a_catalogue_have_their_texts(tmp_path: Path) -> None:
    items = [{"id": f"t{i}", "text": f"answer {i}"} for i in range(4)]
    with Loop.create(tmp_path / "c.heedful", items=items, settings=Settings(choices="best", control=0.0)) as loop:
        for i, answer in enumerate(["first", "second", "equal", "cannot_judge"]):
            shown = loop.decide([f"t{i}", f"t{(i + 1) % 4}"], id=f"d{i}", context=ASKED).shown
            loop.feedback(f"d{i}", id=f"e{i}", choice=answer)
            best = shown[answer == "second"]
            if i == 0:
                loop.put_items([{"id": best, "text": "changed since"}])
        rows, report = written(loop, "preference-data")
        assert [row["event"] for row in rows] == ["e0", "e1"]
        assert dict(report.dropped) == {"neither answer is better": 2}
        assert {rows[0]["chosen"], rows[0]["rejected"]} == {"answer 0", "answer 1"}
    with Loop.create(tmp_path / "l.heedful", encoding=TEXTS, items=items, settings=Settings(control=0.0)) as loop:
        shown = loop.decide(["t0", "t1", "t2"], id="d", context={"question": "Which?"}, show=3).shown
        loop.feedback("d", id="e", better=[shown[2], shown[0]])
        rows, _ = written(loop, "preference-data")
        assert [(row["id"], row["chosen"], row["rejected"]) for row in rows] == [
            ("e", f"answer {shown[2][1]}", f"answer {shown[0][1]}"),
            ("e/2", f"answer {shown[2][1]}", f"answer {shown[1][1]}"),
        ]


def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^--as: expected preference-data, unpaired.*, got 'csv'$"):
        find_format("csv", "write")
    with pytest.raises(ValueError, match=r"^--option: expected text, .* with --as unpaired, got 'colour'$"):
        check_options(find_format("unpaired", "read"), {"colour": "red"})
    cars = [{"id": "a", "speed": 1}, {"id": "b", "speed": 2}]
    with Loop.create(tmp_path / "cars.heedful", encoding=infer(cars), items=cars) as loop:
        with pytest.raises(ValueError, match=r"^text: expected the column of an item that has its text"):
            written(loop, "preference-data")
        assert written(loop, "preference-data", text="name")[0] == []
        with pytest.raises(ValueError, match=r"^without-prompt: expected yes or no, got 'maybe'$"):
            written(loop, "preference-data", text="name", without_prompt="maybe")


# ---------------------------------------------------------------------------- in


PAIRS: list[dict[str, Any]] = [
    {"prompt": f"Question {i}", "chosen": f"Short {i}.", "rejected": f"Perhaps we would rather say {i}, maybe!"}
    for i in range(6)
]


@pytest.mark.parametrize("kind", ["jsonl", "gz", "list", "data", "parquet"])
def test_pairs_teach_a_loop_of_texts_once(tmp_path: Path, kind: str) -> None:
    file = lines(tmp_path / "pairs.jsonl", PAIRS)
    if kind == "gz":
        file.write_bytes(gzip.compress(file.read_bytes()))
    elif kind == "list":
        file.write_text(json.dumps(PAIRS, indent=1))
    elif kind == "data":
        file.write_text(json.dumps({"data": PAIRS}, indent=1))
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(PAIRS), file)
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "preference-data", file)
        assert statuses(outcomes) == {("decision", "applied"): 6, ("feedback", "applied"): 6}
        assert (report.rows["pairs"], report.used["pairs"]) == (6, 6)
        assert loop.decide(DRAFTS, id="d").shown == ("short",)
        before, head = bits(loop), loop.projection.log.last()
        again, _ = brought(loop, "preference-data", file)
        assert statuses(again) == {("decision", "duplicate"): 6, ("feedback", "duplicate"): 6}
        assert (bits(loop), loop.projection.log.last()) == (before, head)
        rows, _ = written(loop, "preference-data")
        assert [{name: row[name] for name in ("prompt", "chosen", "rejected")} for row in rows] == PAIRS


def test_a_loop_knows_the_rows_that_it_wrote_itself(tmp_path: Path) -> None:
    with drafts(tmp_path / "a.heedful") as loop, texts(tmp_path / "b.heedful") as other:
        for name in ("preference-data", "unpaired"):
            rows, _ = written(loop, name)
            file = lines(tmp_path / f"{name}.jsonl", rows)
            outcomes, report = brought(loop, name, file)
            assert (outcomes, report.dropped) == ([], {ALREADY: len(rows)})
            outcomes, report = brought(other, name, file)
            assert {status for _, status in statuses(outcomes)} == {"applied"}
            assert statuses(brought(other, name, file)[0]).keys() == {
                ("decision", "duplicate"),
                ("feedback", "duplicate"),
            }
            assert [row["event"] for row in written(other, name)[0]] == [row["id"] for row in rows]
        loop.forget("bob")
        _, report = brought(loop, "preference-data", tmp_path / "preference-data.jsonl")
        assert report.dropped == {ALREADY: 2, "forgotten in this loop": 1}


def test_pairs_teach_a_loop_of_choices(tmp_path: Path) -> None:
    items = [{"id": "t0", "text": "Short 0."}]
    file = lines(tmp_path / "pairs.jsonl", [*PAIRS, {"prompt": "?", "chosen": "t0", "rejected": "Short 0."}])
    with Loop.create(tmp_path / "c.heedful", items=items, settings=Settings(choices="best", control=0.0)) as loop:
        outcomes, report = brought(loop, "preference-data", file)
        assert statuses(outcomes) == {("item", "applied"): 11, ("decision", "applied"): 6, ("feedback", "applied"): 6}
        assert dict(report.dropped) == {"both answers are one item": 1}
        rows, _ = written(loop, "preference-data")
        assert [row["chosen"] for row in rows] == [pair["chosen"] for pair in PAIRS]
        again, _ = brought(loop, "preference-data", file)
        assert {status for _, status in statuses(again)} == {"duplicate"}
        with pytest.raises(ValueError, match=r"^--as: expected a loop that takes thumb, got: thumb: expected"):
            brought(loop, "unpaired", file)


def test_messages_become_texts_and_are_kept(tmp_path: Path) -> None:
    user, first = {"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello."}
    parts = {"role": "assistant", "content": [{"type": "text", "text": "Go"}, {"type": "text", "text": "away."}]}
    rows = [
        {"id": 1, "prompt": [user], "chosen": [first], "rejected": [parts]},
        {"id": 2, "chosen": [user, first], "rejected": [user, parts]},
        {"id": 3, "prompt": "Hi?", "chosen": [user, first], "rejected": [user, parts]},
        {"id": 4, "prompt": [{"role": "system", "content": "Be kind."}, user], "chosen": "Hello.", "rejected": "Go."},
    ]
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, _ = brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", rows))
        assert {status for _, status in statuses(outcomes)} == {"applied"}
        out, _ = written(loop, "preference-data")
        assert [row["prompt"] for row in out] == [[user], [user], "Hi?", rows[3]["prompt"]]
        assert out[0]["rejected"] == [{"role": "assistant", "content": "Go\n\naway."}]
        assert out[2]["rejected"] == "Go\n\naway."
        decided = loop.projection.find_decision("4")
        assert decided is not None
        assert decided.record.context is not None
        assert decided.record.context["prompt"] == "system: Be kind.\n\nuser: Hi?"


def test_labels_may_be_written_in_many_ways(tmp_path: Path) -> None:
    labels = [True, False, 1, 0, "True", "false", 1.0, "0"]
    rows = [{"prompt": "?", "completion": f"answer {i}", "label": label} for i, label in enumerate(labels)]
    with texts(tmp_path / "a.heedful") as loop:
        brought(loop, "unpaired", lines(tmp_path / "rows.jsonl", rows))
        assert [row["label"] for row in written(loop, "unpaired")[0]] == [True, False] * 4
    csv = tmp_path / "rows.csv"
    csv.write_text("prompt,completion,label\nWhy?,Because.,True\nWhy?,No.,False\n")
    with texts(tmp_path / "b.heedful") as loop:
        brought(loop, "unpaired", csv)
        assert [row["label"] for row in written(loop, "unpaired")[0]] == [True, False]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"chosen": "a", "rejected": "a"}, "both answers are equal"),
        ({"chosen": "", "rejected": "a"}, "an answer is empty"),
        ({"chosen": "a", "rejected": " \n"}, "an answer is empty"),
        ({"chosen": None, "rejected": "a"}, "an answer is missing"),
        ({"chosen": [], "rejected": []}, "both answers are equal"),
        ({"chosen": [{"role": "user", "content": "x"}], "rejected": []}, "an answer is empty"),
        (
            {"chosen": [{"role": "user", "content": [{"type": "image_url"}]}], "rejected": "a"},
            "an answer or the prompt holds something other than text",
        ),
    ],
)
def test_a_row_that_says_nothing_is_counted(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", [PAIRS[0], row]))
        assert statuses(outcomes) == {("decision", "applied"): 1, ("feedback", "applied"): 1}
        assert dict(report.dropped) == {reason: 1}
        assert report.examples[reason] == "rows.jsonl:2"


GOOD = json.dumps(PAIRS[0])
LABELLED = json.dumps({"prompt": "?", "completion": "a", "label": True})
MALFORMED: list[tuple[str, str, bytes | str, str]] = [
    # format, case, content, how the error begins after the name of the file
    *(
        (name, case, content, told)
        for name in ("preference-data", "unpaired")
        for case, content, told in (
            ("empty", "", ": content: expected records, got an empty file"),
            ("blank", " \n\n", ": content: expected records, got an empty file"),
            ("an empty list", "[]", ": content: expected records, got none"),
            ("a list cut off", "[{}", ": json: expected one JSON document"),
            ("no records in an object", '{"rows": [],\n"more": 1}', ": data: expected a list of records in it"),
            ("data that is no list", '{"data": 1,\n"more": 1}', ": data: expected a list of records in it"),
            ("a number in a list", "[1]", ": record 1: expected an object, got 1"),
            ("a NaN in a list", '[{"a": NaN}]', ": json: expected one JSON document"),
            (
                "a key twice in a list",
                '[{"a": 1, "a": 2}]',
                ": json: expected one JSON document, got: a key twice: 'a'",
            ),
            ("deep", "[" * 100_000, ": json: expected"),
            ("a text", '"a"', ""),
            ("no UTF-8", b'{"chosen": "\xff"}', ":1: text: expected UTF-8"),
            ("no UTF-8 in a list", b'[{"chosen": "\xff"}]', ": text: expected UTF-8"),
            (
                "half a surrogate pair",
                b'[{"chosen": "\\ud800", "rejected": "a"}]',
                ": json: expected one JSON document",
            ),
            ("UTF-16", '{"a": 1}'.encode("utf-16"), ""),
            ("gzip cut off", gzip.compress(GOOD.encode() * 9)[:-9], ": gzip: expected a whole stream"),
            ("Parquet cut off", b"PAR1" + bytes(50), ": content: expected a whole Parquet file"),
            ("a spreadsheet", b"PK\x03\x04" + bytes(50), ": text: expected CSV in UTF-8, got a spreadsheet"),
            ("other columns", "question,answer\na,b\n", ":2: columns: expected prompt, "),
            ("a line that is a number", f"{GOOD}\n3\n", ":"),
            ("events of a loop", '{"kind": "item", "id": "a"}', ":1: columns: expected prompt, "),
        )
    ),
    ("preference-data", "a line cut off", f"{GOOD}\n{GOOD[:20]}", ":2: json: expected"),
    ("preference-data", "a list in a line", f"{GOOD}\n[]", ":2: line: expected one JSON object"),
    ("preference-data", "a key twice", f'{GOOD}\n{{"chosen": "a", "chosen": "b"}}', ":2: key: expected each once"),
    ("preference-data", "NaN", f'{GOOD}\n{{"chosen": NaN}}', ":2: json: expected"),
    ("preference-data", "too deep", GOOD + '\n{"chosen": ' + "[" * 70 + "]" * 70 + "}", ":2: json: expected at most"),
    *(
        ("preference-data", f"row {i}", f"{GOOD}\n{json.dumps(row)}", f":2: {told}")
        for i, (row, told) in enumerate(
            [
                ({"prompt": "?", "chosen": "a"}, "columns: expected prompt, chosen, rejected"),
                ({"prompt": "?", "rejected": "a"}, "columns: expected prompt, chosen, rejected"),
                (json.loads(LABELLED), "columns: expected prompt, chosen, rejected"),
                ({"chosen": 1, "rejected": "a"}, "chosen: expected a text, or a list of messages, got 1"),
                ({"chosen": "a", "rejected": {"text": "b"}}, "rejected: expected a text, or a list of messages"),
                ({"chosen": True, "rejected": "b"}, "chosen: expected a text, or a list of messages, got True"),
                ({"chosen": ["a"], "rejected": ["b"]}, "chosen[0]: expected a message"),
                ({"chosen": [{"content": "a"}], "rejected": "b"}, "chosen[0]: expected a message"),
                ({"chosen": [{"role": "user"}], "rejected": "b"}, "chosen[0]: expected a message"),
                ({"chosen": [{"role": 1, "content": "a"}], "rejected": "b"}, "chosen[0]: expected a message"),
                ({"chosen": [{"role": "user", "content": 3}], "rejected": "b"}, "chosen[0].content: expected a text"),
                (
                    {"chosen": [{"role": "user", "content": ["a"]}], "rejected": "b"},
                    "chosen[0].content: expected parts",
                ),
                ({"prompt": 3, "chosen": "a", "rejected": "b"}, "prompt: expected a text, or a list of messages"),
                ({"prompt": ["a"], "chosen": "a", "rejected": "b"}, "prompt[0]: expected a message"),
                ({"id": 1.5, "chosen": "a", "rejected": "b"}, "id: expected a text or a whole number, got 1.5"),
                ({"id": True, "chosen": "a", "rejected": "b"}, "id: expected a text or a whole number, got True"),
                ({"id": "x" * 201, "chosen": "a", "rejected": "b"}, "id: expected 1 to 200 printable characters"),
                ({"id": "a\nb", "chosen": "a", "rejected": "b"}, "id: expected 1 to 200 printable characters"),
                ({"person": ["a"], "chosen": "a", "rejected": "b"}, "person: expected a text or a whole number"),
            ]
        )
    ),
    *(
        ("unpaired", f"row {i}", f"{LABELLED}\n{json.dumps(row)}", f":2: {told}")
        for i, (row, told) in enumerate(
            [
                (PAIRS[0], "columns: expected prompt, completion, label"),
                ({"completion": "a"}, "columns: expected prompt, completion, label"),
                ({"completion": 3, "label": True}, "completion: expected a text, or a list of messages, got 3"),
                ({"completion": "a", "label": "good"}, "label: expected true or false, got 'good'"),
                ({"completion": "a", "label": 2}, "label: expected true or false, got 2"),
                ({"completion": "a", "label": [True]}, "label: expected true or false, got [True]"),
                ({"completion": "a", "label": 0.5}, "label: expected true or false, got 0.5"),
            ]
        )
    ),
]


@pytest.mark.parametrize(("name", "case", "content", "told"), MALFORMED, ids=[f"{n}-{c}" for n, c, _, _ in MALFORMED])
def test_a_malformed_file_is_named_and_nothing_is_written(
    tmp_path: Path, name: str, case: str, content: bytes | str, told: str
) -> None:
    file, good = tmp_path / "bad.jsonl", tmp_path / "good.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    good.write_text(GOOD if name == "preference-data" else LABELLED)
    with texts(tmp_path / "a.heedful") as loop:
        head = loop.projection.log.last()
        with pytest.raises(ValueError, match=r"^bad\.jsonl") as error:
            brought(loop, name, good, file)
        assert str(error.value).startswith(f"bad.jsonl{told}")
        assert "\n" not in str(error.value)
        assert loop.projection.log.last() == head


def test_there_are_more_than_fifty_malformed_files() -> None:
    assert len(MALFORMED) >= 50
