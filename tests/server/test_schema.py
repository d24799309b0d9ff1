"""The description of the routes against the routes: what it says may be sent and comes back is what does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import Caller
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from budget import FACTOR
from heedful.client.page_token import page_token
from heedful.server.codecs import Limits
from heedful.server.context import Options
from heedful.server.keys import SCOPES, Keys
from heedful.server.main import served
from heedful.server.problems import TITLES
from heedful.server.routes import description
from kinds import FIFTH, NAMES, Kind, each_kind
from kinds import ask as fields_of
from loops import choice_loop, rating_loop, small_loop

schemathesis = pytest.importorskip("schemathesis")
jsonschema_rs = pytest.importorskip("jsonschema_rs")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
EXAMPLES = 10 * FACTOR
DESCRIBED = json.loads(description())
OPERATIONS = [(method.upper(), path) for path, methods in DESCRIBED["paths"].items() for method in methods]
ONE = "/v1/loops/{loop}"
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


def test_what_kinds_add_to_a_report_of_predictions_is_described() -> None:
    """By name, each with its fields; a kind of one's own may add anything."""
    schemas = DESCRIBED["components"]["schemas"]
    *named, own = schemas["PredictionReport"]["properties"]["details"]["anyOf"]
    names = {each["$ref"].rpartition("/")[2] for each in named}
    assert own["type"] == "object"
    assert {name: set(schemas[name]["properties"]) for name in names} == {
        "GradeDetails": {"exact"},
        "RatingDetails": {"mean", "picked"},
        "ChoiceDetails": {"by_chance", "right_by_chance", "equal", "unsure"},
        "RewardDetails": {"predicted", "came"},
    }
    assert all(schemas[name]["required"] == list(schemas[name]["properties"]) for name in names)


def bare() -> Any:
    """No configuration but this one, whatever lies around."""
    return schemathesis.Config(suppress_health_check=[])


@contextmanager
def with_a_loop(folder: Path) -> Iterator[str]:
    """A server with a loop to which something happened."""
    small_loop(folder / "cars.heedful", shrink=1.0, control=0.2).close()
    small_loop(folder / "grades.heedful", "prank:n_ranks=5").close()
    rating_loop(folder / "ratings.heedful").close()
    choice_loop(folder / "study.heedful").close()
    with served(folder, Options(limits=Limits(seconds=5.0))) as found:
        for i in range(3):
            d = {"id": f"d{i}", "person": "p", "deferred": i == 2}
            assert httpx.post(f"{found}/v1/loops/cars/decisions", json=d).status_code == 200
        event = {"decision": "d0", "id": "e0", "better": "i3"}
        assert httpx.post(f"{found}/v1/loops/cars/feedback", json=event).status_code == 200
        yield found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with with_a_loop(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="module")
def described_api(url: str) -> Any:
    return schemathesis.openapi.from_url(f"{url}/openapi.json", config=bare())


KNOWN = {
    "loop": ["cars", "grades", "ratings", "study"],
    "item": ["i0", "i1"],
    "id": ["d0", "d1", "nobody"],
    "person": ["p", "nobody"],
}
"""What is there, so that not all that is asked is about nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda each: each)
def test_a_route_is_as_it_is_described(
    url: str, described_api: Any, method: str, path: str, mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is sent, by the description or against it: the status, form and fields of the answer are there."""
    operation = described_api[path][method]
    takes = bool(operation.body) or any(parameter for parameter in operation.iter_parameters())
    if mode is schemathesis.GenerationMode.NEGATIVE and not takes:
        pytest.skip("it takes nothing that could be wrong")
    here = {name: KNOWN[name] for name in re.findall(r"{(\w+)}", path)}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def check(data: Any) -> None:
        parameters = None
        if here and data.draw(st.integers(0, 9)) < 8:
            parameters = {name: data.draw(st.sampled_from(names)) for name, names in here.items()}
        case = data.draw(operation.as_strategy(generation_mode=mode, path_parameters=parameters))
        if path.endswith("/decisions") and case.media_type != "application/octet-stream":
            case.query = {}  # of raw numbers alone
        if path.endswith("/events"):  # a stream that goes on has no end to look at
            case.query = {**case.query, "follow": "false"}
            if data.draw(st.booleans()):
                case.query["kinds"] = data.draw(st.sampled_from(["feedback", "decision,undo", "item,item"]))
        if path == "/v1/loops" and isinstance(case.body, dict) and "learner" in case.body:
            case.body["learner"] = data.draw(st.sampled_from(["posterior", "perceptron", case.body["learner"]]))
        case.call_and_validate(checks=CHECKS, timeout=20)

    check()
    assert not [record for record in caplog.records if record.exc_info]


