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
from xml.etree import ElementTree

import httpx
import pytest
from asking import NO_TLS
from browsing import Visitor, words
from command import heedful

from compared import ASK, answers, link_to, logos, study_in, study_of_rows
from heedful import Loop
from heedful.cli.compare import closing_line
from heedful.core.wording import BAR
from heedful.data import comparisons
from heedful.data.choices import open_choices
from heedful.data.comparisons import Comparison, ComparisonTable
from heedful.data.preflib import load_preflib
from heedful.features import infer
from heedful.server.agent_tools import likes_in_words
from heedful.server.main import served
from heedful.server.pages import standing
from heedful.server.pages.plates import MARGIN, SHAPES, plates
from heedful.server.pages.ranking import picture, table
from heedful.server.pages.results import write_answers
from heedful.studies.arena import create_arena, request_of
from heedful.studies.outputs import Outputs
from heedful.studies.study import Study, study_of
from processes import until


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
    while "being computed" in words(page.one("main")) or "not included yet" in words(page.one("main")):
        page = visitor.get(path)
    return page


@pytest.mark.slow
def test_results_of_all_and_by_segment(visitor: Visitor) -> None:
    page = found_out(visitor, "/loops/words/results")
    assert page.status == 200
    assert "From 24 answers by 3 people" in words(page.one("main"))  # who cannot judge says nothing
    staff = found_out(visitor, "/loops/words/results?segment=staff")
    assert "From 17 answers by 2 people" in words(staff.one("main"))
    customers = found_out(visitor, "/loops/words/results?segment=customers")
    assert "From 7 answers by 1 person" in words(customers.one("main"))
    assert ranking(staff)[0] == ranking(customers)[-1] == "word 0"
    assert ranking(staff)[-1] == ranking(customers)[0] == "word 4"
    assert len(ranking(page)) == 5
    assert visitor.get("/loops/words/results?segment=nobody").status == 404


def test_terms_of_the_ranking_explain_themselves(visitor: Visitor) -> None:
    """The standard terms are the headings; what each means stands in its tooltip."""
    head = found_out(visitor, "/loops/words/results").one("table[@class='table ranking']/thead")
    told = {words(each): each.get("title") or "" for each in head.iter("abbr")}
    assert list(told) == ["#", "utility", "P(best)", "place", "compared"]
    assert all(told.values())
    assert "90 % interval" in told["utility"]
    assert "90 % probability" in told["place"]


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


def by_name(choices: ComparisonTable) -> set[Comparison[str]]:
    """Answers, whatever numbers their items have."""
    return set(comparisons.by_name(choices))


def file_of(url: str, path: str) -> httpx.Response:
    """A file of the results, when it is there."""
    return until(lambda: (got := httpx.get(f"{url}{path}", verify=NO_TLS)).status_code != 503 and got)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_the_ranking_as_a_table(url: str, visitor: Visitor, path: Path) -> None:
    file = file_of(url, "/loops/words/results/ranking.csv")
    assert file.headers["content-disposition"] == 'attachment; filename="words-ranking.csv"'
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(file.text)))
    with Loop.open(path) as loop:
        told = loop.standing()
    assert [row["item"] for row in rows] == [each.item for each in told.ranking]
    assert [row["place"] for row in rows] == ["1", "2", "3", "4", "5"]
    for row, each in zip(rows, told.ranking):
        names = ("utility", "utility_low", "utility_high", "best", "place_low", "place_high", "comparisons")
        assert [float(row[name]) for name in names] == pytest.approx([getattr(each, name) for name in names], abs=1e-4)
        assert row["told_apart"] == {True: "yes", False: "no", None: ""}[each.told_apart]
    staff = file_of(url, "/loops/words/results/ranking.csv?segment=staff")
    assert staff.headers["content-disposition"] == 'attachment; filename="words-ranking-staff.csv"'
    assert next(csv.DictReader(io.StringIO(staff.text)))["item"] == "word 0"
    assert httpx.get(f"{url}/loops/words/results/ranking.csv?segment=nobody", verify=NO_TLS).status_code == 404
    assert httpx.get(f"{url}/loops/words/results/ranking.xls", verify=NO_TLS).status_code == 404


def drawing(content: bytes) -> ElementTree.Element:
    """A drawing that asks nobody for anything, and runs nothing."""
    root = ElementTree.fromstring(content)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for each in root.iter():
        assert each.tag.partition("}")[2] in {"svg", "title", "rect", "text", "line"}
        assert not {name for name in each.attrib if "href" in name or name.startswith("on")}
    return root


