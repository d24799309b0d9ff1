"""What a question is made of: what its page gives away, what is passed over, whose page an answer comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from asking import NO_TLS
from browsing import Visitor

from compared import answers, link_to, logos, study_in, study_of_rows
from heedful import Loop
from heedful.server.main import served

PAGE = "/loops/words/compare"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path) as address:
        yield address


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    with closing(Visitor(url)) as found:
        yield found


def names_in(html: str) -> list[str]:
    """The items that are asked about, the left one first."""
    return re.findall(r"This one: ([^<]*)<", html)


def test_what_is_not_shown_is_nowhere_in_a_participants_page(url: str, tmp_path: Path) -> None:
    rows = [{"name": f"Brand{i}", "colour": f"shade {i}", "price": i} for i in range(3)]
    link = link_to(study_of_rows(tmp_path / "words.heedful", rows, show=("colour", "price")))
    hidden = [str(row["name"]) for row in rows]
    with httpx.Client(base_url=url, headers={"origin": url}, follow_redirects=True, verify=NO_TLS) as client:
        pages = [client.get(link), client.post(f"{link}/agree")]
        for number in ("0", "1", "2"):
            pages.append(client.get(link))
            data = {"number": number, "attempt": "0", "choice": "first"}
            pages.append(client.post(f"{link}/answer", data=data, headers={"hx-request": "true"}))
    assert "shade" in pages[1].text
    assert "Thank you" in pages[-1].text
    for page in pages:
        assert page.status_code == 200
        assert not [name for name in hidden if name in page.text or name in str(page.headers)]


def test_pictures_and_rows_with_a_name_are_called_by_it(visitor: Visitor, tmp_path: Path) -> None:
    study_in(tmp_path / "words.heedful", logos(tmp_path / "logos", 2))
    page = visitor.get(PAGE)
    assert sorted(image.attrib["alt"] for image in page.all("div/img")) == ["logo 0", "logo 1"]
    assert sorted(names_in(page.html)) == ["logo 0", "logo 1"]
    study_of_rows(tmp_path / "rows.heedful", 2)
    assert sorted(names_in(visitor.get("/loops/rows/compare").html)) == ["word 0", "word 1"]


def test_a_question_that_is_passed_over_is_nobodys_answer(visitor: Visitor, tmp_path: Path) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 6)
    page = visitor.get(PAGE)
    visitor.post(f"{PAGE}/answer", page.fields(f"{PAGE}/answer") | {"choice": "first"})
    asked = names_in(visitor.get(PAGE).html)
    with Loop.open(path) as loop:
        loop.withdraw(asked[0])
    page = visitor.get(PAGE)
    assert page.fields(f"{PAGE}/answer")["number"] == "2"
    assert "1 answered" in page.html
    assert [said for _, said, _ in answers(path)] == ["first"]
    # What is taken back is what was said; and then there is nothing more to take back.
    assert page.fields(f"{PAGE}/undo") == {"event": "ask-0.0-you"}
    visitor.post(f"{PAGE}/undo", page.fields(f"{PAGE}/undo"))
    page = visitor.get(PAGE)
    assert page.fields(f"{PAGE}/undo") == {"event": ""}
    assert "0 answered" in page.html
    assert answers(path) == []
    for choice in ("second", "cannot_judge"):
        page = visitor.get(PAGE)
        assert asked[0] not in names_in(page.html)
        visitor.post(f"{PAGE}/answer", page.fields(f"{PAGE}/answer") | {"choice": choice})
    assert [said for _, said, _ in answers(path)] == ["second", "cannot_judge"]
    assert "2 answered" in visitor.get(PAGE).html
    with Loop.open(path) as loop:
        assert loop.verify() == []


def test_an_answer_counts_for_the_pair_that_was_seen_alone(url: str, tmp_path: Path) -> None:
    """The page of a person who is somebody else by now: a cookie may be lost, and a new one drawn in another window."""
    path = study_of_rows(tmp_path / "words.heedful", 8)
    link = link_to(path)
    with httpx.Client(base_url=url, headers={"origin": url}, follow_redirects=True, verify=NO_TLS) as client:
        old = fields_of(client.post(f"{link}/agree"))
        client.cookies.clear()
        new = fields_of(client.post(f"{link}/agree"))
        assert (old["number"], old["attempt"]) == (new["number"], new["attempt"])
        for scripted in ({"hx-request": "true"}, {}):
            page = client.post(f"{link}/answer", data={**old, "choice": "first"}, headers=scripted)
            assert page.status_code == 409
            assert "this answer is to another question than is asked here now: load the page again" in page.text
        assert answers(path) == []
        for _ in range(2):  # the second time it is there
            assert client.post(f"{link}/answer", data={**new, "choice": "second"}).status_code == 200
        assert client.post(f"{link}/answer", data={**old, "choice": "second"}).status_code == 409
    assert [said for _, said, _ in answers(path)] == ["second"]


def test_an_answer_to_another_study_of_that_name_is_refused(tmp_path: Path) -> None:
    path, forms = tmp_path / "words.heedful", []
    for _ in range(2):
        study_of_rows(path, 4)
        with served(tmp_path) as url, closing(Visitor(url)) as visitor:
            forms.append(visitor.get(PAGE).fields(f"{PAGE}/answer"))
            got = [visitor.post(f"{PAGE}/answer", form | {"choice": "first"}).status for form in forms]
        if len(forms) == 1:
            path.rename(tmp_path / "kept")
    old, new = forms
    assert {**old, "shown": ""} == {**new, "shown": ""}
    assert got == [409, 303]
    assert len(answers(path)) == 1


def fields_of(page: httpx.Response) -> dict[str, str]:
    """What the form of a question sends along."""
    form = page.text.partition("/answer")[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_what_is_passed_over_is_none_of_the_questions_that_a_participant_answers(url: str, tmp_path: Path) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 6, questions=2)
    link = link_to(path)
    with httpx.Client(base_url=url, headers={"origin": url}, follow_redirects=True, verify=NO_TLS) as client:
        page = client.post(f"{link}/agree")
        with Loop.open(path) as loop:
            loop.withdraw(names_in(page.text)[0])
        page = client.get(link)
        assert fields_of(page)["number"] == "1"
        for told in ("1 of 2", "2 of 2"):
            assert told in page.text
            page = client.post(f"{link}/answer", data={**fields_of(page), "choice": "first"})
    assert "Your 2 answers are kept" in page.text
    assert len(answers(path)) == 2
