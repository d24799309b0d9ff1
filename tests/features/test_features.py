"""Features: what columns become, what is frozen, what is refused, how texts are read, how contexts cross items."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.features import TEXTS, UNSEEN, Encoding, FeatureCross, declare, infer
from heedful.features.columns import LIMIT, Category, Logarithm, Number, Tags, Vector, logarithm
from heedful.features.texts import TRAITS

CARS: list[dict[str, Any]] = [
    {"name": "Ada", "horsepower": 50, "origin": "USA", "seats": 4},
    {"name": "Bug", "horsepower": "150", "origin": "USA", "seats": 4},
    {"name": "Cub", "horsepower": None, "origin": "Japan", "seats": 4},
    {"name": "Dot", "origin": "Japan", "seats": 4},
]


def of(encoding: Encoding, row: dict[str, Any]) -> dict[str, float]:
    return dict(zip(encoding.names, encoding.encode(row).tolist()))


def kinds(encoding: Encoding) -> dict[str, str]:
    return {column.name: column.kind for column in encoding.columns}


# ---------------------------------------------------------------------------- by hand


def test_by_hand() -> None:
    cars = infer(CARS)
    assert cars.identifier == "name"
    assert cars.names == ["horsepower", "horsepower missing", "origin=Japan", "origin=USA"]
    assert cars.size == 4
    X = cars.encode_many(CARS)
    assert X.dtype == np.float32
    # mean 100, deviation 50
    assert X.tolist() == [[-1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0]]
    assert [cars.encode(row).tolist() for row in CARS] == X.tolist()
    assert cars.encode({"horsepower": "1e2", "origin": " Japan "}).tolist() == [0, 0, 1, 0]
    assert cars.encode({"horsepower": 175.0, "colour": "red"}).tolist() == [1.5, 0, 0, 0]
    assert cars.encode_many([]).shape == (0, 4)


def test_what_is_told() -> None:
    told = infer(CARS).describe()
    assert [(d.column, d.kind, d.features, d.missing) for d in told] == [
        ("name", "ignored", 0, 0),
        ("horsepower", "number", 2, 2),
        ("origin", "category", 2, 0),
        ("seats", "ignored", 0, 0),
    ]
    assert [d.why for d in told] == [
        "names the item",
        "2 different numbers",
        "2 different texts in 4 rows",
        "the same everywhere",
    ]
    assert [d.example for d in told] == ["Ada", "50 to 150", "Japan", "4"]


def test_unknown_categories_are_zeros_and_counted() -> None:
    cars = infer(CARS)
    unknown = Counter[str]()
    rows = [{"origin": "Mars"}, {"origin": "Mars", "horsepower": 100}, {"origin": "USA"}, {}]
    X = np.array([cars.encode(row, unknown) for row in rows])
    assert X[:, 2:].tolist() == [[0, 0], [0, 0], [0, 1], [0, 0]]
    assert unknown == {"origin=Mars": 2}


def test_missing_without_a_flag_is_the_mean() -> None:
    encoding = infer([{"id": 1, "a": 1}, {"id": 2, "a": 3}])
    assert encoding.names == ["a"]
    assert [encoding.encode({"a": value})[0] for value in (None, math.nan, "", " NA ", "nan", "null")] == [0] * 6


@pytest.mark.parametrize("nothing", [None, math.nan, "", " \n"])
def test_nothing_is_missing_in_every_kind(nothing: Any) -> None:
    rows = [{"id": i, "n": i, "c": "ab"[i % 2], "t": f"two words {i}", "p": "?", "v": [i, 1]} for i in range(4)]
    rows += [dict.fromkeys("nctpv", nothing) | {"id": 4}]
    encoding = infer(rows, kinds={"p": "prose"})
    assert {c.kind: c.missing for c in encoding.columns if c.kind != "ignored"} == dict.fromkeys(
        ["number", "category", "text", "prose", "vector"], 1
    )
    got = of(encoding, rows[4])
    assert {name: value for name, value in got.items() if value} == {f"{name} missing": 1 for name in "nctpv"}


def test_booleans_are_numbers() -> None:
    encoding = infer([{"id": 1, "b": True}, {"id": 2, "b": False}])
    assert kinds(encoding)["b"] == "number"
    assert encoding.encode_many([{"b": True}, {"b": False}, {"b": np.bool_(True)}]).tolist() == [[1], [-1], [1]]


def test_numpy_scalars_and_arrays_are_values() -> None:
    encoding = infer([{"id": 1, "a": np.float32(1), "v": np.array([3.0, 4])}, {"id": 2, "a": np.int64(3), "v": [3, 4]}])
    assert encoding.encode({"a": np.float16(2)}).tolist() == [0]
    assert kinds(encoding) == {"id": "ignored", "a": "number", "v": "ignored"}


def test_vectors_have_length_1_on_average() -> None:
    rows = [{"id": 1, "v": [3, 4]}, {"id": 2, "v": [0.0, 0.0]}, {"id": 3, "v": [0, 5]}, {"id": 4, "v": (5, 0)}]
    encoding = infer(rows)
    assert encoding.names == ["v[0]", "v[1]"]
    X = encoding.encode_many(rows)
    np.testing.assert_allclose(X, np.array([[3, 4], [0, 0], [0, 5], [5, 0]]) / math.sqrt(75 / 4), rtol=1e-6)
    assert (X.astype(float) ** 2).sum(axis=1).mean() == pytest.approx(1)
    for kind in (np.float32, np.float64, np.int64):
        assert encoding.encode_many([{"v": np.array([3, 4], kind)}]).tolist() == X[:1].tolist()
    with pytest.raises(ValueError, match=re.escape("v[1]: expected a finite number")):
        encoding.encode({"v": np.array([1.0, math.inf])})


def test_texts_are_roots_of_shares_of_words() -> None:
    rows = [{"id": 1, "t": "The the THE crème"}, {"id": 2, "t": "Don't don’t"}, {"id": 3, "t": ""}]
    encoding = infer(rows, buckets=1000)
    got = {name: value for name, value in of(encoding, rows[0]).items() if value}
    assert got == {"t~the": np.float32(math.sqrt(3 / 4)), "t~crème": 0.5}
    assert of(encoding, rows[1])["t~don't"] == 1
    assert of(encoding, rows[2])["t missing"] == 1
    assert encoding.names.index("t~crème") == zlib.crc32("crème".encode()) % 1000  # the hash is part of the format
    assert encoding.encode({"t": "cre\u0300me"}).tolist() == encoding.encode({"t": "CRÈME"}).tolist()
    assert f"t~bucket {zlib.crc32(b'unseen') % 1000}" == encoding.names[zlib.crc32(b"unseen") % 1000]
    assert of(encoding, {"t": "!?"}) == dict.fromkeys(encoding.names, 0)


def test_a_bucket_is_named_by_its_most_frequent_word() -> None:
    rows = [{"id": 1, "t": "b a a c"}, {"id": 2, "t": "b a c d"}]
    assert infer(rows, buckets=1).names == ["t~a"]
    assert infer([{"id": 1, "t": "c b"}, {"id": 2, "t": "b c a"}], buckets=1).names == ["t~b"]  # ties: by alphabet


@pytest.mark.parametrize("text", ["one", "one two three", "one " * 1000, "ein größerer Satz, 3 mal", "слово за слово"])
def test_a_text_has_length_1_whatever_its_length(text: str) -> None:
    encoding = infer([{"id": 1, "t": "one two three"}, {"id": 2, "t": "four five six"}], buckets=7)
    assert np.linalg.norm(encoding.encode({"t": text}).astype(float)) == pytest.approx(1, abs=1e-6)


# ---------------------------------------------------------------------------- what columns become


@pytest.mark.parametrize(
    ("values", "kind", "why"),
    [
        ([1, 2, 3.5, "4"], "number", "4 different numbers"),
        (["1", "2", "NA", ""], "number", "2 different numbers"),
        ([7, 7, None, "NA"], "number", "1 different numbers"),
        (
            [1, 3, 9, "81", 2000, 2000],
            "logarithm",
            "5 different numbers with a long tail: a normal fits log(1 + x) better",
        ),
        ([-1, 3, 9, 81, 2000, 2000], "number", "5 different numbers"),
        ([0, 0, 0, 0, 0, 0, 3], "number", "2 different numbers"),
        ([*range(1000)], "number", "1000 different numbers"),
        ([1e16, 1e16 + 2], "number", "2 different numbers"),
        ([840096.0485584274] * 5 + [None], "number", "1 different numbers"),
        ([7, 7, 7, 7.0], "ignored", "the same everywhere"),
        (["x", "x", "x", "x"], "ignored", "the same everywhere"),
        ([None, "", " ", math.nan], "ignored", "nothing in it"),
        (["NA", "na", None, "null"], "ignored", "nothing in it"),
        (["a", "a", "b", "b"], "category", "2 different texts in 4 rows"),
        (["a", "a", None, None], "category", "1 different texts in 2 rows"),
        (["a", "a", "b", "c"], "category", "3 different texts in 4 rows, 2 of which share theirs"),
        (["a", "a", "b", "c", "d"], "ignored", "4 different texts in 5 rows, and too few repeat"),
        (["x y", "x y", "b d", "c e"], "text", "3 different texts in 4 rows of 2 words"),
        (["a" * 41, "a" * 41, "b" * 41, "c" * 41], "ignored", "3 different texts in 4 rows, and too few repeat"),
        (["7", "8", "9", "n/a"], "ignored", "4 different texts in 4 rows, 3 of them numbers, and too few repeat"),
        ([1, 1, "inf", "inf"], "category", "2 different texts in 4 rows"),
        (["a b", "a c", "a d", "e"], "ignored", "4 different texts in 4 rows, and too few repeat"),
        (["a b", "a c", "a d", "e f"], "text", "4 different texts in 4 rows of 2 words"),
        (["x " * 21, "x " * 21, "y " * 21, "y " * 21], "text", "2 different texts in 4 rows of 21 words"),
        (["a|b", "b|c", "c|a", "a"], "tags", "3 different tags in 4 different texts, | between them"),
        (["a; b", "b;c d", "c d; a", "b"], "tags", "3 different tags in 4 different texts, ; between them"),
        (["a|b", "a|b", "c|d", "c|d"], "category", "2 different texts in 4 rows"),
        (["a|b", "c|d", "e|f", "a|g"], "text", "4 different texts in 4 rows of 2 words"),
        (["2020-01-31", "2020-02-01T12:00:00Z", "1.2.2020", "01-Jan-1995"], "ignored", "dates: "),
        (["https://a.example/x y", "http://b.example/z w", "http://b", "http://c"], "ignored", "addresses"),
        ([[1, 2], [2, 1], None, [0, 0.5]], "vector", "lists of 2 numbers"),
        ([[1, 2], [2, 1], [], [1]], "ignored", "lists of 0 to 2 numbers"),
        ([[1, 2], [1, 2], [1, 2.0], (1, 2)], "ignored", "the same everywhere"),
        ([["a"], ["b"], ["c"], []], "ignored", "lists of 3 different words, and too few repeat"),
        ([["a", "b"], ["b"], ["c"], []], "category", "lists of 3 different words"),
        ([[1, "2"], [1, 3], [1, 4], [1, 5]], "ignored", "lists of something else than numbers"),
        ([{"a": 1}, "b", "b", "b"], "ignored", "neither numbers nor texts: dict"),
    ],
)
def test_the_rules(values: list[Any], kind: str, why: str) -> None:
    rows = [{"id": i, "varies": i, "x": value} for i, value in enumerate(values)]
    column = infer(rows).columns[2]
    assert (column.name, column.kind) == ("x", kind)
    assert column.why.startswith(why)


def test_logarithms_by_hand() -> None:
    """log(1 + x) is 1, 3 and 5; what lies below 0 counts as far below it as the same above lies above. The number is a
    feature as it is, too."""
    rows = [{"id": i, "sold": math.expm1(t)} for i, t in enumerate((1, 3, 5))]
    encoding = infer(rows, kinds={"sold": "logarithm"})
    assert encoding.names == ["sold", "log sold"]
    column = encoding.columns[1]
    assert isinstance(column, Logarithm)
    assert (column.log_mean, column.log_scale) == pytest.approx((3, math.sqrt(8 / 3)))
    as_it_is = infer(rows, kinds={"sold": "number"})
    assert kinds(as_it_is)["sold"] == "number"
    assert (column.kind, column.example, column.why) == ("logarithm", "1.71828 to 147.413", "as asked")
    other = [{"sold": value} for value in (str(math.expm1(7)), 0, -math.expm1(1), True, None, 1e308, -1e308)]
    logs = [1, 3, 5, 7, 0, -1, math.log(2), 3, math.log(1e308), -math.log(1e308)]
    expected = (np.array(logs) - 3) / math.sqrt(8 / 3)
    np.testing.assert_allclose(encoding.encode_many(rows + other)[:, 1], expected, rtol=1e-6)
    np.testing.assert_array_equal(encoding.encode_many(rows + other)[:, :1], as_it_is.encode_many(rows + other))
    with pytest.raises(ValueError, match=r"^sold: expected a finite number, got 'many'$"):
        encoding.encode({"sold": "many"})
    missing = infer([*rows, {"id": 4}], kinds={"sold": "logarithm"})
    assert of(missing, {}) == {"sold": 0, "log sold": 0, "sold missing": 1}


@given(logs=st.lists(st.floats(0, 12), min_size=3, max_size=30), linear=st.booleans())
def test_a_column_is_taken_in_logarithms_if_a_normal_fits_them_better_by_2(logs: list[float], linear: bool) -> None:
    """Both log-likelihoods are summed term by term, that of the logarithms with its Jacobian."""
    values = logs if linear else [math.expm1(t) for t in logs]
    x, y = np.array(values), np.array([logarithm(value) for value in values])
    if min(x.std(), y.std()) < 1e-9 * (1 + x.max()):
        return

    def fit(z: Any) -> float:
        return float(np.sum(-0.5 * ((z - z.mean()) / z.std()) ** 2 - math.log(z.std() * math.sqrt(2 * math.pi))))

    gain = fit(y) - float(y.sum()) - fit(x)
    column = infer([{"id": i, "x": value} for i, value in enumerate(values)]).columns[1]
    if abs(gain - 2) > 1e-6:
        assert column.kind == ("logarithm" if gain > 2 and max(values) > 3 else "number")
    if column.kind == "logarithm":
        assert column.why.endswith(f"log-likelihood +{gain:.3g}")


def test_a_logarithm_that_is_declared_has_the_range_of_usual_values() -> None:
    encoding = declare({"views": {"kind": "logarithm", "range": (0, math.expm1(8)), "optional": True}})
    X = encoding.encode_many([{"views": value} for value in (0, math.expm1(4), math.expm1(8), math.expm1(16), None)])
    np.testing.assert_allclose(X[:, 1:], [[-1, 0], [0, 0], [1, 0], [3, 0], [0, 1]], atol=1e-6)
    np.testing.assert_allclose(X[[0, 2, 4], 0], [-1, 1, 0], atol=1e-6)
    assert encoding.columns[0].example == "0 to 2979.96"
    with pytest.raises(
        ValueError, match=r"^query_features: views: range: expected two numbers, the second the greater"
    ):
        declare({"views": {"kind": "logarithm", "range": (3, 1)}})


def test_tags_by_hand() -> None:
    films = ["Animation|Comedy", "Comedy | Drama", "Drama|Drama|", "Comedy", None]
    encoding = infer([{"id": i, "genres": value} for i, value in enumerate(films)], kinds={"genres": "tags"})
    assert encoding.names == ["genres=Animation", "genres=Comedy", "genres=Drama", "genres missing"]
    column = encoding.columns[1]
    assert isinstance(column, Tags)
    assert (column.kind, column.separator, column.example) == ("tags", "|", "Comedy")
    X = encoding.encode_many([{"genres": value} for value in [*films, ["Drama", "Comedy"], "|", "Drama;Comedy"]])
    assert X.tolist() == [
        [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0],
    ]  # fmt: skip
    unknown = Counter[str]()
    encoding.encode({"genres": "Comedy|Western"}, unknown)
    assert unknown == {"genres=Western": 1}
    with pytest.raises(ValueError, match="separator: expected what stands between two tags, got nothing"):
        Tags(name="genres", levels=("Comedy",), separator="")


def test_the_most_frequent_levels_are_kept() -> None:
    values = ["z"] * 6 + ["y"] * 4 + ["x"] * 2 + ["w"] * 2 + ["v"] * 2
    encoding = infer([{"id": i, "x": value} for i, value in enumerate(values)], max_levels=3)
    assert encoding.names == ["x=w", "x=y", "x=z"] or encoding.names == ["x=v", "x=y", "x=z"]
    assert encoding.names[0] == "x=v"  # ties: by alphabet
    assert encoding.columns[1].why.endswith("the 3 most frequent are levels")


def test_a_constant_number_that_is_missing_in_places_tells_that() -> None:
    encoding = infer([{"id": 1, "a": 20}, {"id": 2}])
    assert encoding.encode_many([{"a": 20}, {}, {"a": 10}]).tolist() == [[0, 0], [0, 1], [-0.5, 0]]


@pytest.mark.parametrize(
    ("row", "identifier"),
    [
        ({"title": "x", "name": "x", "id": "x"}, "id"),
        ({"Title": "x", "NAME": "x"}, "NAME"),
        ({"title": "x", "ID": 1}, "ID"),
        ({"colour": "x", "movie_id": 1}, "movie_id"),
        ({"colour": "x", "movieId": 1}, "movieId"),
        ({"colour": "x", "acid": 1.5}, "colour"),
        ({"paid": 1, "shade": "x", "colour": "x"}, "shade"),
        ({"id": 1.5, "colour": "x"}, "colour"),
        ({"movie_id": 1, "title": "x"}, "movie_id"),
        ({"title": "x", "movie_id": 1}, "movie_id"),
        ({"film": "x", "title": "x"}, "film"),
        ({"movie": 1, "title": "x", "code": "x"}, "movie"),
        ({"title": "x", "film": "x"}, "title"),
        ({"cost": 1.5, "title": "x"}, "title"),
        ({"name": "x", "brand_id": 1}, "name"),
    ],
)
def test_which_column_names_the_items(row: dict[str, Any], identifier: str) -> None:
    rows = [{key: f"{value}{i}" if isinstance(value, str) else value + i for key, value in row.items()} for i in (1, 2)]
    encoding = infer([r | {"n": i} for i, r in enumerate(rows)])
    assert encoding.identifier == identifier
    assert encoding.name_of(rows[0]) == str(rows[0][identifier])


def test_columns_that_are_kept_become_what_their_values_are() -> None:
    """Names are levels, the same number or list everywhere is one, and what has too many values is refused by name."""
    rows = [{"id": f"i{i}", "n": 3, "v": [1.0, 2.0], "code": f"c{i}", "x": i, "empty": None} for i in range(3)]
    for row in rows:
        assert infer(rows).encode(row).size == 1  # x
    encoding = infer(rows, keep=["id", "n", "v", "code", "x"])
    assert kinds(encoding) == {
        "id": "category",
        "n": "number",
        "v": "vector",
        "code": "category",
        "x": "number",
        "empty": "ignored",
    }
    assert [name for name in encoding.names if name.startswith("id")] == ["id=i0", "id=i1", "id=i2"]
    assert [c.why for c in encoding.columns][:2] == ["asked for; names the item", "asked for; the same everywhere"]
    assert infer(rows, keep=["code"], kinds={"code": "ignored"}).size == 1
    with pytest.raises(ValueError, match=r"^id: expected at most 2 different values, a feature for each, got 3"):
        infer(rows, keep=["id"], max_levels=2)
    with pytest.raises(ValueError, match=r"^empty: expected what can be a feature, got nothing in it"):
        infer(rows, keep=["empty"])
    with pytest.raises(ValueError, match=r"got model .names the item.; as a category, each model is a feature"):
        infer([{"model": "a"}, {"model": "b"}])


def test_kinds_are_overruled() -> None:
    rows = [{"id": str(i), "zip": 10115 + i, "text": f"Is {i} it?", "n": i, "v": [i], "none": None} for i in range(3)]
    asked = {"zip": "category", "text": "prose", "id": "text", "v": "ignored", "n": "vector"}
    for row in rows:
        row["n"] = [row["n"]]
    encoding = infer(rows, kinds=asked)
    assert kinds(encoding) == asked | {"none": "ignored"}
    assert encoding.names[64:67] == ["zip=10115", "zip=10116", "zip=10117"]
    assert "text: question marks" in encoding.names
    assert encoding.encode(rows[1])[encoding.names.index("zip=10116")] == 1
    assert {c.why for c in encoding.columns if c.name in asked} == {"as asked"}
    empty = infer(rows, kinds={"none": "number"})
    assert of(empty, {})["none missing"] == 1
    assert of(empty, {"none": 3})["none"] == 3
    assert infer(rows, kinds={"none": "category"}).encode(rows[0]).size == infer(rows).size + 1


def test_a_level_is_the_same_however_it_is_written() -> None:
    rows = [{"id": i, "x": value} for i, value in enumerate([4, 4.0, "4", " 4 ", True, "true", np.float32(4), False])]
    encoding = infer(rows, kinds={"x": "category"})
    assert encoding.names == ["x=4", "x=false", "x=true"]
    assert encoding.encode_many(rows).argmax(axis=1).tolist() == [0, 0, 0, 0, 2, 2, 0, 1]


def test_rows_without_names() -> None:
    encoding = infer([{"hour": 1}, {"hour": 1}, {"hour": 4}], identifier="")
    assert (encoding.identifier, encoding.names) == ("", ["hour"])


def test_columns_stand_as_they_do_in_the_rows() -> None:
    rows = [{"id": 1, "z": 1, "a": 2}, {"id": 2, "z": 2, "m": 5, "a": 3}, {"id": 3, "m": 4}]
    assert [c.name for c in infer(rows).columns] == ["id", "z", "m", "a"]
    most = [{"id": i, "z": i, "a": i} for i in range(3)] + [{"id": 3, "a": 3, "z": 3}]
    assert [c.name for c in infer(most).columns] == ["id", "z", "a"]


def test_names_are_never_the_same() -> None:
    rows = [{"id": i, "a": "xyz"[i % 2], "a=x": i, "a missing": i} for i in range(4)] + [{"id": 9}]
    names = infer(rows).names
    assert len(set(names)) == len(names)
    assert "a=x (2)" in names


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": []}, "rows: expected at least one, got none"),
        ({"rows": [{}]}, "identifier: expected a column with another name in every row"),
        ({"rows": [CARS[0], 3]}, "row 2: expected values by column, got 3"),
        ({"rows": [{1: 2}]}, "rows: expected text as names of columns, got 1"),
        ({"rows": [{"\ud800": 2}]}, "rows: expected text as names of columns"),
        ({"rows": [{"a": 1}, {"a": "\ud800"}]}, "row 2: a: expected whole characters"),
        ({"rows": [{"a": "x", "n": 1}, {"a": "x", "n": 2}]}, r"identifier: .* got a \('x' 2 times\), n \(long texts"),
        ({"rows": [{"a": "x", "n": 1}, {"n": 2}]}, r"identifier: .* got a \(1 without\)"),
        (
            {"rows": CARS[:1]},
            r"columns: expected at least one that tells items apart, got name \(names the item\), horse",
        ),
        ({"rows": [{"id": 1, "a": 1.0}, {"id": 2, "a": math.inf}]}, "row 2: a: expected a finite number, got inf"),
        ({"rows": [{"id": 1, "a": 10**400}]}, "row 1: a: expected a finite number, got 1000000"),
        ({"rows": [{"id": 1, "a": 10**9999}]}, "row 1: a: expected a finite number, got a int too long"),
        ({"identifier": "nme"}, r"identifier: expected a column \(name, horsepower, origin, seats\), got 'nme'"),
        ({"identifier": "origin"}, "identifier: origin: expected another name in every row, got '(USA|Japan)' 2 times"),
        ({"identifier": "horsepower"}, "identifier: horsepower: expected another name in every row, got 2 without"),
        ({"kinds": {"power": "number"}}, r"kinds: expected names of columns \(name, .*\), got 'power'"),
        (
            {"kinds": {"origin": "colour"}},
            "kinds: origin: expected number, logarithm, category, tags, text, prose, vector, ignored, got",
        ),
        ({"kinds": {"origin": "number"}}, "row 1: origin: expected a finite number, got 'USA'"),
        ({"kinds": {"origin": "vector"}}, "row 1: origin: expected a list of numbers, got 'USA'"),
        ({"rows": [{"id": 1, "v": [1]}, {"id": 2, "v": [1, 2]}], "kinds": {"v": "vector"}}, "v: expected lists of one"),
        ({"rows": [{"id": 1, "v": []}], "kinds": {"v": "vector"}}, "v: expected lists of one length, 1 or more, got 0"),
        ({"rows": [{"id": 1, "v": None}], "kinds": {"v": "vector"}}, "v: expected .* got nothing in it"),
        ({"rows": [{"id": 1, "v": {}}], "kinds": {"v": "text"}}, "row 1: v: expected a text, got {}"),
        ({"buckets": 0}, "buckets: expected a whole number, 1 to 1048576, got 0"),
        ({"max_levels": 1.5}, "max_levels: expected a whole number"),
    ],
)
def test_what_infer_refuses(change: dict[str, Any], message: str) -> None:
    given = {"rows": CARS} | change
    with pytest.raises(ValueError, match=f"^{message}"):
        infer(given.pop("rows"), **given)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"n": "fast"}, "n: expected a finite number, got 'fast'"),
        ({"n": math.inf}, "n: expected a finite number, got inf"),
        ({"n": "-inf"}, "n: expected a finite number, got '-inf'"),
        ({"n": "1e999"}, "n: expected a finite number, got '1e999'"),
        ({"n": "1_0"}, "n: expected a finite number, got '1_0'"),
        ({"n": np.float32(np.inf)}, "n: expected a finite number"),
        ({"n": -(10**400)}, "n: expected a finite number"),
        ({"n": 1j}, "n: expected a finite number"),
        ({"n": [1]}, "n: expected a finite number, got [1]"),
        ({"c": [["a"]]}, "c: expected a text, got [['a']]"),
        ({"c": {}}, "c: expected a text, got {}"),
        ({"c": 10**9999}, "c: expected a text, got a int too long"),
        ({"t": b"x"}, "t: expected a text, got b'x'"),
        ({"p": [1]}, "p: expected a text, got [1]"),
        ({"v": [1, 2, 3]}, "v: expected 2 numbers, got 3"),
        ({"v": []}, "v: expected 2 numbers, got 0"),
        ({"v": [1, math.nan]}, "v[1]: expected a finite number, got nan"),
        ({"v": [math.inf, 1.0]}, "v[0]: expected a finite number, got inf"),
        ({"v": [1, None]}, "v[1]: expected a finite number, got None"),
        ({"v": ["1", 2]}, "v[0]: expected a finite number, got '1'"),
        ({"v": "1 2"}, "v: expected a list of numbers, got '1 2'"),
        ({"v": np.ones((2, 2))}, "v: expected a list of numbers, got an array"),
        ([("n", 1)], "row: expected values by column, got [('n', 1)]"),
    ],
)
def test_what_encode_refuses(row: Any, message: str) -> None:
    rows = [{"id": i, "n": i, "c": "ab"[i % 2], "t": "x y z" * i, "p": "?", "v": [i, 1]} for i in range(4)]
    encoding = infer(rows, kinds={"p": "prose"})
    with pytest.raises(ValueError) as error:
        encoding.encode(row)
    assert str(error.value).startswith(message)
    with pytest.raises(ValueError) as error:
        encoding.encode_many([rows[0], row])
    assert str(error.value).startswith(f"row 2: {message}")


@pytest.mark.parametrize("name", [None, "", " ", 1.5, True, [1]])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(ValueError, match="id: expected the item's name, text or a whole number, got "):
        TEXTS.name_of({"id": name})


# ---------------------------------------------------------------------------- frozen: JSON


def broken(**changes: Any) -> str:
    whole = json.loads(infer(CARS).to_json())
    for path, value in changes.items():
        inside: Any = whole
        *way, last = [int(word) if word.isdigit() else word for word in path.split("__")]
        for word in way:
            inside = inside[word]
        if value is ...:
            del inside[last]
        else:
            inside[last] = value
    return json.dumps(whole)


def test_the_form_of_the_file() -> None:
    """What was written must be read for good: this text is of version 1."""
    written = (
        '{"version":1,"columns":[{"kind":"ignored","name":"id","missing":0,"example":"1","why":"names the item"},'
        '{"kind":"number","name":"a","missing":1,"example":"","why":"2 different numbers","mean":2.0,"scale":1.0},'
        '{"kind":"logarithm","name":"l","missing":0,"example":"","why":"","mean":1.0,"scale":2.0,'
        '"log_mean":0.5,"log_scale":0.1},'
        '{"kind":"category","name":"b","missing":0,"example":"","why":"","levels":["x"]},'
        '{"kind":"tags","name":"g","missing":0,"example":"","why":"","levels":["y"],"separator":"|"},'
        '{"kind":"text","name":"t","missing":0,"example":"","why":"","words":["the",""]},'
        '{"kind":"prose","name":"p","missing":0,"example":"","why":""},'
        '{"kind":"vector","name":"v","missing":0,"example":"","why":"","size":2,"scale":0.5}],"identifier":"id"}'
    )
    encoding = Encoding.from_json(written)
    assert json.loads(encoding.to_json()) == json.loads(written)
    assert encoding.names[:7] == ["a", "a missing", "l", "log l", "b=x", "g=y", "t~the"]
    assert encoding.size == 8 + 17 + 2
    row = {"a": 2.5, "l": 0, "b": "x", "g": "z|y", "t": "the", "v": [1, -2]}
    got = encoding.encode(row).tolist()
    assert got[:6] + got[-2:] == [0.5, 0, -0.5, -5, 1, 1, 2, -4]
    assert sorted(got[6:8]) == [0, 1]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("", "encoding"),
        ("[]", "encoding"),
        ("{}", "columns"),
        (b"\xff", "encoding"),
        (broken(version=2), "version: expected 1, got 2"),
        (broken(extra=1), "extra"),
        (broken(identifier=...), "identifier"),
        (broken(identifier=3), "identifier"),
        (broken(columns__1__kind="colour"), "colour"),
        (broken(columns__1__kind=...), "kind"),
        (broken(columns__1__mean=...), "mean"),
        (broken(columns__1__scale=-1), "scale: expected a finite number above 0, got -1"),
        (broken(columns__1__mean="1"), "mean"),
        (broken(columns__1__mean=None), "mean"),
        (broken(columns__1__missing=-1), "missing: expected 0 or more, got -1"),
        (broken(columns__1__levels=[]), "levels"),
        (broken(columns__2__levels=["a", "a"]), "levels: expected different texts"),
        (broken(columns__2__levels=[""]), "levels: expected different texts"),
        (broken(columns__2__name="horsepower"), "columns: expected each name once, got 'horsepower' 2 times"),
        (broken(columns__2={"kind": "text", "name": "t", "words": []}), "words: expected one a bucket, got none"),
        (broken(columns__2={"kind": "vector", "name": "t", "size": 0, "scale": 1}), "size: expected 1 to"),
        (broken(columns__1__scale=math.nan), "encoding"),
        ("[" * 100_000, "encoding"),
    ],
)
def test_json_that_is_refused(written: bytes | str, names: str) -> None:
    with pytest.raises(ValueError, match=r"^encoding: expected what Encoding\.to_json writes") as error:
        Encoding.from_json(written)
    assert names in str(error.value)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_columns_made_by_hand_are_checked(scale: float) -> None:
    with pytest.raises(ValueError, match="scale: expected a finite number above 0"):
        Number(name="a", mean=0.0, scale=scale)
    with pytest.raises(ValueError, match="scale: expected a finite number above 0"):
        Vector(name="a", size=1, scale=scale)
    with pytest.raises(ValueError, match="mean: expected a finite number"):
        Number(name="a", mean=math.inf, scale=1.0)


# ---------------------------------------------------------------------------- properties

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=True, allow_infinity=False),
    st.sampled_from(["a", "b", "red", "12.5", "-0", "1e308", "NA", "a longer text of words", "2020-01-31", ""]),
    WORDS,
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows with an id and some columns, each of one sort of value, some cells missing, some keys absent."""
    sorts = [
        st.integers(-3, 3),
        st.floats(allow_nan=True, allow_infinity=False),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([1, 0.1, "3", "NA", -0.0, 0.0]),
        WORDS.map(lambda w: f"{w} and some words"),
        st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2),
        VALUES,
    ]
    columns = [(f"c{j}", draw(st.sampled_from(sorts))) for j in range(draw(st.integers(1, 4)))]
    rows = []
    for i in range(draw(st.integers(2, 8))):
        row: dict[str, Any] = {"id": i, "varies": i}
        for name, sort in columns:
            if draw(st.integers(0, 5)):
                row[name] = draw(st.none() | sort)
        rows.append(row)
    return rows


