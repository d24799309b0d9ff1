"""One question has one answer: how sure a ranking is, asked of the loop, over HTTP, of its page, and of `heedful rank`
on the answers that the page gives."""

from __future__ import annotations

import csv
import io
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from asking import NO_TLS, Caller
from typer.testing import CliRunner

from compared import study_of_rows
from heedful import Loop
from heedful.boards.standing import standing
from heedful.cli import app
from heedful.core.wording import BAR
from heedful.inference.estimation import estimate
from heedful.server.main import served
from heedful.studies.answers import choices_of

DRAWN = 4 * 0.004
"""Four standard errors of P(best), which is drawn."""


def answered(path: Path, people: int, each: int, spread: float) -> None:
    """A study of five things in which so many people gave so many answers each, with logistic noise."""
    rng = np.random.default_rng([people, each])
    study_of_rows(path, 5)
    likes = spread * (0.8 * rng.standard_normal(5) + 0.6 * rng.standard_normal((people, 5)))
    with Loop.open(path) as loop:
        number = {name: i for i, name in enumerate(loop.items)}
        for t in range(each):
            for who in range(people):
                person = f"staff/{who}"
                shown = loop.decide(person=person, id=f"ask-{t}-{person}").shown
                gap = likes[who, number[shown[0]]] - likes[who, number[shown[1]]] + rng.logistic()
                loop.feedback(f"ask-{t}-{person}", id=f"ask-{t}.0-{person}", choice="first" if gap > 0.0 else "second")


def found_out(url: str, path: str) -> httpx.Response:
    """What a page has, when it has been worked out."""
    for _ in range(200):
        reply = httpx.get(f"{url}{path}", verify=NO_TLS)
        if reply.status_code != 503:
            return reply
        time.sleep(0.1)
    raise AssertionError(f"{path} was not worked out")


def of(rows: Any, item: str, *columns: str) -> dict[str, list[float]]:
    return {str(row[item]): [float(row[column]) for column in columns] for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(("people", "each", "spread"), [(1, 20, 0.6), (3, 12, 0.6), (20, 5, 1.0)])
def test_loop_http_page_and_rank_say_the_same(tmp_path: Path, people: int, each: int, spread: float) -> None:
    path = tmp_path / "served" / "words.heedful"
    answered(path, people, each, spread)
    with Loop.open(path) as loop:
        told = loop.standing()
        got = standing(estimate(choices_of(loop)).posterior)
        names = list(loop.items)
    columns = ("utility", "utility_low", "best")
    want = of((row._asdict() for row in told.ranking), "item", *columns)
    assert told.answers == people * each
    with served(path.parent) as url, closing(Caller(url)) as ask:
        http = of(ask.get("/v1/loops/words/standing").value["ranking"], "item", *columns)
        page = of(csv.DictReader(io.StringIO(found_out(url, "/loops/words/results/ranking.csv").text)), "item",
                  *columns)  # fmt: skip
        (tmp_path / "answers.csv").write_bytes(found_out(url, "/loops/words/results/answers.csv").content)
    file = CliRunner().invoke(app, ["rank", str(tmp_path / "answers.csv"), "--json"])
    rank = of(json.loads(file.stdout)["ranking"], "item", *columns)
    choices = {
        names[i]: [float(got.mean[i]), float(got.mean[i] - BAR * got.sd[i]), float(got.best[i])] for i in range(5)
    }
    for other in (http, page, rank, choices):
        assert other.keys() == want.keys()
        for name, (utility, low, best) in other.items():
            assert utility == pytest.approx(want[name][0], abs=2e-3)
            assert low == pytest.approx(want[name][1], abs=2e-3 * (1.0 + BAR))
            assert best == pytest.approx(want[name][2], abs=DRAWN)
