"""The study's own pages without a browser: who may, results by segment, answers as files, links made and ended."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import NO_TLS, until
from browsing import Visitor, words

from compared import ASK, answers, logos, study_in, study_of_rows
from heedful import Loop
from heedful.data import orders
from heedful.data.choices import open_choices
from heedful.data.orders import Answered, Choices
from heedful.data.preflib import load_preflib
from heedful.features import infer
from heedful.server.keys import Keys
from heedful.server.pages import standing
from heedful.server.running import served


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study in which two segments want opposite things: by number upwards, and downwards."""
    path = study_of_rows(tmp_path / "words.heedful", 5, goal="ranking")
    with Loop.open(path) as loop:
        for person, up in (("staff/a", True), ("staff/b", True), ("customers/c", False)):
            for n in range(8):
                decision = loop.decide(person=person, id=f"ask-{n}-{person}")
                first = (decision.shown[0] < decision.shown[1]) == up
                loop.feedback(decision.id, id=f"ask-{n}.0-{person}", choice="first" if first else "second")
        loop.decide(person="staff/a", id="ask-8-staff/a")
        loop.feedback("ask-8-staff/a", id="ask-8.0-staff/a", choice="equal")
        loop.decide(person="staff/a", id="ask-9-staff/a")
        loop.feedback("ask-9-staff/a", id="ask-9.0-staff/a", choice="cannot_judge")
        loop.undo("ask-7.0-customers/c")
    return path


@pytest.fixture
def url(path: Path) -> Iterator[str]:
    with served(path.parent) as address:
        yield address


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    with closing(Visitor(url)) as found:
        yield found


def ranking(page: object) -> list[str]:
    """The names in the ranking of a page, the best first."""
    return [
        words(row.find("th/span[@class='called']"))
        for row in page.one("table[@class='table ranking']").iter("tr")
        if row.find("td") is not None
    ]  # type: ignore[attr-defined]


def found_out(visitor: Visitor, path: str) -> Any:
    """A page of results, when it has them."""
    page = visitor.get(path)
    while "being worked out" in words(page.one("main")) or "not yet looked at" in words(page.one("main")):
        page = visitor.get(path)
    return page


def test_results_of_all_and_by_segment(visitor: Visitor) -> None:
    page = found_out(visitor, "/loops/words/results")
    assert page.status == 200
    assert "Of 24 answers of 3 people" in words(page.one("main"))  # who cannot judge says nothing
    staff = found_out(visitor, "/loops/words/results?segment=staff")
    assert "Of 17 answers of 2 people" in words(staff.one("main"))
    customers = found_out(visitor, "/loops/words/results?segment=customers")
    assert "Of 7 answers of 1 person" in words(customers.one("main"))
    assert ranking(staff)[0] == ranking(customers)[-1] == "word 0"
    assert ranking(staff)[-1] == ranking(customers)[0] == "word 4"
    assert len(ranking(page)) == 5
    assert visitor.get("/loops/words/results?segment=nobody").status == 404


def test_the_answers_as_files(url: str, path: Path, tmp_path: Path) -> None:
    told = answers(path)
    assert len(told) == 25
    files = {
        form: httpx.get(f"{url}/loops/words/results/answers.{form}", verify=NO_TLS) for form in ("csv", "json", "toi")
    }
    assert {form: file.status_code for form, file in files.items()} == dict.fromkeys(files, 200)
    assert files["csv"].headers["content-disposition"] == 'attachment; filename="words-answers.csv"'
    rows = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert {row["person"] for row in rows} == {"staff/a", "staff/b", "customers/c"}
    (tmp_path / "a.csv").write_bytes(files["csv"].content)
    assert open_choices(tmp_path / "a.csv").choices.answers == 25
    (tmp_path / "a.toi").write_bytes(files["toi"].content)
    assert load_preflib(tmp_path / "a.toi").answers == 24  # who cannot judge has no place in it
    (tmp_path / "a.json").write_bytes(files["json"].content)
    assert by_name(open_choices(tmp_path / "a.json").choices) == by_name(open_choices(tmp_path / "a.csv").choices)
    found = files["json"].json()
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]{12}\+00:00", each["time"]) for each in found["answers"])
    assert (found["ask"], found["goal"], len(found["items"])) == (ASK, "ranking", 5)
    assert [(each["person"], each["answer"], tuple(each["shown"])) for each in found["answers"]] == told
    assert {each["segment"] for each in found["answers"]} == {"staff", "customers"}
    assert httpx.get(f"{url}/loops/words/results/answers.xls", verify=NO_TLS).status_code == 404
    staff = httpx.get(f"{url}/loops/words/results/answers.csv?segment=staff", verify=NO_TLS)
    assert staff.headers["content-disposition"] == 'attachment; filename="words-answers-staff.csv"'
    assert {row["person"] for row in csv.DictReader(io.StringIO(staff.text))} == {"staff/a", "staff/b"}
    assert httpx.get(f"{url}/loops/words/results/answers.csv?segment=nobody", verify=NO_TLS).status_code == 404


