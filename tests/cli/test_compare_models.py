"""`heedful compare --models`: from a folder of answers to a blind page, votes, a leaderboard; going on; refusals."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
from pathlib import Path

import httpx
import pytest
from command import done, refusal
from test_compare_command import comparing

from heedful import Loop
from heedful.cli.compare import closing_line
from heedful.core.wording import share
from heedful.loop.interactions.forms import CHOICES
from heedful.studies.arena import outputs_of

MODELS = {"quartz-9b": 2.0, "heron-large": 0.0, "willow_mini": -2.0}
"""Names that stand nowhere else, and how good each is."""


def outputs(folder: Path, prompts: int = 6, models: object = MODELS) -> Path:
    folder.mkdir(exist_ok=True)
    for code, model in enumerate(models):  # type: ignore[arg-type,var-annotated]
        rows = [{"id": f"q{k}", "prompt": f"Question {k}?", "answer": f"Words {7 * code + k}."} for k in range(prompts)]
        (folder / f"{model}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def texts(page: str) -> list[str]:
    return re.findall(r"Words (\d+)\.", page)


def answer_of(page: str) -> str:
    """What somebody says who sees the texts alone: the model behind each is known to this test by its number."""
    left, right = (int(number) // 7 for number in texts(page))
    strength = list(MODELS.values())
    return "first" if strength[left] - strength[right] + random.gauss(0, 1) > 0 else "second"


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, page
    return found[1]


@pytest.mark.slow
def test_from_answers_to_a_leaderboard_and_on_again(tmp_path: Path) -> None:
    random.seed(1)
    folder = outputs(tmp_path / "my outputs")
    rows = (folder / "willow_mini.jsonl").read_text().splitlines(keepends=True)
    (folder / "willow_mini.jsonl").write_text("".join(rows[:-1]))
    with comparing(folder, "--models", "--dir", tmp_path) as (told, child):
        assert told["study"] == str(tmp_path / "my-outputs.heedful")
        assert told["left_out"] == ["willow_mini: no answer to 1 prompt: q5"]
        url = told["page"]
        with httpx.Client(headers={"origin": url.partition("/loops")[0]}, follow_redirects=True, timeout=30) as client:
            page = client.get(url).text
            for _ in range(24):
                assert "Which answer is better?" in page
                assert re.search(r"Question \d\?", page)
                assert not any(model in page for model in MODELS)  # blind: no name, also in no link and no id
                assert len(texts(page)) == 2
                fields = {name: field(page, name) for name in ("number", "attempt", "shown")}
                got = client.post(f"{url}/answer", data={**fields, "choice": answer_of(page)})
                assert not any(model in str(got.url) + str(got.headers) for model in MODELS)
                page = got.text
            for choice in ("both_bad", "equal", "cannot_judge"):
                fields = {name: field(page, name) for name in ("number", "attempt", "shown")}
                page = client.post(f"{url}/answer", data={**fields, "choice": choice}).text
            results = url.replace("/compare", "/results")
            shown = client.get(results)
            assert shown.status_code == 200
            at = [shown.text.index(f'<th scope="row">{model}</th>') for model in MODELS]
            assert at == sorted(at)
            votes = client.get(f"{results}/answers.csv")
            assert votes.headers["content-disposition"] == 'attachment; filename="my-outputs-votes.csv"'
            board = client.get(f"{results}/leaderboard.json").json()
            whole = client.get(f"{results}/leaderboard.html")
            assert "script-src" not in whole.headers["content-security-policy"]
            assert whole.text.startswith("<!doctype html>")
            table = list(csv.DictReader(client.get(f"{results}/leaderboard.csv").text.splitlines()))
            assert client.get(f"{results}/leaderboard.txt").status_code == 404
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(30) == 0
    assert [row["item"] for row in board["ranking"]] == list(MODELS) == [row["item"] for row in table]
    assert (board["answers"], board["ties"]["votes"], board["ties"]["both_bad"]) == (26, 2, 1)
    assert board["left_out"] == {"could not be judged": 1}
    # the votes as a file, and the study itself, give the same board
    (tmp_path / "votes.csv").write_bytes(votes.content)
    of_file = done("rank {} --json", tmp_path / "votes.csv").json
    of_study = done("rank {} --json --votes {}", tmp_path / "my-outputs.heedful", tmp_path / "again.csv").json
    assert of_file["ranking"] == of_study["ranking"] == board["ranking"]
    assert (tmp_path / "again.csv").read_bytes() == votes.content
    adjusted = done("rank {} --adjust length --side --json", tmp_path / "votes.csv").json
    assert [each["name"] for each in adjusted["effects"]] == ["length"]
    # so does the line with which the command ends, and what `standing` says names the board
    first = f"{next(iter(MODELS))} is first, and the best with probability {share(board['ranking'][0]['best'])} ("
    with Loop.open(tmp_path / "my-outputs.heedful") as loop:
        assert closing_line(loop).partition(": ")[2].startswith(first)
    said = done("standing {}", tmp_path / "my-outputs.heedful").out.splitlines()[-1]
    assert said.endswith(f"The leaderboard of the votes: heedful rank {tmp_path / 'my-outputs.heedful'}")
    # a new model joins, and what was said stays
    outputs(folder, models=[*MODELS, "novel-1"])
    with comparing(folder, "--models", "--dir", tmp_path) as (told, _):
        assert told["left_out"] == []
        page = httpx.get(told["page"]).text
        assert not any(model in page for model in [*MODELS, "novel-1"])
    with Loop.open(tmp_path / "my-outputs.heedful") as loop:
        assert set(loop.items) == {*MODELS, "novel-1"}
    assert done("rank {} --json", tmp_path / "my-outputs.heedful").json["ranking"] == board["ranking"]


@pytest.mark.slow
def test_participants_see_no_name_either(tmp_path: Path) -> None:
    folder = outputs(tmp_path / "outputs", prompts=2)
    port = 0
    with comparing(folder, "--models", "--dir", tmp_path, "--share", "--listen", "127.0.0.1") as (told, _):
        [link] = told["links"]
        base, _, token = link["url"].partition("/s/")
        port = int(told["listens"]["participants"].rpartition(":")[2])
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(headers={"origin": base}, follow_redirects=True, timeout=30) as client:
            url = f"{address}/s/{token}"
            seen = [client.get(url, headers={"host": base.partition("//")[2]}).text]
            assert "There are 6 questions" in seen[0]  # 2 prompts, 3 pairs
            client.headers["host"] = base.partition("//")[2]
            page = client.post(f"{url}/agree", data={"a": "b"}).text
            for _ in range(6):
                seen.append(page)
                fields = {name: field(page, name) for name in ("number", "attempt", "shown")}
                page = client.post(f"{url}/answer", data={**fields, "choice": "both_bad"}).text
            assert "Thank you" in page
            seen.append(page)
        assert not any(model in page for model in MODELS for page in seen)
    with Loop.open(tmp_path / "outputs.heedful") as loop:
        assert loop.standing().answers == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--identifier id", "--identifier: expected none with --models, got 'id'"),
        ("--show prompt", "--show: expected none with --models, got ('prompt',)"),
        ("--goal worst", "--goal: expected best or ranking, got 'worst'"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: str, message: str) -> None:
    folder = outputs(tmp_path / "outputs")
    assert message in refusal(f"compare {{}} --models --no-browser --dir {{}} {options}", folder, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["outputs"]


def test_a_study_without_votes_or_of_another_kind_has_no_leaderboard(tmp_path: Path) -> None:
    from compared import study_of_rows

    other = study_of_rows(tmp_path / "words.heedful", 3)
    assert "words.heedful: expected a file, or an arena that heedful compare --models made" in refusal("rank {}", other)
    assert outputs_of(other) is None
    from heedful.studies.arena import create_arena
    from heedful.studies.outputs import read_outputs
    from heedful.studies.study import Study

    arena = tmp_path / "a.heedful"
    create_arena(arena, read_outputs(outputs(tmp_path / "outputs")), Study(kind="answers"), "ranking").close()
    assert "a.heedful: answers: expected at least one, got none yet" in refusal(
        "rank {} --votes {}", arena, tmp_path / "votes.csv"
    )
    assert not (tmp_path / "votes.csv").exists()


def test_every_answer_has_its_word_among_battles() -> None:
    from heedful.studies.arena import WINNER

    assert set(WINNER) == set(CHOICES)
