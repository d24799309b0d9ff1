"""`heedful rank` on the votes of an arena: its table, JSON, CSV, picture and page; options; malformed files."""

from __future__ import annotations

import csv
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import done, heedful, refusal

from heedful import leaderboard

NAMES = ("large", "medium", "small", "tiny")
STRENGTH = dict(zip(NAMES, (1.2, 0.6, 0.0, -0.9)))


def battles(count: int = 300, seed: int = 1) -> list[dict[str, Any]]:
    """Votes of 80 people about four models, with ties, categories and lengths; longer answers are liked."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(count):
        a, b = rng.choice(4, 2, replace=False).tolist()
        lengths = rng.integers(10, 1000, 2).tolist()
        eta = STRENGTH[NAMES[a]] - STRENGTH[NAMES[b]] + 0.001 * (lengths[0] - lengths[1]) + rng.logistic()
        said = "model_a" if eta > 0.3 else "model_b" if eta < -0.3 else ("tie", "both_bad")[int(rng.integers(2))]
        who, tag = f"p{int(rng.integers(80))}", ("code", "prose")[int(rng.integers(2))]
        out.append({"id": i, "model_a": NAMES[a], "model_b": NAMES[b], "winner": said, "judge": who, "category": tag})
        out[-1] |= {"length_a": lengths[0], "length_b": lengths[1]}
    return out


def put(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as what the name of the file says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        text = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    return put(tmp_path / "votes.csv", battles())


@pytest.mark.slow
def test_every_kind_of_file_gives_the_same_board(tmp_path: Path) -> None:
    rows = battles(120)
    want = leaderboard(rows).to_dict()
    for name in ("votes.csv", "votes.csv.gz", "votes.jsonl", "votes.parquet"):
        got = done("rank {} --json", put(tmp_path / name, rows)).json
        assert got["ranking"] == want["ranking"], name
        assert {each: got[each] for each in ("answers", "people", "ties", "left_out", "influence", "matrix")} == {
            each: want[each] for each in ("answers", "people", "ties", "left_out", "influence", "matrix")
        }, name
    assert [row["item"] for row in want["ranking"]] == list(NAMES)
    assert (want["answers"], want["people"], want["model"]) == (120, len({row["judge"] for row in rows}), "arena")
    assert want["ties"]["both_bad"] == sum(row["winner"] == "both_bad" for row in rows)
    assert want["ties"]["votes"] == sum(row["winner"] in ("tie", "both_bad") for row in rows)


@pytest.mark.slow
def test_what_is_printed(votes: Path) -> None:
    said = done("rank {} --adjust length --side --by category", votes).out
    assert "leaderboard of 4 models from 300 votes" in said
    for name in NAMES:
        assert re.search(rf"\b[1-4]\s+{name}\b", said)
    assert "wins of the row against the column" in said
    bad = sum(row["winner"] == "both_bad" for row in battles())
    assert f"Note: {bad} ties are 'both bad': counted as equally good." in said
    assert re.search(r"length, \d+(\.\d+)? more \(one standard deviation\): \+\d+\.\d points", said)
    assert re.search(r"To be shown first: [+-]\d", said)
    turned = r"Without (at most )?\d+ votes? of 300 (\(at least \d+\) )?\w+ would be first, or level with large: "
    assert re.search(turned + r"\d+ wins? of large over", said)
    assert re.search(r"code: \d+ votes", said)
    assert re.search(r"prose: \d+ votes", said)
    assert "intervals allow for 80 people who differ" in said
    assert "columns model_a, model_b, winner, judge and 3 more; id left out" in said
    rows = [
        line for line in heedful("rank {}", votes, width=60).out.splitlines() if re.match(r"\s*[1-4]\s+\w+\s", line)
    ]
    assert len(rows) >= 4
    assert max(map(len, rows)) <= 60


@pytest.mark.slow
def test_the_board_as_csv_and_its_matrix(votes: Path, tmp_path: Path) -> None:
    out = tmp_path / "board.csv"
    told = done("rank {} --by category --csv {} --json", votes, out).json
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows[:4]] == [row["item"] for row in told["ranking"]]
    assert [float(row["score"]) for row in rows[:4]] == [row["score"] for row in told["ranking"]]
    assert list(rows[0]) == [*told["ranking"][0], "category"]  # the same names
    assert [[int(row["place_low"]), int(row["place_high"])] for row in rows[:4]] == [
        [row["place_low"], row["place_high"]] for row in told["ranking"]
    ]
    assert [row["category"] for row in rows] == [""] * 4 + [name for name in told["categories"] for _ in range(4)]
    matrix, first = told["matrix"], battles()
    won = sum({row["model_a"], row["model_b"]} == {"large", "tiny"} and row[row["winner"]] == "large" for row in first
              if row["winner"] in ("model_a", "model_b"))  # fmt: skip
    assert matrix["wins"][matrix["items"].index("large")][matrix["items"].index("tiny")] == won
    assert np.sum(matrix["wins"]) + np.sum(matrix["ties"]) / 2 == 300


@pytest.mark.slow
def test_the_board_as_a_picture(votes: Path, tmp_path: Path) -> None:
    svg, png = tmp_path / "board.svg", tmp_path / "board.png"
    done("rank {} --plot {} --json", votes, svg)
    done("rank {} --plot {} --json", votes, png)
    assert png.read_bytes().startswith(b"\x89PNG")
    drawn = svg.read_text()
    assert "<svg" in drawn
    for name in NAMES:
        assert f"<!-- {name} -->" in drawn  # matplotlib writes texts as outlines, after a comment


# ---------------------------------------------------------------------------- the page


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += f" {data}"


@pytest.mark.slow
def test_the_board_as_a_page_that_needs_nothing_else(votes: Path, tmp_path: Path) -> None:
    out = tmp_path / "board.html"
    told = done("rank {} --adjust length --side --by category --page {} --json", votes, out).json
    page = Page(out.read_text(encoding="utf-8"))
    words = " ".join(page.words.split())
    for row in told["ranking"]:
        assert f"{row['place']} {row['item']} {row['score']:,.0f}" in words
        assert f"{row['score_low']:,.0f} to {row['score_high']:,.0f}" in words
    # no script, and nothing from elsewhere
    assert not {"script", "link", "img", "iframe", "object", "form"} & {tag for tag, _ in page.tags}
    links = [about["href"] for tag, about in page.tags if tag == "a"]
    ids = {about.get("id") for _, about in page.tags}
    assert links
    for link in links:
        assert link is not None
        assert link.startswith("#")
        assert link[1:] in ids
    assert not any(name.startswith("on") or name in ("src", "style") for _, about in page.tags for name in about)
    assert "url(" not in out.read_text()
    # each interval as a drawing that says what it shows; what scrolls is reached by the keyboard
    drawn = [about["aria-label"] for tag, about in page.tags if tag == "svg" and about.get("role") == "img"]
    assert len(drawn) == 4 + 2 + 2 * 4
    assert all(re.fullmatch(r"[+\d,.-]+( points)?, 90 % interval [+\d,.-]+ to [+\d,.-]+", each or "") for each in drawn)
    scrolls = [about for _, about in page.tags if about.get("class") == "scroll"]
    assert scrolls
    assert all(about["tabindex"] == "0" and about["aria-label"] for about in scrolls)
    # the matrix: what the row won of the votes about both
    matrix, order = told["matrix"], [row["item"] for row in told["ranking"]]
    assert matrix["items"] == order
    won, lost, ties = matrix["wins"][0][3], matrix["wins"][3][0], matrix["ties"][0][3]
    [cell] = [about for _, about in page.tags if about.get("title") == f"{won:,} won, {ties:,} tied, {lost:,} lost"]
    assert cell["class"]
    assert f"{100 * (won + ties / 2) / (won + lost + ties):.0f}" in words
    assert "would be first, or level with large" in words
    assert "What else sways a vote" in words
    for name, board in told["categories"].items():
        assert f"{name}: {board['answers']} votes" in words


def test_names_are_text_on_a_page(tmp_path: Path) -> None:
    rows = [{"model_a": "<script>alert(1)</script>", "model_b": 'b" onmouseover="x', "winner": "model_a"}] * 3
    out = tmp_path / "board.html"
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done("rank {} --page {} --json", path, out)
    page = Page(out.read_text())
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any("onmouseover" in about for _, about in page.tags)
    assert "<script>alert(1)</script>" in page.words


# ---------------------------------------------------------------------------- options, and what is refused


@pytest.mark.slow
def test_an_anchor_and_people_left_out(votes: Path) -> None:
    got = done("rank {} --anchor small=1200 --without p1 --without p2 --json", votes).json
    assert got["anchor"] == {"item": "small", "score": 1200.0}
    [small] = [row for row in got["ranking"] if row["item"] == "small"]
    assert (small["score"], small["score_low"]) == (1200.0, 1200.0)
    out = sum(row["judge"] in ("p1", "p2") for row in battles())
    assert got["left_out"] == {"of people left out": out}
    assert got["answers"] == 300 - out


@pytest.mark.slow
def test_a_file_that_holds_each_vote_twice_gives_the_same_board(tmp_path: Path) -> None:
    rows = battles(200)
    once = leaderboard(rows)
    twice = done("rank {} --json", put(tmp_path / "twice.csv", rows + rows[:50])).json
    assert twice["left_out"] == {"rows that repeat a vote, by its id": 50}
    assert twice["ranking"] == once.to_dict()["ranking"]
    assert any("50 rows left out: repeat a vote, by its id." in each["message"] for each in twice["remarks"])
    # where the ids are those of prompts, no row repeats another
    about = [{**row, "id": i % 20} for i, row in enumerate(rows)]
    assert leaderboard(about).board.answers == 200
    # without ids nobody can tell, and each row is a vote
    bare = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    assert leaderboard(bare + bare[:50]).board.answers == 250


@pytest.mark.slow
def test_reading_changes_nothing_and_says_the_same_again(votes: Path, tmp_path: Path) -> None:
    before, folder = votes.read_bytes(), sorted(tmp_path.iterdir())
    first = done("rank {} --by category --json", votes).out
    assert done("rank {} --by category --json", votes).out == first
    assert votes.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--adjust width", "--adjust: expected one of length, got 'width'"),
        ("--by tag", "--by: expected one of the columns"),
        ("--ties rare", "--ties: expected one of auto, threshold, odds, constant, half, got 'rare'"),
        ("--anchor nobody=1", "--anchor: expected one of"),
        ("--without nobody", "--without: expected one of"),
        ("--sure 2", "--sure: expected a number from 0.5 to 0.999, got 2.0"),
        ("--no-arena --by category", "--by: expected a leaderboard of votes, got --no-arena, which makes none"),
        ("--no-arena --page x.html", "--page: expected a leaderboard of votes, got --no-arena, which makes none"),
        ("--arena --person p1", "--person: expected --no-arena, whose model tells people and features, got --arena"),
        ("--page board.pdf", "--page: expected a name that ends in .html"),
        ("--votes out.csv", "--votes: expected an arena that heedful compare --models made"),
    ],
)
def test_options_that_make_no_sense(votes: Path, tmp_path: Path, options: str, message: str) -> None:
    before = sorted(tmp_path.iterdir())
    assert message in refusal(f"rank {{}} {options}", votes)
    assert sorted(tmp_path.iterdir()) == before


def test_no_file_is_written_over_another(votes: Path) -> None:
    for option in ("--csv", "--votes"):
        assert f"{option}: expected a file of its own, got that of the choices" in refusal(
            f"rank {{}} {option} {{}}", votes, votes
        )


# ---------------------------------------------------------------------------- malformed files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"model_a,model_b,winner\nx,y,z\n", r"a.csv:2: winner: expected model_a, model_b, .*, got 'z'"),
        (
            "a.csv.gz",
            gzip.compress(b"model_a,model_b,winner\nx,y,tie\n", mtime=0)[:-9],
            r"a.csv.gz: gzip: expected a whole",
        ),
    ],
)
def test_a_malformed_file_is_named_and_nothing_is_written(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    got = heedful("rank {} --arena --csv {} --page {}", path, *(tmp_path / f"o.{x}" for x in ("csv", "html")))
    assert got.code == 2
    assert got.out == ""
    said = " ".join(got.err.split())
    assert re.search(message, said), said
    assert "expected" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == [name]
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match=re.escape(name)):
        leaderboard(path)


def test_votes_that_are_left_out_are_counted_by_their_reason(tmp_path: Path) -> None:
    lines = ["x,y,model_a,ann,10,3,1", "x,y,,ann,10,3,1", "y,x,can't judge,bob,1,2,1", "x,y,tie,bob,,2,1"]
    lines += ["y,x,model_b,cem,1,1,1", "x,y,model_a,dora,4,5,0", "x,y,model_a,dora,4,5,3"]
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner,judge,length_a,length_b,times\n" + "\n".join(lines) + "\n")
    got = done("rank {} --adjust length --without cem --json", path).json
    assert got["left_out"] == {
        "rows that count 0 times": 1,
        "could not be judged": 2,
        "of people left out": 1,
        "without length": 1,
    }
    assert got["answers"] == 1 + 3


# ---------------------------------------------------------------------------- what the page of the documents says

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_first_lines_of_the_page_say_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most five lines from nothing to the first insight, and the insight is there."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    block = (ROOT / "docs" / "arena.md").read_text().split("```")[1].strip().splitlines()
    assert len(block) <= 5
    assert all(line.startswith("heedful rank ") for line in block)
    first, then = (done(line.removeprefix("heedful ")).out for line in block)
    assert re.search(r"^ +1 +birch-large ", first, re.M)
    assert "Without 7 votes of 888" in then or "Without at most 7 votes of 888" in then
    points = re.search(
        r"^length, .* more \(one standard deviation\): ([+-][\d.]+) points \(([+-][\d.]+) to", then, re.M
    )
    assert points
    assert float(points[2]) > 0.0
    assert (tmp_path / "board.html").read_text().startswith("<!doctype html>")


# ---------------------------------------------------------------------------- words and numbers


def test_one_vote_of_one_person_is_said_in_the_singular(tmp_path: Path) -> None:
    row = {"model_a": "x", "model_b": "y", "winner": "model_a", "judge": "ann"}
    out = done("rank {}", put(tmp_path / "one.csv", [row])).out
    assert "leaderboard of 2 models from 1 vote" in out
    assert "1 vote about 2 models by 1 person (" in out


def test_levels_are_written_as_percentages_with_a_blank_and_overlapping_places_are_explained(tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": f"model_{side}"} for side in "a" * 63 + "b" * 46]
    out = done("rank {}", put(tmp_path / "v.csv", rows)).out  # x is better with about 94 %
    assert re.search(r"x .* 1–2 ", out)
    told = "Every item is better than the next with 90 % or more; its places leave out 5 % on each side, so those of "
    assert f"{told}neighbours may overlap." in out
    assert not re.search(r"\d%", out)


def test_the_page_says_which_share_of_the_ties_are_both_bad(tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": said} for said in ("model_a", "model_b")] * 3
    rows += [{"model_a": "x", "model_b": "y", "winner": said} for said in ("tie", "tie", "tie", "both_bad")]
    done("rank {} --page {}", put(tmp_path / "v.csv", rows), tmp_path / "v.html")
    page = (tmp_path / "v.html").read_text()
    assert "<b>40 %</b> <span class='muted small'>ties</span>" in page
    assert "<b>25 %</b> <span class='muted small'>of the ties are both bad</span>" in page


def test_files_that_are_no_votes_are_told_what_an_arena_has(tmp_path: Path) -> None:
    assert "model_a, model_b and winner" in refusal("rank {}", ROOT / "examples" / "cars.csv")
    got = heedful("rank {}", ROOT / "examples")
    assert got.code == 2
    assert "expected a file, got a folder; name a file in it" in " ".join(got.err.split())
    assert "*" not in got.err
