"""Connections to a database that many loops share: how many there are, and what happens to those that are lost."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.storage import Address, Busy, Closed, OutOfConnections, postgres
from heedful.storage.pool import MOST, Pool
from heedful.storage.postgres import Server
from processes import until


class Raw:
    """A connection of psycopg's."""

    def __init__(self) -> None:
        self.closed = self.broken = False
        self.info = SimpleNamespace(transaction_status=0)

    def close(self) -> None:
        """Close it."""
        self.closed = True


class Made:
    """Makes connections, as many as the database has."""

    def __init__(self, most: int = 100) -> None:
        self.most, self.all = most, list[Raw]()

    def __call__(self) -> Raw:
        """A new one."""
        if sum(not raw.closed for raw in self.all) >= self.most:
            raise OutOfConnections("none left")
        self.all.append(Raw())
        return self.all[-1]


@pytest.fixture
def pool() -> Pool:
    """A pool that somebody uses."""
    made = Pool()
    made.users = 1
    return made


def test_a_connection_is_used_again_for_whatever_comes_next(pool: Pool) -> None:
    made = Made()
    for use in MOST:
        raw = pool.lend(use, 1.0, made)
        pool.take_back(use, raw)
    assert len(made.all) == 1


def test_of_each_use_there_are_a_few_and_none_takes_those_of_another(pool: Pool) -> None:
    made = Made()
    reading = [pool.lend("read", 1.0, made) for _ in range(MOST["read"])]
    with pytest.raises(Busy):
        pool.lend("read", 0.0, made)
    with pytest.raises(TimeoutError, match="all connections to the database are in use"):
        pool.lend("read", 0.01, made)
    pool.take_back("write", pool.lend("write", 1.0, made))
    got = list[Any]()
    waiting = threading.Thread(target=lambda: got.append(pool.lend("read", 60.0, made)))
    waiting.start()
    pool.take_back("read", reading.pop())
    waiting.join(60.0)
    assert len(got) == 1
    assert len(made.all) == MOST["read"] + 1


def test_who_does_not_wait_makes_none(pool: Pool) -> None:
    with pytest.raises(Busy):
        pool.lend("write", 0.0, Made())
    made = Made()
    pool.take_back("read", pool.lend("read", 1.0, made))
    assert pool.lend("write", 0.0, made) is made.all[0]


def test_where_the_database_has_none_left_those_that_are_lent_are_waited_for(pool: Pool) -> None:
    made = Made(1)
    [first, got] = pool.lend("write", 1.0, made), list[Any]()
    with pytest.raises(OutOfConnections):
        pool.lend("read", 0.05, made)
    waiting = threading.Thread(target=lambda: got.append(pool.lend("read", 60.0, made)))
    waiting.start()
    until(lambda: pool._lent["read"] == 1)
    pool.take_back("write", first)
    waiting.join(60.0)
    assert got == [first]
    with pytest.raises(OutOfConnections):  # nobody would give one back
        Pool().lend("read", 60.0, Made(0))


def test_one_that_was_lost_takes_the_idle_ones_along_and_one_in_a_transaction_is_closed(pool: Pool) -> None:
    made = Made()
    one, two, three = (pool.lend("read", 1.0, made) for _ in range(3))
    three.info.transaction_status = 2
    pool.take_back("read", three)
    pool.take_back("read", two)
    assert (two.closed, three.closed) == (False, True)
    one.broken = True
    pool.take_back("read", one)
    assert (one.closed, two.closed) == (True, True)
    assert pool.lend("read", 1.0, made) is made.all[3]


def test_the_last_who_leaves_closes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made, url = Made(), "postgresql://h/shared"
    monkeypatch.setattr(Server, "connect", lambda *_: SimpleNamespace(raw=made()))
    one, two = Server(Address(url, "a")), Server(Address(url, "b"))
    for server in (one, two):
        with server.lent("read"):
            pass
    assert len(made.all) == 1
    lent = two.lend("write")
    one.close()
    assert not made.all[0].closed
    with pytest.raises(Closed):
        one.lend("read")
    two.close()
    lent.give_back()
    assert made.all[0].closed
    assert url not in {of for _, of in postgres._pools}
