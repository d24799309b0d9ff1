"""Analyses in processes: the same answers as in a thread, of what the log says now, and no process is left over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from asking import run, serving

from heedful import Loop
from heedful.results.answers import plain
from heedful.server import analysts, loop_worker
from heedful.server.analyst import Analyst, pack, unpack
from heedful.server.context import ServerContext
from heedful.server.problems import Problem, as_problem
from heedful.storage import Moved, Place
from kinds import KINDS, Kind, each_kind, teach
from loops import small_loop
from processes import Process, here, until


def asked(analyst: Analyst, path: Place, question: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What the analyst answers, as the server reads it."""
    return unpack(question.__name__, analyst.answer(pack(path, question.__name__, args, named)))


def as_answered(work: Callable[[], Any]) -> bytes:
    """The body that a server answers with, of a result or an error."""
    try:
        return msgspec.json.encode(plain(work()))
    except Exception as error:
        return as_problem(error, "not-found").body


def in_both(analyst: Analyst, loop: Loop, question: Callable[..., Any], *args: Any, **named: Any) -> None:
    """A thread and the analyst answer the same, and not with an error of the server's."""
    here = as_answered(lambda: question(loop, *args, **named))
    there = as_answered(lambda: asked(analyst, loop.path, question, *args, **named))
    assert there == here
    assert b'"status":500' not in here


@pytest.mark.slow
@each_kind
def test_an_analyst_answers_as_the_loop_does(tmp_path: Path, kind: Kind) -> None:
    """Results and refusals, of every kind of feedback."""
    analyst = Analyst([] if kind.own is None else [kind.own])
    with kind.make(tmp_path / "a.heedful") as loop:
        in_both(analyst, loop, Loop.report)
        teach(kind.case(), loop, range(8))
        for question in (Loop.report, Loop.health, Loop.style_of, Loop.experiment, Loop.promotions):
            in_both(analyst, loop, question)
        in_both(analyst, loop, Loop.plan_experiment, 0.5, days=7.0)
        in_both(analyst, loop, Loop.evaluate, kind.other, alpha=0.1)
        in_both(analyst, loop, Loop.evaluate, "no-such-learner")
        in_both(analyst, loop, Loop.health, alpha=7)
        decisions = [event for event in loop.projection.log.events() if event.kind == "decision"]
        for event in (decisions[3], decisions[-1]):
            in_both(analyst, loop, Loop.why, event.id)
            in_both(analyst, loop, Loop.why, event.id, loop.projection.decision(event).names[-1])
        in_both(analyst, loop, Loop.why, "none")
        in_both(analyst, loop, Loop.why, "none", "i0")


def test_an_analyst_answers_of_an_experiment_and_promotions(tmp_path: Path) -> None:
    kind, analyst = KINDS[0], Analyst([])
    with kind.make(tmp_path / "a.heedful") as loop:
        loop.start_experiment("perceptron", share=1.0)
        teach(kind.case(), loop, range(16))
        in_both(analyst, loop, Loop.experiment)
        loop.promote(force=True, by="me")
        in_both(analyst, loop, Loop.promotions)
        in_both(analyst, loop, Loop.evaluate)
        teach(kind.case(), loop, range(16, 24))
        loop.undo(next(event.id for event in loop.projection.log.events() if event.kind == "feedback"))
        for question in (Loop.promotions, Loop.experiment, Loop.report, Loop.health):
            in_both(analyst, loop, question)
        loop.rollback(loop.promotions()[0].seq - 1)
        for question in (Loop.promotions, Loop.evaluate, Loop.report):
            in_both(analyst, loop, question)


def test_a_forgotten_person_is_gone_from_what_an_analyst_says_at_once(tmp_path: Path) -> None:
    analyst, path = Analyst([]), tmp_path / "a.heedful"
    with small_loop(path, shrink=2.0) as loop:
        for n in range(8):
            shown = loop.decide(id=f"d{n}", person=f"p{n % 2}").shown
            loop.feedback(f"d{n}", id=f"e{n}", clicks=[shown[2]])
        assert asked(analyst, path, Loop.report).feedback.given == 8
        asked(analyst, path, Loop.why, "d7")
        loop.forget("p1")
        with pytest.raises(LookupError, match="d7"):  # nothing else was asked that looks at the log by itself
            asked(analyst, path, Loop.why, "d7")
        assert asked(analyst, path, Loop.report).feedback.given == 4
        with pytest.raises(LookupError, match="d7 was forgotten"):
            asked(analyst, path, Loop.why, "d7", "i0")
        for question in (Loop.report, Loop.health, Loop.evaluate):
            in_both(analyst, loop, question)
        assert not [
            state for each in analyst._loops.values() for state in each.projection.model.people if state == "p1"
        ]


