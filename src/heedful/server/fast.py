"""The two routes that are asked most: decide, and take feedback. Straight from the socket to the desk.

`Fast` as an application answers any such request. Of one whose head was read before (`Head`) it can also begin the
answer at once (`Fast.begin`), without a task and without another turn of the event loop: `heedful.server.lane`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from heedful.core.validation import describe
from heedful.loop.ledger import AGAIN, Draft
from heedful.loop.wire import Answer, Decision
from heedful.server import bodies
from heedful.server.bodies import FLOAT32, Headers, Receive, Send
from heedful.server.desk import FEW, Desk
from heedful.server.gate import Caller, digested, source
from heedful.server.problems import Problem, mask_keys
from heedful.server.schema import Decide, names
from heedful.server.service import LARGE, Service, as_problem

FEEDBACK = "feedback"
DECISIONS = "decisions"
SCOPES = {DECISIONS: "decide", FEEDBACK: "feedback"}
PARAMETERS = ("person", "show", "id", "deferred", "context", "prior")
"""The fields beside candidates that are raw numbers."""


class Head(NamedTuple):
    """What the head of a request says that may come again with other bodies."""

    loop: str
    what: str
    kind: bytes
    """media type of the body"""
    length: int
    """bytes of the body"""
    form: bytes
    """media type of the answer"""
    parameters: dict[str, Any]
    authorization: bytes | None
    host: bytes | None
    origin: bytes | None
    digest: bytes | None
    """of the key"""


Told = Callable[[int, bytes, bytes], None]
"""What is called with an answer: its status, its headers as they are sent, its body."""


class Fast:
    """POST /v1/loops/{loop}/decisions and /v1/loops/{loop}/feedback."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._most = min(LARGE, service.limits.json)
        """bytes of JSON or msgpack that are read at once"""
        self._tasks = set[asyncio.Task[None]]()

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
            desk = service.loops.at(tenant, name) or await service.loops.open(tenant, name)
            with desk:
                kind = bodies.form(headers)
                body = await bodies.read(headers, receive, service.limits, kind)
                key, reading = bodies.key(headers), partial(self._read, desk, what, kind, body, scope["query_string"])
                if kind != FLOAT32 and len(body) > LARGE:
                    async with service.turn(tenant):
                        given = await service.read(reading)
                        value = await self._value(desk, caller, name, what, given, key, large=True)
                else:
                    value = await self._value(desk, caller, name, what, reading(), key)
            await bodies.answer(send, value, bodies.answer_form(headers))
            status = 200
        except Exception as error:
            problem = as_problem(error)
            status = problem.status
            await bodies.answer_problem(send, problem)
        service.meters.request(tenant, what, status, time.perf_counter() - began)

    async def _value(
        self, desk: Desk, caller: Caller, name: str, what: str, given: Any, key: str | None, large: bool = False
    ) -> Any:
        """What is answered to what was read."""
        if what == DECISIONS:
            decision, again = await desk.decide_once(bodies.with_key(given, key), large)
            return self.decided(caller, name, decision, again)
        if type(given) is list:
            return await self._many(desk, caller, name, given, key, large)
        answer = await desk.feedback(bodies.with_key(given, key), large)
        return self.taken(caller, name, answer)

    def _read(self, desk: Desk, what: str, kind: bytes, body: bytes | memoryview, query: bytes | dict[str, Any]) -> Any:
        """What a body says, checked as far as its form goes; `query` may have been read before."""
        numbers = what == DECISIONS and kind == FLOAT32
        if query and isinstance(query, bytes) and not numbers:
            for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
                raise ValueError(f"query: wanted none, as only raw numbers have fields there, got {describe(name)}")
        if numbers:
            interaction = desk.ledger.interaction
            size = 0 if interaction.by_number else desk.loop.founding.candidates.size
            if not size:
                raise ValueError(f"body: wanted names of items, in {interaction.loop}, got raw numbers")
            return from_numbers(body, parameters(query) if isinstance(query, bytes) else query, size)
        if what == DECISIONS:
            return bodies.fields(bodies.decode(body, kind) if body else {}, names(Decide))
        given = bodies.decode(body, kind)
        if type(given) is list:
            return bodies.listed(given, self._service.limits.batch)
        if type(given) is not dict:
            raise ValueError(f"body: wanted an event, or a list of them, got {describe(given)}")
        return given

    async def _many(
        self, desk: Desk, caller: Caller, name: str, given: list[Any], key: str | None, large: bool
    ) -> list[dict[str, Any]]:
        self._service.gate.spend(caller, len(given))
        if key is not None:
            given = [
                each | {"id": f"{key}-{i}"} if type(each) is dict and each.get("id") is None else each
                for i, each in enumerate(given)
            ]
        if large or len(given) <= FEW:
            answers = await desk.feedback_many(given, large)
        else:  # a large one has its turn already
            async with self._service.turn(caller.tenant):
                answers = await desk.feedback_many(given)
        for answer in answers:
            self._service.meters.events[caller.tenant, name, "feedback", outcome(answer)] += 1
        return [_fields(answer) for answer in answers]

    def decided(self, caller: Caller, name: str, decision: Decision, again: bool) -> dict[str, Any]:
        """A decision as it is told; it is counted, as a duplicate where it was told `again`."""
        events = self._service.meters.events
        events[caller.tenant, name, "decision", "duplicate" if again else decision.arm] += 1
        if decision.unknown and not again:
            events[caller.tenant, name, "candidate", "unknown"] += len(decision.unknown)
        return decision.plain()

    def taken(self, caller: Caller, name: str, answer: Answer) -> dict[str, Any]:
        """What became of feedback, as it is told; it is counted. Problem "rejected" where it was."""
        self._service.meters.events[caller.tenant, name, "feedback", outcome(answer)] += 1
        return accepted(answer)

    # ------------------------------------------------------------------------ heads that come again

    def head(self, path: bytes, query: bytes, headers: Headers) -> Head | None:
        """What the head of a POST says. None where it is not for `begin`: of another route, without a length, with a
        key of its own, with something that is refused."""
        parts = path.split(b"/")
        if len(parts) != 5 or parts[:3] != [b"", b"v1", b"loops"] or parts[4].decode() not in SCOPES:
            return None
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 9 or int(length) > self._service.limits.body:
            return None
        if not headers.keys().isdisjoint(_UNUSUAL) or b"%" in path:
            return None
        try:
            kind, given = bodies.form(headers), parameters(query)
        except (Problem, ValueError):
            return None
        if given.keys() & {"context", "id"} or (kind != FLOAT32 and (query or int(length) > self._most)):
            return None
        asking = headers.get(b"authorization"), headers.get(b"host"), source(headers)
        name, what, form = parts[3].decode(), parts[4].decode(), bodies.answer_form(headers)
        digest = None if asking[0] is None else digested(asking[0])
        return Head(name, what, kind, int(length), form, given, *asking, digest)

    def admit(self, head: Head) -> Caller:
        """Who is asking. Problem where they may not: it is asked once more then, so it does not count."""
        gate, scope = self._service.gate, SCOPES[head.what]
        return gate.admit(head.authorization, head.host, head.origin, scope, head.digest, tried=True)

    def begin(self, head: Head, caller: Caller, body: bytes | memoryview, told: Told, began: float) -> bool:
        """Begin with a request whose caller was admitted: `told` is called with its answer, perhaps before this
        returns. False, and nothing is done, where it takes longer: then `later` answers it."""
        desk = self._service.loops.at(caller.tenant, head.loop)
        if desk is None:
            return False
        try:
            given = self._read(desk, head.what, head.kind, body, head.parameters)
            return UnderWay(self, desk, head, caller, told, began).begin(given)
        except Exception as error:
            self.tell(head, caller, as_problem(error), told, began)
            return True

    def later(self, head: Head, caller: Caller, body: bytes | memoryview, told: Told, began: float) -> None:
        """Answer such a request as the application does, in a task."""
        self.start(self._later(head, caller, body, told, began))

    async def _later(self, head: Head, caller: Caller, body: bytes | memoryview, told: Told, began: float) -> None:
        value: Any
        try:
            loops = self._service.loops
            desk = loops.at(caller.tenant, head.loop) or await loops.open(caller.tenant, head.loop)
            with desk:
                given = self._read(desk, head.what, head.kind, body, head.parameters)
                value = await self._value(desk, caller, head.loop, head.what, given, None)
        except Exception as error:
            value = as_problem(error)
        self.tell(head, caller, value, told, began)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task to its end."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def tell(self, head: Head, caller: Caller, value: Any, told: Told, began: float) -> None:
        """Give an answer, a value or the Problem that there is, and count it."""
        status = 200
        if isinstance(value, Problem):
            status = value.status
            told(status, *bodies.problem_answered(value))
        else:
            told(status, *bodies.answered(value, head.form))
        self._service.meters.request(caller.tenant, head.what, status, time.perf_counter() - began)


