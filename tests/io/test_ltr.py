"""Exported learning-to-rank models, evaluated by a stand-in for the engine that computes as its plugin does, order
documents as heedful does."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from films import shared
from heedful import Loop, Settings
from heedful.data.row_report import Report
from heedful.features import UNSEEN, Encoding, declare, infer
from heedful.features.columns import Category, Logarithm, Number
from heedful.io.formats.ltr import ranking_model
from loops import choice_loop, rating_loop, small_loop, specs
from search_engine import Engine, Refused

EPSILON = 2.0**-24
"""The relative error of a float32."""


def goods(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """n items with numbers above 0, below 0 and on both sides, truth values, categories, and missing values."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for j in range(n):
        row = {
            "id": f"i{j}",
            "price": round(float(rng.lognormal(3, 1)), 2),
            "year": int(rng.integers(1990, 2025)),
            "longitude": round(float(rng.normal(-74, 0.5)), 4),
            "balance": round(float(rng.normal(1, 30)), 3),
            "brand": ["acme", "Müller & Söhne", 'the "best"', "no name"][int(rng.integers(4))],
            "wheels": ["two", "four"][int(rng.integers(2))],
            "new": bool(rng.integers(2)),
        }
        for name in ("price", "balance", "brand", "new"):
            if rng.random() < 0.15:
                del row[name]
        rows.append(row)
    return rows


def shop(path: Path, rows: Sequence[Mapping[str, Any]], **more: Any) -> Loop:
    """Return a new loop of rankings over rows, with the encoding that is inferred from them."""
    return Loop.create(path, **{"encoding": infer(rows, identifier="id"), "items": rows} | more)


def taught(loop: Loop, rounds: int = 40, seed: int = 0, **more: Any) -> Loop:
    """Answer `rounds` lists of eight items with a click on one of the first three, at random."""
    rng = np.random.default_rng(seed)
    names = loop.items
    for t in range(rounds):
        some = [names[j] for j in rng.permutation(len(names))[:8]]
        shown = loop.decide(some, id=f"d{t}", **more).shown
        loop.feedback({"id": f"e{t}", "decision": f"d{t}", "clicks": [shown[int(rng.integers(1, 3))]]})
    return loop


def exported(loop: Loop, report: Report | None = None, **options: str) -> dict[str, Any]:
    """Return the document of a loop, by way of JSON."""
    told = ranking_model(loop, report or Report(), options, engine="opensearch")
    return dict(json.loads(json.dumps(told)))


