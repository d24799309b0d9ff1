"""Battles as arenas keep them: their columns and words, in all kinds of files; pairs are read as columns, and come to
what they come to one row after another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.choices import open_choices
from heedful.data.comparisons import Comparison, by_name, tabulate
from written import write

BATTLES = """id,model_a,model_b,winner,evaluation_session_id,evaluation_order,category_tag
1,opus,mini,model_a,s1,1,code
2,mini,opus,model_a,s1,2,code
3,opus,mini,tie,s2,1,maths
4,opus,mini,tie (bothbad),s2,2,maths
5,mini,max,both_bad,s3,1,
6,max,mini,bothbad,s3,2,
7,max,mini,model_b,s3,3,
"""
READ = [
    Comparison("s1", (("opus",), ("mini",)), 1, "opus"),
    Comparison("s1", (("mini",), ("opus",)), 1, "mini"),
    Comparison("s2", (("opus", "mini"),), 2, "opus"),
    Comparison("s3", (("mini", "max"),), 1, "mini"),
    Comparison("s3", (("max", "mini"),), 1, "max"),
    Comparison("s3", (("mini",), ("max",)), 1, "max"),
]


def put(folder: Path, text: str, name: str = "votes.csv") -> Path:
    return write(folder / name, text)


def test_battles_as_they_come(tmp_path: Path) -> None:
    got = open_choices(put(tmp_path, BATTLES))
    assert sorted(by_name(got.choices), key=repr) == sorted(READ, key=repr)
    assert got.choices.items == ("max", "mini", "opus")
    assert got.bad == 3
    assert got.summary.startswith("columns model_a, model_b, winner, evaluation_session_id; id, ")


def test_three_columns_made_by_hand(tmp_path: Path) -> None:
    got = open_choices(put(tmp_path, "Model A,Model B,Winner\nx,y,Model A\ny,x,x\nx,y,Tie\n"))
    assert list(by_name(got.choices)) == [
        Comparison("", (("x",), ("y",)), 1, "x"),
        Comparison("", (("x",), ("y",)), 1, "y"),
        Comparison("", (("x", "y"),), 1, "x"),
    ]
    assert got.bad == 0


def test_the_judge_comes_before_the_session(tmp_path: Path) -> None:
    text = "model_a,model_b,winner,evaluation_session_id,judge\nx,y,model_b,s,ann\n"
    assert open_choices(put(tmp_path, text)).choices.people == ("ann",)


def test_a_model_that_is_called_both_bad_is_a_winner_all_the_same(tmp_path: Path) -> None:
    got = open_choices(put(tmp_path, "model_a,model_b,winner\nboth_bad,y,both_bad\ny,both_bad,y\n"))
    assert [each.tiers for each in by_name(got.choices)] == [(("both_bad",), ("y",)), (("y",), ("both_bad",))]
    assert got.bad == 0


NAMES = st.sampled_from(["a", "b", "c", " a", "x y"])
SAID = st.sampled_from(["model_a", "model_b", "tie", "both_bad", "unsure", ""])
ROWS = st.lists(st.tuples(NAMES, NAMES, SAID, st.sampled_from(["p", "q"]), st.integers(0, 3)), min_size=1, max_size=40)


@given(ROWS)
def test_columns_come_to_what_rows_come_to(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, str, int]]
) -> None:
    """One row after another, as the words have it."""
    rows = [row for row in rows if row[0].strip() != row[1].strip()]
    rows.append(("a", "b", "model_a", "p", 1))
    want, bad = [], 0
    for left, right, said, person, times in rows:
        a, b = left.strip(), right.strip()
        if not times:
            continue
        tiers = {"model_a": ((a,), (b,)), "model_b": ((b,), (a,))}.get(said, ((a, b),))
        want.append(Comparison(person, tiers, times, a, said not in ("unsure", "")))
        bad += times * (said == "both_bad")
    text = "model_a,model_b,winner,judge,times\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows)
    got = open_choices(put(tmp_path_factory.mktemp("votes"), text))
    assert got.choices == tabulate(want)
    assert got.bad == bad


HEAD = "model_a,model_b,winner"
JUDGED, COUNTED = f"{HEAD},judge", f"{HEAD},times"
TIMES = "votes.csv:2: times: expected a whole number, 0 to 1,000,000,000, got "


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        # of several, the first row; of a row, the first column
        (HEAD, "a,b,model_a\n\na,b,tie\n,b,nope\na,,tie", "votes.csv:5: model_a: expected a name, got nothing"),
        (HEAD, "a,b,model_a\na,b,nope\na,b,none", "votes.csv:3: winner: expected model_a, model_b, .*, got 'nope'"),
        (HEAD, '"a\nb",c,model_a\nc,c,x\nd,d,x', "votes.csv:4: model_b: expected another item than in model_a, got"),
        (HEAD, f'"{"x" * 300_000}",y,model_a', "votes.csv:2: text: expected CSV, got field larger"),
        (HEAD, "x,y,model_a\nx,  ,model_a", "votes.csv:3: model_b: expected a name"),
        (HEAD, "x,NaN,model_a", "votes.csv:2: model_b: expected a name, got nothing"),
        (HEAD, "x,y,z", "votes.csv:2: winner: expected .*, tie, both_bad, skip, or .*, got 'z'; .*--answer z=unsure"),
        (HEAD, "x,y,model_c", "votes.csv:2: winner: .*got 'model_c'"),
        (HEAD, "x,y,0.5", "votes.csv:2: winner: .*got '0.5'"),
        (HEAD, 'x,y,"model_a,model_b"', "votes.csv:2: winner: .*model_a,model_b"),
        (HEAD, "b,x,b\nx,y,model_a", "votes.csv:2: winner: .*which is both"),
        (HEAD, "x,y,\ny,x,skip", "votes.csv: answers: expected at least one"),
        (JUDGED, "x,y,tie,", "votes.csv:2: judge: expected a name, got nothing"),
        (COUNTED, "x,y,tie,-1", f"{TIMES}'-1'"),
        (COUNTED, "x,y,tie,0.5", f"{TIMES}'0.5'"),
        (COUNTED, "x,y,tie,many", "votes.csv:2: times: expected a number, got 'many'"),
        (COUNTED, "x,y,tie,inf", "votes.csv:2: times: expected a number, got 'inf'"),
        (COUNTED, "x,y,tie,1e15", "votes.csv:2: times: expected a number, got '1e15'"),
        (COUNTED, "x,y,tie,0", "votes.csv: answers: expected at least one"),
        ("model_a,model_b", "x,y", "votes.csv: answer: expected a column"),
        ("model_a,winner", "x,model_a", "votes.csv: columns: expected winner and loser; "),
        ("x,y,model_a", "y,x,tie", "votes.csv: columns: expected winner and loser; "),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, header: str, rows: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        open_choices(put(tmp_path, f"{header}\n{rows}\n"))


@pytest.mark.parametrize(
    ("field", "cell", "message"),
    [
        ("model_a", True, "model_a: expected a text or a whole number, got True"),
        ("model_a", ["x"], r"model_a: expected a text or a whole number, got \['x'\]"),
        ("model_b", {"name": "y"}, "model_b: expected a text or a whole number, got {'name': 'y'}"),
        ("model_b", None, "model_b: expected a name, got nothing"),
        ("winner", ["model_a"], "winner: expected"),
    ],
)
def test_what_is_no_text_is_named_in_json(tmp_path: Path, field: str, cell: object, message: str) -> None:
    good = {"model_a": 1, "model_b": 2.0, "winner": "model_a"}
    path = put(tmp_path, f"{json.dumps(good)}\n{json.dumps(good | {field: cell})}\n", "votes.jsonl")
    with pytest.raises(ValueError, match=f"^votes.jsonl:2: {message}"):
        open_choices(path)
    assert open_choices(put(tmp_path, json.dumps(good), "votes.jsonl")).choices.items == ("1", "2")
