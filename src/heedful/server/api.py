"""The handlers of the routes, except those for decisions and feedback; `heedful.server.routes` has the table of
routes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec

from starlette.responses import Response

from heedful.core.validation import describe
from heedful.io import events_of_person
from heedful.learners.registry import is_own, is_packaged
from heedful.loop import Loop
from heedful.loop.retraction import Unerased
from heedful.results.answers import Answer, plain
from heedful.server import codecs
from heedful.server.auth import refuse_scope
from heedful.server.decisions import answer_fields, outcome
from heedful.server.events import stream
from heedful.server.loops import MAIN, loop_name
from heedful.server.manifest import create_loop, naming
from heedful.server.request import ApiRequest
from heedful.server.schema import MOST_LEARNERS

P = ParamSpec("P")

# ---------------------------------------------------------------------------- loops


async def loops(request: ApiRequest) -> object:
    return {"loops": await request.service.loops.list_names(request.caller.tenant)}


async def new_loop(request: ApiRequest) -> object:
    body = request.body
    name = loop_name("name", body.get("name"))
    if body.get("learner") is not None:
        check_packaged(body["learner"])
    fields = {key: value for key, value in body.items() if key != "name"}
    worker = await request.service.loops.create(request.caller.tenant, name, partial(create_loop, fields))
    with worker:
        return await worker.run(about, worker.loop, name)


async def one_loop(request: ApiRequest) -> object:
    return await request.worker.run(about, request.loop, request.path["loop"])


def about(loop: Loop, name: str) -> dict[str, Any]:
    """Return what GET /v1/loops/{loop} answers for the open `loop`, called `name`: its fields, by name.

    They are the learner, the version of the model, the names of features, the numbers of items and of events by kind,
    the settings, and warnings (caveats, notes, values that no encoding has)."""
    loop.projection.look()  # another process may have taught it
    manifest = loop.manifest
    return {
        "name": name,
        "learner": manifest.learner,
        "identifier": manifest.encoding.identifier or "id",
        "version": loop.version,
        "features": manifest.encoding.size,
        "names": loop.feature_names,
        "items": len(loop.projection.catalogue.current),
        "events": loop.projection.log.counts(),
        "settings": manifest.settings,
        "caveats": loop.caveats,
        "notes": [note.replace(f"{loop.path}/", "") for note in loop.notes],
        "unknown": dict(loop.unknown),
        **({} if manifest.query is None else {"query_features": list(manifest.query.places)}),
        **loop.projection.interaction.facts(),
    }


async def weights(request: ApiRequest) -> object:
    loop, person = request.loop, request.query.get("person")

    def read_weights() -> object:
        loop.projection.look()  # another process may have taught it
        weights, spreads = loop.weights_of(person), loop.spreads_of(person)
        return {"version": loop.version, "weights": plain(weights), "spreads": plain(spreads)}

    return await request.worker.read(read_weights)


# ---------------------------------------------------------------------------- items


async def put_items(request: ApiRequest) -> object:
    rows = codecs.check_list(request.body, codecs.BATCH * 10)
    with naming("items"):
        return plain(await request.worker.run(request.loop.put_items, rows))


async def items(request: ApiRequest) -> object:
    loop, start, limit = request.loop, request.query["start"], request.query["limit"]

    def read_page() -> object:
        loop.projection.look()  # another process may have put some
        names = loop.items
        return {"items": names[start : start + limit], "total": len(names)}

    return await request.worker.read(read_page)


async def withdraw(request: ApiRequest) -> object:
    return {"withdrawn": await request.worker.run(request.loop.withdraw, request.path["item"])}


# ---------------------------------------------------------------------------- decisions and what came of them


async def record(request: ApiRequest) -> object:
    body = require(request.body, "candidates", "shown", "id")
    work = partial(request.loop.record, **body)
    decision, again = await request.worker.decide_in_thread(work, body, request.large)
    request.note("decision", "duplicate" if again else decision.arm)
    if decision.unknown and not again:
        request.note("candidate", "unknown", len(decision.unknown))
    return decision.plain()


def require(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return `body`; raise ValueError if it lacks one of the fields `names`."""
    for name in names:
        if body.get(name) is None:
            raise ValueError(f"{name}: expected, got none")
    return body


async def answered(
    request: ApiRequest, kind: str, work: Callable[P, Answer], /, *args: P.args, **kwargs: P.kwargs
) -> object:
    """Return the answer to the event of this `kind` that `work` writes, as JSON fields; Problem if it is rejected."""
    answer = await request.worker.run(work, *args, **kwargs)
    request.note(kind, outcome(answer))
    return answer_fields(answer)


async def rank(request: ApiRequest) -> object:
    def ranking() -> object:
        request.loop.projection.look()  # another process may have taught it
        return plain(request.loop.ranking(**request.body))

    async with request.worker.turn(not request.large and request.worker.is_costly(request.body)):
        return await request.worker.read(ranking)


async def activate(request: ApiRequest) -> object:
    body = require(request.body, "decision")
    return await answered(request, "activate", request.loop.activate, body["decision"], time=body.get("time"))


