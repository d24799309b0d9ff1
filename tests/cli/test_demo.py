"""`heedful demo`: the page is served until it is told to end; `--once` is what a loop makes of the same answers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from command import done, heedful, refusal

from heedful import Loop
from heedful.cli import demo_loops, demo_once, own_page
from heedful.server.context import Options

HEEDFUL = str(Path(sys.executable).with_name("heedful"))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return demo_loops.cars()


# ---------------------------------------------------------------------------- the cars, and who taught one of the loops


def test_the_cars(rows: list[dict[str, Any]]) -> None:
    assert len({row["name"] for row in rows}) == len(rows) == 406
    assert [row["name"] for row in rows if row["name"].endswith(")") and "(2" in row["name"]] == [
        "Ford Pinto '75 (2)",
        "Plymouth Reliant '82 (2)",
        "Toyota Corolla '82 (2)",
    ]
    [beetle] = [row for row in rows if row["name"] == "Volkswagen 1131 Deluxe Sedan '70"]
    assert beetle == {
        "name": "Volkswagen 1131 Deluxe Sedan '70",
        "weight in lb": 1835,
        "horsepower": 46,
        "miles per gallon": 26,
        "seconds to 60 mph": 20.5,
        "year": 1970,
        "origin": "Europe",
    }


def test_names_that_are_misspelled_in_the_file_are_mended(rows: list[dict[str, Any]]) -> None:
    names = " ".join(row["name"] for row in rows)
    published = (
        Path(str(__import__("importlib.util").util.find_spec("vega_datasets").origin)).parent / "_data" / "cars.json"
    ).read_text()
    assert [wrong for wrong in demo_loops.MENDED if wrong not in published] == []
    assert not re.search("chevroelt|maxda|toyouta|vokswagen|-benz|s Benz|@|acceleration", names)
    assert not re.search("Chevroelt|Maxda|Toyouta|Vokswagen|Accelerationord", names)
    assert {"Mercedes-Benz 300d '79", "Chevrolet Chevelle Malibu '70", "VW Rabbit '76"} <= {row["name"] for row in rows}


def test_every_feature_has_words_and_what_is_missing_is_average(rows: list[dict[str, Any]]) -> None:
    encoding = demo_loops.encoding_of(rows)
    assert set(encoding.names) == set(demo_loops.WORDS)
    [at] = encoding.places["miles per gallon"]
    missing = [row for row in rows if row["miles per gallon"] is None]
    assert len(missing) == 8
    assert {encoding.encode(row)[at].item() for row in missing} == {0.0}


@pytest.mark.slow
def test_the_simulated_person_keeps_her_promise_and_regret_its_bound(tmp_path: Path) -> None:
    demo_loops.make_demo_loops(tmp_path)
    before = {path.name: (path / "log.db").read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"cars.heedful", "simulated.heedful"}
    with Loop.open(tmp_path / "simulated.heedful") as loop:
        truth = loop.report().simulation
        lessons = loop.lessons(1000)
        report = loop.report()
    assert truth is not None
    assert truth.unbound == ""
    assert all(at.bound is not None and at.regret <= at.bound for at in truth.curve)
    assert truth.curve[-1].regret < truth.curve[0].regret / 10
    assert (len(lessons), truth.lists) == (200, report.learned.answered)
    assert {each.learned for each in lessons if each.arm == "control"} == {False}
    assert report.control.answered == 200 - truth.lists > 5
    assert report.difference is not None
    assert report.difference.low > 0
    demo_loops.make_demo_loops(tmp_path)  # they are there: nothing is made
    assert {path.name: (path / "log.db").read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_whether_it_helps_can_be_told_after_a_demo_of_usual_length(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Of people who look at thirty lists, and err now and then, most see that it does."""
    demo_loops.cars_loop(tmp_path, rows, control=demo_loops.CONTROL)
    clear = 0
    for seed in range(6):
        person, rng = demo_loops.Person.of(rows, seed), np.random.default_rng(seed)
        names = list(person.worth)
        folder = tmp_path / f"{seed}.heedful"
        shutil.copytree(tmp_path / "cars.heedful", folder)
        with Loop.open(folder) as loop:
            for n in range(30):
                hand = [names[j] for j in rng.choice(len(names), 8, replace=False).tolist()]
                wish = person.wish(hand) if rng.random() >= demo_once.MISTAKES else hand[int(rng.integers(8))]
                loop.feedback(loop.decide(hand, id=f"list-{n}").id, id=f"lesson-{n}", better=[wish])
            clear += loop.projection.interaction.findings(loop.report()).verdict.kind == "good"
    assert clear >= 4


