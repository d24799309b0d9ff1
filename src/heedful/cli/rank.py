"""`heedful rank`: what people prefer, from their choices, how sure that is, and what to ask next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.board import show_leaderboard, show_ranking
from heedful.cli.board_plot import draw
from heedful.cli.common import Json, Without, holds_loop, pairs
from heedful.cli.console import BadInput, check_extra, notes, print_json, reading_input
from heedful.cli.output import check_path
from heedful.data.spreadsheet import rows_of, write_table

if TYPE_CHECKING:
    from heedful.boards.leaderboard import Leaderboard
    from heedful.boards.ranking import PreferenceRanking
    from heedful.data.choices import LoadedChoices, LoadedPairs

OPTIONS = ("goal", "sure", "person", "without", "identifier", "anchor", "adjust", "side", "by", "ties")
"""The arguments of `heedful.rank` and `heedful.leaderboard` that have an option of the same name."""


def rank(
    file: Annotated[
        Path,
        typer.Argument(
            help="The choices: CSV, JSON lines, Parquet, or PrefLib (.soc, .soi, .toc, .toi); or gzip; or an arena of "
            "`heedful compare --models`."
        ),
    ],
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table of all items: what is alike is taken to be liked alike."),
    ] = None,
    identifier: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of --items with their names.", show_default="found")
    ] = None,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Rank for this person, not for all.")] = None,
    pool: Annotated[
        bool | None,
        typer.Option(
            "--pool/--no-pool",
            help="Take all answers for one person's; or each of a person without a name for another's.",
            show_default="by the names of people",
        ),
    ] = None,
    without: Without = None,
    goal: Annotated[str, typer.Option(help="What is to be known: best, or the whole ranking.")] = "best",
    sure: Annotated[float, typer.Option(help="How sure is sure enough, 0.5 to 0.999.")] = 0.9,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="winner, loser; first, second, answer; item, rank, ballot; order (for each place); person, times; "
            "aside, which says what does not count.",
            show_default="by their names",
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=MEANING",
            help="An answer that means first, second, equal or unsure; repeatable. With a number, say what all mean.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SCORE", help="This item has that score.", show_default="the average of all has 1,000"
        ),
    ] = None,
    arena: Annotated[
        bool | None,
        typer.Option(
            "--arena/--no-arena",
            help="Make a leaderboard of votes, or not.",
            show_default="by model_a and model_b, or over 50,000 answers",
        ),
    ] = None,
    adjust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Arena: at equal COLUMN_a and COLUMN_b, such as length; or a column of JSON with such fields. May be "
            "repeated.",
        ),
    ] = None,
    side: Annotated[bool, typer.Option("--side", help="Arena: adjust for which answer was shown first.")] = False,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Arena: a leaderboard for each category, too.")
    ] = None,
    ties: Annotated[
        str, typer.Option(help="Arena: how ties come about: threshold, odds, constant, half; auto takes the likeliest.")
    ] = "auto",
    top: Annotated[int, typer.Option(min=1, help="So many items are printed and drawn.")] = 40,
    plot: Annotated[Path | None, typer.Option(help="Draw the ranking into this file: .png, .svg or .pdf.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the ranking into this file: .csv.")] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Arena: write the leaderboard as a page into this file: .html.")
    ] = None,
    votes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of `heedful compare --models`: write its votes into this .csv.")
    ] = None,
    json: Json = False,
) -> None:
    """The columns of the file are recognised by their names. It may have winner and loser; or first, second and answer,
    where the answer is first, second, equal, unsure, or the item; or model_a, model_b and winner (model_a, model_b,
    tie; both_bad counts as a tie), as in arenas; or rank 1, rank 2, ... for whole orders; or item and rank,
    with person or ballot; or order ("tea > milk = soup"). A column person (or judge, or evaluation_session_id) says who
    answered. Then the ranking is that of the average person, and --person ranks for one, even one with few answers. A
    column times says how often an answer was given.

    A utility says how much an item is liked; its unit is the noise of one choice. Scores are as in chess: 400 points
    more are odds of 10 to 1, and the average item has 1,000. Bars are 90 % intervals. Below the table the output says
    which items cannot be told apart, whether you can stop asking or about how many questions are left, what to ask
    next, and what is strange in the answers.

    Votes of an arena (model_a, model_b and winner), and any pairs with more than 50,000 answers, become a leaderboard
    by a Bradley-Terry model in which every vote counts the same: scores with intervals, places, how many votes would
    turn the first place, and who votes at random. --no-arena, and options about persons or features, rank them by the
    model of people instead, where there are not too many.

    Exit codes: 0 ranked; 1 a package is missing, or a file cannot be written; 2 bad input.
    """
    with reading_input():
        check_path("--plot", plot, (".png", ".svg", ".pdf"))
        check_path("--csv", csv, (".csv",))
        check_path("--page", page, (".html", ".htm"))
        check_path("--votes", votes, (".csv",))
        _refuse_same(file, items, {"--csv": csv, "--page": page, "--votes": votes})
    if plot is not None:
        check_extra("matplotlib", "plot", "--plot")
    of_people = {"--items": items, "--identifier": identifier, "--person": person, "--pool": pool}
    of_people |= {"--goal": None if goal == "best" else goal}
    of_arena: dict[str, object] = {
        "--adjust": adjust,
        "--side": side or None,
        "--by": by,
        "--ties": None if ties == "auto" else ties,
    }
    of_arena |= {"--page": page, "--votes": votes}
    with reading_input(), _by_option():
        from heedful.data.choices import open_pairs
        from heedful.data.roles import columns_of

        if holds_loop(file):
            from heedful.cli.compare_models import loaded_battles

            loaded: LoadedPairs | LoadedChoices = loaded_battles(file, votes)
        elif votes is not None:
            raise BadInput(f"--votes: expected an arena that heedful compare --models made, got {str(file)!r}")
        else:
            words = pairs("--answer", "WORD=MEANING, such as 0=first", answer or ())
            loaded = open_pairs(file, columns_of(column or ()), words)
        voted = _as_arena(loaded, arena, _given(of_people), _given(of_arena))
    options: dict[str, Any] = {"sure": sure, "anchor": _anchor(anchor), "name": str(file)}
    found: Leaderboard | PreferenceRanking
    before: Leaderboard | PreferenceRanking
    if voted is not None:
        options |= {"adjust": adjust or (), "side": side, "by": by, "ties": ties}
        with reading_input(), _by_option(), notes().status(f"weighing {voted.pairs.times.sum():,} votes"):
            from heedful.boards.leaderboard import leaderboard

            found = leaderboard(voted, without=without or (), **options)
            before = leaderboard(voted, **options) if without else found
    else:
        options |= {"items": items, "identifier": identifier, "person": person, "pool": pool, "goal": goal}
        with reading_input(), _by_option():
            from heedful.boards.ranking import rank as rank_choices

            choices = loaded.to_choices()
            with notes().status(f"weighing {choices.choices.answers:,} answers"):
                found = rank_choices(choices, without=without or (), **options)
                before = rank_choices(choices, **options) if without else found
    if without:
        from heedful.boards.data_quality import left_out

        remark = left_out(without, before.items[0], found.items[0])
        found = found._replace(remarks=(*found.remarks, remark))
    _give(found, csv, page, plot, top, json)


def _given(options: Mapping[str, object]) -> list[str]:
    return [option for option, value in options.items() if value is not None]


def _as_arena(
    loaded: LoadedPairs | LoadedChoices, arena: bool | None, of_people: list[str], of_arena: list[str]
) -> LoadedPairs | None:
    """Return what was read if it is ranked as votes of an arena, else None; raise ValueError where options disagree."""
    from heedful.boards.leaderboard import why_arena
    from heedful.data.choices import LoadedPairs

    if of_arena and (arena is False or of_people):
        other = "--no-arena" if arena is False else of_people[0]
        raise ValueError(f"{of_arena[0]}: expected a leaderboard of votes, got {other}, which makes none")
    if arena and of_people:
        raise ValueError(f"{of_people[0]}: expected --no-arena, whose model tells people and features, got --arena")
    if not isinstance(loaded, LoadedPairs):
        if arena or of_arena:
            raise ValueError(f"{(of_arena or ['--arena'])[0]}: expected votes about pairs, got {loaded.summary}")
        return None
    if arena is False or of_people:
        return None
    return loaded if arena or of_arena or why_arena(loaded) is not None else None


def _give(
    found: Leaderboard | PreferenceRanking,
    csv: Path | None,
    page: Path | None,
    plot: Path | None,
    top: int,
    json: bool,
) -> None:
    """Write the files that were asked for, and print the result."""
    from heedful.boards.ranking import PreferenceRanking

    if csv is not None:
        fields = found.board.fields() if isinstance(found, PreferenceRanking) else found.fields()
        write_table(csv, list(fields), rows_of(fields))
    if page is not None and not isinstance(found, PreferenceRanking):
        from heedful.studies.board_page import board_page

        page.write_text(board_page(found), encoding="utf-8")
    if json:
        print_json(found.to_dict())
    elif isinstance(found, PreferenceRanking):
        show_ranking(found, top)
    else:
        show_leaderboard(found, top)
    if plot is not None:
        draw(plot, found.board, f"{Path(found.file).name}: {found.title}", top)


@contextmanager
def _by_option() -> Iterator[None]:
    """Raise a ValueError of the block about an argument of `heedful.rank` as one about the option of that name."""
    try:
        yield
    except ValueError as error:
        name, _, told = str(error).partition(": ")
        raise ValueError(f"--{name}: {told}" if name in OPTIONS else str(error)) from None


def _anchor(given: str | None) -> tuple[str, float] | None:
    """Return the (item, score) in the option --anchor, None without it; raise BadInput if it is wrong."""
    from heedful.data.files import is_number

    if given is None:
        return None
    name, _, score = given.rpartition("=")
    if not name or not is_number(score):
        raise BadInput(f"--anchor: expected NAME=SCORE, such as tea=1000, got {given!r}")
    return name, float(score)


def _refuse_same(file: Path, items: Path | None, outputs: Mapping[str, Path | None]) -> None:
    """Raise ValueError if one of `outputs`, by option, would overwrite an input (`file` or `items`) or another one."""
    taken = {path.resolve(): told for path, told in ((file, "the choices"), (items, "--items")) if path is not None}
    for option, path in outputs.items():
        if path is not None:
            if path.resolve() in taken:
                raise ValueError(
                    f"{option}: expected a file of its own, got that of {taken[path.resolve()]}, {str(path)!r}"
                )
            taken[path.resolve()] = option