def by_name(choices: Choices) -> set[Answered]:
    """Answers, whatever numbers their items have."""
    return set(orders.by_name(choices))


def test_who_sits_here_can_be_left_out(visitor: Visitor, url: str, path: Path) -> None:
    assert "All but you" not in found_out(visitor, "/loops/words/results").html
    with Loop.open(path) as loop:
        loop.decide(person="you", id="ask-0-you")
        loop.feedback("ask-0-you", id="ask-0.0-you", choice="first")
    assert "Of 25 answers of 4 people" in words(found_out(visitor, "/loops/words/results").one("main"))
    assert "All but you" in visitor.get("/loops/words/results").html
    assert "Of 24 answers of 3 people" in words(found_out(visitor, "/loops/words/results?segment=-you").one("main"))
    left = httpx.get(f"{url}/loops/words/results/answers.json?segment=-you", verify=NO_TLS)
    assert left.headers["content-disposition"] == 'attachment; filename="words-answers-you.json"'
    assert {each["person"] for each in left.json()["answers"]} == {"staff/a", "staff/b", "customers/c"}


def test_a_segment_that_is_called_as_who_sits_here_is_not_left_out(visitor: Visitor, path: Path) -> None:
    """No link makes one any more."""
    with Loop.open(path) as loop:
        for person in ("you", "you/d"):
            loop.decide(person=person, id=f"ask-0-{person}")
            loop.feedback(f"ask-0-{person}", id=f"ask-0.0-{person}", choice="first")
    assert "Of 26 answers of 5 people" in words(found_out(visitor, "/loops/words/results").one("main"))
    assert "Of 25 answers of 4 people" in words(found_out(visitor, "/loops/words/results?segment=-you").one("main"))
    assert visitor.post("/loops/words/links", {"days": "7", "segment": "you"}).status == 422


def test_who_always_presses_the_same_side_is_told_of(visitor: Visitor, path: Path) -> None:
    assert "Mind:" not in found_out(visitor, "/loops/words/results").html
    with Loop.open(path) as loop:
        for n in range(16):
            loop.decide(person="staff/left", id=f"ask-{n}-staff/left")
            loop.feedback(f"ask-{n}-staff/left", id=f"ask-{n}.0-staff/left", choice="first")
    told = words(found_out(visitor, "/loops/words/results?segment=staff").one("main"))
    assert "Mind: 'staff/left' took the first of the two in 16 of 16 answers" in told
    assert "heedful forget words staff/left takes their answers out." in told
    assert "Mind:" not in found_out(visitor, "/loops/words/results?segment=customers").html


def test_a_study_without_answers_says_so(visitor: Visitor, path: Path) -> None:
    study_in(path.parent / "logos.heedful", logos(path.parent / "pictures"))
    assert "Nobody has answered yet." in words(visitor.get("/loops/logos/results").one("main"))
    assert visitor.get("/loops/logos/results/answers.csv").status == 422
    assert visitor.get("/loops/logos/results/answers.json").status == 200
    assert visitor.get("/loops/logos/compare/so-far").status == 200