def test_an_analyst_reads_a_loop_in_a_database_that_another_process_owns(postgres: str) -> None:
    analyst, kind = Analyst([]), KINDS[0]
    with kind.make(f"{postgres}#a") as loop:
        loop.projection.log.store.keep_owning(60.0, "")
        teach(kind.case(), loop, range(4))
        in_both(analyst, loop, Loop.report)
        teach(kind.case(), loop, range(4, 8))
        for question in (Loop.report, Loop.health, Loop.evaluate):
            in_both(analyst, loop, question)
        loop.forget("p1")
        in_both(analyst, loop, Loop.report)
        assert loop.projection.log.store.owns
        loop.decide(id="still")
    for each in analyst._loops.values():
        each.close()


def test_an_analyst_opens_a_loop_again_that_was_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    analyst, path = Analyst([]), tmp_path / "a.heedful"
    for n, name in enumerate((path, tmp_path / "b.heedful")):
        with small_loop(name) as loop:
            for i in range(n + 1):
                loop.decide(id=f"d{i}")
    assert asked(analyst, path, Loop.report).decisions == 1
    shutil.rmtree(path)
    with pytest.raises(Problem, match="in the server's log"):
        asked(analyst, path, Loop.report)
    shutil.move(tmp_path / "b.heedful", path)
    assert asked(analyst, path, Loop.report).decisions == 2
    assert "no such log" in caplog.text
    caplog.clear()