GOOD: list[tuple[str, str, Any]] = [
    ("POST", "/v1/loops/{loop}/decisions", {"candidates": ["i0", "i1"], "prior": [1.0, 2.0], "show": 1}),
    ("POST", "/v1/loops/{loop}/decisions", {"candidates": [{"id": "x", "f0": 1}], "context": {"a": 1}, "person": "q"}),
    ("POST", "/v1/loops/{loop}/records", {"candidates": ["i0", "i1"], "shown": ["i0"], "id": "r", "probability": 0.5}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "clicks": ["i0"], "time": 10**15}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "thumb": "up", "item": "i1"}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "action": "buy", "item": "i1"}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "rating": {"i0": 3, "i1": 1}}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "grade": {"i0": 3, "i1": 1}}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "choice": "second"}),
    ("POST", "/v1/loops/{loop}/feedback", {"decision": "d1", "edit": {"f0": 2.0}, "nearest": True}),
    ("POST", "/v1/loops/{loop}/feedback", [{"decision": "d1", "none": True}, {"decision": "no", "none": True}]),
    ("POST", "/v1/loops/{loop}/rollback", {"to": 5, "id": "back", "reason": "it was better"}),
    ("POST", "/v1/loops/{loop}/activate", {"decision": "d2", "time": "2026-01-31T12:00:00Z"}),
    ("POST", "/v1/loops/{loop}/undo", {"event": "e0"}),
    ("POST", "/v1/loops/{loop}/evaluations", {"learners": ["second-order:epsilon=0.1"]}),
    ("PUT", "/v1/loops/{loop}/items", [{"id": "fresh", "f0": 1.0}]),
    ("DELETE", "/v1/loops/{loop}/items/{item}", None),
    ("GET", "/v1/loops/{loop}/decisions/{id}/why", None),
    ("GET", "/v1/loops/{loop}/weights", None),
    ("GET", "/v1/loops/{loop}/report", None),
    ("GET", "/v1/loops/{loop}/items", None),
    ("GET", "/v1/loops/{loop}", None),
    ("GET", "/v1/loops", None),
    ("POST", "/v1/loops", {"name": "fresh", "items": [{"id": "a", "x": 1.0}, {"id": "b", "x": 2.0}], "crosses": []}),
    ("POST", "/v1/loops/{loop}/rank", {"candidates": ["i3", "no"]}),
    ("POST", "/v1/loops/{loop}/style", {"person": "p", "always": "Be brief."}),
    ("GET", "/v1/loops/{loop}/style", None),
    ("GET", "/v1/loops/{loop}/people/{person}", None),
    ("GET", "/v1/loops/{loop}/health", None),
    ("GET", "/v1/loops/{loop}/experiments/plan", None),
    ("POST", "/v1/loops/{loop}/experiments", {"learner": "second-order:epsilon=0.1", "share": 0.5}),
    ("GET", "/v1/loops/{loop}/experiments/latest", None),
    ("POST", "/v1/loops/{loop}/experiments/stop", {}),
    ("POST", "/v1/loops/{loop}/promotions", {"learner": "second-order:epsilon=0.1", "force": True, "reason": "tried"}),
    ("GET", "/v1/loops/{loop}/promotions", None),
    ("GET", "/v1/loops/{loop}/events", None),
    ("POST", "/v1/loops/{loop}/forget", {"person": "p"}),
    ("GET", "/metrics", None),
    ("GET", "/v1/audit", None),
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/openapi.json", None),
    ("GET", "/heedful.js", None),
]


class Described:
    """Asks a server as programs do. Whatever it answers, well or not, has a status, a media type and fields that are
    described, each of the type that is described, and no others."""

    def __init__(self, url: str, key: str, loop: str) -> None:
        self.caller, self.key, self.loop = Caller(url, key), key, loop
        self.asked: set[tuple[str, str]] = set()

    def __call__(
        self, method: str, path: str, body: Any = ..., statuses: Any = (200,), query: str = "", **names: str
    ) -> Any:
        """The answer of a route, with one of these statuses; `names` are those in its path."""
        self.asked.add((method, path))
        answer = self.caller(method, path.format(loop=self.loop, **names) + query, body)
        assert answer.status in statuses, (method, path, body, answer.value)
        content = resolved(DESCRIBED["paths"][path][method.lower()]["responses"][str(answer.status)])["content"]
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in content, (path, kind)
        if "json" in kind and "schema" in content[kind]:
            schema = content[kind]["schema"]
            _validator(json.dumps(schema)).validate(answer.value)
            strictly(answer.value, schema)
        return answer.value