SLOGANS = ("Built to last", "Fresh every day", "Fresh every day", "a long slogan " * 10)


@pytest.mark.slow
def test_what_people_saw_is_what_everybody_is_told(tmp_path: Path) -> None:
    """Ids name the items, and nobody was shown one; only files have them, in a column of their own."""
    rows = [{"id": f"s0{i}", "slogan": slogan, "cost": i} for i, slogan in enumerate(SLOGANS)]
    path = study_of_rows(tmp_path / "slogans.heedful", rows, show=("slogan",))
    with Loop.open(path) as loop:
        for n in range(3):
            shown = loop.decide(person="ann", id=f"d{n}").shown
            loop.feedback(f"d{n}", choice="first" if shown[0] < shown[1] else "second")
        found = standing.summarise(loop, None)
        told = closing_line(loop)
    called = [row.thing.title for row in found.rows]
    best, most = found.board.items[0], "a long slogan " * 10
    twice = {"Fresh every day (s01)", "Fresh every day (s02)"}  # nobody could tell them apart
    assert {*called} == {"Built to last", *twice, f"{most[:77].rstrip()} …"}
    saw = dict(zip(found.board.items, called))
    assert f"(90 %): {saw[best]} is the best with probability" in found.verdict
    assert f"{saw[best]} is first" in told
    ids = [f"s0{i}" for i in range(4)]
    plain = " ".join([found.verdict, found.named.apart(), told, picture(found, ASK).decode()]).replace("(s01)", "")
    assert not [id for id in ids if id in plain.replace("(s02)", "")]
    table_rows = list(csv.DictReader(io.StringIO(table(found).decode())))
    assert [(row["item"], row["id"]) for row in table_rows] == [(saw[item], item) for item in found.board.items]


def test_what_people_saw_is_told_where_a_question_is_explained_and_in_files_of_answers(tmp_path: Path) -> None:
    """The commands, the page and what agents read call items so; files and JSON have the ids beside it."""
    rows = [{"id": f"s0{i}", "slogan": slogan} for i, slogan in enumerate(("By hand", "NA", "Built to last"))]
    path = study_of_rows(tmp_path / "slogans.heedful", rows, show=("slogan",))
    with Loop.open(path) as loop:
        for n in range(3):
            loop.decide(person="ann", id=f"ask-{n}-ann")
            loop.feedback(f"ask-{n}-ann", choice="first", id=f"ask-{n}.0-ann")
        shown = loop.decide(person="ann", id="ask-3-ann").shown
        files = {form: write_answers(loop, study_of(path), "slogans", form).decode() for form in ("csv", "toi")}
        liked = likes_in_words(loop, "ann")
    called = {"s00": "By hand", "s01": "NA", "s02": "Built to last"}
    first, second = (called[name] for name in shown)
    commands = [heedful("why {} ask-3-ann", path).out, heedful("why {} ask-3-ann {}", path, shown[1]).out]
    for place, (name, told) in enumerate(zip((first, second), commands), 1):
        assert told.startswith(f"{name} was shown in place {place}")
    assert not [text for text in (*commands, files["toi"], liked) if "s00" in text or "s02" in text]
    known = heedful("standing {} --json", path).json
    assert (known["called"], {row["item"] for row in known["ranking"]}) == (called, set(called))
    answered = list(csv.DictReader(io.StringIO(files["csv"])))
    in_files = called | {"s01": "NA (s01)"}  # a cell of NA is an empty one
    assert [(row["first"], row["second"]) for row in answered] == [
        (in_files[row["first_id"]], in_files[row["second_id"]]) for row in answered
    ]
    for form, content in files.items():
        (tmp_path / f"answers.{form}").write_text(content)
        ranked = heedful("rank {} --json", tmp_path / f"answers.{form}")
        assert {row["item"] for row in ranked.json["ranking"]} <= set(in_files.values())
    with served(tmp_path) as url, closing(Visitor(url)) as visitor:
        page = words(visitor.get("/loops/slogans/why?decision=ask-3-ann").one("main"))
    assert first in page
    assert second in page
    assert not [name for name in called if name in page]


