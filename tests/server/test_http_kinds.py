"""A loop over HTTP is the loop: of every kind of feedback, the same answers and the same bits; made, refused and
described by its own fields."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from asking import FLOAT32, Caller, is_problem, ok, raw_numbers

import heedful.loop.why
from heedful import Loop
from heedful.results.about import About, Weights
from heedful.results.answers import Answer, Decision
from heedful.results.board import Board, BoardRow, QuestionsLeft, Verdict
from heedful.results.evaluation import Evaluation
from heedful.results.explanation import Why
from heedful.results.report import PredictionReport, PredictionWindow, Report
from heedful.server.result_schema import schema_of
from heedful.server.routes import description
from kinds import KINDS, NAMES, Kind, each_kind
from kinds import ask as fields_of
from loops import as_json, bits, bits_from_scratch, choice_loop, diverged, rows, small_loop


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, `why` leaves out each lesson in turn: both loops answer by the same method."""
    inquiry = heedful.loop.why._Inquiry
    leave_one_out = inquiry._leave_one_out
    monkeypatch.setattr(
        inquiry, "_leave_one_out", lambda self, steps, now, seconds: leave_one_out(self, steps, now, 600.0)
    )


def without_times(value: Any) -> Any:
    """Without when the loop was made and when its windows ended: the two loops lived at different times."""
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in ("since", "time")}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def names_in(loop: Loop, decision: str) -> tuple[str, ...]:
    known = loop.projection.find_decision(decision)
    assert known is not None
    return known.names


@pytest.mark.slow
@each_kind
def test_a_loop_over_http_is_the_loop(ask: Caller, kind: Kind, folder: Path, tmp_path: Path) -> None:
    """The same story told to a loop here and to one over HTTP: every answer and every bit is the same."""
    name = f"{kind.name}-{ask.form}"
    learner = ["posterior"] if kind.name == "coactive" else []  # what it proposes is more than what is shown
    kind.make(folder / f"{name}.heedful", *learner).close()
    path = f"/v1/loops/{name}"
    with kind.make(tmp_path / "here", *learner) as loop:
        for i in range(24):
            asked = fields_of(kind, i, withdrawn="i7" if i > 15 else "")
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
            assert ok(ask.get(f"{path}/decisions/{what}/why")) == as_json(loop.why(what))
            for item in ("i0", "i5"):
                asked_why = ask.get(f"{path}/decisions/{what}/why?item={item}&top=3")
                if item in names_in(loop, what):
                    assert ok(asked_why) == as_json(loop.why(what, item, 3))
                else:
                    told = f"item {item} is not among the candidates of decision {what}"
                    assert (asked_why.status, asked_why.value["detail"]) == (404, told)
        again = ask.post(f"{path}/evaluations", {"learners": [kind.other]})
        assert ok(again) == as_json(loop.evaluate(kind.other))  # of one's own, too: the server was started with it
        assert ok(ask.get(f"{path}/weights?person=p1"))["weights"] == loop.weights_of("p1")
        assert ok(ask.get(f"{path}/weights"))["weights"] == loop.weights
        assert ok(ask.post(f"{path}/rank", {}))["ranking"] == list(loop.rank())
        assert without_times(ok(ask.get(f"{path}/report"))) == without_times(as_json(loop.report()))
        gone = as_json(loop.forget("p0")) | {"exports": [], "unreached": [], "erased": True}
        assert ok(ask("POST", f"{path}/forget", {"person": "p0"})) == gone
        assert gone["events"] > 16
        assert ok(ask("POST", f"{path}/forget", {"person": "p0"}))["events"] == 0
        assert ok(ask.post(f"{path}/undo", {"event": "e1"})) == loop.undo("e1")._asdict()
        with Loop.open(folder / f"{name}.heedful", learner=kind.own) as other:
            assert bits(other) == bits(loop) == bits_from_scratch(other)
            assert other.verify() == []


# ---------------------------------------------------------------------------- what is described


def described(value: dict[str, Any], struct: type) -> set[str]:
    """The optional fields of an answer; all others must be there, and none that is not described."""
    fields = msgspec.structs.fields(struct)
    required = {field.encode_name for field in fields if field.required}
    assert required <= value.keys() <= {field.encode_name for field in fields}, struct
    return {f"{struct.__name__}.{name}" for name in value.keys() - required}


