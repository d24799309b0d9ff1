"""`heedful rank`: its figures are those of the parts behind it, its options, words, files and errors."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest
from command import done, heedful, refusal

from films import shared
from heedful.boards.standing import standing, verdict
from heedful.core.wording import BAR
from heedful.data.choices import open_choices
from heedful.data.comparisons import Comparison, pool_people, tabulate
from heedful.data.preflib import load_preflib, write_preflib
from heedful.data.sushi import load_sushi
from heedful.inference.estimation import estimate
from heedful.inference.gp.acquisition import next_question

TEAS = Path(__file__).resolve().parents[2] / "examples" / "teas.csv"
KEYS = [
    "file",
    "read",
    "model",
    "items",
    "person",
    "people",
    "answers",
    "sure",
    "ranking",
    "alike",
    "verdict",
]
KEYS += ["next", "next_for", "settings", "remarks", "anchor", "matrix"]
ROW = ["place", "item", "best", "place_low", "place_high", "better_than_next", "told_apart"]
ROW += ["utility", "utility_low", "utility_high", "score", "score_low", "score_high", "votes"]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Answers of nobody in particular about five things, in other words than ours; e beats all."""
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(60):
        a, b = rng.choice(5, 2, replace=False).tolist()
        rows.append(
            f"{'abcde'[max(a, b)]};{'abcde'[min(a, b)]}" if rng.random() < 0.9 else f"{'abcde'[a]};{'abcde'[b]}"
        )
    file = tmp_path / "pairs.csv"
    file.write_text("Gewinner;Verlierer\n" + "\n".join(rows) + "\n")
    return file


LINE = "rank {} --column winner=Gewinner --column loser=Verlierer"


