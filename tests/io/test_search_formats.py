"""`heedful export --as opensearch | elasticsearch | ubi` on the command line, and the scripts that it writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import done, heedful

from heedful.io import formats
from loops import choice_loop, small_loop
from search_engine import Engine, serving


def make_loop(path: Path) -> None:
    with small_loop(path, "perceptron", control=0.0) as loop:
        for t in range(6):
            shown = loop.decide(id=f"d{t}", person="ada").shown
            loop.feedback({"id": f"e{t}", "decision": f"d{t}", "clicks": [shown[3 + t % 2]]})


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch"])
def test_a_model_is_written_as_json_and_as_a_script_with_the_same_calls(tmp_path: Path, engine: str) -> None:
    make_loop(tmp_path / "shop")
    told = done(f"export {{}} {{}} --as {engine}", tmp_path / "shop", tmp_path / "model.json")
    assert "1 line: model 1" in told.out
    assert re.search(r"^\d+ features with a weight, \d+ used$", told.out, re.M)
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["engine"] == engine
    [first, second] = document["calls"]
    assert (first["method"], first["path"]) == ("POST", "/_ltr/_featureset/shop")
    assert (second["method"], second["path"]) == ("POST", "/_ltr/_featureset/shop/_createmodel")
    done(f"export {{}} {{}} --as {engine}", tmp_path / "shop", tmp_path / "model.sh")
    script = (tmp_path / "model.sh").read_text()
    assert script.startswith("#!/bin/sh\n")
    bodies = [json.loads(line) for line in script.splitlines() if line.startswith("{")]
    assert bodies == [first["body"], second["body"]]
    assert json.loads(script.splitlines()[-1].removeprefix("# ")) == {"rescore": document["search"]["rescore"]}


@pytest.mark.slow
def test_the_script_makes_the_model_in_an_engine_twice(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not here, which the script needs")
    make_loop(tmp_path / "shöp")
    done("export {} {} --as opensearch", tmp_path / "shöp", tmp_path / "model.sh")
    engine = Engine()
    with serving(engine) as url:
        first = subprocess.run(["sh", tmp_path / "model.sh", url, "--noproxy", "*"], capture_output=True, text=True)
        assert first.returncode == 0, first.stderr
        assert list(engine.sets) == ["shöp"]
        [name] = engine.models
        assert name.startswith("shöp-")
        again = subprocess.run(["sh", tmp_path / "model.sh", url, "--noproxy", "*"], capture_output=True, text=True)
        assert again.returncode != 0  # a model is never replaced, and the script says so
        assert "already exists" in again.stdout


def test_clicks_are_written_as_a_bulk_file_and_imported(tmp_path: Path) -> None:
    make_loop(tmp_path / "shop")
    told = done("export {} {} --as ubi --json", tmp_path / "shop", tmp_path / "ubi.jsonl.gz").json
    assert told["counts"] == {"bulk action": 12, "query": 6, "event": 6}
    with small_loop(tmp_path / "other", "perceptron", control=0.0):
        pass
    imported = done("import {} {} --ubi {} --json", tmp_path / "other", *[tmp_path / "ubi.jsonl.gz"] * 2).json
    assert imported["counts"]["decision"]["applied"] == imported["counts"]["feedback"]["applied"] == 6
    gone = done("forget {} ada --yes --json", tmp_path / "shop").json
    assert gone["exports"] == [str(tmp_path / "ubi.jsonl.gz")]


def test_a_refused_export_writes_nothing_and_notes_nothing(tmp_path: Path) -> None:
    with small_loop(tmp_path / "new"):
        pass
    with choice_loop(tmp_path / "choices"):
        pass
    before = sorted(tmp_path.iterdir())
    for loop, line, told in (
        ("new", "--as opensearch", "a loop that learned from feedback"),
        ("new", "--as opensearch --option without=x", "without: expected one of f0, f1, f2, f3, prior, got 'x'"),
        ("new", "--as opensearch --option colour=x", "expected without, context, fields, name, window"),
        ("new", "--as opensearchh", "expected elasticsearch, opensearch, preference-data, ubi, unpaired"),
        ("choices", "--as elasticsearch", "expected a loop that ranks items by weights"),
        ("choices", "--as ubi", "expected a loop that learns from clicks"),
        ("new", "--as ubi --option bulk=maybe", "bulk: expected yes or no"),
        ("none", "--as ubi", "none"),
    ):
        got = heedful(f"export {{}} {{}} {line}", tmp_path / loop, tmp_path / "out.json")
        assert got.code in (1, 2), line
        assert told in " ".join(got.err.split()), got.err
        assert not (tmp_path / "out.json").exists()
    assert sorted(tmp_path.iterdir()) == before
    with small_loop(tmp_path / "noted") as loop:
        kinds = [event.kind for event in loop.projection.log.events()]
    assert heedful("export {} {} --as opensearch", tmp_path / "noted", tmp_path / "out.json").code != 0
    from heedful import Loop

    with Loop.open(tmp_path / "noted") as loop:
        assert [event.kind for event in loop.projection.log.events()] == kinds


def test_a_format_is_a_module_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = "from heedful.io.formats import Format\nOURS = Format('ours', 'what nothing else names', read=print)\n"
    (tmp_path / "ours_of_formats.py").write_text(declared)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    monkeypatch.setattr(formats, "FORMATS", formats._declared())
    assert formats.find_format("ours", "read").about == "what nothing else names"
    assert "ours" not in formats.formats_for("write")
    del sys.modules["heedful.io.formats.ours_of_formats"]
