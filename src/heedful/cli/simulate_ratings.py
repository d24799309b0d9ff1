"""`heedful simulate ratings`: recommenders that start from nothing, on a file of ratings or a world that is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.console import note, reading_input
from heedful.cli.simulate_common import (
    FirstSeed,
    Interpreted,
    Jobs,
    Json,
    Learners,
    SimulateRequest,
    check_request,
    run_and_tell,
)

if TYPE_CHECKING:
    from heedful.data.ratings import RatingTable


def ratings(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A table of ratings (CSV, JSON lines, Parquet; plain or gzip), Jester, Book-Crossing, the folder of "
            "MovieLens; or gaussian, uniform, bernoulli: a world that is drawn.",
        ),
    ],
    learner: Learners = ["alb", "bmf"],  # noqa: B006
    repeats: Annotated[
        bool, typer.Option("--repeats/--no-repeats", help="Whether what a person consumed may be shown again.")
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, show_default="25,000, or as many as there are", help="How many rounds each run has."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each learner, on seeds one after the other.")] = 5,
    first_seed: FirstSeed = 0,
    slate: Annotated[int, typer.Option(min=1, max=1000, help="Items shown, and rated, at a time.")] = 1,
    warm: Annotated[int, typer.Option(min=0, help="So many ratings, drawn by the seed, are told before.")] = 0,
    measure: Annotated[
        str, typer.Option(help="regret; or ndcg: NDCG@5 of the best five, of which the first are shown.")
    ] = "regret",
    simple: Annotated[
        bool, typer.Option("--simple/--no-simple", help="Whether simple rules are run beside, for comparison.")
    ] = True,
    user_column: Annotated[str, typer.Option(metavar="COLUMN", help="Where a table has the users.")] = "",
    item_column: Annotated[str, typer.Option(metavar="COLUMN", help="Where a table has the items.")] = "",
    rating_column: Annotated[str, typer.Option(metavar="COLUMN", help="Where a table has the ratings.")] = "",
    twice: Annotated[
        str, typer.Option(help="An item that a user rates twice: refuse it, take the last rating, or the mean.")
    ] = "refuse",
    densest: Annotated[
        int | None,
        typer.Option(min=1, show_default="all", help="Only so many users who rated most, and items rated most often."),
    ] = None,
    jobs: Jobs = None,
    interpreted: Interpreted = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the average against rounds into this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figure of every round: .csv or .npz.")] = None,
    json: Json = False,
) -> None:
    """Recommend items to users of whom nothing is known; what is shown is rated, and so it learns.

    A random user comes. The items that this user rated in the file are on offer, each until it was consumed, or again
    and again with --repeats; regret is what the best of them was rated more than what was shown. In a world that is
    drawn, as in *Alternating Linear Bandits*, everything is on offer in every round: gaussian:noise=0.5, uniform or
    bernoulli, with n_users=200, n_items=200, n_factors=5.

    Four simple rules are always run beside (random-item, user-greedy, item-mean, pair-mean), and what the others cost
    more than the best of these is said, seed by seed, with its standard error.
    """
    with reading_input():
        from heedful.experiments.ratings import LENGTH, SIMPLE, is_drawn, rating_setting

        rules = tuple(name for name in SIMPLE if name not in learner) if simple else ()
        again = None if is_drawn(file) else repeats
        conditions = {"ratings": file, "repeats": again, "slate": slate, "warm": warm}
        request = SimulateRequest(learner, conditions, rounds, jobs, interpreted, plot, out, json, rules)
        check_request(request)
        named = (user_column, item_column, rating_column)
        if is_drawn(file):
            for option, given in (("columns", any(named)), ("--repeats", repeats), ("--densest", densest)):
                if given:
                    raise ValueError(
                        f"{option}: expected none with {file}, which is drawn; a file of that name is ./{file}"
                    )
        source = file if is_drawn(file) else _read(file, named, twice, densest)
        setting = rating_setting(
            source,
            repeats=repeats,
            slate=slate,
            warm=warm,
            measure=measure,
            seeds=range(first_seed, first_seed + seeds),
        )
    if rounds and not is_drawn(file) and not repeats and rounds > setting.rounds < 25_000:
        note(f"everything is consumed after {setting.rounds:,} rounds, fewer than {rounds:,}")
        request = request._replace(rounds=setting.rounds)
    words = [
        Path(file).name if not is_drawn(file) else file,
        "" if is_drawn(file) else "shown again" if repeats else "each shown once",
        f"slates of {slate}" if slate > 1 else "",
        f"{warm:,} told before" if warm else "",
    ]
    remark = (
        "" if measure == "regret" else f"NDCG of the first {LENGTH} of the list, of which the first {slate} are shown."
    )
    found = tuple(name for name in SIMPLE if name in (*learner, *rules))
    run_and_tell(request._replace(remark=remark, simple=found), setting, ", ".join(filter(None, words)))


def _read(file: str, named: tuple[str, str, str], twice: str, most: int | None) -> RatingTable:
    """The ratings of a file, with a note on what they are."""
    from heedful.data.rating_files import open_ratings
    from heedful.data.ratings import Columns, densest

    if twice not in ("refuse", "last", "mean"):
        raise ValueError(f"--twice: expected refuse, last or mean, got {twice!r}")
    table, told = open_ratings(file, Columns(*named), twice=twice)  # type: ignore[arg-type]
    if most is not None:
        try:
            table = densest(table, most, most)
        except ValueError as error:
            raise ValueError(f"--densest: {error}") from None
        told += f"; the {most:,} who rated most, the {most:,} rated most often"
    users, items = table.user_names.size, table.item_names.size
    low, high = table.values.min(), table.values.max()
    note(f"{file}: {told}: {table.values.size:,} ratings from {low:g} to {high:g}, {users:,} users, {items:,} items")
    return table
