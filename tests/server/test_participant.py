"""Participants: what a link lets them do, which is to answer one study; twenty of them at once."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from asking import NO_TLS
from browsing import Visitor

from compared import ASK, answers, link_to, logos, study_in, study_of_rows
from heedful import Loop
from heedful.server.keys import Keys
from heedful.server.links import FRESH, Links
from heedful.server.main import served
from heedful.server.pages import participant, question_flow

SECRET = "heedful-participant"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server with two studies, logos and words, and a key: whoever has none gets in nowhere else."""
    study_in(tmp_path / "logos.heedful", logos(tmp_path / "pictures"))
    study_of_rows(tmp_path / "words.heedful", 8, questions=5)
    with closing(Keys(tmp_path)) as keys:
        keys.create("owner")
    with served(tmp_path) as address:
        yield address


def asked(page: httpx.Response) -> dict[str, str]:
    """What the form of a question sends along."""
    return {name: re.search(rf'name="{name}" value="(\d+)"', page.text)[1] for name in ("number", "attempt")}  # type: ignore[index]


class Somebody:
    """A browser that came by a link."""

    def __init__(self, url: str, link: str) -> None:
        self.client = httpx.Client(
            base_url=url, headers={"origin": url}, follow_redirects=True, timeout=60, verify=NO_TLS
        )
        self.link = link

    def begin(self) -> httpx.Response:
        return self.client.post(
            f"{self.link}/agree", content="", headers={"content-type": "application/x-www-form-urlencoded"}
        )

    def say(self, choice: str, **fields: str) -> httpx.Response:
        page = self.client.get(self.link)
        return self.client.post(f"{self.link}/answer", data={**asked(page), "choice": choice, **fields})


def test_from_the_consent_line_to_the_thanks_without_a_script(url: str, tmp_path: Path) -> None:
    link = link_to(tmp_path / "words.heedful", "students")
    with closing(Visitor(url)) as visitor:
        page = visitor.get(link)
        assert page.at("main").startswith(f"{ASK} You will see two at a time.")
        assert "set-cookie" not in page.headers
    who = Somebody(url, link)
    page = who.begin()
    assert "1 of 5" in page.text
    cookie = next(each for each in who.client.cookies.jar)
    assert (cookie.name, cookie.path, cookie.secure) == (SECRET, link, False)
    assert cookie.has_nonstandard_attr("HttpOnly")
    for choice in ("first", "second", "equal", "cannot_judge", "first"):
        page = who.say(choice)
        assert page.status_code == 200
    assert "Thank you" in page.text
    told = answers(tmp_path / "words.heedful")
    assert [said for _, said, _ in told] == ["first", "second", "equal", "cannot_judge", "first"]
    assert len({frozenset(shown) for _, _, shown in told}) == 5
    assert all(re.fullmatch("students/[0-9a-f]{12}", person) for person, _, _ in told)
    assert cookie.value is not None
    assert not any(cookie.value in person for person, _, _ in told)


def test_a_link_opens_its_study_and_nothing_else(url: str, tmp_path: Path) -> None:
    link = link_to(tmp_path / "words.heedful")
    who = Somebody(url, link)
    who.begin()
    other = study_in(tmp_path / "more.heedful", logos(tmp_path / "more"))
    with Loop.open(tmp_path / "logos.heedful") as loop:
        rows = [loop.projection.log.at(event.seq) for event in loop.projection.log.events(kinds=["item"])]
    number = re.search(r'"picture":"([0-9a-f]{16})"', rows[0].payload)[1]  # type: ignore[union-attr,index]
    assert (tmp_path / "logos.heedful" / "pictures" / number).is_file()
    assert who.client.get(f"{link}/pictures/{number}").status_code == 404  # another study's
    assert who.client.get(f"{link}/pictures/..%2Fstudy.json").status_code == 404
    token = link.removeprefix("/s/")
    for path in (
        "/",
        "/keys",
        "/loops/words",
        "/loops/words/results",
        "/loops/words/compare",
        "/loops/words/results/answers.csv",
    ):
        page = who.client.get(path)
        assert "Sign in" in page.text or page.status_code in (401, 403, 404), path
        assert "word 1" not in page.text
    for path in ("/v1/loops", "/v1/loops/words", "/v1/loops/words/standing", "/metrics"):
        for headers in ({}, {"authorization": f"Bearer {token}"}, {"authorization": f"Bearer hk_{token}"}):
            assert who.client.get(path, headers=headers).status_code == 401, path
    for path in ("/results", "/compare", "/so-far", "/links", "/../loops/words/results", "/answers.csv"):
        assert who.client.get(f"{link}{path}").status_code in (401, 404), path
    assert who.client.delete(link).status_code == 405
    assert other.is_dir()


