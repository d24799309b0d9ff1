"""The example of a shop says what is wrong, in a line or in the page, and never with a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful import Loop, infer
from heedful.cli import app
from processes import free_port

pytest.importorskip("httpx", reason="the client needs httpx: pip install '.[client]'")

SHOP = Path(__file__).resolve().parents[1] / "examples" / "shop.py"
KEY = f"hk_{'a' * 8}_{'b' * 43}"


def environment(key: str | None, url: str = "http://127.0.0.1:9") -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HEEDFUL_KEY", "HEEDFUL_URL")}
    return kept | {"HEEDFUL_URL": url} | ({} if key is None else {"HEEDFUL_KEY": key})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "words", "told"),
    [
        (None, [], "HEEDFUL_KEY: expected a key"),
        ("tea", [], "HEEDFUL_KEY, HEEDFUL_URL: key: expected hk_"),
        (KEY, ["abc"], "PORT: expected the number of a port that is free, got abc"),
        (KEY, ["taken"], "PORT: expected the number of a port that is free, got "),
    ],
)
def test_what_is_missing_is_said_in_a_line(key: str | None, words: list[str], told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = [str(taken.getsockname()[1]) if word == "taken" else word for word in words]
        done = subprocess.run(
            [sys.executable, str(SHOP), *words],
            env=environment(key),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(told)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_key_that_is_refused_is_said_in_the_page(tmp_path: Path) -> None:
    running = pytest.importorskip("heedful.server.main")
    cars = [{"name": "mini", "hp": 60}, {"name": "golf", "hp": 70}]
    Loop.create(tmp_path / "cars.heedful", encoding=infer(cars), items=cars).close()
    made = CliRunner().invoke(app, ["keys", "create", "another", "--folder", str(tmp_path)])
    assert made.exit_code == 0, made.output  # with a key there, requests need one
    port = free_port()
    with running.served(tmp_path) as url:
        words = [sys.executable, str(SHOP), str(port)]
        with subprocess.Popen(words, env=environment(KEY, url), stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout is not None
                assert str(port) in child.stdout.readline()
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60)
                assert caught.value.code == 502
                assert "heedful: " in caught.value.read().decode()
            finally:
                child.terminate()
