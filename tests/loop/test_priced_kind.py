"""A kind of feedback of one's own may also make the features of items and requests itself, refuse both, and judge lists
by a measure of its own, against baselines of its own: `priced.py:PricedBestWorst`, in a file outside the package."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import Caller, ok
from command import heedful

from heedful import Loop, Settings
from heedful.learners.registry import learner_class
from heedful.server.context import Options
from heedful.server.main import served

PRICED = f"{Path(__file__).parents[1] / 'priced.py'}:PricedBestWorst"
Priced: Any = learner_class(PRICED)
RNG = np.random.default_rng(3)
ITEMS = [
    {"id": f"i{j}", "price": round(float(p), 3), "size": round(float(s), 3)}
    for j, (p, s) in enumerate(RNG.random((8, 2)))
]
PRICES = {str(row["id"]): float(row["price"]) for row in ITEMS}


def priced_loop(path: Path, items: list[dict[str, Any]] = ITEMS, **settings: Any) -> Loop:
    return Loop.create(path, items=items, learner=PRICED, settings=Settings(**settings))


def test_it_makes_the_features_itself(tmp_path: Path) -> None:
    with priced_loop(tmp_path / "loop") as loop:
        assert loop.feature_names == ["price", "size", "budget × price", "the caller's score"]


def test_it_refuses_items_and_nothing_is_changed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 2: price: expected a number from 0 to 1, got 7"):
        priced_loop(tmp_path / "never", [ITEMS[0], ITEMS[1] | {"price": 7}])
    assert not (tmp_path / "never").exists()
    with priced_loop(tmp_path / "loop") as loop:
        version = loop.projection.log.last()
        with pytest.raises(ValueError, match="row 1: price: expected a number from 0 to 1, got -1"):
            loop.put_items([ITEMS[0] | {"price": -1}])
        with pytest.raises(ValueError, match="context: budget: expected a number of 0 or more, got -2"):
            loop.decide(context={"budget": -2})
        assert loop.projection.log.last() == version


def test_lists_are_judged_by_its_measure_against_its_baseline(tmp_path: Path) -> None:
    """All lists are random, so a list weighs P(the learner shows it) / P(it was shown) = (its best is in it) m / k. The
    learner is folded here by hand, and each answer is predicted before it is learned from."""
    with priced_loop(tmp_path / "loop", control=1.0) as loop:
        for i in range(150):
            shown = sorted(loop.decide(id=f"d{i}", context={"budget": 0.5}).shown, key=PRICES.__getitem__)
            loop.feedback(f"d{i}", id=f"e{i}", best=shown[0], worst=shown[-1])
        found = loop.evaluate()
        x, events = [], []
        for i in range(150):
            known = loop.projection.find_decision(f"d{i}")
            x.append(loop.projection.requests.context(known).x)
            events.append(known)
    assert [each.learner for each in found.learners] == [PRICED, f"{PRICED}:rate=0.001"]
    assert [(measure.name, measure.more_is_better) for measure in found.measures] == [
        ("expected", True),
        ("price", False),
    ]
    for told, rate in zip(found.learners, (0.3, 0.001)):
        learner = Priced(4, rate)
        state, total = learner.init(np.random.default_rng(0)), 0.0
        for features, known in zip(x, events):
            shown = list(known.record.shown)
            assert features[shown, 0] == pytest.approx([PRICES[known.names[j]] for j in shown])
            weight = float(np.argmax(features @ state.w) in shown) * len(features) / len(shown)
            total += weight * float(features[shown, 0].mean())
            by_price = sorted(shown, key=lambda j: PRICES[known.names[j]])
            state = learner.update(state, features, np.array(shown), np.array([by_price[0], by_price[-1]]))
        assert told.values[1].value == pytest.approx(total / 150, abs=1e-9)


def test_over_http(tmp_path: Path) -> None:
    priced_loop(tmp_path / "shop.heedful").close()
    with served(tmp_path, Options(own=(PRICED,))) as url, closing(Caller(url)) as ask:
        refused = ask.post("/v1/loops/shop/decisions", {"id": "d0", "context": {"budget": -1}})
        assert (refused.status, refused.value["detail"]) == (
            422,
            "context: budget: expected a number of 0 or more, got -1",
        )
        refused = ask("PUT", "/v1/loops/shop/items", [ITEMS[0] | {"price": 2}])
        assert refused.status == 422
        assert "price: expected a number from 0 to 1, got 2" in refused.value["detail"]
        assert len(ok(ask.post("/v1/loops/shop/decisions", {"id": "d0", "context": {"budget": 1}}))["shown"]) == 4


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` says how to ask, with an example of a request."""
    monkeypatch.chdir(tmp_path)
    Path("items.csv").write_text("id,price,size\n" + "".join("{id},{price},{size}\n".format(**row) for row in ITEMS))
    got = heedful("init shop items.csv --learner {}", PRICED)
    assert (got.code, got.err) == (0, "")
    line = next(line for line in got.out.splitlines() if "heedful decide shop" in line)
    words = shlex.split(line[line.index("heedful decide") :])
    assert words[3:5] == ["--context", '{"budget": 0.5}']
    assert heedful("decide shop --id d0 --context {} --own {}", words[4], PRICED).code == 0
    got = heedful("decide shop --context {} --own {}", '{"budget": -1}', PRICED)
    assert (got.code, got.err) == (2, "heedful: context: budget: expected a number of 0 or more, got -1\n")