def test_a_loop_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_loops.Person, "correct", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        demo_loops.make_demo_loops(tmp_path)
    assert not (tmp_path / "simulated.heedful").exists()
    monkeypatch.undo()
    demo_loops.make_demo_loops(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"cars.heedful", "simulated.heedful"}


# ---------------------------------------------------------------------------- once


@pytest.fixture(scope="module")
def figures() -> Any:
    return heedful("demo --once --json").json


@pytest.fixture(scope="module")
def words() -> str:
    got = done("demo --once", width=100)
    return got.out


@pytest.mark.slow
def test_what_was_learned_over_http_is_what_a_loop_learns(
    figures: Any, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The same answers to a loop in this process, by somebody of whom the weights alone are known."""
    hidden = {row["feature"]: row["hidden"] for row in figures["weights"]}
    X = dict(zip([row["name"] for row in rows], demo_loops.encoding_of(rows).encode_many(rows).astype(np.float64)))
    worth = {name: sum(w * value for w, value in zip(hidden.values(), x)) for name, x in X.items()}
    demo_loops.cars_loop(tmp_path, rows, control=0.25)
    names, rng, places = list(X), np.random.default_rng(0), dict[str, list[float]](learned=[], control=[])
    with Loop.open(tmp_path / "cars.heedful") as loop:
        for i in range(figures["lessons"]):
            hand = [names[j] for j in rng.choice(406, figures["hand"], replace=False)]
            decision = loop.decide(hand, id=f"list-{i + 1}")
            wish = hand[rng.integers(len(hand))] if rng.random() < 1 / 6 else max(hand, key=worth.__getitem__)
            places[decision.arm].append(1 / (1 + decision.shown.index(wish)))
            loop.feedback(decision.id, better=[wish])
        weights = np.array([loop.weights[name] for name in hidden])
    learned = np.array([row["learned"] for row in figures["weights"]])
    origin = np.array([name.startswith("origin=") for name in hidden])
    weights[origin] -= weights[origin].mean()  # every car has one origin
    np.testing.assert_allclose(learned, weights / np.linalg.norm(weights))
    assert sum(w for w, of_origin in zip(hidden.values(), origin) if of_origin) == pytest.approx(0)
    for arm, wanted in places.items():
        got = figures["report"][arm]
        assert (got["answered"], got["mean"]) == (len(wanted), pytest.approx(np.mean(wanted)))
    u, v = np.array(list(worth.values())), np.array(list(X.values())) @ learned
    pairs = [(u[i] - u[j]) * (v[i] - v[j]) > 0 for i in range(406) for j in range(i) if abs(u[i] - u[j]) > 1e-12]
    assert figures["pairs_alike"] == pytest.approx(np.mean(pairs), abs=1e-4)


@pytest.mark.slow
def test_it_learned_and_learning_helps(figures: Any) -> None:
    assert figures["pairs_alike"] > 0.8
    assert figures["report"]["difference"]["low"] > 0.05
    for side in ("hidden", "learned"):
        assert sum(row[side] ** 2 for row in figures["weights"]) == pytest.approx(1.0)


@pytest.mark.slow
def test_the_words(figures: Any, words: str) -> None:
    flat = " ".join(words.split())
    assert f"{100.0 * figures['pairs_alike']:.0f} % of all pairs" in flat
    assert "Does learning help? Yes" in flat
    assert {row["hidden"] * row["learned"] > 0 for row in figures["weights"]} == {True}
    assert "Nothing came out the other way round, only stronger or weaker." in flat
    assert "opposite" not in words
    for row in figures["weights"]:
        hidden, learned = (demo_loops.WORDS[row["feature"]][row[key] < 0] for key in ("hidden", "learned"))
        strength = "+" * max(1, round(10 * abs(row["hidden"])))
        assert re.search(rf"{hidden} +{re.escape(strength)} +{learned} ", words), row
    assert not re.search(r"\b(fold|world|regret|phi|argmax|arm)\b", words.split("What to try next")[0])


def test_what_came_out_the_other_way_round_is_not_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = demo_once.comparable({name: 1.0 + i for i, name in enumerate(demo_loops.WORDS)})
    turned = {name: -w if name in ("horsepower", "origin=Europe") else w for name, w in hidden.items()}
    for learned, told in (
        (turned, "The other way round came out: more horsepower and not from Europe."),
        (hidden | {"year": -hidden["year"]}, "The other way round came out: newer."),
    ):
        taught: Any = demo_once.DemoResult(hidden, learned, 0.7, None)  # type: ignore[arg-type]
        demo_once._show(taught)
        out = capsys.readouterr().out
        assert told in " ".join(out.split())
        marked = {line.split("+")[0].strip() for line in out.splitlines() if line.rstrip().endswith("opposite")}
        assert len(marked) == len(demo_once.other_way(taught)) > 0
        assert max(map(len, out.split("What to try")[0].splitlines())) <= 80


@pytest.mark.slow
def test_what_to_try_next_are_commands_there_are(words: str) -> None:
    lines = [line for line in words.split("What to try next")[1].splitlines() if line.startswith("  heedful ")]
    assert len(lines) == 4
    for line in lines:
        command = [word for word in shlex.split(line)[1:] if word[0] in "abcdefghijklmnopqrstuvwxyz"][:2]
        group = command if command[0] == "simulate" else command[:1]
        told = done(f"{' '.join(group)} --help")
        assert all(option in told.out for option in re.findall("--[a-z]+", line))


@pytest.mark.slow
def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    got = heedful("demo --json")  # which means --once
    assert got.json["weights"] == figures["weights"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("line", "option"), [("--once --dir x", "--dir"), ("--json --port 8710", "--port")])
def test_once_keeps_nothing_and_serves_nobody(line: str, option: str) -> None:
    got = heedful(f"demo {line}")
    told = f"heedful: {option}: expected without --once, which keeps nothing and serves nobody\n"
    assert (got.code, got.out, got.err) == (2, "", told)


@pytest.mark.parametrize("package", ["vega_datasets", "starlette", "jinja2", "httpx"])
def test_without_a_package_it_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "heedful.cli.console.importlib.util.find_spec", lambda name: None if name == package else found(name)
    )
    got = heedful("demo --once")
    told = f"heedful: the demo needs {package}, which is not installed: pip install '.[demo]'\n"
    assert (got.code, got.out, got.err) == (1, "", told)


def test_with_the_package_but_without_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr("heedful.cli.demo_loops.importlib.util.find_spec", lambda name: Spec)
    err = refusal("demo --once", code=1)
    assert "cars.json" in err
    assert "pip install '.[demo]'" in err


# ---------------------------------------------------------------------------- the page


class Running:
    """`heedful demo` in a process of its own, and who asks it."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        quiet = {name: os.environ[name] for name in os.environ.keys() - {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}}
        self.child = subprocess.Popen(
            [HEEDFUL, "demo", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=quiet | {"TMPDIR": str(self.temporary)} | environment,
        )
        assert self.child.stdout is not None
        self.said = self.child.stdout.readline()
        found = re.fullmatch(r"Teach it at (http://127\.0\.0\.1:(\d+))/loops/cars \(Ctrl-C ends it\)\n", self.said)
        if found is None:
            told = self.child.communicate(timeout=30)[1]
            raise AssertionError(f"{self.said!r} {told}")
        self.port = int(found[2])
        self.client = httpx.Client(base_url=found[1], timeout=30.0)

    def teach(self, lessons: int) -> None:
        for _ in range(lessons):
            decision = self.client.post("/v1/loops/cars/decisions", json={"show": 8}).raise_for_status().json()
            event = {"decision": decision["id"], "better": [decision["shown"][-1]]}
            assert self.client.post("/v1/loops/cars/feedback", json=event).raise_for_status().json()["learned"]

    def end(self, by: int = signal.SIGINT) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)"""
        self.client.close()
        self.child.send_signal(by)
        out, err = self.child.communicate(timeout=30)
        return self.child.returncode, " ".join(out.split()), err


@contextmanager
def running(folder: Path, *options: str, **environment: str) -> Iterator[Running]:
    it = Running(folder, *options, **environment)
    try:
        yield it
    finally:
        if it.child.poll() is None:
            it.child.kill()
            it.child.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGTERM])
def test_the_page_is_served_and_at_the_end_it_says_what_was_learned(tmp_path: Path, ended: int) -> None:
    with running(tmp_path, "--no-browser") as it:
        page = it.client.get("/loops/cars")
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html")
        assert it.client.get("/v1/loops").json() == {"loops": ["cars", "simulated"]}
        assert 'href="/loops/simulated/learned"' in page.text
        assert "one list in 3 comes shuffled" in " ".join(page.text.split())
        [home] = it.temporary.iterdir()
        it.teach(2)
        code, out, err = it.end(ended)
    assert code == 0
    sure, alike = r"seem to like, the strongest first: \S.* \++, .*", r"may like, one of these or several: \S.*, .*"
    assert re.match(rf"2 lessons\. What you (?:{sure}|{alike})\. Does learning help\? ", out)
    first, compared, last = err.splitlines()
    assert compared == (
        "heedful: one list in 3 comes shuffled, to compare with, more than is usual: so about 30 lists tell whether "
        f"learning helps; a loop that was taught: http://127.0.0.1:{it.port}/loops/simulated/learned"
    )
    assert first == f"heedful: what you teach is in {home} and goes when you end it; heedful demo --dir DIR keeps it"
    assert last == "heedful: the loops are gone with the demo; heedful demo --dir DIR keeps them"
    assert list(it.temporary.iterdir()) == []


@pytest.mark.slow
def test_the_page_calls_things_by_their_names(tmp_path: Path) -> None:
    with running(tmp_path, "--no-browser") as it:
        it.teach(3)
        page = it.client.get("/loops/cars").text
        assert it.end()[0] == 0
    assert (
        sum(f">{word}<" in re.sub(r"\s*([<>])\s*", r"\1", page) for pair in demo_loops.WORDS.values() for word in pair)
        >= 3
    )


@pytest.mark.slow
def test_a_folder_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    kept = tmp_path / "new" / "kept"
    with running(tmp_path, "--no-browser", "--dir", str(kept)) as it:
        _, out, err = it.end()
    assert out == "Nobody taught it, so nothing was learned."
    told = [f"what you teach is kept in {kept}", f"the loops are kept: heedful demo --dir {kept} goes on with them"]
    first, _, last = err.splitlines()
    assert [first, last] == [f"heedful: {line}" for line in told]
    with running(tmp_path, "--no-browser", "--dir", str(kept)) as it:
        it.teach(1)
        assert it.end()[1].startswith("1 lesson. What you ")
    with running(tmp_path, "--no-browser", "--dir", str(kept)) as it:
        it.teach(1)
        assert it.end()[1].startswith("2 lessons. ")
    assert list(it.temporary.iterdir()) == []
    assert "expected the folder that loops are in, got one of them" in refusal("demo --dir {}", kept / "cars.heedful")


def test_where_the_usual_port_is_taken_it_finds_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((own_page.HOST, 0)) as other, ExitStack() as stack:
        monkeypatch.setattr(own_page, "PORT", other.getsockname()[1])
        _, listener = own_page.listen(stack, tmp_path, None, Options())
        assert listener.getsockname()[1] != own_page.PORT


@pytest.mark.slow
def test_where_your_port_is_taken_it_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [HEEDFUL, "demo", "--port", str(port)],
            capture_output=True,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"127.0.0.1:{port}: Address already in use" in done.stderr
    assert "choose another --port" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_opens_the_page_in_a_browser_where_there_is_one(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {shlex.quote(str(opened))}\n')
    browser.chmod(0o700)
    with running(tmp_path, "--no-browser", BROWSER=str(browser)) as it:
        assert it.client.get("/healthz").status_code == 200
        it.end()
    assert not opened.exists()
    with running(tmp_path, BROWSER=str(browser)) as it:
        end = time.monotonic() + 30
        while not opened.exists() or not opened.read_text():
            assert time.monotonic() < end, "no browser was opened"
            time.sleep(0.02)
        it.end()
    assert opened.read_text() == f"http://127.0.0.1:{it.port}/loops/cars\n"


def test_the_usual_words_of_the_demo_are_its_own() -> None:
    assert demo_once.phrase("weight in lb", -0.1) == "lighter"
    assert demo_once.phrase("origin=the USA", 0.1) == "from the USA"
    assert demo_once.normal({"a": 0.0}) == {"a": 0.0}
    assert demo_once.normal({"a": 3.0, "b": -4.0}) == {"a": 0.6, "b": -0.8}