@pytest.mark.slow
def test_the_ranking_as_a_picture(url: str, path: Path) -> None:
    file = file_of(url, "/loops/words/results/ranking.svg")
    assert file.headers["content-disposition"] == 'attachment; filename="words-ranking.svg"'
    assert file.headers["content-type"] == "image/svg+xml"
    root = drawing(file.content)
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    with Loop.open(path) as loop:
        told = loop.standing()
    assert [text for text in texts if text.startswith("word")] == [each.item for each in told.ranking]
    assert ASK in texts
    assert any("24 answers by 3 people" in text for text in texts)
    # Where each stands, from left to right as from last to first, with its uncertainty around it.
    marks = [each for each in root.iter() if each.get("class") == "at"]
    at = [float(each.attrib["x"]) for each in marks]
    assert at == sorted(at, reverse=True)
    spreads = [each for each in root.iter() if each.get("class") == "spread"]
    widths = [float(each.attrib["width"]) for each in spreads]
    assert any("A bar is a 90 % interval." in text for text in texts)
    scale = {round(2 * BAR * width / (each.bar[2] - each.bar[0]), 1) for width, each in zip(widths, told.ranking)}
    unit = (at[0] - at[-1]) / (told.ranking[0].utility - told.ranking[-1].utility)
    assert sum(scale) / len(scale) == pytest.approx(2 * 1.645 * unit, rel=0.02)  # the bars of `heedful rank`
    assert max(scale) - min(scale) <= 0.05 * max(scale)
    box = [float(number) for number in root.attrib["viewBox"].split()]
    assert all(
        0 <= float(each.attrib["x"]) <= box[2] and float(each.attrib["y"]) <= box[3] for each in [*marks, *spreads]
    )


def test_names_are_only_names_in_both(url: str, path: Path) -> None:
    """A spreadsheet runs what begins as a formula; a drawing is of marks."""
    names = [
        "=1+1",
        "+a",
        "-b",
        "@c",
        "<script>&\"'",
        "\N{GRINNING FACE} and \N{BENGALI LETTER KA}",
        "x" * 190,
    ]
    rows = [{"name": name, "n": i} for i, name in enumerate(names)]
    odd = study_of_rows(path.parent / "odd.heedful", rows, ask='<b> "&" \x07 ' + "long " * 40)
    with Loop.open(odd) as loop:
        loop.feedback(loop.decide(person="ann").id, choice="first")
    told = file_of(url, "/loops/odd/results/ranking.csv").content.decode()
    found = {row["item"] for row in csv.DictReader(io.StringIO(told, newline=""))}
    assert found == {f"'{name}" if name[0] in "=+-@" else name for name in names}
    assert drawing(file_of(url, "/loops/odd/results/ranking.svg").content) is not None


@pytest.mark.slow
def test_a_link_that_shows_the_ranking(url: str, visitor: Visitor, path: Path) -> None:
    page = visitor.post("/loops/words/links", {"days": "7", "shows": "1", "segment": "staff"})
    link = page.at("link").removeprefix(url)
    assert "sees the current ranking" in words(page.one("main"))
    for looking in (Visitor(url), visitor):
        shown = found_out(looking, link)
        assert words(shown.one("h1")) == ASK
        assert "From 17 answers by 2 people" in words(shown.one("main"))
        assert ranking(shown) == ranking(found_out(visitor, "/loops/words/results?segment=staff"))
        told = words(shown.tree)
        assert "staff" not in told  # whose answers these are is nobody's business who looks
        assert not re.search(r"[0-9a-f]{12}", told)
        assert [each.tag for each in shown.tree.iter() if each.tag in ("form", "button", "input", "a")] == []
    # It answers nothing, and a link that asks shows nothing.
    for what in ("agree", "answer", "undo"):
        assert Visitor(url).post(f"{link}/{what}", {"number": "0", "attempt": "0", "choice": "first"}).status == 404
    assert len(answers(path)) == 25
    assert "word 0" not in visitor.get(link_to(path)).html
    everybody = found_out(visitor, link_to(path, shows=True))
    assert "From 24 answers by 3 people" in words(everybody.one("main"))
    handle = visitor.get("/loops/words/results").fields("/loops/words/links/revoke")["handle"]
    assert handle


def test_what_is_strange_about_how_somebody_answered_is_not_shown_to_all(visitor: Visitor, path: Path) -> None:
    with Loop.open(path) as loop:
        for n in range(16):
            loop.decide(person="staff/left", id=f"ask-{n}-staff/left")
            loop.feedback(f"ask-{n}-staff/left", id=f"ask-{n}.0-staff/left", choice="first")
    assert "Note:" in words(found_out(visitor, "/loops/words/results").one("main"))
    assert "left" not in re.sub(r"questions? left", "", words(found_out(visitor, link_to(path, shows=True)).tree))


