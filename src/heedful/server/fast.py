"""The two routes that are asked most: decide, and take feedback. Straight from the body to the worker."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from heedful.core.validation import describe
from heedful.loop.records import Answer, Decision, LostDecision
from heedful.server import codecs
from heedful.server.auth import Caller, source
from heedful.server.codecs import FLOAT32, Headers, Receive, Send
from heedful.server.context import LARGE, Service, as_problem
from heedful.server.loop_worker import FEW, LoopWorker
from heedful.server.problems import Problem, mask_keys
from heedful.server.schema import Decide, names

FEEDBACK = "feedback"
DECISIONS = "decisions"
SCOPES = {DECISIONS: "decide", FEEDBACK: "feedback"}
PARAMETERS = ("person", "show", "id", "deferred", "context", "prior")
"""The fields that come with candidates that are raw numbers."""


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
            authorization, host, origin = headers.get(b"authorization"), headers.get(b"host"), source(headers)
            caller = service.gate.admit(authorization, host, origin, SCOPES[what])
            tenant = caller.tenant
            worker = service.loops.at(tenant, name) or await service.loops.open(tenant, name)
            with worker:
                kind = codecs.form(headers)
                body = await codecs.read(headers, receive, service.limits, kind)
                key, reading = codecs.key(headers), partial(self._read, worker, what, kind, body, scope["query_string"])
                if kind != FLOAT32 and len(body) > LARGE:
                    async with service.turn(tenant):
                        given = await service.read(reading)
                        value = await self._value(worker, caller, name, what, given, key, large=True)
                else:
                    value = await self._value(worker, caller, name, what, reading(), key)
            await codecs.answer(send, value, codecs.answer_form(headers))
            status = 200
        except Exception as error:
            problem = as_problem(error)
            status = problem.status
            await codecs.answer_problem(send, problem)
        service.metrics.request(tenant, what, status, time.perf_counter() - began)

    async def _value(
        self, worker: LoopWorker, caller: Caller, name: str, what: str, given: Any, key: str | None, large: bool = False
    ) -> Any:
        """What is answered to what was read."""
        if what == DECISIONS:
            decision, again = await worker.decide_once(codecs.with_key(given, key), large)
            return self.decided(caller, name, decision, again)
        if type(given) is list:
            return await self._many(worker, caller, name, given, key, large)
        answer = await worker.feedback(codecs.with_key(given, key), large)
        return self.taken(caller, name, answer)

    def _read(self, worker: LoopWorker, what: str, kind: bytes, body: bytes | memoryview, query: bytes) -> Any:
        """What a body says, checked as far as its form goes."""
        numbers = what == DECISIONS and kind == FLOAT32
        if query and not numbers:
            for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
                raise ValueError(f"query: expected none, as only raw numbers have fields there, got {describe(name)}")
        if numbers:
            interaction = worker.projection.interaction
            size = 0 if interaction.by_number else worker.loop.manifest.candidates.size
            if not size:
                raise ValueError(f"body: expected names of items, in {interaction.loop}, got raw numbers")
            return from_numbers(body, parameters(query), size)
        if what == DECISIONS:
            return codecs.fields(codecs.decode(body, kind) if body else {}, names(Decide))
        given = codecs.decode(body, kind)
        if type(given) is list:
            return codecs.listed(given, self._service.limits.batch)
        if type(given) is not dict:
            raise ValueError(f"body: expected an event, or a list of them, got {describe(given)}")
        return given

    async def _many(
        self, worker: LoopWorker, caller: Caller, name: str, given: list[Any], key: str | None, large: bool
    ) -> list[dict[str, Any]]:
        self._service.gate.spend(caller, len(given))
        if key is not None:
            given = [
                each | {"id": f"{key}-{i}"} if type(each) is dict and each.get("id") is None else each
                for i, each in enumerate(given)
            ]
        if large or len(given) <= FEW:
            answers = await worker.feedback_many(given, large)
        else:  # a large one has its turn already
            async with self._service.turn(caller.tenant):
                answers = await worker.feedback_many(given)
        for answer in answers:
            self._service.metrics.events[caller.tenant, name, "feedback", outcome(answer)] += 1
        return [_fields(answer) for answer in answers]

    def decided(self, caller: Caller, name: str, decision: Decision, again: bool) -> dict[str, Any]:
        """A decision as it is told; it is counted, as a duplicate where it was told `again`."""
        events = self._service.metrics.events
        events[caller.tenant, name, "decision", "duplicate" if again else decision.arm] += 1
        if decision.unknown and not again:
            events[caller.tenant, name, "candidate", "unknown"] += len(decision.unknown)
        return decision.plain()

    def taken(self, caller: Caller, name: str, answer: Answer) -> dict[str, Any]:
        """What became of feedback, as it is told; it is counted. Problem "rejected" where it was."""
        self._service.metrics.events[caller.tenant, name, "feedback", outcome(answer)] += 1
        return accepted(answer)


def outcome(answer: Answer) -> str:
    """What became of feedback, in a word."""
    return "late" if answer.late and answer.status == "applied" else answer.status


def accepted(answer: Answer) -> dict[str, Any]:
    """An answer as an object. Problem "rejected", with all of it, where that is what it says; "lost-decision" where it
    is about one."""
    if answer.status == "rejected":
        kind = "lost-decision" if isinstance(answer, LostDecision) else "rejected"
        raise Problem(kind, answer.reason or "rejected", answer=_fields(answer))
    return _fields(answer)


def _fields(answer: Answer) -> dict[str, Any]:
    """An answer as an object. One that is rejected repeats no key that came in the place of an id."""
    if answer.status == "rejected":
        answer = answer._replace(event=mask_keys(answer.event), reason=mask_keys(answer.reason or "rejected"))
    return answer._asdict()


def parameters(query: bytes) -> dict[str, Any]:
    """The fields of a request that are its query. ValueError, by name, where they are none."""
    given: dict[str, Any] = {}
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name in given:
            raise ValueError(f"{name}: expected it once, got it twice")
        given[name] = _parameter(name, text)
    return given


def from_numbers(body: bytes | memoryview, parameters: dict[str, Any], columns: int) -> dict[str, Any]:
    """A request whose candidates are raw numbers, and whose other fields are `parameters`."""
    given = parameters.copy()
    scored = given.pop("prior", False)
    rows = codecs.matrix(body, columns + scored)
    given["candidates"] = rows[:, :columns] if scored else rows
    if scored:
        given["prior"] = rows[:, columns].tolist()
    return given


def _parameter(name: str, text: str) -> Any:
    if name in ("person", "id"):
        return text
    if name in ("deferred", "prior"):
        if text not in ("true", "false"):
            raise ValueError(f"{name}: expected true or false, got {describe(text)}")
        return text == "true"
    if name == "show":
        if not text.isascii() or not text.isdecimal() or len(text) > 19:
            raise ValueError(f"show: expected a whole number above 0, got {describe(text)}")
        return int(text)
    if name == "context":
        try:
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ValueError(f"context: expected JSON, got {describe(text)}: {error}") from None
    raise ValueError(f"query: expected {', '.join(PARAMETERS)}, got {describe(name)}")
