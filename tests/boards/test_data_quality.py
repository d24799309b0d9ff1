"""What is said of strange answers, each kind on answers made so; and that nothing is said of plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.boards.data_quality import Remark, remarks
from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.estimation import estimate


def choice(winner: str, loser: str, first: str = "", person: str = "", times: int = 1) -> Comparison[str]:
    return Comparison(person, ((winner,), (loser,)), times, first or None)


def told(
    answered: list[Comparison[str]], items: str = "", X: Any = None, person: int | None = None
) -> dict[str, list[Remark]]:
    out: dict[str, list[Remark]] = {}
    for each in remarks(estimate(tabulate(answered, items), X), X, person):
        out.setdefault(each.kind, []).append(each)
    return out


def clear(person: str = "") -> list[Comparison[str]]:
    """a over b over c over d, each pair from both sides."""
    pairs = ["ab", "ac", "ad", "bc", "bd", "cd"]
    return [choice(a, b, first, person) for a, b in pairs for first in (a, b)]


def test_of_plain_answers_nothing_is_said() -> None:
    assert told(clear()) == {}
    assert told([*clear("ann"), *clear("bob")]) == {}


def test_items_that_nobody_was_asked_about() -> None:
    [got] = told(clear(), "abcdxy")["unasked"]
    assert got.message == "Never compared with anything, so where they stand is a guess: 'x', 'y'."
    assert got.items == ("x", "y")
    assert told(clear(), "abcdx")["unasked"][0].message.startswith(
        "Never compared with anything, so where it stands is"
    )


def test_parts_that_were_never_compared() -> None:
    [got] = told([choice("a", "b"), choice("c", "d"), choice("d", "e")], "abcde")["parted"]
    assert "fall into 2 parts" in got.message
    assert "'a', 'b'; 'c', 'd', 'e'." in got.message
    assert "parted" not in told([choice("a", "b"), choice("c", "b")])


def test_names_that_may_be_the_same() -> None:
    got = told([choice("Tee", "tee "), choice("Käse", "Ka\u0308se"), choice("Tee", "Käse")])["spelt"]
    assert [each.items for each in got] == [("Ka\u0308se", "Käse"), ("Tee", "tee ")]


def test_items_with_the_same_features() -> None:
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]])
    got = told(clear(), "abcd", X)["alike"]
    assert [each.items for each in got] == [("a", "c"), ("b", "d")]


def test_somebody_who_always_presses_the_same_key() -> None:
    rng = np.random.default_rng(1)
    pressed = []
    for _ in range(14):
        a, b = rng.permutation(list("abcd"))[:2].tolist()
        pressed.append(choice(a, b, a, "bob"))
    [got] = told([*clear("ann"), *pressed])["side"]
    assert got.people == ("bob",)
    assert got.message.startswith(
        "'bob' took the first of the two in 14 of 14 answers; by chance that happens once in 8,192"
    )
    # Eleven of a side are too few to name one of two people by, 1 in 1,024; eighteen of twenty are not
    assert "side" not in told([*clear("ann"), *pressed[:11]])
    often = [choice("a", "b", "b", "bob", 18), choice("b", "a", "b", "bob", 2)]
    [got] = told([*clear("ann"), *often])["side"]
    assert got.message.startswith("'bob' took the second of the two in 18 of 20 answers")


def test_of_many_with_a_habit_one_alone_is_named() -> None:
    """Of one person their own habit is told, however many others have one."""
    people = [str(i) for i in range(7)]
    habits = [choice(a, b, a, who, 6) for who in people for a, b in ("ab", "ba", "cd", "dc")]
    others = [choice(a, b, b, f"x{i}", 6) for i in range(2) for a, b in ("ab", "ba", "cd", "dc")]
    found = estimate(tabulate([*habits, *others]))
    belief = found.belief
    found = found._replace(belief=belief._replace(noise=belief.noise._replace(random=np.full(9, 0.9))))
    for at in (0, 6):
        got = {each.kind: each for each in remarks(found, person=at)}
        assert got["side"].message.startswith(f"'{at}' took the first of the two in 24 of 24 answers")
        assert got["random"].message == f"Seem to answer at random (with this probability): '{at}' (0.90)."
        assert got["side"].people == got["random"].people == (str(at),)
    of_all = [each for each in remarks(found) if each.kind == "side"]
    assert [each.people for each in of_all[:2]] == [("0",), ("1",)]
    assert (of_all[-1].message, len(of_all[-1].people)) == ("So do 4 others.", 4)


def test_where_all_answers_are_the_first_they_may_have_been_written_so() -> None:
    [got] = told([each._replace(first=each.tiers[0][0]) for each in clear()])["side"]
    assert got.message.startswith("All 12 answers are the first of the two. Was the better one always written first?")
    assert got.people == ()


def test_who_answers_at_random() -> None:
    rng = np.random.default_rng(2)
    people = [each for who in "uvwxyz" for each in [*clear(who), *clear(who)]]
    dice = []
    for _ in range(40):
        a, b = rng.permutation(list("abcd"))[:2].tolist()
        dice.append(choice(a, b, str(rng.choice([a, b])), "dice"))
    got = told([*people, *dice])["random"]
    assert [each.people for each in got] == [("dice",)]
    alone = told([each._replace(person="") for each in dice])
    assert alone["random"][0].message.startswith("Coins would explain the answers as well")
    # Of one person alone the remark names nobody; of somebody else's ranking it is left out
    assert alone["random"][0].people == ()
    assert "random" not in told([*people, *dice], person=1)


def test_who_contradicts_themselves() -> None:
    [got] = told([*clear(), choice("b", "a"), choice("b", "a")])["contradiction"]
    assert got.message.startswith("Answers contradict each other: Somebody put 'a' over 'b' twice, and below twice.")
    [got] = told([*clear("ann"), choice("b", "a", person="bob"), choice("a", "b", person="bob")])["contradiction"]
    assert got.message.startswith(
        "1 of 2 people contradict themselves, such as: 'bob' put 'a' over 'b' once, and below once"
    )
    assert got.people == ("bob",)
    [got] = told([choice("a", "b"), choice("b", "c"), choice("c", "a"), choice("a", "d")])["contradiction"]
    assert "went round: 'a' over 'b' over 'c' over 'a'" in got.message
    # Twice equally good is no contradiction, nor are the orders of many who are not named
    assert "contradiction" not in told([Comparison("", (("a", "b"),)), Comparison("", (("b", "a"),)), *clear()])
    orders = [Comparison("", (tuple(a), tuple(b), tuple(c))) for a, b, c in ("abc", "bca", "cab", "abc")]
    assert "contradiction" not in told(orders)


def test_majorities_that_go_round() -> None:
    orders = [Comparison("", (("a",), ("b",), ("c",)), 40), Comparison("", (("b",), ("c",), ("a",)), 40)]
    orders.append(Comparison("", (("c",), ("a",), ("b",)), 40))
    [got] = told(orders)["majorities"]
    assert "'a' over 'b' (80 of 120), 'b' over 'c' (80 of 120), 'c' over 'a' (80 of 120)" in got.message
    assert got.items == ("a", "b", "c")
    few = [each._replace(times=1) for each in orders]  # two of three is what coins do
    assert "majorities" not in told(few)


def test_a_majority_is_of_people_not_of_answers() -> None:
    """Three people, each of whom says the same ten times of one pair, are no majorities; ten such people each are."""
    round_trip = (("a", "b"), ("b", "c"), ("c", "a"))
    few = [choice(*pair, person=pair[0], times=10) for pair in round_trip]
    assert "majorities" not in told(few)
    [got] = told([choice(*pair, person=f"{pair[0]}{i}") for pair in round_trip for i in range(10)])["majorities"]
    assert "'a' over 'b' (10 of 10)" in got.message


def test_answers_that_say_little() -> None:
    got = told([*clear(), Comparison("", (("a", "b"),), 5, "a", judged=False)])
    assert got["unsure"][0].message == "5 of 17 answers say that one cannot judge: no order follows."
    level = [Comparison("", (("a", "b"),), 6), Comparison("", (("b", "c"),), 6), choice("a", "c")]
    assert told(level)["equal"][0].message.startswith("12 of 13 answers are that both are equally good")
    level[0] = Comparison("", (("a", "b", "c"),), 6)
    assert told(level)["equal"][0].message.startswith("12 of 13 answers are that all shown are equally good")


def test_figures_that_did_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimate(tabulate(clear()))
    first, *rest = found.belief.nodes
    rough = first._replace(people=first.people._replace(sites=first.sites._replace(moved=0.02)))
    rough = found._replace(belief=found.belief._replace(nodes=(rough, *rest)))
    assert [each.kind for each in remarks(rough)] == ["unsettled"]
    assert remarks(found) == []
