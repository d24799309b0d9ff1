"""Catalogues: which columns count, what is standardised, what is refused."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.catalogue import Catalogue, load_catalogue
from written import write

CARS = """name,origin,weight,doors,power
Ada,USA,1000,4,50
Bug,Europe,1500,4,NA
Cub,Japan,2000,4,150
"""


def of_columns(columns: Mapping[str, Sequence[float | None]]) -> Catalogue:
    """The catalogue of a CSV with these columns, None and NaN as missing."""
    rows = [",".join("NA" if c is None or math.isnan(c) else repr(c) for c in row) for row in zip(*columns.values())]
    with TemporaryDirectory() as folder:
        return load_catalogue(write(Path(folder, "a.csv"), "\n".join([",".join(columns), *rows])))


@pytest.mark.parametrize("missing", ["NA", "", "NaN", "null"])
def test_by_hand(tmp_path: Path, missing: str) -> None:
    got = load_catalogue(write(tmp_path / "cars.csv", CARS.replace("NA", missing)))
    assert got.names.tolist() == ["Ada", "Bug", "Cub"]
    assert got.features.tolist() == ["weight", "power"]  # doors are the same everywhere
    third = math.sqrt(1.5)
    np.testing.assert_allclose(got.X, [[-third, -1], [0, 0], [third, 1]], rtol=1e-15)
    np.testing.assert_allclose(got.mean, [1500, 100])
    np.testing.assert_allclose(got.scale, [500 / third, 50])
    assert got.missing.tolist() == [0, 1]
    assert got.X.flags.c_contiguous


def test_names(tmp_path: Path) -> None:
    def names(text: str) -> list[str]:
        return load_catalogue(write(tmp_path / "a.csv", text)).names.tolist()

    assert names("a,b\n1,2\n3,4\n") == ["item 1", "item 2"]
    assert names("year,title\n1999,1984\n2000,Emma\n") == ["1984", "Emma"]  # a text column may hold numbers
    assert names("year,title\n1999,\n2000,Emma\n") == ["item 1", "Emma"]
    assert names("year,none,title\n1999,,Ivy\n2000,NA,Emma\n") == ["Ivy", "Emma"]
    assert names("year,word\n1999,inf\n2000,Emma\n") == ["inf", "Emma"]
    assert names("x\n1\n2\n") == ["item 1", "item 2"]


def test_a_column_without_a_name_goes_by_its_place(tmp_path: Path) -> None:
    assert load_catalogue(write(tmp_path / "a.csv", "b,\n1,2\n3,5\n")).features.tolist() == ["b", "column 2"]


CELLS = st.lists(
    st.integers(-(10**6), 10**6).map(lambda n: n / 8) | st.none() | st.just(math.nan), min_size=1, max_size=9
)


@settings(deadline=None)
@given(cells=CELLS)
def test_standardised_is_what_it_says(cells: list[float | None]) -> None:
    there = [Fraction(cell) for cell in cells if cell is not None and not math.isnan(cell)]
    if len(set(there)) < 2:
        with pytest.raises(ValueError, match="columns: expected "):
            of_columns({"a": cells})
        return
    mean = sum(there) / len(there)
    scale = math.sqrt(sum((value - mean) ** 2 for value in there) / len(there))
    got = of_columns({"a": cells})
    assert got.missing.tolist() == [len(cells) - len(there)]
    assert got.mean[0] == pytest.approx(float(mean), abs=1e-9)
    assert got.scale[0] == pytest.approx(scale)
    wanted = [0.0 if c is None or math.isnan(c) else float(Fraction(c) - mean) / scale for c in cells]
    assert got.X[:, 0].tolist() == pytest.approx(wanted, abs=1e-9)


@settings(deadline=None)
@given(
    cells=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6),
    again=st.floats(1, 9),
)
def test_any_finite_numbers_stay_finite(cells: list[float], again: float) -> None:
    got = of_columns({"a": cells, "varies": [0.0] * (len(cells) - 1) + [again]})
    assert np.isfinite(got.X).all()
    assert np.isfinite(got.mean).all()
    assert (got.scale > 0).all()
    assert np.isfinite(got.scale).all()
    np.testing.assert_allclose((got.X**2).mean(axis=0), 1)


def test_the_largest_and_nearly_equal_numbers() -> None:
    got = of_columns({"huge": [1e308, -1e308], "equal": [0.1, 0.1], "close": [1e9, 1e9 + 1e-6]})
    assert got.features.tolist() == ["huge", "close"]
    assert got.X[:, 0].tolist() == [1, -1]
    assert got.scale[0] == 1e308


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\nx,inf\n", "a.csv:3: b: expected a finite number, got 'inf'"),
        ("a,b\n1,-Infinity\nx,2\n", "a.csv:2: b: expected a finite number, got '-Infinity'"),
        ("a,b\n1,2\n2,1e999\n", "a.csv:3: b: expected a finite number, got '1e999'"),
        (
            "a;b;c\n;1;x\n;1_5;2\n",
            "a.csv: columns: expected at least one of finite numbers, got a (nothing in it), b ('1_5'), c ('x')",
        ),
        (
            "a,b\n1_0,x\n2,y\n",
            "a.csv: columns: expected at least one of finite numbers, got a ('1_0'), b ('x')",
        ),
        ("a,b\n1,2\n", "a.csv: columns: expected a numeric one that varies, got constant a, b"),
        ("a,b\n0.1,x\n0.1,y\n,z\n", "a.csv: columns: expected a numeric one that varies, got constant a"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        load_catalogue(write(tmp_path / "a.csv", text))
    assert str(error.value).startswith(message)


def test_a_wide_table_without_numbers_is_told_in_short(tmp_path: Path) -> None:
    text = ",".join(f"c{j}" for j in range(20)) + "\n" + ",".join("x" * 20) + "\n"
    with pytest.raises(ValueError, match=r"c7 \('x'\) and 12 more$"):
        load_catalogue(write(tmp_path / "a.csv", text))
