"""Answers of models to the same prompts, out of a folder of tables or of texts; what is missing or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.studies.outputs import LONGEST, Outputs, merge_outputs, read_outputs, same_prompts
from heedful.studies.reading import LeftOut


def tables(folder: Path, **models: Any) -> Path:
    """A file of JSON lines for each model."""
    folder.mkdir(exist_ok=True)
    for name, rows in models.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row(id: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "answer": answer, **more}


def test_tables_of_all_kinds_are_the_same(tmp_path: Path) -> None:
    rows = {m: [{"prompt": p, "answer": f"{m} on {p}"} for p in ("one", "two")] for m in ("a", "b")}
    want = Outputs({"one": "one", "two": "two"}, {m: {p: f"{m} on {p}" for p in ("one", "two")} for m in rows})
    first = tables(tmp_path / "lines", **rows)
    assert read_outputs(first) == want
    other = tmp_path / "others"
    other.mkdir()
    (other / "a.csv").write_text("prompt,output\none,a on one\ntwo,a on two\n")
    pq.write_table(pa.Table.from_pylist([{"Instruction": r["prompt"], "Response": r["answer"]} for r in rows["b"]]),
                   other / "b.parquet")  # fmt: skip
    assert read_outputs(other) == want


def test_a_folder_of_texts_for_each_model_with_prompts_beside(tmp_path: Path) -> None:
    for model in ("a", "b", "prompts"):
        (tmp_path / model).mkdir()
        for id in ("p1", "p2"):
            (tmp_path / model / f"{id}.txt").write_text(f"{model}\r\nof {id}\n")
    got = read_outputs(tmp_path)
    assert got == Outputs({"p1": "prompts\nof p1", "p2": "prompts\nof p2"},
                          {m: {p: f"{m}\nof {p}" for p in ("p1", "p2")} for m in ("a", "b")})  # fmt: skip


def test_prompts_in_a_table_of_their_own_and_messages(tmp_path: Path) -> None:
    tables(
        tmp_path,
        a=[row("1", "x"), row("2", "y")],
        b=[{"id": 1, "messages": [{"role": "user", "content": "hi"}], "answer": "z"}, row("2", "w")],
        prompts=[{"id": "2", "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}],
    )
    got = read_outputs(tmp_path)
    assert got.prompts == {"1": "hi", "2": "system: s\n\nuser: u"}
    assert got.answers == {"a": {"1": "x", "2": "y"}, "b": {"1": "z", "2": "w"}}


def test_messages_in_a_cell_are_messages_and_calls_of_tools_no_answer(tmp_path: Path) -> None:
    said = [{"role": "assistant", "content": "Hello."}]
    calls = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}, {"role": "tool", "content": "sun"}]
    tables(
        tmp_path,
        a=[row("1", json.dumps(said)), row("2", repr(said)), row("3", "x")],
        b=[row("1", "x"), row("2", "y"), row("3", [*calls, *said])],
        prompts=[{"id": "1", "prompt": str([{"role": "user", "content": "hi"}])}],
    )
    got = read_outputs(tmp_path)
    assert got.prompts == {"1": "hi", "2": ""}
    assert got.answers == {"a": {"1": "Hello.", "2": "Hello."}, "b": {"1": "x", "2": "y"}}
    assert LeftOut("b.jsonl:3", "expected an answer of text, got one that calls tools or holds something else") in (
        got.left_out
    )


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    tables(
        tmp_path,
        a=[row("1", "x"), row("2", "y"), row("3", "only here"), row("4", " ")],
        b=[row("1", "x"), row("4", "z")],
        c=[row("2", "y"), row("4", "x" * (LONGEST + 1))],
    )
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    (tmp_path / ".hidden").write_text("x")
    got = read_outputs(tmp_path)
    assert got.prompts == {"1": "", "2": ""}
    assert set(got.left_out) == {
        LeftOut("a.jsonl:4", f"expected 1 to {LONGEST:,} characters of answer, got 0"),
        LeftOut("c.jsonl:2", f"expected 1 to {LONGEST:,} characters of answer, got {LONGEST + 1:,}"),
        LeftOut("notes.pdf", "expected a folder, or a table (.csv, .tsv, .jsonl, .ndjson, .parquet)"),
        LeftOut("2 prompts", "one model alone answered: 3, 4"),
        LeftOut("b", "no answer to 1 prompt: 2"),
        LeftOut("c", "no answer to 1 prompt: 1"),
    }
    assert got.models("1") == ["a", "b"]
    assert got.questions == 2


def test_a_link_to_elsewhere_is_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(json.dumps(row("1", "secret")) + "\n")
    outputs = tables(tmp_path / "outputs", a=[row("1", "x")], b=[row("1", "y")])
    (outputs / "c.jsonl").symlink_to(secret)
    (outputs / "d").mkdir()
    (outputs / "d" / "1.txt").symlink_to(secret)
    got = read_outputs(outputs)
    assert set(got.answers) == {"a", "b"}
    assert "secret" not in str(got.answers)
    assert LeftOut("c.jsonl", "expected an entry of this folder, got a link to elsewhere") in got.left_out
    assert LeftOut("d/1.txt", "expected a file of this folder, got a link to elsewhere") in got.left_out


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({}, r"outputs: expected 2 to 200 models, got 0; a model is a table, MODEL.csv or MODEL.jsonl, with id"),
        ({"a": [row("1", "x")]}, r"outputs: expected 2 to 200 models, got 1"),
        ({"a": [row("1", "x")], "b": [row("2", "y")]}, r"outputs: expected a prompt that two models or more answered"),
        ({"a": [row("1", "x"), row("1", "y")]}, r"a.jsonl:2: id: expected each prompt once, got '1' again"),
        ({"a": [{"id": "1"}]}, r"a.jsonl: answer: expected a column such as answer, got id"),
        ({"a": [{"answer": "x"}]}, r"a.jsonl: prompt: expected a column such as prompt or id, got answer"),
        ({"a": [{"id": "", "answer": "x"}]}, r"a.jsonl:1: id: expected a prompt, got nothing"),
        ({"a": [{"id": "x\ny", "answer": "x"}]}, r"a.jsonl:1: id: expected 1 to 150 printable characters"),
        ({"a": [{"id": "1", "answer": {"x": 1}}]}, r"a.jsonl:1: answer: expected a text, or a list of messages"),
        ({"a": [{"id": "1", "answer": True}]}, r"a.jsonl:1: answer: expected a text, or a list of messages, got True"),
        (
            {"a": [row("1", "x", prompt="hi")], "b": [row("1", "y", prompt="ho")]},
            r"b.jsonl:1: prompt: expected the prompt of '1' as in a.jsonl:1, got 'ho'",
        ),
        (
            {"a": [row("1", "x")], "prompts": [row("1", "y")]},
            r"prompts.jsonl: prompt: expected a column such as prompt, got id, answer",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, models: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_outputs(tables(tmp_path / "outputs", **models))


def test_two_entries_of_one_name_a_file_and_nothing(tmp_path: Path) -> None:
    outputs = tables(tmp_path / "outputs", a=[row("1", "x")])
    (outputs / "a.csv").write_text("id,answer\n1,y\n")
    with pytest.raises(ValueError, match=r"a.jsonl: expected one entry for each model, got another one of 'a'"):
        read_outputs(outputs)
    with pytest.raises(ValueError, match=r"a.csv: expected a folder with an entry for each model, got a file"):
        read_outputs(outputs / "a.csv")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        read_outputs(tmp_path / "nothing")


def test_prompts_without_an_id_are_called_by_their_text(tmp_path: Path) -> None:
    long = "Write a text.\n" + "word " * 60
    rows = [{"prompt": each, "answer": "x"} for each in (long, long + "more", "short")]
    got = read_outputs(tables(tmp_path / "o", a=rows, b=rows))
    assert set(got.prompts.values()) == {long.strip(), (long + "more").strip(), "short"}
    assert "short" in got.prompts
    assert all(len(id) <= 80 and id.isprintable() for id in got.prompts)
    assert len(got.prompts) == 3


def test_new_answers_are_added_and_changed_ones_named() -> None:
    before = Outputs({"1": "", "2": "two"}, {"a": {"1": "x", "2": "y"}, "b": {"1": "z"}})
    now = Outputs({"2": "two", "1": "one", "3": ""}, {"b": {"1": "z", "2": "v"}, "c": {"1": "w"}})
    assert same_prompts(before, now) == ""
    got = merge_outputs(before, now)
    assert list(got.prompts.items()) == [("1", "one"), ("2", "two"), ("3", "")]
    assert got.answers == {"a": {"1": "x", "2": "y"}, "b": {"1": "z", "2": "v"}, "c": {"1": "w"}}
    assert list(got.answers) == ["a", "b", "c"]
    assert merge_outputs(before, before) == before
    changed = now._replace(answers={"b": {"1": "other"}})
    assert same_prompts(before, changed) == "the answer of 'b' to '1' has another text"
    assert same_prompts(before, now._replace(prompts={"2": "zwei"})) == "the prompt '2' has another text"
