"""`heedful figure`: the list, one of them, all of them, and what is said where data are missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import done, heedful, refusal

from heedful.experiments import run
from heedful.papers import FIGURES
from heedful.papers.figure import Size
from papers.invented import letor_files


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with generated queries, and sizes that take no time: to compile for so few rounds would take some."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(run, "must_interpret", lambda _: True)
    letor_files(tmp_path / "letor4-mq2008")
    for name, figure in FIGURES.items():
        panels = tuple(panel._replace(quick=Size(min(panel.quick.rounds, 30), 2)) for panel in figure.panels)
        monkeypatch.setitem(FIGURES, name, figure._replace(panels=panels))
    return tmp_path


def test_without_an_id_all_are_listed() -> None:
    got = done("figure")
    for name in FIGURES:
        assert name in got.out
    rows = heedful("figure --json").json
    assert [row["id"] for row in rows] == list(FIGURES)
    assert rows[1]["worlds"] == ["web"]
    assert all(row["claims"] for row in rows)


@pytest.mark.slow
def test_one_is_drawn_and_its_claims_told(data: Path) -> None:
    got = done("figure coactive2012/fig2 --quick --jobs 1 --data {} --out {}", data, data / "out")
    for claim in FIGURES["coactive2012/fig2"].claims:
        assert claim.says[:30] in got.out
    assert (data / "out" / "coactive2012-fig2.png").stat().st_size > 1000
    for kind in ("svg", "pdf"):
        assert (data / "out" / f"coactive2012-fig2.{kind}").stat().st_size > 1000
    assert str(data / "out" / "coactive2012-fig2.png") in got.out
    assert "judged on rounds 1 to 15, once through the queries" in got.out


@pytest.mark.slow
def test_json_has_the_claims_the_statistic_and_the_curves(data: Path) -> None:
    got = heedful("figure jair2015/fig2 --quick --json --data {} --out {}", data, data / "out")
    assert got.code == 0, got.err
    assert "left out: no movielens-1m in" in got.err
    found = got.json
    assert (found["id"], found["quick"]) == ("jair2015/fig2", True)
    assert list(found["panels"]) == ["web"]
    line = found["panels"]["web"]["alpha = 0.5"]
    assert (line["learner"], line["person"], line["runs"]) == ("perceptron", "strict:alpha=0.5", 2)
    assert line["rounds"] == [1, 3, 10, 15, 30]
    assert len(line["regret"]) == len(line["stderr"]) == 5
    assert found["judged_on"].startswith("Claims about web search are judged on rounds 1 to 15, once through")
    assert line["theorem"] == "Theorem 1"
    assert {claim["verdict"] for claim in found["claims"] if claim["says"].startswith("Movies")} == {"not run"}
    lower = next(claim for claim in found["claims"] if "alpha = 1 is lower" in claim["says"])
    assert set(lower["paired"]) == {"difference", "stderr", "t", "p", "pairs", "freedom"}
    assert lower["paired"]["pairs"] == 2


@pytest.mark.slow
def test_named_files_stand_in_for_mq2008(data: Path) -> None:
    files = letor_files(data / "elsewhere")
    empty = data / "empty"
    empty.mkdir()
    line = "figure coactive2012/fig2 --quick --json --data {} --out {} --letor {} --letor {}"
    got = heedful(line, empty, data / "out", *files[:2])
    assert got.code == 0, got.err
    assert list(got.json["panels"]) == ["web"]


@pytest.mark.slow
def test_all_of_them_make_a_page(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(FIGURES):
        if name not in ("coactive2012/fig2", "coactive2012/fig4", "jair2015/lemma3"):
            monkeypatch.delitem(FIGURES, name)
    got = heedful("figure --all --quick --json --data {} --out {}", data, data / "out")
    assert got.code == 0, got.err
    assert [one["id"] for one in got.json] == ["coactive2012/fig2", "coactive2012/fig4", "jair2015/lemma3"]
    assert got.json[1]["panels"] == {}
    text = (data / "out" / "index.html").read_text()
    assert text.count("<img") == 2
    assert text.count("judged on rounds 1 to 15") == 1
    assert str(data / "out" / "index.html") in got.err


@pytest.mark.parametrize(
    ("line", "told", "code"),
    [
        ("figure jair2015/fig99 --data {}", "did you mean jair2015/fig9", 2),
        ("figure jair2015/fig2 --all --data {}", "expected an ID or --all, got both", 2),
        ("figure jair2015/fig2 --data {}/nowhere", "--data: expected a folder", 2),
    ],
)
def test_bad_input_is_a_sentence(tmp_path: Path, line: str, told: str, code: int) -> None:
    got = heedful(line, tmp_path)
    assert (got.code, got.out) == (code, "")
    assert told in got.err


def test_without_any_data_the_code_is_1(tmp_path: Path) -> None:
    got = heedful("figure jair2015/fig2 --data {} --out {}", tmp_path, tmp_path / "out")
    assert (got.code, f"left out: no letor4-mq2008 in {tmp_path}" in got.err) == (1, True)


def test_a_damaged_file_is_bad_input(data: Path) -> None:
    (data / "letor4-mq2008" / "S3.txt").write_text("what is this\n")
    assert "S3.txt" in refusal("figure coactive2012/fig2 --quick --data {} --out {}", data, data / "out")