async def undo(request: ApiRequest) -> object:
    body = require(request.body, "event")
    if "admin" not in request.caller.scopes and await request.worker.read(is_rule, request.loop, body["event"]):
        refuse_scope(request.caller, "admin")
    return await answered(request, "undo", request.loop.undo, body["event"], id=body.get("id"))


def is_rule(loop: Loop, event: object) -> bool:
    """Return whether `event` is the id of a correction of style, which takes a key with the scope `admin`."""
    log = loop.projection.log
    return isinstance(event, str) and log.find("feedback", event) is None and log.find("style", event) is not None


async def rollback(request: ApiRequest) -> object:
    body = require(request.body, "to")
    back = await request.worker.run(
        request.loop.rollback, body["to"], id=body.get("id"), reason=body.get("reason") or ""
    )
    request.note("rollback", outcome(back.answer))
    return plain(back) | {"answer": answer_fields(back.answer)}


async def person(request: ApiRequest) -> object:
    return plain(await request.worker.read(events_of_person, request.loop, request.path["person"]))


async def forget(request: ApiRequest) -> object:
    try:
        gone = await request.worker.run(request.loop.forget, require(request.body, "person")["person"])
    except Unerased as error:  # somebody else is reading: it is tried again until nobody is
        gone = error.forgotten
        request.worker.unerased = time.monotonic()
    request.note("forget", "applied")
    return plain(gone)


async def why(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.why, request.path["id"], **request.query))


async def report(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.report, **request.query))


async def health(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.health, **request.query))


async def standing(request: ApiRequest) -> object:
    return plain(await request.worker.read(request.loop.standing, **request.query))


# ---------------------------------------------------------------------------- style


async def style(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.style_of, **request.query))


async def correct_style(request: ApiRequest) -> object:
    body = dict(request.body)
    person = body.pop("person", None)
    return await answered(request, "style", request.loop.correct_style, person, **body)


# ---------------------------------------------------------------------------- trying another learner


async def start_experiment(request: ApiRequest) -> object:
    body = require(request.body, "learner")
    check_known(request.loop, body["learner"])
    return await answered(request, "experiment", request.loop.start_experiment, **body)


async def stop_experiment(request: ApiRequest) -> object:
    return await answered(request, "stop", request.loop.stop_experiment, id=request.body.get("id"))


async def experiment(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.experiment))


async def plan_experiment(request: ApiRequest) -> object:
    return plain(await request.analyse(Loop.plan_experiment, **request.query))


async def promote(request: ApiRequest) -> object:
    body = dict(request.body)
    if body.get("learner") is not None:
        check_known(request.loop, body["learner"])
    made = await request.worker.run(request.loop.promote, **body)
    request.note("promote", outcome(made.answer))
    return plain(made) | {"answer": answer_fields(made.answer)}


async def promotions(request: ApiRequest) -> object:
    rows = await request.analyse(Loop.promotions)
    return {"promotions": [plain(row) for row in rows]}


async def evaluation(request: ApiRequest) -> object:
    learners, alpha = request.body.get("learners", []), request.body.get("alpha", 0.05)
    if not isinstance(learners, list) or len(learners) > MOST_LEARNERS:
        raise ValueError(f"learners: expected a list of at most {MOST_LEARNERS} names, got {describe(learners)}")
    for name in learners:
        check_known(request.loop, name.partition("@")[0] if isinstance(name, str) else name)
    return plain(await request.analyse(Loop.evaluate, *learners, alpha=alpha))


def check_packaged(learner: object) -> str:
    """Return `learner` if it names one of the package; else raise ValueError: nobody may name code to run."""
    if not isinstance(learner, str) or len(learner) > 500 or not is_packaged(learner.partition(":")[0]):
        raise ValueError(f"learner: expected one of heedful's, such as posterior, got {describe(learner)}")
    return learner


def check_known(loop: Loop, learner: object) -> str:
    """Return `learner` if it names one to try in `loop`: a learner of the package, or one of the user's own from a file
    that the server was started with. Otherwise raise ValueError."""
    if isinstance(learner, str) and len(learner) <= 500 and is_own(learner) and loop.projection.is_named(learner):
        return learner
    return check_packaged(learner)


# ---------------------------------------------------------------------------- the server


TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of metrics for Prometheus."""


async def metrics(request: ApiRequest) -> object:
    tenant = request.caller.tenant
    text = await request.service.metrics.text(None if tenant == MAIN else tenant)
    return Response(text, headers={"cache-control": "no-store"}, media_type=TEXT)


async def audit(request: ApiRequest) -> object:
    acts, query = request.service.audit.newest, request.query
    turns, pool, tenant = request.service.turns, request.service.pool, request.caller.tenant
    return {"acts": plain(await turns.run(pool, tenant, "long", acts, tenant, query["before"], query["limit"]))}


async def events(request: ApiRequest) -> object:
    return await stream(request.service, request.caller, request.worker, request.headers, **request.query)
