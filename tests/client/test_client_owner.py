"""Two servers of one database: the client asks the one that owns a loop, as the other one says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_client import plain

from faulty import Clock, Connected, Faulty, hang, hurried, say, well, with_
from heedful.client.owners import AGAIN_AFTER

KEY = "hk_abcdefgh_" + "s3cr3t" * 7 + "x"
NAMES = ["a", "b", "c"]


@pytest.fixture
def pair() -> Iterator[tuple[Faulty, Faulty]]:
    """Two servers; neither refuses anything."""
    made = Faulty(plain), Faulty(plain)
    yield made
    for each in made:
        each.close()


def refuse(server: Faulty, owner: str) -> None:
    """Let the server say that another one owns the loop."""
    value = {"type": "urn:heedful:problem:unavailable", "detail": "another server owns this loop", "owner": owner}
    server.otherwise = with_(say(value, 503, Retry_After="1"))


def paths(server: Faulty) -> list[str]:
    """The last part of each path that was asked for, in order."""
    return [request.path.rpartition("/")[2] for request in server.seen]


def test_requests_go_to_the_owner_and_then_there_at_once(connect: Connected, pair: tuple[Faulty, Faulty]) -> None:
    one, two = pair
    refuse(one, two.url)
    client = connect(one.url, KEY)
    cars = client.loop("cars")
    d = cars.decide(NAMES, id="d1")
    assert (d.fallback, d.shown) == (False, ("c", "b", "a"))
    assert cars.feedback(d, clicks=["a"]).status == "applied"
    assert (paths(one), paths(two)) == (["decisions"], ["decisions", "feedback"])
    assert one.seen[0].value == two.seen[0].value
    assert two.seen[1].headers["authorization"] == f"Bearer {KEY}"
    # Of another loop nothing is known; and what is about no loop is asked at the client's own server.
    assert not client.loop("films").decide(NAMES).fallback
    assert client.healthy() is False
    assert paths(one) == ["decisions", "decisions", "healthz"]


def test_the_owner_may_be_another_one_later(connect: Connected, pair: tuple[Faulty, Faulty]) -> None:
    one, two = pair
    refuse(one, two.url)
    cars = connect(one.url).loop("cars")
    d = cars.decide(NAMES)
    one.otherwise = well
    refuse(two, one.url)
    assert not cars.decide(NAMES).fallback
    assert (len(one.seen), len(two.seen)) == (2, 2)
    assert cars.feedback(d, clicks=["a"]).status == "applied"
    assert (len(one.seen), len(two.seen)) == (3, 2)


def test_an_owner_that_is_gone(connect: Connected, pair: tuple[Faulty, Faulty]) -> None:
    one, two = pair
    refuse(one, two.url)
    cars = connect(one.url).loop("cars")
    assert not cars.decide(NAMES).fallback
    two.close()
    one.otherwise = well
    assert not cars.decide(NAMES).fallback
    assert paths(one) == ["decisions", "decisions"]


def test_an_owner_that_cannot_be_reached_is_left_alone_for_a_while(
    connect: Connected, pair: tuple[Faulty, Faulty]
) -> None:
    one, two = pair
    two.close()
    refuse(one, two.url)
    client = connect(one.url, failures=100)
    clock, cars = Clock(client), client.loop("cars")
    d = cars.decide(NAMES)
    assert (d.fallback, d.reason) == (True, "another server owns this loop")
    started = Faulty(plain)
    refuse(one, started.url)
    assert not cars.decide(NAMES).fallback
    refuse(one, two.url)
    owners, asked = getattr(client, "_awaited", client)._owners, []
    may_ask = owners._may_ask
    owners._may_ask = lambda url: asked.append(url) or may_ask(url)
    owners._found.clear()
    assert cars.decide(NAMES).fallback
    assert asked == []
    clock.now += AGAIN_AFTER
    assert cars.decide(NAMES).fallback
    assert asked == [two.url]
    started.close()


def test_a_slow_owner_is_not_left_alone(connect: Connected, pair: tuple[Faulty, Faulty]) -> None:
    one, two = pair
    refuse(one, two.url)
    cars = connect(one.url).loop("cars")
    assert not cars.decide(NAMES).fallback
    two.faults += [hang]
    with hurried(cars):
        assert cars.decide(NAMES).fallback
    assert not cars.decide(NAMES).fallback
    assert (len(one.seen), len(two.seen)) == (2, 3)


@pytest.mark.parametrize("owner", ["http://192.0.2.1:8710", "host-1", "", "ftp://127.0.0.1", "http://you:me@127.0.0.1"])
def test_a_key_is_not_sent_where_it_may_not_be(connect: Connected, pair: tuple[Faulty, Faulty], owner: str) -> None:
    """Over plain http to another machine, or to what is no address: the client asks its own server again."""
    one, _ = pair
    refuse(one, owner)
    cars = connect(one.url, KEY, patience=0.2).loop("cars")
    d = cars.decide(NAMES)
    assert (d.fallback, d.reason) == (True, "another server owns this loop")
    with pytest.raises(TimeoutError, match="another server owns this loop"):
        cars.feedback("d1", clicks=["a"])


def test_two_that_name_each_other(connect: Connected, pair: tuple[Faulty, Faulty]) -> None:
    """While a loop changes hands: each is asked once, and then the client waits."""
    one, two = pair
    refuse(one, two.url)
    refuse(two, one.url)
    client = connect(one.url)
    clock, cars = Clock(client), client.loop("cars")
    assert cars.decide(NAMES).fallback
    assert (len(one.seen), len(two.seen)) == (1, 1)
    with pytest.raises(TimeoutError):
        cars.feedback("d1", clicks=["a"])
    assert min(clock.slept) >= 1.0
    assert len(one.seen) + len(two.seen) <= 2 + 2 * (1 + len(clock.slept))