class UnderWay:
    """A request that was begun; the desk tells it what became of its event, as it would tell a future."""

    __slots__ = ("_began", "_caller", "_desk", "_draft", "_fast", "_given", "_head", "_told")

    def __init__(self, fast: Fast, desk: Desk, head: Head, caller: Caller, told: Told, began: float) -> None:
        self._fast, self._desk, self._head, self._caller = fast, desk, head, caller
        self._told, self._began = told, began
        self._given: Any = None
        self._draft: Draft | None = None

    def begin(self, given: Any) -> bool:
        """Hand its event in; False where this is not to be done at once. Errors are those of the door."""
        if type(given) is list:
            return False
        deciding = self._head.what == DECISIONS
        made = self._desk.decision_of(given) if deciding else self._desk.feedback_of(given)
        if made is None:
            return False
        if isinstance(made, Draft):
            self._draft, self._given = made, given
            self._desk.__enter__()
            self._desk.hand_in([made], self)
        else:
            self._finish(self._value(made, True))
        return True

    def done(self) -> bool:
        """Never: whoever went away is not told, but it is counted."""
        return False

    def set_result(self, answers: Sequence[Answer]) -> None:
        """What became of its event."""
        [answer] = answers
        if answer.reason == AGAIN:
            self._fast.start(self._once_more())
            return
        try:
            draft = self._draft
            decides = draft is not None and draft.event.kind == "decision"
            made = self._desk.loop.deciding.decided(draft, answer) if decides else answer  # type: ignore[arg-type]
            value = self._value(made, answer.status == "duplicate")
        except Exception as error:
            self.set_exception(error)
        else:
            self._desk.__exit__()
            self._finish(value)

    def set_exception(self, error: BaseException) -> None:
        """Its event was not written, or there is nothing to tell of it."""
        self._desk.__exit__()
        self._finish(as_problem(error if isinstance(error, Exception) else InterruptedError()))

    async def _once_more(self) -> None:
        try:
            value = self._value(*await self._desk.decide_once(self._given))
        except Exception as error:
            self.set_exception(error)
        else:
            self._desk.__exit__()
            self._finish(value)

    def _value(self, made: Decision | Answer, again: bool) -> Any:
        if isinstance(made, Decision):
            return self._fast.decided(self._caller, self._head.loop, made, again)
        return self._fast.taken(self._caller, self._head.loop, made)

    def _finish(self, value: Any) -> None:
        self._fast.tell(self._head, self._caller, value, self._told, self._began)


