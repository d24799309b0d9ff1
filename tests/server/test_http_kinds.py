"""A loop over HTTP is the loop: of every kind of feedback, the same answers and the same bits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, Said

import heedful.loop.why
from heedful import Loop
from heedful.loop.records import plain
from heedful.server.context import Options
from heedful.server.main import served
from kinds import FIFTH, NAMES, Kind, each_kind
from kinds import ask as fields_of
from loops import bits, bits_from_scratch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder, Options(own=(FIFTH,))) as found:
        yield found


@pytest.fixture(params=["json", "msgpack"])
def ask(request: pytest.FixtureRequest, url: str) -> Iterator[Caller]:
    with closing(Caller(url, form=request.param)) as caller:
        yield caller


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, `why` leaves out each lesson in turn: both loops answer by the same method."""
    inquiry = heedful.loop.why._Inquiry
    leave_one_out = inquiry._leave_one_out
    monkeypatch.setattr(
        inquiry, "_leave_one_out", lambda self, steps, now, seconds: leave_one_out(self, steps, now, 600.0)
    )


def ok(answer: Said) -> Any:
    assert answer.status == 200, answer
    return answer.value


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(plain(value)))


def without_times(value: Any) -> Any:
    """Without when the loop was made and when its windows ended: the two loops lived at different times."""
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in ("since", "time")}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def names_in(loop: Loop, decision: str) -> tuple[str, ...]:
    known = loop.projection.find_decision(decision)
    assert known is not None
    return known.names


@each_kind
def test_a_loop_over_http_is_the_loop(ask: Caller, kind: Kind, folder: Path, tmp_path: Path) -> None:
    """The same story told to a loop here and to one over HTTP: every answer and every bit is the same."""
    name = f"{kind.name}-{ask.form}"
    learner = ["fair-pairs"] if kind.name == "coactive" else []  # what it proposes is more than what is shown
    kind.make(folder / f"{name}.heedful", *learner).close()
    path = f"/v1/loops/{name}"
    with kind.make(tmp_path / "here", *learner) as loop:
        for i in range(24):
            asked = fields_of(kind, i, gone="i7" if i > 15 else "")
            here = loop.decide(**asked)
            there = ok(ask.post(f"{path}/decisions", asked))
            assert there == as_json(here.plain())
            form = {**kind.answer(i, here.shown), "decision": f"d{i}", "id": f"e{i}"}
            assert ok(ask.post(f"{path}/feedback", form)) == loop.feedback(form)._asdict()
            if i % 5 == 0:
                assert ok(ask.post(f"{path}/undo", {"event": f"e{i}"})) == loop.undo(f"e{i}")._asdict()
            if i == 15:
                assert ok(ask("DELETE", f"{path}/items/i7"))["withdrawn"] == loop.withdraw("i7")
        late = {"id": "late", "candidates": NAMES[:5], "deferred": True}
        assert ok(ask.post(f"{path}/decisions", late))["seq"] == loop.decide(**late).seq
        early = {**kind.answer(2, loop.decide(**late).shown), "decision": "late", "id": "early"}
        refused = ask.post(f"{path}/feedback", early)
        assert (refused.status, refused.value["answer"]) == (409, loop.feedback(early)._asdict())
        assert ok(ask.post(f"{path}/activate", {"decision": "late"})) == loop.activate("late")._asdict()
        shown = {"candidates": NAMES[:4], "shown": ["i2", "i0"], "id": "r", "probability": 0.25, "person": "p1"}
        shown["time"] = "2026-01-31T12:00:00Z"
        assert ok(ask.post(f"{path}/records", shown)) == as_json(loop.record(**shown).plain())
        batch = [
            {**kind.answer(1, ("i2", "i0")), "decision": "r", "id": "b1"},
            {**early, "id": "b2"},
            {"decision": "no", "id": "b3"},
            {"decision": "r", "id": "b4", "no-such-form": 1},
        ]
        answers = ok(ask.post(f"{path}/feedback", batch))
        assert [each["status"] for each in answers] == ["applied", "applied", "rejected", "rejected"]
        assert answers == [each._asdict() for each in loop.feedback_many(batch)]
        for what in ("d0", "d22", "d23"):
            assert ok(ask.get(f"{path}/decisions/{what}/explanation")) == as_json(loop.explain(what))
            for item in ("i0", "i5"):
                asked_why = ask.get(f"{path}/decisions/{what}/why?item={item}&top=3")
                if item in names_in(loop, what):
                    assert ok(asked_why) == as_json(loop.why(what, item, 3))
                else:
                    told = f"item {item} is not among the candidates of decision {what}"
                    assert (asked_why.status, asked_why.value["detail"]) == (404, told)
        again = ask.post(f"{path}/evaluations", {"learners": [kind.other]})
        if kind.own:
            assert again.status == 422  # nobody names code over the network
        else:
            assert ok(again) == as_json(loop.evaluate(kind.other))
        assert ok(ask.get(f"{path}/weights?person=p1"))["weights"] == loop.weights_of("p1")
        assert ok(ask.get(f"{path}/weights"))["weights"] == loop.weights
        assert ok(ask.post(f"{path}/rank", {}))["ranking"] == list(loop.rank())
        assert without_times(ok(ask.get(f"{path}/report"))) == without_times(as_json(loop.report()))
        gone = {**loop.forget("p0")._asdict(), "exports": [], "erased": True}
        assert ok(ask("DELETE", f"{path}/people/p0")) == gone
        assert gone["events"] > 16
        assert ok(ask("DELETE", f"{path}/people/p0"))["events"] == 0
        assert ok(ask.post(f"{path}/undo", {"event": "e1"})) == loop.undo("e1")._asdict()
        with Loop.open(folder / f"{name}.heedful", learner=kind.own) as other:
            assert bits(other) == bits(loop) == bits_from_scratch(other)
            assert other.verify() == []