@pytest.mark.slow
@given(rows=tables(), seed=st.randoms())
def test_encodings_of_any_table(rows: list[dict[str, Any]], seed: random.Random) -> None:
    encoding = infer(rows, buckets=4)
    X = encoding.encode_many(rows)
    assert X.dtype == np.float32
    assert X.shape == (len(rows), encoding.size) == (len(rows), len(encoding.names))
    assert np.isfinite(X).all()
    assert np.abs(X).max() <= LIMIT
    # through JSON, bit for bit
    back = Encoding.from_json(encoding.to_json())
    assert back == encoding
    assert back.to_json() == encoding.to_json() == msgspec.json.encode(encoding)
    assert back.encode_many(rows).tobytes() == X.tobytes()
    # rows in another order: the same encoding
    shuffled = list(rows)
    seed.shuffle(shuffled)
    assert infer(shuffled, buckets=4).to_json() == encoding.to_json()
    # keys in another order, and alone: the same features
    for row, x in zip(rows, X):
        items = list(row.items())
        seed.shuffle(items)
        assert encoding.encode(dict(items)).tobytes() == x.tobytes()
    # a flag exactly where something was missing, or could be
    flags = {d.column for d in encoding.describe() if d.missing and d.kind != "ignored"}
    assert flags == {name.removesuffix(" missing") for name in encoding.names if name.endswith(" missing")}


