"""What edits say about style over HTTP, by the client, on the command line and on pages: what the loop itself says."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import Caller, is_problem
from command import heedful

from heedful import TEXTS, Loop, Settings
from heedful.client import Client
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.server.pages.formatting import describe_event
from kinds import Kind, each_kind, teach
from loops import as_json

DRAFT = "The parcel that you ordered is here! You may fetch it from us today!"


def letters(folder: Path, edits: int = 14) -> Path:
    path = folder / "letters.heedful"
    with Loop.create(path, encoding=TEXTS, settings=Settings(k=1, control=0.0)) as loop:
        for i in range(edits):
            loop.decide([{"id": "a", "text": DRAFT}], id=f"d{i}", person="ann")
            loop.feedback(f"d{i}", id=f"e{i}", edit=DRAFT.replace("!", "."))
    return path


def test_the_style_over_http_and_by_the_client_is_that_of_the_loop(folder: Path, url: str) -> None:
    path = letters(folder)
    with Loop.open(path) as loop:
        loop.correct_style("ann", always="Be brief.", id="r0")
        known = loop.style_of("ann", alpha=0.1)
    assert known.prompt.endswith("without exclamation marks. Always: Be brief.")
    with closing(Caller(url)) as ask:
        there = "/v1/loops/letters/style"
        assert ask("GET", f"{there}?person=ann&alpha=0.1").value == as_json(known)
        assert ask("GET", there).value["person"] is None
        for alpha in ("none", "0", "0.6", "nan"):
            is_problem(ask("GET", f"{there}?alpha={alpha}"), "bad-input", "alpha")
        wrong: Any
        for wrong, field in (
            ({}, "style"),
            ({"deny": "x"}, "deny"),
            ({"always": " "}, "always"),
            ({"deny": 5}, "deny"),
        ):
            is_problem(ask("POST", there, wrong), "bad-input", field)
    with Client(url, timeout=60.0) as client:
        letters_there = client.loop("letters")
        assert letters_there.style_of("ann", alpha=0.1) == known
        answer = letters_there.correct_style("ann", deny="exclamation marks")
        assert (answer.status, answer.learned) == ("applied", False)
        assert letters_there.correct_style("ann", deny="exclamation marks", id=answer.event).status == "duplicate"
        assert letters_there.style_of("ann").told == ()
        assert letters_there.undo(answer).status == "applied"
        assert len(letters_there.style_of("ann").told) == 1
        assert letters_there.forget("ann").events == 14 * 2 + 3
        assert letters_there.style_of("ann").rules == ()


@each_kind
def test_a_loop_of_any_kind_has_no_style_and_says_so(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "l.heedful") as loop:
        teach(kind, loop, range(6))
        style = loop.style_of("p0")
        assert (style.prompt, style.told, style.edits) == ("", (), 0)
        assert style.unsaid
        loop.correct_style("p0", always="Be brief.", id="r")
        assert loop.style_of("p0").prompt == "Always: Be brief."
        assert loop.undo("r").status == "applied"
        assert loop.verify() == []


def test_a_key_that_may_give_feedback_takes_back_no_correction(tmp_path: Path) -> None:
    with Loop.open(letters(tmp_path, 1)) as loop:
        loop.correct_style("ann", always="Be brief.", id="r")
    with closing(Keys(tmp_path)) as keys:
        weak = keys.create("weak", scopes=["feedback", "read"])[1]
        strong = keys.create("strong", scopes=["feedback", "admin"])[1]
    with served(tmp_path) as url, closing(Caller(url, weak)) as few, closing(Caller(url, strong)) as all_of_them:
        undo = "/v1/loops/letters/undo"
        is_problem(few.post(undo, {"event": "r"}), "no-scope")
        is_problem(few.post("/v1/loops/letters/style", {"always": "x"}), "no-scope")
        assert few.post(undo, {"event": "e0"}).status == 200
        assert all_of_them.post(undo, {"event": "r"}).status == 200


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    letters(tmp_path)
    with Loop.open(tmp_path / "letters.heedful") as loop:
        known = loop.style_of("ann")
    got = heedful("style letters --person ann --json")
    assert (got.code, got.err, got.json) == (0, "", as_json(known))
    assert heedful("style letters --person ann --prompt").out == f"{known.prompt}\n"
    shown = heedful("style letters --person ann").out
    for words in (known.prompt, "what the edits say", "14 edits, 14 of English texts", "ever false is at most 0.05"):
        assert words in shown
    none = heedful("style letters --person bob --prompt")
    assert (none.code, none.out, none.err) == (0, "", "heedful: nothing can be told: bob has edited no text\n")
    corrected = heedful("style letters --person ann --always Brief.")
    assert corrected.out.splitlines()[0] == "corrected the style of ann"
    back = corrected.out.splitlines()[1].removeprefix("To go back on this: heedful ")
    assert heedful("style letters --person ann --prompt").out.endswith(" Always: Brief.\n")
    assert heedful("style letters --person ann").out.count("always: Brief.") == 1
    assert heedful(back).code == 0
    assert heedful("style letters --person ann --prompt").out == f"{known.prompt}\n"
    answer = heedful("style letters --deny length --json").json
    assert answer["status"] == "applied"
    assert "for everybody: length denied" in heedful("style letters").out
    for wrong, told in (
        ("--deny smileys", "deny: expected one of length"),
        ("--deny length --always x", "style: expected one of deny and always"),
        ("--deny length --prompt", "--prompt: expected without --deny and --always"),
    ):
        refused = heedful(f"style letters {wrong}")
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith(f"heedful: {told}")


def test_the_events_of_a_correction_in_words_and_as_a_stream(tmp_path: Path) -> None:
    with Loop.open(letters(tmp_path, 1)) as loop:
        loop.correct_style("ann", always="Be brief.", id="r1")
        loop.correct_style(deny="emoji", id="r2")
        told = [
            describe_event(loop, {"kind": "style", "person": "ann", "always": "Be brief."}),
            describe_event(loop, {"kind": "style", "deny": "emoji"}),
        ]
        assert told == [
            "Said by hand of the style of ann: always: Be brief.",
            "Said by hand of the style of everybody: not emoji",
        ]
    with served(tmp_path) as url, closing(Caller(url)) as ask:
        text = ask.http.get("/v1/loops/letters/events?follow=false&kinds=style").text
        lines = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        assert [(each["kind"], each["id"]) for each in lines] == [("style", "r1"), ("style", "r2")]
        assert [each.get("person") for each in lines] == ["ann", None]