@each_kind
def test_every_field_is_described(kind: Kind, url: str, folder: Path) -> None:
    """A loop says all that is described but what the table of kinds leaves to others."""
    kind.make(folder / f"described-{kind.name}.heedful").close()
    path = f"/v1/loops/described-{kind.name}"
    with closing(Caller(url)) as ask:
        decision = ok(ask.post(f"{path}/decisions", {"candidates": [*NAMES[:3], "x"], "id": "d", "person": "p"}))
        form = kind.answer(0, tuple(name for name in decision["shown"] if name != "x"))
        answer = ok(ask.post(f"{path}/feedback", {**form, "decision": "d"}))
        report = ok(ask.get(f"{path}/report"))
        learners = [] if kind.own else [kind.other]
        found = [
            (ok(ask.get(path)), About),
            (decision, Decision),
            (answer, Answer),
            (ok(ask.get(f"{path}/decisions/d/why")), Why),
            (ok(ask.post(f"{path}/evaluations", {"learners": learners})), Evaluation),
            (report, Report),
        ]
        if predicted := report.get("prediction"):
            found += [(predicted, PredictionReport), (predicted["series"][0], PredictionWindow)]
        if kind.name == "comparison":
            standing = ok(ask.get(f"{path}/standing"))
            verdict = standing["verdict"]
            rest = [(verdict, Verdict), (verdict["left"], QuestionsLeft), (standing["ranking"][0], BoardRow)]
            found += [(standing, Board), *rest]
    said = set[str]().union(*(described(value, schema_of(result)) for value, result in found))
    assert said == {"Decision.unknown", "Report.unknown"} | kind.says


@each_kind
def test_the_events_say_what_was_shown_and_answered(kind: Kind, plain: Caller, folder: Path) -> None:
    name = f"events-{kind.name}"
    kind.make(folder / f"{name}.heedful").close()
    decision = ok(plain.post(f"/v1/loops/{name}/decisions", {"candidates": NAMES[:4], "id": "d"}))
    for i in (0, 4):  # the second of actions, where they are taken
        form = {**kind.answer(i, tuple(decision["shown"])), "decision": "d", "id": f"e{i}"}
        ok(plain.post(f"/v1/loops/{name}/feedback", form))
        text = plain.http.get(f"/v1/loops/{name}/events?follow=false&kinds=decision,feedback").text
        data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        assert data[0].items() >= {each: decision[each] for each in ("id", "shown", "arm")}.items()
        assert data[0].get("predicted") == decision.get("predicted")
        assert data[-1].items() >= form.items()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_no_number_any_more_is_null_and_described_so(ask: Caller, folder: Path) -> None:
    """In JSON and msgpack alike."""
    name = f"diverged-{ask.form}"
    with diverged(folder / f"{name}.heedful") as loop:
        caveat = loop.overflown
    path = f"/v1/loops/{name}"
    assert ok(ask.get(path))["caveats"] == [caveat]
    why = ok(ask.get(f"{path}/decisions/d29/why"))
    evaluated = ok(ask.post(f"{path}/evaluations", {"learners": ["widrow-hoff:eta=1e20"]}))
    weights = ok(ask.get(f"{path}/weights"))
    assert (why["score"], why["lead"], why["features_by"], why["place"]) == (None, None, "exact", 1)
    assert None in [part["counts"] for part in why["features"]]
    for value, result in ((why, Why), (evaluated, Evaluation), (weights, Weights)):
        assert msgspec.to_builtins(msgspec.convert(value, schema_of(result))) == value
    for value in (evaluated["learners"][1], weights):
        assert None in value["weights"].values()
    described = json.loads(description())["components"]["schemas"]
    assert {"type": "null"} in described["Why"]["properties"]["score"]["anyOf"]
    assert {"type": "null"} in described["Weights"]["properties"]["weights"]["additionalProperties"]["anyOf"]


# ---------------------------------------------------------------------------- what is refused

