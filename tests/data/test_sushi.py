"""The Sushi set: lines as they are written, what is wrong with them, and the files themselves where they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from heedful.data.sushi import load_sushi

A, PUBLISHED = [0, 1, 2, 3, 4, 6, 7, 8, 26, 29], [0, 1, 2, 3, 4, 15, 7, 8, 26, 29]


def items(n: int = 30) -> str:
    return "".join(f"{i}\tfish_{i}\t1\t0\t{i % 12}\t{i / 4}\t0.5\t1.25\t.75\n" for i in range(n))


ORDERS = "10 1\n0 10 5 0 3 4 6 9 8 1 7 2\n0 10 9 8 7 6 5 4 3 2 1 0 \n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sushi3.idata").write_text(items())
    (tmp_path / "sushi3a.5000.10.order").write_text(ORDERS)
    return tmp_path


def test_orders_and_the_items_that_they_are_of(folder: Path) -> None:
    got = load_sushi(folder)
    assert got.orders.tolist() == [[5, 0, 3, 4, 6, 9, 8, 1, 7, 2], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]]
    assert got.names.tolist() == [f"fish_{i}" for i in A]
    assert got.features.shape == (10, 7)
    assert got.features[5].tolist() == [1.0, 0.0, 6.0, 1.5, 0.5, 1.25, 0.75]
    assert load_sushi(folder, labels="published").names.tolist() == [f"fish_{i}" for i in PUBLISHED]


def test_gzip_and_older_copies_without_a_header(folder: Path) -> None:
    path = folder / "sushi3a.5000.10.order"
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(ORDERS.split("\n", 1)[1].encode()))
    path.unlink()
    assert load_sushi(folder).orders.shape == (2, 10)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("sushi3a.5000.10.order", ORDERS + "0 10 1 2 3\n", r"order:4: order: expected 0, 10 and ten numbers of items"),
        ("sushi3a.5000.10.order", "1 10 5 0 3 4 6 9 8 1 7 2\n", r"order:1: order: expected 0, 10 and ten numbers"),
        ("sushi3a.5000.10.order", "0 10 5 0 3 4 6 9 8 1 7 x\n", r"order:1: order: expected 0, 10 and ten numbers"),
        (
            "sushi3a.5000.10.order",
            "0 10 5 0 3 4 6 9 8 1 7 10\n",
            r"order:1: order: expected ten different items, 0 to 9",
        ),
        (
            "sushi3a.5000.10.order",
            "0 10 5 0 3 4 6 9 8 1 7 7\n",
            r"order:1: order: expected ten different items, 0 to 9",
        ),
        ("sushi3a.5000.10.order", ORDERS + "10 1\n", r"order:4: order: expected 0, 10 and ten numbers"),
        ("sushi3a.5000.10.order", "10 1\n", r"order: orders: expected at least one, got none"),
        (
            "sushi3.idata",
            items().replace("7\tfish_7", "8\tfish_7"),
            r"idata:8: item: expected the number 7, a name and 7",
        ),
        (
            "sushi3.idata",
            items().replace("0.5\t", "", 1),
            r"idata:1: item: expected the number 0, a name and 7 numbers",
        ),
        (
            "sushi3.idata",
            items().replace("1.25", "nan", 1),
            r"idata:1: item: expected the number 0, a name and 7 numbers",
        ),
        ("sushi3.idata", items(20), r"sushi3.idata: items: expected at least 30, got 20"),
        ("sushi3.idata", "", r"sushi3.idata: items: expected at least one, got none"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(folder: Path, name: str, text: str, told: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=told):
        load_sushi(folder)


def test_files_that_are_not_there_and_words_that_are_not_known(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^labels: expected right or published, got 'wrong'$"):
        load_sushi(folder, labels="wrong")
    (folder / "sushi3.idata").unlink()
    with pytest.raises(FileNotFoundError, match=r"sushi3\.idata: no such file; nothing is fetched"):
        load_sushi(folder)


def test_the_files_themselves(data_folder: Path) -> None:
    folder = data_folder / "sushi"
    if not folder.is_dir():
        pytest.skip(f"Sushi is not here: put sushi3.idata and sushi3a.5000.10.order into {folder}")
    got = load_sushi(folder)
    assert got.orders.shape == (5000, 10)
    assert " ".join(got.names) == "ebi anago maguro ika uni ikura tamago toro tekka_maki kappa_maki"
    assert got.names[np.bincount(got.orders[:, 0]).argmax()] == "toro"  # what most like best
    assert load_sushi(folder, labels="published").names[5] == "samon"
