"""Tables of choices: the forms, how columns are found, what answers mean, what is wrong with a row, and writing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from heedful.data.choices import open_choices, write_choices
from heedful.data.comparisons import (
    Comparison,
    ComparisonTable,
    by_name,
    pool_people,
    split_nameless,
    tabulate,
    with_items,
    without_people,
)
from written import write


def told(folder: Path, text: str, name: str = "x.csv") -> Path:
    return write(folder / name, text)


class InAnyOrder(list[Comparison[str]]):
    """Answers whose order does not matter, nor that of the items in a tier."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and self.sorted(self) == self.sorted(other)

    @staticmethod
    def sorted(answers: list[Comparison[str]]) -> list[str]:
        return sorted(repr(each._replace(tiers=tuple(tuple(sorted(tier)) for tier in each.tiers))) for each in answers)


def read(path: Path, **how: object) -> InAnyOrder:
    return InAnyOrder(by_name(open_choices(path, **how).choices))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- forms


def test_winner_and_loser_with_person_and_times(tmp_path: Path) -> None:
    text = 'Voter;Winner;loser;times;why\nÄnne;"Käse; alt";Brot;2;x\nBo;Brot;"Käse; alt";1;\nÄnne;"Käse; alt";Brot;1;\n'
    path = told(tmp_path, text + "Bo;Brot;Tee;0;\n")
    got = open_choices(path)
    assert got.summary == "columns Winner, loser, Voter, times; why left out"
    assert got.choices.items == ("Brot", "Käse; alt")
    assert got.choices.people == ("Bo", "Änne")
    assert read(path) == [
        Comparison("Änne", (("Käse; alt",), ("Brot",)), 3),
        Comparison("Bo", (("Brot",), ("Käse; alt",)), 1),
    ]


def test_a_pair_as_it_stood_and_what_was_said(tmp_path: Path) -> None:
    text = "left,right,choice\nx,y,left\nx,y,RIGHT\ny,x,x\nx,y,Equally good\nx,y,cannot judge\ny,z,\nz,y,=\n"
    assert read(told(tmp_path, text)) == [
        Comparison("", (("x",), ("y",)), 1, "x"),
        Comparison("", (("y",), ("x",)), 1, "x"),
        Comparison("", (("x",), ("y",)), 1, "y"),
        Comparison("", (("x", "y"),), 1, "x"),
        Comparison("", (("x", "y"),), 1, "x", judged=False),
        Comparison("", (("y", "z"),), 1, "y", judged=False),
        Comparison("", (("z", "y"),), 1, "z"),
    ]


def test_words_of_ones_own(tmp_path: Path) -> None:
    path = told(tmp_path, "a,b,answer\nx,y,0\nx,y,1\nx,y,egal\n")
    got = read(path, words={"0": "first", "1": "second", "EGAL": "equal"})
    said = [Comparison("", tiers, 1, "x") for tiers in ((("x",), ("y",)), (("y",), ("x",)), (("x", "y"),))]
    assert got == said
    got = read(told(tmp_path, "a,b,answer\nx,y,-1\nx,y,0\nx,y,1\n"), words={"0": "equal", "-1": "second", "1": "first"})
    assert got == said
    with pytest.raises(ValueError, match="equal, unsure as a meaning, got 'links'"):
        open_choices(path, words={"0": "links"})
    with pytest.raises(ValueError, match="words: expected first, second and answer as columns, got 'winner, loser'"):
        open_choices(told(tmp_path, "winner,loser\na,b\n"), words={"0": "first"})


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_true_and_false_are_answers(tmp_path: Path, name: str) -> None:
    """What they mean is in the name of the column, or is asked, with what to type; that works when it is typed."""

    def table(column: str) -> Path:
        rows = [{"left": "a", "right": "b", column: True}, {"left": "b", "right": "c", column: False}]
        cells = [",".join(["left", "right", column]), "a,b,TRUE", "b,c,False"]
        return told(tmp_path, "\n".join(map(json.dumps, rows) if name.endswith("l") else cells), name)

    first = [Comparison("", (("a",), ("b",)), 1, "a"), Comparison("", (("c",), ("b",)), 1, "b")]
    second = [Comparison("", (("b",), ("a",)), 1, "a"), Comparison("", (("b",), ("c",)), 1, "b")]
    assert read(table("left_won")) == read(table("Left is better")) == read(table("a wins")) == first
    assert read(table("right_preferred")) == second
    with pytest.raises(ValueError, match=r"--answer true=first --answer false=second, or words=\{'true': 'first', .*"):
        read(table("answer"))
    assert read(table("answer"), words={"true": "first", "false": "second"}) == first
    assert read(table("left_won"), words={"true": "second", "false": "first"}) == second


