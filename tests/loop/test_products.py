"""Products of two features of an item: a loop with them learns what depends on both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import Loop, Settings, infer
from heedful.loop.settings import Manifest, built_learner

ROWS = [{"id": f"i{j}", "sweet": j % 5 - 2, "cold": j // 5 - 2, "kind": ("tea", "ice")[j % 2]} for j in range(25)]
ENCODING = infer(ROWS)
WORTH = {str(row["id"]): int(str(row["sweet"])) * int(str(row["cold"])) for row in ROWS}


@pytest.mark.parametrize("given", [{}, {"shrink": 5.0}, {"learner": "perceptron"}])
def test_what_depends_on_two_features_is_learned(tmp_path: Path, given: dict[str, Any]) -> None:
    """People put what is sweet and cold, or neither, first."""
    rng, learner = np.random.default_rng(0), given.pop("learner", "posterior")
    settings = Settings(k=3, control=0.0, products=True, **given)
    with Loop.create(tmp_path / "l", encoding=ENCODING, items=ROWS, learner=learner, settings=settings) as loop:
        n = len(ENCODING.names)
        assert loop.feature_names[n : n + 2] == ["sweet × sweet", "sweet × cold"]
        assert len(loop.feature_names) == n + 7 + 1
        assert getattr(loop.projection.interaction.learner, "products", 7) == 7
        for t in range(30):
            some = [f"i{j}" for j in rng.permutation(25)[:8]]
            loop.decide(some, id=f"d{t}", person="p")
            best = sorted(some, key=lambda name: -WORTH[name])[:3]
            loop.feedback({"decision": f"d{t}", "better": best, "id": f"e{t}"})
        weights = loop.weights
        assert max(loop.feature_names[:-1], key=lambda name: abs(weights[name])) == "sweet × cold"
        assert set(loop.decide([*WORTH], person="q").shown[:2]) == {"i0", "i24"}
        assert loop.verify() == []
    with Loop.open(tmp_path / "l") as again:
        assert again.weights == weights


def test_how_many_products_there_are_is_not_the_learners_to_say() -> None:
    given = Manifest.of("posterior:products=3", ENCODING, None, (), Settings(products=True))
    with pytest.raises(ValueError, match=r"^learner: products: expected none, as the loop's setting says it, got 3$"):
        built_learner(given)


def test_what_knows_no_features_or_crosses_them_itself_has_no_products() -> None:
    made = Settings(products=True)
    for settings, learner in ((made, "bmf"), (made, "hierarchical-gp")):
        with pytest.raises(ValueError, match=r"^products: expected false in .*, got true$"):
            Manifest.of(learner, ENCODING, None, (), settings)
