"""Logged probabilities that are wrong are told wherever an evaluation is: in Python, on the page and on the command
line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from browsing import Visitor
from command import heedful

from heedful import Loop
from heedful.server.main import served
from loops import small_loop


def record(path: Path, claimed: float) -> str:
    """300 lists of three items in any order, with the chance of each that is claimed; a learner that learns nothing."""
    rng = np.random.default_rng(0)
    with small_loop(path, "perceptron", n_items=3, k=3) as loop:
        start = loop.version
        for t in range(300):
            shown = [f"i{j}" for j in rng.permutation(3)]
            loop.record(["i0", "i1", "i2"], shown, id=f"d{t}", prior=[2.0, 1.0, 0.0], probability=claimed)
            loop.feedback(f"d{t}", id=f"e{t}", clicks=shown[:1] if rng.random() < 0.5 else [])
        return f"perceptron@{start}"


@pytest.mark.slow
@pytest.mark.parametrize(("claimed", "wrong"), [(1.0 / 6.0, False), (1.0 / 18.0, True)])
def test_mean_weights_are_told_everywhere(
    claimed: float, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = record(tmp_path / "l.heedful", claimed)
    with Loop.open(tmp_path / "l.heedful") as loop:
        evaluation = loop.evaluate(frozen)
    found = evaluation.learners[1].values[2]
    assert found.mean_weight == (None if wrong else pytest.approx(1.0, abs=0.3))
    assert ("logged probabilities are wrong" in found.refused) == bool(found.refused) == (found.value is None) == wrong
    assert (f"{frozen}, list value: {found.refused}" in evaluation._repr_html_()) == wrong
    assert (found.difference is None) == (found.verdict == "") == wrong  # nothing is better by wrong probabilities
    assert f"{frozen}, swapped pairs: no answer prefers one of two neighbours" in evaluation._repr_html_()
    with served(tmp_path) as url, closing(Visitor(url)) as visitor:
        page = visitor.get(f"/loops/l/proof?learner={quote(frozen)}")
    told = f"the log cannot tell, because {found.refused or 'nothing'}."
    assert any(told in each.text for each in page.all("p[@class='refused']") if each.text) == wrong
    monkeypatch.chdir(tmp_path)
    said = heedful(f"evaluate l --learner {frozen}", width=300).out
    assert (told in said) == wrong
    if not wrong:
        row = page.all("div[@id='told']//td[@data-label='Mean weight']")
        assert f"{found.mean_weight:.2f}" in [each.text for each in row]
        [line] = [
            each for each in said.splitlines() if each.split()[:1] == [frozen] and each.split()[-2:] == ["0", "%"]
        ]
        assert f"{found.mean_weight:.2f}" in line.split()
