"""The health of feedback from a server, by the client and on the command line: that of the loop itself."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from asking import Caller
from typer.testing import CliRunner

from heedful import Loop
from heedful.cli import app
from heedful.client import Client
from kinds import Kind, each_kind, teach
from loops import as_json, small_loop

T0, SECOND = 1_700_000_000_000_000, 1_000_000


@pytest.mark.slow
@each_kind
def test_the_health_over_http_is_that_of_the_loop(kind: Kind, folder: Path, url: str) -> None:
    path = folder / f"{kind.name}.heedful"
    with kind.make(path) as loop:
        teach(kind, loop, range(30))
        known = loop.health(0.1)
    with closing(Caller(url)) as ask:
        said = ask("GET", f"/v1/loops/{kind.name}/health?alpha=0.1")
        assert said.status == 200
        assert said.value == as_json(known)
    with Client(url, timeout=60.0) as client:
        assert client.loop(kind.name).health(0.1) == known
    own = ["--own", kind.own] if kind.own else []
    told = CliRunner().invoke(app, ["health", str(path), "--alpha", "0.1", "--json", *own])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == as_json(known)
    told = CliRunner().invoke(app, ["health", str(path), *own], env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    for words in ("Nothing is wrong with 30 pieces", "What may have changed", "Over time", "Of 3 people", "which key"):
        assert words in told.stdout
    assert ("How predictions came out" in told.stdout) == bool(known.calibration)
    assert ("Corrections gain" in told.stdout) == (known.corrections is not None)


@pytest.mark.slow
def test_a_command_that_finds_an_alarm_says_what_to_do_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "cars.heedful"
    with small_loop(path, "perceptron") as loop:
        for i in range(200):
            person, when = f"p{i % 7}", T0 + i * SECOND
            loop.record(["i0", "i1", "i2"], ["i0", "i1", "i2"], id=f"d{i}", person=person, time=when)
            loop.feedback(f"d{i}", id=f"e{i}", clicks=[] if i >= 120 else ["i1"], time=when + 1)
        assert [each.name for each in loop.health().alarms] == ["empty"]
    told = CliRunner().invoke(app, ["health", str(path)], env={"COLUMNS": "200"})
    assert told.exit_code == 1
    assert "ALARM, empty: 0 % of pieces of feedback before" in told.stdout
    assert "heedful report cars" in told.stdout
    with Loop.open(path) as loop:
        assert loop.health().feedback == 200
