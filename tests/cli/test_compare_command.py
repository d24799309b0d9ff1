"""`heedful compare`: from a folder to a page and a link; what is refused; going on with what is there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from command import heedful, refusal

from compared import answers, logos, png, study_of_rows
from heedful import Loop
from heedful.cli.compare import _print_answers
from heedful.cli.sharing import link_base, listening_host
from heedful.server.links import Links
from heedful.studies.study import study_of
from processes import free_port

HEEDFUL = str(Path(sys.executable).with_name("heedful"))


@contextmanager
def comparing(*args: object) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """A process of it with --json: (what it says once it answers, the process)."""
    ports = ["--port", str(free_port()), "--no-browser", "--json"]
    command = [HEEDFUL, "compare", *map(str, args), *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line, child.communicate()[1]
            text = line
            while True:  # JSON over several lines
                try:
                    told = json.loads(text)
                    break
                except json.JSONDecodeError:
                    text += child.stdout.readline()
            yield told, child
        finally:
            if child.poll() is None:
                os.kill(child.pid, signal.SIGTERM)
            child.communicate(timeout=30)


@pytest.mark.slow
def test_from_a_folder_to_a_link_and_on_again(tmp_path: Path) -> None:
    folder = logos(tmp_path / "our logos", 4)
    (folder / "cut.png").write_bytes(png(7)[:50])
    port = free_port()
    shared = ("--share", "--segment", "staff", "--segment", "customers", "--share-port", port)
    with comparing(
        folder, "--ask", "Which is bolder?", "--dir", tmp_path, *shared, "--address", f"http://127.0.0.1:{port}"
    ) as (told, child):
        assert told["study"] == str(tmp_path / "our-logos.heedful")
        assert told["left_out"] == ["cut.png: expected a whole PNG, got one that is cut off or damaged"]
        assert [link["segment"] for link in told["links"]] == ["staff", "customers"]
        owner = httpx.get(told["page"])
        assert owner.status_code == 200
        assert "Which is bolder?" in owner.text
        shared_url = f"http://127.0.0.1:{port}"
        with httpx.Client(follow_redirects=True, headers={"origin": shared_url}, timeout=30) as client:
            url = told["links"][1]["url"]
            assert url.startswith(f"{shared_url}/s/")
            assert "Which is bolder?" in client.get(url).text
            client.post(f"{url}/agree", data={"a": "b"})
            said = client.post(f"{url}/answer", data={"number": "0", "attempt": "0", "choice": "first"})
            assert "2 of 6" in said.text
            # At that port there is what a link opens, and nothing else, whoever says what of themselves.
            for path in (
                "/",
                "/loops/our-logos/compare",
                "/loops/our-logos/results",
                "/keys",
                "/v1/loops",
                "/healthz",
                "/openapi.json",
                "/s",
            ):
                for host in ("localhost", f"127.0.0.1:{port}"):
                    assert client.get(f"{shared_url}{path}", headers={"host": host}).status_code == 404, path
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 0
    [(person, choice, _)] = answers(tmp_path / "our-logos.heedful")
    assert (person.partition("/")[0], choice) == ("customers", "first")
    (folder / "new.png").write_bytes(png(11))
    with comparing(folder, "--dir", tmp_path) as (told, _):
        assert told["links"] == []
        assert "Which is bolder?" in httpx.get(told["page"]).text
    with Loop.open(tmp_path / "our-logos.heedful") as loop:
        assert "new" in loop.items
    with comparing(tmp_path / "our-logos.heedful") as (told, _):
        assert "Which is bolder?" in httpx.get(told["page"]).text


def answers_at(host: str, port: int) -> bool:
    """Whether anybody listens there."""
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except ConnectionRefusedError:
        return False


@pytest.mark.slow
def test_participants_are_waited_for_at_the_address_that_was_said_and_at_no_other(tmp_path: Path) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 4)
    port = free_port()
    behind = ("--share", "--share-port", port, "--listen", "127.0.0.2", "--address", "https://study.example.org")
    with comparing(path, *behind) as (told, child):
        assert [answers_at(f"127.0.0.{n}", port) for n in (1, 2)] == [False, True]
        assert told["listens"] == {"page": told["page"].split("/")[2], "participants": f"127.0.0.2:{port}"}
        [link] = told["links"]
        assert link["url"].startswith("https://study.example.org/s/")
        there = link["url"].replace("https://study.example.org", f"http://127.0.0.2:{port}")
        assert httpx.get(there, headers={"host": "study.example.org"}, timeout=30).status_code == 200
        child.send_signal(signal.SIGINT)
        assert child.stderr is not None
        said = " ".join(child.stderr.read().split())
    assert f"participants' port: 127.0.0.2:{port}, that address alone" in said


@pytest.mark.slow
def test_the_port_of_the_page_is_never_that_of_participants(tmp_path: Path) -> None:
    """They are told apart by it, so two addresses with one port would be one door."""
    path = study_of_rows(tmp_path / "words.heedful", 4)
    port = free_port()
    with comparing(path, "--share", "--share-port", port, "--listen", "127.0.0.2") as (told, _):
        assert told["links"][0]["url"].startswith(f"http://127.0.0.2:{port}/s/")
    assert "--share-port: expected another port than --port, got 8710 for both" in refusal(
        "compare {} --no-browser --share --share-port 8710 --listen 127.0.0.2", path
    )


@pytest.mark.parametrize(
    ("given", "address", "found"),
    [
        (None, None, "198.51.100.7"),  # where the links lead
        (None, "http://mine.example:8711", "198.51.100.7"),
        (None, "http://127.0.0.1:8711", "127.0.0.1"),  # links that nobody else could use
        (None, "http://localhost", "127.0.0.1"),
        ("0.0.0.0", None, "0.0.0.0"),
        ("127.0.0.1", "https://tunnel.example", "127.0.0.1"),
        ("localhost", None, "127.0.0.1"),
    ],
)
def test_where_participants_are_waited_for(
    given: str | None, address: str | None, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never at every address of this machine, unless that is said."""
    monkeypatch.setattr("heedful.server.main.own_address", lambda: "198.51.100.7")
    assert listening_host(given, address) == found


