"""The server's log: what many requests meet is said once in a while, with a count; what differs is said."""

from __future__ import annotations

import errno
import io
import json
import logging
import threading
from contextvars import Context, copy_context
from datetime import datetime
from pathlib import Path

import pytest
from asking import Wire

from heedful.server import server_log
from heedful.server.main import served
from heedful.server.problems import as_problem
from heedful.server.server_log import MOST, QUIET, log
from heedful.server.threads import Threads
from heedful.storage import Damaged, OutOfConnections


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, in a list that a test changes."""
    now = [1000.0]
    monkeypatch.setattr(server_log.time, "monotonic", lambda: now[0])
    return now


def test_one_cause_is_logged_once_in_a_while_with_a_count(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    full, out = OSError(errno.ENOSPC, "the disk is full", "log.db"), OutOfConnections("no connection left")
    for _ in range(500):
        assert as_problem(full).status == as_problem(out).status == 503
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    now[0] += QUIET + 1.0
    as_problem(full)
    assert "499 more" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 3


def test_one_cause_in_several_files_is_logged_once(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    for n in range(5):
        as_problem(OSError(errno.ENOSPC, "the disk is full", f"{n}.heedful/log.db"))
    assert len(caplog.records) == 1


def test_damage_is_logged_for_each_log(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    for _ in range(10):
        for name in "ab":
            assert as_problem(Damaged(f"{name}.heedful: event 3: expected ...: restore a back-up")).status == 500
    assert [record.exc_text is not None for record in caplog.records] == [True, True]  # with their tracebacks
    assert [caplog.text.count(f"{name}.heedful: event 3") for name in "ab"] == [1, 1]
    now[0] += QUIET + 1.0
    as_problem(Damaged("a.heedful: event 3: expected ...: restore a back-up"))
    assert caplog.records[-1].getMessage() == "a request failed (and 9 more since the last such line)"


def test_errors_with_one_text_from_two_places_are_two(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    def first() -> None:
        raise RuntimeError("no")

    def second() -> None:
        raise RuntimeError("no")

    for work in (first, second, first, second):
        try:
            work()
        except RuntimeError as error:
            as_problem(error)
    assert len(caplog.records) == 2


def test_lines_that_differ_in_a_value_are_all_logged(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    for path in ("a.heedful", "b.heedful", "a.heedful"):
        log.warning("%s: the write-ahead file could not be moved now: %s", path, "locked")
    assert [record.getMessage()[:9] for record in caplog.records] == ["a.heedful", "b.heedful"]
    log.error("%s: the write-ahead file could not be moved now: %s", "a.heedful", "locked")
    assert caplog.records[-1].levelno == logging.ERROR  # worse than it was


def test_lines_that_all_differ_do_not_fill_the_memory(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    for n in range(3 * MOST):
        now[0] += 1.0
        log.warning("%d", n)
    assert len(server_log._logged) <= MOST + 1
    assert len(caplog.records) == 3 * MOST


def test_lines_of_many_threads_are_counted(caplog: pytest.LogCaptureFixture, now: list[float]) -> None:
    threads = [threading.Thread(target=lambda: [log.error("no") for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caplog.records) == 1
    now[0] += QUIET + 1.0
    log.error("no")
    assert "1,599 more" in caplog.records[-1].getMessage()


# ---------------------------------------------------------------------------- which request it was


def formatted(json: bool, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Let the log be written, and return where."""
    stream, root = io.StringIO(), logging.Logger("root")
    monkeypatch.setattr(server_log.sys, "stderr", stream)
    monkeypatch.setattr(server_log.logging, "basicConfig", lambda handlers, level: root.addHandler(handlers[0]))
    server_log.write_log(json)
    monkeypatch.setattr(log, "handlers", root.handlers)
    return stream


def fail_in_a_request(loop: str) -> None:
    """Log an error as of a request for a loop."""
    server_log.begin_request([(b"host", b"localhost"), (b"x-request-id", b"r-1")])
    server_log.label_request("acme", "hk_ab12cd34", loop)
    assert b'"request_id":"r-1"' in as_problem(RuntimeError("no")).body


def test_a_line_names_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = formatted(False, monkeypatch)
    log.error("of nobody")
    copy_context().run(fail_in_a_request, "cars")
    copy_context().run(fail_in_a_request, "x\nERROR forged")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith(" ERROR heedful.server: of nobody")
    assert lines[1].endswith(
        "ERROR heedful.server: a request failed [request=r-1 tenant=acme key=hk_ab12cd34 loop=cars]"
    )
    assert lines[2] == "RuntimeError: no"
    assert "forged" not in stream.getvalue()


def test_a_line_of_json_has_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = formatted(True, monkeypatch)
    log.warning("of %s\nand more", "nobody")
    copy_context().run(fail_in_a_request, "cars")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    assert first == {"level": "WARNING", "message": "of nobody\nand more"}
    assert "RuntimeError: no" in second.pop("error")
    assert second.keys() - {"time"} == {"level", "message", "request", "tenant", "key", "loop"}
    assert (second["request"], second["key"], second["loop"]) == ("r-1", "hk_ab12cd34", "cars")


def test_work_in_a_thread_is_of_its_request() -> None:
    server_log.begin_request([(b"x-request-id", b"r-2")])
    pool = Threads(1, "test")
    assert pool.submit(server_log.request_id).result(60) == "r-2"
    assert Context().run(pool.submit, server_log.request_id).result(60) == ""
    pool.shutdown()


def test_the_start_and_the_end_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with served(tmp_path):
        assert f"begins to serve {tmp_path}" in caplog.text
    assert f"has ended to serve {tmp_path}" in caplog.text


def test_every_answer_has_the_id_of_its_request(tmp_path: Path) -> None:
    sane, others = ["ann.7-a_b~:/+=@", "x" * 100], ["x" * 101, "a b", 'a"b', "ä", ""]
    with served(tmp_path) as url, Wire(url) as wire:
        for given in (*sane, *others):
            for target in ("/healthz", "/v1/loops", "/v1/loops/none", "/v1/none", "/", "/heedful.js"):
                lines = f"GET {target} HTTP/1.1\r\nhost: localhost\r\nx-request-id: {given}\r\n\r\n"
                wire.send(lines.encode())
                answer = wire.must()
                id = answer.headers["x-request-id"]
                assert id == given if given in sane else 1 <= len(id) <= 30 and id.isascii(), (given, target)
                if answer.headers.get("content-type") == "application/problem+json":
                    assert answer.value["request_id"] == id
        twice = b"GET /v1/none HTTP/1.1\r\nhost: localhost\r\nx-request-id: a\r\nx-request-id: b\r\n\r\n"
        wire.send(twice + b"no http\r\n\r\n")
        for _ in range(2):
            answer = wire.must()
            assert answer.value["request_id"] == answer.headers["x-request-id"] not in ("a", "b")
