"""The server's log: what many requests meet is said once in a while, with a count; what differs is said."""

from __future__ import annotations

import errno
import logging
import threading

import pytest

from heedful.server import server_log
from heedful.server.problems import as_problem
from heedful.server.server_log import MOST, QUIET, log
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