@pytest.mark.parametrize(
    "fields",
    [
        {"number": "7"},
        {"number": "-1"},
        {"number": "1e3"},
        {"attempt": "x"},
        {"choice": "best"},
        {"choice": ""},
        {"number": ""},
    ],
)
def test_answers_that_make_no_sense_are_refused_by_name(url: str, tmp_path: Path, fields: dict[str, str]) -> None:
    who = Somebody(url, link_to(tmp_path / "words.heedful"))
    who.begin()
    page = who.say(**{"choice": "first", **fields})
    assert page.status_code in (409, 422)
    assert "expected" in page.text or "not asked yet" in page.text
    assert answers(tmp_path / "words.heedful") == []


def test_nobody_answers_or_undoes_for_another(url: str, tmp_path: Path) -> None:
    link = link_to(tmp_path / "words.heedful")
    one, two = Somebody(url, link), Somebody(url, link)
    one.begin()
    two.begin()
    page = one.say("first")
    event = re.search(r'name="event" value="([^"]+)"', page.text)[1]  # type: ignore[index]
    [(person, _, _)] = answers(tmp_path / "words.heedful")
    assert event.endswith(person)
    two.client.post(f"{link}/undo", data={"event": event})
    two.say("second", person=person)
    told = answers(tmp_path / "words.heedful")
    assert len(told) == 2
    assert told[1][0] != person
    # Who knows a name in the log is not who has it.
    stolen = httpx.get(f"{url}{link}", headers={"cookie": f"{SECRET}={person.rpartition('/')[2]}"}, verify=NO_TLS)
    assert "I agree" in stolen.text
    bare = httpx.post(
        f"{url}{link}/answer", headers={"origin": url}, data={"number": "0", "attempt": "0", "choice": "first"}
    )
    assert bare.status_code == 409
    assert httpx.post(f"{url}{link}/agree", headers={"origin": "https://evil.example"}).status_code == 403


