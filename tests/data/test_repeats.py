"""The same answer twice in a file is one answer; answers that only look alike are as many as there are."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.boards.ranking import rank
from heedful.data.choices import open_choices, pairs_in
from heedful.data.comparisons import by_name
from heedful.data.votes import votes_of

Rows = list[dict[str, Any]]


def counted(rows: Rows) -> dict[tuple[Any, ...], int]:
    """How often each answer counts, by its tiers."""
    found: dict[tuple[Any, ...], int] = {}
    for each in by_name(pairs_in("rows", rows).to_choices().choices):
        found[each.person, each.tiers] = found.get((each.person, each.tiers), 0) + each.times
    return found


def stamp(day: int, minute: int = 0) -> str:
    return f"2026-05-{day:02}T10:{minute:02}:00Z"


PAIRS: Rows = [
    {"annotation_id": 10 + i, "person": f"r{i % 2}", "first": "a", "second": "b", "answer": "ab"[i % 3 == 0]}
    for i in range(6)
]
WINNERS: Rows = [{"Annotation ID": i, "winner": "ab"[i % 2], "loser": "ba"[i % 2]} for i in range(5)]
ORDERS: Rows = [{"vote_id": f"v{i}", "order": ["a > b > c", "c > a > b"][i % 2]} for i in range(5)]
LISTS: Rows = [{"vote_id": f"v{i}", "order": [["a", "b"], ["b", "a"]][i % 2]} for i in range(5)]
RANKS: Rows = [
    {"annotation_id": i, "person": f"p{i}", "item": item, "rank": (place + i) % 3}
    for i in range(4)
    for place, item in enumerate("abc")
]
FORMS = {"pairs": PAIRS, "winners": WINNERS, "orders": ORDERS, "lists": LISTS, "ranks": RANKS}


@pytest.mark.parametrize("form", FORMS)
def test_an_id_counts_once(form: str) -> None:
    rows = FORMS[form]
    once = counted(rows)
    for twice in (rows + rows, [row for row in rows for _ in range(3)], rows[::-1] + rows[:2]):
        assert counted(twice) == once


@pytest.mark.parametrize("form", FORMS)
def test_the_newest_version_counts_wherever_it_stands(form: str) -> None:
    rows = [{**row, "updated_at": stamp(1)} for row in FORMS[form]]
    changed = []
    for row in rows:
        new = {**row, "updated_at": stamp(2)}
        if form == "pairs":
            new["answer"] = "b" if row["answer"] == "a" else "a"
        elif form == "winners":
            new["winner"], new["loser"] = row["loser"], row["winner"]
        elif form == "ranks":
            new["rank"] = 3 - row["rank"]
        else:
            new["order"] = "b > c > a" if isinstance(row["order"], str) else row["order"][::-1]
        changed.append(new)
    for file in (rows + changed, changed + rows, [each for both in zip(changed, rows) for each in both]):
        assert counted(file) == counted(changed)
    plain = [{key: value for key, value in row.items() if key != "updated_at"} for row in rows + changed]
    assert counted(plain) == counted(changed)  # where no column says which is newer, the one further down is


def test_versions_are_compared_as_numbers_and_as_times() -> None:
    for old, new in ((9, 10), ("9", "10"), ("2026-05-01T23:30:00-02:00", "2026-05-02T02:00:00+00:00")):
        rows = [
            {"annotation_id": 1, "winner": "a", "loser": "b", "version": new},
            {"annotation_id": 1, "winner": "b", "loser": "a", "version": old},
        ]
        assert counted(rows) == {("", (("a",), ("b",))): 1}


def test_an_id_of_several_people_or_questions_is_none_of_an_answer() -> None:
    people = [{"annotation_id": 1, "person": f"p{i}", "winner": "a", "loser": "b"} for i in range(3)]
    assert sum(counted(people).values()) == 3
    questions = [{"annotation_id": 1, "winner": "a", "loser": other} for other in "bcd"]
    assert sum(counted(questions).values()) == 3


def test_an_id_of_prompts_is_none_of_an_answer() -> None:
    rows = [{"id": i % 3, "winner": "ab"[i % 2], "loser": "ba"[i % 2]} for i in range(12)]
    assert sum(counted(rows).values()) == 12
    alike = [{"id": i, "winner": "ab"[i % 2], "loser": "ba"[i % 2]} for i in range(6)]
    assert sum(counted(alike + alike[2:]).values()) == 6  # nothing speaks against ids of answers


def test_a_plain_id_with_a_person_and_a_version_is_that_of_an_answer() -> None:
    rows = [
        {"id": i, "person": who, "winner": "a", "loser": "b", "updated_at": stamp(1)} for i in range(3) for who in "xy"
    ]
    newer = [{**rows[0], "winner": "b", "loser": "a", "updated_at": stamp(2)}]
    assert counted(newer + rows) == {("x", (("b",), ("a",))): 1, ("x", (("a",), ("b",))): 2, ("y", (("a",), ("b",))): 3}


def test_without_an_id_a_person_and_a_time_decide() -> None:
    rows = [{"person": "x", "winner": "a", "loser": "b", "created_at": stamp(1, i)} for i in range(4)]
    assert sum(counted(rows + rows).values()) == 4
    assert sum(counted([*rows, rows[0] | {"person": "y"}, rows[0] | {"winner": "b", "loser": "a"}]).values()) == 6
    days = [{"person": "x", "winner": "a", "loser": "b", "date": "2026-05-01"}] * 4
    assert sum(counted(days).values()) == 4  # a day is no time at which one answer was given


def test_rows_without_any_of_these_are_answers_of_their_own() -> None:
    for row in (
        {"winner": "a", "loser": "b"},
        {"person": "x", "winner": "a", "loser": "b"},
        {"winner": "a", "loser": "b", "created_at": stamp(1)},
        {"annotation_id": None, "winner": "a", "loser": "b"},
    ):
        assert sum(counted([row] * 5).values()) == 5


def test_any_order_of_the_rows_counts_the_same() -> None:
    rows = [{**row, "updated_at": stamp(1)} for row in PAIRS[:2]] + [
        {**PAIRS[0], "answer": "a", "updated_at": stamp(2)},
        {**PAIRS[1], "updated_at": stamp(3)},
    ]
    assert len({json.dumps(sorted(map(str, counted(list(each)).items()))) for each in permutations(rows)}) == 1


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    rows = PAIRS + PAIRS[:4]
    found = rank(rows)
    assert found.estimate.choices.answers == 6
    [said] = [each.message for each in found.remarks if each.kind == "repeated"]
    assert said == "4 rows repeat an answer, by its annotation_id: each counts once, as it was last."
    assert not [each for each in rank(PAIRS).remarks if each.kind == "repeated"]
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert open_choices(file).choices == pairs_in("rows", PAIRS).to_choices().choices


def test_votes_of_an_arena_count_the_newest_version() -> None:
    rows: Rows = [
        {"vote_id": i, "model_a": "x", "model_b": "y", "winner": "model_a", "updated_at": stamp(1)} for i in range(4)
    ]
    newer = [{**row, "winner": "model_b", "updated_at": stamp(2)} for row in rows[:3]]
    loaded = pairs_in("votes", newer + rows)
    votes = votes_of(loaded)  # type: ignore[arg-type]
    assert (votes.total, votes.left_out) == (4, {"rows that repeat a vote, by its vote_id": 3})
    assert sorted(votes.outcome.tolist()) == [0, 0, 0, 2]
    board = heedful.leaderboard(newer + rows)
    assert board.to_dict()["ranking"] == heedful.leaderboard(newer + rows[3:]).to_dict()["ranking"]
    gone = votes_of(pairs_in("votes", [rows[0] | {"model_b": "z"}, rows[0], rows[0]]))  # type: ignore[arg-type]
    assert gone.models == ("x", "y", "z")
