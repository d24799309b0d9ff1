"""kill -9 of a server under load, again and again: what was acknowledged is there, once; the model is the fold."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budget import FACTOR
from heedful import Loop
from heedful.server.keys import Keys
from loops import bits, bits_from_scratch, sides, small_loop
from processes import Asker, Process, check_log

KILLS = 50 if FACTOR > 1 else 8
CLIENTS = 16
REPEATED = 0.2
N_ITEMS, N_FEATURES = 8, 4
NAMES = ("one", "two")
TRIED = "two"
"""The loop in which learners are tried and promoted."""


class Told:
    """What the clients of one loop were told, all of them together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seq: dict[tuple[str, str], int] = {}
        """(kind, id) -> the place in the log that was acknowledged"""
        self.decisions: dict[str, Any] = {}
        self.sent: list[Any] = []
        """events of feedback, whether or not an answer came"""
        self.undone: set[str] = set()
        self.statuses: Counter[str] = Counter()

    def take(self, kind: str, id: str, status: str, seq: int) -> None:
        self.statuses[f"{kind} {status}"] += 1
        assert status in ("applied", "duplicate", "decided"), (kind, id, status)
        assert self.seq.setdefault((kind, id), seq) == seq, "one event, two places"

    def decision(self, value: Any) -> None:
        self.take("decision", value["id"], "decided", value["seq"])
        assert self.decisions.setdefault(value["id"], value) == value, "one decision, two answers"


class Client:
    """One of those who decide, answer, repeat and undo, whatever becomes of the server."""

    def __init__(self, number: int, port: int, key: str | None, told: Told) -> None:
        self.asker = Asker(port, key)
        self.told = told
        self.name = f"{told.path.stem}-{number}"
        self.rng = random.Random(self.name)
        self.n = 0

    async def work(self) -> None:
        while True:
            self.n += 1
            what = self.rng.random()
            if what < REPEATED and self.told.sent:
                await self.feedback([self.rng.choice(self.told.sent[-200:])])
            elif what < 0.3:
                decisions = [await self.decide(f"{self.n}-{i}") for i in range(5)]
                events = [self.event(decision) for decision in decisions]
                await self.feedback([*events, self.rng.choice(events)], batch=True)
            else:
                event = self.event(await self.decide(str(self.n)))
                await self.feedback([event])
                if self.rng.random() < 0.05:
                    await self.undo(event["id"])

    async def post(self, what: str, value: Any, **more: Any) -> Any:
        path = f"/v1/loops/{self.told.path.stem}/{what}"
        reply = await self.asker.surely("POST", path, value, packed=self.rng.random() < 0.3, **more)
        assert reply.status == 200, reply
        return reply.value

    async def decide(self, n: str) -> Any:
        id, person = f"d-{self.name}-{n}", f"p{self.rng.randrange(4)}"
        form = self.rng.random()
        if form < 0.1:
            rows = np.random.default_rng(self.n).standard_normal((6, N_FEATURES)).astype("<f4")
            path = f"/v1/loops/{self.told.path.stem}/decisions?person={person}&show=4&id={id}"
            reply = await self.asker.surely("POST", path, raw=rows.tobytes())
            assert reply.status == 200, reply
            value = reply.value
        elif form < 0.2:
            value = await self.post("decisions", {"person": person}, idempotency_key=id)
        elif form < 0.3:
            names = [f"i{j}" for j in range(N_ITEMS)]
            value = await self.post("records", {"candidates": names, "shown": names[:5], "id": id, "person": person})
        else:
            value = await self.post("decisions", {"person": person, "id": id})
        assert value["id"] == id
        self.told.decision(value)
        return value

    def event(self, decision: Any) -> Any:
        id = "e" + decision["id"][1:]
        return {"decision": decision["id"], "id": id, "clicks": [decision["shown"][self.rng.choice([2, 3])]]}

    async def feedback(self, events: list[Any], batch: bool = False) -> None:
        self.told.sent += events
        answers = await self.post("feedback", events if batch else events[0])
        for event, answer in zip(events, answers if batch else [answers]):
            assert answer["event"] == event["id"]
            self.told.take("feedback", event["id"], answer["status"], answer["seq"])

    async def undo(self, event: str) -> None:
        answer = await self.post("undo", {"event": event})
        self.told.take("undo", answer["event"], answer["status"], answer["seq"])
        self.told.undone.add(event)


