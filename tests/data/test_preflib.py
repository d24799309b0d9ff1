"""PrefLib: both headers, ties, what is wrong with a line, and files that come back as they were."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heedful.data.comparisons import Comparison, ComparisonTable, tabulate
from heedful.data.preflib import load_preflib, write_preflib
from written import write

NEW = """# FILE NAME: teas.soc
# TITLE: Teas
# DESCRIPTION: numbers: 3, and colons
# DATA TYPE: soc
# MODIFICATION TYPE: original
# RELATES TO:
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 7
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: Earl Grey, with milk
# ALTERNATIVE NAME 2: Grüner Tee: Sencha
# ALTERNATIVE NAME 3: Mate
5: 3,1,2
2: 1, 2, 3
"""
OLD = """3
1,"Earl Grey, with milk"
2,Grüner Tee: Sencha
3,Mate
7,7,2
5,3,1,2
2,1,2,3
"""
TEAS = ("Earl Grey, with milk", "Grüner Tee: Sencha", "Mate")


@pytest.mark.parametrize("text", [NEW, OLD, NEW.replace("\n", "\r\n"), "\ufeff" + NEW, OLD + "\n\n"])
def test_either_header(tmp_path: Path, text: str) -> None:
    got = load_preflib(write(tmp_path / "teas.soc", text))
    assert got.items == TEAS
    assert got.people == ("",)
    assert got.comparisons == (Comparison(0, ((0,), (1,), (2,)), 2), Comparison(0, ((2,), (0,), (1,)), 5))
    assert got.answers == 7


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "teas.soc.gz"
    path.write_bytes(gzip.compress(NEW.encode()))
    assert load_preflib(path).items == TEAS
    path.write_bytes(gzip.compress(NEW.replace("5: 3,1,2", "5: 3,1").encode()))
    with pytest.raises(ValueError, match=r"teas.soc.gz:13: order: expected all 3 alternatives, got 2"):
        load_preflib(path)


def test_ties_and_orders_that_say_little(tmp_path: Path) -> None:
    head = NEW.split("5: ")[0].replace("soc", "toi")
    orders = "4: 2,{1,3}\n3: {1,2}\n2: {3,1},2\n1: 3\n1: {1,2,3}\n1: {},2,1\n1:\n"
    got = load_preflib(write(tmp_path / "teas.toi", head + orders))
    assert got.items == TEAS
    assert {each.tiers: each.times for each in got.comparisons} == {
        ((1,), (0, 2)): 4,
        ((0, 1),): 3,  # equally good
        ((2, 0), (1,)): 2,
        ((1,), (0,)): 1,
    }  # of one alone, or a tie of three and nothing else, nothing is said


def test_alternatives_that_are_in_no_order_are_there_and_have_names(tmp_path: Path) -> None:
    text = "# NUMBER ALTERNATIVES: 4\n# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: b\n1: 2,3\n"
    assert load_preflib(write(tmp_path / "x.soi", text)).items == ("alternative 1", "b (2)", "b (3)", "alternative 4")


HEAD = "# NUMBER ALTERNATIVES: 3\n"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.soc", "", "x.soc: header: expected # NUMBER ALTERNATIVES: or a number, got an empty file"),
        ("x.soc", "# TITLE: x\n1: 1,2\n", "x.soc: header: expected a line # NUMBER ALTERNATIVES:, got none"),
        (
            "x.soc",
            "# NUMBER ALTERNATIVES: 1\n",
            "x.soc:1: NUMBER ALTERNATIVES: expected a whole number, 2 to 10000, got",
        ),
        ("x.soc", HEAD, "x.soc: orders: expected at least one of two or more alternatives, got none"),
        (
            "x.soc",
            HEAD + "# ALTERNATIVE NAME 4: d\n1: 1,2,3\n",
            "ALTERNATIVE NAME: expected a number from 1 to 3, got 4",
        ),
        (
            "x.soc",
            HEAD + "# ALTERNATIVE NAME 1: d\n# ALTERNATIVE NAME 1: e\n",
            "x.soc:3: ALTERNATIVE NAME: expected each",
        ),
        ("x.soc", HEAD + "1: 1,2,4\n", "x.soc:2: order: expected numbers from 1 to 3, got 4"),
        ("x.soc", HEAD + "1: 1,2,1\n", "x.soc:2: order: expected each alternative once, got 1 twice"),
        ("x.soc", HEAD + "1: 1,2\n", "x.soc:2: order: expected all 3 alternatives, got 2"),
        (
            "x.soc",
            HEAD + "1: 1,{2,3}\n",
            "x.soc:2: order: expected no ties (.toc and .toi have them), got '1: 1,{2,3}'",
        ),
        (
            "x.toi",
            HEAD + "1: 1,{2,3\n",
            "x.toi:2: order: expected COUNT: and numbers apart by commas, ties in braces, got",
        ),
        ("x.toi", HEAD + "1: 1,,3\n", "x.toi:2: order: expected COUNT:"),
        ("x.toi", HEAD + "1.5: 1,3\n", "x.toi:2: order: expected COUNT:"),
        ("x.toi", HEAD + "0: 1,3\n", "x.toi:2: count: expected 1 to 1000000000, got '0'"),
        ("x.toi", HEAD + f"{10**400}: 1,3\n", "x.toi:2: count: expected 1 to 1000000000, got '1000"),
        ("x.toi", HEAD + f"1: 1,{'9' * 5000}\n", "x.toi:2: order: expected COUNT:"),
        ("x.soc", f"# NUMBER ALTERNATIVES: {'1' * 5000}\n", "x.soc:1: NUMBER ALTERNATIVES: expected a whole number"),
        ("x.soc", "# A" + " " * 100_000 + "x\n", "x.soc: header: expected a line # NUMBER ALTERNATIVES:, got none"),
        ("x.soi", f"{'9' * 5000}\n", "x.soi:1: alternatives: expected a whole number, 2 to 10000"),
        ("x.toi", HEAD + "1,3\n", "x.toi:2: order: expected COUNT:"),
        ("x.soi", "2\n1,a\n3,b\n1,1,1\n1,1,2\n", "x.soi:3: alternative: expected 2,NAME, got '3,b'"),
        ("x.soi", "2\n1,a\n2,b\n", "x.soi: header: expected 2 alternatives and a line of counts, got 3 lines"),
        (
            "x.soi",
            "2\n1,a\n2,b\n1,1\n1,1,2\n",
            "x.soi:4: counts: expected voters, their sum and orders as numbers, got",
        ),
        ("x.soi", "2\n1,a\n2,b\n1,1,1\n1: 1,2\n", "x.soi:5: order: expected COUNT, and numbers apart by commas"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, name: str, text: str, told: str) -> None:
    with pytest.raises(ValueError) as error:
        load_preflib(write(tmp_path / name, text))
    assert told in str(error.value)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    choices = tabulate(
        [
            Comparison("", (("b",), ("a", "c"))),
            Comparison("", (("c", "a"),), 3),
            Comparison("", (("a",), ("c",)), 2),
            Comparison("", (("a", "b"),), 9, "a", judged=False),
        ],
        ["a", "b", "c", "d, never shown"],
    )
    write_preflib(tmp_path / "x.toi", choices, title="Things: 1")
    assert "# TITLE: Things: 1\n" in (tmp_path / "x.toi").read_text()
    assert "# NUMBER VOTERS: 6\n# NUMBER UNIQUE ORDERS: 3\n" in (tmp_path / "x.toi").read_text()
    got = load_preflib(tmp_path / "x.toi")
    assert got.items == choices.items
    orders = {tuple(frozenset(tier) for tier in each.tiers): each.times for each in got.comparisons}
    assert orders == {
        (frozenset({1}), frozenset({0, 2})): 1,
        (frozenset({0, 2}),): 3,
        (frozenset({0}), frozenset({2})): 2,
    }


@pytest.mark.parametrize(
    ("name", "tiers", "told"),
    [
        ("x.txt", ((0,), (1,), (2,)), "path: expected a name that ends in .soc, .soi, .toc, .toi, got 'x.txt'"),
        ("x.soc", ((0,), (1,)), "choices: expected all 3 items in every order of a .soc, got one of 2"),
        ("x.toc", ((0, 1),), "choices: expected all 3 items in every order of a .toc, got one of 2"),
        ("x.soi", ((0, 1), (2,)), "choices: expected no ties in a .soi, got an order with some"),
    ],
)
def test_what_a_kind_does_not_hold_is_not_written(
    tmp_path: Path, name: str, tiers: tuple[tuple[int, ...], ...], told: str
) -> None:
    with pytest.raises(ValueError) as error:
        write_preflib(tmp_path / name, ComparisonTable(("a", "b", "c"), ("",), (Comparison(0, tiers),)))
    assert str(error.value) == told
    assert not (tmp_path / name).exists()


def test_names_that_a_line_does_not_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="names of one line"):
        write_preflib(tmp_path / "x.soi", ComparisonTable(("a\nb", "c"), ("",), (Comparison(0, ((0,), (1,))),)))
