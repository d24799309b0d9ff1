"""The programs of docs/opensearch.md run, against a stand-in for the engine, and both agree at the end."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import heedful

from loops import rows
from search_engine import Engine, serving

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "opensearch.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def products() -> dict[str, dict[str, Any]]:
    """Pens: their titles say nothing, people prefer cheap ones of acme."""
    brands = ["acme", "bic", "lamy"]
    return {
        f"p{j}": {"title": f"pen {'blue' if j % 2 else 'red'}", "price": 1.0 + (7 * j) % 40, "brand": brands[j % 3]}
        for j in range(40)
    }


def test_the_re_ranker_and_the_exported_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, then = blocks("py")
    assert sum(bool(line.strip()) for line in first.splitlines()) <= 20
    engine = Engine(products())
    engine.scores = {name: 40.0 - j for j, name in enumerate(engine.documents)}
    with serving(engine) as url:
        page: dict[str, Any] = {"__name__": "page"}
        exec(first.replace("http://localhost:9200", url), page)
        shop = page["shop"]
        hits = page["ask"]("/products/_search", {"query": {"match": {"title": "pen"}}, "size": 100})["hits"]["hits"]
        assert shop.rank(hits)[:10] == tuple(f"p{j}" for j in range(10))  # the engine's order
        acme = {name for name, row in engine.documents.items() if row["brand"] == "acme"}
        assert len(acme & set(shop.rank(hits)[:10])) == 4
        for _ in range(60):
            decision = page["search"]("pen", person="ada")
            page["clicked"](decision, [name for name in decision.shown if name in acme][:2])
        assert len(acme & set(shop.rank(hits)[:10])) > 4

        exec(then, page)
        found = [hit["_id"] for hit in page["found"]["hits"]["hits"]]
        w = [weight if name.startswith(("brand", "price")) else 0.0 for name, weight in shop.weights.items()]
        encode = shop.manifest.encoding.encode
        scores = {name: float(encode(row) @ w[:-1]) for name, row in engine.documents.items()}
        assert found == sorted(scores, key=lambda name: -scores[name])[:10]
        assert len(acme.intersection(found)) >= 7
        shop.close()


@pytest.mark.slow
def test_from_nothing_to_a_model_in_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not here, which the script needs")
    monkeypatch.chdir(tmp_path)
    items = rows(12, 3)
    lines = [",".join(items[0]), *(",".join(map(str, row.values())) for row in items)]
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "products.csv").write_text("\n".join(lines) + "\n")
    queries, events = [], []
    for t in range(12):
        hits = [f"i{(t + j) % 12}" for j in range(4)]
        best = max(hits, key=lambda name: float(items[int(name[1:])]["f0"]))
        at = f"2026-01-31T12:00:{t:02}Z"
        queries.append({"query_id": f"q{t}", "timestamp": at, "user_query": "pen", "query_response_hit_ids": hits})
        about = {"object": {"object_id": best}, "position": {"ordinal": hits.index(best) + 1}}
        events.append({"query_id": f"q{t}", "action_name": "click", "timestamp": at, "event_attributes": about})
    import json

    (tmp_path / "examples" / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (tmp_path / "examples" / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    [block] = blocks("sh")
    commands = block.splitlines()
    assert len(commands) <= 5
    engine = Engine({row["id"]: row for row in items})
    for command in commands[:-1]:
        got = heedful(command.removeprefix("heedful "))
        assert got.code == 0, got
    with serving(engine) as url:
        words = shlex.split(commands[-1].replace("http://localhost:9200", url))
        done = subprocess.run([*words, "--noproxy", "*"], capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
    search = json.loads((tmp_path / "model.sh").read_text().splitlines()[-1].removeprefix("# "))
    found = engine.call("POST", "/products/_search", {"query": {"match_all": {}}, "size": 12, **search})["hits"]["hits"]
    assert float(found[0]["_source"]["f0"]) > float(found[-1]["_source"]["f0"])
