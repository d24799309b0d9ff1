"""Comparisons in the forms in which surveys, forms, arenas and chat pages have them; by hand what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.data.choices import open_choices
from heedful.data.comparisons import by_name

Said = list[tuple[str, tuple[tuple[str, ...], ...], int]]


def said(path: Path, text: str, told: str | None = None, **options: Any) -> Said:
    """Return (person, tiers, times) of each answer in a table, of which `told` is said."""
    path.write_text(text, encoding="utf-8")
    if told is None:
        return sorted((c.person, c.tiers, c.times) for c in by_name(open_choices(path, **options).choices))
    with pytest.warns(UserWarning, match=told):
        return said(path, text, **options)


def test_the_best_and_the_worst_of_several(tmp_path: Path) -> None:
    text = "respondent,task,item1,item2,item3,item4,best,worst\nr1,1,a,b,c,d,b,d\nr1,2,b,c,d,e,2,e\nr2,1,a,b,c,,c,a\n"
    assert said(tmp_path / "a.csv", text, "the best and the worst of 4") == [
        ("r1", (("b",), ("a", "c"), ("d",)), 1),
        ("r1", (("c",), ("b", "d"), ("e",)), 1),
        ("r2", (("c",), ("b",), ("a",)), 1),
    ]
    only = "item1,item2,item3,best\na,b,c,b\n"
    assert said(tmp_path / "a.csv", only, "the best of 3") == [("", (("b",), ("a", "c")), 1)]
    with pytest.raises(ValueError, match=r"^a\.csv:2: worst: expected one of a, b, c, got 'x'"):
        said(tmp_path / "a.csv", "item1,item2,item3,best,worst\na,b,c,b,x\n")
    with pytest.raises(ValueError, match=r"^a\.csv:2: best, worst: expected two of 3 different items"):
        said(tmp_path / "a.csv", "item1,item2,item3,best,worst\na,b,c,b,b\n")


def test_a_column_for_each_option_with_its_rank(tmp_path: Path) -> None:
    text = "VoterID,Tram,Bus,Bike\nV1,2,3,1\nV2,1,,2\n"
    assert said(tmp_path / "a.csv", text, "a rank in each of the columns Tram, Bus, Bike") == [
        ("V1", (("Bike",), ("Tram",), ("Bus",)), 1),
        ("V2", (("Tram",), ("Bike",)), 1),
    ]
    form = (
        'Timestamp,"Order these [Tram]","Order these [Bus]"\n2026/03/01 9:12 AM,2nd,1st\n2026/03/01 9:14 AM,1st,2nd\n'
    )
    assert said(tmp_path / "a.csv", form, "columns Tram, Bus") == [
        ("", (("Bus",), ("Tram",)), 1),
        ("", (("Tram",), ("Bus",)), 1),
    ]
    for scores in ("who,Tram,Bus\na,4,4\nb,1,2\n", "who,Tram,Bus\na,5,3\nb,1,2\n"):  # may be ratings
        with pytest.raises(ValueError, match="columns: expected winner and loser"):
            said(tmp_path / "a.csv", scores)


def test_counts_of_wins(tmp_path: Path) -> None:
    pairs = "item1,item2,wins1,wins2,ties\noak,elm,31,19,2\noak,ash,3,0,0\n"
    assert said(tmp_path / "a.csv", pairs, "counts: wins1 of item1, wins2 of item2") == [
        ("", (("elm",), ("oak",)), 19),
        ("", (("oak",), ("ash",)), 3),
        ("", (("oak",), ("elm",)), 31),
        ("", (("oak", "elm"),), 2),
    ]
    matrix = ",oak,elm,ash\noak,0,31,3\nelm,19,0,\nash,0,0,0\n"
    assert said(tmp_path / "a.csv", matrix, "a matrix of wins, of the item of the row") == [
        ("", (("elm",), ("oak",)), 19),
        ("", (("oak",), ("ash",)), 3),
        ("", (("oak",), ("elm",)), 31),
    ]


def test_names_of_both_of_the_chosen_and_whether_they_are_equal(tmp_path: Path) -> None:
    text = "model_a_name,model_b_name,chosen_model_name,both_equal\noak,elm,elm,False\nash,fir,,True\n"
    assert said(tmp_path / "a.csv", text) == [("", (("ash", "fir"),), 1), ("", (("elm",), ("oak",)), 1)]


def test_the_name_of_a_column_is_an_answer(tmp_path: Path) -> None:
    text = "Prompt,Response 1,Response 2,Preferred\nq0,terse,chatty,Response 2\nq1,terse,chatty,Response 1\n"
    assert said(tmp_path / "a.csv", text) == [("", (("chatty",), ("terse",)), 1), ("", (("terse",), ("chatty",)), 1)]


def test_the_feedback_of_a_chat_page(tmp_path: Path) -> None:
    def thumb(i: int, rating: object, others: list[str] | None) -> dict[str, Any]:
        data = {"rating": rating, "model_id": "small", "sibling_model_ids": others}
        return {"id": f"f{i}", "user_id": "u", "type": "rating", "data": data, "meta": {}, "snapshot": {}}

    rows = [thumb(0, 1, ["large"]), thumb(1, -1, ["large", "big"]), thumb(2, 1, None), thumb(3, None, ["large"])]
    assert said(tmp_path / "a.json", json.dumps(rows)) == [
        ("u", (("big",), ("small",)), 1),
        ("u", (("large",), ("small",)), 1),
        ("u", (("small",), ("large",)), 1),
    ]


def test_a_row_in_which_an_item_meets_itself_says_nothing(tmp_path: Path) -> None:
    text = "model_a,model_b,winner\nx,x,model_a\nx,y,model_a\ny,x,model_a\n"
    told = "1 row in which an item meets itself left out"
    assert said(tmp_path / "a.csv", text, told) == [("", (("x",), ("y",)), 1), ("", (("y",), ("x",)), 1)]
    assert said(tmp_path / "a.csv", "winner,loser\na,a\na,b\n", told) == [("", (("a",), ("b",)), 1)]
    with pytest.raises(ValueError, match=r"^a\.csv:2: loser: expected another item than in winner, got 'a' twice"):
        said(tmp_path / "a.csv", "winner,loser\na,a\nb,b\na,b\n")


def test_na_is_a_name_among_names(tmp_path: Path) -> None:
    assert said(tmp_path / "a.csv", "winner,loser,,\nNA,SA,,\nEU,NA,,\n,,,\n", "1 empty row left out") == [
        ("", (("EU",), ("NA",)), 1),
        ("", (("NA",), ("SA",)), 1),
    ]