def test_loops_of_other_kinds_have_none_of_it(visitor: Visitor, path: Path) -> None:
    rows = [{"id": "a", "x": 1}, {"id": "b", "x": 2}]
    Loop.create(path.parent / "cars.heedful", encoding=infer(rows), items=rows).close()
    for page in ("compare", "results", "results/answers.csv", "compare/so-far"):
        assert visitor.get(f"/loops/cars/{page}").status == 404
    assert visitor.post("/loops/cars/links", {"days": "7"}).status == 404
    assert visitor.get("/loops/cars").status == 200


def test_a_loop_of_choices_that_was_made_otherwise_has_them_too(visitor: Visitor, path: Path) -> None:
    (path / "study.json").unlink()
    assert "choices: ranking" in visitor.get("/loops/words/row").html
    assert visitor.get("/loops/words").headers["location"] == "/loops/words/compare"
    assert visitor.get("/loops/words/learned").headers["location"] == "/loops/words/results"
    page = visitor.get("/loops/words/compare")
    assert words(page.one("h1")) == "Which is better?"
    assert len(ranking(visitor.get("/loops/words/results"))) == 5


def test_what_a_key_may(url: str, path: Path) -> None:
    with closing(Keys(path.parent)) as keys:
        secrets = {
            name: keys.create(name, scopes=scopes)[1]
            for name, scopes in (
                ("read", ["read"]),
                ("teach", ["read", "feedback", "decide"]),
                ("all", ["read", "admin", "feedback", "decide"]),
            )
        }
    got = {}
    for name, secret in secrets.items():
        with closing(Visitor(url)) as visitor:
            visitor.post("/sign-in", {"key": secret, "next": "/"})
            got[name] = [
                visitor.get("/loops/words/results").status,
                visitor.get("/loops/words/compare").status,
                visitor.post("/loops/words/compare/answer", {"number": "0", "attempt": "0", "choice": "first"}).status,
                visitor.post("/loops/words/links", {"days": "1"}).status,
                visitor.post("/loops/words/links/revoke", {"handle": "x"}).status,
            ]
    assert got == {
        "read": [200, 403, 403, 403, 403],
        "teach": [200, 200, 303, 403, 403],
        "all": [200, 200, 303, 200, 303],
    }


@pytest.mark.parametrize(("field", "value"), [("days", "2"), ("days", ""), ("segment", "a/b"), ("segment", "<b>")])
def test_links_that_make_no_sense_are_refused(visitor: Visitor, field: str, value: str) -> None:
    page = visitor.post("/loops/words/links", {"days": "7", "segment": "", field: value})
    assert page.status == 422
    assert f"{field}: wanted" in words(page.one("main"))


def test_somebody_else_sits_here(visitor: Visitor, path: Path) -> None:
    page = visitor.get("/loops/words/compare?person=ann")
    fields = page.fields("/loops/words/compare/answer")
    assert fields["person"] == "ann"
    visitor.post("/loops/words/compare/answer", fields | {"choice": "second"})
    assert answers(path)[-1][:2] == ("ann", "second")
    assert visitor.get(f"/loops/words/compare?person={'x' * 151}").status == 422


