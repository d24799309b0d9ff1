"""People who were not seen for long are forgotten, all at once: as if each was by hand, and nobody else."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from command import done, heedful, refusal

from heedful import Loop
from heedful.loop.log import now
from heedful.loop.silence import id_of
from heedful.server.context import Options
from heedful.server.main import served
from heedful.storage import Place
from loops import bits, bits_from_scratch, set_clock, small_loop
from processes import until

DAY = 86_400_000_000


def at(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Let it be so many days ago."""
    set_clock(monkeypatch, lambda: now() - round(days * DAY))


def visited(loop: Loop, person: str | None, id: str) -> None:
    d = loop.decide(id=f"d{id}", person=person)
    loop.feedback(d.id, id=f"e{id}", clicks=[d.shown[3]])


def life(place: Place, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """ann was seen 400 days ago, bob then and lately, cy answered lately what was decided then, dee corrected her style
    then; eve was about that long ago, and who visited without a name as well."""
    loop = small_loop(place, control=0.0, shrink=5.0)
    at(monkeypatch, 400)
    for person in ("ann", "bob", None):
        visited(loop, person, f"-{person}")
    loop.decide(id="d-cy", person="cy")
    loop.correct_style("dee", always="Be brief.")
    at(monkeypatch, 364)
    visited(loop, "eve", "-eve")
    at(monkeypatch, 10)
    visited(loop, "bob", "-bob-again")
    loop.feedback("d-cy", id="e-cy", clicks=["i3"])
    at(monkeypatch, 0)
    return loop


def test_who_was_not_seen_is_forgotten_and_nobody_else(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with life(home / "a.heedful", monkeypatch) as loop, life(home / "b.heedful", monkeypatch) as by_hand:
        assert loop.forget_unseen(401).people == 0
        before = loop.projection.log.last()
        gone = loop.forget_unseen(365)
        assert (gone.people, gone.events, gone.erased) == (2, 3, True)
        assert loop.projection.log.people() == {"bob", "cy", "eve"}
        for person in ("ann", "dee"):
            assert by_hand.forget(person).people == 1
        assert bits(loop) == bits(by_hand) == bits_from_scratch(loop)
        assert loop.verify() == []
        counts = loop.projection.log.counts()
        assert (counts["forget"], counts["erased"]) == (2, 1)
        again = loop.feedback("d-ann", id="late", clicks=["i1"])
        assert again.reason is not None
        assert again.reason.endswith("was forgotten")
        assert loop.forget_unseen(365).people == 0
        assert loop.projection.log.last()[0] == before[0] + 3
        with pytest.raises(ValueError, match=r"days: expected a number from 0\.001"):
            loop.forget_unseen(0)


def test_what_the_loop_says_of_their_silence_is_not_from_them(home: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_loop(home / "a.heedful", control=0.0, none_after=60.0) as loop:
        at(monkeypatch, 400)
        loop.decide(id="d1", person="ann")
        at(monkeypatch, 0)
        visited(loop, "bob", "2")  # with which the answer to ann's list is written
        visited(loop, "bob", "3")
        assert loop.projection.log.find("feedback", id_of("d1")) is not None
        assert loop.forget_unseen(365).people == 1
        assert loop.projection.log.people() == {"bob"}


def test_more_people_than_a_query_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.loop.log.log.AT_ONCE", 3)
    monkeypatch.setattr("heedful.loop.log.reader.AT_ONCE", 3)
    with small_loop(tmp_path / "a.heedful", control=0.0) as loop:
        at(monkeypatch, 100)
        for i in range(8):
            visited(loop, f"p{i}", f"{i}")
        at(monkeypatch, 0)
        visited(loop, "new", "-new")
        gone = loop.forget_unseen(50)
        assert (gone.people, gone.events) == (8, 16)
        assert loop.projection.log.people() == {"new"}
        assert loop.verify() == []


@pytest.mark.slow
def test_a_server_forgets_them_in_all_loops_open_or_not(vault: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(vault, Path):
        (vault / "acme").mkdir()
    places = vault / "a.heedful", vault / "acme" / "b.heedful"
    for place in places:
        life(place, monkeypatch).close()
    fresh = small_loop(vault / "c.heedful")
    visited(fresh, "bob", "1")
    fresh.close()
    monkeypatch.setattr("heedful.server.context.FORGET_EVERY", 0.05)

    def people(place: Place) -> set[str]:
        with Loop.open(place, read_only=True) as loop:
            return loop.projection.log.people()

    with served(vault, Options(forget_unseen=365.0)) as url:
        until(lambda: all(people(place) == {"bob", "cy", "eve"} for place in places))
        # One that is open when somebody grows old in it: what is in memory goes as well.
        for id in ("d-old", "d-bob"):
            person = id.removeprefix("d-")
            answer = httpx.post(f"{url}/v1/loops/c/decisions", json={"id": id, "person": person})
            assert answer.status_code == 200, answer.text
        monkeypatch.setattr("heedful.loop.retraction.now", lambda: now() + 500 * DAY)
        until(lambda: people(vault / "c.heedful") == set())
        told = {"decision": "d-old", "clicks": [answer.json()["shown"][1]]}
        assert httpx.post(f"{url}/v1/loops/c/feedback", json=told).status_code == 409
    for place in places:
        with Loop.open(place) as loop:
            assert loop.verify() == []
            assert not loop.projection.log.unfinished()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        life(tmp_path / f"{name}.heedful", monkeypatch).close()
    small_loop("c.heedful").close()
    assert refusal("forget a --yes") == "PERSON: expected one, or --unseen DAYS, got neither"
    assert refusal("forget a ann --unseen 3 --yes") == "PERSON: expected one, or --unseen DAYS, got both"
    assert refusal("forget a --unseen 0 --yes").startswith("--unseen: expected a number, 0.001 or more")
    assert done("forget a --unseen 1000 --yes").out == "everybody was seen since\n"
    assert done("forget a --unseen 365 --yes").out.splitlines()[0].startswith("2 people: 3 events erased")
    got = done("forget . --unseen 365 --yes").out.splitlines()
    assert got[1:] == [
        "3 events erased in 1 of 3 loops",
        "The models keep what people taught who were seen since, and answers to decisions for nobody.",
        "Back-ups of the folder are out of reach, and may still hold them.",
    ]
    assert got[0].startswith("b.heedful: 2 people: 3 events erased")
    # One person, in all loops of a tenant; one that cannot be read holds up no other.
    (tmp_path / "b.heedful" / "log.db").write_text("no log")
    told = heedful("forget . bob --yes --json")
    assert told.code == 1
    assert told.err.startswith("heedful: b.heedful: b.heedful/log.db: expected a log")
    assert (told.json["person"], told.json["failed"]) == ("bob", ["b.heedful"])
    assert [(each["loop"], each["events"]) for each in told.json["loops"]] == [("a.heedful", 4), ("c.heedful", 0)]


def test_forget_stays_within_a_tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme").mkdir()
    monkeypatch.chdir(tmp_path)
    with small_loop("acme/vans.heedful") as loop:
        visited(loop, "ann", "1")
    assert refusal("forget . ann --yes") == (
        ".: expected the loops of a tenant, as the same name may be somebody else there"
    )
    small_loop("cars.heedful").close()
    assert done("forget . ann --yes").out == "0 events erased in 0 of 1 loop\n"
    assert "2 events erased in 1 of 1 loop" in done("forget acme ann --yes").out