async def administer(asker: Asker, told: Told) -> None:
    """End the experiment that runs, or promote its candidate, and begin another: again and again."""
    learners = ["perceptron", "posterior:swap=0"]  # the candidate, and what serves
    rng = random.Random(told.path.stem)

    async def post(what: str, id: str, value: Any) -> Any:
        path = f"/v1/loops/{told.path.stem}/{'experiments' if what == 'experiment' else what}"
        reply = await asker.surely("POST", path, value | {"id": id})
        assert reply.status == 200, reply
        answer = reply.value.get("answer", reply.value)
        kind = {"experiments/stop": "stop", "promotions": "promote"}.get(what, what)
        told.take(kind, answer["event"], answer["status"], answer["seq"])
        await asyncio.sleep(rng.uniform(0.0, 0.2))

    n = 0
    while True:
        n += 1
        if rng.random() < 0.5:
            await post("experiments/stop", f"s{n}", {})
        else:
            await post("promotions", f"u{n}", {"force": True})
            learners.reverse()
        frozen = rng.random() < 0.3
        await post("experiment", f"x{n}", {"learner": learners[0], "share": 0.5, "frozen": frozen})


def check(told: Told, copy: Path) -> None:
    """Of a copy of the loop as it was left: the server itself has to recover what is there."""
    shutil.copytree(told.path, copy)
    counts, events = check_log(copy, told.seq, told.undone)
    with Loop.open(copy) as loop:
        assert not [note for note in loop.notes if "damaged" in note]
        assert loop.projection.model.shared.t == len(counts), "counted twice, or not"
        assert {event.id for event, _, _ in loop.projection.lessons()} == counts
        assert bits(loop) == bits_from_scratch(loop)
        assert loop.verify() == []
        said = [each for each in events if each[0] in ("experiment", "stop", "promote")]
        running = loop.projection.published.running
        assert (("experiment", running.id) if running else None) == (
            said[-1] if said and said[-1][0] == "experiment" else None
        )
        assert sides(loop) == sides(loop, from_scratch=True)
        for id in random.Random(len(events)).sample(sorted(told.decisions), min(50, len(told.decisions))):
            known, answered = loop.projection.find_decision(id), told.decisions[id]
            assert known is not None
            assert [known.names[j] for j in known.record.shown] == list(answered["shown"])
            assert (known.version, known.record.probability) == (answered["version"], answered["probability"])
    shutil.rmtree(copy)