@pytest.mark.slow
@given(rows=tables(), row=st.dictionaries(st.sampled_from(["id", "c0", "c1", "c2", "c3", "new"]), VALUES))
def test_any_row_is_encoded_or_refused_by_name(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    encoding = infer(rows, buckets=4)
    try:
        x = encoding.encode(row)
    except ValueError as error:
        assert str(error).split(":")[0].split("[")[0] in row  # noqa: PT017
    else:
        assert np.isfinite(x).all()


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6),
    other=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_finite_numbers_stay_finite(values: list[float], other: float) -> None:
    encoding = infer([{"id": i, "varies": i, "a": value} for i, value in enumerate(values)])
    assert np.isfinite(encoding.encode({"a": other})).all()
    column = encoding.columns[2]
    if isinstance(column, Number) and column.scale > 1e-300:  # below, the scale itself has few bits
        a = encoding.encode_many([{"a": value} for value in values])[:, 1].astype(float)
        largest = max(map(abs, values))
        rounding = 1e-5 + 1e-15 * largest / column.scale  # nearly equal numbers have few bits apart
        assert a.mean() == pytest.approx(0, abs=rounding)
        assert a.std() == pytest.approx(1, abs=rounding)


def test_the_largest_and_the_smallest_numbers() -> None:
    rows = [{"id": 1, "huge": 1e308, "tiny": 5e-324, "v": [1e308]}, {"id": 2, "huge": -1e308, "tiny": 0, "v": [5e-324]}]
    encoding = infer(rows)
    assert encoding.names == ["huge", "tiny", "v[0]"]
    assert np.isfinite(encoding.encode_many(rows)).all()
    assert encoding.encode_many(rows)[:, 0].tolist() == [1, -1]
    small = infer([{"id": 1, "a": 0.0}, {"id": 2, "a": 1e-9}])
    assert small.encode_many([{"a": 1e308}, {"a": -1e308}, {"a": 1e-9}]).tolist() == [[LIMIT], [-LIMIT], [1]]
    assert infer(rows, kinds={"v": "vector"}).encode({"v": [-1e308]})[2] == pytest.approx(-math.sqrt(2))
    skewed = infer([{"id": i, "a": sys.float_info.max * (-1 if i == 0 else 1)} for i in range(4)])
    assert skewed.encode({"a": -sys.float_info.max})[0] == pytest.approx(-math.sqrt(3))
    largest = infer([{"id": 1, "v": [sys.float_info.max] * 9}, {"id": 2, "v": [0.0] * 9}])
    assert largest.encode({"v": [sys.float_info.max] * 9}).tolist() == [1] * 9
    tiny = infer([{"id": 1, "v": [5e-324]}, {"id": 2, "v": [0]}])
    assert tiny.encode({"v": [-1e308]}).tolist() == [-LIMIT]


