"""The worker alone: many at once on one event loop are as if one by one; nobody is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop, Settings, infer
from heedful.loop.decide import DecisionRequest
from heedful.loop.pending import AGAIN
from heedful.loop.replay import replay
from heedful.server import loop_worker as module
from heedful.server.analysts import Analysts
from heedful.server.loop_worker import LoopWorker
from heedful.server.threads import Turns
from loops import bits, bits_from_scratch, small_loop

NAMES = [f"i{n}" for n in range(12)]


@asynccontextmanager
async def desk_of(loop: Loop) -> AsyncIterator[LoopWorker]:
    with ThreadPoolExecutor(4) as pool:
        worker = LoopWorker(loop, pool, Analysts((), pool), Turns(), "main")
        yield worker
        while worker.busy:
            await asyncio.sleep(0.001)


def at_desk(loop: Loop, work: Callable[[LoopWorker], Awaitable[Any]]) -> Any:
    """What `work` gives with a worker for that loop."""

    async def run() -> Any:
        async with desk_of(loop) as worker:
            return await asyncio.wait_for(work(worker), 30)

    return asyncio.run(run())


def in_order(loop: Loop) -> list[Any]:
    """What is in the log, without the time that it took."""
    return [event._replace(time=0) for event in loop.projection.log.events()]


def threads_of(worker: LoopWorker) -> list[str]:
    """The threads in which a loop is asked from now on, as they come."""
    found: list[str] = []
    for name in ("decide", "feedback", "feedback_many"):
        was = getattr(worker.loop, name)

        def noted(*args: Any, _was: Any = was, _name: str = name, **more: Any) -> Any:
            found.append(f"{_name} {threading.current_thread() is not threading.main_thread()}")
            return _was(*args, **more)

        setattr(worker.loop, name, noted)
    return found


# ---------------------------------------------------------------------------- as if one by one


@pytest.mark.parametrize("learner", ["posterior:swap=0", "posterior", "second-order"])
def test_many_decisions_at_once_are_those_one_by_one(tmp_path: Path, learner: str) -> None:
    asked = [
        {"id": f"d{n}", "person": f"p{n % 3}", "show": 4, "candidates": NAMES[n % 5 :], "prior": [0.1] * (12 - n % 5)}
        for n in range(100)
    ]
    settings: dict[str, Any] = {"control": 0.2, "shrink": 2.0, "seed": 5}
    with small_loop(tmp_path / "one", learner, **settings) as loop:
        one_by_one = [loop.decide(**each) for each in asked]  # type: ignore[arg-type]
        log = in_order(loop)[1:]
    with small_loop(tmp_path / "many", learner, **settings) as loop:

        async def work(worker: LoopWorker) -> Any:
            answers = await asyncio.gather(*(worker.decide(each) for each in asked))
            assert worker.groups == 1  # and one commit for all of them
            assert worker.committed == 100
            return answers

        assert at_desk(loop, work) == one_by_one
        assert in_order(loop)[1:] == log


@pytest.mark.parametrize("shrink", [0.0, 3.0])
def test_many_answers_at_once_are_those_one_by_one(tmp_path: Path, shrink: float) -> None:
    events = [{"decision": f"d{n % 20}", "id": f"e{n}", "clicks": [f"i{n % 5 + 1}"]} for n in range(100)]
    events += events[10:30]  # repeated

    def begun(path: Path) -> Loop:
        loop = small_loop(path, control=0.0, shrink=shrink)
        for n in range(20):
            loop.record(NAMES, NAMES[:8], id=f"d{n}", person=f"p{n % 3}", time=1_000_000)
        return loop

    with begun(tmp_path / "one") as loop:
        one_by_one = [loop.feedback(each) for each in events]
        log, whole = in_order(loop)[1:], bits(loop)
    with begun(tmp_path / "many") as loop:
        many = at_desk(loop, lambda worker: asyncio.gather(*(worker.feedback(each) for each in events)))
        assert [each._replace(version=0) for each in many] == [each._replace(version=0) for each in one_by_one]
        assert in_order(loop)[1:] == log
        assert bits(loop) == whole == bits_from_scratch(loop)
    with begun(tmp_path / "batch") as loop:  # a batch beside single events: in the order in which they came

        async def work(worker: LoopWorker) -> Any:
            first, second, *others = await asyncio.gather(
                worker.feedback_many(events[:50]),
                worker.feedback_many(events[50:100]),
                *map(worker.feedback, events[100:]),
            )
            assert worker.groups == 1
            return first + second + others

        assert [(a.status, a.seq) for a in at_desk(loop, work)] == [(a.status, a.seq) for a in one_by_one]
        assert in_order(loop)[1:] == log
        assert bits(loop) == whole


def test_deciding_and_answering_at_once_is_the_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that decide and answer for themselves: every decision is the one that the model of its version makes."""

    async def one(worker: LoopWorker, i: int) -> None:
        for n in range(12):
            d = await worker.decide({"id": f"d{i}-{n}", "person": f"p{i % 3}"})
            a = await worker.feedback({"decision": d.id, "id": f"e{i}-{n}", "clicks": [d.shown[3]]})
            assert a.status == "applied"
            assert a.learned
            assert a.seq is not None
            assert a.seq > d.seq
            again = await worker.decide({"id": f"e{i}-{n}-next", "person": f"p{i % 3}"})
            assert again.version >= a.seq, "what was answered is not there for the next request"

    with small_loop(tmp_path / "loop", control=0.1, shrink=2.0, snapshot_every=25) as loop:

        async def all_of_them(worker: LoopWorker) -> None:
            await asyncio.gather(*(one(worker, i) for i in range(12)))
            assert worker.groups < worker.committed / 4

        at_desk(loop, all_of_them)
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.verify() == []
        # Each by itself: what the model of its version, folded from the first event, makes of the same request.
        decisions = [event for event in loop.projection.log.events() if event.kind == "decision"]
        versions = sorted({event.version for event in decisions})
        assert 10 < len(versions) < len(decisions)
        for version in versions:
            model = replay(loop.projection, version).model
            state = loop.projection.published._replace(version=version, shared=model.shared, people=model.people)
            with monkeypatch.context() as patched:
                patched.setattr(loop.projection, "reading", lambda person, state=state: (state, state.view(person)))
                for event in decisions:
                    if event.version == version:
                        request = loop.decider.parse(None, None, None, None)
                        draft = loop.decider.propose(DecisionRequest(event.id, request, event.subject, False))
                        assert draft.event._replace(seq=event.seq, time=event.time) == event


