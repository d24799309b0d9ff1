"""The experiment `ratings`: recommenders that know nothing at first, on a file of ratings or random ratings.

The random worlds are those of Dadkhahi & Negahban 2018 ([A18]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from heedful.experiments.definitions.base import BadOption, Experiment, Option, PreparedExperiment

if TYPE_CHECKING:
    from heedful.data.ratings import RatingTable


class Ratings(Experiment):
    """The experiment `ratings`: users and items without features, of whom nothing is known but past ratings."""

    name = "ratings"
    learners = ("alb", "bmf")
    seeds = 5
    rounds = "25,000, or as many as there are"

    def prepare(
        self,
        file: Annotated[
            str,
            Option(
                "A table of ratings (CSV, JSON lines, Parquet; plain or gzip), Jester, Book-Crossing, the folder of "
                "MovieLens; or gaussian, uniform, bernoulli: a world that is drawn.",
                metavar="FILE",
            ),
        ],
        repeats: Annotated[bool, Option("Whether what a person consumed may be shown again.")] = False,
        slate: Annotated[int, Option("How many items are shown, and rated, at a time.", least=1, most=1000)] = 1,
        warm: Annotated[int, Option("How many ratings, drawn by the seed, are learned beforehand.", least=0)] = 0,
        column: Annotated[
            list[str],
            Option("A column of the table: person, item or rating. May be repeated.", metavar="WHAT=COLUMN"),
        ] = [],  # noqa: B006
        worth: Annotated[
            list[str],
            Option("What a kind of feedback is worth as a rating, such as star=5. May be repeated.", metavar="KIND=R"),
        ] = [],  # noqa: B006
        missing: Annotated[
            list[str], Option("A rating that stands for none, such as 99; none if none does.", metavar="R")
        ] = [],  # noqa: B006
        twice: Annotated[
            str, Option("What to do if a user rates an item twice: refuse it, take the last rating, or the mean.")
        ] = "refuse",
        densest: Annotated[
            int | None,
            Option(
                "Keep only so many users, those who rated most, and items, those rated most often.",
                least=1,
                default="all",
            ),
        ] = None,
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """In each round a random user comes. On offer are the items that this user rated in the file: each until it was
        shown, or again and again with --repeats. The regret of a round is the rating of the best item on offer minus
        that of the item shown. Instead of a file, FILE may be a world with random ratings as in the paper *Alternating
        Linear Bandits*, where all items are on offer in every round: gaussian:noise=0.5, uniform or bernoulli, with
        n_users=200, n_items=200, n_factors=5.

        Four simple rules are always run too (random-item, user-greedy, item-mean, pair-mean). One column of the table
        says how much more regret each other learner had than the best of them, compared seed by seed, with its standard
        error.
        """
        from heedful.data.roles import columns_of
        from heedful.experiments.ratings import ROUNDS, SIMPLE, is_drawn, rating_setting

        named, drawn, notes = columns_of(column), is_drawn(file), tuple[str, ...]()
        source: RatingTable | str = file
        if drawn:
            for option, given in (
                ("--column", bool(named)),
                ("--worth", bool(worth)),
                ("--repeats", repeats),
                ("--densest", densest),
            ):
                if given:
                    raise ValueError(
                        f"{option}: expected none with {file}, which is drawn; a file of that name is ./{file}"
                    )
        else:
            source, found = _read(file, named, twice, densest, _worths(worth), missing)
            notes = (found,)
        setting = rating_setting(source, repeats=repeats, slate=slate, warm=warm, seeds=seeds)
        words = [
            file if drawn else Path(file).name,
            "" if drawn else "shown again" if repeats else "each shown once",
            f"slates of {slate}" if slate > 1 else "",
            f"{warm:,} told before" if warm else "",
        ]
        return PreparedExperiment(
            setting,
            ", ".join(filter(None, words)),
            {"ratings": file, "repeats": None if drawn else repeats, "slate": slate, "warm": warm},
            notes=notes,
            rules=SIMPLE,
            yardsticks=SIMPLE,
            most_rounds=None if drawn or repeats or setting.rounds >= ROUNDS else setting.rounds,
        )


def _worths(options: Sequence[str]) -> dict[str, float]:
    """Return what kinds of feedback are worth, KIND=R each. Raise BadOption for another form."""
    from heedful.data.files import is_number

    pairs = [option.rpartition("=") for option in options]
    wrong = next(("".join(pair) for pair in pairs if not pair[0] or not is_number(pair[2])), None)
    if wrong is not None:
        raise BadOption(f"worth: expected KIND=R, such as star=5, got {wrong!r}")
    return {kind: float(number) for kind, _, number in pairs}


def _read(
    file: str,
    columns: Mapping[str, Sequence[str]],
    twice: str,
    most: int | None,
    worths: Mapping[str, float],
    missing: Sequence[str],
) -> tuple[RatingTable, str]:
    """Return (the ratings of a file, a sentence that describes them for the user)."""
    from heedful.data.rating_files import open_ratings
    from heedful.data.ratings import densest

    if twice not in ("refuse", "last", "mean"):
        raise BadOption(f"twice: expected refuse, last or mean, got {twice!r}")
    table, description = open_ratings(file, columns, twice=twice, words=worths, missing=missing)  # type: ignore[arg-type]
    if most is not None:
        try:
            table = densest(table, most, most)
        except ValueError as error:
            raise BadOption(f"densest: {error}") from None
        description += f"; the {most:,} who rated most, the {most:,} rated most often"
    users, items = table.user_names.size, table.item_names.size
    low, high = table.values.min(), table.values.max()
    ratings = f"{table.values.size:,} ratings from {low:g} to {high:g}"
    return table, f"{file}: {description}: {ratings}, {users:,} users, {items:,} items"