@pytest.mark.slow
def test_a_link_that_shows_a_ranking_that_nobody_has_answered_for(visitor: Visitor, path: Path) -> None:
    study = study_in(path.parent / "logos.heedful", logos(path.parent / "pictures"))
    link = link_to(study, shows=True)
    assert "Nobody has answered yet." in words(visitor.get(link).one("main"))
    with Loop.open(study) as loop:
        loop.feedback(loop.decide(person="ann").id, choice="first")
    page = found_out(visitor, link)
    [picture, *_] = [each.get("src", "") for each in page.all("img")]
    assert picture.startswith(f"{link}/pictures/")
    assert visitor.http.get(picture).headers["content-type"] == "image/png"
    assert visitor.post("/loops/words/links", {"days": "7", "shows": "1", "segment": "nobody"}).status == 404
    with Loop.open(path) as loop:
        loop.decide(person="you", id="ask-0-you")
        loop.feedback("ask-0-you", id="ask-0.0-you", choice="first")
    page = visitor.post("/loops/words/links", {"days": "7", "shows": "1", "segment": "-you"})
    assert "for all but you" in words(page.one("main"))
    assert "From 24 answers by 3 people" in words(
        found_out(visitor, page.at("link").removeprefix(visitor.url)).one("main")
    )
    assert visitor.post("/loops/words/links", {"days": "7", "shows": "yes"}).status == 422


@pytest.mark.slow
def test_who_sits_here_can_be_left_out(visitor: Visitor, url: str, path: Path) -> None:
    assert "All but you" not in found_out(visitor, "/loops/words/results").html
    with Loop.open(path) as loop:
        loop.decide(person="you", id="ask-0-you")
        loop.feedback("ask-0-you", id="ask-0.0-you", choice="first")
    assert "From 25 answers by 4 people" in words(found_out(visitor, "/loops/words/results").one("main"))
    assert "All but you" in visitor.get("/loops/words/results").html
    assert "From 24 answers by 3 people" in words(found_out(visitor, "/loops/words/results?segment=-you").one("main"))
    left = httpx.get(f"{url}/loops/words/results/answers.json?segment=-you", verify=NO_TLS)
    assert left.headers["content-disposition"] == 'attachment; filename="words-answers-you.json"'
    assert {each["person"] for each in left.json()["answers"]} == {"staff/a", "staff/b", "customers/c"}


@pytest.mark.slow
def test_a_segment_that_is_called_as_who_sits_here_is_not_left_out(visitor: Visitor, path: Path) -> None:
    """No link makes one any more."""
    with Loop.open(path) as loop:
        for person in ("you", "you/d"):
            loop.decide(person=person, id=f"ask-0-{person}")
            loop.feedback(f"ask-0-{person}", id=f"ask-0.0-{person}", choice="first")
    assert "From 26 answers by 5 people" in words(found_out(visitor, "/loops/words/results").one("main"))
    assert "From 25 answers by 4 people" in words(found_out(visitor, "/loops/words/results?segment=-you").one("main"))
    assert visitor.post("/loops/words/links", {"days": "7", "segment": "you"}).status == 422


@pytest.mark.slow
def test_who_always_presses_the_same_side_is_told_of(visitor: Visitor, path: Path) -> None:
    assert "Note:" not in found_out(visitor, "/loops/words/results").html
    with Loop.open(path) as loop:
        for n in range(16):
            loop.decide(person="staff/left", id=f"ask-{n}-staff/left")
            loop.feedback(f"ask-{n}-staff/left", id=f"ask-{n}.0-staff/left", choice="first")
    told = words(found_out(visitor, "/loops/words/results?segment=staff").one("main"))
    assert "Note: 'staff/left' took the first of the two in 16 of 16 answers" in told
    page = found_out(visitor, "/loops/words/results?segment=staff")
    [out] = [link.attrib["href"] for link in page.all("a") if words(link) == "Leave them out"]
    left = found_out(visitor, out)
    assert "Left out: staff/left." in left.at("left-out")
    assert "by 2 people" in words(left.one("main"))
    files = [link.attrib["href"] for link in left.all("a") if "download" in link.attrib]
    assert all("without=" in file for file in files)
    numbers = {len(httpx.get(f"{visitor.url}{file}", verify=NO_TLS).content) > 0 for file in files}
    assert numbers == {True}
    back = [link.attrib["href"] for link in left.all("a") if words(link) == "Take them in again"]
    assert back == ["/loops/words/results?segment=staff"]
    assert words(found_out(visitor, back[0]).one("main")) == told
    assert visitor.get("/loops/words/results?without=%5B%22nobody%22%5D").status == 404
    assert "Note:" not in found_out(visitor, "/loops/words/results?segment=customers").html