def test_nothing_seen_is_cut_in_tables_of_a_million_rows() -> None:
    """One that differs from m - 1 equal ones lies sqrt(m - 1) deviations away, and none can lie further."""
    m = 10_000
    encoding = infer([{"id": i, "a": i == 0} for i in range(m)])
    assert encoding.encode({"a": True})[0] == pytest.approx(math.sqrt(m - 1))
    assert math.sqrt(1e6 - 1) <= LIMIT


@pytest.mark.slow
def test_the_same_bits_in_another_process_with_another_hash_seed() -> None:
    program = (
        "import sys, zlib; from heedful.features import infer\n"
        "rows = [{'id': i, 't': f'words {i} of a text', 'c': 'xy'[i % 2], 'n': i / 7} for i in range(9)]\n"
        "e = infer(rows); print(e.to_json().hex(), e.encode_many(rows).tobytes().hex())"
    )
    out = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert out[0] == out[1]


# ---------------------------------------------------------------------------- bare texts


def trait(text: str, name: str) -> float:
    return of(TEXTS, {"text": text})[f"text: {name}"]


def f32(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("one two three", "length", (2 - 6) / 2),
        (" ".join(["word"] * 63), "length", 0),
        ("¡Hola! ¿Qué tal, señor O’Neill?", "length", round((round(math.log2(6), 4) - 6) / 2, 12)),
        ('No. 3.14 is pi! Really?! (Yes.) "So..." and more', "sentences", round(math.log2(7), 4) - 2),
        ("no mark at all", "sentences", 1 - 2),
        ("First\n\nsecond", "sentences", round(math.log2(3), 4) - 2),
        ("Buy:\n- milk\n- bread\n* eggs", "sentences", round(math.log2(5), 4) - 2),
        ("hard\nwrapped\nlines", "sentences", 1 - 2),
        ("もし。そう？", "sentences", round(math.log2(3), 4) - 2),
        ("a b c. d e f.", "words per sentence", 2 - 4),
        ("- a\n 2. b\n3) c\n• d\n-e\n4.5 f\n2024. g", "list items", 2),
        ("# a\n### b\nc # d\n#e\n**bold**\n**not** so", "headings", f32(math.sqrt(3))),
        ("`x` and ``\n```\ncode `y`\n```\n`z", "code", f32(math.sqrt(3))),
        ("12 345", "digits", f32((100 * 5 / 106 - 1) / 2)),
        ("Hi!! You!", "exclamation marks", f32(math.sqrt(3))),
        ("Why? When?", "question marks", f32(math.sqrt(2))),
        ("Please, THANKS; displease", "polite words", f32(300 / 53 * 2 / 3)),
        ("maybe it might", "hedging words", f32(200 / 53 - 0.5)),
        ("Clearly never", "confident words", f32(200 / 52 - 0.5)),
        ("Don't, it's Anna's; we’ll", "contractions", f32((300 / 54 - 1) / 2)),
        ("I'm sure my us-me", "first person", f32((400 / 55 - 2) / 2)),
        ("You and you're yours", "second person", f32((300 / 54 - 1) / 2)),
        ("😀 :) ;-) ✅ (a:)b", "emoji", 2),
        ("see https://a.b/www.c and www.d.e", "links", f32(math.sqrt(2))),
    ],
)
def test_traits_by_hand(text: str, name: str, value: float) -> None:
    assert trait(text, name) == pytest.approx(value, abs=1e-6)


