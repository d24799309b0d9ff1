"""The comparisons with peers (bench/peers) are fair: all entrants meet the same stream. No peer is needed here."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import PreferencePerceptron, Ranking, trace
from heedful.learners.coactive.posterior import preferred
from heedful.learners.ordinal.perceptrons import PRank
from heedful.learners.ratings.baselines import ItemMean

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "bench" / "peers"
PACKAGES = {
    "choix", "implicit", "lightgbm", "mord", "river", "scikit-learn", "scikit-surprise", "skordinal", "vowpalwabbit",
}  # fmt: skip


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))


def module(name: str) -> Any:
    return importlib.import_module(f"peers.{name}")


def test_pairs_are_those_that_heedful_takes() -> None:
    rng, ranking = np.random.default_rng(0), module("ranking")
    for _ in range(200):
        m = int(rng.integers(1, 12))
        shown, better = rng.permutation(m), rng.permutation(m)
        k = int(rng.integers(1, 7))
        a, b = ranking.implied_pairs(better, shown, k)
        wanted = preferred(m, shown, better[:k], min(k, m))
        assert sorted(zip(a, b)) == sorted(zip(*(places.tolist() for places in wanted)))
        assert len(set(zip(a, b))) == len(a)


def watched(ranking: Any, player: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, float], list[Any]]:
    """One run of a player, and all documents that it was given."""
    seen: list[Any] = []
    prepare = player.prepare
    player.prepare = lambda x: (seen.append(x.copy()), prepare(x))[1]
    entrant = ranking.Entrant("", "", lambda n: player)
    monkeypatch.setitem(ranking.ENTRANTS, "watched", entrant)
    return ranking.measure(ranking.Job("watched", 3, 40, {})), seen


def test_every_ranker_meets_the_same_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session, and a peer that learns from pairs: the same arrays; the session's regrets are those of `trace`."""
    ranking = module("ranking")

    class Sum(ranking.LinearPeer):  # type: ignore[misc, name-defined]
        def learn_pairs(self, D: Any) -> None:
            self.w = D.sum(0) if self.w is None else self.w + D.sum(0)

    n = ranking.FEATURES
    ours, met = watched(ranking, ranking.Heedful(PreferencePerceptron(n, Ranking(5))), monkeypatch)
    theirs, also = watched(ranking, Sum(), monkeypatch)
    assert len(met) == len(also) == 40 + ranking.HELD
    assert all(np.array_equal(x, y) for x, y in zip(met, also))
    assert theirs["regret"] < 3.0
    world = ranking.stream(3, 40).world
    regrets = trace(PreferencePerceptron(n, Ranking(5)), world, 40, 3, interpreted=True)
    assert ours["regret"] == regrets.mean()
    assert 0.5 < ours["NDCG@5"] <= 1.0


def test_the_held_out_queries_are_not_learned_from() -> None:
    world, held = module("ranking").stream(0, 30)
    assert world.offsets.size == 31
    assert len(held) == module("ranking").HELD
    learned = {row.tobytes() for row in world.X}
    assert not any(row.tobytes() in learned for x, _ in held for row in x)


def test_grades_and_ratings_come_as_in_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's mean loss and regret are those of `trace`: the same instances, users and ratings."""
    ordinal, ratings = module("ordinal"), module("ratings")
    found = ordinal.measure(ordinal.Job("heedful, prank", 1, 50, {}))
    alone = trace(PRank(50, 5), ordinal.stream(1, 50), 50, 1, interpreted=True)
    assert found["error"] == alone.mean()
    entrant = ratings.Entrant("", "", lambda: ratings.Heedful(ItemMean()))
    monkeypatch.setitem(ratings.ENTRANTS, "heedful, item-mean", entrant)
    found = ratings.measure(ratings.Job("heedful, item-mean", 1, 50, {}))
    alone = trace(ItemMean(), ratings.stream(1, 50), 50, 1, interpreted=True)
    assert found["regret"] == alone.mean()


