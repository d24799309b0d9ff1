"""Experiments, promotions and rollbacks of a loop in PostgreSQL: the owner alone writes them, and all see the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from heedful import Loop
from heedful.loop.projection import Projection
from heedful.storage import Address, Owned
from loops import bits, bits_from_scratch, sides, small_loop
from takeover import new_name

ACTS: dict[str, Callable[[Loop], Any]] = {
    "start": lambda loop: loop.start_experiment("second-order", share=0.5, id="act"),
    "stop": lambda loop: loop.stop_experiment(id="act"),
    "promote": lambda loop: loop.promote("second-order", force=True, id="act"),
    "rollback": lambda loop: loop.rollback(5, id="act"),
}
KINDS = ["experiment", "stop", "promote", "rollback"]
each_act = pytest.mark.parametrize("act", ACTS)


@pytest.fixture
def address(postgres: str) -> Address:
    """A loop with a few lessons, in which an experiment runs."""
    there = Address(postgres, new_name())
    with small_loop(there, "perceptron", control=0.0) as loop:
        teach(loop, range(8))
        loop.start_experiment("posterior:swap=0", share=0.5, id="running")
        teach(loop, range(8, 12))
    return there


def teach(loop: Loop, rounds: range) -> None:
    for i in rounds:
        shown = loop.decide(person=f"p{i % 3}", id=f"d{i}", show=4).shown
        loop.feedback(f"d{i}", id=f"e{i}", better=[shown[2]])


def owning(address: Address) -> Loop:
    """The loop, opened as a server does it."""
    loop = Loop.open(address)
    loop.projection.log.store.keep_owning(60.0, "http://there")
    return loop


def let_go(address: Address) -> None:
    """The lease of whoever owns the loop runs out, as when that one is stopped for long."""
    with psycopg.connect(address.url, autocommit=True) as connection:
        query = "UPDATE heedful.lease SET expires = '-infinity' FROM heedful.loop WHERE number = loop AND name = %s"
        connection.execute(query, [address.key])


def acts(loop: Loop) -> list[tuple[str, str]]:
    """(kind, id) of all that was done, besides decisions and feedback."""
    return [(event.kind, event.id) for event in loop.projection.log.events(kinds=KINDS)]


def same(one: Loop, two: Loop) -> None:
    """Both have the model of the log, the same learner serves, and the same one is tried."""
    for each in (one, two):
        each.projection.look()
        assert bits(each) == bits_from_scratch(each)
        assert sides(each) == sides(each, from_scratch=True)
        assert each.verify() == []
    assert (bits(one), sides(one)) == (bits(two), sides(two))
    assert one.manifest.learner == two.manifest.learner
    assert one.promotions() == two.promotions()


@each_act
def test_whoever_does_not_own_the_loop_changes_nothing(address: Address, act: str) -> None:
    with owning(address) as one, owning(address) as two:
        if act == "start":
            one.stop_experiment(id="over")
        one.decide(id="owned")
        two.projection.look()
        before, done, head = bits(two), acts(two), two.projection.log.last()
        with pytest.raises(Owned) as told:
            ACTS[act](two)
        assert told.value.owner == "http://there"
        assert (bits(two), acts(two), two.projection.log.last()) == (before, done, head)
        ACTS[act](one)
        assert len(acts(one)) == len(done) + 1
        same(one, two)
        teach(one, range(20, 24))
        same(one, two)


@each_act
def test_an_owner_that_was_replaced_meanwhile_writes_nothing(
    address: Address, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped when all is ready to be written, for longer than its lease; another one takes over and goes on."""
    with owning(address) as one, owning(address) as two:
        if act == "start":
            one.stop_experiment(id="over")
        one.decide(id="owned")
        submit = Projection.submit_in_turn

        def stopped(self: Projection, drafts: Any) -> Any:
            monkeypatch.undo()
            let_go(address)
            teach(two, range(20, 23))
            return submit(self, drafts)

        done = acts(one)
        monkeypatch.setattr(Projection, "submit_in_turn", stopped)
        with pytest.raises(Owned):
            ACTS[act](one)
        assert acts(one) == acts(two) == done
        same(one, two)
        ACTS[act](two)  # sent again, with its id, to the one that owns the loop
        again = ACTS[act](two)
        assert getattr(again, "answer", again).status == "duplicate"
        assert [each for each in acts(two) if each not in done] == [(KINDS[list(ACTS).index(act)], "act")]
        same(one, two)


def test_what_one_owner_promoted_the_next_one_takes_back(address: Address) -> None:
    with owning(address) as one, owning(address) as two:
        before, version = bits(one), one.version
        assert one.promote(force=True, id="up").learner == "posterior:swap=0"
        teach(one, range(20, 26))
        promoted, promoted_at = bits(one), one.version
        let_go(address)
        two.rollback(version, id="back")
        assert bits(two) == before
        same(one, two)
        assert one.manifest.learner == "perceptron"
        teach(two, range(30, 33))
        let_go(address)
        one.rollback(promoted_at, id="forth")
        assert bits(one) == promoted
        same(one, two)
        assert two.manifest.learner == "posterior:swap=0"
    with Loop.open(address) as third:
        assert bits(third) == promoted
