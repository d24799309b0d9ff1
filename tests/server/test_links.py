"""Links to a study: made, found by their token, ended; what is kept of them."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from heedful.server.database import Database
from heedful.server.keys import Keys
from heedful.server.links import LENGTH, NOBODY, Links
from heedful.storage import Place
from heedful.studies.answers import OWN


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_is_good_until_it_ends(vault: Place) -> None:
    clock = Clock()
    links = Links(vault, clock=clock)
    assert links.all("main", "logos", 7) == []
    link, token = links.create("main", "logos", 7, segment="customers", seconds=3600)
    assert len(token) == LENGTH
    assert links.at(token) == link
    assert (link.loop, link.segment, link.founded) == ("logos", "customers", 7)
    clock.now += 3599.9
    assert Links(vault, clock=clock).at(token) == link == links.at(token)
    clock.now += 0.2
    assert links.at(token) is None
    assert links.all("main", "logos", 7) == [link]
    assert links.all("main", "logos", 8) == links.all("acme", "logos", 7) == []


def test_a_link_is_ended_at_once_here_and_within_a_second_elsewhere(vault: Place) -> None:
    clock = Clock()
    links, other = Links(vault, clock=clock), Links(vault, clock=clock)
    link, token = links.create("main", "logos", 7)
    assert other.at(token) == link
    assert not links.revoke("main", "other", link.handle)
    assert not links.revoke("acme", "logos", link.handle)
    assert links.at(token) == link
    assert links.revoke("main", "logos", link.handle)
    assert not links.revoke("main", "logos", link.handle)
    assert links.at(token) is None
    clock.now += 1.1
    assert other.at(token) is None


def test_what_is_remembered_needs_no_database(tmp_path: Path) -> None:
    clock = Clock()
    links = Links(tmp_path, clock=clock)
    link, token = links.create("main", "logos", 7, seconds=60)
    assert links.find_cached(token) is None
    assert links.at(token) == link == links.find_cached(token)
    clock.now += 1.1
    assert links.find_cached(token) is None
    with closing(sqlite3.connect(tmp_path / "server.db")) as other:
        other.execute("BEGIN EXCLUSIVE")  # while somebody writes what was known holds, for a while
        assert links.at(token) == link
        clock.now += 40
        with pytest.raises(TimeoutError):
            links.at(token)
    clock.now += 20
    assert links.at(token) is None
    assert links.has_ended(token)
    assert not links.has_ended("x" * LENGTH)


@pytest.mark.parametrize("token", ["", "x" * LENGTH, "x" * 42, "../" * 14 + "x", "é" * LENGTH, "x" * 10_000])
def test_what_is_no_token_opens_nothing(vault: Place, token: str) -> None:
    links = Links(vault)
    assert links.at(token) is None
    links.create("main", "logos", 7)
    assert links.at(token) is None


def test_only_a_digest_is_kept_and_there_is_still_no_key(tmp_path: Path) -> None:
    link, token = Links(tmp_path).create("main", "logos", 7)
    assert token.encode() not in (tmp_path / "server.db").read_bytes()
    assert link.handle not in token
    assert not Keys(tmp_path).exist()
    with Database(tmp_path / "server.db").reading() as connection:
        assert connection is not None
        assert len(connection.execute("SELECT * FROM links").fetchall()) == 1


@pytest.mark.parametrize("segment", ["/", "a/b", "<b>", " a", "a ", "x" * 61, "a\nb", "_a", ".."])
def test_segments_that_are_no_names_are_refused(vault: Place, segment: str) -> None:
    with pytest.raises(ValueError, match=r"^segment: expected 1 to 60 letters"):
        Links(vault).create("main", "logos", 7, segment=segment)


@pytest.mark.parametrize("segment", [OWN, NOBODY])
def test_segments_are_not_called_as_others_are(vault: Place, segment: str) -> None:
    with pytest.raises(ValueError, match=rf"^segment: expected another name than you and guest, got '{segment}'"):
        Links(vault).create("main", "logos", 7, segment=segment)


@pytest.mark.parametrize("seconds", [0, 59, 1e9, float("nan"), True])
def test_links_last_a_minute_to_a_year(vault: Place, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^lasts: expected a minute to a year"):
        Links(vault).create("main", "logos", 7, seconds=seconds)


@pytest.mark.parametrize("people", [0, -1, 1.5, True, 100_001, "9"])
def test_how_many_a_link_lets_in_is_a_whole_number(vault: Place, people: Any) -> None:
    with pytest.raises(ValueError, match=r"^people: expected a whole number, 1 "):
        Links(vault).create("main", "logos", 7, people=people)


def test_so_many_are_let_in_and_no_more_whoever_counts(tmp_path: Path) -> None:
    clock = Clock()
    links = Links(tmp_path, clock=clock)
    link, token = links.create("main", "logos", 7, people=20)
    ended, gone = (links.create("main", "logos", 7) for _ in range(2))
    links.revoke("main", "logos", gone[0].handle)
    with ThreadPoolExecutor(4) as pool:
        let_in = list(pool.map(lambda _: Links(tmp_path, clock=clock).begin(token), range(30)))
    assert sum(let_in) == 20
    [kept, *_] = links.all("main", "logos", 7)
    assert (kept.handle, kept.begun, kept.most) == (link.handle, 20, 20)
    assert kept.good(int(clock.now * 1e6))  # for those who are in
    assert not links.begin(gone[1])
    assert links.begin(ended[1])
    clock.now += 8 * 86_400
    assert not links.begin(ended[1])


def test_who_somebody_is_is_what_the_link_has_signed(vault: Place) -> None:
    one, other = (Links(vault).create("main", "logos", 7)[0] for _ in range(2))
    cookie = one.cookie()
    who = one.person(cookie)
    assert who is not None
    assert re.fullmatch("[0-9a-f]{12}", who)
    assert who not in cookie
    assert one.person(one.cookie()) not in (None, who)
    drawn, signed = cookie.split(".")
    for wrong in ("", drawn, f"{drawn}.", f"{'a' * 22}.{signed}", f"{drawn}.{'0' * 32}", f"{cookie} ", cookie.upper()):
        assert one.person(wrong) is None
    assert other.person(cookie) is None


def test_what_a_link_shows_is_kept(vault: Place) -> None:
    links = Links(vault)
    [asks, shows] = [links.create("main", "a", 1, shows=each)[1] for each in (False, True)]
    assert [links.at(token).shows for token in (asks, shows)] == [False, True]  # type: ignore[union-attr]
    assert [each.shows for each in Links(vault).all("main", "a", 1)] == [False, True]