def resolved(schema: Any) -> Any:
    """What a reference stands for."""
    if "$ref" not in schema:
        return schema
    found = DESCRIBED
    for name in schema["$ref"].split("/")[1:]:
        found = found[name]
    return found


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": DESCRIBED["components"]})


def values(schema: Any) -> tuple[set[Any], bool]:
    """(the texts that a field may be, whether it may be null)."""
    each = [schema, *schema.get("anyOf", [])]
    return {text for one in each for text in one.get("enum", [])}, any(one.get("type") == "null" for one in each)


@contextmanager
def living(folder: Path, name: str) -> Iterator[Described]:
    """Somebody who may ask everything about a loop in this folder."""
    with closing(Keys(folder)) as keys:
        key = keys.create("all", scopes=SCOPES)[1]
    with served(folder, Options(own=(FIFTH,))) as url:
        ask = Described(url, key, name)
        with closing(ask.caller):
            yield ask


def test_each_way_to_decide_is_as_described(tmp_path: Path) -> None:
    """Every arm that is described comes, with and without a probability."""
    small_loop(tmp_path / "cars.heedful", "perceptron", control=0.3, sampled=0.3).close()
    decide, records = f"{ONE}/decisions", f"{ONE}/records"
    with living(tmp_path, "cars") as ask:
        made = [ask("POST", decide, {"id": f"p{i}", "person": f"p{i}", "show": 3}) for i in range(12)]
        shown = {"candidates": ["i0", "i1", "i2"], "shown": ["i1", "i0"]}
        made += [
            ask("POST", records, {"id": "r1"} | shown),
            ask("POST", records, {"id": "r2", "probability": 0.25} | shown),
        ]
        ask("POST", f"{ONE}/experiments", {"learner": "second-order:epsilon=0.1", "share": 1.0})
        made += [ask("POST", decide, {"id": f"q{i}", "person": f"q{i}", "show": 3}) for i in range(5)]
        for each in {each["arm"]: each for each in made}.values():
            ask("GET", f"{ONE}/decisions/{{id}}/why", id=each["id"])
    arms, _ = values(DESCRIBED["components"]["schemas"]["Decision"]["properties"]["arm"])
    assert {each["arm"] for each in made} == arms
    assert {each["probability"] is None for each in made if each["arm"] == "imported"} == {True, False}


@pytest.mark.slow
@each_kind
def test_a_life_of_each_kind_is_as_described(tmp_path: Path, kind: Kind) -> None:
    """What a loop answers before and after something happened: to people with and without a name, of decisions of its
    own and of those that somebody else made."""
    kind.make(tmp_path / "loop.heedful").close()
    with living(tmp_path, "loop") as ask:
        for happened in (False, True):
            for what in ("", "/report", "/health"):
                ask("GET", f"{ONE}{what}")
            for query in ("", "?person=p1"):
                ask("GET", f"{ONE}/style", query=query)
                ask("GET", f"{ONE}/weights", query=query)
                ask("GET", f"{ONE}/standing", query=query, statuses=(200 if kind.name == "comparison" else 422,))
            ask("POST", f"{ONE}/rank", {})
            ask("POST", f"{ONE}/evaluations", {"learners": [kind.other]})
            if happened:
                break
            for i in range(10):
                asked = {name: value for name, value in fields_of(kind, i).items() if i % 5 or name != "person"}
                made = ask("POST", f"{ONE}/decisions", asked)
                answer = {**kind.answer(i, tuple(made["shown"])), "decision": made["id"], "id": f"e{i}"}
                assert [ask("POST", f"{ONE}/feedback", answer)["status"] for _ in "ab"] == ["applied", "duplicate"]
            other = ask("POST", f"{ONE}/records", {"id": "r", "candidates": NAMES[:4], "shown": ["i2", "i0"]})
            assert (other["arm"], other["probability"]) == ("imported", None)
            answers = [{**kind.answer(1, ("i2", "i0")), "decision": id} for id in (other["id"], "nobody")]
            assert [each["seq"] is None for each in ask("POST", f"{ONE}/feedback", answers)] == [False, True]
            ask("POST", f"{ONE}/undo", {"event": "e3"})
            for id in ("d1", other["id"]):
                ask("GET", f"{ONE}/decisions/{{id}}/why", id=id)
                ask("GET", f"{ONE}/decisions/{{id}}/why", query="?item=i2&top=2", id=id, statuses=(200, 404))
        ask("POST", f"{ONE}/forget", {"person": "p1"})