def test_the_order_of_the_log_is_the_order_of_learning(tmp_path: Path) -> None:
    """The log of many at once, its events given one by one to another loop: the same model, bit for bit."""
    with small_loop(tmp_path / "loop", control=0.0, shrink=2.0) as loop:

        async def one(worker: LoopWorker, i: int) -> None:
            for n in range(10):
                record = {"id": f"d{i}-{n}", "person": f"p{i % 3}"}
                d = await worker.decide(record)
                await worker.feedback({"decision": d.id, "id": f"e{i}-{n}", "clicks": [d.shown[(i + n) % 5 + 1]]})

        at_desk(loop, lambda worker: asyncio.gather(*(one(worker, i) for i in range(10))))
        whole, events = bits(loop), list(loop.projection.log.events())
        shown = {e.seq: (e.id, e.subject, loop.projection.find_decision(e.id)) for e in events if e.kind == "decision"}
        lessons = [(e.id, e.target, loop.projection.log.at(e.seq)) for e in events if e.kind == "feedback"]
    with small_loop(tmp_path / "again", control=0.0, shrink=2.0) as again:
        for event in events:
            if event.kind == "decision":
                _, person, known = shown[event.seq]
                assert known is not None
                names = [known.names[j] for j in known.record.shown]
                assert again.record(NAMES, names, id=event.id, person=person).seq == event.seq
            elif event.kind == "feedback":
                [target] = [id for seq, (id, _, _) in shown.items() if seq == event.target]
                i, n = map(int, event.id[1:].split("-"))
                clicked = again.projection.find_decision(target)
                assert clicked is not None
                name = clicked.names[clicked.record.shown[(i + n) % 5 + 1]]
                assert again.feedback(target, id=event.id, clicks=[name]).seq == event.seq
        assert len(lessons) == 100
        assert bits(again) == whole