def test_every_learner_of_clicks_gets_the_same_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is fitted again meets what one that learns each list does, and is fitted when it should be."""
    clicks = module("clicks")
    met: dict[str, list[Any]] = {"one by one": [], "refitted": []}

    class Each:
        def learn(self, x: Any, clicked: Any) -> None:
            met["one by one"].append((x[:10], np.isin(np.arange(10), clicked)))

        def score(self, X: Any) -> Any:
            return X[..., 0]

    class Again(clicks.Refitted):  # type: ignore[misc, name-defined]
        def fit(self, X: Any, clicks: Any, places: Any) -> None:
            assert len(X) == len(clicks) == len(places)
            met["refitted"].append((X, clicks, places))

        def score(self, X: Any) -> Any:
            return X[..., 0]

    for name, player in (("one by one", Each), ("refitted", Again)):
        monkeypatch.setitem(clicks.ENTRANTS, name, clicks.Entrant("", "", player))
        found = clicks.measure(clicks.Job(name, 1, 60, {}))
        assert found["NDCG linear 50"] == clicks.measure(clicks.Job(name, 1, 60, {}))["NDCG linear 50"]
    sizes = [len(X) // clicks.SHOWN for X, _, _ in met["refitted"]]
    assert sizes[:2] == [50, 55]  # whenever there are 10 % more
    X, told, places = met["refitted"][1]
    each = met["one by one"][:55]
    assert np.array_equal(X, np.concatenate([x for x, _ in each]))
    assert np.array_equal(told, np.concatenate([clicked for _, clicked in each]))
    assert places.tolist() == [*range(10)] * 55


def test_the_true_utilities_are_above_the_order_of_the_site() -> None:
    clicks = module("clicks")
    order, best = (clicks.measure(clicks.Job(name, 2, 50, {})) for name in ("the site's order", "the true utilities"))
    for truth in clicks.TRUTHS:
        assert 0.5 < order[f"NDCG {truth} 50"] < best[f"NDCG {truth} 50"] < 1.0


def test_the_seed_of_the_peers_factors_is_that_of_no_stream() -> None:
    """Factors drawn as the hidden ones are would know the answers."""
    ratings = module("ratings")
    hidden = ratings.stream(0, 1).Y
    guess = ratings.NumpyFactors(explore=0.0, rate=0.1)
    assert abs(np.corrcoef((guess.A @ guess.B.T).ravel(), hidden.ravel())[0, 1]) < 0.1


def test_the_lock_has_every_peer_with_hashes() -> None:
    run = module("run")
    lock = (PEERS / "requirements.lock").read_text()
    blocks = run.blocks(lock)
    assert "".join(blocks.values()).count("--hash=sha256:") == lock.count("--hash=sha256:") > 500
    wanted = {re.split(r"[=<>]", line)[0] for line in (PEERS / "requirements.in").read_text().splitlines()}
    assert wanted == set(run.PEERS) <= set(blocks)
    assert not re.search(r"://|index-url|find-links", lock)


def test_a_peer_that_is_not_there_has_a_row_that_says_why() -> None:
    tables = module("tables")
    row = {"entrant": "b", "used": "so", "missing": "no wheel"}
    there = {
        "entrant": "a",
        "used": "so",
        "setting": {"rate": 0.1},
        "regret": (0.5, 0.01),
        "times": 1.0,
        "per second": 7.0,
        "MB": 2.0,
    }
    found = {
        "title": "T", "stream": "s", "rounds": 5, "seeds": 2, "unit": "lists", "of": "lists", "reference": "a",
        "columns": {"regret": "regret"}, "rows": [there, row],
    }  # fmt: skip
    [table] = tables.tables({"comparisons": {"t": found}})
    assert table.rows == [
        ["a", "so (rate 0.1)", "**0.500** ± 0.010", "7", "1", "2"],
        ["b", "not installed: no wheel", "", "", "", ""],
    ]


def test_the_tables_of_the_page_are_what_was_measured() -> None:
    tables, page = module("tables"), (ROOT / "docs" / "benchmarks.md").read_text()
    found = [json.loads(path.read_text()) for path in (ROOT / "bench" / "results").glob("peers*.json")]
    drawn = [tables.markdown(table) for each in found for table in tables.tables(each)]
    assert len(drawn) >= 5
    for table in drawn:
        assert table in page
    for each in found:
        assert each["machine"]["commit"] in page
        assert all(f"{name} {version}" in page for name, version in each["versions"].items() if name in PACKAGES)
