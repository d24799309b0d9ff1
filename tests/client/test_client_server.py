"""The client and the real server: every method, and that nothing false is learned where the two lose each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import faulty
from faulty import Connected, Faulty, Request, Response, hurried
from heedful import Loop
from heedful.results.report import Arm, Counts
from loops import bits, bits_from_scratch, rows, small_loop
from processes import until

api = pytest.importorskip("heedful.server.app")


class Behind:
    """The real application, asked by a server that misbehaves: what `Faulty` wants as its answer."""

    def __init__(self, folder: Path) -> None:
        self._aio = asyncio.new_event_loop()
        threading.Thread(target=self._aio.run_forever, daemon=True).start()
        self._app: Any = self._do(self._made(folder))

    @staticmethod
    async def _made(folder: Path) -> Any:
        app = api.create_app(folder)
        await app.service.start()
        return app

    def __call__(self, request: Request) -> Response:
        return self._do(self._asked(request))

    async def _asked(self, request: Request) -> Response:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "method": request.method,
            "path": unquote(request.path),
            "raw_path": request.path.encode(),
            "query_string": request.query.encode(),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "headers": [(name.encode(), value.encode()) for name, value in request.headers.items()],
        }
        sent: list[Any] = []
        bodies = iter([{"type": "http.request", "body": request.body}])

        async def receive() -> Any:
            return next(bodies, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        headers = {name.decode().title(): value.decode() for name, value in sent[0]["headers"]}
        return Response(sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]), headers)

    def _do(self, coroutine: Any) -> Any:
        found: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._aio)
        return found.result(20)

    def close(self) -> None:
        self._do(self._app.service.stop())
        self._aio.call_soon_threadsafe(self._aio.stop)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_loop(tmp_path / "cars.heedful", control=0.5, exploration=0.0).close()
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Faulty]:
    behind = Behind(folder)
    made = Faulty(behind)
    yield made
    made.close()
    behind.close()


NAMES = [f"i{j}" for j in range(6)]


def decisions(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """(arm, what was shown) of every decision in the log, by id."""
    with Loop.open(folder / "cars.heedful") as loop:
        known = {e.id: loop.projection.find_decision(e.id) for e in loop.projection.log.events(kinds=["decision"])}
        assert bits(loop) == bits_from_scratch(loop)
        return {id: (k.record.arm, [k.names[j] for j in k.record.shown]) for id, k in known.items() if k is not None}


def lessons(folder: Path) -> list[tuple[str, str]]:
    """(event, decision) of all that was learned from, in order."""
    with Loop.open(folder / "cars.heedful") as loop:
        return [(event.id, known.id) for event, known, _ in loop.projection.lessons()]


def test_decide_never_fails_a_page(connect: Connected, server: Faulty, folder: Path) -> None:
    """Also where the server is away, and then feedback teaches as much."""
    cars = connect(server.url).loop("cars")
    d = cars.decide(["i3", "i5", "999"])
    assert (set(d.shown), d.unknown, d.fallback) == ({"i3", "i5", "999"}, ("999",), False)
    assert cars.feedback(d, clicks=["999"]).status == "applied"
    assert cars.decide([]).shown == ()
    assert sorted(cars.decide(["i3", "i3", "i5"]).shown) == ["i3", "i5"]
    hits = [{"_id": "i3", "_score": 2.0, "_source": {"f0": 1}}, {"_id": "999", "_score": 5.0, "_source": {"f0": 1}}]
    assert cars.decide(hits).shown == cars.rank(hits) == ("999", "i3")
    assert cars.rank(["i3", "999"], strict=False) == ("i3", "999")
    for among in (["i3", "999"], [], ["i3", "i3"]):
        with pytest.raises((ValueError, LookupError), match="candidates"):
            cars.decide(among, strict=True)
    away = connect(server.url, timeout=0.1).loop("cars")
    for among, shown in ((["i3", "999", "i3"], ("i3", "999")), (hits, ("999", "i3"))):
        server.faults += [faulty.hang]
        d = away.decide(among)
        assert (d.fallback, d.shown) == (True, shown)
        assert away.feedback(d, better=["i3"]).status == "applied"
        assert decisions(folder)[d.id][0] == "imported"
    server.faults += [faulty.hang]
    assert away.decide([]).shown == ()


def test_pages_go_on_also_where_one_fell_back(connect: Connected, server: Faulty, folder: Path) -> None:
    """The server is told of a page that fell back before it decides the next one; a fallback goes on by itself."""
    cars = connect(server.url).loop("cars")
    first = cars.decide(NAMES, person="p", show=2)
    second = cars.decide(NAMES, person="p", show=2, after=first.id)
    third = cars.decide(NAMES, person="p", after=second)
    assert sorted(first.shown + second.shown + third.shown) == sorted(NAMES)
    assert third.seq is not None
    with pytest.raises(ValueError, match="after: expected a decision for the same person"):
        cars.decide(NAMES, person="q", after=first)
    away = connect(server.url, timeout=0.2).loop("cars")
    server.faults += [faulty.hang]
    first = away.decide(NAMES, person="p", show=2)
    assert (first.fallback, first.shown) == (True, ("i0", "i1"))
    server.faults += [faulty.hang]
    second = away.decide(NAMES, person="p", show=2, after=first)
    assert (second.fallback, second.shown) == (True, ("i2", "i3"))
    slow = connect(server.url).loop("cars")
    third = slow.decide(NAMES, person="p", after=first)
    assert not third.fallback
    assert sorted(third.shown) == ["i2", "i3", "i4", "i5"]
    assert decisions(folder)[first.id] == ("imported", ["i0", "i1"])
    server.faults += [faulty.hang]
    nothing = away.decide([], person="p")
    assert away.decide(NAMES, person="p", after=nothing).shown == away.decide(NAMES, person="p").shown


# ---------------------------------------------------------------------------- where the two lose each other


@pytest.mark.parametrize("fault", [faulty.late, faulty.later, faulty.half, faulty.hang])
def test_feedback_on_a_fallback_teaches_about_what_was_shown(
    connect: Connected, server: Faulty, folder: Path, fault: Any
) -> None:
    cars = connect(server.url, timeout=0.1).loop("cars")
    prior = {name: float(j) for j, name in enumerate(NAMES)}
    server.faults += [fault]
    d = cars.decide(NAMES, prior=prior, person="p1", show=4, id="d1")
    assert (d.fallback, d.shown) == (True, ("i5", "i4", "i3", "i2"))
    # What the server decided, or decides while this goes on, is another decision, whatever it is.
    a = cars.feedback(d, better=["i2"], id="e1")
    assert (a.status, a.learned) == ("applied", True)
    assert cars.feedback(d, clicks=["i5"], id="e1").status == "rejected"  # the id is spent
    until(lambda: fault is not faulty.later or "d1" in decisions(folder))
    found = decisions(folder)
    assert found.pop(d.id) == ("imported", list(d.shown))
    assert found.keys() <= {"d1"}
    assert lessons(folder) == [("e1", d.id)]


@pytest.mark.slow
def test_a_late_decision_stays_unanswered_in_both_arms(connect: Connected, server: Faulty, folder: Path) -> None:
    """Where the control arm agrees with what was shown, feedback must not go there: it would go to one arm only."""
    cars = connect(server.url, timeout=0.05, failures=1000).loop("cars")
    server.otherwise = faulty.late
    ds = [cars.decide(NAMES, id=f"d{j}") for j in range(10)]
    ids = {f"d{j}" for j in range(10)}

    def all_arrived() -> bool:  # the last of them may still be under way, or never left
        missing = ids - decisions(folder).keys()
        assert all(cars.decide(NAMES, id=id).fallback for id in missing)
        return not missing

    until(all_arrived, 120.0)
    server.otherwise = faulty.well
    assert all(cars.feedback(d, clicks=["i1"]).status == "applied" for d in ds)
    late = [decisions(folder)[id] for id in sorted(ids)]
    assert {arm for arm, _ in late} == {"control", "learned"}
    assert any(shown == NAMES for _, shown in late)  # some would have agreed
    assert {decision for _, decision in lessons(folder)} == {d.id for d in ds}


def test_the_bare_id_of_a_fallback_is_refused_where_nobody_told(
    connect: Connected, server: Faulty, folder: Path
) -> None:
    server.faults += [faulty.late]
    d = connect(server.url, timeout=0.1).loop("cars").decide(NAMES)
    answer = connect(server.url).loop("cars").feedback(d.id, clicks=["i1"])  # another process, which has but the id
    assert (answer.status, answer.reason) == ("rejected", f"decision {d.id} is not in the log")
    assert lessons(folder) == []


def test_asking_again_after_a_fallback_is_another_page(connect: Connected, server: Faulty, folder: Path) -> None:
    cars = connect(server.url).loop("cars")
    server.faults += [faulty.hang]
    with hurried(cars):
        first = cars.decide(NAMES, id="d1")
    again = cars.decide(NAMES, id="d1")
    assert (first.fallback, again.fallback, again.id) == (True, False, "d1")
    assert cars.feedback(again, better=["i5"], id="e1").learned
    assert cars.feedback(first, better=["i4"], id="e2").learned
    assert lessons(folder) == [("e1", "d1"), ("e2", first.id)]


def test_what_a_forgotten_person_was_shown_is_not_told(connect: Connected, server: Faulty, folder: Path) -> None:
    client = connect(server.url, timeout=0.1)
    cars = client.loop("cars")
    server.faults += [faulty.hang, faulty.hang]
    hers, his = cars.decide(NAMES, person="p1"), cars.decide(NAMES, person="p2")
    cars.forget("p1")
    assert client.tell_fallbacks() == 1
    assert cars.feedback(hers, better=["i4"]).status == "rejected"
    assert decisions(folder).keys() == {his.id}


def test_telling_again_after_an_item_changed(connect: Connected, server: Faulty, folder: Path) -> None:
    cars = connect(server.url, timeout=0.1).loop("cars")
    server.faults += [faulty.hang]
    d = cars.decide(NAMES)
    assert cars.tell(d)
    cars.put_items([{"id": "i0", "f0": 9.0, "f1": 9.0, "f2": 9.0, "f3": 9.0}])
    other = connect(server.url).loop("cars")
    assert other.feedback(d, better=["i4"]).status == "applied"
    cars.withdraw("i1")
    assert connect(server.url).loop("cars").feedback(d, better=["i3"]).status == "applied"
    server.faults += [faulty.hang]
    never = connect(server.url, timeout=0.1).loop("cars").decide(NAMES, id="never-told")
    told = connect(server.url).loop("cars").feedback(never, better=["i3"])
    assert (told.status, told.learned) == ("applied", True)  # i1 was shown all the same, and is unknown


@pytest.mark.parametrize("fault", [faulty.cut, faulty.half, faulty.late, faulty.deaf])
def test_feedback_counts_once_whatever_becomes_of_its_answer(
    connect: Connected, server: Faulty, folder: Path, fault: Any
) -> None:
    cars = connect(server.url, timeout=0.5, patience=3.0).loop("cars")
    d = cars.decide(NAMES, id="d1")
    server.faults += [fault]
    answer = cars.feedback(d, better=["i5"])
    assert answer.status == ("applied" if fault is faulty.deaf else "duplicate")
    assert answer.seq is not None
    assert lessons(folder) == [(answer.event, "d1")]
    assert len({request.value["id"] for request in server.seen[1:]}) == 1


def test_an_event_as_one_object_counts_once_under_the_id_beside_it(
    connect: Connected, server: Faulty, folder: Path
) -> None:
    cars = connect(server.url).loop("cars")
    d = cars.decide(NAMES)
    event = {"decision": d.id, "clicks": ["i2"]}
    assert [cars.feedback(event, id="e1").status for _ in range(2)] == ["applied", "duplicate"]
    assert cars.feedback({**event, "id": "e2"}, id="e1").event == "e2"  # as heedful.Loop has it
    with pytest.raises(ValueError, match="time: "):
        cars.feedback(event, time="one day")
    assert lessons(folder) == [("e1", d.id), ("e2", d.id)]


def test_a_batch_counts_once(connect: Connected, server: Faulty, folder: Path) -> None:
    cars = connect(server.url, timeout=2.0, patience=3.0).loop("cars")
    ds = [cars.decide(NAMES) for _ in range(5)]
    server.faults += [faulty.cut]
    answers = cars.feedback_many({"decision": d, "better": ["i4"]} for d in ds)
    assert [answer.status for answer in answers] == ["duplicate"] * 5
    assert [decision for _, decision in lessons(folder)] == [d.id for d in ds]


def test_a_deferred_fallback(connect: Connected, server: Faulty, folder: Path) -> None:
    cars = connect(server.url).loop("cars")
    server.faults += [faulty.hang]
    with hurried(cars):
        d = cars.decide(NAMES, deferred=True)
    assert cars.feedback(d, better=["i5"]).status == "rejected"
    assert cars.activate(d).status == "applied"
    assert cars.feedback(d, better=["i5"]).status == "applied"
    d = cars.decide(NAMES, deferred=True, id="later")
    assert cars.feedback(d, better=["i5"]).reason == "decision later was deferred and never activated: it was not shown"
    assert cars.activate(d).status == "applied"
    assert cars.feedback(d, better=["i5"]).status == "applied"


def test_a_loop_that_was_made_knows_the_column_of_names_that_was_found(connect: Connected, server: Faulty) -> None:
    client = connect(server.url)
    bikes = client.create("bikes", [{"sku": "city", "gears": 3}, {"sku": "race", "gears": 22}])
    assert bikes.identifier == client.loop("bikes").about().identifier == "sku"
    server.faults.append(faulty.with_(Response(502)))
    d = bikes.decide([{"sku": "new", "gears": 1}, {"sku": "old", "gears": 5}])
    assert (d.fallback, d.shown) == (True, ("new", "old"))
    assert bikes.feedback(d, clicks=["old"]).status == "applied"


def test_chains_with_a_fallback(connect: Connected, server: Faulty) -> None:
    cars = connect(server.url).loop("cars")
    first = cars.decide(NAMES[:3], person="p")
    server.faults += [faulty.hang]
    with hurried(cars):
        later = cars.decide(NAMES[3:], person="p")
    assert cars.feedback(first, clicks=["i5"], chain=[later]).status == "applied"
    server.faults += [faulty.hang]
    with hurried(cars):
        late = cars.decide(NAMES[:3], person="p")
    after = cars.decide(NAMES[3:], person="p")
    assert "came before the first" in cars.feedback(late, clicks=["i5"], chain=[after]).reason


# ---------------------------------------------------------------------------- every method


def test_all_of_it(connect: Connected, server: Faulty, folder: Path) -> None:
    heedful = connect(server.url)
    assert heedful.healthy()
    assert heedful.loops() == ["cars"]
    lamps = heedful.create(
        "lamps",
        rows(4, 2),
        learner="second-order:epsilon=0.1",
        settings={"control": 0.0, "exploration": 0.0},
        identifier="id",
        kinds={"f0": "number", "f1": "number"},
    )
    with pytest.raises(FileExistsError):
        heedful.create("lamps", rows(4, 2))
    assert heedful.loops() == ["cars", "lamps"]
    about = lamps.about()
    assert (about.name, about.learner, about.items) == ("lamps", "second-order:epsilon=0.1", 4)
    assert about.settings["control"] == 0.0
    assert len(about.caveats) > 0
    assert lamps.items() == ["i0", "i1", "i2", "i3"]
    assert lamps.put_items([*rows(4, 2), {"id": "a/b", "f0": 0.5, "f1": 0.25}]).put == 1
    assert lamps.withdraw("a/b")
    assert not lamps.withdraw("a/b")
    for odd in ("..", "ü?&", "a%2Fb"):
        lamps.put_items([{"id": odd, "f0": 0.5, "f1": 0.25}])
        assert lamps.withdraw(odd), odd
    d = lamps.decide(person="p1", show=2)
    a = lamps.feedback(d, clicks=[d.shown[1]])
    assert (a.status, a.learned) == ("applied", True)
    assert tuple(lamps.weights()) == about.names
    assert lamps.weights("p1") == lamps.weights()
    seen = lamps.about().events
    assert lamps.rank() == lamps.rank(["i0", "i1", "i2", "i3"], person="p1") == lamps.decide(id="alone").shown
    assert lamps.rank(features=[[0.0, 1.0], [1.0, 0.0]], prior=[9.0, 1.0]) == ("0", "1")
    assert lamps.about().events == seen | {"decision": 2}  # the one that was asked for, and no other
    why = lamps.why("alone")
    assert (why.place, [moved.event for moved in why.events]) == (1, [a.event])
    assert sum(part.lead for part in why.features) == pytest.approx(why.lead)
    item = lamps.why("alone", "i3", top=1)
    assert (item.item, item.events_by, [each.event for each in item.events]) == ("i3", "leave-one-out", [a.event])
    assert sum(part.counts for part in item.features) == pytest.approx(item.score)
    report = lamps.report()
    assert (report.decisions, report.whole, report.learned, report.simulation) == (2, True, Arm(2, 1, 0.5), None)
    assert (report.series[0].learned, report.feedback) == (Arm(2, 1, 0.5), Counts(1, 0, 0, 0, 0))
    assert lamps.report(1).learned == Arm(1, 0, None)
    evaluated = lamps.evaluate("posterior:swap=0").learners[-1]
    assert (evaluated.learner, evaluated.lessons) == ("posterior:swap=0", 1)
    before = lamps.weights()
    order = lamps.decide()
    b = lamps.feedback(order, better=[order.shown[-1]])
    assert lamps.weights() != before
    assert lamps.undo(b).status == "applied"
    assert lamps.undo(b).status == "duplicate"
    assert lamps.weights() == before
    back = lamps.rollback(b.version, id="back", reason="it was right")
    assert (back.answer.status, back.to, back.left_out, back.restored) == ("applied", b.version, 0, 1)
    assert lamps.rollback(b.version, id="back", reason="it was right").answer.status == "duplicate"
    assert lamps.weights() != before
    assert lamps.undo(b).status == "applied"
    assert lamps.weights() == before
    assert lamps.undo("never").reason == "feedback never is not in the log"
    recorded = lamps.record(["i0", "i1"], ["i1"], probability=0.5, person="p2", time="2026-01-31T12:00:00Z", id="r1")
    assert (recorded.id, recorded.arm, recorded.probability) == ("r1", "imported", 0.5)
    assert lamps.feedback({"decision": "r1", "clicks": ["i1"]}).late
    raw = lamps.decide(features=[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], prior=[1.0, 2.0, 3.0], show=2, context={})
    assert set(raw.shown) <= {"0", "1", "2"}
    objects = lamps.decide([{"id": "x", "f0": 1.0, "f1": 0.0}, {"id": "y", "f0": 0.0, "f1": 1.0}])
    assert set(objects.shown) == {"x", "y"}
    gone = lamps.forget("p1")
    assert gone.events == 2
    assert gone.exports == ()
    with pytest.raises(LookupError):
        heedful.loop("boats").about()
    with pytest.raises(LookupError):
        lamps.why("never")
    with pytest.raises(LookupError, match="not among the candidates"):
        lamps.why("alone", "never")
    with pytest.raises(ValueError, match="candidates"):
        lamps.decide(["never"], strict=True)
    answers = lamps.feedback_many([{"decision": "r1", "clicks": ["i1"]}, {"decision": "r1"}, "x"])
    assert [answer.status for answer in answers] == ["applied", "rejected", "rejected"]
    events = list(lamps.events(follow=False, kinds=["feedback"]))
    assert {event["kind"] for event in events} == {"feedback"}
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert list(lamps.events(after=events[-1]["seq"], follow=False, kinds=["feedback"])) == []


def test_what_is_raw_and_fell_back_can_be_told(connect: Connected, server: Faulty, folder: Path) -> None:
    cars = connect(server.url, timeout=0.1).loop("cars")
    server.faults += [faulty.hang]
    d = cars.decide(features=[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]], prior=[1, 2], person="p")
    assert d.shown == ("1", "0")
    assert cars.feedback(d, better=["0"]).learned


def test_events_come_as_they_happen(connect: Connected, folder: Path) -> None:
    from heedful.server.main import served

    with served(folder) as url:
        cars = connect(url).loop("cars")
        events = cars.events(kinds=["decision"], after=cars.about().version)
        d = cars.decide(NAMES)
        assert next(events)["id"] == d.id
        other = connect(url).loop("cars").decide(NAMES)
        assert next(events)["shown"] == list(other.shown)
        events.close()
