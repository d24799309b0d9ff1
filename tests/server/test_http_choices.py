"""A loop of choices over HTTP: the same answers as the loop's own, refused by name, described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import FLOAT32, Caller, Said, is_problem, raw_numbers

from heedful.loop.interactions import schemas as kinds
from heedful.loop.records import plain as told
from heedful.server import schema
from heedful.server.main import served
from loops import choice_loop

NAMES = [f"i{j}" for j in range(8)]


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


def test_every_field_of_a_loop_of_choices_is_described(url: str, folder: Path) -> None:
    """What only such loops say, too; and they say all that is described but what is of others."""
    choice_loop(folder / "described.heedful").close()
    path, others = (
        "/v1/loops/described",
        {"grades", "ratings", "thumbs", "query_features", "position_bias", "apprentice"},
    )
    with closing(Caller(url)) as ask:
        decision = ok(ask.post(f"{path}/decisions", {"candidates": [*NAMES[:3], "x"], "id": "d", "person": "p"}))
        ok(ask.post(f"{path}/feedback", {"decision": "d", "choice": "first"}))
        report, standing = ok(ask.get(f"{path}/report")), ok(ask.get(f"{path}/standing"))
        explanation = ok(ask.get(f"{path}/decisions/d/explanation"))
        for value, struct in (
            (ok(ask.get(path)), schema.Loop),
            (decision, schema.Decision),
            (explanation, schema.Explanation),
            (ok(ask.post(f"{path}/evaluations", {"learners": ["hierarchical-gp"]})), schema.Evaluation),
            (report, schema.Report),
            (report["prediction"], schema.PredictionReport),
            (report["prediction"]["series"][0], schema.PredictionWindow),
            (standing, kinds.Standings),
            (standing["left"], kinds.Left),
            (standing["ranking"][0], kinds.Standing),
        ):
            assert value.keys() == set(struct.__struct_fields__) - others, struct


def test_what_is_no_choice_is_a_problem_by_name(ask: Caller, folder: Path) -> None:
    name = f"refusing-{ask.form}"
    choice_loop(folder / f"{name}.heedful", n_items=3).close()
    path = f"/v1/loops/{name}"
    ok(ask.post(f"{path}/decisions", {"candidates": ["i0", "i1"], "id": "d", "person": "p"}))
    is_problem(ask.post(f"{path}/feedback", {"decision": "d", "choice": "left"}), "bad-input", "choice")
    said = ask.post(f"{path}/feedback", {"decision": "d", "rating": {"i0": 1}})
    is_problem(said, "rejected")
    assert "expected choice, better, clicks or none" in said.value["detail"]
    answers = ok(
        ask.post(f"{path}/feedback", [{"decision": "d", "thumb": "up"}, {"decision": "d", "edit": ["i1", "i0"]}])
    )
    assert [answer["status"] for answer in answers] == ["rejected", "applied"]
    is_problem(ask.post(f"{path}/decisions", {"candidates": ["i0"]}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"candidates": ["i0", "x"], "strict": True}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"candidates": [{"id": "i0"}, {"id": "i1"}]}), "bad-input", "candidates")
    is_problem(ask.post(f"{path}/decisions", {"show": 1}), "bad-input", "show")
    is_problem(ask.post(f"{path}/decisions", {"prior": {"i0": 1}}), "bad-input", "prior")
    is_problem(ask.send("POST", f"{path}/decisions", raw_numbers([[1.0]]), content_type=FLOAT32), "bad-input", "body")
    is_problem(ask.post(f"{path}/evaluations", {"learners": ["perceptron"]}), "bad-input", "learner")
    is_problem(ask.get(f"{path}/standing?who=p"), "bad-input", "query")


def test_a_loop_of_choices_is_made_over_http(ask: Caller) -> None:
    name = f"made-{ask.form}"
    made = ok(ask.post("/v1/loops", {"name": name, "settings": {"choices": "ranking"}, "identifier": "sku"}), 201)
    assert (made["items"], made["choices"], made["identifier"]) == (0, "ranking", "sku")
    is_problem(ask.get(f"/v1/loops/{name}/standing"), "bad-input", "items")
    assert ok(ask("PUT", f"/v1/loops/{name}/items", [{"sku": "a"}, {"sku": "b", "price": 3}]))["put"] == 2
    assert sorted(ok(ask.post(f"/v1/loops/{name}/decisions", {"person": "p"}))["shown"]) == ["a", "b"]
    items = [{"id": f"i{j}", "price": j} for j in range(4)]
    seen: dict[str, Any] = {"settings": {"choices": "best"}, "items": items}
    assert ok(ask.post("/v1/loops", {"name": f"{name}-bare", **seen}), 201)["features"] == 0
    assert ok(ask.post("/v1/loops", {"name": f"{name}-seen", **seen, "features": True}), 201)["features"] == 1
    made = ok(ask.post("/v1/loops", {"name": f"{name}-kind", **seen, "kinds": {"price": "number"}}), 201)
    assert made["features"] == 1
    for given, field in (
        ({"settings": {"choices": "worst"}}, "choices"),
        ({"settings": {"choices": "best", "ratings": [1, 5]}}, "choices"),
        ({"settings": {"choices": "best"}, "learner": "perceptron"}, "learner"),
        ({"learner": "preference-gp", "items": items}, "choices"),
        ({"items": items, "features": True}, "features"),
        ({**seen, "features": "yes"}, "features"),
        ({**seen, "features": False, "kinds": {"price": "number"}}, "kinds"),
        ({"settings": {"choices": "best", "shrink": 2}}, "shrink"),
        ({**seen, "context": [{"c": 1}, {"c": 2}]}, "context"),
    ):
        is_problem(ask.post("/v1/loops", {"name": f"{name}-not", **given}), "bad-input", field)
    assert f"{name}-not" not in ok(ask.get("/v1/loops"))["loops"]


def test_only_loops_of_choices_have_a_standing(url: str, folder: Path) -> None:
    from loops import small_loop

    small_loop(folder / "other.heedful").close()
    with closing(Caller(url)) as ask:
        is_problem(ask.get("/v1/loops/other/standing"), "bad-input", "standing")


def test_the_events_tell_the_chances(url: str, folder: Path) -> None:
    choice_loop(folder / "told.heedful", control=0.0).close()
    with closing(Caller(url)) as ask:
        ok(ask.post("/v1/loops/told/decisions", {"candidates": NAMES[:2], "id": "d"}))
        ok(ask.post("/v1/loops/told/feedback", {"decision": "d", "id": "e", "choice": "second"}))
        text = ask.http.get("/v1/loops/told/events?follow=false&kinds=decision,feedback").text
    data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert (data[0]["predicted"], data[1]["choice"]) == ([0.5, 0.5], "second")
