"""The client and loops of every kind of feedback, from a real server: what it says is what the loop says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful import Loop
from kinds import FIFTH, NAMES, Kind, ask, each_kind, teach
from loops import choice_loop, rating_loop, small_loop

pytest.importorskip("httpx")
running = pytest.importorskip("heedful.server.main")

from heedful.client import Client  # noqa: E402
from heedful.server.context import Options  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    small_loop(folder / "cars.heedful").close()
    with running.served(folder, Options(own=(FIFTH,))) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, timeout=60.0) as client:
        yield client


@pytest.mark.slow
@each_kind
def test_the_client_says_what_the_loop_says(kind: Kind, client: Client, folder: Path) -> None:
    path = folder / f"said-{kind.name}.heedful"
    with kind.make(path) as own:
        teach(kind, own, range(12))
    there = client.loop(f"said-{kind.name}")
    made = there.decide(**ask(kind, 12))
    assert there.decide(**ask(kind, 12)) == made
    answer = there.feedback(made, id="e12", **kind.answer(12, made.shown))
    assert (answer.status, answer.learned) == ("applied", True)
    other = [] if kind.own else [kind.other]
    with Loop.open(path, learner=kind.own) as own:
        here = own.decide(**ask(kind, 12))._asdict()
        assert {name: getattr(made, name) for name in here} == here
        assert there.why("d12") == own.why("d12")
        assert there.report() == own.report()
        assert there.evaluate(*other) == own.evaluate(*other)
        assert there.weights("p1") == own.weights_of("p1")
        about = there.about()
        facts = {name: own.facts.get(name) for name in ("grades", "ratings", "choices")}
        assert [about.grades, about.ratings and list(about.ratings), about.choices] == list(facts.values())
        assert about.features == own.manifest.encoding.size
        if kind.name == "comparison":
            for person in (None, "p1"):
                assert there.standing(person) == own.standing(person)
            assert there.standing(without=["p1"]) == own.standing(without=["p1"]) != own.standing()
    with pytest.raises(ValueError, match="feedback: expected one of"):
        there.feedback(made, nothing=True)


@each_kind
def test_a_fallback_shows_the_callers_order_and_may_be_answered(
    kind: Kind, client: Client, folder: Path, url: str
) -> None:
    """Told with the first feedback once the server is there, as what somebody else decided."""
    with Client("http://127.0.0.1:9", timeout=0.05) as away:
        made = away.loop(f"back-{kind.name}").decide(NAMES, person="p", show=3)
        assert (made.shown, made.predicted, made.fallback) == (("i0", "i1", "i2"), None, True)
    kind.make(folder / f"back-{kind.name}.heedful").close()
    there = client.loop(f"back-{kind.name}")
    assert there.feedback(made, **kind.answer(1, made.shown)).learned
    assert there.why(made.id).arm == "imported"


# ---------------------------------------------------------------------------- what is of one kind


def test_a_loop_is_made_with_features_or_none(client: Client) -> None:
    items = [{"id": f"i{j}", "price": float(j)} for j in range(4)]
    settings = {"choices": "ranking"}
    assert client.create("bare", items, settings=settings).about().features == 0
    assert client.create("seen", items, settings=settings, features=True).about().features == 1


def test_a_fallback_shows_two_once_it_is_known_that_two_are_compared(tmp_path: Path) -> None:
    """And as many as it is asked for; it may be answered."""
    choice_loop(tmp_path / "covers.heedful").close()
    with running.served(tmp_path) as url:
        client = Client(url, timeout=60.0)
        assert len(client.loop("covers").decide(NAMES[:8], person="p").shown) == 2
    with client:
        client.timeout = 0.2
        made = client.loop("covers").decide(NAMES[:8], person="p")
        assert (made.shown, made.predicted, made.fallback) == (("i0", "i1"), None, True)
        assert client.loop("covers").decide(NAMES[:8], person="p", show=3).shown == ("i0", "i1", "i2")
    with running.served(tmp_path) as url, Client(url, timeout=60.0) as client:
        assert client.loop("covers").feedback(made, choice="second").learned
        assert client.loop("covers").why(made.id).arm == "imported"


def test_a_fallback_shows_as_many_as_the_loop_showed_at_most(client: Client, folder: Path) -> None:
    """One item that is left for a person is not a loop that shows one; what is named twice is shown once."""
    rating_loop(folder / "films.heedful", control=0.0).close()
    loop = client.loop("films")
    assert len(loop.decide(["i0", "i1", "i1"], person="q").shown) == 2
    assert "films" not in client._few
    made = loop.decide(NAMES, person="p", id="d")
    assert len(made.shown) == 3
    loop.feedback("d", rating=dict.fromkeys(made.shown[:2], 1))
    assert len(loop.decide(made.shown, person="p").shown) == 1
    assert client._few["films"] == 3
