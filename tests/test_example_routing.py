"""The examples that route prompts: to endpoints of OpenAI's API here, by LiteLLM in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chat_endpoint import ChatEndpoint, chat_endpoint
from heedful import Loop, Settings
from test_examples import load_example

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_example("openai_routing")


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint() as served:
        yield served


def models(endpoint: ChatEndpoint, *names: str) -> list[dict[str, Any]]:
    return [{"id": name, "cost": 1.0, "url": endpoint.url, "model": name, "key": ""} for name in names]


def test_prompts_come_to_the_model_whose_answers_are_liked(
    example: ModuleType, endpoint: ChatEndpoint, tmp_path: Path
) -> None:
    rows = models(endpoint, "poet", "clerk")
    prompts = ("a poem about rain", "a sum of numbers")
    with Loop.create(tmp_path / "r", items=rows, settings=Settings(cost_weight=0.0, control=0.0)) as loop:
        router = example.Router(loop, rows)
        for i in range(80):
            answer = router.complete(prompts[i % 2], person=f"p{i % 5}")
            assert answer.text == f"{answer.model} answers {prompts[i % 2]}"
            router.thumb(answer, (answer.model == "poet") == (i % 2 == 0))
        assert [loop.rank(context={"prompt": prompt})[0] for prompt in prompts] == ["poet", "clerk"]
        assert loop.rank(context={"prompt": "a poem about snow"})[0] == "poet"
        router.edit(answer, answer.text + " and more")
        last = loop.lessons()[0]
        assert last.values == (pytest.approx(1.0 - 2.0 * (2 / (6 + 8))),)  # two of 6 + 8 words
        assert len(endpoint.asked) == 80


def test_a_model_that_fails_is_left_out_and_counts_as_never_shown(
    example: ModuleType, endpoint: ChatEndpoint, tmp_path: Path
) -> None:
    rows = models(endpoint, "broken", "whole")
    with Loop.create(tmp_path / "r", items=rows, settings=Settings(cost_weight=0.0)) as loop:
        for _ in range(6):
            assert example.Router(loop, rows).complete("anything").model == "whole"
        report = loop.report()
        assert (report.learned.shown + report.control.shown, report.waiting) == (6, report.decisions - 6)
        with pytest.raises(OSError, match=r"no model answered: broken: HTTP Error 500"):
            example.Router(loop, rows[:1]).complete("anything")


def test_a_key_comes_from_the_environment(
    example: ModuleType, endpoint: ChatEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**row, "key": "KEY_OF_A"} for row in models(endpoint, "a", "b")]
    with Loop.create(tmp_path / "r", items=rows, settings=Settings(cost_weight=0.0)) as loop:
        with pytest.raises(OSError, match="KEY_OF_A"):
            example.Router(loop, rows).complete("anything")
        monkeypatch.setenv("KEY_OF_A", "secret")
        example.Router(loop, rows).complete("anything")
    assert [each["key"] for each in endpoint.asked] == ["Bearer secret"]


def test_a_table_that_does_not_do_is_refused_by_row_and_column(example: ModuleType, tmp_path: Path) -> None:
    assert [row["cost"] for row in example.read_models(EXAMPLES / "endpoints.csv")] == [0.5, 5.0, 15.0]
    with pytest.raises(ValueError, match=r"models.csv: row 1: url: expected a value, got none"):
        example.read_models(EXAMPLES / "models.csv")  # which has no endpoints
    (tmp_path / "m.csv").write_text("id,cost,url,model\na,1,u,m\nb,cheap,u,m\n")
    with pytest.raises(ValueError, match=r"row 2: cost: expected a number, got 'cheap'"):
        example.read_models(tmp_path / "m.csv")
    (tmp_path / "n.csv").write_text("id,url,model\na,u,m\n")
    with pytest.raises(ValueError, match=r"row 1: cost: expected a value, got none"):
        example.read_models(tmp_path / "n.csv")


def test_a_loop_that_is_there_has_to_fit(example: ModuleType, tmp_path: Path) -> None:
    rows = [{"id": "a", "cost": 1.0}, {"id": "b", "cost": 2.0}]
    example.open_loop(tmp_path / "r", rows, 0.02).close()
    with pytest.raises(ValueError, match=r"expected models .*, cost weight 0.02, .*, got models .*, cost weight 0.5"):
        example.open_loop(tmp_path / "r", rows, 0.5)
    with pytest.raises(ValueError, match=r"expected models \['a', 'b'\]"):
        example.open_loop(tmp_path / "r", [rows[0], {"id": "c", "cost": 1.0}], 0.02)
    with example.open_loop(tmp_path / "r", [rows[0], {"id": "b", "cost": 3.0}], None) as loop:
        assert loop.decide(["b"], context={"prompt": "?"}).shown == ("b",)
        assert loop.why(loop.decide(["b"], context={"prompt": "?"}, id="d").id, "b").features[-1].value == 3.0


@pytest.mark.slow
def test_the_script_asks_and_learns(endpoint: ChatEndpoint, tmp_path: Path) -> None:
    rows = "".join(f"{name},{cost},{endpoint.url},{name},\n" for name, cost in (("small", 1), ("large", 20)))
    (tmp_path / "models.csv").write_text(f"id,cost,url,model,key\n{rows}")
    script = [sys.executable, str(EXAMPLES / "openai_routing.py"), "models.csv", "--cost-weight", "0.01"]
    said = "a poem\n+\na sum\nwhat it should have been\nnothing\n\nbad\n-\n"
    for n in (1, 2):  # the second time with what was learned
        done = subprocess.run(
            script, input=said, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(" answers a poem") == 1
        with Loop.open(tmp_path / "route.heedful") as loop:
            assert (loop.report().decisions, loop.report().feedback.given) == (4 * n, 3 * n)
            assert loop.settings.cost_weight == 0.01


# ---------------------------------------------------------------------------- LiteLLM

LITELLM = "litellm==1.110.2"


@pytest.mark.long
def test_the_strategy_of_litellm_works_with_the_real_one(endpoint: ChatEndpoint, tmp_path: Path) -> None:
    """In an environment of its own, with LiteLLM's own table of costs: what it does is in `litellm_life.py`."""
    running = pytest.importorskip("heedful.server.main")
    from importlib.metadata import version

    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needs = [f"{name}=={version(name)}" for name in ("httpx", "msgspec", "numpy")]
    subprocess.run([*pip, "--only-binary", ":all:", LITELLM, *needs], check=True)
    rows = [{"id": "broken", "cost": 0.0}, {"id": "small", "cost": 1.0}, {"id": "large", "cost": 20.0}]
    settings = Settings(cost_weight=0.01, control=0.0)
    (tmp_path / "loops").mkdir()
    Loop.create(tmp_path / "loops" / "route.heedful", items=rows, settings=settings).close()
    life = str(Path(__file__).with_name("litellm_life.py"))
    paths = os.pathsep.join(map(str, (ROOT / "src", EXAMPLES)))
    nobody = "http://127.0.0.1:9"  # a request to another machine fails
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment |= {"HTTP_PROXY": nobody, "HTTPS_PROXY": nobody, "NO_PROXY": "127.0.0.1"}
    with running.served(tmp_path / "loops") as url:
        done = subprocess.run(
            [str(python), life, url, endpoint.url],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    with Loop.open(tmp_path / "loops" / "route.heedful") as loop:
        told = [(each.event, each.form, each.values) for each in reversed(loop.lessons())]
        assert told[0][1:] == ("thumb", (1.0,))
        assert [event for event, _, _ in told] == done.stdout.split()