@pytest.mark.parametrize(("listen", "url"), [("0.0.0.0", "198.51.100.7"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_what_links_begin_with_where_nobody_says(listen: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.server.main.own_address", lambda: "198.51.100.7")
    assert link_base(listen, 8711) == f"http://{url}:8711"


def test_another_question_begins_another_study(tmp_path: Path) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 4, ask="Which is longer?")
    assert "--ask: expected 'Which is longer?', as the study in words.heedful began with, got 'Which'" in refusal(
        "compare {} --ask Which", path
    )
    assert heedful("compare {} --goal ranking", path).code == 2


@pytest.mark.slow
def test_what_no_answer_depends_on_may_change_and_what_is_gone_is_told(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 4)
    with comparing(folder, "--dir", tmp_path, "--share", "--address", "http://a.example") as (told, _):
        assert len(told["links"]) == 1
    (folder / "logo 2.png").unlink()
    changed = ("--questions", "5", "--consent", "For the jury alone.")
    with comparing(folder, "--dir", tmp_path, *changed) as (told, child):
        assert told["links"] == []
        child.send_signal(signal.SIGINT)
        assert child.stderr is not None
        said = " ".join(child.stderr.read().split())
    assert "no longer there, and still asked about: logo 2" in said
    assert "from now on: --consent For the jury alone., --questions 5" in said
    assert "1 earlier link is still good, but reached by nobody else without --share" in said
    study = study_of(tmp_path / "logos.heedful")
    assert (study.ask, study.questions, study.consent) == ("Which is better?", 5, "For the jury alone.")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}/nothing", "no such file or folder"),
        ("{}/logos --goal most", "--goal: expected best or ranking, got 'most'"),
        ("{}/logos --segment a", "--segment: expected --share with it"),
        ("{}/logos --share --lasts 5s", "--lasts: expected a minute to a year"),
        ("{}/logos --share --segment a --segment !b --dir {}", "--segment: expected 1 to 60 letters, digits"),
        ("{}/logos --share --address evil", "--address: expected where a site begins"),
        ("{}/logos --share --address https://a.example/b", "without a path"),
        ("{}/logos --listen 127.0.0.1", "--listen: expected --share with it"),
        ("{}/logos --share --listen a.example --dir {}", "--listen: expected an address of this machine"),
        ("{}/logos --share --listen 192.0.2.7 --dir {}", "--listen: expected an address of this machine"),
        ("{}/logos --share --share-port 8700 --port 8700 --dir {}", "--share-port: expected another port than --port"),
        ("{}/logos --name a/b --dir {}", "--name: expected a name of 1 to 100 letters"),
        ("{}/logos --show price --dir {}", "show: expected one of name, picture, got 'price'"),
        ("{}/logos --identifier price --dir {}", "identifier: expected none with a folder"),
        ("{}/one --dir {}", "expected two things or more to compare, got 1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, line: str, told: str) -> None:
    logos(tmp_path / "logos", 3)
    logos(tmp_path / "one", 1)
    assert told in refusal(f"compare {line} --no-browser", tmp_path, tmp_path)
    assert not list(tmp_path.glob("*.heedful"))


def test_links_are_made_for_all_segments_or_for_none(tmp_path: Path) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 4)
    with socket.create_server(("", 0)) as busy:
        ports = busy.getsockname()[1]
        got = heedful("compare {} --share --segment good --segment !bad --no-browser --port {}", path, ports)
    assert got.code == 2
    assert "--segment: expected 1 to 60 letters" in got.err
    with Loop.open(path) as loop:
        first = loop.projection.log.at(1)
    assert first is not None
    assert Links(tmp_path).all("main", "words", first.time) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("words", "words: expected a study called NAME.heedful"),
        ("my words.heedful", "expected a name of 1 to 100 letters"),
    ],
)
def test_a_study_that_no_page_is_found_by_is_refused(tmp_path: Path, name: str, told: str) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 4).rename(tmp_path / name)
    with socket.create_server(("127.0.0.1", 0)) as busy:  # so that nothing is served, whatever it says
        got = heedful("compare {} --no-browser --port {}", path, busy.getsockname()[1])
    assert got.code == 2
    assert told in got.err


