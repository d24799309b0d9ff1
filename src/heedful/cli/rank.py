"""`heedful rank`: what people prefer, from their choices, how sure that is, and what to ask next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.finding import Json
from heedful.cli.output import check_path
from heedful.cli.ranked import draw, show
from heedful.cli.terminal import BadInput, Failure, notes, print_json, reading_input, wanted_extra

OPTIONS = ("goal", "sure", "person", "without", "identifier")
"""Arguments of `heedful.rank` that are options of the same name."""


def rank(
    file: Annotated[
        Path,
        typer.Argument(help="The choices: CSV, JSON lines, Parquet, or PrefLib (.soc, .soi, .toc, .toi); or gzip."),
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
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave this person's answers out; may be repeated.")
    ] = None,
    goal: Annotated[str, typer.Option(help="What is to be known: best, or the whole ranking.")] = "best",
    sure: Annotated[float, typer.Option(help="How sure is sure enough, 0.5 to 0.999.")] = 0.9,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="winner, loser; first, second, answer; item, rank, ballot; order (for each place); person, times.",
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
    top: Annotated[int, typer.Option(min=1, help="So many items are printed and drawn.")] = 40,
    plot: Annotated[Path | None, typer.Option(help="Draw the ranking into this file: .png, .svg or .pdf.")] = None,
    json: Json = False,
) -> None:
    """Rank things by what people chose, with how sure each place is.

    Columns are found by their names: winner and loser; first, second and answer (first, second, equal, unsure, or the
    item); rank 1, rank 2, ... for orders; item and rank with person or ballot; or order ("tea > milk = soup"). A column
    person tells people apart: then what they are like is learned, the ranking is that of their average, and --person
    ranks for one, who may have answered little. A column times says how often.

    Utilities are in units of the noise of one choice; bars hold 90 %. Told are groups of which no two can be told
    apart, whether it is sure enough to stop asking, about how many questions are left, the next question, and what is
    strange in the answers.

    Exit codes: 0 ranked; 1 a package is missing, or a file cannot be written; 2 bad input.
    """
    with reading_input():
        check_path("--plot", plot, (".png", ".svg", ".pdf"))
    if plot is not None:
        wanted_extra("matplotlib", "plot", "--plot")
    with reading_input(), _by_option():
        from heedful.preferences.ranking import rank_request, ranking_of

        asked = rank_request(
            file,
            items=items,
            identifier=identifier,
            person=person,
            pool=pool,
            without=without or (),
            goal=goal,
            sure=sure,
            columns=_columns(column or ()),
            words=_words(answer or ()),
        )
    with reading_input(), notes().status(f"weighing {asked.choices.answers:,} answers"):
        found = ranking_of(asked)
    if json:
        print_json(found.to_dict())
    else:
        show(found, top)
    if plot is not None:
        draw(plot, found, top)


@contextmanager
def _by_option() -> Iterator[None]:
    """What is refused of an argument is said of the option that it is; that a package is missing is no bad input."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        name, _, told = str(error).partition(": ")
        raise ValueError(f"--{name}: {told}" if name in OPTIONS else str(error)) from None


def _columns(given: Sequence[str]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for each in given:
        what, mark, name = each.partition("=")
        if not (what and mark and name):
            raise BadInput(f"--column: wanted WHAT=COLUMN, such as winner=chosen, got {each!r}")
        columns.setdefault(what, []).append(name)
    return columns


def _words(given: Sequence[str]) -> dict[str, str]:
    words: dict[str, str] = {}
    for each in given:
        word, mark, meaning = each.rpartition("=")
        if not (word and mark and meaning):
            raise BadInput(f"--answer: wanted WORD=MEANING, such as 0=first, got {each!r}")
        words[word] = meaning
    return words