@pytest.mark.slow
def test_good_answers_are_as_described(tmp_path: Path) -> None:
    """One that is good of every kind, on every route."""
    small_loop(tmp_path / "cars.heedful", shrink=1.0, control=0.2).close()
    with living(tmp_path, "cars") as ask:
        for i in range(3):
            ask("POST", f"{ONE}/decisions", {"id": f"d{i}", "person": "p", "deferred": i == 2})
        ask("POST", f"{ONE}/feedback", {"decision": "d0", "id": "e0", "better": "i3"})
        token = page_token(ask.key, "cars", "d0")
        clicked = ("POST", f"{ONE}/clicks", {"token": token, "decision": "d0", "item": "i2"})
        for method, path, body in [clicked, *GOOD]:
            query = {"why": "?item=i0&top=3", "events": "?follow=false"}.get(path.rpartition("/")[2], "")
            names = {"item": "fresh", "id": "d1", "person": "p"}
            ask(method, path, ... if body is None else body, statuses=(200, 201), query=query, **names)
    assert ask.asked | {("GET", f"{ONE}/standing")} == set(OPERATIONS)  # which a loop of choices has


def beyond(schema: Any) -> list[Any]:
    """What is just beyond the limits of numbers and texts that a schema has."""
    least, most = schema.get("minimum"), schema.get("maximum")
    step = 1 if schema.get("type") == "integer" else 1e-7
    found = [] if least is None or abs(least) > 1e15 else [least - step]
    found += [] if most is None else [most + step if abs(most) < 1e15 else 2 * most]
    found += [schema[name] for name in ("exclusiveMinimum", "exclusiveMaximum") if name in schema]
    if schema.get("type") == "string":
        found += ["x" * (schema["maxLength"] + 1)] if "maxLength" in schema else []
        found += [""] if schema.get("minLength") else []
    return found + [each for one in schema.get("anyOf", []) for each in beyond(one)]


def test_what_is_beyond_the_limits_described_is_refused(tmp_path: Path) -> None:
    """Of each field of each body that has a limit."""
    small_loop(tmp_path / "cars.heedful", control=0.2).close()
    tried = []
    with living(tmp_path, "cars") as ask:
        ask("POST", f"{ONE}/decisions", {"id": "d1"})
        for method, path, body in GOOD:
            if isinstance(body, dict):
                [schema] = [each for each in _bodies(path, method) if each["type"] == "object"]
                tried += [
                    (method, path, body, name, it)
                    for name in schema["properties"]
                    for it in beyond(schema["properties"][name])
                ]
        for method, path, body, name, value in tried:
            ask(method, path, body | {name: value}, statuses=range(400, 500))
        assert ask("GET", ONE)["events"]["decision"] == 1
    assert (f"{ONE}/decisions", "show", 0) in [(path, name, value) for _, path, _, name, value in tried]