def test_a_judge_of_an_arena_who_always_presses_the_same_side_is_left_out_and_taken_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page, and by --without, which each door offers: the leaderboard, the standing and what was left out."""
    monkeypatch.setattr(
        "heedful.studies.study.secrets.randbits", lambda bits: 3
    )  # which pairs are asked decides which is first
    path, models = tmp_path / "models.heedful", ("large", "small", "tiny")
    outputs = Outputs({"q": "A prompt"}, {model: {"q": f"answer of {model}"} for model in models})
    with create_arena(path, outputs, Study(ask=ASK, kind="answers"), "ranking") as loop:
        for person in ("left", "fair"):
            for n in range(18):
                shown = loop.decide(**request_of(loop, outputs, person, n)).shown
                left = person == "left" or shown[0] < shown[1]
                loop.feedback(f"ask-{n}-{person}", id=f"ask-{n}.0-{person}", choice="first" if left else "second")
    with served(tmp_path) as url, closing(Visitor(url)) as visitor:
        page = visitor.get("/loops/models/results")
        assert words(page.one("main")).count("took the first of the two in 18 of 18 answers") == 1
        [out] = [link.attrib["href"] for link in page.all("a") if words(link) == "Leave them out"]
        left_out = visitor.get(out)
        assert "Left out: left. With and without them large is first." in left_out.at("left-out")
        assert "took the first" not in words(left_out.one("main"))
        [back] = [link.attrib["href"] for link in left_out.all("a") if words(link) == "Take them in again"]
        assert visitor.get(back).html == page.html
    remedy = "To rank without somebody's {}: --without NAME."
    assert remedy.format("votes") in heedful("rank {}", path).out
    said = heedful("standing {}", path).out
    assert "Note: 'left' took the first of the two in 18 of 18 answers" in said
    assert remedy.format("answers") in said
    rest = heedful("standing {} --without left", path)
    assert "took the first" not in rest.out
    assert heedful("standing {} --without left --json", path).json["left_out"] in rest.out


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
    assert len(ranking(found_out(visitor, "/loops/words/results"))) == 5


@pytest.mark.parametrize(("field", "value"), [("days", "2"), ("days", ""), ("segment", "a/b"), ("segment", "<b>")])
def test_links_that_make_no_sense_are_refused(visitor: Visitor, field: str, value: str) -> None:
    page = visitor.post("/loops/words/links", {"days": "7", "segment": "", field: value})
    assert page.status == 422
    assert f"{field}: expected" in words(page.one("main"))


def test_somebody_else_sits_here(visitor: Visitor, path: Path) -> None:
    page = visitor.get("/loops/words/compare?person=ann")
    fields = page.fields("/loops/words/compare/answer")
    assert fields["person"] == "ann"
    visitor.post("/loops/words/compare/answer", fields | {"choice": "second"})
    assert answers(path)[-1][:2] == ("ann", "second")
    assert visitor.get(f"/loops/words/compare?person={'x' * 151}").status == 422


@pytest.mark.slow
def test_a_ranking_that_takes_long_is_waited_for_a_while_and_told_later(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, works = threading.Event(), standing.summarise
    monkeypatch.setattr(standing, "PATIENCE", 0.1)
    monkeypatch.setattr(standing, "summarise", lambda loop, people: go.wait(30) and works(loop, people))
    page = visitor.get("/loops/words/results")
    assert "The ranking is being computed." in words(page.one("main"))  # five are not so many
    assert page.one("meta[@http-equiv='refresh']") is not None
    assert "It is being computed." in visitor.get("/loops/words/compare/so-far").html
    go.set()
    page = until(lambda: (seen := visitor.get("/loops/words/results")).all("table") and seen)
    assert "From 24 answers" in words(page.one("main"))
    go.clear()
    with Loop.open(path) as loop:
        loop.undo("ask-8.0-staff/a")
    monkeypatch.setattr(standing, "REST", 0.0)
    page = visitor.get("/loops/words/results")
    assert "From 24 answers by 3 people; the latest are not included yet." in words(page.one("main"))
    go.set()
    until(lambda: "From 23 answers" in visitor.get("/loops/words/results").html)


def test_with_many_things_it_is_said_that_it_takes_a_while(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = study_of_rows(path.parent / "many.heedful", standing.MANY + 1)
    with Loop.open(many) as loop:
        loop.feedback(loop.decide(person="ann").id, choice="first")
    monkeypatch.setattr(standing, "PATIENCE", 0.0)
    told = words(visitor.get("/loops/many/results").one("main"))
    assert "The ranking is being computed: with so many items this takes a while." in told


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (4.0, 1.0), (0.2, 5.0), (0.01, 100.0), (100.0, 100.0), (1.5, 1.4)])
def test_pictures_have_one_area_and_fit_their_plates(ratios: tuple[float, float]) -> None:
    found = plates(ratios)
    across = SHAPES[found.shape]
    sizes = [(across * float(wide[:-1]) / 100, float(high[:-1]) / 100) for wide, high in found.pictures]
    for (width, height), ratio in zip(sizes, ratios):
        assert width / height == pytest.approx(ratio, rel=0.02)
        assert width <= across
        assert height <= 1
    assert sizes[0][0] * sizes[0][1] == pytest.approx(sizes[1][0] * sizes[1][1], rel=0.03)
    assert max(max(width / across, height) for width, height in sizes) == pytest.approx(MARGIN, abs=1e-3)
    assert found.wide == (across > 1.2)


def test_the_page_that_asks_shows_no_ranking(visitor: Visitor) -> None:
    """Whoever sees who is ahead is drawn to it."""
    found_out(visitor, "/loops/words/results")
    for path in ("/loops/words/compare/so-far", "/loops/words/compare"):
        page = visitor.get(path)
        aside = page.tree if path.endswith("far") else page.one("aside")
        assert "word" not in words(aside).replace("/loops/words", "")
        assert "results" in {link.get("href", "").rpartition("/")[2] for link in aside.iter("a")}
        assert "/loops/words/results#sharing" in {link.get("href") for link in aside.iter("a")}
    told = words(visitor.get("/loops/words/compare/so-far").tree)
    assert "24 answers" in told
    assert "left" in told


@pytest.mark.slow
def test_who_comes_meanwhile_does_not_have_it_begun_anew(
    visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranking of a segment to which people come faster than it is found out."""
    go, works, begun = threading.Event(), standing.summarise, list[Any]()

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
    monkeypatch.setattr(standing, "summarise", slow)
    staff = "/loops/words/results?segment=staff"
    for person in ("staff/c", "staff/d"):
        assert "is being computed" in words(visitor.get(staff).one("main"))
        comes(person)
    assert begun == [["staff/a", "staff/b"]]
    go.set()
    page = until(lambda: "From 19 answers by 4 people" in (seen := visitor.get(staff)).html and seen)
    assert "not included yet" not in words(page.one("main"))
    go.clear()
    comes("staff/e")
    assert "From 19 answers by 4 people; the latest are not included yet." in words(visitor.get(staff).one("main"))
    assert "is being computed" in words(visitor.get("/loops/words/results").one("main"))
    go.set()