PAIR = {"candidates": ["i0", "i1"]}
REFUSED: dict[str, list[tuple[str, dict[str, Any], str, str]]] = {
    "coactive": [("feedback", {"clicks": 3}, "clicks", "clicks: expected a list")],
    "one": [("feedback", {"reward": 6}, "reward", "reward: expected a number from 0 to 1, got 6")],
    "ordinal": [
        ("feedback", {"grade": {"i0": 6}}, "grade['i0']", "grade['i0']: expected a whole number from 1 to 5, got 6"),
    ],
    "rating": [
        ("feedback", {"rating": {"i0": 6}}, "rating['i0']", "rating['i0']: expected a number from 1 to 5, got 6"),
        ("decisions", {**PAIR, "person": "p"}, "candidates", "expected one that p has not consumed, got 2 that were"),
    ],
    "comparison": [("decisions", {"candidates": ["i0"]}, "candidates", "expected two or more, to choose between, got")],
    "routing": [
        ("feedback", {"edit": {"changed": 2}, "item": "i0"}, "edit", "edit: changed: expected a share from 0 to 1"),
        ("decisions", {"candidates": [{"id": "i0"}]}, "candidates[0]", "cost: expected a number from 0 to 1000"),
    ],
    "best-worst": [("feedback", {"best": "i0"}, "worst", "worst: expected the worst of what was shown")],
}
REJECTED: dict[str, dict[str, Any]] = {
    "coactive": {"actions": {"i0": "buy"}},
    "one": {"rating": {"i0": 4}},
    "ordinal": {"rating": {"i0": 4}},
    "rating": {"grade": {"i0": 1}},
    "comparison": {"rating": {"i0": 1}},
    "routing": {"thumb": "up"},
    "best-worst": {"clicks": ["i0"]},
}
"""What is bad input in a loop of each kind where "i0" and "i1" were shown, its field and what is said of it; and a form
that is none of such a loop. All else that is refused is tried at the loop (`loop/test_refusals.py`)."""


@each_kind
def test_what_makes_no_sense_is_a_problem_by_its_field(kind: Kind, ask: Caller, folder: Path) -> None:
    name = f"refusing-{kind.name}-{ask.form}"
    with kind.make(folder / f"{name}.heedful") as loop:
        bare = loop.manifest.encoding.size == 0
    path = f"/v1/loops/{name}"
    shown = ok(ask.post(f"{path}/decisions", {**PAIR, "show": 2, "id": "d", "person": "p"}))["shown"]
    assert sorted(shown) == ["i0", "i1"]
    rejected = {"decision": "d", **REJECTED[kind.name]}
    is_problem(ask.post(f"{path}/feedback", rejected), "rejected")
    answers = ok(ask.post(f"{path}/feedback", [rejected, {"decision": "d", **kind.answer(0, shown)}]))
    assert [answer["status"] for answer in answers] == ["rejected", "applied"]
    refused = [*REFUSED[kind.name]]
    other = "prank:n_ranks=5" if kind.name in ("coactive", "one", "routing") else "perceptron"
    refused.append(("evaluations", {"learners": [other]}, "learner", "learner: expected one"))
    if form := {"ordinal": "grade", "rating": "rating"}.get(kind.name) if ask.form == "msgpack" else None:
        numbers = float("nan"), float("inf")  # JSON cannot say them
        refused += [("feedback", {form: {"i0": number}}, f"{form}['i0']", "a finite number") for number in numbers]
    for route, body, field, told in refused:
        sent = {"decision": "d", **body} if route == "feedback" else body
        assert told in is_problem(ask.post(f"{path}/{route}", sent), "bad-input", field)["detail"]
    if bare:
        raw = ask.send("POST", f"{path}/decisions", raw_numbers([[1.0]]), content_type=FLOAT32)
        is_problem(raw, "bad-input", "body")


# ---------------------------------------------------------------------------- how a loop is made