_UNUSUAL = {b"idempotency-key", b"transfer-encoding", b"expect", b"upgrade", b"connection", b"content-encoding"}
"""Headers of requests that do not come twice, or that take more than to read their body"""


def outcome(answer: Answer) -> str:
    """What became of feedback, in a word."""
    return "late" if answer.late and answer.status == "applied" else answer.status


def accepted(answer: Answer) -> dict[str, Any]:
    """An answer as an object. Problem "rejected", with all of it, where that is what it says."""
    if answer.status == "rejected":
        raise Problem("rejected", answer.reason or "rejected", answer=_fields(answer))
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
            raise ValueError(f"{name}: wanted it once, got it twice")
        given[name] = _parameter(name, text)
    return given


def from_numbers(body: bytes | memoryview, parameters: dict[str, Any], columns: int) -> dict[str, Any]:
    """A request whose candidates are raw numbers, and whose other fields are `parameters`."""
    given = parameters.copy()
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
        if not text.isascii() or not text.isdecimal() or len(text) > 19:
            raise ValueError(f"show: wanted a whole number above 0, got {describe(text)}")
        return int(text)
    if name == "context":
        try:
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ValueError(f"context: wanted JSON, got {describe(text)}: {error}") from None
    raise ValueError(f"query: wanted {', '.join(PARAMETERS)}, got {describe(name)}")