def test_every_trait_has_its_row_in_the_documentation() -> None:
    rows = (Path(__file__).resolve().parents[2] / "docs" / "features.md").read_text().splitlines()
    for trait in TRAITS:
        row = [row for row in rows if row.startswith(f"| {trait.name} | {trait.what}")]
        assert len(row) == 1, trait.name
        assert row[0].endswith(f" | {trait.mean:g} | {trait.scale:g} |")


def test_what_is_not_there_is_not_counted() -> None:
    plain = of(TEXTS, {"text": "The cat sat on the mat."})
    zero = ["list items", "headings", "code", "exclamation marks", "question marks", "polite words", "emoji", "links"]
    assert [plain[f"text: {name}"] for name in zero] == [0] * len(zero)


def test_texts_without_a_text() -> None:
    assert TEXTS.identifier == "id"
    assert TEXTS.size == 17
    assert TEXTS.encode({}).tolist() == TEXTS.encode({"text": " "}).tolist() == [0] * 17
    with pytest.raises(ValueError, match=r"^text: expected a text, got \{\}$"):
        TEXTS.encode({"text": {}})


@given(text=st.text(st.characters(exclude_categories=[])))
def test_any_text_at_all(text: str) -> None:
    x = TEXTS.encode({"text": text})
    assert np.isfinite(x).all()
    assert np.isfinite(infer([{"id": 1, "t": "a b"}, {"id": 2, "t": "c d"}], buckets=3).encode({"t": text})).all()