def _bodies(path: str, method: str) -> list[Any]:
    schema = DESCRIBED["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    return [resolved(each) for each in schema.get("anyOf", [schema])]


def strictly(value: Any, schema: Any) -> None:
    """An answer has no field that is not described, and all that are, but for those of other loops."""
    schema = resolved(schema)
    if "anyOf" in schema:
        kinds = {"array": list, "object": dict}
        of_its_type = [each for each in schema["anyOf"] if isinstance(value, kinds.get(each.get("type", "object"), ()))]
        for i, each in enumerate(of_its_type):
            try:
                strictly(value, each)
                break
            except AssertionError:
                if i == len(of_its_type) - 1:
                    raise
    elif schema.get("type") == "array" and "items" in schema:
        for each in value:
            strictly(each, schema["items"])
    elif "properties" in schema:
        assert set(schema["required"]) <= value.keys() <= schema["properties"].keys(), (value, schema["required"])
        for name, each in value.items():
            strictly(each, schema["properties"][name])


def test_all_is_described(url: str) -> None:
    """Every route says which scope it needs, every kind of problem that may come, and what is taken in which form."""
    for path, methods in DESCRIBED["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"]
            opened, tokened = path in ("/healthz", "/readyz", "/openapi.json", "/heedful.js"), path.endswith("/clicks")
            assert ("security" in operation) is not (opened or tokened)
            if opened:
                continue
            needed = "a token" if tokened else r"the scope (decide|feedback|read|admin|metrics)\."
            assert re.match(f"Needs {needed}", operation["description"])
            statuses = {str(status) for kind, (status, _) in TITLES.items() if kind != "not-allowed"}
            assert statuses <= operation["responses"].keys()
            if tokened:
                assert {"application/json", "text/plain"} == operation["requestBody"]["content"].keys()
                continue
            if method in ("post", "put"):
                assert {"application/json", "application/msgpack"} <= operation["requestBody"]["content"].keys()
    assert (
        "application/octet-stream"
        in (DESCRIBED["paths"]["/v1/loops/{loop}/decisions"]["post"]["requestBody"]["content"])
    )
    names = [operation["operationId"] for methods in DESCRIBED["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    for name in re.findall(r'"\$ref":"#/components/schemas/(\w+)"', description().decode()):
        assert name in DESCRIBED["components"]["schemas"]


def test_all_that_decisions_take_is_described(url: str) -> None:
    """The parameters of raw numbers, how large `show` may be in either form, and that no body is one among all."""
    described = DESCRIBED["paths"]["/v1/loops/{loop}/decisions"]["post"]
    query = {each["name"]: each for each in described["parameters"] if each["in"] == "query"}
    path, numbers = f"{url}/v1/loops/cars/decisions", {"content-type": "application/octet-stream"}
    refused = httpx.post(path, params={"colour": "red"}, headers=numbers, content=bytes(16)).json()
    assert f"expected {', '.join(query)}, got" in refused["detail"]
    given = {"person": "p", "show": "1", "id": "n1", "deferred": "true", "context": "{}", "prior": "false"}
    assert httpx.post(path, params=given, headers=numbers, content=bytes(16)).status_code == 200
    given = given | {"id": "n2", "after": "n1"}
    assert given.keys() == query.keys()
    answer = httpx.post(path, params=given, headers=numbers, content=bytes(32))
    assert (answer.status_code, answer.json()["shown"]) == (200, ["1"])
    [form] = [each for each in DESCRIBED["components"]["schemas"].items() if each[0] == "Decide"]
    most = form[1]["properties"]["show"]["maximum"]
    assert query["show"]["schema"]["maximum"] == most
    for show, status in ((most, 200), (most + 1, 422)):
        assert httpx.post(path, json={"show": show}).status_code == status
        assert httpx.post(path, params={"show": show}, headers=numbers, content=bytes(16)).status_code == status
    assert not described["requestBody"]["required"]
    assert httpx.post(path).status_code == 200


def test_headers_and_problems_are_described(url: str) -> None:
    paths = DESCRIBED["paths"]
    last, keyed = (
        {each["name"]: each["schema"] for each in paths[f"/v1/loops/{{loop}}/{what}"][method]["parameters"]}[name]
        for what, method, name in (("events", "get", "Last-Event-ID"), ("undo", "post", "Idempotency-Key"))
    )
    for number, status in ((last["maximum"], 200), (last["maximum"] + 1, 422)):
        headers = {"last-event-id": str(number)}
        assert httpx.get(f"{url}/v1/loops/cars/events?follow=false", headers=headers).status_code == status
    for length, status in ((keyed["maxLength"], 200), (keyed["maxLength"] + 1, 400), (keyed["minLength"] - 1, 400)):
        headers = {"idempotency-key": "k" * length}
        assert httpx.post(f"{url}/v1/loops/cars/decisions", headers=headers).status_code == status
    answer = httpx.post(f"{url}/v1/loops/cars/feedback", json={"decision": "d0", "clicks": ["nobody"]})
    assert answer.status_code == 409
    strictly(answer.json(), DESCRIBED["components"]["schemas"]["Problem"])


@pytest.mark.slow
def test_it_is_the_same_with_keys(tmp_path: Path) -> None:
    """What is described is what a holder of a key is answered, and 401 what everybody else is."""
    small_loop(tmp_path / "cars.heedful").close()
    keys = Keys(tmp_path)
    text = keys.create("ci", scopes=["read", "metrics"])[1]
    keys.close()
    with served(tmp_path) as url:
        described = schemathesis.openapi.from_url(f"{url}/openapi.json", config=bare())
        for path in ("/v1/loops", "/v1/loops/{loop}", "/metrics"):
            for key, wanted in ((text, 200), ("hk_ab12cd34_" + "x" * 43, 401)):
                case = described[path]["GET"].Case(path_parameters={"loop": "cars"} if "{" in path else {})
                answer = case.call(headers={"Authorization": f"Bearer {key}"})
                assert answer.status_code == wanted
                case.validate_response(answer, checks=CHECKS)