def test_an_analyst_keeps_a_few_loops_open_and_writes_nothing(tmp_path: Path) -> None:
    analyst = Analyst([])
    paths = [tmp_path / f"l{n}.heedful" for n in range(4)]
    for path in paths:
        small_loop(path).close()
    before = {file: file.read_bytes() for path in paths for file in path.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.server.analyst.OPEN", 2)
        for n in (0, 1, 0, 2, 3, 2):
            assert asked(analyst, paths[n], Loop.report).decisions == 0
            assert len(analyst._loops) <= 2
        assert list(analyst._loops) == [paths[3], paths[2]]
    for loop in analyst._loops.values():
        loop.close()
    assert {file: file.read_bytes() for path in paths for file in path.iterdir()} == before


def test_only_what_reads_can_be_asked() -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        Analyst([]).answer(pack(Path("a.heedful"), "forget", ["p"], {}))


# ---------------------------------------------------------------------------- from the server's side


def test_a_short_log_is_analysed_without_a_process(tmp_path: Path) -> None:
    small_loop(tmp_path / "a.heedful").close()

    async def work() -> None:
        async with serving(tmp_path) as service:
            worker = await service.loops.open("main", "a")
            assert (await worker.analyse(Loop.report)).decisions == 0
            assert not service.loops.analysts._all

    run(work())


# ---------------------------------------------------------------------------- processes


@pytest.fixture
def all_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is short."""
    monkeypatch.setattr(loop_worker, "SHORT", -1)


def children(service: ServerContext) -> list[int]:
    return [process.child.pid for process in service.loops.analysts._all]


def is_there(pid: int) -> bool:
    """Whether a process or one of its threads runs; one that has ended and was not asked how does not."""
    with suppress(OSError):
        threads = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]
        return len(threads) > 1 or any(state != "Z" for state in threads)
    return False


@pytest.mark.slow
def test_a_process_answers_and_has_a_place_behind_the_server(
    tmp_path: Path, all_in_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process for one tenant, however much they ask; with the results and refusals of the loop. Who leaves before
    what takes a moment is done leaves the process to the next."""
    monkeypatch.setattr(analysts, "GRACE", 20.0)
    with small_loop(tmp_path / "a.heedful") as loop:
        teach(KINDS[0].case(), loop, range(8))
        told = [loop.report(), loop.evaluate("perceptron")]

    async def work() -> None:
        async with serving(tmp_path) as service:
            worker = await service.loops.open("main", "a")
            found = await asyncio.gather(worker.analyse(Loop.report), worker.analyse(Loop.evaluate, "perceptron"))
            assert plain(found) == plain(told)
            with pytest.raises(ValueError, match="alpha: expected"):
                await worker.analyse(Loop.health, alpha=7.0)
            with pytest.raises(LookupError, match="decision none is not in the log"):
                await worker.analyse(Loop.why, "none")
            [pid] = children(service)
            assert os.getpriority(os.PRIO_PROCESS, pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
            d = await worker.decide({"id": "new"})
            await worker.feedback({"decision": "new", "clicks": [d.shown[1]]})
            assert (await worker.analyse(Loop.report)).feedback.given == 9
            left = asyncio.create_task(worker.analyse(Loop.report))
            await asyncio.sleep(0.001)
            left.cancel()
            assert (await worker.analyse(Loop.report)).feedback.given == 9
            assert left.cancelled()
            assert children(service) == [pid]
            shutil.move(tmp_path / "a.heedful", tmp_path / "b.heedful")
            with pytest.raises(Moved):
                await worker.analyse(Loop.report)
            assert children(service) == [pid]
        assert not is_there(pid)

    run(work())


SLOW = """
import time
from heedful import PreferencePerceptron

class Slow(PreferencePerceptron):
    def update(self, state, x, y, feedback):
        time.sleep({seconds})
        return PreferencePerceptron.update(self, state, x, y, feedback)
"""
"""A learner of the user's own, of which print and input do no harm."""


def slow_loop(folder: Path, seconds: float = 20.0) -> str:
    """A loop `a` of heedful's learner that learned one thing, and a learner that takes so many seconds for it."""
    file = folder.parent / "slow.py"
    file.write_text(SLOW.format(seconds=seconds))
    folder.mkdir(exist_ok=True)
    with small_loop(folder / "a.heedful", "perceptron") as loop:
        loop.feedback(loop.decide(id="d").id, id="e", clicks=["i3"])
    return f"{file}:Slow"


@pytest.mark.slow
def test_a_process_that_ends_answers_503_and_the_next_question_gets_another(
    tmp_path: Path, all_in_processes: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it was asked something; otherwise nobody notices."""
    slow = slow_loop(tmp_path / "served")

    async def work() -> None:
        async with serving(tmp_path / "served", own=(slow,)) as service:
            worker = await service.loops.open("main", "a")
            assert (await worker.analyse(Loop.report)).decisions == 1
            [pid] = children(service)
            os.kill(pid, signal.SIGKILL)
            while is_there(pid):
                await asyncio.sleep(0.01)
            assert (await worker.analyse(Loop.report)).decisions == 1
            [pid] = children(service)
            task = asyncio.create_task(worker.analyse(Loop.evaluate, slow))
            await asyncio.sleep(0.2)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(Problem, match="the process that worked on it ended") as refused:
                await task
            assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
            assert (await worker.analyse(Loop.report)).decisions == 1
            assert children(service) != [pid]

    run(work())
    assert "the process that was to evaluate ended" in caplog.text
    caplog.clear()


@pytest.mark.slow
def test_who_leaves_frees_the_process_and_a_tenant_takes_one_of_two(tmp_path: Path, all_in_processes: None) -> None:
    slow = slow_loop(tmp_path / "served")
    shutil.copytree(tmp_path / "served" / "a.heedful", tmp_path / "served" / "b" / "a.heedful")

    async def work() -> None:
        async with serving(tmp_path / "served", own=(slow,)) as service:
            worker, other = await service.loops.open("main", "a"), await service.loops.open("b", "a")
            long = [asyncio.create_task(worker.analyse(Loop.evaluate, slow)) for _ in range(3)]
            assert (await asyncio.wait_for(other.analyse(Loop.report), 15)).decisions == 1
            busy = {process.child.pid for process in service.loops.analysts._all - {*service.loops.analysts._idle}}
            assert len(busy) == 1
            for task in long:
                task.cancel()
            await asyncio.wait(long)
            assert (await asyncio.wait_for(worker.analyse(Loop.report), 15)).decisions == 1
            assert not any(map(is_there, busy))
            assert len(children(service)) == 1

    run(work())


@pytest.mark.slow
def test_a_process_that_nobody_asks_anything_is_ended(
    tmp_path: Path, all_in_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_loop(tmp_path / "a.heedful").close()

    async def work() -> None:
        async with serving(tmp_path) as service:
            worker = await service.loops.open("main", "a")
            await worker.analyse(Loop.report)
            [pid] = children(service)
            service.loops.analysts.end_idle()
            assert is_there(pid)
            monkeypatch.setattr(analysts, "IDLE", -1.0)
            service.loops.analysts.end_idle()
            assert not children(service)
            while is_there(pid):
                await asyncio.sleep(0.01)
            assert (await worker.analyse(Loop.report)).decisions == 0
            await worker.decide({"id": "d"})
        assert not list(tmp_path.glob("*/log.db-wal"))  # the server closes its loops after the processes

    run(work())


@pytest.mark.slow
def test_a_loop_of_a_learner_of_ones_own_is_analysed(tmp_path: Path, all_in_processes: None) -> None:
    """In a file, by a path from where the server was started, which prints."""
    (tmp_path / "mine.py").write_text(SLOW.format(seconds="print('learned') or 0"))
    own = "mine.py:Slow"
    with contextlib.chdir(tmp_path):
        with small_loop(tmp_path / "a.heedful", own) as loop:
            loop.feedback(loop.decide(id="d").id, id="e", clicks=["i3"])
            told = loop.evaluate("perceptron")

        async def work() -> None:
            async with serving(tmp_path, own=(own,)) as service:
                worker = await service.loops.open("main", "a")
                assert plain(await worker.analyse(Loop.evaluate, "perceptron")) == plain(told)

        run(work())


# ---------------------------------------------------------------------------- a whole server


@pytest.mark.slow
def test_routes_and_pages_answer_the_same_from_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[0]
    with kind.make(tmp_path / "a.heedful") as loop:
        loop.start_experiment("perceptron", share=1.0)
        teach(kind.case(), loop, range(16))
        loop.promote(force=True)
        shown = [event for event in loop.projection.log.events() if event.kind == "decision"][-1]
        item = loop.projection.decision(shown).names[0]
    paths = [f"/v1/loops/a/{path}" for path in ("report", "report?last=0", "health", "health?alpha=.1", "style")]
    paths += [f"/v1/loops/a/{path}" for path in ("experiments/latest", "experiments/plan?share=.5", "promotions")]
    paths += [
        f"/v1/loops/a/decisions/{id}/{what}" for id in (shown.id, "none") for what in ("explanation", "why?item=i1")
    ]
    paths += [f"/loops/a/why?decision={id}&item={name}" for id in (shown.id, "none") for name in (item, "", "none")]
    paths += ["/loops/a/learned", "/loops/a/health", "/loops/a/proof?learner=perceptron", "/loops/a/proof?learner=none"]
    bodies = [{"learners": ["posterior"], "alpha": 0.1}, {"learners": ["posterior:swap=7"]}]

    with here(tmp_path) as (app, client):

        def answers() -> list[tuple[int, str]]:
            client.headers["x-request-id"] = "r"  # which all problems say
            found = [client.get(path) for path in paths]
            found += [client.post("/v1/loops/a/evaluations", json=body) for body in bodies]
            return [(each.status_code, re.sub(r'name="id" value="[^"]+"', "", each.text)) for each in found]

        told = answers()
        assert not children(app.service)
        monkeypatch.setattr(loop_worker, "SHORT", -1)
        for path, mine, theirs in zip([*paths, *map(str, bodies)], told, answers(), strict=True):
            assert theirs == mine, path
        assert len(children(app.service)) == 1
        assert {status for status, _ in told} == {200, 404, 422}


class Evaluating(NamedTuple):
    """A server that evaluates a learner for a long time."""

    server: Process
    wires: list[socket.socket]
    """who waits for that"""
    processes: list[int]
    """where that is done; [] for threads"""


@contextmanager
def evaluating(folder: Path, lessons: int = loop_worker.SHORT, connections: int = 4) -> Iterator[Evaluating]:
    slow = slow_loop(folder)
    with Loop.open(folder / "a.heedful") as loop:
        loop.feedback_many({"decision": "d", "id": f"e{n}", "clicks": []} for n in range(lessons))
    with Process(folder, "--own", slow).wait() as server, ExitStack() as stack:
        body = msgspec.json.encode({"learners": [slow]})
        head = f"POST /v1/loops/a/evaluations HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        wires = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(connections)]
        for wire in wires:
            stack.enter_context(wire).sendall(head.encode() + body)
        tasks, found = Path(f"/proc/{server.child.pid}/task"), list[int]()
        while lessons and not found:
            found = [int(pid) for each in tasks.iterdir() for pid in (each / "children").read_text().split()]
        time.sleep(3)  # until it has opened the loop
        yield Evaluating(server, wires, found)


@pytest.mark.slow
@pytest.mark.parametrize("lessons", [0, loop_worker.SHORT], ids=["in a thread", "in a process"])
def test_sigterm_ends_a_server_that_evaluates_and_its_processes(tmp_path: Path, lessons: int) -> None:
    with evaluating(tmp_path / "served", lessons) as (server, _, processes):
        seconds = server.end(30)
        print(f"\nended within {seconds:.1f} s")
        assert seconds < 15  # on a busy machine; what it does takes 20 s
        assert not any(map(is_there, processes))
        assert "Traceback" not in server.told.read_text() or not lessons  # uvicorn logs what it cancels


@pytest.mark.slow
def test_a_server_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with evaluating(tmp_path / "served", connections=1) as (server, _, processes):
        os.kill(server.child.pid, signal.SIGKILL)
        server.child.wait(30)
        until(lambda: not any(map(is_there, processes)))


@pytest.mark.slow
def test_who_hangs_up_frees_the_process(tmp_path: Path) -> None:
    with evaluating(tmp_path / "served", connections=1) as (_, wires, processes):
        wires.pop().close()
        until(lambda: not any(map(is_there, processes)))
