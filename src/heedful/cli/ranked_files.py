"""The CSV files of `heedful rank`: the ranking, and all pairs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.cli.ranked import Found

RANKING = ("place", "item", "score", "score_low", "score_high", "utility", "sd", "p_best", "place_from", "place_to")
PAIRS = ("first", "second", "first_won", "second_won", "ties", "p_first_beats", "p_first_better")


def write_ranking(path: Path, found: Found) -> None:
    """A row for each item, the best first; `p_best_if_new` where there are many people."""
    from heedful.data.spreadsheet import plain_row

    standing, scores, n = found.standing, found.scores, len(found.names)
    new = () if found.new is None else ("p_best_if_new",)
    better = standing.better.tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*RANKING, "p_over_next", "votes", *new])
        for place, i in enumerate(standing.order.tolist(), 1):
            row = [place, found.names[i], *(float(column[i]) for column in scores), float(standing.mean[i])]
            row += [float(standing.sd[i]), min(float(standing.best[i]), 1.0), *standing.places[i].tolist()]
            row += [better[place - 1] if place < n else "", int(found.votes[i])]
            row += [] if found.new is None else [min(float(found.new[i]), 1.0)]
            writer.writerow(plain_row(row))


def write_pairs(path: Path, found: Found) -> None:
    """A row for each two items, the better one first; P(it beats the other in the next choice), P(it is better)."""
    from heedful.data.spreadsheet import plain_cell

    order = found.standing.order
    names = [plain_cell(found.names[i]) for i in order.tolist()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(PAIRS)
        for place, i in enumerate(order[:-1].tolist()):
            others = order[place + 1 :]
            columns = [found.wins[i, others], found.wins[others, i], found.ties[i, others]]
            told = [column.astype(int).tolist() for column in columns]
            beats, better = found.chooser.beats(i, others).tolist(), found.posterior.better(i, others).tolist()
            first = names[place]
            writer.writerows([first, *row] for row in zip(names[place + 1 :], *told, beats, better))