def test_one_person_is_what_the_parts_say(pairs: Path) -> None:
    got = done(f"{LINE} --json", pairs)
    assert list(got.json) == KEYS
    found = estimate(open_choices(pairs, {"winner": ["Gewinner"], "loser": ["Verlierer"]}).choices)
    want = standing(found.posterior)
    told = verdict(found.posterior, found.choices.items, "best", want)
    assert (got.json["read"], got.json["answers"]) == ("columns Gewinner, Verlierer", 60)
    assert got.json["model"] == "one"
    assert got.json["next_for"] == ""
    ask = next_question(found.posterior.whole(), "eubo")
    assert got.json["next"] == [found.choices.items[i] for i in (ask.first, ask.second)]
    assert told.left is not None
    assert got.json["verdict"] == told._asdict() | {"left": told.left._asdict()}
    assert told.favourite == "e"
    assert [row["item"] for row in got.json["ranking"]] == [found.choices.items[i] for i in want.order]
    for i, row in zip(want.order.tolist(), got.json["ranking"]):
        assert list(row) == ROW
        low, high = want.mean[i] - BAR * want.sd[i], want.mean[i] + BAR * want.sd[i]
        assert (row["utility_low"], row["utility"], row["utility_high"]) == (low, want.mean[i], high)
        assert [row["place_low"], row["place_high"]] == want.places[i].tolist()
        assert row["best"] == pytest.approx(want.best[i])
    assert [row["better_than_next"] for row in got.json["ranking"]] == [*want.better.tolist(), None]
    assert [row["told_apart"] for row in got.json["ranking"]] == [*(want.better >= 0.9).tolist(), None]
    assert told.left.low <= told.left.high <= told.left.most
    assert sum(row["utility"] for row in got.json["ranking"]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_many_people_their_average_and_somebody_new() -> None:
    got = heedful("rank {} --json", TEAS).json
    found = estimate(open_choices(TEAS).choices)
    want, new = standing(found.posterior), standing(found.belief.new())
    assert (got["model"], got["people"], got["items"], got["answers"]) == ("people", 6, 8, 84)
    assert [row["item"] for row in got["ranking"]] == [found.choices.items[i] for i in want.order]
    assert [row["best_if_new"] for row in got["ranking"]] == pytest.approx([new.best[i] for i in want.order])
    assert got["verdict"]["left"] is None
    assert got["next_for"] is None
    assert sorted(each["kind"] for each in got["remarks"]) == ["contradiction", "random", "side", "unsure"]
    [side] = [each for each in got["remarks"] if each["kind"] == "side"]
    assert side["people"] == ["fay"]


@pytest.mark.slow
def test_one_of_many_people(pairs: Path) -> None:
    got = heedful("rank {} --person cleo --goal ranking --sure 0.8 --json", TEAS).json
    found = estimate(open_choices(TEAS).choices)
    posterior = found.belief.of(found.choices.people.index("cleo"))
    names = found.choices.items
    told = verdict(posterior, names, "ranking", standing(posterior, at=0.8), at=0.8)
    assert told.left is not None
    assert (got["person"], got["next_for"], got["sure"]) == ("cleo", "cleo", 0.8)
    assert got["verdict"] == told._asdict() | {"left": told.left._asdict()}
    ask = next_question(posterior.whole(), "bald")
    assert got["next"] == [names[ask.first], names[ask.second]]
    assert [row["told_apart"] for row in got["ranking"]][:-1] == (standing(posterior).better >= 0.8).tolist()
    assert "side" not in {each["kind"] for each in got["remarks"]}  # that is about somebody else


@pytest.mark.slow
def test_pooled_apart_and_left_out(tmp_path: Path) -> None:
    got = heedful("rank {} --pool --json", TEAS).json
    assert (got["model"], got["people"]) == ("one", 1)
    want = standing((found := estimate(pool_people(open_choices(TEAS).choices))).posterior)
    assert [row["item"] for row in got["ranking"]] == [found.choices.items[i] for i in want.order]
    assert heedful("rank {} --without fay --without ada --json", TEAS).json["people"] == 4
    file = tmp_path / "x.soi"
    orders = [Comparison("", tuple((each,) for each in order), 4) for order in ("abc", "acb", "bac")]
    write_preflib(file, tabulate(orders))
    assert heedful("rank {} --json", file).json["people"] == 1
    assert heedful("rank {} --no-pool --json", file).json["people"] == 12


def test_a_study_where_all_of_three_are_equally_good(tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    shown = '"person":"p","shown":["a","b","c"]'
    told = ",".join([f'{{{shown},"answer":"equal"}}'] * 9 + [f'{{{shown},"answer":"a"}}'])
    file.write_text(f'{{"study":"s","items":["a","b","c"],"answers":[{told}]}}')
    got = heedful("rank {} --json", file).json
    assert got["answers"] == 10
    file.write_text(f'{{"study":"s","items":["a","b","c"],"answers":[{{{shown},"answer":"a"}}]}}')
    rows = [row for one in (got, heedful("rank {} --json", file).json) for row in one["ranking"] if row["item"] == "a"]
    assert 0.0 < rows[0]["utility"] < 0.5 * rows[1]["utility"]


def test_features_of_items_and_items_that_nobody_was_asked_about(pairs: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("name,size\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcde")) + "new,4.1\n")
    got = heedful(f"{LINE} --items {{}} --json", pairs, items)
    assert got.code == 0, got.err
    assert got.json["items"] == 6
    assert got.json["settings"]["explained"] > 0.0
    assert {row["item"] for row in got.json["ranking"][:2]} == {"e", "new"}
    assert [each["items"] for each in got.json["remarks"] if each["kind"] == "unasked"] == [["new"]]
    items.write_text("name,size\na,1\nb,2\n")
    assert "items.csv: name: items: expected all that were answered about, got none called 'c', 'd', 'e'" in refusal(
        f"{LINE} --items {{}}", pairs, items
    )
    assert "items.csv: identifier: expected a column (" in refusal(
        f"{LINE} --items {{}} --identifier nome", pairs, items
    )


def test_words_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("left,right,choice\na,b,-1\na,b,-1\na,b,1\n")
    assert "x.csv:2: choice: expected first, second, equal, unsure, or the name of one of the two, got '-1'" in refusal(
        "rank {}", file
    )
    got = heedful("rank {} --answer -1=second --answer 1=first --json", file)
    assert [row["item"] for row in got.json["ranking"]] == ["b", "a"]


@pytest.mark.slow
def test_people_without_a_name_among_others(tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    pair = '{{"person":"{}","shown":["a","b"],"answer":"{}"}}'
    told = [pair.format("ann", "first")] * 6 + [pair.format("", "second")] * 6
    file.write_text(f'{{"study":"s","items":["a","b"],"answers":[{",".join(told)}]}}')
    assert heedful("rank {} --json", file).json["people"] == 2
    assert heedful("rank {} --no-pool --json", file).json["people"] == 7
    got = heedful("rank {} --person= --json", file)
    assert (got.json["person"], got.json["ranking"][0]["item"]) == ("", "b")
    assert "study.json: what people without a name prefer" in heedful("rank {} --person=", file).out


# ---------------------------------------------------------------------------- votes


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Battles of four models, one of which looks like a formula."""
    rng = np.random.default_rng(7)
    names, good = ["=opus", "mini", "max", "tiny"], np.array([0.8, 0.0, 0.4, -0.9])
    rows = []
    for _ in range(150):
        a, b = rng.choice(4, 2, replace=False).tolist()
        seen = good[a] - good[b] + rng.normal()
        said = ("both_bad" if b > 1 else "tie") if abs(seen) < 0.2 else "model_a" if seen > 0 else "model_b"
        rows.append(f"{names[a]},{names[b]},{said}")
    file = tmp_path / "votes.csv"
    file.write_text("model_a,model_b,winner\n" + "\n".join(rows) + "\n")
    return file


@pytest.mark.slow
def test_battles_come_to_scores_votes_and_a_matrix(votes: Path) -> None:
    got = heedful("rank {} --json", votes).json
    opened = open_choices(votes)
    lines = [line.split(",") for line in votes.read_text().splitlines()[1:]]
    assert [row["item"] for row in got["ranking"]] == ["=opus", "max", "mini", "tiny"]
    for row in got["ranking"]:
        assert row["votes"] == sum(row["item"] in line[:2] for line in lines)
        assert row["score_low"] < row["score"] < row["score_high"]
    assert np.mean([row["score"] for row in got["ranking"]]) == pytest.approx(1000.0)
    matrix = got["matrix"]
    assert matrix["items"] == [row["item"] for row in got["ranking"]]
    side = {"model_a": 0, "model_b": 1}
    for i, a in enumerate(matrix["items"]):
        for j, b in enumerate(matrix["items"]):
            told = [line for line in lines if {*line[:2]} == {a, b}]
            assert matrix["wins"][i][j] == sum(line[2] in side and line[side[line[2]]] == a for line in told)
            assert matrix["ties"][i][j] == sum(line[2] not in side for line in told)
            assert matrix["beats"][i][j] + matrix["beats"][j][i] == pytest.approx(1.0)
    [bad] = [each for each in got["remarks"] if each["kind"] == "both_bad"]
    count = sum(line[2] == "both_bad" for line in lines)
    assert bad["message"] == f"{count} ties are 'both bad': counted as equally good."
    assert opened.bad == count
    assert f"Note: {bad['message']}" in heedful("rank {}", votes).out


@pytest.mark.slow
def test_who_is_anchored_has_that_score(votes: Path) -> None:
    got = heedful("rank {} --anchor mini=1500 --json", votes).json
    assert got["anchor"] == {"item": "mini", "score": 1500.0}
    free = heedful("rank {} --json", votes).json
    assert free["anchor"] is None
    shift = [a["score"] - b["score"] for a, b in zip(got["ranking"], free["ranking"])]
    assert shift == pytest.approx([shift[0]] * 4)
    [mini] = [row for row in got["ranking"] if row["item"] == "mini"]
    assert (mini["score_low"], mini["score"], mini["score_high"]) == (1500.0, 1500.0, 1500.0)
    assert "'mini' has 1,500" in heedful("rank {} --anchor mini=1500", votes).out


@pytest.mark.parametrize(
    ("anchor", "message"),
    [
        ("mini", "expected NAME=SCORE, such as .*=1000, got 'mini'"),
        ("mini=high", "expected NAME=SCORE, such as .*=1000, got 'mini=high'"),
        ("mini=1e9", "expected a score from -1,000,000 to 1,000,000, got 1000000000.0"),
        ("nano=1000", "expected one of ('[=a-z]+',? ?){4}, got 'nano'"),
    ],
)
def test_anchors_that_are_none(votes: Path, anchor: str, message: str) -> None:
    got = heedful(f"rank {{}} --anchor {anchor}", votes)
    assert (got.code, got.out) == (2, "")
    assert re.fullmatch(f"heedful: --anchor: {message}\n", got.err)


def test_the_ranking_as_csv_and_its_matrix(votes: Path, tmp_path: Path) -> None:
    ranking = tmp_path / "ranking.csv"
    got = done("rank {} --no-arena --csv {} --json", votes, ranking)
    rows = list(csv.DictReader(ranking.open(encoding="utf-8", newline="")))
    assert [row["item"] for row in rows] == ["'=opus", "max", "mini", "tiny"]  # no formula for a spreadsheet
    for place, (row, told) in enumerate(zip(rows, got.json["ranking"]), 1):
        assert (int(row["place"]), list(row)) == (place, list(told))  # the same names
        for name in (each for each in ROW if each not in ("place", "item", "better_than_next", "told_apart")):
            assert float(row[name]) == pytest.approx(told[name])
        assert row["told_apart"] == {True: "yes", False: "no", None: ""}[told["told_apart"]]
    found, matrix = estimate(open_choices(votes).choices), got.json["matrix"]
    a, b = (found.choices.items.index(name) for name in matrix["items"][:2])
    assert matrix["items"] == ["=opus", "max", "mini", "tiny"]
    assert matrix["beats"][0][1] == pytest.approx(float(found.posterior.beats(a, b)))


@pytest.mark.parametrize("width", [60, 70, 80, 100])
def test_bars_leave_names_whole(width: int) -> None:
    out = heedful("rank {}", TEAS, width=width).out
    for name in ("darjeeling", "peppermint", "earl grey"):
        assert re.search(rf"^ +\d +{name} ", out, re.M)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_names_have_room_in_a_narrow_terminal(tmp_path: Path, width: int) -> None:
    """Votes go first, then scores."""
    pairs = [(a, b) for a in range(7) for b in range(7) if a < b]
    rows = [f"s{i},model-{a:03d},model-{b:03d},model_a" for i, (a, b) in enumerate(pairs)]
    file = tmp_path / "x.csv"
    file.write_text("judge,model_a,model_b,winner\n" + "\n".join(rows) + "\n")
    out = heedful("rank {} --no-arena", file, width=width).out
    assert len(re.findall(r"model-00\d .*●", out)) == 7
    assert ("votes" in out.split("●")[0]) == (width > 80)
    assert ("score" in out.split("●")[0]) == (width > 72)


@pytest.mark.slow
def test_the_next_choice_of_many_people_is_that_of_somebody_new(tmp_path: Path) -> None:
    matrix = heedful("rank {} --csv {} --json", TEAS, tmp_path / "ranking.csv").json["matrix"]
    found = estimate(open_choices(TEAS).choices)
    new, items = found.belief.new(), found.choices.items
    order = [items.index(name) for name in matrix["items"]]
    for a, row in zip(order, matrix["beats"]):
        assert row == pytest.approx([float(new.beats(a, b)) for b in order])
    assert "best_if_new" in (tmp_path / "ranking.csv").read_text().splitlines()[0]


@pytest.mark.slow
def test_which_first_place_it_changes_to_leave_somebody_out_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    rows = ["person,winner,loser", *["ann,tea,milk"] * 3, *["bob,milk,tea"] * 30]
    file.write_text("\n".join(rows) + "\n")
    for how in ("--no-arena", "--arena"):
        told = done(f"rank {{}} {how} --without bob", file)
        assert "Left out: bob. With them milk is first, without them tea." in told.out
        [remark] = [
            each for each in heedful(f"rank {{}} {how} --without bob --json", file).json["remarks"]
            if each["kind"] == "left out"
        ]  # fmt: skip
        assert remark["people"] == ["bob"]
        told = heedful(f"rank {{}} {how} --without ann", file)
        assert "Left out: ann. With and without them milk is first." in told.out


def test_votes_of_one_person_are_theirs(votes: Path) -> None:
    lines = [line.split(",") for line in TEAS.read_text().splitlines()]
    who = lines[0].index("person")
    mine = [line for line in lines[1:] if line[who] == "cleo" and "unsure" not in line]
    for row in heedful("rank {} --person cleo --json", TEAS).json["ranking"]:
        assert row["votes"] == sum(row["item"] in line for line in mine)


def test_what_is_read_is_not_written_over(votes: Path, tmp_path: Path) -> None:
    before = votes.read_bytes()
    assert (
        refusal("rank {} --csv {}", votes, votes)
        == f"--csv: expected a file of its own, got that of the choices, {str(votes)!r}"
    )
    assert votes.read_bytes() == before
    got = heedful("rank {} --csv {} --votes {}", votes, tmp_path / "x.csv", tmp_path / "x.csv")
    assert "--votes: expected a file of its own, got that of --csv" in got.err
    assert not (tmp_path / "x.csv").exists()


def test_scores_are_in_the_table(votes: Path) -> None:
    wide = heedful("rank {} --no-arena", votes, width=120).out
    row = heedful("rank {} --no-arena --json", votes).json["ranking"][0]
    assert re.search(rf"=opus +{row['score']:,.0f} +{row['score_low']:,.0f} to {row['score_high']:,.0f} ", wide)
    assert re.search(rf"=opus +{row['score']:,.0f} ", heedful("rank {} --no-arena", votes, width=80).out)
    assert "Scores are as in chess" in wide


@pytest.mark.parametrize(("most", "way"), [("one", "expected 2 to 3,000"), ("many", "--pool")])
def test_too_many_items_say_what_to_do(tmp_path: Path, most: str, way: str) -> None:
    n = 3001 if most == "one" else 1001
    rows = [f"{'' if most == 'one' else f'p{i % 2},'}i{i},i{i + 1}" for i in range(n - 1)]
    file = tmp_path / "x.csv"
    file.write_text(("" if most == "one" else "person,") + "winner,loser\n" + "\n".join(rows) + "\n")
    got = heedful("rank {} --no-arena", file)
    assert (got.code, got.out) == (2, "")
    assert way in got.err
    assert ("--pool" in got.err) == (most == "many")  # where nobody is told apart, pooling would change nothing
    assert f"got {n:,}" in got.err


# ---------------------------------------------------------------------------- in words


@pytest.mark.slow
def test_what_is_printed_for_many_people() -> None:
    got = heedful("rank {}", TEAS, width=100)
    lines = got.out.splitlines()
    assert lines[0].rstrip() == f"{TEAS}: what 6 people prefer on average"
    row = next(line for line in lines if " assam " in line)
    assert re.search(r"^ +1 +assam +1,\d\d\d +\d+ % +\d+ % +1–\d +(> )?\d+ % +\d+ .*─●─", row)
    assert sum("●" in line for line in lines) == 8
    assert any(line.startswith("Neighbours that cannot be told apart (less than 90 %): ") for line in lines)
    assert any(
        re.match(r"Not sure enough yet \(90 %\): assam is the best with probability 89 %", line) for line in lines
    )
    less = heedful("rank {} --sure 0.85", TEAS, width=100).out.splitlines()
    assert any(re.match(r"Sure enough \(85 %\): assam is the best with probability 89 %", line) for line in less)
    surer = heedful("rank {} --sure 0.97", TEAS, width=100).out.splitlines()
    assert any(
        re.match(r"Not sure enough yet \(97 %\): assam is the best .*\. The next question, of somebody new: ", line)
        for line in surer
    )
    assert "Note: 'fay' took the first of the two in 14 of 14 answers" in got.out
    assert lines[-1] == "To rank without somebody's answers: --without NAME."


def test_what_the_page_shows_is_what_is_printed() -> None:
    """Figures aside, which another build may round another way."""
    page = (TEAS.parents[1] / "docs" / "preferences.md").read_text()
    shown, minded = re.findall(r"```text\n(.*?)```", page, re.S)
    got = heedful("rank {}", TEAS, width=92).out
    printed = got.replace(str(TEAS), "examples/teas.csv").split("\nUtilities")[0]

    def words(text: str) -> list[list[str]]:
        return [re.findall(r"[A-Za-z]+", line) for line in text.splitlines() if line.strip()]

    assert words(shown) == words(printed)
    assert all(line in got.splitlines() for line in minded.splitlines())


@pytest.mark.parametrize("width", [64, 80, 120])
def test_bars_are_there_where_names_leave_room(width: int) -> None:
    got = heedful("rank {} --person ada --top 3", TEAS, width=width)
    assert sum("●" in line for line in got.out.splitlines()) == 3
    assert "... and 5 more (--top, --json)" in got.out
    if width >= 80:
        assert max(map(len, got.out.split("\nNeighbours")[0].splitlines()[1:])) <= width
    assert (" to " in got.out.split("Neighbours")[0]) == (width >= 120)


def test_what_stdout_cannot_say_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("winner,loser\ntée,milk\ntée,milk\n", encoding="utf-8")
    plain = done("rank {}", tmp_path / "x.csv", charset="ascii")
    assert "t?e" in plain.out
    json = heedful("rank {} --json", tmp_path / "x.csv", charset="ascii")
    assert "t\\u00e9e" in json.out
    assert json.json == heedful("rank {} --json", tmp_path / "x.csv").json


def test_sure_enough_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("winner,loser,times\na,b,40\nb,c,40\n")
    out = heedful("rank {}", file).out
    assert "Every item is better than the next with 90 % or more." in out
    assert re.search(r"Sure enough \(90 %\): a is the best with probability (> 99|100) %\.", out)


def test_what_does_not_print_is_not_sent_to_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("winner,loser\n\x1b[31mtea,mi\x07lk\n", encoding="utf-8")
    got = heedful(f"rank {path}")
    assert got.code == 0
    assert "?[31mtea" in got.out
    assert "mi?lk" in got.out
    assert "\x1b[31m" not in got.out + got.err
    assert "\x07" not in got.out + got.err


def test_names_are_text_and_no_markup(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text('winner,loser\n[bold]a[/],"b\nc"\n"$x^{",[bold]a[/]\n')
    got = done("rank {} --plot {}", file, tmp_path / "x.svg")
    assert "[bold]a[/]" in got.out
    assert "b c" in got.out
    assert (tmp_path / "x.svg").read_text().count("<svg") == 1


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_plot(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"teas.{suffix}"
    assert heedful("rank {} --plot {} --top 5", TEAS, file).code == 0
    assert file.stat().st_size > 3000


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--goal worst", "--goal: expected best or ranking, got 'worst'"),
        ("--sure 1", "--sure: expected a number from 0.5 to 0.999, got 1"),
        ("--plot x.txt", "--plot: expected a name that ends in .png or .svg or .pdf, got 'x.txt'"),
        ("--column winner", "--column: expected WHAT=COLUMN, such as winner=chosen, got 'winner'"),
        ("--answer first", "--answer: expected WORD=MEANING, such as 0=first, got 'first'"),
        ("--answer first=best", "words: expected one of first, second, equal, unsure as a meaning, got 'best'"),
        ("--person eve", "--person: expected one of 'ada', 'fay', 'eva', 'dov', 'ben' and 1 more, got 'eve'"),
        ("--person ada --pool", "--person: expected people who are told apart, got 'ada'"),
        ("--without eve", "--without: expected one of"),
        ("--identifier name", "--identifier: expected items, whose column it is, got none"),
    ],
)
def test_bad_input_is_a_sentence(options: str, message: str) -> None:
    got = heedful(f"rank {{}} {options}", TEAS)
    assert (got.code, got.out) == (2, "")
    if options != "--person eve":
        assert message in got.err
    else:
        assert re.search(r"--person: expected one of ('\w+',? ?){5}and 1 more, got 'eve'", got.err)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("no/a.png", "--plot: expected a file in a folder that exists, got 'no/a.png'"),
        ("dir.png", "--plot: expected a file, got a folder, 'dir.png'"),
    ],
)
def test_where_no_picture_can_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dir.png").mkdir()
    assert refusal(f"rank {{}} --plot {file}", TEAS) == message


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_could_not_be_written_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[Path] = []

    def readable(path: Path, mode: int) -> bool:  # root may write all
        if mode == os.W_OK:
            asked.append(path)
        return mode != os.W_OK

    monkeypatch.setattr("os.access", readable)
    if there:
        Path("a.png").touch()
    assert refusal("rank {} --plot a.png", TEAS) == "--plot: expected a file that may be written, got 'a.png'"
    assert asked == [Path("a.png" if there else ".")]


def test_people_without_names_cannot_be_named(pairs: Path) -> None:
    assert refusal(f"{LINE} --without ada", pairs) == "--without: expected answers that name people, got none of 'ada'"
    assert refusal(f"{LINE} --person ada", pairs) == "--person: expected people who are told apart, got 'ada'"


def test_a_loop_is_no_file(tmp_path: Path) -> None:
    loop = tmp_path / "my logos.heedful"
    loop.mkdir()
    got = heedful("rank {}", loop)
    assert (got.code, got.out) == (2, "")
    assert got.err == (
        f"heedful: {loop}: expected a file, got a loop; of choices: `heedful standing '{loop}'` ranks what "
        f"people chose "
        f"in it, and its page Results has their answers; any loop: `heedful export '{loop}' FILE`\n"
    )


def test_no_such_file(tmp_path: Path) -> None:
    assert "no such file" in refusal("rank {}", tmp_path / "none.csv")


# ---------------------------------------------------------------------------- real orders


@pytest.mark.slow
def test_the_sushi_of_five_thousand(tmp_path: Path) -> None:
    data = load_sushi(shared("sushi"))
    names = data.names.tolist()
    orders = tabulate((Comparison("", tuple((names[i],) for i in row)) for row in data.orders.tolist()), names)
    file = tmp_path / "sushi.soc"
    write_preflib(file, orders)
    assert load_preflib(file).answers == 5000
    got = heedful("rank {} --json", file).json
    # As by the share of pairs won, counted here
    place = np.argsort(data.orders, axis=1)
    won = [(place[:, [i]] < place).sum() for i in range(10)]
    assert [row["item"] for row in got["ranking"]] == [names[i] for i in np.argsort(-np.array(won))]
    assert got["ranking"][0]["best"] > 0.99
    assert got["verdict"]["stop"]
