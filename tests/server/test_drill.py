"""The drill of an operator: two servers on one PostgreSQL, eight writers, and what is done to the servers and to it;
and a server of a folder whose disk fills up."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from asking import metrics
from test_readiness import refused
from test_takeover import check

import postgres as postgresql
from heedful import Loop
from heedful.server.peers import rendezvous
from heedful.storage import Place, place_of
from loops import bits, bits_from_scratch
from processes import HEEDFUL, Process, check_log, made, problem, until
from takeover import LONGEST, Acknowledged, Crowd, Node, copies, owners

pytestmark = pytest.mark.long

LOOPS, WRITERS = 500, 8
RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "rules.yaml"


def longest_gap(crowd: Crowd, since: int) -> float:
    """The most seconds between two acknowledgements of a writer, from its acknowledgement number `since` on."""
    times = [each.at for each in crowd.told[since:]]
    return max(after - before for before, after in pairwise(times))


def heedful(*words: object) -> None:
    """A command that has to go well."""
    done = subprocess.run([HEEDFUL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def places(acknowledged: Sequence[Acknowledged]) -> dict[tuple[str, str], int]:
    """(kind, id) -> where each was said to be."""
    return {(each.kind, each.id): each.seq for each in acknowledged}


def logged(place: Place) -> list[Any]:
    """All events of a loop that is the fold of them, bit for bit."""
    with Loop.open(place, read_only=True) as loop:
        assert loop.verify() == []
        assert bits(loop) == bits_from_scratch(loop)
        return list(loop.projection.log.events())


# ---------------------------------------------------------------------------- alerts

Sample = Mapping[str, Mapping[tuple[str, frozenset[tuple[str, str]]], float] | None]
"""server -> what its /metrics says; None if it does not answer"""
OF_A_SLOW_MACHINE = {"HeedfulSlow", "HeedfulLeasesLost"}


def scrape(nodes: Sequence[Node]) -> Sample:
    """What Prometheus would see of the servers."""
    found = {}
    for node in nodes:
        try:
            found[node.url] = metrics(httpx.get(f"{node.url}/metrics", timeout=LONGEST).content)
        except httpx.TransportError:
            found[node.url] = None
    return found


def holding(before: Sample, after: Sample) -> set[str]:
    """The alerts of deploy/prometheus whose expressions hold between two samples. The time between stands for any
    window, so that little is enough, and a series that is new has grown from 0."""
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    rules = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    expr, there = "", [each for each in after.values() if each is not None]

    def values(name: str) -> list[float]:
        assert name in expr
        return [value for each in there for (series, _), value in each.items() if series == name]

    def grown(name: str, *by: str, **labels: str) -> Counter[tuple[str | None, ...]]:
        assert name in expr
        found = Counter[tuple[str | None, ...]]()
        for server, now in after.items():
            for key, value in (now or {}).items():
                told = dict(key[1])
                if key[0] == name and all(re.fullmatch(labels[each], told.get(each, "")) for each in labels):
                    was = (before[server] or {}).get(key, 0.0)
                    found[tuple(told.get(each) for each in by)] += value - was if value >= was else value
        return found

    found = set()
    for alert, expr in rules.items():  # `values` and `grown` look at it
        limit = float(re.findall(r"\d+(?:\.\d+|e\d+)?", expr)[-1])
        match alert:
            case "HeedfulAway":
                holds = None in after.values()
            case "HeedfulDatabaseAway":
                holds = limit in values("heedful_database_reachable")
            case "HeedfulFollowerBehind":
                holds = max(values("heedful_follower_lag_events"), default=0.0) > limit
            case "HeedfulLeasesLost":
                holds = grown("heedful_leases_lost_total").total() > limit
            case "HeedfulKeyExpires":
                holds = bool(values("heedful_key_expires_timestamp_seconds"))  # there is no key
            case "HeedfulWorkRejected":
                holds = grown("heedful_work_rejected_total").total() > limit
            case "HeedfulFails":
                holds = grown("heedful_requests_total", status="5..").total() > limit
            case "HeedfulKeysRefused":
                holds = grown("heedful_requests_total", status="401").total() > limit
            case "HeedfulFeedbackRejected":
                loops = grown("heedful_events_total", "tenant", "loop", kind="feedback")
                rejected = grown("heedful_events_total", "tenant", "loop", kind="feedback", outcome="rejected")
                holds = any(rejected[loop] > limit * n for loop, n in loops.items())
            case "HeedfulNoFeedback":
                silent = grown("heedful_events_total", "tenant", "loop", kind="decision")
                answered = grown("heedful_events_total", "tenant", "loop", kind="feedback")
                holds = any(n > 0.1 * 3600 and not answered[loop] for loop, n in silent.items())
            case "HeedfulNotes":
                holds = max(values("heedful_notes"), default=0.0) > limit
            case "HeedfulDiskFills":
                holds = bool(values("heedful_disk_free_bytes"))  # of servers of folders
            case "HeedfulFiles":
                pairs = zip(values("process_open_fds"), values("process_max_fds"), strict=True)
                holds = any(n / most > limit for n, most in pairs)
            case _:
                assert alert in OF_A_SLOW_MACHINE, alert
                continue
        found |= {alert} if holds else set()
    return found


def alerts(samples: Sequence[Sample]) -> set[str]:
    """The alerts whose expressions held all the time."""
    return set.intersection(*(holding(*each) for each in pairwise(samples)))


# ---------------------------------------------------------------------------- the drill


def test_the_drill(tmp_path: Path, record_property: Any) -> None:
    if os.environ.get("HEEDFUL_TEST_DATABASE"):
        pytest.skip("a server of the tests' own is restarted, and HEEDFUL_TEST_DATABASE names another")
    run, gaps, held = f"drill-{secrets.token_hex(4)}", dict[str, float](), dict[str, set[str]]()
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgresql.database(stack.enter_context(postgresql.server(run))))
        except FileNotFoundError as error:
            pytest.skip(str(error))
        names = copies(url, LOOPS)
        nodes = [Node(url, tmp_path, 2.0, "--most-open", str(2 * LOOPS)) for _ in range(2)]
        for node in nodes:
            stack.callback(node.close)
            node.wait()
        asking = stack.enter_context(httpx.Client(timeout=LONGEST))
        samples = [scrape(nodes)]
        crowds = [Crowd([node.port for node in nodes], name, 1) for name in names[:WRITERS]]
        rightful = {name: rendezvous(name, tuple(node.url for node in nodes)) for name in names}

        def shared() -> bool:
            with closing(psycopg.connect(url, autocommit=True)) as db:
                return owners(db) == rightful

        def acknowledged() -> list[int]:
            return [len(crowd.told) for crowd in crowds]

        def wait_for_more(since: list[int]) -> None:
            """Until each writer has ten more acknowledgements than then."""
            until(lambda: all(len(crowd.told) > n + 10 for crowd, n in zip(crowds, since)), LONGEST)

        def wait_for_shares() -> None:
            """Until all loops are where they should be; each is used for that, as one that nobody uses has no owner."""
            for name in names:
                assert asking.post(f"{nodes[0].url}/v1/loops/{name}/decisions", json={}).status_code == 200
            until(shared, 5 * LONGEST)

        def all_is_well(act: str, since: list[int]) -> None:
            """All loops are where they should be, and each writer goes on."""
            wait_for_shares()
            for _ in range(2):
                wait_for_more(acknowledged())
                samples.append(scrape(nodes))
            gaps[act] = max(longest_gap(crowd, n) for crowd, n in zip(crowds, since))
            held[act] = alerts(samples)
            samples[:] = samples[-1:]

        all_is_well("nothing", acknowledged())
        since = acknowledged()
        for node in nodes:
            node.finish()
            node.start()
            node.wait()
            wait_for_shares()
        all_is_well("a rolling restart", since)
        since = acknowledged()
        nodes[0].kill()
        assert "HeedfulAway" in holding(samples[-1], scrape(nodes))
        wait_for_more(since)
        nodes[0].start()
        nodes[0].wait()
        all_is_well("a kill", since)
        since = acknowledged()
        postgresql.crash(run)
        wait_for_more(since)
        all_is_well("a crash of the database", since)
        since, before = acknowledged(), [list(crowd.told) for crowd in crowds]
        heedful("backup", url, tmp_path / "backup")
        all_is_well("a back-up", since)
        since = acknowledged()
        heedful("restore", tmp_path / "backup", tmp_path / "restored")
        heedful("copy", f"{url}#{names[0]}", tmp_path / "there.heedful")
        heedful("copy", tmp_path / "there.heedful", f"{url}#back")
        all_is_well("a restore, a copy there and back", since)
        for crowd in crowds:
            crowd.end()
        shares = Counter(rightful.values())
        assert all(0.4 * LOOPS <= shares[node.url] <= 0.6 * LOOPS for node in nodes)
        for node in nodes:
            node.finish()
        assert [each for crowd in crowds for each in crowd.wrong] == []
        n = sum(check(url, name, crowd) for name, crowd in zip(names, crowds))
        for name, acks in zip(names, before):
            path, whole = tmp_path / "restored" / f"{name}.heedful", logged(place_of(f"{url}#{name}"))
            check_log(path, places(acks), ())
            kept = logged(path)
            assert kept == whole[: len(kept)]
            assert len(kept) < len(whole)
        there, back = logged(tmp_path / "there.heedful"), logged(place_of(f"{url}#back"))
        assert there == back == logged(place_of(f"{url}#{names[0]}"))[: len(there)]
        with Loop.open(tmp_path / "there.heedful") as one, Loop.open(f"{url}#back") as other:
            assert bits(one) == bits(other)
    assert not {act: each for act, each in held.items() if each}
    told = {act: round(gap, 2) for act, gap in gaps.items()}
    record_property("told", f"{n} events, {[*shares.values()]} loops; the longest gap of a writer, s: {told}")


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """A disk of 16 MB at the folder `path`."""
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def test_the_disk_of_a_folder_is_full(tmp_path: Path, record_property: Any) -> None:
    with small_disk(tmp_path / "disk"), ExitStack() as stack:
        folder = made(tmp_path / "disk" / "served", "a")
        server = stack.enter_context(Process(folder).wait())
        crowd = Crowd([server.port], "a", WRITERS)
        stack.callback(crowd.end)

        def wait_for_more() -> None:
            n = len(crowd.told)
            until(lambda: len(crowd.told) > n + 10 * WRITERS, LONGEST)

        wait_for_more()
        assert refused(server.url) is None
        since, filler = len(crowd.told), tmp_path / "disk" / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(2**16))
        until(lambda: crowd.statuses["503"] > 10, LONGEST)
        reply = httpx.post(f"{server.url}/v1/loops/a/decisions", json={}, timeout=LONGEST)
        assert "full" in problem(reply, 503, "unavailable")["detail"]
        assert refused(server.url) == "the disk is full"
        assert httpx.get(f"{server.url}/v1/loops/a/weights", timeout=LONGEST).status_code == 200
        filler.unlink()
        wait_for_more()
        assert refused(server.url) is None
        crowd.end()
        server.end()
        assert crowd.wrong == []
        check_log(folder / "a.heedful", places(crowd.told), ())
        n = len(logged(folder / "a.heedful"))
        gap = longest_gap(crowd, since)
    record_property("told", f"{n} events; the longest gap of all writers, s: {gap:.2f}; {dict(crowd.statuses)}")
