"""docs/from/: each page's commands run on a small file of the program that it is about, and say what the page says."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "from").glob("*.md"))
LIKED = {"phone": "news", "desk": "food"}


def write_csv(name: str, head: str, rows: list[tuple[object, ...]]) -> None:
    Path(name).write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")


def make_files() -> None:
    """The files that the pages name, drawn at random, where it can be told what is liked."""
    rng = random.Random(0)
    with open("log.dsjson", "w") as file:
        for i in range(1500):
            device, names = rng.choice([*LIKED]), rng.sample(["news", "sport", "food"], 3)
            chances = [0.8, 0.1, 0.1]
            [shown] = rng.choices(range(3), chances)
            reward = float(rng.random() < (0.6 if names[shown] == LIKED[device] else 0.1))
            event = {
                "_label_cost": -reward, "_label_probability": chances[shown], "_label_Action": shown + 1,
                "_labelIndex": shown, "Timestamp": f"2026-01-31T12:{i % 60:02d}:00Z", "EventId": f"e{i}", "p": chances,
                "c": {"User": {"device": device}, "_multi": [{"Action": {"id": name}} for name in names]},
            }  # fmt: skip
            file.write(json.dumps(event) + "\n")
    write_csv("actions.csv", "id,topic", [(name, name) for name in ("news", "sport", "food")])
    write_csv("visits.csv", "device", [(name,) for name in LIKED])
    rated = [
        (f"u{u}", f"i{i}", min(5, max(1, round(3 + (u % 3 - 1) * (i % 3 - 1) + rng.gauss(0, 0.5)))))
        for u in range(20) for i in range(15) if rng.random() < 0.7
    ]  # fmt: skip
    write_csv("ratings.csv", "userID,itemID,rating", rated)
    lines = []
    for query in range(30):
        for _ in range(8):
            x = [rng.random() for _ in range(4)]
            grade = round(max(0.0, 2 * x[0] - x[1]))
            lines.append(f"{grade} qid:{query} " + " ".join(f"{j}:{v:.3f}" for j, v in enumerate(x, 1)))
    Path("judged.txt").write_text("\n".join(lines) + "\n")
    write_csv("docs.csv", "id,length,age", [(f"d{i}", rng.randrange(100, 900), rng.randrange(9)) for i in range(9)])
    Path("hits.json").write_text(json.dumps([{"id": f"d{i}", "score": 3.0 - i} for i in range(1, 5)]))
    Path("votes.csv").write_bytes((ROOT / "examples" / "arena.csv").read_bytes())
    votes = []
    for _ in range(200):
        a, b = rng.sample(["amber", "birch", "cobalt"], 2)
        votes.append((a, b, rng.choices(["left", "right", "draw"], [6, 3, 1] if a < b else [3, 6, 1])[0]))
    write_csv("evalica.csv", "left,right,winner", votes)
    for name, share in (("exposures", 0.5), ("broken", 0.6)):
        people = [
            ("treatment" if rng.random() < share else "control", 0.5, int(rng.random() < 0.2)) for _ in range(3000)
        ]
        rows = [(f"u{i}", *person) for i, person in enumerate(people)]
        write_csv(f"{name}.csv", "user_id,variation_id,probability,converted", rows)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_on_its_files(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_files()
    told = []
    for line in "".join(blocks(page, "sh")).splitlines():
        heedful, *words = shlex.split(line, comments=True)
        assert heedful == "heedful"
        result = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
        assert result.exit_code == 0, (line, result.output)
        told.append(" ".join(result.output.split()))
    assert told
    program = "\n".join(blocks(page, "python"))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, {"__name__": "example"})
    assert out.getvalue().splitlines() == re.findall(r"^print\(.*\)  # (.*)$", program, re.M)
    SAID[page.stem](told)


def said_of_a_log(told: list[str]) -> None:
    """The learner that knows the device earns more than the log did."""
    [line] = [each for each in told if "posterior" in each and "as logged" in each]
    assert re.search(r"posterior .* better ", line)


def said_of_ratings(told: list[str]) -> None:
    assert "bmf" in told[0]
    assert re.search(r"moved the model: (\d+) of \1 feedback", told[2]), told[2]


def said_of_judged_lists(told: list[str]) -> None:
    assert "posterior" in told[0]
    assert "_createmodel" in Path("model.sh").read_text()


def said_of_votes(told: list[str]) -> None:
    assert "leaderboard of 5 models from 888 votes" in told[0]
    assert re.search(r"1 amber .* 2 birch .* 3 cobalt", told[2])


def said_of_exposures(told: list[str]) -> None:
    """The sound table has values, the other none, and says why."""
    assert "unknown" not in told[0]
    assert "logged probabilities are wrong" in told[1]


SAID = {
    "personalizer": said_of_a_log,
    "vowpal-wabbit": said_of_a_log,
    "recommenders": said_of_ratings,
    "lambdarank": said_of_judged_lists,
    "leaderboards": said_of_votes,
    "growthbook": said_of_exposures,
}
