"""The commands of docs/routing.md run one after another, and say what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from heedful import Loop
from heedful.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "routing.md").read_text()


def commands(text: str) -> list[str]:
    """The lines of `text` that are commands of heedful, without its name."""
    return [line.strip().removeprefix("heedful ") for line in text.splitlines() if line.strip().startswith("heedful ")]


def done(line: str) -> str:
    """Run a command line of the page, which must go well; what it prints."""
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, (line, result.output)
    return result.stdout


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_nothing_to_the_first_insight_it_takes_at_most_five_lines() -> None:
    block = re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S)[0]
    lines = block.splitlines()
    assert len(lines) == len(commands(block)) <= 5
    *_, told = [done(line) for line in commands(block)]
    assert re.search(r"^ +thumb +0\.\d+ *$", told, re.M)
    assert re.search(r"^ +charge +\d", told, re.M)
    assert "Which feedback moved it" in told  # the thumb
    assert "by the control" not in told  # a decision of the control group would show nothing that was learned
    [evaluate] = [line for line in commands(PAGE) if line.startswith("evaluate")]
    assert {"cheapest", "always:large", "cost-weight:0.1"} <= set(shlex.split(evaluate))
    assert "cheapest" in done(evaluate)


def test_a_new_model_gets_a_loop_of_its_own_with_all_that_was_learned() -> None:
    """The weights of the models that were there are as they were, but for the prior of more features before their
    spread is known."""
    done(f"init route {ROOT / 'examples' / 'models.csv'} --route --cost-weight 0.02 --people 2")
    with Loop.open("route.heedful") as loop:
        for i in range(40):
            d = loop.decide(context={"prompt": ("a poem", "a sum")[i % 2]}, person=f"p{i % 3}", id=f"d{i}")
            loop.feedback(d.id, id=f"e{i}", thumb="up" if d.shown[0] == ("small", "large")[i % 2] else "down")
        before, own = loop.weights, loop.weights_of("p1")
    Path("models2.csv").write_text((ROOT / "examples" / "models.csv").read_text() + "huge,30\n")
    block = re.search(r"^  ```sh\n(.*?)^  ```$", PAGE, re.M | re.S)
    assert block is not None
    for line in commands(block[1]):
        done(line + " --people 2" * line.startswith("init"))
    with Loop.open("route2.heedful") as loop:
        assert set(loop.items) == {"small", "medium", "large", "huge"}
        for then, now in ((before, loop.weights), (own, loop.weights_of("p1"))):
            old, new = np.array(list(then.values())), np.array([now[name] for name in then])
            assert np.abs(new - old).max() <= 0.01 * np.abs(old).max()
        assert any(weight != 0.0 for weight in before.values())
        d = loop.decide(["huge"], context={"prompt": "a poem"})
        assert loop.feedback(d.id, thumb="up").learned
