"""Models that never met, not even by way of others, have places among those that they met."""

from __future__ import annotations

from heedful.boards.leaderboard import leaderboard
from heedful.data.choices import pairs_in
from heedful.data.votes import votes_of


def rows(votes: list[tuple[str, str, int, int]]) -> list[dict[str, str]]:
    return [
        {"model_a": a, "model_b": b, "winner": f"model_{side}"}
        for a, b, won, lost in votes
        for side, n in (("a", won), ("b", lost))
        for _ in range(n)
    ]


def test_two_groups_that_never_met_are_two_boards() -> None:
    first, second = [("ace", "bee", 7, 3)], [("dog", "elk", 40, 4), ("elk", "fox", 10, 6)]
    loaded = pairs_in("x", rows([*first, *second]))
    board = leaderboard(votes_of(loaded), influence=False)  # type: ignore[arg-type]
    told = [(row.item, row.place, row.place_low, row.place_high) for row in board.board.ranking]
    assert [each[:2] for each in told] == [("dog", 1), ("elk", 2), ("fox", 3), ("ace", 1), ("bee", 2)]
    assert all(1 <= low <= high <= (2 if name in ("ace", "bee") else 3) for name, _, low, high in told)
    best = dict(zip(board.models, board.by_number("best").tolist()))
    assert best["ace"] + best["bee"] == 1.0
    assert best["dog"] > 0.99
    assert board.board.alike == (("elk", "fox"), ("ace", "bee"))  # and not fox and ace, which never met
    assert [row.better_than_next is None for row in board.board.ranking] == [False, False, True, False, True]
    assert board.board.apart() == "Neighbours that cannot be told apart (less than 90 %): elk and fox; ace and bee."
    [parted] = [each.message for each in board.remarks if each.kind == "parted"]
    assert parted.startswith(
        "Models fall into 2 parts that never met, not even by way of others: dog, elk, fox; ace, bee. Pl"
    )
    whole = leaderboard(votes_of(pairs_in("x", rows(second))), influence=False)  # type: ignore[arg-type]
    assert [row.item for row in whole.board.ranking] == ["dog", "elk", "fox"]
