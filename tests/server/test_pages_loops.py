"""The page of loops: which there are, how they are, snapshots of them."""

from __future__ import annotations

import os
import re
from contextlib import closing
from pathlib import Path

import httpx
from browsing import Visitor, words

from heedful import Loop
from heedful.server.keys import Keys
from heedful.server.pages.loops import AT_ONCE
from loops import small_loop


def answered(path: Path, lists: int, **settings: float) -> None:
    """A loop that so many lists were answered in."""
    with small_loop(path, **settings) as loop:
        for n in range(lists):
            decision = loop.decide(id=f"d{n}")
            loop.feedback(decision.id, id=f"e{n}", better=[decision.shown[-1]])


def snapshots(path: Path) -> list[str]:
    """Which there are."""
    return sorted(each.name for each in path.glob("snapshot-*"))


def test_without_a_loop_the_page_says_how_to_make_one_in_a_terminal(visitor: Visitor, tmp_path: Path) -> None:
    """To who may not make one here."""
    with closing(Keys(tmp_path)) as keys:
        visitor.sign_in(keys.create("looker", scopes=["read"])[1])
    page = visitor.get("/")
    assert (page.status, page.all("form[@class='begin stack']")) == (200, [])
    assert "There is no loop here yet." in words(page.one("main"))
    assert "heedful init cars cars.csv" in words(page.one("main"))


def test_loops_are_listed_and_each_told_of_in_its_row(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "cars.heedful", 3)
    answered(tmp_path / "shop.heedful", 0, control=0.0)
    page = visitor.get("/")
    assert [row.attrib["data-loop"] for row in page.all("tr[@data-loop]")] == ["cars", "shop"]
    assert [row.attrib["hx-get"] for row in page.all("tr[@data-loop]")] == ["/loops/cars/row", "/loops/shop/row"]
    assert {"/loops/cars", "/loops/shop"} <= {link.attrib["href"] for link in page.all("a")}
    cars, shop = (visitor.get(f"/loops/{name}/row").one("tr[@data-loop]") for name in ("cars", "shop"))
    assert re.fullmatch(
        r"cars ?posterior:swap=0 12 3 of 19 events \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC .* [\d.]+ k?B Snapshot of cars",
        words(cars),
    )
    assert "exploration 0: neighbours are never swapped" in words(cars)
    assert "control 0: nothing keeps the caller's order" in words(shop)
    on_disk = sum(each.stat().st_size for each in (tmp_path / "cars.heedful").iterdir())
    assert f"{on_disk / 1000:.0f} kB" in words(cars)


def test_a_loop_that_nothing_moves_says_so_in_its_row(visitor: Visitor, tmp_path: Path) -> None:
    with small_loop(tmp_path / "ads.heedful") as loop:
        for n in range(20):
            loop.record(["i0"], ["i0"], id=f"d{n}")
            loop.feedback(f"d{n}", clicks=["i0"])
    row = words(visitor.get("/loops/ads/row").one("tr[@data-loop]"))
    assert "20 feedback moved the model 0 times: each list showed a single item" in row
    assert "Thumbs, up and down, do: each is compared with those before it" in row


def test_what_a_loop_notes_is_to_be_looked_at(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "cars.heedful", 3)
    [name] = snapshots(tmp_path / "cars.heedful")
    (tmp_path / "cars.heedful" / name).write_bytes(b"no snapshot")
    row = visitor.get("/loops/cars/row")
    assert "Look at this" in words(row.tree)
    assert name in words(row.tree)
    assert str(tmp_path) not in row.html


def test_a_loop_that_cannot_be_opened_is_listed_with_why(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "cars.heedful", 1)
    (tmp_path / "bad.heedful").mkdir()
    (tmp_path / "bad.heedful" / "log.db").write_bytes(b"no log")
    assert [row.attrib["data-loop"] for row in visitor.get("/").all("tr[@data-loop]")] == ["bad", "cars"]
    row = visitor.get("/loops/bad/row")
    assert row.status == 200
    assert "Broken this loop cannot be opened" in words(row.tree)
    assert visitor.get("/loops/none/row").status == 404
    assert visitor.get("/loops/..%2Fcars/row").status == 404


def test_many_loops_come_a_page_at_a_time_and_none_is_opened(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "loop-000.heedful", 0)
    for n in range(1, 2 * AT_ONCE + 3):
        (tmp_path / f"loop-{n:03}.heedful").mkdir()
        os.link(tmp_path / "loop-000.heedful" / "log.db", tmp_path / f"loop-{n:03}.heedful" / "log.db")
    before = sorted(each.name for each in tmp_path.rglob("*"))
    seen, path = list[str](), "/"
    for _ in range(3):
        page = visitor.get(path)
        assert page.status == 200
        seen += [row.attrib["data-loop"] for row in page.all("tr[@data-loop]")]
        later = [link.attrib["href"] for link in page.all("a") if words(link) == "Later"]
        path = later[0] if later else ""
    assert path == ""
    assert seen == [f"loop-{n:03}" for n in range(2 * AT_ONCE + 3)]
    assert sorted(each.name for each in tmp_path.rglob("*")) == before  # an open one has a write-ahead file
    assert visitor.get("/?start=x").status == 422
    assert visitor.get("/?start=-1").status == 422


def test_a_snapshot_is_kept(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "cars.heedful", 2)
    before = snapshots(tmp_path / "cars.heedful")
    with Loop.open(tmp_path / "cars.heedful") as loop:
        loop.undo("e0")
    assert visitor.get("/loops/cars/row").fields("/loops/cars/snapshot") == {}
    done = visitor.post("/loops/cars/snapshot", hx_request="true", content_type="application/x-www-form-urlencoded")
    assert done.status == 200
    assert "Kept just now" in words(done.one("tr[@data-loop='cars']"))
    assert len(snapshots(tmp_path / "cars.heedful")) == len(before) + 1
    plain = visitor.post("/loops/cars/snapshot", content_type="application/x-www-form-urlencoded")
    assert (plain.status, plain.headers["location"]) == (303, "/")


def test_who_may_not_keep_one_is_shown_no_button(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "cars.heedful", 2)
    with closing(Keys(tmp_path)) as keys:
        looker, stranger = keys.create("looker", scopes=["read"])[1], keys.create("stranger", tenant="acme")[1]
    visitor.sign_in(looker)
    assert "Snapshot" not in words(visitor.get("/loops/cars/row").tree)
    visitor.sign_in(stranger)
    assert visitor.get("/").all("tr[@data-loop]") == []


def test_a_name_with_dots_and_dashes_is_a_name(visitor: Visitor, tmp_path: Path) -> None:
    answered(tmp_path / "a.b-c_d.heedful", 1)
    assert visitor.get("/").one("tr[@data-loop]").attrib["data-loop"] == "a.b-c_d"
    assert words(visitor.get("/loops/a.b-c_d/row").one("tr[@data-loop='a.b-c_d']")).startswith("a.b-c_d")


def test_an_unreachable_page_is_a_page_that_says_so(visitor: Visitor) -> None:
    page = visitor.get("/loops/cars/learned")
    assert page.status == 404
    assert words(page.one("main")).startswith("Not found There is no loop called 'cars'. All loops")
    answer = httpx.get(f"{visitor.url}/loops/cars/nowhere")
    assert answer.status_code == 404