def test_a_link_that_was_made_stays_to_be_read(visitor: Visitor, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, works = threading.Event(), standing.summarise
    monkeypatch.setattr(standing, "PATIENCE", 0.1)
    monkeypatch.setattr(standing, "summarise", lambda loop, people: go.wait(30) and works(loop, people))
    page = visitor.post("/loops/words/links", {"days": "7"})
    assert "is being computed" in words(page.one("main"))
    assert "/s/" in page.at("link")
    assert page.all("meta[@http-equiv='refresh']") == []
    for query in ("", "?segment=staff"):
        again = visitor.get(f"/loops/words/results{query}").one("meta[@http-equiv='refresh']").get("content")
        assert again == f"3; url=/loops/words/results{query}"
    go.set()


@pytest.mark.slow
def test_how_things_stand_for_some_people_together(path: Path) -> None:
    with Loop.open(path) as loop:
        some = loop.standing(people=["staff/a", "staff/b", "nobody"])
        assert (some.people, some.answers) == (2, 17)
        assert loop.standing(people=["customers/c"]).ranking == loop.standing("customers/c").ranking
        assert loop.standing(people=[]).answers == 0
        with pytest.raises(ValueError, match=r"^people: expected none with a person"):
            loop.standing("staff/a", people=["staff/b"])
