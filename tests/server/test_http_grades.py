"""A grading loop over HTTP: the same answers as the loop's own, refused by name, described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asking import Caller, Said, is_problem

from heedful.loop.records import plain as told
from heedful.server import schema
from heedful.server.main import served
from heedful.server.routes import description
from loops import diverged, rows, small_loop

ITEMS = rows(12, 4)
NAMES = [row["id"] for row in ITEMS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder) as found:
        yield found


@pytest.fixture(params=["json", "msgpack"])
def ask(request: pytest.FixtureRequest, url: str) -> Iterator[Caller]:
    with closing(Caller(url, form=request.param)) as caller:
        yield caller


def ok(answer: Said, status: int = 200) -> Any:
    assert answer.status == status, answer
    return answer.value


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(told(value)))


def test_every_field_of_a_grading_loop_is_described(url: str, folder: Path) -> None:
    """What only such loops say, too; and they say all that is described but what is of ratings."""
    ratings = {"ratings", "choices", "thumbs", "query_features", "position_bias", "apprentice"}
    small_loop(folder / "described.heedful", "prank:n_ranks=5").close()
    path = "/v1/loops/described"
    with closing(Caller(url)) as ask:
        decision = ok(ask.post(f"{path}/decisions", {"candidates": [*NAMES[:3], "x"], "id": "d"}))
        ok(ask.post(f"{path}/feedback", {"decision": "d", "grade": {"i1": 2}}))
        report = ok(ask.get(f"{path}/report"))
        for value, struct in (
            (ok(ask.get(path)), schema.Loop),
            (decision, schema.Decision),
            (ok(ask.get(f"{path}/decisions/d/explanation")), schema.Explanation),
            (ok(ask.post(f"{path}/evaluations", {"learners": ["prank"]})), schema.Evaluation),
            (report, schema.Report),
            (report["prediction"], schema.PredictionReport),
            (report["prediction"]["series"][0], schema.PredictionWindow),
        ):
            assert value.keys() == set(struct.__struct_fields__) - ratings, struct


def test_what_is_no_grade_is_a_problem_by_name(ask: Caller, folder: Path) -> None:
    name = f"refusing-{ask.form}"
    small_loop(folder / f"{name}.heedful", "prank:n_ranks=5").close()
    path = f"/v1/loops/{name}"
    ok(ask.post(f"{path}/decisions", {"candidates": NAMES[:2], "id": "d"}))
    said = ask.post(f"{path}/feedback", {"decision": "d", "grade": {"i0": 6}})
    is_problem(said, "bad-input", "grade['i0']")
    assert said.value["detail"] == "grade['i0']: expected a whole number from 1 to 5, got 6"
    said = ask.post(f"{path}/feedback", {"decision": "d", "rating": {"i0": 4}})
    is_problem(said, "rejected")
    assert "send them as grade" in said.value["detail"]
    answers = ok(ask.post(f"{path}/feedback", [{"decision": "d", "clicks": []}, {"decision": "d", "grade": {"i0": 1}}]))
    assert [answer["status"] for answer in answers] == ["rejected", "applied"]
    said = ask.post(f"{path}/evaluations", {"learners": ["perceptron"]})
    is_problem(said, "bad-input", "learner")


def test_a_grading_loop_is_made_over_http(ask: Caller, folder: Path) -> None:
    name = f"made-{ask.form}"
    given = {"name": name, "items": ITEMS, "learner": "averaged-prank:n_ranks=3"}
    assert ok(ask.post("/v1/loops", given), 201)["grades"] == 3
    for learner, detail in (
        ("prank", "learner: expected n_ranks, how many grades there are, got prank; write prank:n_ranks=5"),
        ("prank:n_ranks=five", "learner: prank: n_ranks: expected a whole number, got 'five'"),
        ("prank:n_ranks=1", "n_ranks: expected a whole number, 2 to 1000, got 1"),
    ):
        said = ask.post("/v1/loops", {"name": f"{name}-not", "items": ITEMS, "learner": learner})
        is_problem(said, "bad-input", "learner")
        assert detail in said.value["detail"]
    assert f"{name}-not" not in ok(ask.get("/v1/loops"))["loops"]
    assert "grades" not in ok(ask.post("/v1/loops", {"name": f"{name}-other", "items": ITEMS}), 201)


def test_the_events_tell_the_grades(url: str, folder: Path) -> None:
    small_loop(folder / "told.heedful", "prank:n_ranks=5").close()
    with closing(Caller(url)) as ask:
        ok(ask.post("/v1/loops/told/decisions", {"candidates": NAMES[:2], "id": "d"}))
        ok(ask.post("/v1/loops/told/feedback", {"decision": "d", "id": "e", "grade": {"i1": 2}}))
        text = ask.http.get("/v1/loops/told/events?follow=false&kinds=decision,feedback").text
    data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert (data[0]["predicted"], data[1]["grade"]) == ([5, 5], {"i1": 2})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_no_number_any_more_is_null_and_described_so(ask: Caller, folder: Path) -> None:
    """In JSON and msgpack alike."""
    name = f"diverged-{ask.form}"
    with diverged(folder / f"{name}.heedful") as loop:
        caveat = loop.overflown
    path = f"/v1/loops/{name}"
    assert ok(ask.get(path))["caveats"] == [caveat]
    explained = ok(ask.get(f"{path}/decisions/d29/explanation"))
    why = ok(ask.get(f"{path}/decisions/d29/why?item={explained['first']}"))
    evaluated = ok(ask.post(f"{path}/evaluations", {"learners": ["widrow-hoff:eta=1e20"]}))
    weights = ok(ask.get(f"{path}/weights"))
    assert explained["margin"] is None
    assert (why["score"], why["features_by"], why["item"]) == (None, "exact", explained["first"])
    assert None in [part["counts"] for part in explained["features"]]
    for value, struct in (
        (explained, schema.Explanation),
        (why, schema.Why),
        (evaluated, schema.Evaluation),
        (weights, schema.Weights),
    ):
        assert msgspec.to_builtins(msgspec.convert(value, struct)) == value
    for value in (evaluated["learners"][1], weights):
        assert None in value["weights"].values()
    described = json.loads(description())["components"]["schemas"]
    assert {"type": "null"} in described["Explanation"]["properties"]["margin"]["anyOf"]
    assert {"type": "null"} in described["Weights"]["properties"]["weights"]["additionalProperties"]["anyOf"]
