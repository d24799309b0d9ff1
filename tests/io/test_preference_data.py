"""Preference data out of a loop and into one: what counts, and twice the same; malformed files are in
test_malformed_files.py."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from brought import brought
from heedful import TEXTS, Loop, Settings
from heedful.data.row_report import ALREADY, Report
from heedful.features import infer
from heedful.io import Outcome
from heedful.io.formats import FORMATS, check_options, find_format
from written import write_lines as lines

DRAFTS = [{"id": "long", "text": "Dear customer, we would like to inform you."}, {"id": "short", "text": "It is here!"}]
ASKED = {"prompt": "Tell them that it arrived."}


def texts(path: Path, **settings: Any) -> Loop:
    settings = {"k": 1, "control": 0.0, "exploration": 0.0} | settings
    return Loop.create(path, encoding=TEXTS, settings=Settings(**settings))


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


def test_what_a_form_of_ones_own_compares_is_a_pair_too(tmp_path: Path) -> None:
    """It names the best and the worst: the best is chosen over each of the others."""
    items = [{"id": name, "text": f"Text {name}."} for name in "abcd"]
    best_worst = f"{Path(__file__).parents[1] / 'fifth.py'}:BestWorst"
    with Loop.create(tmp_path / "l.heedful", items=items, learner=best_worst, encoding=infer(items)) as loop:
        first, second, third, last = loop.decide(id="d").shown
        loop.feedback("d", id="e", best=second, worst=first)
        loop.feedback("d", id="none", none=True)
        rows, report = written(loop, "preference-data", text="text", without_prompt="yes")
    assert {row["chosen"] for row in rows} == {f"Text {second}."}
    assert [row["rejected"] for row in rows] == [f"Text {name}." for name in (first, third, last)]
    assert dict(report.dropped) == {"compares no two answers": 1}


def test_only_an_answer_that_compares_texts_is_a_pair(tmp_path: Path) -> None:
    items = [{"id": name, "text": f"Text {name}."} for name in "abc"]
    with Loop.create(
        tmp_path / "l.heedful", items=items, encoding=infer(items), settings=Settings(control=0.0)
    ) as loop:
        first, second, _ = loop.decide(id="d").shown
        loop.feedback("d", id="choice", choice="second")  # which says nothing of the third
        loop.feedback("d", id="clicks", clicks=[second])
        loop.feedback("d", id="bought", action="buy", item=second)
        loop.feedback("d", id="rated", rating={first: 1, second: 5})
        rows, report = written(loop, "preference-data", text="text", without_prompt="yes")
    assert [(row["id"], row["chosen"], row["rejected"]) for row in rows] == [
        ("choice", f"Text {second}.", f"Text {first}.")
    ]
    assert dict(report.dropped) == {"compares no two answers": 3}


def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^--as: expected .*preference-data, ubi, unpaired, got 'csv'$"):
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
        ({"chosen": [{"role": "assistant", "content": "x"}], "rejected": []}, "an answer is empty"),
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


# ---------------------------------------------------------------------------- what is not text

USER, ASSISTANT = {"role": "user", "content": "Weather in Rome?"}, {"role": "assistant", "content": "I cannot know."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}],
}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "sun, 24"}
SUNNY = {"role": "assistant", "content": "Sunny, 24 degrees."}
NOT_TEXT = "an answer or the prompt holds something other than text"
NOT_ONE = "an answer is not one message of the assistant"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([CALL, TOOL, SUNNY], NOT_TEXT),
        ([CALL], NOT_TEXT),
        ([SUNNY | {"function_call": {"name": "weather", "arguments": "{}"}}], NOT_TEXT),
        ([SUNNY | {"reasoning_content": "It is summer."}], NOT_TEXT),
        ([SUNNY, USER, ASSISTANT], NOT_ONE),
        ([SUNNY, ASSISTANT], NOT_ONE),
        ([SUNNY | {"role": "gpt"}], NOT_ONE),
    ],
)
@pytest.mark.parametrize("name", ["preference-data", "unpaired"])
def test_what_is_no_text_is_not_made_one(tmp_path: Path, name: str, answer: list[Any], reason: str) -> None:
    row = {"prompt": [USER], "chosen": answer, "rejected": [ASSISTANT | {"content": "No."}]}
    plain = {"prompt": "Plain?", "chosen": "Yes.", "rejected": "No, perhaps."}
    if name == "unpaired":
        row, plain = ({"prompt": r["prompt"], "completion": r["chosen"], "label": True} for r in (row, plain))
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, name, lines(tmp_path / "rows.jsonl", [row, plain]))
        assert statuses(outcomes) == {("decision", "applied"): 1, ("feedback", "applied"): 1}
        assert (dict(report.dropped), report.examples[reason]) == ({reason: 1}, "rows.jsonl:1")
        [row_out] = written(loop, name)[0]
        assert row_out["prompt"] == "Plain?"


def test_calls_of_tools_in_a_prompt_stay_in_it(tmp_path: Path) -> None:
    prompt = [{"role": "system", "content": "Use tools."}, USER, CALL, TOOL]
    no = {"role": "assistant", "content": "No."}
    rows = [
        {"prompt": prompt, "chosen": [SUNNY], "rejected": [no]},
        {"prompt": prompt[:2], "chosen": [CALL, TOOL, SUNNY], "rejected": [CALL, TOOL, no]},
        {"chosen": [*prompt, SUNNY], "rejected": [*prompt, no]},
        {"prompt": prompt[:2], "chosen": [*prompt, SUNNY], "rejected": [*prompt, no]},
    ]
    for i, row in enumerate(rows):
        with texts(tmp_path / f"{i}.heedful") as loop:
            brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", [row]))
            [out] = written(loop, "preference-data")[0]
            assert (out["prompt"], out["chosen"], out["rejected"]) == (prompt, [SUNNY], [no])
    other = [USER, CALL | {"tool_calls": [{"id": "c2"}]}, TOOL]
    row = {"chosen": [USER, CALL, TOOL, SUNNY], "rejected": [*other, SUNNY]}
    with texts(tmp_path / "other.heedful") as loop:
        _, report = brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", [row]))
        assert dict(report.dropped) == {NOT_TEXT: 1}  # they differ in what they call


def test_a_labelled_conversation_has_its_prompt_in_it(tmp_path: Path) -> None:
    rows = [
        {"completion": [USER, SUNNY], "label": True},
        {"completion": [USER, SUNNY, USER, ASSISTANT], "label": False},
    ]
    with texts(tmp_path / "a.heedful") as loop:
        brought(loop, "unpaired", lines(tmp_path / "rows.jsonl", rows))
        out = [(row["prompt"], row["completion"]) for row in written(loop, "unpaired")[0]]
        assert out == [([USER], [SUNNY]), ([USER, SUNNY, USER], [ASSISTANT])]


def as_numpy(messages: Sequence[Mapping[str, Any]]) -> str:
    """A list of messages as a data frame writes an array of them into a CSV."""
    return f"[{chr(10).join(map(repr, messages)).replace(chr(10), chr(10) + ' ')}]"


@pytest.mark.parametrize("shape", [json.dumps, repr, as_numpy])
@pytest.mark.parametrize("name", ["preference-data", "unpaired"])
def test_messages_in_a_cell_are_messages(tmp_path: Path, name: str, shape: Any) -> None:
    import csv

    asked = {"role": "user", "content": "It's \"on\"?\n[{'role': 'x'}\n {}]"}
    good, bad = {"role": "assistant", "content": "Boil it, don't wait."}, {"role": "assistant", "content": "Perhaps."}
    file = tmp_path / "pairs.csv"
    with file.open("w", newline="") as text:
        out = csv.writer(text)
        if name == "preference-data":
            out.writerow(["prompt", "chosen", "rejected"])
            out.writerow([asked["content"], shape([asked, good]), shape([asked, bad])])
        else:
            out.writerow(["prompt", "completion", "label"])
            out.writerow([shape([asked]), shape([good]), "true"])
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, name, file)
        assert (len(outcomes), dict(report.dropped)) == (2, {})
        [row] = written(loop, name)[0]
        if name == "unpaired":
            assert (row["prompt"], row["completion"]) == ([asked], [good])
        else:
            assert (row["prompt"], row["chosen"], row["rejected"]) == (
                asked["content"],
                good["content"],
                bad["content"],
            )


def test_messages_in_a_cell_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    reason = "an answer or the prompt looks like messages and cannot be read as such: write JSON lines"
    cut = "[{'role': 'assistant', 'content': 'Boil it"
    arrays = "[{'content': array([{'type': 'text'}], dtype=object), 'role': 'assistant'}]"
    broken = '[{"role": "assistant", "content": "Boil it"}'
    rows = [{"prompt": "On?", "chosen": cell, "rejected": "No."} for cell in (cut, arrays, broken, "[" * 5000)]
    texts_alone = ["[1, 2]", '[{"role": "admin"}]', "[{'name': 'Ann'}]", "[see below]", "[{"]
    rows += [{"prompt": "On?", "chosen": text, "rejected": "No."} for text in texts_alone]
    with texts(tmp_path / "a.heedful") as loop:
        _, report = brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", rows))
        assert dict(report.dropped) == {reason: 3}
        out = [row["chosen"] for row in written(loop, "preference-data")[0]]
        assert out == ["[" * 5000, *texts_alone]


# ---------------------------------------------------------------------------- several answers to a prompt

PIN, TILES, STOPPER = "A pin board.", "Floor tiles.", "A stopper, perhaps, one might say."
BY_SCORE = {(PIN, TILES), (PIN, STOPPER), (TILES, STOPPER)}


@pytest.mark.parametrize(
    ("row", "pairs"),
    [
        ({"chosen": [PIN, TILES], "rejected": [STOPPER]}, {(PIN, STOPPER), (TILES, STOPPER)}),
        ({"chosen": PIN, "rejected": [TILES, STOPPER]}, {(PIN, TILES), (PIN, STOPPER)}),
        (
            {
                "chosen": [[{"role": "assistant", "content": PIN}]],
                "rejected": [[{"role": "assistant", "content": TILES}]],
            },
            {(PIN, TILES)},
        ),
        (
            {
                "completions": [
                    {"response": PIN, "score": 4},
                    {"response": STOPPER, "score": 2},
                    {"response": TILES, "score": 3},
                ]
            },
            BY_SCORE,
        ),
        ({"responses": [PIN, TILES, STOPPER], "scores": [4.5, "3", -1]}, BY_SCORE),
        (
            {"answers": [{"answer": PIN, "rank": 1}, {"answer": STOPPER, "rank": 3}, {"answer": TILES, "rank": 2}]},
            BY_SCORE,
        ),
        ({"completions": [PIN, TILES, STOPPER], "scores": [1, 1, 0]}, {(PIN, STOPPER), (TILES, STOPPER)}),
        ({"completions": [PIN, TILES, STOPPER], "scores": [2, None, 0]}, {(PIN, STOPPER)}),
    ],
)
@pytest.mark.parametrize("id", [{}, {"id": 7}, {"id": 7, "person": "ann"}])
def test_several_answers_become_pairs(
    tmp_path: Path, row: dict[str, Any], pairs: set[tuple[str, str]], id: dict[str, Any]
) -> None:
    file = lines(tmp_path / "rows.jsonl", [{"instruction": f"A use for cork, {i}."} | row | id for i in range(2)])
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "preference-data", file)
        n = 2 * len(pairs)
        assert statuses(outcomes) == {("decision", "applied"): n, ("feedback", "applied"): n}
        assert (report.rows["pairs"], report.used["pairs"], dict(report.dropped)) == (n, n, {})
        out, _ = written(loop, "preference-data")
        assert {(each["chosen"], each["rejected"]) for each in out} == pairs
        assert {each["prompt"] for each in out} == {"A use for cork, 0.", "A use for cork, 1."}
        assert {status for _, status in statuses(brought(loop, "preference-data", file)[0])} == {"duplicate"}


def test_several_answers_that_say_nothing_are_counted(tmp_path: Path) -> None:
    rows = [
        {"completions": [PIN, TILES], "scores": [1, 1]},
        {"completions": [PIN, TILES], "scores": [1, None]},
        {"chosen": [PIN, ""], "rejected": [TILES]},
        {"completions": [PIN, PIN], "scores": [2, 1]},
    ]
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, "preference-data", lines(tmp_path / "rows.jsonl", rows))
        assert statuses(outcomes) == {("decision", "applied"): 1, ("feedback", "applied"): 1}
        assert dict(report.dropped) == {
            "no answer has a better score than another": 2,
            "an answer is empty": 1,
            "both answers are equal": 1,
        }
        assert (report.rows["pairs"], report.used["pairs"]) == (5, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"completions": [PIN, TILES]}, "scores: expected a score for each of 2 completions, got none"),
        ({"completions": [PIN], "scores": [1, 2]}, "scores: expected a score for each of 1 completions, got 2"),
        ({"completions": [PIN, TILES], "scores": [1, "good"]}, r"scores\[1\]: expected a number, got 'good'"),
        ({"completions": [{"response": PIN}]}, r"completions\[0\]: expected a text and a score or rank, got response"),
        ({"completions": PIN}, "completions: expected a list of answers, got 'A pin board.'"),
        ({"completions": [PIN] * 101, "scores": [1] * 101}, "completions: expected at most 100 answers, got 101"),
        ({"text": PIN}, "columns: expected prompt, chosen, rejected, or completions with scores, got text"),
    ],
)
def test_several_answers_in_another_form_are_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    file = lines(tmp_path / "rows.jsonl", [row])
    with texts(tmp_path / "a.heedful") as loop, pytest.raises(ValueError, match=f"^rows.jsonl:1: {message}"):
        brought(loop, "preference-data", file)
