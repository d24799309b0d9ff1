"""A loop of ratings over HTTP: the same answers as the loop's own, refused by name, described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import FLOAT32, Caller, Said, is_problem, raw_numbers

from heedful.loop.records import plain as told
from heedful.server import schema
from heedful.server.main import served
from loops import rating_loop

NAMES = [f"i{j}" for j in range(12)]


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


def test_every_field_of_a_loop_of_ratings_is_described(url: str, folder: Path) -> None:
    """What only such loops say, too; and they say all that is described but what is of grades."""
    rating_loop(folder / "described.heedful", control=1.0).close()
    path, others = (
        "/v1/loops/described",
        {"grades", "choices", "thumbs", "query_features", "position_bias", "apprentice"},
    )
    with closing(Caller(url)) as ask:
        decision = ok(ask.post(f"{path}/decisions", {"candidates": [*NAMES[:3], "x"], "id": "d", "person": "p"}))
        ok(ask.post(f"{path}/feedback", {"decision": "d", "rating": {"i1": 2, "i2": 4}}))
        report = ok(ask.get(f"{path}/report"))
        explanation = ok(ask.get(f"{path}/decisions/d/explanation"))
        for value, struct in (
            (ok(ask.get(path)), schema.Loop),
            (decision, schema.Decision),
            (explanation, schema.Explanation),
            (ok(ask.get(f"{path}/decisions/d/why?item=i1")), schema.Why),
            (ok(ask.post(f"{path}/evaluations", {"learners": ["bmf"]})), schema.Evaluation),
            (report, schema.Report),
            (report["prediction"], schema.PredictionReport),
            (report["prediction"]["series"][0], schema.PredictionWindow),
        ):
            assert value.keys() == set(struct.__struct_fields__) - others, struct


def test_what_is_no_rating_is_a_problem_by_name(ask: Caller, folder: Path) -> None:
    name = f"refusing-{ask.form}"
    rating_loop(folder / f"{name}.heedful", n_items=2).close()
    path = f"/v1/loops/{name}"
    ok(ask.post(f"{path}/decisions", {"candidates": ["i0", "i1"], "id": "d", "person": "p"}))
    said = ask.post(f"{path}/feedback", {"decision": "d", "rating": {"i0": 6}})
    is_problem(said, "bad-input", "rating['i0']")
    assert said.value["detail"] == "rating['i0']: expected a number from 1 to 5, got 6"
    is_problem(ask.post(f"{path}/feedback", {"decision": "d", "actions": {"i0": "byu"}}), "bad-input", "actions['i0']")
    said = ask.post(f"{path}/feedback", {"decision": "d", "clicks": ["i0"]})
    is_problem(said, "rejected")
    assert "expected rating, actions or none" in said.value["detail"]
    answers = ok(
        ask.post(f"{path}/feedback", [{"decision": "d", "grade": {"i0": 1}}, {"decision": "d", "rating": {"i0": 1}}])
    )
    assert [answer["status"] for answer in answers] == ["rejected", "applied"]
    ok(ask.post(f"{path}/feedback", {"decision": "d", "rating": {"i1": 2}}))
    said = ask.post(f"{path}/decisions", {"person": "p"})
    is_problem(said, "bad-input", "candidates")
    assert "expected one that p has not consumed, got 2 that were" in said.value["detail"]
    is_problem(ask.post(f"{path}/decisions", {"candidates": [], "strict": True}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"candidates": ["x"], "strict": True}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"candidates": [{"id": "i0"}]}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"repeats": "yes"}), "bad-input", "repeats")
    is_problem(ask.send("POST", f"{path}/decisions", raw_numbers([[1.0]]), content_type=FLOAT32), "bad-input", "body")
    is_problem(ask.post(f"{path}/evaluations", {"learners": ["perceptron"]}), "bad-input", "learner")


def test_a_number_that_is_none_is_refused_in_msgpack(url: str, folder: Path) -> None:
    """JSON cannot say it."""
    rating_loop(folder / "nan.heedful").close()
    with closing(Caller(url, form="msgpack")) as ask:
        ok(ask.post("/v1/loops/nan/decisions", {"candidates": NAMES, "id": "d"}))
        for number in (float("nan"), float("inf")):
            shown = ok(ask.post("/v1/loops/nan/decisions", {"id": "d"}))["shown"]
            said = ask.post("/v1/loops/nan/feedback", {"decision": "d", "rating": {shown[0]: number}})
            is_problem(said, "bad-input", f"rating['{shown[0]}']")


def test_a_loop_of_ratings_is_made_over_http(ask: Caller) -> None:
    name = f"made-{ask.form}"
    made = ok(ask.post("/v1/loops", {"name": name, "settings": {"ratings": [0, 1]}, "identifier": "sku"}), 201)
    assert (made["items"], made["ratings"], made["identifier"]) == (0, [0.0, 1.0], "sku")
    assert ok(ask("PUT", f"/v1/loops/{name}/items", [{"sku": "a"}, {"sku": "b", "price": 3}]))["put"] == 2
    assert sorted(ok(ask.post(f"/v1/loops/{name}/decisions", {"person": "p"}))["shown"]) == ["a", "b"]
    for given, field in (
        ({"settings": {"ratings": [5, 1]}}, "ratings"),
        ({"settings": {"ratings": [1, 5], "actions": {"buy": 9}}}, "actions"),
        ({"settings": {"ratings": [1, 5]}, "learner": "perceptron"}, "learner"),
        ({"learner": "bmf", "items": [{"id": "a", "f": 1}, {"id": "b", "f": 2}]}, "ratings"),
        ({"settings": {"ratings": [1, 5]}, "kinds": {"f": "number"}}, "kinds"),
        ({"settings": {"ratings": [1, 5], "shrink": 2}}, "shrink"),
    ):
        is_problem(ask.post("/v1/loops", {"name": f"{name}-not", **given}), "bad-input", field)
    assert f"{name}-not" not in ok(ask.get("/v1/loops"))["loops"]


def test_the_events_tell_the_ratings(url: str, folder: Path) -> None:
    rating_loop(folder / "told.heedful", control=0.0).close()
    with closing(Caller(url)) as ask:
        ok(ask.post("/v1/loops/told/decisions", {"candidates": NAMES[:2], "id": "d"}))
        ok(ask.post("/v1/loops/told/feedback", {"decision": "d", "id": "e", "rating": {"i1": 2}}))
        ok(ask.post("/v1/loops/told/feedback", {"decision": "d", "id": "f", "actions": {"i0": "buy"}}))
        text = ask.http.get("/v1/loops/told/events?follow=false&kinds=decision,feedback").text
    data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert (data[0]["predicted"], data[1]["rating"], data[2]["actions"]) == ([3.0, 3.0], {"i1": 2.0}, {"i0": "buy"})