def test_a_ranking_that_takes_long_is_waited_for_a_while_and_told_later(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, works = threading.Event(), standing.summed
    monkeypatch.setattr(standing, "PATIENCE", 0.1)
    monkeypatch.setattr(standing, "summed", lambda loop, people: go.wait(30) and works(loop, people))
    page = visitor.get("/loops/words/results")
    assert "The ranking is being worked out." in words(page.one("main"))  # five are not so many
    assert page.one("meta[@http-equiv='refresh']") is not None
    assert "It is being worked out." in visitor.get("/loops/words/compare/so-far").html
    go.set()
    page = until(lambda: (seen := visitor.get("/loops/words/results")).all("table") and seen)
    assert "Of 24 answers" in words(page.one("main"))
    go.clear()
    with Loop.open(path) as loop:
        loop.undo("ask-8.0-staff/a")
    monkeypatch.setattr(standing, "REST", 0.0)
    page = visitor.get("/loops/words/results")
    assert "Of 24 answers of 3 people; the last ones are not yet looked at." in words(page.one("main"))
    go.set()
    until(lambda: "Of 23 answers" in visitor.get("/loops/words/results").html)


def test_with_many_things_it_is_said_that_it_takes_a_while(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = study_of_rows(path.parent / "many.heedful", standing.MANY + 1)
    with Loop.open(many) as loop:
        loop.feedback(loop.decide(person="ann").id, choice="first")
    monkeypatch.setattr(standing, "PATIENCE", 0.0)
    told = words(visitor.get("/loops/many/results").one("main"))
    assert "The ranking is being worked out: with so many things that takes a while." in told


def test_the_page_that_asks_shows_no_ranking(visitor: Visitor) -> None:
    """Whoever sees who is ahead is drawn to it."""
    found_out(visitor, "/loops/words/results")
    for path in ("/loops/words/compare/so-far", "/loops/words/compare"):
        page = visitor.get(path)
        aside = page.tree if path.endswith("far") else page.one("aside")
        assert "word" not in words(aside).replace("/loops/words", "")
        assert "results" in {link.get("href", "").rpartition("/")[2] for link in aside.iter("a")}
    told = words(visitor.get("/loops/words/compare/so-far").tree)
    assert "24 answers" in told
    assert "left" in told


def test_who_comes_meanwhile_does_not_have_it_begun_anew(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranking of a segment to which people come faster than it is found out."""
    go, works, begun = threading.Event(), standing.summed, list[Any]()

    def slow(loop: Loop, people: Any) -> Any:
        begun.append(people)
        assert go.wait(30)
        return works(loop, people)

    def comes(person: str) -> None:
        with Loop.open(path) as loop:
            loop.decide(person=person, id=f"ask-0-{person}")
            loop.feedback(f"ask-0-{person}", id=f"ask-0.0-{person}", choice="first")

    monkeypatch.setattr(standing, "PATIENCE", 0.1)
    monkeypatch.setattr(standing, "REST", 0.0)
    monkeypatch.setattr(standing, "summed", slow)
    staff = "/loops/words/results?segment=staff"
    for person in ("staff/c", "staff/d"):
        assert "is being worked out" in words(visitor.get(staff).one("main"))
        comes(person)
    assert begun == [["staff/a", "staff/b"]]
    go.set()
    page = until(lambda: "Of 19 answers of 4 people" in (seen := visitor.get(staff)).html and seen)
    assert "not yet looked at" not in words(page.one("main"))
    go.clear()
    comes("staff/e")
    assert "Of 19 answers of 4 people; the last ones are not yet looked at." in words(visitor.get(staff).one("main"))
    assert "is being worked out" in words(visitor.get("/loops/words/results").one("main"))
    go.set()


def test_a_link_that_was_made_stays_to_be_read(visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, works = threading.Event(), standing.summed
    monkeypatch.setattr(standing, "PATIENCE", 0.1)
    monkeypatch.setattr(standing, "summed", lambda loop, people: go.wait(30) and works(loop, people))
    page = visitor.post("/loops/words/links", {"days": "7"})
    assert "is being worked out" in words(page.one("main"))
    assert "/s/" in page.at("link")
    assert page.all("meta[@http-equiv='refresh']") == []
    for query in ("", "?segment=staff"):
        again = visitor.get(f"/loops/words/results{query}").one("meta[@http-equiv='refresh']").get("content")
        assert again == f"3; url=/loops/words/results{query}"
    go.set()


def test_how_things_stand_for_some_people_together(path: Path) -> None:
    with Loop.open(path) as loop:
        some = loop.standing(people=["staff/a", "staff/b", "nobody"])
        assert (some.people, some.answers) == (2, 17)
        assert loop.standing(people=["customers/c"]).ranking == loop.standing("customers/c").ranking
        assert loop.standing(people=[]).answers == 0
        with pytest.raises(ValueError, match=r"^people: wanted none beside a person"):
            loop.standing("staff/a", people=["staff/b"])
