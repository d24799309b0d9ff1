"""A loop over HTTP is the loop: of every kind of feedback, the same answers and the same bits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, Said

from heedful import Loop
from heedful.loop.records import plain
from heedful.server.context import Options
from heedful.server.main import served
from kinds import FIFTH, Kind, each_kind
from loops import bits


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


@each_kind
def test_a_loop_over_http_is_the_loop(ask: Caller, kind: Kind, folder: Path, tmp_path: Path) -> None:
    """The same story told to a loop here and to one over HTTP."""
    name = f"{kind.name}-{ask.form}"
    kind.make(folder / f"{name}.heedful").close()
    path = f"/v1/loops/{name}"
    with kind.make(tmp_path / "here") as loop:
        for i in range(24):
            asked = {"person": f"p{i % 3}", "id": f"d{i}", **kind.ask(i)}
            if i > 15 and "candidates" in asked:
                asked["candidates"] = [each for each in asked["candidates"] if each != "i7"]
            here = loop.decide(**asked)
            there = ok(ask.post(f"{path}/decisions", asked))
            assert there == as_json(here)
            form = {**kind.answer(i, here.shown), "decision": f"d{i}", "id": f"e{i}"}
            assert ok(ask.post(f"{path}/feedback", form)) == loop.feedback(form)._asdict()
            if i == 15:
                assert ok(ask("DELETE", f"{path}/items/i7"))["withdrawn"] == loop.withdraw("i7")
        for what in ("d0", "d22", "d23"):
            assert ok(ask.get(f"{path}/decisions/{what}/explanation")) == as_json(loop.explain(what))
        again = ask.post(f"{path}/evaluations", {"learners": [kind.other]})
        if kind.own:
            assert again.status == 422  # nobody names code over the network
        else:
            assert ok(again) == as_json(loop.evaluate(kind.other))
        assert ok(ask.get(f"{path}/weights?person=p1"))["weights"] == loop.weights_of("p1")
        assert ok(ask.get(f"{path}/weights"))["weights"] == loop.weights
        assert ok(ask.post(f"{path}/rank", {}))["ranking"] == list(loop.rank())
        repeated = [
            {**kind.answer(i, loop.decide(id=f"d{i}", person=f"p{i % 3}").shown), "decision": f"d{i}", "id": f"b{i}"}
            for i in (2, 5)
        ]
        assert ok(ask.post(f"{path}/feedback", repeated)) == [each._asdict() for each in loop.feedback_many(repeated)]
        assert without_times(ok(ask.get(f"{path}/report"))) == without_times(as_json(loop.report()))
        assert ok(ask("DELETE", f"{path}/people/p0"))["events"] == loop.forget("p0").events
        assert ok(ask.post(f"{path}/undo", {"event": "e1"})) == loop.undo("e1")._asdict()
        with Loop.open(folder / f"{name}.heedful", learner=kind.own) as other:
            assert bits(other) == bits(loop)