@pytest.mark.parametrize(("answer", "words"), [("-1", {}), ("1", {"0": "first"}), ("2", {"1": "second"})])
def test_a_number_that_may_mean_something_else_has_to_be_told(
    tmp_path: Path, answer: str, words: dict[str, str]
) -> None:
    """With a sign it is another one; where a number is told, 1 and 2 say nothing by themselves."""
    path = told(tmp_path, f"first,second,answer\nx,y,{answer}\n")
    with pytest.raises(
        ValueError,
        match=f"x.csv:2: answer: expected first, second, .*, got '{answer}'; say what it means, such as --answer ",
    ):
        open_choices(path, words=words)
    assert read(path, words={**words, answer: "second"}) == [Comparison("", (("y",), ("x",)), 1, "x")]


def test_an_answer_that_is_a_side_and_an_item_has_to_be_told(tmp_path: Path) -> None:
    # All are names of what was shown: names, then. One is not: it may be either
    assert [each.tiers[0] for each in read(told(tmp_path, "first,second,answer\n2,1,1\n1,2,2\n"))] == [("1",), ("2",)]
    with pytest.raises(ValueError, match=r"x.csv:2: answer: expected .* in all rows, got '1', which is both"):
        read(told(tmp_path, "first,second,answer\n2,1,1\n3,2,1\n"))
    got = read(told(tmp_path, "first,second,answer\n2,1,1\n3,2,1\n"), words={"1": "first"})
    assert [each.tiers[0] for each in got] == [("2",), ("3",)]


@pytest.mark.parametrize(
    "header",
    [
        "rank 1,rank 2,rank 3",
        "1,2,3,x",
        "first,second,third",
        "1st choice,2nd choice,3rd choice",
        "place0,place1,place2",
    ],
)
def test_orders_in_columns(tmp_path: Path, header: str) -> None:
    x = "," if header.endswith("x") else ""
    got = read(told(tmp_path, f"who,{header}\nann,a,b,c{x}\nbob,c,a,{x}\ncem,b,,{x}\n"))
    assert got == [Comparison("ann", (("a",), ("b",), ("c",))), Comparison("bob", (("c",), ("a",)))]


def test_orders_in_one_cell(tmp_path: Path) -> None:
    got = read(told(tmp_path, "order\ntea > milk = soup\nsoup>tea\nsoup\n"))
    assert got == [Comparison("", (("tea",), ("milk", "soup"))), Comparison("", (("soup",), ("tea",)))]
    lines = [{"ranking": ["a", ["b", 3]], "user": 7}, {"ranking": [["a", "b"]], "user": "7"}]
    got = read(told(tmp_path, "\n".join(map(json.dumps, lines)), "x.jsonl"))
    assert got == [Comparison("7", (("a",), ("b", "3"))), Comparison("7", (("a", "b"),))]