async def killed(folder: Path, kills: int, key: str | None, servers: ExitStack) -> tuple[list[Told], Counter[str]]:
    """What clients were told by a server that was killed again and again, and when it was killed.

    `servers` ends what is left of it where the test fails."""
    rng, moments = random.Random(f"{kills}{key is None}"), Counter[str]()
    told = [Told(folder / f"{name}.heedful") for name in NAMES]
    server = servers.enter_context(Process(folder)).wait()
    clients = [Client(i, server.port, key, told[i % len(told)]) for i in range(CLIENTS)]
    at_work = [asyncio.create_task(client.work()) for client in clients]
    [tried] = [each for each in told if each.path.stem == TRIED]
    administrator = Asker(server.port, key)
    at_work.append(asyncio.create_task(administer(administrator, tried)))
    begins = 0.8
    for n in range(kills):
        start = time.monotonic()
        if n:
            server = servers.enter_context(Process(folder, port=server.port))
        before = heard(told)
        if n % 4 == 2:
            await asyncio.sleep(rng.uniform(0.0, 0.8 * begins))
        else:
            wanted = before + (rng.randrange(1, 100) if n % 4 == 1 else rng.randrange(200, 500))
            while heard(told) < wanted:
                await stop_where_one_failed(at_work)
                assert server.child.poll() is None, f"it ended by itself: {server.child.returncode}"
                await asyncio.sleep(0.001)
                if n and heard(told) == before:
                    begins = time.monotonic() - start
        if n % 4 == 3:  # told to end, and killed at that
            server.child.terminate()
            await asyncio.sleep(rng.uniform(0.0, 0.1))
            moments["while it ended"] += server.child.poll() is None
        elif heard(told) == before:
            moments["while it started"] += 1
        else:
            moments["in the middle"] += 1
        before = heard(told)
        server.kill()
        await asyncio.sleep(0.01)  # what it answered and was not read yet
        await stop_where_one_failed(at_work)
        moments["answers read afterwards"] += heard(told) - before
        for each in told:
            check(each, folder.with_name(f"copy-{n}"))
    with Process(folder, port=server.port).wait() as server:  # and everybody is answered in the end
        count = [len(each.seq) for each in told]

        def enough() -> bool:
            """Also of what happens rarely, and hardly ever on a machine that is busy."""
            all_of = sum((each.statuses for each in told), Counter[str]())
            rare = all(all_of[f"{kind} applied"] > 0 for kind in ("experiment", "stop", "promote"))
            return rare and all_of["undo applied"] > kills / 2 and fewest() >= 50

        def fewest() -> int:
            return min(len(each.seq) - before for each, before in zip(told, count))

        while not enough():
            await stop_where_one_failed(at_work)
            assert server.child.poll() is None, f"it ended by itself: {server.child.returncode}"
            await asyncio.sleep(0.01)
        for task in at_work:
            task.cancel()
        await asyncio.wait(at_work)
        server.end()
        assert "Traceback" not in server.told.read_text(), server.told.read_text()
    for asker in (administrator, *(client.asker for client in clients)):
        asker.close()
    for each in told:
        check(each, folder.with_name("copy"))
    return told, moments


def heard(told: list[Told]) -> int:
    """How many answers there were."""
    return sum(sum(each.statuses.values()) for each in told)


async def stop_where_one_failed(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            await task


@pytest.mark.slow
@pytest.mark.parametrize(("durable", "keyed"), [("decision", False), ("feedback", True)])
def test_killed_again_and_again(tmp_path: Path, durable: str, keyed: bool) -> None:
    """Also decisions that did not wait for the disk: what dies is the process, and not the machine."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name in NAMES:
        settings = {"shrink": 5.0, "snapshot_every": 30, "control": 0.1, "durable": durable}
        with small_loop(folder / f"{name}.heedful", n_items=N_ITEMS, **settings) as loop:
            if name == TRIED:
                loop.start_experiment("perceptron", share=0.5)
    key = None
    if keyed:
        with closing(Keys(folder)) as keys:
            _, key = keys.create("clients", scopes=["decide", "feedback", "admin"])
    kills = KILLS // 2
    with ExitStack() as servers:
        told, moments = asyncio.run(killed(folder, kills, key, servers))
    # That it was worth while: all that can happen did.
    statuses = sum((each.statuses for each in told), Counter[str]())
    print(f"\n{kills} kills: {dict(moments)}; {dict(statuses)}")
    assert statuses["feedback applied"] > 40 * kills
    assert statuses["feedback duplicate"] > 0.05 * statuses["feedback applied"]
    assert statuses["undo applied"] > kills / 2
    assert moments["in the middle"] >= kills // 2
    assert moments["while it started"] >= kills // 5
    assert FACTOR == 1 or moments["while it ended"] > 0
    assert min(statuses[f"{kind} applied"] for kind in ("experiment", "stop", "promote")) > 0
    with Loop.open(folder / f"{TRIED}.heedful") as loop:
        tried = [loop.experiment(event.id) for event in loop.projection.log.events(kinds=["experiment"])]
        assert sum(each.verdict.sessions for each in tried) > 0
    for each in told:
        assert len(list(each.path.glob("snapshot-*.safetensors"))) > 1