def test_the_same_id_at_once_is_one_event(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            same = await asyncio.gather(*(worker.decide({"id": "d"}) for _ in range(20)))
            assert len(set(same)) == 1
            event = {"decision": "d", "id": "e", "clicks": ["i3"]}
            answers = await asyncio.gather(
                *(worker.feedback(event) for _ in range(10)), worker.feedback_many([event] * 3)
            )
            flat = [*answers[:10], *answers[10]]
            assert [each.status for each in flat] == ["applied"] + 12 * ["duplicate"]
            assert len({each.seq for each in flat}) == 1
            other = event | {"clicks": ["i4"]}
            mixed = await asyncio.gather(worker.feedback(other | {"id": "f"}), worker.feedback(event | {"id": "f"}))
            assert [each.status for each in mixed] == ["applied", "rejected"]

        at_desk(loop, work)
        assert loop.projection.model.shared.t == 2
        assert loop.verify() == []


def test_all_who_come_at_once_are_one_group(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            answers = await asyncio.gather(*(worker.decide({"id": f"d{n}"}) for n in range(50)))
            assert [each.id for each in answers] == [f"d{n}" for n in range(50)]
            assert sorted(each.seq for each in answers) == list(range(14, 64))
            assert worker.groups == 1

        at_desk(loop, work)


# ---------------------------------------------------------------------------- who goes away, what fails


def test_who_goes_away_takes_nobody_along(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            tasks = [asyncio.create_task(worker.decide({"id": f"d{n}"})) for n in range(20)]
            await asyncio.sleep(0)  # all have drafted, nothing is committed
            for task in tasks[::3]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            for n, each in enumerate(found):
                if n % 3 == 0:
                    assert isinstance(each, asyncio.CancelledError)
                else:
                    assert not isinstance(each, BaseException)
                    assert each.id == f"d{n}"
            assert (await worker.decide({"id": "d0"})).id == "d0"  # written all the same, or anew: once
            assert not worker.busy

        at_desk(loop, work)
        ids = [event.id for event in loop.projection.log.events() if event.kind == "decision"]
        assert len(ids) == len(set(ids))
        assert {f"d{n}" for n in range(20) if n % 3} <= set(ids)
        assert loop.verify() == []


def test_who_goes_away_while_a_thread_waits(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            free, there = threading.Event(), threading.Event()

            def hold() -> None:  # as if it were folding anew
                with loop.projection.turn:
                    there.set()
                    free.wait(60)

            other = threading.Thread(target=hold)
            other.start()
            there.wait(60)
            tasks = [asyncio.create_task(worker.decide({"id": f"d{n}"})) for n in range(6)]
            await asyncio.sleep(0.05)
            more = [asyncio.create_task(worker.decide({"id": f"m{n}"})) for n in range(6)]
            await asyncio.sleep(0.05)
            assert worker.busy
            assert not any(task.done() for task in [*tasks, *more])
            tasks[0].cancel()
            more[0].cancel()
            free.set()
            found = await asyncio.gather(*tasks, *more, return_exceptions=True)
            other.join()
            assert [isinstance(each, asyncio.CancelledError) for each in found] == 2 * [True, *5 * [False]]

        at_desk(loop, work)
        ids = {event.id for event in loop.projection.log.events() if event.kind == "decision"}
        assert ids >= {f"{kind}{n}" for kind in "dm" for n in range(1, 6)}
        assert loop.verify() == []


def test_what_one_commit_raises_all_of_it_get_and_the_next_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:
        loop.decide(id="before")
        whole = bits(loop), in_order(loop)

        async def work(worker: LoopWorker) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(loop.projection.log, "append", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
                lesson = {"decision": "before", "id": "e", "clicks": ["i3"]}
                found = await asyncio.gather(
                    *(worker.decide({"id": f"d{n}"}) for n in range(5)),
                    worker.feedback(lesson),
                    worker.feedback_many([lesson]),
                    return_exceptions=True,
                )
                assert all(isinstance(each, OSError) for each in found)
                assert (bits(loop), in_order(loop)) == whole
            answers = await asyncio.gather(*(worker.decide({"id": f"d{n}"}) for n in range(5)), worker.feedback(lesson))
            assert [each.seq for each in answers] == list(range(15, 21))
            assert worker.groups == 1

        at_desk(loop, work)
        assert loop.verify() == []


def test_what_a_thread_raises_all_of_its_group_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(loop.projection, "attempt", lambda *_: None)
                patched.setattr(loop.projection.log, "append", lambda _: (_ for _ in ()).throw(TimeoutError("locked")))
                found = await asyncio.gather(
                    *(worker.decide({"id": f"d{n}"}) for n in range(5)), return_exceptions=True
                )
                assert all(isinstance(each, TimeoutError) for each in found)
            answers = await asyncio.gather(*(worker.decide({"id": f"d{n}"}) for n in range(5)))
            assert len({each.seq for each in answers}) == 5

        at_desk(loop, work)
        assert loop.verify() == []


def test_what_is_wrong_with_one_is_its_own(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> Any:
            return await asyncio.gather(
                worker.decide({"id": "d"}),
                worker.decide({"candidates": ["nowhere"], "strict": True}),
                worker.decide({"show": 0}),
                worker.feedback({"decision": "nowhere", "clicks": ["i1"]}),
                worker.feedback({"decision": "nowhere", "clicks": "i1", "thumb": "up"}),
                worker.feedback_many([{"decision": "nowhere", "clicks": ["i1"]}, 5, {}]),
                return_exceptions=True,
            )

        good, item, show, unknown, form, batch = at_desk(loop, work)
        assert good.id == "d"
        assert isinstance(item, LookupError)
        assert isinstance(show, ValueError)
        assert unknown.status == "rejected"
        assert isinstance(form, ValueError)
        assert [each.status for each in batch] == 3 * ["rejected"]


# ---------------------------------------------------------------------------- other processes, what is large


def test_another_process_changes_the_model_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was proposed from an older model is proposed anew."""
    with (
        small_loop(tmp_path / "loop", control=0.0, shrink=2.0) as loop,
        Loop.open(tmp_path / "loop") as other,
    ):
        other.decide(id="before", person="p")
        proposed: list[str] = []
        was = loop.decider.propose

        def noted(asked: Any) -> Any:
            proposed.append(asked.id)
            return was(asked)

        monkeypatch.setattr(loop.decider, "propose", noted)

        async def work(worker: LoopWorker) -> Any:
            await worker.decide({"id": "first"})  # takes in what is there
            tasks = [asyncio.create_task(worker.decide({"id": f"d{n}", "person": "p"})) for n in range(4)]
            tasks.append(asyncio.create_task(worker.feedback({"decision": "first", "id": "e", "clicks": ["i2"]})))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            assert proposed[-4:] == [f"d{n}" for n in range(4)]
            answer = other.feedback("before", id="o", clicks=["i4"])
            found = await asyncio.gather(*tasks)
            assert all(each.version >= answer.seq for each in found)
            assert sorted(proposed[-4:]) == [f"d{n}" for n in range(4)]
            assert len(proposed) == 9, proposed
            assert not any(getattr(each, "reason", None) == AGAIN for each in found)
            return found

        found = at_desk(loop, work)
        assert bits(loop) == bits_from_scratch(loop)
        other.projection.catch_up()
        assert bits(other) == bits(loop)
        for decision in found[:4]:
            assert other.decide(id=decision.id, person="p") == decision


def test_another_process_puts_an_item_and_makes_a_decision(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop, Loop.open(tmp_path / "loop") as other:

        async def work(worker: LoopWorker) -> None:
            other.put_items([{"id": "new", "f0": 1.0, "f1": 0.0, "f2": 0.0, "f3": 0.0}])
            d = await worker.decide({"candidates": ["new", "i1"]})
            assert set(d.shown) == {"new", "i1"}
            theirs = other.decide(id="theirs")
            a, [b] = await asyncio.gather(
                worker.feedback({"decision": "theirs", "id": "a", "clicks": [theirs.shown[1]]}),
                worker.feedback_many([{"decision": "theirs", "id": "b", "clicks": [theirs.shown[2]]}]),
            )
            assert (a.status, b.status) == ("applied", "applied")
            other.withdraw("new")
            with pytest.raises(LookupError, match="new"):
                await worker.decide({"id": "then", "candidates": ["new", "i1", "nowhere"], "strict": True})
            then = await worker.decide({"id": "then", "candidates": ["new", "i1", "nowhere"]})
            assert (then.shown, then.unknown) == (("i1", "new", "nowhere"), ("new", "nowhere"))

        at_desk(loop, work)
        assert loop.verify() == []


def test_what_is_large_is_done_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LARGE", "FEW", "GROUP"):
        monkeypatch.setattr(module, limit, 10)
    with small_loop(tmp_path / "loop", control=0.0, n_items=9) as loop:

        async def work(worker: LoopWorker) -> None:
            called = threads_of(worker)
            d = await worker.decide({"id": "d"})
            assert called == []
            await worker.decide(
                {"id": "large", "candidates": [{f"f{i}": 1.0 * n for i in range(4)} for n in range(11)]}
            )
            assert called == ["decide True"]
            event = {"decision": "d", "clicks": [d.shown[3]]}
            await worker.feedback_many([event | {"id": f"s{n}"} for n in range(10)])
            assert called == ["decide True"]
            went_on, learn = threading.Event(), worker.loop.feedback_many

            def wait_and_learn(events: list[Any]) -> Any:
                assert went_on.wait(20), "nobody else was answered meanwhile"
                return learn(events)

            monkeypatch.setattr(worker.loop, "feedback_many", wait_and_learn)
            answering = asyncio.create_task(worker.feedback_many([event | {"id": f"e{n}"} for n in range(11)]))
            while not called[1:]:
                await asyncio.sleep(0)
                went_on.set()
            answers = await answering
            assert called == ["decide True", "feedback_many True"]
            assert [each.status for each in answers] == 11 * ["applied"]
            # Many small ones together are large as well: they are still all answered, in a thread.
            found = await asyncio.gather(*(worker.decide({"id": f"m{n}"}) for n in range(25)))
            assert len({each.seq for each in found}) == 25

        at_desk(loop, work)
        assert loop.verify() == []


LONG = "a word and another " * 300
"""Texts take a quarter of a microsecond for each character, so this one more than a millisecond."""
TEXTS: list[tuple[str, dict[str, Any]]] = [
    ("of a candidate", {"candidates": [{"text": LONG, "f0": 1.0}, {"text": "short", "f0": 2.0}]}),
    ("of many candidates", {"candidates": [{"text": LONG[:100], "f0": 1.0} for _ in range(90)]}),
    ("of the context", {"candidates": ["i1", "i2"], "context": {"query": LONG}}),
]


@pytest.fixture
def texts(tmp_path: Path) -> Iterator[Loop]:
    """A loop in which the words of items and of requests count."""
    items = [{"id": f"i{n}", "text": f"word {n} of {n % 3}", "f0": float(n)} for n in range(6)]
    encoding = infer(items, identifier="id", kinds={"text": "text", "f0": "number"})
    context = infer([{"query": "one word"}, {"query": "another"}], identifier="", kinds={"query": "text"})
    settings = Settings(control=0.0)
    with Loop.create(tmp_path / "texts", encoding=encoding, context=context, items=items, settings=settings) as loop:
        yield loop


@pytest.mark.parametrize(("of", "given"), TEXTS, ids=[of for of, _ in TEXTS])
def test_long_texts_are_encoded_in_a_thread(texts: Loop, of: str, given: dict[str, Any]) -> None:
    async def work(worker: LoopWorker) -> None:
        called = threads_of(worker)
        short = {"candidates": [{"text": "short"}, {"text": "shorter"}], "context": {"query": "short"}}
        await worker.decide(short)
        assert called == []
        decision = await worker.decide(given)
        assert called == ["decide True"]
        assert len(decision.shown) == len(given["candidates"])

    at_desk(texts, work)
    assert texts.verify() == []


def test_long_edits_are_compared_in_a_thread(texts: Loop) -> None:
    async def work(worker: LoopWorker) -> None:
        called = threads_of(worker)
        d = await worker.decide({"id": "d", "candidates": [{"text": "a word"}, {"text": "another"}]})
        for n, edit in enumerate(("short", LONG, {"text": LONG})):
            answer = await worker.feedback({"decision": d.id, "id": f"e{n}", "edit": edit})
            assert answer.status == "applied", answer
        assert called == 2 * ["feedback True"]
        many = [{"decision": d.id, "id": f"m{n}", "edit": LONG[:100]} for n in range(50)]
        assert {each.status for each in await worker.feedback_many(many)} == {"applied"}
        assert called[2:] == ["feedback_many True"]

    at_desk(texts, work)
    assert texts.verify() == []


# ---------------------------------------------------------------------------- who watches, who keeps


def test_watchers_are_told_of_every_group(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            async def watch() -> list[int]:
                seen = [0]
                while seen[-1] < 17:
                    changed = worker.changed
                    seen.append(loop.projection.log.last()[0])
                    if seen[-1] < 17:
                        await changed.wait()
                return seen[1:]

            watchers = [asyncio.create_task(watch()) for _ in range(3)]
            await asyncio.sleep(0)
            for n in range(3):
                changed = worker.changed
                if n == 1:
                    await worker.run(lambda: loop.record(NAMES, NAMES[:3], id="r"))
                else:
                    await worker.decide({"id": f"d{n}"})
                assert changed.is_set()
                assert not worker.changed.is_set()
                await asyncio.sleep(0)
            changed = worker.changed
            assert await worker.read(lambda: loop.projection.log.last()[0]) == 16
            assert not changed.is_set()  # nothing was written
            await worker.decide({"id": "last"})
            found = await asyncio.wait_for(asyncio.gather(*watchers), 60)
            assert found == 3 * [[13, 14, 15, 16, 17]]

        at_desk(loop, work)


def test_snapshots_are_kept_beside_the_commits(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", control=0.0, snapshot_every=10) as loop:

        async def one(worker: LoopWorker, i: int) -> None:
            for n in range(10):
                d = await worker.decide({"id": f"d{i}-{n}"})
                assert (await worker.feedback({"decision": d.id, "id": f"e{i}-{n}", "clicks": [d.shown[3]]})).learned

        async def work(worker: LoopWorker) -> None:
            await asyncio.gather(*(one(worker, i) for i in range(8)))

        at_desk(loop, work)
        assert len(list(loop.path.glob("snapshot-*"))) > 1
        assert not loop.projection.due
        assert loop.notes == []
        whole = bits(loop)
    with Loop.open(tmp_path / "loop") as loop:
        assert bits(loop) == whole
        assert loop.verify() == []


def test_what_cannot_be_kept_up_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WRITE_AHEAD", 10)
    with small_loop(tmp_path / "loop", control=0.0) as loop:

        async def work(worker: LoopWorker) -> None:
            tries = 0

            def fails() -> None:
                nonlocal tries
                tries += 1
                raise OSError(5, "no")

            with monkeypatch.context() as patched:
                patched.setattr(loop.projection.log.store, "move_write_ahead", fails)
                for n in range(3):
                    await worker.decide({"id": f"d{n}"})
                    while worker.busy:
                        await asyncio.sleep(0.001)
            assert tries == 3
            assert "could not be moved" in caplog.text
            assert (await worker.decide({"id": "d"})).seq == 17

        at_desk(loop, work)
        assert loop.verify() == []


def test_users_keep_it_open(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop") as loop:

        async def work(worker: LoopWorker) -> None:
            assert not worker.busy
            with worker, worker:
                assert worker.busy
            assert not worker.busy
            task = asyncio.create_task(worker.decide({}))
            await asyncio.sleep(0)
            assert worker.busy
            await task

        at_desk(loop, work)


@pytest.mark.slow
def test_a_server_takes_one_core(tmp_path: Path) -> None:
    """Whatever learner its loop begins with: one that calls a solver may be promoted. In a process of its own: the
    tests have one thread as it is."""
    path = tmp_path / "l"
    small_loop(path).close()
    code = (
        "import asyncio; from concurrent.futures import ThreadPoolExecutor; from threadpoolctl import threadpool_info\n"
        "from heedful import Loop; from heedful.server.loop_worker import LoopWorker\n"
        "from heedful.server.analysts import Analysts; from heedful.server.threads import Turns\n"
        "async def opened():\n"
        "    pool = ThreadPoolExecutor(1)\n"
        "    LoopWorker(loop, pool, Analysts((), pool), Turns(), 'main')\n"
        f"with Loop.open({str(path)!r}) as loop:\n"
        "    asyncio.run(opened())\n"
        "threads = [each['num_threads'] for each in threadpool_info() if each['user_api'] == 'blas']\n"
        "assert set(threads) == {1}, threads"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment | {"OMP_NUM_THREADS": "2"}, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