def test_orders_in_rows(tmp_path: Path) -> None:
    text = "person,ballot,item,rank\nann,1,a,2\nann,1,b,1\nann,1,c,2\nann,2,a,\nann,2,b,\n"
    text += "bob,1,c,0.5\nbob,1,a,1\nbob,2,b,1\n"
    assert read(told(tmp_path, text)) == [
        Comparison("ann", (("b",), ("a", "c"))),
        Comparison("ann", (("a", "b"),), judged=False),
        Comparison("bob", (("c",), ("a",))),
    ]
    # All alike is a tie of all where it is known what was asked; in one list of a person nothing is said
    alike = "a,1\nann,{0}b,1\nann,{0}c,1\n"
    assert read(told(tmp_path, "person,ballot,item,rank\nann,1," + alike.format("1,"))) == [
        Comparison("ann", (("a", "b", "c"),))
    ]
    with pytest.raises(ValueError, match=r"x.csv: answers: expected at least one about two items, got none"):
        read(told(tmp_path, "person,item,rank\nann," + alike.format("")))
    with pytest.raises(ValueError, match=r"x.csv: ballot: expected a column of it, or of a person, with item and rank"):
        read(told(tmp_path, "item,rank\na,1\nb,2\n"))


def test_columns_by_names_of_ones_own(tmp_path: Path) -> None:
    text = "Gewinner,Verlierer,wer\na,b,x\n"
    columns = {"winner": ["Gewinner"], "loser": ["Verlierer"], "person": ["wer"]}
    assert read(told(tmp_path, text), columns=columns) == [Comparison("x", (("a",), ("b",)))]
    got = read(told(tmp_path, "best,then,last\na,b,c\n"), columns={"order": ["best", "then", "last"]})
    assert got == [Comparison("", (("a",), ("b",), ("c",)))]
    # What is named comes first, also where other columns are called so
    got = read(told(tmp_path, "winner,loser,w2\na,b,c\n"), columns={"winner": ["w2"]})
    assert got == [Comparison("", (("c",), ("b",)))]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"victor": ["a"]}, "columns: expected one of person, times, winner, .*, got 'victor'"),
        ({"winner": ["a", "b"]}, "columns: winner: expected one column, got a, b"),
        ({"winner": ["x"]}, "x.csv: winner: expected one of the columns a, b, got 'x'"),
        ({"winner": ["a"], "loser": ["a"]}, "columns: expected each column once, got 'a' twice"),
        ({"winner": ["a"]}, "x.csv: columns: expected winner and loser; .* got a, b"),
    ],
)
def test_columns_that_make_no_sense(tmp_path: Path, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_choices(told(tmp_path, "a,b\nx,y\n"), columns)


# ---------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("winner,loser\nNaN,b\n", "x.csv:2: winner: expected a name, got nothing"),
        ("winner,loser\na,a\n", "x.csv:2: loser: expected another item than in winner, got 'a' twice"),
        ("winner,loser,times\na,b,1000000001\n", "x.csv:2: times: expected a whole number, 0 to 1,000,000,000, got"),
        (
            "first,second\na,b\n",
            "x.csv: answer: expected a column of which of the two is better, such as answer or winner, got first",
        ),
        ("1,2,3,who\na,b,a,x\n", "x.csv:2: order: expected each item once, got 'a' twice"),
        ("1,2,3,who\na,,b,x\n", "x.csv:2: 2: expected a name, got nothing"),
        ("order\na>>b\n", "x.csv:2: order: expected a name, got nothing"),
        ("who,item,rank\nx,a,1\nx,a,2\n", "x.csv:3: item: expected each once in an order, got 'a' once more"),
        ("who,item,rank\nx,a,first\n", "x.csv:2: rank: expected a number, got 'first'"),
        (
            "Gewinner,Verlierer\na,b\n",
            "x.csv: columns: expected winner and loser; .*, got Gewinner, Verlierer",
        ),
        ("winner,loser\na\n", "x.csv:2: cells: expected 2 as in the header, got 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_choices(told(tmp_path, text))


@pytest.mark.parametrize("order", ['[["a"], [], ["b"]]', '[[], ["a", "b"]]', '[["a", "b"], []]'])
def test_a_tier_with_nothing_in_it_is_refused(tmp_path: Path, order: str) -> None:
    with pytest.raises(ValueError, match=r"x.jsonl:1: order: expected a name, got nothing"):
        open_choices(told(tmp_path, f'{{"order": {order}}}\n', "x.jsonl"))


def test_the_content_tells_preflib_from_a_table(tmp_path: Path) -> None:
    preflib = "# NUMBER ALTERNATIVES: 2\n1: 2,1\n"
    for name, text in (("a.txt", preflib), ("b.soi", preflib), ("c", "2\n1,x\n2,y\n1,1,1\n1,2,1\n")):
        got = open_choices(told(tmp_path, text, name))
        assert got.summary == "PrefLib"
        assert got.choices.answers == 1
    with pytest.raises(ValueError, match=r"b.soi: columns: expected none with PrefLib, got winner"):
        open_choices(tmp_path / "b.soi", {"winner": ["x"]})
    assert open_choices(told(tmp_path, "winner,loser\na,b\n")).summary == "columns winner, loser"


# ---------------------------------------------------------------------------- writing, and other views


SIDED = [
    Comparison("ann", (("a",), ("b, too",)), 2, "a"),
    Comparison("ann", (("b, too",), ("a",)), 1, "a"),
    Comparison("bob", (('"c"', "a"),), 1, '"c"'),
    Comparison("bob", (("b, too", '"c"'),), 4, "b, too", judged=False),
]
BARE = [Comparison("", (("a",), ("b",)), 3), Comparison("", (("b",), ("a",)), 1)]
ORDERS = [
    Comparison("ann", (("a",), ("b",), ("c",)), 2),
    Comparison("ann", (("b",), ("a", "c"))),
    Comparison("bob", (("b", "c"),)),
    Comparison("bob", (("b", "a"),), judged=False),
]
SETS = [
    Comparison("ann", (("a",), ("b", "c"))),
    Comparison("ann", (("c", "a", "b"),), 2),
    Comparison("bob", (("b", "a", "c"),), judged=False),
]
EVERYTHING = {"sided": SIDED, "bare": BARE, "orders": ORDERS, "sets": SETS}


@pytest.mark.parametrize("answered", EVERYTHING.values(), ids=EVERYTHING)
def test_what_is_written_comes_back(tmp_path: Path, answered: list[Comparison[str]]) -> None:
    write_choices(tmp_path / "x.csv", tabulate(answered))
    assert read(tmp_path / "x.csv") == list(by_name(tabulate(answered)))


FORMULAS = ["=1+1", "+a", "-b", "@c", "'=d", "''@e", "'f", "-5"]


@pytest.mark.parametrize("form", EVERYTHING)
def test_names_that_a_spreadsheet_takes_for_formulas_come_back(tmp_path: Path, form: str) -> None:
    """A spreadsheet shows them as text, for the ' before them."""
    for name in FORMULAS:
        other = {"a": name, "b": "b", "c": "c", '"c"': '"c"', "b, too": "b, too"}
        renamed = [
            each._replace(
                person=f"{name} {each.person}".strip() if each.person else "",
                tiers=tuple(tuple(other[item] for item in tier) for tier in each.tiers),
                first=None if each.first is None else other[each.first],
            )
            for each in EVERYTHING[form]
        ]
        write_choices(tmp_path / "x.csv", tabulate(renamed))
        assert read(tmp_path / "x.csv") == list(by_name(tabulate(renamed)))
        with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
            cells = {cell for row in csv.reader(file) for cell in row if cell}
        assert not [cell for cell in cells if cell[0] in "=+-@"]
        assert name == "'f" or f"'{name}" in cells


def test_who_has_no_name_among_others_gets_one_in_a_file(tmp_path: Path) -> None:
    answered = [
        Comparison("nobody", (("a",), ("b",))),
        Comparison("", (("b",), ("a",)), 2),
        Comparison("ann", BARE[0].tiers),
    ]
    write_choices(tmp_path / "x.csv", tabulate(answered))
    assert read(tmp_path / "x.csv") == [answered[0], answered[1]._replace(person="nobody 2"), answered[2]]
    write_choices(tmp_path / "x.csv", tabulate(answered[1:]))
    assert {each.person for each in read(tmp_path / "x.csv")} == {"nobody", "ann"}


@pytest.mark.parametrize("names", ["first second", "equal x", "x unsure", "right left"])
def test_items_that_are_called_as_answers_are_come_back(tmp_path: Path, names: str) -> None:
    """Where an answer could be read as the name of one, it is lost which stood first, and not which is better."""
    a, b = names.split()
    answered = [Comparison("", ((a,), (b,)), 3, a), Comparison("", ((b,), (a,)), 1, a), Comparison("", ((a, b),), 1, a)]
    write_choices(tmp_path / "x.csv", tabulate(answered))
    lost = names != "right left"
    assert read(tmp_path / "x.csv") == [each._replace(first=None) if lost else each for each in answered]


@pytest.mark.parametrize("name", ["na", "", " x"])
def test_names_that_would_not_come_back_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ValueError, match=f"choices: expected names without spaces around them, and not NA, got '{name}'"
    ):
        write_choices(tmp_path / "x.csv", tabulate([Comparison("", ((name,), ("b",)))]))


def test_what_was_said_more_often_than_a_file_holds_is_refused(tmp_path: Path) -> None:
    path = told(tmp_path, "winner,loser,times\na,b,1000000000\na,b,1\n")
    with pytest.raises(ValueError, match="times: expected at most 1,000,000,000 of an answer, got 1,000,000,001"):
        write_choices(tmp_path / "y.csv", open_choices(path).choices)
    assert not (tmp_path / "y.csv").exists()


def test_other_views_of_the_same_answers() -> None:
    choices = tabulate(SIDED)
    assert pool_people(choices).people == ("",)
    assert InAnyOrder(by_name(pool_people(choices))) == [each._replace(person="") for each in SIDED]
    assert len(split_nameless(pool_people(choices)).people) == choices.answers == 8
    assert all(each.times == 1 for each in split_nameless(pool_people(choices)).comparisons)
    assert split_nameless(choices, 0) == choices  # everybody has a name
    mixed = tabulate([Comparison("2", BARE[0].tiers, 9), *BARE])
    assert split_nameless(mixed, 4).people == ("1", "2", "3", "4", "5")
    assert [each.times for each in split_nameless(mixed, 4).comparisons] == [1, 9, 1, 1, 1]
    assert {each.person for each in by_name(without_people(choices, ["ann"]))} == {"bob"}
    assert without_people(choices, ["ann"]).items == choices.items
    wider = with_items(choices, ["new", '"c"', "b, too", "a"])
    assert wider.items == ("new", '"c"', "b, too", "a")
    assert InAnyOrder(by_name(wider)) == list(by_name(choices))
    for wrong, message in (
        (lambda: without_people(choices, ["eve"]), "without: expected one of 'ann', 'bob', got 'eve'"),
        (lambda: without_people(choices, ["ann", "bob"]), "without: expected one whose answers are left, got none"),
        (
            lambda: with_items(choices, ["a", "b, too"]),
            "items: expected all that were answered about, got none called '\"c\"'",
        ),
        (
            lambda: split_nameless(pool_people(choices), 7),
            "answers: expected at most 7 to take each for another person's, got 8",
        ),
    ):
        with pytest.raises(ValueError) as error:
            wrong()
        assert str(error.value) == message


def test_equal_answers_are_one_and_items_are_numbered_by_their_names() -> None:
    got = tabulate([Comparison("", (("b",), ("a",)))] * 3, ["z"])
    assert isinstance(got, ComparisonTable)
    assert got.items == ("z", "a", "b")
    assert [(each.tiers, each.times) for each in got.comparisons] == [(((2,), (1,)), 3)]


STUDY = '{"study": "teas", "items": ["mint", "sencha", "assam"], "answers": [%s]}'
SAID = '{"time": "2026-11-21T00:00:00.000+00:00", "person": "ann", "segment": "ann", "shown": [%s], "answer": "%s"}'


def test_the_document_of_a_study(tmp_path: Path) -> None:
    told = [
        SAID % ('"mint", "assam"', "second"),
        SAID % ('"mint", "sencha"', "equal"),
        SAID % ('"mint", "sencha"', "cannot_judge"),
        SAID % ('"assam", "mint", "sencha"', "sencha"),
    ]
    path = tmp_path / "teas.json"
    path.write_text(STUDY % ",".join(told))
    opened = open_choices(path)
    assert opened.summary == "the answers of a study"
    assert opened.choices.items == ("mint", "sencha", "assam")
    assert set(by_name(opened.choices)) == {
        Comparison("ann", (("assam",), ("mint",)), 1, "mint"),
        Comparison("ann", (("mint", "sencha"),), 1, "mint"),
        Comparison("ann", (("mint", "sencha"),), 1, "mint", False),
        Comparison("ann", (("sencha",), ("assam", "mint"))),
    }
    with pytest.raises(ValueError, match=r"^teas.json: words: expected none with the answers of a study, got 0"):
        open_choices(path, words={"0": "first"})
    path.write_text("\ufeff" + STUDY % ",".join(told), encoding="utf-8")
    assert open_choices(path) == opened


def test_a_side_is_one_of_two_in_the_document_of_a_study(tmp_path: Path) -> None:
    """In more than two, first is an item of that name."""
    path = tmp_path / "teas.json"
    path.write_text(STUDY % (SAID % ('"mint", "first", "second"', "first")))
    assert list(by_name(open_choices(path).choices)) == [Comparison("ann", (("first",), ("mint", "second")))]
    path.write_text(STUDY % (SAID % ('"mint", "first"', "first")))
    assert list(by_name(open_choices(path).choices)) == [Comparison("ann", (("mint",), ("first",)), 1, "mint")]
    path.write_text(STUDY % (SAID % ('"mint", "assam", "sencha"', "first")))
    with pytest.raises(ValueError, match=r"answers\[0\]: answer: expected first, second, equal, .* got 'first'"):
        open_choices(path)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("", "teas.json: answers: expected at least one about two items, got none"),
        (SAID % ('"mint"', "first"), "teas.json: answers[0]: shown: expected two items or more, each once, got 'mint'"),
        (SAID % ('"mint", "mint"', "first"), "teas.json: answers[0]: shown: expected two items or more, each once"),
        (
            SAID % ('"mint", "assam"', "both"),
            "teas.json: answers[0]: answer: expected first, second, equal, both_bad, cannot_judge or an item",
        ),
        ('{"person": 3}', "teas.json: answers: expected the whole document of a study, got Expected `str`"),
        ("{", "teas.json: answers: expected the whole document of a study, got"),
    ],
)
def test_a_document_of_a_study_that_is_damaged_is_refused(tmp_path: Path, answers: str, told: str) -> None:
    path = tmp_path / "teas.json"
    path.write_text(STUDY % answers)
    with pytest.raises(ValueError) as error:
        open_choices(path)
    assert told in str(error.value)


def test_rows_that_say_nothing_are_told(tmp_path: Path) -> None:
    path = told(tmp_path, "person,rank 1,rank 2\nann,tea,milk\nbo,tea,\ncy,,\n")
    opened = open_choices(path)
    assert opened.choices.answers == 1
    assert opened.summary == "columns rank 1, rank 2, person; 2 of 3 rows say nothing"
    assert "rows" not in open_choices(told(tmp_path, "rank 1,rank 2\ntea,milk\n")).summary