ITEMS = rows(12, 4)
PRICED = [{"id": f"i{j}", "price": j} for j in range(4)]
MODELS: dict[str, Any] = {"items": [{"id": "small", "cost": 1}, {"id": "large", "cost": 20}]}
BEST: dict[str, Any] = {"settings": {"choices": "best"}, "items": PRICED}
MADE: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "coactive": [({"items": ITEMS}, {"items": 12, "features": 4})],
    "one": [({"items": ITEMS, "settings": {"k": 1, "rewards": [0, 5]}}, {"items": 12, "features": 4})],
    "ordinal": [({"items": ITEMS, "learner": "ordinal-logistic:n_ranks=3"}, {"items": 12, "grades": 3})],
    "rating": [
        (
            {"settings": {"ratings": [0, 1]}, "identifier": "sku"},
            {"items": 0, "ratings": [0.0, 1.0], "identifier": "sku"},
        )
    ],
    "comparison": [
        (
            {"settings": {"choices": "ranking"}, "identifier": "sku"},
            {"items": 0, "choices": "ranking", "identifier": "sku"},
        ),
        (BEST, {"features": 0}),
        ({**BEST, "features": True}, {"features": 1}),
        ({**BEST, "kinds": {"price": "number"}}, {"features": 1}),
    ],
    "routing": [
        ({**MODELS, "settings": {"cost_weight": 0}}, {"items": 2, "learner": "posterior"}),
        (
            {**MODELS, "settings": {"cost_weight": 0.1}, "context": [{"embedding": [x] * 900} for x in (0.5, -0.5)]},
            {"learner": "posterior"},
        ),
    ],
    "best-worst": [],  # nobody names code over the network
}
"""Bodies that make a loop of each kind, and what the answer says among other things."""
NOT_MADE: dict[str, tuple[dict[str, Any], str, str]] = {
    "coactive": ({"items": PRICED, "features": True}, "features", "features: "),
    "one": ({"items": ITEMS, "settings": {"k": 1, "rewards": [1, 0]}}, "rewards", "the lowest and the highest"),
    "ordinal": ({"items": ITEMS, "learner": "prank:n_ranks=five"}, "learner", "n_ranks: expected a whole number, got"),
    "rating": ({"settings": {"ratings": [1, 5]}, "features": False, "kinds": {"f": "number"}}, "kinds", ""),
    "comparison": ({**BEST, "features": "yes"}, "features", ""),
    "routing": ({"settings": {"cost_weight": 1}, **MODELS, "crosses": "all"}, "crosses", "expected none in a loop of"),
    "best-worst": ({"items": ITEMS, "learner": KINDS[-1].own}, "learner", ""),
}
"""A body that makes none, the field that is wrong, and what is said of it; others in `loop/test_refusals.py`."""


@each_kind
def test_a_loop_is_made_by_its_settings_or_its_learner(kind: Kind, ask: Caller) -> None:
    for n, (given, said) in enumerate(MADE[kind.name]):
        name = f"made-{kind.name}-{ask.form}-{n}"
        made = ok(ask.post("/v1/loops", {"name": name, **given}), 201)
        assert made.items() >= said.items()
        assert made == ok(ask.get(f"/v1/loops/{name}"))
        assert {"grades", "ratings", "choices"} & made.keys() == {
            field.removeprefix("About.") for field in kind.says if field.startswith("About.")
        }
        if not made["items"]:  # they come later
            if kind.name == "comparison":
                is_problem(ask.get(f"/v1/loops/{name}/standing"), "bad-input", "items")
            assert ok(ask("PUT", f"/v1/loops/{name}/items", [{"sku": "a"}, {"sku": "b", "price": 3}]))["put"] == 2
            assert sorted(ok(ask.post(f"/v1/loops/{name}/decisions", {"person": "p"}))["shown"]) == ["a", "b"]
    given, field, told = NOT_MADE[kind.name]
    refused = ask.post("/v1/loops", {"name": f"not-{kind.name}-{ask.form}", **given})
    assert told in is_problem(refused, "bad-input", field)["detail"]
    assert f"not-{kind.name}-{ask.form}" not in ok(ask.get("/v1/loops"))["loops"]


def test_only_loops_of_choices_have_a_standing(plain: Caller, folder: Path) -> None:
    small_loop(folder / "other.heedful").close()
    is_problem(plain.get("/v1/loops/other/standing"), "bad-input", "standing")
    choice_loop(folder / "chosen.heedful").close()
    is_problem(plain.get("/v1/loops/chosen/standing?who=p"), "bad-input", "query")
    for without in ("p1", "[1]", '["nobody"]', "[" * 2000):
        is_problem(plain.get(f"/v1/loops/chosen/standing?without={quote(without)}"), "bad-input", "without")
