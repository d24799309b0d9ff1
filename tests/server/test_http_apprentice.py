"""An apprentice over HTTP, by the client and on the page: what the loop itself says, does and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, is_problem
from browsing import Visitor, words

from heedful import Loop
from heedful.client import Client
from heedful.results.report import Apprentice
from heedful.server.context import Options
from heedful.server.main import served
from loops import as_json, rows

ITEMS = rows(12, 4)
F0 = {row["id"]: row["f0"] for row in ITEMS}
NAMES = list(F0)
SETTINGS = {"apprentice": True, "agreement": 0.75, "control": 0.0}
PROOF = "/loops/l/proof"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path, Options()) as found:
        yield found


@pytest.fixture
def ask(url: str) -> Iterator[Caller]:
    with closing(Caller(url)) as found:
        yield found


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    with closing(Visitor(url)) as found:
        yield found


def found_by(ask: Caller, settings: dict[str, Any], **more: Any) -> Any:
    return ask.post("/v1/loops", {"name": "l", "items": ITEMS, "settings": settings, **more})


def apprentice(path: Path) -> Apprentice:
    with Loop.open(path / "l.heedful") as loop:
        found = loop.apprentice()
        assert found is not None
        return found


def serve(there: Any, rounds: range) -> None:
    for i in rounds:
        made = there.decide(NAMES[i % 4 :], prior=[F0[name] for name in NAMES[i % 4 :]], person=f"p{i % 5}", id=f"d{i}")
        assert (made.arm, made.shown[0]) == ("imitated", max(NAMES[i % 4 :], key=F0.__getitem__))


@pytest.mark.parametrize(
    ("settings", "learner", "told"),
    [
        ({}, "posterior", ""),
        ({}, "ordinal-logistic:n_ranks=5", ""),
        ({"ratings": [1, 5]}, None, "apprentice: expected false in a loop of ratings"),
        ({"agreement": 0.3}, "perceptron", "agreement: expected a number above 0.5, at most 1, got 0.3"),
        ({"apprentice": "yes"}, "perceptron", "apprentice: expected true or false, got 'yes'"),
    ],
)
def test_the_setting_makes_one_or_is_refused(ask: Caller, settings: Any, learner: str | None, told: str) -> None:
    given = {} if learner is None else {"learner": learner}
    made = found_by(ask, SETTINGS | settings, **given)
    if told:
        assert told in is_problem(made, "bad-input", told.partition(":")[0])["detail"]
        assert ask.get("/v1/loops").value == {"loops": []}
    else:
        assert made.status == 201
        assert (made.value["apprentice"]["ready"], made.value["settings"]["agreement"]) == (False, 0.75)


def test_over_http_and_by_the_client_it_is_what_the_loop_says(ask: Caller, url: str, tmp_path: Path) -> None:
    assert found_by(ask, SETTINGS, learner="posterior:swap=0").status == 201
    with Client(url, timeout=20.0) as client:
        there = client.loop("l")
        serve(there, range(20))
        found = apprentice(tmp_path)
        assert not found.ready
        assert ask.get("/v1/loops/l").value["apprentice"] == as_json(found)
        assert ask.get("/v1/loops/l/report").value["apprentice"] == as_json(found)
        assert there.report().apprentice == found
        assert found.told in is_problem(ask.get("/v1/loops/l/experiments/latest"), "not-found")["detail"]
        told = is_problem(ask.post("/v1/loops/l/promotions", {}), "bad-input", "promote")
        assert found.against_promotion[0] in told["detail"]


def test_other_loops_say_nothing_of_it(ask: Caller) -> None:
    made = found_by(ask, {}, learner="perceptron")
    assert "apprentice" not in made.value
    assert "apprentice" not in ask.get("/v1/loops/l/report").value
    assert made.value["settings"]["apprentice"] is False


@pytest.mark.slow
def test_on_the_page_it_asks_and_is_promoted(visitor: Visitor, ask: Caller, url: str, tmp_path: Path) -> None:
    found_by(ask, SETTINGS, learner="posterior:swap=0")
    with Client(url, timeout=20.0) as client:
        serve(client.loop("l"), range(10))
        page, found = visitor.get(PROOF), apprentice(tmp_path)
        assert page.at("apprentice") == found.told
        teach = visitor.get("/loops/l?person=ann").at("main")
        assert "This list is in your own order, which the learner imitates" in teach
        assert "Your own order serves now, and posterior:swap=0 imitates it." in page.at("main")
        assert "A candidate can be tried against posterior:swap=0 once that serves." in page.at("experiment")
        refused = visitor.post(f"{PROOF}/promote", {"learner": "", "by": "ann"})
        assert refused.status == 422
        assert "posterior:swap=0 was not promoted. Against it speaks:" in refused.at("promote")
        serve(client.loop("l"), range(10, 200))
    page, found = visitor.get(PROOF), apprentice(tmp_path)
    assert found.ready
    assert page.at("apprentice") == found.told
    [box] = [field for field in page.all("input") if field.get("id") == "promoted"]
    assert ("required" in box.attrib, box.attrib["placeholder"]) == (False, "posterior:swap=0")
    answer = visitor.post(f"{PROOF}/promote", {"learner": "", "by": "ann", "reason": "agrees", "id": "p"})
    assert (answer.status, answer.headers["location"]) == (303, f"{PROOF}?said=promoted#promote")
    page = visitor.get(PROOF)
    [row] = page.all("table[@id='promotions']/tbody/tr")
    for part in ("posterior:swap=0", "the caller's order", "ann", "agrees", "Agreement with your order in at least"):
        assert part in words(row)
    assert "The log still holds this evidence." in words(row)
    assert "posterior:swap=0 serves now." in page.at("main")
    assert "again" not in page.at("promote").partition("heedful rollback l")[2]
    assert "imitated the caller's order until it was promoted" in page.at("apprentice")
    for path in ("", "/learned", "/health", "/why?decision=d5&item=i1"):
        assert visitor.get(f"/loops/l{path}").status == 200, path
