"""The two routes that are asked most: decide, and take feedback. Straight from the socket to the desk."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from heedful.doors import describe
from heedful.loop.wire import Answer
from heedful.server import bodies
from heedful.server.bodies import FLOAT32, Headers, Receive, Send
from heedful.server.desk import Desk
from heedful.server.problems import Problem
from heedful.server.schema import DECIDE
from heedful.server.service import Service, as_problem

LARGE = 100_000
"""Bytes of JSON from which on a request is worked on in a thread."""
FEEDBACK = "feedback"
DECISIONS = "decisions"
SCOPES = {DECISIONS: "decide", FEEDBACK: "feedback"}


class Fast:
    """POST /v1/loops/{loop}/decisions and /v1/loops/{loop}/feedback."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Any, receive: Receive, send: Send, name: str, what: str) -> None:
        """One request, from its headers to its answer."""
        began = time.perf_counter()
        service = self._service
        headers: Headers = dict(scope["headers"])
        tenant = ""
        try:
            authorization, host, origin = headers.get(b"authorization"), headers.get(b"host"), headers.get(b"origin")
            caller = service.gate.admit(authorization, host, origin, SCOPES[what])
            tenant = caller.tenant
            desk = service.loops.at(tenant, name) or await service.loops.open(tenant, name)
            with desk:
                kind = bodies.form(headers)
                body = await bodies.read(headers, receive, service.limits)
                value: Any
                if what == DECISIONS:
                    value = await self._decide(desk, kind, body, headers, scope["query_string"])
                    service.meters.events[tenant, name, "decision", value["arm"]] += 1
                else:
                    value = await self._feedback(desk, kind, body, headers, caller, name)
            await bodies.answer(send, value, bodies.answer_form(headers))
            status = 200
        except Exception as error:
            problem = as_problem(error)
            status = problem.status
            await bodies.answer_problem(send, problem)
        service.meters.request(tenant, what, status, time.perf_counter() - began)

    async def _decide(self, desk: Desk, kind: bytes, body: bytes, headers: Headers, query: bytes) -> dict[str, Any]:
        if kind == FLOAT32:
            size = desk.loop.founding.encoding.size if desk.loop.choices is None else 0
            if not size:
                kind_of = "ratings" if desk.loop.choices is None else "choices"
                raise ValueError(f"body: wanted names of items, in a loop of {kind_of}, got raw numbers")
            given = from_numbers(body, query, size)
        else:
            given = bodies.fields(bodies.decode(body, kind) if body else {}, DECIDE)
        large = kind != FLOAT32 and len(body) > LARGE
        decision = await desk.decide(bodies.with_key(given, bodies.key(headers)), large)
        return decision.plain()

    async def _feedback(
        self, desk: Desk, kind: bytes, body: bytes, headers: Headers, caller: Any, name: str
    ) -> dict[str, Any] | list[dict[str, Any]]:
        given, key = bodies.decode(body, kind), bodies.key(headers)
        count, tenant = self._service.meters.events, caller.tenant
        if type(given) is list:
            bodies.listed(given, self._service.limits.batch)
            self._service.gate.spend(caller, len(given))
            if key is not None:
                given = [
                    each | {"id": f"{key}-{i}"} if type(each) is dict and each.get("id") is None else each
                    for i, each in enumerate(given)
                ]
            answers = await desk.feedback_many(given, len(body) > LARGE)
            for answer in answers:
                count[tenant, name, "feedback", outcome(answer)] += 1
            return [answer._asdict() for answer in answers]
        if type(given) is not dict:
            raise ValueError(f"body: wanted an event, or a list of them, got {describe(given)}")
        answer = await desk.feedback(bodies.with_key(given, key), len(body) > LARGE)
        count[tenant, name, "feedback", outcome(answer)] += 1
        return accepted(answer)


def outcome(answer: Answer) -> str:
    """What became of feedback, in a word."""
    return "late" if answer.late and answer.status == "applied" else answer.status


def accepted(answer: Answer) -> dict[str, Any]:
    """An answer as an object. Problem "rejected", with all of it, where that is what it says."""
    if answer.status == "rejected":
        raise Problem("rejected", answer.reason or "rejected", answer=answer._asdict())
    return answer._asdict()


def from_numbers(body: bytes, query: bytes, columns: int) -> dict[str, Any]:
    """A request whose candidates are raw numbers, and whose other fields are the query."""
    given: dict[str, Any] = {}
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name in given:
            raise ValueError(f"{name}: wanted it once, got it twice")
        given[name] = _parameter(name, text)
    scored = given.pop("prior", False)
    rows = bodies.matrix(body, columns + scored)
    given["candidates"] = rows[:, :columns] if scored else rows
    if scored:
        given["prior"] = rows[:, columns].tolist()
    return given


def _parameter(name: str, text: str) -> Any:
    if name in ("person", "id"):
        return text
    if name in ("deferred", "prior"):
        if text not in ("true", "false"):
            raise ValueError(f"{name}: wanted true or false, got {describe(text)}")
        return text == "true"
    if name == "show":
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise ValueError(f"show: wanted a whole number above 0, got {describe(text)}")
        return int(text)
    if name == "context":
        try:
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ValueError(f"context: wanted JSON, got {describe(text)}: {error}") from None
    raise ValueError(f"query: wanted person, show, id, deferred, context, prior, got {describe(name)}")