def test_a_link_ends_with_its_time_its_revocation_and_its_study(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    link = link_to(path)
    for wrong in (f"/s/{'x' * 43}", "/s/x", "/s/"):
        assert httpx.get(f"{url}{wrong}", verify=NO_TLS).status_code == 404
    moved = tmp_path / "kept"
    path.rename(moved)
    study_of_rows(path, 4)
    page = Somebody(url, link).client.get(link)
    assert page.status_code == 404
    assert "does not work, or no longer" in page.text


def test_who_was_forgotten_stays_so(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    who = Somebody(url, link_to(path))
    who.begin()
    who.say("first")
    [(person, _, _)] = answers(path)
    with Loop.open(path) as loop:
        loop.forget(person)
    page = who.client.get(who.link)
    assert page.status_code == 404
    assert "erased" in page.text
    assert answers(path) == []


def test_an_item_that_is_taken_off_offer_is_asked_about_no_more(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    who = Somebody(url, link_to(path))
    first = who.begin()
    gone = re.findall(r"word \d", first.text)[0]
    with Loop.open(path) as loop:
        loop.withdraw(gone)
    page = who.client.get(who.link)
    assert page.status_code == 200
    assert gone not in page.text
    assert asked(page) == {"number": "1", "attempt": "0"}


def test_the_token_is_in_no_log_even_where_something_breaks(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    link = link_to(tmp_path / "words.heedful")
    who = Somebody(url, link)
    page = who.begin()
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    who.say("first")

    def broken(*_: object) -> None:
        raise RuntimeError("a pipe has burst")

    monkeypatch.setattr(question_flow, "place_of", broken)
    page = who.client.get(link)
    assert page.status_code == 500
    assert "a pipe" not in page.text
    (tmp_path / "words.heedful" / "study.json").write_text("{")
    assert who.client.get(link).status_code == 422
    assert not logging.getLogger("uvicorn.access").propagate  # only a test sees it, which looks into all loggers
    others = ("httpx", "httpcore", "uvicorn.access")
    told = [caplog.handler.format(record) for record in caplog.records if not record.name.startswith(others)]
    assert "a pipe has burst" in "".join(told)
    assert link.removeprefix("/s/") not in "".join(told)


@pytest.mark.slow
def test_twenty_people_at_once_lose_no_answer(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    links = [link_to(path, segment) for segment in ("students", "teachers")]

    def takes_part(i: int) -> tuple[int, int]:
        who = Somebody(url, links[i % 2])
        who.begin()
        for choice in ("first", "second", "equal", "cannot_judge", "first"):
            page = who.say(choice)
            assert page.status_code == 200, page.text
            assert (
                who.client.post(
                    f"{who.link}/answer", data={"number": "0", "attempt": "0", "choice": "first"}
                ).status_code
                == 200
            )  # once more
        return i % 2, 5

    with ThreadPoolExecutor(20) as pool:
        given = list(pool.map(takes_part, range(20)))
    told = answers(path)
    assert len(told) == sum(n for _, n in given) == 100
    people: dict[str, list[str]] = {}
    for person, said, _ in told:
        people.setdefault(person, []).append(said)
    assert len(people) == 20
    assert all(said == ["first", "second", "equal", "cannot_judge", "first"] for said in people.values())
    assert sum(person.startswith("students/") for person in people) == 10
    with Loop.open(path) as loop:
        assert loop.verify() == []


def test_what_a_link_did_not_make_is_nobody_there(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    links = [link_to(path, "students"), link_to(path, "students")]
    who = Somebody(url, links[0])
    who.begin()
    kept = next(iter(who.client.cookies.jar)).value
    assert kept is not None
    for link, cookie in ((links[1], kept), (links[0], "a" * 22), (links[0], f"{'a' * 22}.{kept[23:]}"), (links[0], "")):
        headers = {"cookie": f"{SECRET}={cookie}", "origin": url}
        assert "I agree" in httpx.get(f"{url}{link}", headers=headers, verify=NO_TLS).text
        fields = {"number": "0", "attempt": "0", "choice": "first"}
        assert httpx.post(f"{url}{link}/answer", headers=headers, data=fields, verify=NO_TLS).status_code == 409
    other = Somebody(url, links[1])
    other.begin()
    who.say("first")
    other.say("first")
    assert len({person for person, _, _ in answers(path)}) == 2


def test_a_link_lets_in_as_many_as_it_was_made_for(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    link = link_to(path, people=2)
    people = [Somebody(url, link) for _ in range(4)]
    late = [each.client.get(link) for each in people]
    assert all("I agree" in page.text for page in late)
    pages = [each.begin() for each in people]
    assert [page.status_code for page in pages] == [200, 200, 409, 409]
    assert "made for 2 people" in pages[2].text
    time.sleep(FRESH)  # so long what was known of it holds
    assert httpx.get(f"{url}{link}", verify=NO_TLS).status_code == 409
    for each in people[:2]:  # who is in stays in
        assert each.begin().status_code == 200
        assert each.say("first").status_code == 200
    assert len(answers(path)) == 2


def test_programs_are_slowed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "PERSON_RATE", (0.01, 5.0))
    monkeypatch.setattr(participant, "LINK_RATE", (0.01, 20.0))
    monkeypatch.setattr(participant, "BEGIN_RATE", (0.01, 2.0))
    path = study_of_rows(tmp_path / "words.heedful", 8)
    with served(tmp_path) as address:
        link, another = link_to(path), link_to(path)
        who, other, third = Somebody(address, link), Somebody(address, link), Somebody(address, another)
        for each in (who, other, third):  # each begins, and is shown the question: two requests, one as somebody
            assert each.begin().status_code == 200
        told = [who.client.get(f"{link}/pictures/x") for _ in range(6)]
        assert [page.status_code for page in told] == [404] * 4 + [429] * 2
        assert 1 <= int(told[-1].headers["retry-after"]) <= 100
        assert "0.01 requests per second" in told[-1].text
        # Two began here, and no more do for now; whoever is nobody yet has used up what the link has for them. Who is
        # in does not notice.
        assert Somebody(address, link).begin().status_code == 429
        told = [httpx.get(f"{address}{link}", verify=NO_TLS) for _ in range(18)]
        assert [page.status_code for page in told] == [200] * 17 + [429]
        assert other.say("first").status_code == 200
        assert third.say("first").status_code == 200
    assert len(answers(path)) == 2


def test_who_looks_at_a_ranking_has_a_rate_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "LOOK_RATE", (0.01, 5.0))
    path = study_of_rows(tmp_path / "words.heedful", 4)
    with served(tmp_path) as address:
        link, shown = link_to(path), link_to(path, shows=True)
        told = [httpx.get(f"{address}{shown}", verify=NO_TLS).status_code for _ in range(7)]
        assert told == [200] * 5 + [429] * 2
        assert httpx.get(f"{address}{link}", verify=NO_TLS).status_code == 200


def test_a_question_has_one_answer_of_one_person(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    who = Somebody(url, link_to(path))
    who.begin()
    who.say("first")
    for number, attempt in ((0, 1), (0, 9), (1, 1), (1, 5)):  # of which nobody was asked
        fields = {"number": str(number), "attempt": str(attempt), "choice": "second"}
        page = who.client.post(f"{who.link}/answer", data=fields)
        assert page.status_code == 200
        assert asked(page) == {"number": "1", "attempt": "0"}
    assert [said for _, said, _ in answers(path)] == ["first"]
    fields = {"number": "1", "attempt": "0"}
    with ThreadPoolExecutor(8) as pool:
        choices = ["first", "second", "equal", "cannot_judge"] * 4
        to = f"{who.link}/answer"
        pages = list(pool.map(lambda said: who.client.post(to, data={**fields, "choice": said}), choices))
    assert {page.status_code for page in pages} == {200}
    assert all("feedback ask-" not in page.text for page in pages)
    assert len(answers(path)) == 2


def test_what_was_said_long_ago_stays_said(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "SINCE", 3)
    path = tmp_path / "words.heedful"
    link = link_to(path)
    who, other = Somebody(url, link), Somebody(url, link)
    who.begin()
    page = who.say("first")
    event = re.search(r'name="event" value="([^"]+)"', page.text)[1]  # type: ignore[index]
    other.begin()
    for _ in range(2):
        other.say("second")
    gone = who.client.post(f"{link}/undo", data={"event": event})
    assert gone.status_code == 409
    assert "too long ago" in gone.text
    assert len(answers(path)) == 3


def undo(who: Somebody, event: str) -> httpx.Response:
    """Who takes an answer back."""
    return who.client.post(f"{who.link}/undo", data={"event": event})


def last_of(page: httpx.Response) -> str:
    """The answer that a page would take back."""
    return str(re.search(r'name="event" value="([^"]+)"', page.text)[1])  # type: ignore[index]


def test_one_person_leaves_others_their_undo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "OWN_RATE", (0.01, 2.0))
    monkeypatch.setattr(participant, "UNDO_RATE", (0.01, 3.0))
    path = study_of_rows(tmp_path / "words.heedful", 8)
    with served(tmp_path) as address:
        link = link_to(path)
        one, two, three = (Somebody(address, link) for _ in range(3))
        for each in (one, two, three):
            each.begin()
        event = last_of(two.say("first"))
        for wrong in ("", "x", "ask-0.0-you", event):  # what cannot be taken back costs nothing
            assert [undo(one, wrong).status_code for _ in range(3)] == [200] * 3
        told = [undo(one, last_of(one.say("first"))) for _ in range(3)]
        assert [page.status_code for page in told] == [200, 200, 429]
        assert "0.01 requests per second" in told[-1].text
        assert undo(two, event).status_code == 200
        assert undo(three, last_of(three.say("first"))).status_code == 429  # three of this link did
    assert len(answers(path)) == 2


def test_an_undo_does_not_tell_what_others_answered(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "SINCE", -1)  # whatever is looked at was long ago
    path = tmp_path / "words.heedful"
    with Loop.open(path) as loop:
        loop.decide(person="you", id="ask-0-you")
        loop.feedback("ask-0-you", id="ask-0.0-you", choice="first")
    who = Somebody(url, link_to(path))
    who.begin()
    told = {undo(who, event).text for event in ("ask-0.0-you", "ask-1.0-you", "ask-0.99-you", "x" * 300, "")}
    assert len(told) == 1
    assert len(answers(path)) == 1
    assert "too long ago" in undo(who, last_of(who.say("first"))).text


def test_who_comes_after_the_end_is_told_that_what_was_said_is_kept(url: str, tmp_path: Path) -> None:
    path = tmp_path / "words.heedful"
    link = link_to(path)
    who = Somebody(url, link)
    who.begin()
    who.say("first")
    with Loop.open(path) as loop:
        first = loop.projection.log.at(1)
    assert first is not None
    links = Links(tmp_path)
    [kept] = links.all("main", "words", first.time)
    links.revoke("main", "words", kept.handle)
    time.sleep(FRESH)
    page = who.client.get(link)
    assert page.status_code == 404
    assert "This link has ended" in page.text
    assert "are kept: thank you" in page.text
    assert "has ended" not in who.client.get(f"/s/{'x' * 43}").text


def test_one_person_leaves_so_much_in_the_log_and_no_more(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(participant, "ANSWERS", 6)
    monkeypatch.setattr(participant, "TAKEN_BACK", 3)
    path = tmp_path / "words.heedful"
    who = Somebody(url, link_to(path))
    who.begin()
    for again in range(3):
        page = who.say("first")
        assert page.status_code == 200
        event = re.search(r'name="event" value="([^"]+)"', page.text)[1]  # type: ignore[index]
        gone = who.client.post(f"{who.link}/undo", data={"event": event})
        assert gone.status_code == (200 if again < 2 else 409)
    assert "stays as it is" in gone.text
    for _ in range(3):
        who.say("first")
    page = who.say("first")
    assert "Thank you" in page.text
    assert "Answer more questions" in page.text
    page = who.client.get(f"{who.link}?more=1")
    page = who.client.post(f"{who.link}/answer", data={**asked(page), "choice": "first", "more": "1"})
    assert "Thank you" in page.text
    assert "Go on" not in page.text
    assert len(answers(path)) == 6
