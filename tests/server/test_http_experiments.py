"""Experiments and promotions over HTTP and by the client: what the loop itself says and does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, is_problem, ok

from heedful import Loop
from heedful.client import Client
from heedful.server.context import Options
from heedful.server.main import served
from loops import as_json, bits, bits_from_scratch, choice_loop, rows, small_loop

F0 = {row["id"]: row["f0"] for row in rows(12, 4)}
FIXED = f"{Path(__file__).parents[1] / 'fixed.py'}:Fixed"
CANDIDATE = "second-order:epsilon=0.1"


@pytest.fixture
def ask(url: str) -> Iterator[Caller]:
    with closing(Caller(url)) as found:
        yield found


@pytest.fixture
def name(folder: Path, request: pytest.FixtureRequest) -> str:
    """A loop of its own for each test, of 40 people who choose what has the most of the first feature."""
    made = f"l{abs(hash(request.node.name))}"
    small_loop(folder / f"{made}.heedful", "perceptron", control=0.1).close()
    return made


def choose(loop: Client | Any, rounds: range) -> None:
    """People who click what has the most of the first feature."""
    for i in rounds:
        shown = loop.decide(person=f"p{i % 40}", id=f"d{i}", show=4).shown
        loop.feedback(f"d{i}", id=f"e{i}", clicks=[max(shown, key=F0.__getitem__)])


@pytest.mark.slow
def test_over_http_it_is_what_the_loop_says(folder: Path, ask: Caller, url: str, name: str) -> None:
    loop = f"/v1/loops/{name}"
    with Client(url, timeout=60.0) as client:
        there = client.loop(name)
        is_problem(ask.get(f"{loop}/experiments/latest"), "not-found")
        with pytest.raises(LookupError, match="experiment: there was none"):
            there.experiment()
        body = {"learner": CANDIDATE, "share": 0.5, "alpha": 0.1, "id": "x"}
        begun = ok(ask.post(f"{loop}/experiments", body))
        assert (begun["status"], begun["event"]) == ("applied", "x")
        assert ok(ask.post(f"{loop}/experiments", body))["status"] == "duplicate"
        assert there.start_experiment(CANDIDATE, share=0.5, alpha=0.1, id="x").status == "duplicate"
        is_problem(ask.post(f"{loop}/experiments", body | {"share": 0.6}), "rejected")
        choose(there, range(60))
        with Loop.open(folder / f"{name}.heedful") as own:
            found, planned = own.experiment(), own.plan_experiment(0.3, days=5.0, alpha=0.01)
            assert found.verdict.sessions > 10
            assert ok(ask.get(f"{loop}/experiments/latest")) == as_json(found)
            assert there.experiment() == found
            assert ok(ask.get(f"{loop}/experiments/plan?share=0.3&days=5&alpha=0.01")) == as_json(planned)
            assert there.plan_experiment(0.3, days=5.0, alpha=0.01) == planned
            before = own.version
            with pytest.raises(ValueError, match="is not ready") as refused:
                own.promote()
        told = is_problem(ask.post(f"{loop}/promotions", {}), "bad-input", "promote")
        assert told["detail"] == str(refused.value)
        with pytest.raises(ValueError, match="is not ready"):
            there.promote()
        made = ok(ask.post(f"{loop}/promotions", {"force": True, "by": "ann", "reason": "a test", "id": "u"}))
        assert (made["learner"], made["before"]) == (CANDIDATE, "perceptron")
        assert made["forced"] == list(found.against_promotion)
        again = there.promote(force=True, by="ann", reason="a test", id="u")
        assert (again.answer.status, again.learner, again.evidence) == ("duplicate", CANDIDATE, made["evidence"])
        with Loop.open(folder / f"{name}.heedful") as own:
            [promotion] = own.promotions()
            assert (promotion.by, promotion.reason, promotion.evidence) == ("ann", "a test", made["evidence"])
            assert own.manifest.learner == CANDIDATE
            assert bits(own) == bits_from_scratch(own)
        assert ok(ask.get(f"{loop}/promotions")) == {"promotions": [as_json(promotion) | {"changed": ""}]}
        assert there.promotions() == (promotion,)
        assert ok(ask.get(f"{loop}/experiments/latest"))["running"] is False
        choose(there, range(60, 70))
        ok(ask.post(f"{loop}/rollback", {"to": before}))
        [gone] = there.promotions()
        assert not gone.in_effect
        assert there.experiment().running
        assert there.stop_experiment(id="s").status == "applied"
        assert ok(ask.post(f"{loop}/experiments/stop", {"id": "s"}))["status"] == "duplicate"
        assert not there.experiment().running
        is_problem(ask.post(f"{loop}/experiments/stop", {}), "not-found")
        with pytest.raises(LookupError, match="experiment: none is running"):
            there.stop_experiment()


@pytest.mark.slow
def test_a_learner_of_ones_own_is_tried_where_the_server_was_started_with_its_file(tmp_path: Path) -> None:
    """In a loop that was made with one of heedful's; a server without the file serves what served before, and says that
    the experiment waits."""
    small_loop(tmp_path / "l.heedful", "perceptron", control=0.0).close()
    spec, loop, other = f"{FIXED}:tilt=1", "/v1/loops/l", f"{Path(__file__)}:Fixed"
    with served(tmp_path, Options(own=(f"{FIXED}:tilt=-1",))) as url, closing(Caller(url)) as ask:
        for refused in (other, "os:system"):
            for path, body in (("experiments", {}), ("promotions", {"force": True})):
                told = is_problem(ask.post(f"{loop}/{path}", {"learner": refused, **body}), "bad-input", "learner")
                assert told["detail"].startswith("learner: expected one of heedful's")
            is_problem(ask.post(f"{loop}/evaluations", {"learners": [refused]}), "bad-input", "learner")
        assert ok(ask.post(f"{loop}/experiments", {"learner": spec, "share": 1.0}))["status"] == "applied"
        with Client(url, timeout=60.0) as client:
            choose(client.loop("l"), range(20))
            assert client.loop("l").experiment().verdict.sessions == 20
        assert len(ok(ask.post(f"{loop}/evaluations", {"learners": [f"{FIXED}@1"]}))["learners"]) == 2
    with served(tmp_path) as url, closing(Caller(url)) as ask:
        assert ok(ask.post(f"{loop}/decisions", {"person": "p1"}))["arm"] == "learned"
        assert ok(ask.get(f"{loop}/experiments/latest"))["verdict"]["sessions"] == 20
        told = is_problem(ask.post(f"{loop}/promotions", {"learner": spec, "force": True}), "bad-input", "learner")
        assert told["detail"].startswith("learner: expected one of heedful's")
        with Loop.open(tmp_path / "l.heedful", learner=FIXED) as there:
            assert there.promote(force=True).learner == spec
        gone = is_problem(ask.post(f"{loop}/decisions", {"person": "p1"}), "damaged")
        assert "expected" not in gone["detail"]
    with served(tmp_path, Options(own=(FIXED,))) as url, closing(Caller(url)) as ask:
        shown = ok(ask.post(f"{loop}/decisions", {"person": "p1", "show": 4}))["shown"]
        assert shown == sorted(F0, key=lambda name: -F0[name])[:4]


KEYED: list[tuple[str, str, dict[str, Any]]] = [
    ("experiments", "experiment", {"learner": CANDIDATE, "share": 0.5}),
    ("experiments/stop", "stop", {}),
    ("promotions", "promote", {"learner": "posterior", "force": True}),
]


@pytest.mark.parametrize(("route", "kind", "body"), KEYED, ids=[route for route, _, _ in KEYED])
def test_an_idempotency_key_is_the_id(
    folder: Path, ask: Caller, name: str, route: str, kind: str, body: dict[str, Any]
) -> None:
    loop = f"/v1/loops/{name}"
    if kind != "experiment":
        ok(ask.post(f"{loop}/experiments", {"learner": CANDIDATE}))
    first = ok(ask.post(f"{loop}/{route}", body, idempotency_key="key-1"))
    first = first.get("answer", first)
    assert (first["event"], first["status"]) == ("key-1", "applied")
    for sent in ({}, {"id": "key-1"}):
        again = ok(ask.post(f"{loop}/{route}", body | sent, idempotency_key='"key-1"'))
        again = again.get("answer", again)
        assert (again["status"], again["seq"]) == ("duplicate", first["seq"])
    is_problem(ask.post(f"{loop}/{route}", body | {"id": "o"}, idempotency_key="k"), "bad-input", "Idempotency-Key")
    with Loop.open(folder / f"{name}.heedful") as opened:
        assert opened.projection.log.counts()[kind] == 1


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("experiments", {}, "learner"),
        ("experiments", {"learner": FIXED}, "learner"),
        ("experiments", {"learner": CANDIDATE, "share": 1.5}, "share"),
        ("experiments", {"learner": CANDIDATE, "alpha": 0}, "alpha"),
        ("experiments", {"learner": CANDIDATE, "frozen": "yes"}, "frozen"),
        ("experiments", {"learner": CANDIDATE, "people": 3}, "body"),
        ("experiments", {"learner": CANDIDATE, "id": ""}, "id"),
        ("experiments/stop", {"id": ""}, "id"),
        ("experiments/stop", {"experiment": "x"}, "body"),
        ("promotions", {}, "learner"),
        ("promotions", {"learner": FIXED, "force": True}, "learner"),
        ("promotions", {"learner": CANDIDATE}, "promote"),
        ("promotions", {"learner": CANDIDATE, "force": "yes"}, "force"),
        ("promotions", {"learner": CANDIDATE, "by": 3}, "by"),
        ("promotions", {"learner": CANDIDATE, "reason": "x" * 1001}, "reason"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(
    folder: Path, plain: Caller, route: str, body: dict[str, Any], field: str
) -> None:
    path = folder / "plain.heedful"
    if not path.exists():
        small_loop(path, "perceptron").close()
    is_problem(plain.post(f"/v1/loops/plain/{route}", body), "bad-input", field)
    with Loop.open(path) as loop:
        assert loop.projection.log.counts().keys() == {"loop", "item"}


@pytest.mark.parametrize(("query", "field"), [("share=2", "share"), ("days=x", "days"), ("alpha=nan", "alpha"),
                                              ("people=3", "query"), ("days=1_0", "days"), ("days=%D9%A3", "days"),
                                              ("days=%203", "days")])  # fmt: skip
def test_a_plan_refuses_a_number_by_name(folder: Path, plain: Caller, query: str, field: str) -> None:
    if not (folder / "plain.heedful").exists():
        small_loop(folder / "plain.heedful", "perceptron").close()
    is_problem(plain.get(f"/v1/loops/plain/experiments/plan?{query}"), "bad-input", field)


def test_one_experiment_at_a_time_and_none_where_questions_are_asked(folder: Path, ask: Caller, name: str) -> None:
    ok(ask.post(f"/v1/loops/{name}/experiments", {"learner": CANDIDATE, "id": "x"}))
    told = is_problem(ask.post(f"/v1/loops/{name}/experiments", {"learner": "posterior"}), "bad-input", "experiment")
    assert told["detail"] == "experiment: expected none that runs, got x: stop it first"
    choice_loop(folder / "pairs.heedful").close()
    told = is_problem(ask.post("/v1/loops/pairs/experiments", {"learner": "gp"}), "bad-input", "experiment")
    assert "shows no rankings" in told["detail"]


def test_the_stream_has_them(ask: Caller, name: str) -> None:
    loop = f"/v1/loops/{name}"
    ok(ask.post(f"{loop}/experiments", {"learner": CANDIDATE, "share": 0.5, "id": "x"}))
    ok(ask.post(f"{loop}/experiments/stop", {"id": "s"}))
    ok(ask.post(f"{loop}/promotions", {"learner": CANDIDATE, "force": True, "id": "u"}))
    text = ok(ask.get(f"{loop}/events?kinds=experiment,stop,promote&follow=false")).decode()
    told = [json.loads(row[6:]) for row in text.splitlines() if row.startswith("data: ")]
    assert [(each["kind"], each["id"]) for each in told] == [("experiment", "x"), ("stop", "s"), ("promote", "u")]
    assert (told[0]["learner"], told[0]["against"], told[0]["share"]) == (CANDIDATE, "perceptron", 0.5)
    assert told[1]["experiment"] == "x"
    assert (told[2]["learner"], told[2]["before"], told[2]["evidence"]["method"]) == (CANDIDATE, "perceptron", "log")
    everything = ok(ask.get(f"{loop}/events?follow=false")).decode()
    assert [f"event: {kind}" in everything for kind in ("experiment", "stop", "promote")] == [True] * 3
