"""A study whose items change while it runs: answers about what was there before stay answers about that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compared import study_in, study_of_rows
from heedful import Loop
from heedful.features import encode_names
from heedful.studies.reading import Material, read_material
from heedful.studies.study import Added, add_material

ROWS = [{"id": f"s0{i}", "slogan": f"slogan {i}", "cost": i} for i in range(3)]


def material(rows: list[dict[str, Any]]) -> Material:
    return Material("rows", rows, encode_names(rows), {}, ())


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    """One answer about s00 and s01, none about s02."""
    with Loop.open(study_of_rows(tmp_path / "words.heedful", ROWS, show=("slogan",))) as loop:
        loop.decide(["s00", "s01"], id="d")
        loop.feedback("d", choice="first")
        yield loop


def changed(name: str, **fields: Any) -> Material:
    return material([row | (fields if row["id"] == name else {}) for row in ROWS])


def test_what_was_judged_and_changed_is_refused_by_name(loop: Loop) -> None:
    told = (
        "SOURCE: expected what participants judged, but 's01' was 'slogan 1', and is 'better' now; 1 answer is about "
    )
    with pytest.raises(ValueError, match=f"^{told}what it was: give it another name, "):
        add_material(loop, changed("s01", slogan="better"))
    assert loop.projection.log.counts()["item"] == 3  # nothing was changed


def test_what_changed_and_was_not_judged_or_not_shown_is_said(loop: Loop) -> None:
    assert add_material(loop, changed("s02", slogan="better")) == Added((), ("s02",), ())
    assert add_material(loop, material([*ROWS[:2], {"id": "s03", "slogan": "new", "cost": 1}])) == Added(
        ("s03",), (), ("s02",)
    )
    assert add_material(loop, changed("s01", cost=9)).new == ()  # nobody saw what it costs


def test_answers_stand_where_that_is_asked_for(loop: Loop) -> None:
    assert add_material(loop, changed("s01", slogan="slogan 1."), keep=True) == Added((), ("s01",), ())


def test_texts_in_files(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"text {name}")
    with Loop.open(study_in(tmp_path / "texts.heedful", folder)) as loop:
        loop.decide(["a", "b"], id="d")
        loop.feedback("d", choice="first")
        (folder / "a.txt").write_text("another text")
        with pytest.raises(ValueError, match="'a' was 'text a', and is 'another text' now"):
            add_material(loop, read_material(folder))
