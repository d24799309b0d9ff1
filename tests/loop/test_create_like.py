"""A loop like another one: the same encoding and settings, the items of today, and nothing learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import done, refusal

from heedful import Loop, Settings, infer
from heedful.loop.offer import offered
from kinds import Kind, each_kind, teach
from loops import bits, small_loop


def facts(loop: Loop) -> tuple[Any, ...]:
    rows, encoded = offered(loop.projection)
    manifest = loop.manifest
    about = manifest.encoding, manifest.context, manifest.crosses, manifest.settings, manifest.query, manifest.learner
    return rows, encoded.tobytes(), about


@each_kind
def test_it_begins_as_the_other_one_did(kind: Kind, tmp_path: Path) -> None:
    with kind.make(tmp_path / "a.heedful") as loop:
        before = bits(loop)
        teach(kind.case(), loop, range(3))
        with Loop.create_like(tmp_path / "b.heedful", loop) as new:
            assert facts(new) == facts(loop)
            assert bits(new) == before != bits(loop)
        loop.withdraw(loop.items[2])
        with Loop.create_like(tmp_path / "c.heedful", loop) as new:
            assert facts(new) == facts(loop)
            assert new.projection.log.counts() == {"item": len(loop.items), "loop": 1}


def test_features_of_texts_that_are_not_kept_are_those_of_the_log(tmp_path: Path) -> None:
    items = [{"id": f"i{i}", "text": f"a {'red' if i % 2 else 'blue'} car of {i} doors"} for i in range(12)]
    encoding = infer(items, identifier="id", kinds={"text": "text"})
    settings = Settings(store_text=False)
    with Loop.create(tmp_path / "a.heedful", encoding=encoding, items=items, settings=settings) as loop:
        with Loop.create_like(tmp_path / "b.heedful", loop) as new:
            assert facts(new) == facts(loop)
            assert np.ptp(offered(new.projection)[1]) > 0
        with Loop.create_like(tmp_path / "c.heedful", loop, items=items[:3], learner="perceptron") as new:
            assert new.items == ["i0", "i1", "i2"]
            assert new.manifest.learner == "perceptron"
            assert offered(new.projection)[1].tobytes() == offered(loop.projection)[1][:3].tobytes()


def test_after_a_promotion_it_has_the_learner_that_serves(tmp_path: Path) -> None:
    with small_loop(tmp_path / "a.heedful") as loop:
        loop.promote("perceptron", force=True)
        with Loop.create_like(tmp_path / "b.heedful", loop) as new:
            assert new.manifest.learner == "perceptron"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_loop("a.heedful", k=3, control=0.2).close()
    got = done("init b --like a --json").json
    assert (got["items"], got["rows"], got["next"]) == (12, 12, "heedful decide b")
    (tmp_path / "more.csv").write_text("id,f0,f1,f2,f3\nx,1,2,3,4\ny,2,3,4,5\n")
    assert "2 items by id" in done("init c more.csv --like a --learner perceptron").out
    with Loop.open("c.heedful") as loop:
        assert (loop.items, loop.settings.k, loop.manifest.learner) == (["x", "y"], 3, "perceptron")
    assert refusal("init d --like a --k 5") == "--k: expected none with --like, as it is as in a, got it"
    assert refusal("init d --like nowhere").startswith("nowhere.heedful: no such loop")
    assert refusal("init b --like a").startswith("b.heedful: expected a new folder for the loop")
    (tmp_path / "bad.csv").write_text("id,f0\nx,red\n")
    assert refusal("init d bad.csv --like a").startswith("row 1: f0: expected a finite number")
    assert not Path("d.heedful").exists()