def test_logarithms_are_rounded_where_libraries_agree() -> None:
    """No log2 or log1p of a count up to 100,000 lies so near to a boundary of rounding that a last bit could matter."""
    scaled = np.log2(np.arange(1, 100_001, dtype=np.float64)) * 1e4
    assert np.abs(scaled - np.floor(scaled) - 0.5).min() > 1e-9
    scaled = np.log1p(np.arange(1, 100_001, dtype=np.float64)) * 1e6
    assert np.abs(scaled - np.floor(scaled) - 0.5).min() > 1e-7


@pytest.mark.parametrize(
    "unit", [".", "\n", " \n", "\n ", "`a", "`", "**a", "-", "- ", "'a", ".'", "#", ":-", "!", "www.", "a", "1.", "。"]
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    """A quadratic pattern would take minutes here, not a moment."""
    TEXTS.encode({"text": unit * 200_000 + "x"})


# ---------------------------------------------------------------------------- crosses


def test_crosses_by_hand() -> None:
    context = infer([{"hour": 1, "place": "home"}, {"hour": 3, "place": "work"}] * 2, identifier="")
    cars = infer(CARS)
    crossed = FeatureCross(context, cars, (("place", "horsepower"), ("hour", "origin")))
    assert crossed.names == [
        *cars.names,
        "place=home × horsepower",
        "place=home × horsepower missing",
        "place=work × horsepower",
        "place=work × horsepower missing",
        "hour × origin=Japan",
        "hour × origin=USA",
    ]
    X = cars.encode_many(CARS)
    got = crossed.apply(context.encode({"hour": 5, "place": "work"}), X)
    assert got.dtype == np.float32
    assert got.flags.c_contiguous
    assert got.shape == (4, crossed.size) == (4, 10)
    assert got[:, :4].tolist() == X.tolist()
    assert got[:, 4:].tolist() == [
        [0, 0, -1, 0, 0, 3],
        [0, 0, 1, 0, 0, 3],
        [0, 0, 0, 1, 3, 0],
        [0, 0, 0, 1, 3, 0],
    ]


def test_all_crosses_are_the_outer_product() -> None:
    context, cars = infer([{"a": 1, "b": 2}, {"a": 2, "b": 1}], identifier=""), infer(CARS)
    crossed = FeatureCross(context, cars, "all")
    assert crossed.size == 4 + 2 * 4
    assert crossed.names[4:6] == ["a × horsepower", "a × horsepower missing"]
    c, X = np.float32([2, -3]), np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    want = np.hstack([X, (c[None, :, None] * X[:, None, :]).reshape(5, -1)])
    assert crossed.apply(c, X).tobytes() == want.tobytes()
    assert crossed.apply(c, X[:0]).shape == (0, 12)
    none = FeatureCross(context, cars, ())
    assert none.apply(c, X).tobytes() == X.tobytes()


def test_vectors_of_one_size_are_multiplied_number_by_number() -> None:
    asked = declare({"text": {"kind": "vector", "size": 3, "optional": True}, "hour": (-1, 1)})
    items = declare({"text": {"kind": "vector", "size": 3}, "other": {"kind": "vector", "size": 2}})
    crossed = FeatureCross(asked, items, (("text", "text"), ("hour", "other")))
    assert crossed.names[5:] == [*(f"text[{j}] × text[{j}]" for j in range(3)), "hour × other[0]", "hour × other[1]"]
    X = items.encode_many([{"text": [1, 2, 3], "other": [4, 5]}, {"text": [0, 1, 0], "other": [0, 1]}])
    got = crossed.apply(asked.encode({"text": [2, 3, 4], "hour": 0.5}), X)
    assert got[:, 5:].tolist() == [[2, 6, 12, 2, 2.5], [0, 3, 0, 0, 0.5]]
    # Of another size each with each; what says that both are missing is one more product.
    assert FeatureCross(asked, items, (("text", "other"),)).size == 5 + 4 * 2
    assert FeatureCross(asked, asked, (("text", "text"),)).names[-1] == "text missing × text missing"
    assert FeatureCross(asked, asked, "all").size == 5 + (4 + 4 + 4 + 1)
    alone = FeatureCross(items, items, (("text", "text"),))
    assert alone.apply([2, 3, 4, 9, 9], X)[:, 5:].tolist() == [[2, 6, 12], [0, 3, 0]]


def test_products_by_hand() -> None:
    """Of each two features of different columns, and squares of numbers; not of what is said of missing ones."""
    cars = infer(CARS)
    crossed = FeatureCross(UNSEEN, cars, (), products=True)
    pairs = [(0, 0), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert crossed.names == [*cars.names, *(f"{cars.names[i]} × {cars.names[j]}" for i, j in pairs)]
    assert (crossed.size, crossed.n_products) == (9, 5)
    X = cars.encode_many(CARS)
    want = np.column_stack([X, *(X[:, i] * X[:, j] for i, j in pairs)])
    assert crossed.apply(None, X).tobytes() == want.tobytes()
    context = infer([{"a": 1}, {"a": 2}], identifier="")
    both = FeatureCross(context, cars, "all", products=True)
    assert both.names == [*FeatureCross(context, cars, "all").names, *crossed.names[4:]]
    assert both.apply([2.0], X).tobytes() == np.hstack([X, 2 * X, want[:, 4:]]).tobytes()
    assert msgspec.json.decode(msgspec.json.encode(both), type=FeatureCross) == both
    logarithm = infer([{"id": i, "sold": 10**i, "new": i % 2} for i in range(8)], kinds={"sold": "logarithm"})
    alone = FeatureCross(UNSEEN, logarithm, (), products=True)
    squares = ["sold × sold", "log sold × log sold", "new × new"]
    assert alone.names[3:] == [squares[0], "sold × new", squares[1], "log sold × new", squares[2]]
    many = infer([{"id": i} | {f"x{j}": i**j % 7 for j in range(1, 66)} for i in range(8)])
    with pytest.raises(ValueError, match=r"^products: expected false for more than 64 features of an item, .* 65, got"):
        FeatureCross(many, many, (), products=True)


def test_crosses_go_to_json_and_back() -> None:
    context, cars = infer([{"a": 1}, {"a": 2}], identifier=""), infer(CARS)
    for pairs in ("all", (("a", "origin"),), ()):
        crossed = FeatureCross(context, cars, pairs)  # type: ignore[arg-type]
        assert msgspec.json.decode(msgspec.json.encode(crossed), type=FeatureCross) == crossed


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ((("b", "origin"),), r"pairs: expected a column of the context \(a\), got 'b'"),
        ((("a", "colour"),), r"pairs: expected a column of the item \(horsepower, origin\), got 'colour'"),
        ((("a", "name"),), r"pairs: expected a column of the item \(horsepower, origin\), got 'name'"),  # ignored
        ((("a", "origin"), ("a", "origin")), r"pairs: expected each once, got \('a', 'origin'\) 2 times"),
    ],
)
def test_crosses_that_are_refused(pairs: Any, message: str) -> None:
    context, cars = infer([{"a": 1}, {"a": 2}], identifier=""), infer(CARS)
    with pytest.raises(ValueError, match=f"^{message}$"):
        FeatureCross(context, cars, pairs)


def test_shapes_that_are_refused() -> None:
    context, cars = infer([{"a": 1}, {"a": 2}], identifier=""), infer(CARS)
    crossed = FeatureCross(context, cars, "all")
    with pytest.raises(ValueError, match=r"context: expected shape \(1,\), got \(2,\)"):
        crossed.apply([1, 2], np.ones((1, 4)))
    with pytest.raises(ValueError, match=r"X: expected shape \(m, 4\), got \(4,\)"):
        crossed.apply([1], np.ones(4))


def test_levels_are_looked_up_exactly() -> None:
    column = Category(name="c", levels=("a", "b", "ab"))
    encoding = Encoding(columns=(column,), identifier="")
    assert encoding.encode_many([{"c": v} for v in ("a", "b", "ab", "A", "abc")]).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 0],
        [0, 0, 0],
    ]