def test_what_is_told_at_the_end_counts_what_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study_of_rows(tmp_path / "words.heedful", 4)

    def told() -> str:
        _print_answers(path, json=False)
        return capsys.readouterr().err

    with Loop.open(path) as loop:
        for n, choice in enumerate(("first", "cannot_judge", "second")):
            loop.decide(id=f"ask-{n}-you", person="you")
            if n == 0:
                loop.feedback("ask-0-you", id="ask-0.0-you", choice=choice)
                loop.undo("ask-0.0-you")
                assert "nobody has answered yet" in told()
            else:
                loop.feedback(f"ask-{n}-you", id=f"ask-{n}.0-you", choice=choice)
                assert ("1 answer: word" if n == 2 else "nobody could judge yet") in told()


@pytest.mark.slow
def test_ended_while_the_study_is_made_nothing_is_left(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 3)
    code = (
        "import os, signal, time; from heedful.cli import main; from heedful.studies import study\n"
        "assert study.write_own\n"
        "study.write_own = lambda *_: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(20)\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "compare", str(folder), "--dir", str(tmp_path), "--no-browser"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, "stopped" in ended.stderr) == (130, True)
    assert [each.name for each in tmp_path.iterdir()] == ["logos"]


@pytest.mark.slow
def test_an_impatient_hand_ends_it_in_order(tmp_path: Path) -> None:
    """With its last words, though one of three signals may end a process that has nothing more to do."""
    path = study_of_rows(tmp_path / "words.heedful", 4)
    command = [HEEDFUL, "compare", str(path), "--port", str(free_port()), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        for _ in range(3):
            child.send_signal(signal.SIGINT)
            time.sleep(0.02)
        told = child.communicate(timeout=60)[1]
    assert child.returncode in (0, -signal.SIGINT), told
    assert "nobody has answered yet" in told
    assert "Traceback" not in told
    assert "stopped" not in told


@pytest.mark.slow
def test_told_again_later_it_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    """Something takes long, as a ranking of thousands does: it is not waited for by whoever insists."""
    path = study_of_rows(tmp_path / "words.heedful", 4)
    slow = (
        "import sys, time; from heedful.loop import Loop; from heedful.cli import main as main\n"
        "Loop.standing = lambda *_, **__: time.sleep(60)\n"
        "main()"
    )
    port = free_port()
    command = [sys.executable, "-c", slow, "compare", str(path), "--port", str(port), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(headers={"origin": url}, follow_redirects=True, timeout=30) as client:
            client.get(f"{url}/loops/words/compare")
            said = {"number": "0", "attempt": "0", "choice": "first"}
            assert client.post(f"{url}/loops/words/compare/answer", data=said).status_code == 200
            client.get(f"{url}/loops/words/results", timeout=30)
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        assert any("ending; Ctrl-C ends it at once" in line for line in child.stderr)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 128 + signal.SIGINT
        told = child.stderr.read()
    assert "ended at once; what was acknowledged is kept" in told
    assert len(answers(path)) == 1