def engine_with(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[Engine, str]:
    """Return (an engine that has the rows and the exported model, the name of that model)."""
    engine = Engine({str(row["id"]): {k: v for k, v in row.items() if k != "id"} for row in rows})
    engine.call("PUT", "/_ltr")
    for call in document["calls"]:
        engine.call(call["method"], call["path"], call["body"])
    return engine, str(document["search"]["rescore"]["query"]["rescore_query"]["sltr"]["model"])


def scores_of(loop: Loop, rows: Sequence[Mapping[str, Any]], *gone: str) -> tuple[Any, Any]:
    """Return (scores (m,) that the loop gives rows, sums (m,) of the sizes of their parts) without the columns
    `gone`."""
    w = np.array(list(loop.weights.values()))[:-1]
    encoding = loop.manifest.encoding
    for name in gone:
        w[list(encoding.places[name])] = 0.0
    X = encoding.encode_many(rows).astype(float)
    return X @ w, np.abs(X) @ np.abs(w)


def check_agreement(loop: Loop, rows: Sequence[Mapping[str, Any]], document: Mapping[str, Any], *gone: str) -> float:
    """Check that the engine's totals are heedful's scores plus one constant, to rounding, and order rows so.

    Return the largest rounding error that was allowed, as a share of the standard deviation of the scores."""
    engine, name = engine_with(document, rows)
    model = engine.models[name]
    constant = float(model.weights[-1])
    scores, sizes = scores_of(loop, rows, *gone)
    totals = np.array([float(engine.total(model, engine.documents[str(row["id"])])) for row in rows])
    assert (totals >= 0.0).all()
    encoding = loop.manifest.encoding
    # A value v is known as float32 there: an error of w |v| 2^-24 / scale on top of that of the sum.
    coarse = np.zeros(len(rows))
    for column in encoding.columns:
        if isinstance(column, Number) and column.name not in gone:
            v = np.array([abs(float(row.get(column.name) or 0.0)) for row in rows])
            w = abs(loop.weights[column.name])
            coarse += 3 * w * (v + 2 * abs(column.mean)) * EPSILON / column.scale
            if isinstance(column, Logarithm):  # a relative error of v is an absolute one of log(1 + v)
                w = abs(loop.weights[f"log {column.name}"])
                coarse += 3 * w * (1.0 + np.log1p(v) + 2 * abs(column.log_mean)) * EPSILON / column.log_scale
    n = len(model.weights)
    allowed = 2 * n * EPSILON * (sizes + 2 * constant) + coarse + 1e-6 * sizes.max()
    assert (np.abs(totals - constant - scores) <= allowed).all(), np.abs(totals - constant - scores).max()
    found = engine.call("POST", "/goods/_search", {**document["search"], "size": len(rows)})["hits"]["hits"]
    place = {str(row["id"]): j for j, row in enumerate(rows)}
    order = [place[hit["_id"]] for hit in found]
    for above, below in pairwise(order):
        assert scores[above] >= scores[below] - allowed[above] - allowed[below]
    spread = float(scores.std())
    return float(allowed.max() / spread) if spread else math.inf


@pytest.mark.parametrize("learner", specs())
def test_every_learner_of_rankings_is_exported_and_orders_as_here(tmp_path: Path, learner: str) -> None:
    rows = goods(60)
    with taught(shop(tmp_path / "shop", rows, learner=learner)) as loop:
        if not any(list(loop.weights.values())[:-1]):
            with pytest.raises(ValueError, match="weights are all 0"):
                exported(loop)
            return
        document = exported(loop)
        assert document["left_out"] == []
        assert check_agreement(loop, rows, document) < 0.01
        # On these items the order itself is equal.
        engine, _ = engine_with(document, rows)
        found = engine.call("POST", "/goods/_search", {**document["search"], "size": 60})["hits"]["hits"]
        scores, _ = scores_of(loop, rows)
        if np.diff(np.sort(scores)).min() > 1e-3 * scores.std():
            assert [hit["_id"] for hit in found] == list(loop.rank([row["id"] for row in rows]))


def test_the_order_on_new_items_with_values_within_the_limits(tmp_path: Path) -> None:
    with taught(shop(tmp_path / "shop", goods(60))) as loop:
        assert check_agreement(loop, goods(300, seed=9), exported(loop, window="300")) < 0.01


def test_a_value_on_the_other_side_of_0_or_far_out_fails_no_search_and_sinks_nothing(tmp_path: Path) -> None:
    rows = goods(60)
    with taught(shop(tmp_path / "shop", rows)) as loop:
        document = exported(loop)
        engine, name = engine_with(document, rows)
        odd = [{"price": -5.0}, {"longitude": 60.0}, {"balance": -1e12}, {"balance": 1e12}, {"price": 1e30}, {}]
        odd += [{"brand": ["acme", "no name"], "price": 1e9, "year": 0, "longitude": -1e9, "balance": sign * 1e9}
                for sign in (-1, 1)]  # fmt: skip
        for each in odd:
            assert 0.0 <= float(engine.total(engine.models[name], each)) < math.inf
        # What is on the other side of 0 counts as 0.
        model = engine.models[name]
        assert engine.total(model, {"price": -5.0}) == engine.total(model, {"price": 0.0})


def test_the_constant_is_needed_and_is_not_larger_than_that(tmp_path: Path) -> None:
    rows = goods(60)
    with taught(shop(tmp_path / "shop", rows)) as loop:
        engine, name = engine_with(exported(loop), rows)
        model = engine.models[name]
        totals = [float(engine.total(model, each)) for each in engine.documents.values()]
        constant = float(model.weights[-1])
        assert min(totals) - constant < 0.0 <= min(totals)
        # Beyond the window the engine's own score counts 0, so that nothing of the window sinks below it.
        assert constant < 100.0 * sum(abs(weight) for weight in loop.weights.values())


def power(t: float) -> float:
    """Return the number whose logarithm is t."""
    return math.copysign(math.expm1(abs(t)), t)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_encoding_of_numbers_and_categories(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    number = st.builds(
        lambda mean, scale, missing: {"mean": mean * scale, "scale": scale, "missing": int(missing)},
        st.floats(-50, 50),
        st.floats(1e-3, 1e4),
        st.booleans(),
    )
    columns: list[Any] = [
        Number(name=f"n{j}", **told) for j, told in enumerate(data.draw(st.lists(number, max_size=4)))
    ]
    logarithms = st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 1), st.integers(0, 1)), max_size=2)
    for j, (mean, scale, missing) in enumerate(data.draw(logarithms)):
        low, high = power(mean - scale), power(mean + scale)
        of_logs = {"log_mean": mean, "log_scale": scale, "missing": missing}
        columns.append(Logarithm(name=f"l{j}", mean=(low + high) / 2, scale=(high - low) / 2, **of_logs))
    levels = st.lists(st.text("ab \"'{}\\é=", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=3)
    for j, texts in enumerate(data.draw(st.lists(levels, min_size=0 if columns else 1, max_size=2))):
        known = tuple(dict.fromkeys(text.strip() for text in texts))
        if not any("{{" in level for level in known):
            columns.append(Category(name=f"c {j}", levels=known, missing=data.draw(st.integers(0, 1))))
    if not columns:
        return
    encoding = Encoding(columns=tuple(columns), identifier="id")
    rows = []
    for i in range(8):
        row: dict[str, Any] = {"id": f"i{i}"}
        for column in columns:
            if isinstance(column, Number):
                away = data.draw(st.floats(-3, 3))
                value = column.mean + column.scale * away
                if isinstance(column, Logarithm):
                    value = power(column.log_mean + column.log_scale * away)
                row[column.name] = None if column.missing and data.draw(st.booleans()) else value
            else:
                row[column.name] = data.draw(st.sampled_from([*column.levels, "other", None]))
        rows.append(row)
    path = tmp_path_factory.mktemp("any") / "loop"
    on_offer = data.draw(st.sampled_from([rows, []]))
    with Loop.create(path, encoding=encoding, items=on_offer, learner="perceptron") as loop:
        for t in range(4):
            which = rows if not on_offer else [row["id"] for row in rows]
            shown = loop.decide(which, id=f"d{t}").shown
            chosen = data.draw(st.sampled_from(shown))
            loop.feedback({"id": f"e{t}", "decision": f"d{t}", "clicks": [chosen]})
        if not any(list(loop.weights.values())[:-1]):
            return
        check_agreement(loop, rows, exported(loop))


@pytest.mark.slow
def test_mq2008_agrees(tmp_path: Path) -> None:
    rows, queries = [], dict[str, list[int]]()
    with gzip.open(shared("letor4-mq2008") / "S1.txt.gz", "rt") as lines:
        for j, line in enumerate(islice(lines, 600)):
            _, query, *features = line.partition("#")[0].split()
            row = {f"f{name}": float(value) for name, _, value in (each.partition(":") for each in features)}
            rows.append({"id": f"i{j}", **row})
            queries.setdefault(query, []).append(j)
    with taught(shop(tmp_path / "letor", rows), rounds=100) as loop:
        document = exported(loop, window="1000")
        assert check_agreement(loop, rows, document) < 0.01
        engine, _ = engine_with(document, rows)
        for places in queries.values():  # each query's own documents, as a search finds them
            names = [f"i{j}" for j in places]
            search = {**document["search"], "query": {"ids": {"values": names}}, "size": len(names)}
            found = engine.call("POST", "/letor/_search", search)["hits"]["hits"]
            scores = dict(zip(names, scores_of(loop, [rows[j] for j in places])[0].tolist()))
            there = [scores[hit["_id"]] for hit in found]
            here = [scores[name] for name in loop.rank(names)]
            assert there == pytest.approx(here, abs=1e-4 * float(np.std(here)) + 1e-9)


# ---------------------------------------------------------------------------- what cannot be exported


def test_texts_vectors_products_and_the_callers_score_are_refused_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = goods(30)
    for row in rows:
        words = ["red", "round", "light", "sturdy", "cheap", "noisy", "warm", "soft"]
        row["about"] = " ".join(rng.choice(words, 5)) + f" {row['id']}"
        row["uses"] = "|".join(rng.choice(["desk", "trip", "gift", "home"], 2, replace=False))
        row["picture"] = [float(x) for x in rng.standard_normal(3).round(2)]
    context = declare({"device": ["phone", "desk"]})
    kinds = {"about": "text", "uses": "tags", "picture": "vector"}
    encoding = infer(rows, identifier="id", kinds=kinds, buckets=8)
    more: dict[str, Any] = {"encoding": encoding, "context": context, "crosses": [("device", "price")]}
    more["settings"] = Settings(products=True)
    with shop(tmp_path / "shop", rows, **more) as loop:
        taught(loop, context={"device": "phone"}, prior=[8, 7, 6, 5, 4, 3, 2, 1])
        with pytest.raises(ValueError) as refused:
            exported(loop)
        told = str(refused.value)
        names = "about,uses,picture,crosses,products,prior"
        assert f"--option 'without={names}'" in told
        for part in (
            "about, ",
            "hashed words",
            "uses, ",
            "several tags in one text",
            "picture, ",
            "a vector",
            "crosses, ",
            "products, ",
            "prior, ",
            "% of its absolute weights",
        ):
            assert part in told
        assert "no measure of importance" in told
        with pytest.raises(ValueError, match=r"prior, .*scaled within each request"):
            exported(loop, without="about,uses,picture,crosses,products")

        report = Report()
        document = exported(loop, report, without=names)
        assert {each["name"] for each in document["left_out"]} == set(names.split(","))
        weights = {name: abs(weight) for name, weight in loop.weights.items()}
        about = [w for name, w in weights.items() if name.startswith("about~") and " × " not in name]
        share = sum(about) / sum(weights.values())
        assert document["left_out"][0]["share_of_weights"] == pytest.approx(share, abs=1e-4)
        assert any("% of the model's absolute weights" in each for each in report.examples.values())
        assert report.rows["features"] == report.used["features"] + report.dropped.total()

        # With one context, products are weights of the item's own column.
        phone = exported(loop, without="about,uses,picture,products,prior", context='{"device": "phone"}')
        expected = loop.weights["price"] + loop.weights["device=phone × price"]
        definition = json.loads(phone["calls"][1]["body"]["model"]["model"]["definition"])
        assert definition["price"] == pytest.approx(expected, rel=1e-6)
        for wrong in ("phone", "[1]", '{"device": [1]}', "["):
            with pytest.raises(ValueError, match="context: "):
                exported(loop, context=wrong)


def test_a_column_can_be_left_out_and_a_field_named(tmp_path: Path) -> None:
    rows = goods(60)
    with taught(shop(tmp_path / "shop", rows)) as loop:
        document = exported(loop, without="brand,year", fields="price=offer.price,wheels=wheels.keyword")
        assert (
            check_agreement(loop, [{**row, "offer.price": row.get("price")} for row in rows], document, "brand", "year")
            < 0.01
        )
        written = json.dumps(document["calls"])
        assert "wheels.keyword" in written
        assert "brand" not in written
        assert '"year"' not in written
        with pytest.raises(ValueError, match=r"without: expected one of .*, got 'colour'"):
            exported(loop, without="colour")
        with pytest.raises(ValueError, match="without: expected a part of the model to be left"):
            exported(loop, without=json.dumps([c.name for c in loop.manifest.encoding.columns if c.features()]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fields": "price"}, "fields: expected COLUMN=FIELD"),
        ({"fields": "price=a,price=b"}, "fields: expected COLUMN=FIELD, each column once"),
        ({"fields": "colour=a"}, "fields: expected one of"),
        ({"name": "a b"}, "name: expected 1 to 200 characters"),
        ({"name": ""}, "name: expected 1 to 200 characters"),
        ({"window": "0"}, "window: expected a whole number from 1 to 10000"),
        ({"window": "20000"}, "window: expected a whole number from 1 to 10000"),
        ({"window": "ten"}, "window: expected a whole number from 1 to 10000"),
        ({"context": "{}"}, "context: expected none, as the loop has no products"),
        ({"without": "[1]"}, "without: expected names separated by commas"),
        ({"without": "[["}, "without: expected names separated by commas"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, str], told: str) -> None:
    with taught(shop(tmp_path / "shop", goods(20)), rounds=5) as loop:
        with pytest.raises(ValueError) as refused:
            exported(loop, **options)
        assert told in str(refused.value)


def test_other_kinds_of_loops_and_loops_that_learned_nothing_are_refused(tmp_path: Path) -> None:
    for make, loop_of in ((rating_loop, "ratings"), (choice_loop, "choices")):
        with make(tmp_path / loop_of) as loop, pytest.raises(ValueError, match=rf"expected a loop .*, got .*{loop_of}"):
            exported(loop)
    with small_loop(tmp_path / "grades", "prank:n_ranks=3") as loop, pytest.raises(ValueError, match=r"got .*grades"):
        exported(loop)
    with small_loop(tmp_path / "new") as loop, pytest.raises(ValueError, match="learned from feedback"):
        exported(loop)
    with Loop.create(tmp_path / "names", encoding=UNSEEN, items=[{"id": "a"}, {"id": "b"}]) as loop:
        loop.decide(id="d")
        loop.feedback({"id": "e", "decision": "d", "clicks": ["b"]})
        with pytest.raises(ValueError, match="learned from feedback"):
            exported(loop)


def test_a_level_that_a_template_would_read_is_refused(tmp_path: Path) -> None:
    rows = [{"id": f"i{j}", "tag": ["{{a}}", "b"][j % 2], "n": j} for j in range(10)]
    with taught(shop(tmp_path / "shop", rows)) as loop:
        with pytest.raises(ValueError, match=r"tag, .*which templates read as a parameter"):
            exported(loop)
        assert check_agreement(loop, rows, exported(loop, without="tag"), "tag") < 0.01


def test_times_in_milliseconds_are_named_as_too_coarse(tmp_path: Path) -> None:
    rows = [{"id": f"i{j}", "since": 1_700_000_000_000 + 60_000 * j, "n": j} for j in range(20)]
    encoding = infer(rows, identifier="id", kinds={"since": "number"})
    with taught(shop(tmp_path / "shop", rows, encoding=encoding)) as loop:
        (note,) = [note for note in exported(loop)["notes"] if note.startswith("since: ")]
        assert "nearly equal in float32" in note


def test_peoples_own_weights_are_named(tmp_path: Path) -> None:
    with taught(shop(tmp_path / "shop", goods(20), settings=Settings(shrink=5.0)), person="ada") as loop:
        assert "weights of their own, which 1 people have, are not in it" in exported(loop)["notes"]


def test_a_second_export_has_another_model_name(tmp_path: Path) -> None:
    rows = goods(20)
    with taught(shop(tmp_path / "shop", rows)) as loop:
        first = exported(loop)
        engine, _ = engine_with(first, rows)
        with pytest.raises(Refused, match="already exists"):
            engine.call(**first["calls"][1])
        loop.decide(id="more")
        loop.feedback({"id": "more", "decision": "more", "clicks": [loop.items[3]]})
        second = exported(loop)
        for call in second["calls"]:
            engine.call(call["method"], call["path"], call["body"])
        assert len(engine.models) == 2


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_numbers_that_do_not_fit_into_float32_are_refused_by_name(tmp_path: Path, size: float) -> None:
    rows = [{"id": f"i{j}", "far": size * (j + 1), "n": j % 5} for j in range(20)]
    encoding = infer(rows, identifier="id", kinds={"far": "number"})
    with taught(shop(tmp_path / "shop", rows, encoding=encoding)) as loop:
        with pytest.raises(ValueError, match=r"far, .*: numbers that do not fit into float32"):
            exported(loop)
        assert check_agreement(loop, rows, exported(loop, without="far"), "far") < 0.01


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_weights_of_any_size_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    rows = goods(30)
    with taught(shop(tmp_path / "shop", rows)) as loop:
        ordered = exported(loop)
        effective = type(loop.projection.model).effective
        monkeypatch.setattr(
            type(loop.projection.model), "effective", lambda self, *given: size * effective(self, *given)
        )
        orders = []
        for document in (ordered, exported(loop)):
            engine, _ = engine_with(document, rows)
            found = engine.call("POST", "/goods/_search", {**document["search"], "size": 30})["hits"]["hits"]
            orders.append([hit["_id"] for hit in found])
        assert orders[0] == orders[1]
